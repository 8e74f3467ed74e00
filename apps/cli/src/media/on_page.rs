//! `narrows media … --live`: frames and rates on a page, beside the connection that carries them.

use crate::failure::Failure;
use crate::live::{LiveArgs, ShownConnections};
use narrows_base::{Duration, Rate};
use narrows_live::media::playing::{PlaybackStatistics, PlayingLive};
use narrows_live::media::sending::{SendingLive, SendingStatistics};
use narrows_media::flow::{MediaFlowState, OnState};
use narrows_media::playing::{self, Observer};
use narrows_net::Clock;

/// The page of a sender, if `--live` is set, and its callback for the sender's state.
///
/// # Errors
/// The address cannot be bound.
pub fn of_sender(
    live: &LiveArgs,
    protocol: &str,
) -> Result<(Option<ShownConnections>, Option<OnState>), Failure> {
    let Some(shown) = ShownConnections::open(live, "media send", protocol)? else {
        return Ok((None, None));
    };
    let clock = Clock::new();
    let media = SendingLive::new(shown.run(), clock);
    shown.by(clock);
    let tell: OnState = Box::new(move |state| media.show(&sending(state)));
    Ok((Some(shown), Some(tell)))
}

/// The page of a receiver, if `--live` is set, and its callback for the receiver's state.
///
/// # Errors
/// The address cannot be bound.
pub fn of_receiver(
    live: &LiveArgs,
    protocol: &str,
) -> Result<(Option<ShownConnections>, Option<Observer>), Failure> {
    let Some(shown) = ShownConnections::open(live, "media receive", protocol)? else {
        return Ok((None, None));
    };
    let clock = Clock::new();
    let media = PlayingLive::new(shown.run(), clock);
    shown.by(clock);
    let tell: Observer = Box::new(move |of| media.show(&played(of)));
    Ok((Some(shown), Some(tell)))
}

fn seconds(duration: Option<Duration>) -> f64 {
    duration.map_or(f64::NAN, Duration::as_secs_f64)
}

fn played(p: &playing::Playing) -> PlaybackStatistics {
    let playing::Playing { stream, latency, received, counts, .. } = *p;
    PlaybackStatistics {
        stream,
        latency_s: latency.as_secs_f64(),
        frame_delay_s: seconds(p.frame_delay),
        late_frames: counts.late_frames,
        missed: received.missed,
        came_late: received.came_late,
        repaired: received.repaired,
        delayed: received.delayed,
        stalls: counts.stalls,
        frozen_s: counts.frozen.as_secs_f64(),
        bytes: received.bytes,
        quiet_s: p.quiet.as_secs_f64(),
        rtt_s: p.rtt.as_secs_f64(),
        layers: p.layers,
        of: p.of,
        tear_bps: p.tear.map_or(f64::NAN, |rate: Rate| rate.as_bps() as f64),
    }
}

fn sending(s: &MediaFlowState) -> SendingStatistics {
    SendingStatistics {
        connected: s.connected,
        told_bps: s.bits_per_second as f64,
        source_bps: s.sent as f64,
        permitted_bps: s.permitted as f64,
        waiting_s: s.waiting_ms * 1e-3,
        longest_wait_s: s.longest_wait_ms * 1e-3,
        dropped_by_rate: s.dropped_by.rate,
        dropped_by_window: s.dropped_by.window,
        dropped_by_silence: s.dropped_by.silence,
        dropped_by_suspension: s.dropped_by.suspended,
        repeated: s.repeated,
        late: s.late,
        layers: s.layers,
    }
}
