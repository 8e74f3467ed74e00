//! The receiver: delays of frames, late frames, and pauses of the picture.

use super::{Columns, EventCounts, MediaTrack, bits, mbit, ms, number, tell};
use crate::feed::history::Merge;
use crate::feed::{EventMark, LiveRun};
use narrows_net::Clock;
use std::collections::VecDeque;
use std::sync::Arc;

/// Causes of a late frame are searched within the latency and this time before it.
const BEFORE_US: i64 = 1_000_000;
/// Most samples that are kept for that.
const MAX_RECENT: usize = 1024;
/// A longer time without a packet is mentioned, s.
const LONG_QUIET_S: f64 = 0.1;

const COLUMNS: Columns<'static> = &[
    (
        "frame_delay_s",
        "s",
        "longest delay of a frame since the last sample, beyond the path's shortest delay",
        Merge::Max,
    ),
    ("latency_s", "s", "permitted latency", Merge::Last),
    ("late_frames", "frames", "frames with a packet that missed its deadline", Merge::Sum),
    ("missed", "packets", "packets that missed their deadline", Merge::Sum),
    ("repaired", "packets", "packets that were requested again and met their deadline", Merge::Sum),
    ("delayed", "packets", "packets delivered after their time", Merge::Sum),
    ("stalls", "", "times that the picture stood", Merge::Sum),
    ("played_bps", "bit/s", "media handed out", Merge::Mean),
    ("layers", "", "layers that are received", Merge::Last),
    ("tear_bps", "bit/s", "rate for joining and leaving groups", Merge::Mean),
];

/// Statistics of a receiver. Counters start at the beginning of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlaybackStatistics {
    /// Number of the stream.
    pub stream: u64,
    /// Permitted latency, s.
    pub latency_s: f64,
    /// Longest delay of a frame since the last sample, s; NaN if no frame was completed.
    pub frame_delay_s: f64,
    /// Frames of which at least one packet missed its deadline.
    pub late_frames: u64,
    /// Packets that missed their deadline.
    pub missed: u64,
    /// Those of `missed` that arrived later.
    pub came_late: u64,
    /// Packets that were requested again and met their deadline.
    pub repaired: u64,
    /// Packets delivered after their time.
    pub delayed: u64,
    /// Number of pauses of the picture.
    pub stalls: u64,
    /// Total length of the pauses, s.
    pub frozen_s: f64,
    /// Bytes delivered.
    pub bytes: u64,
    /// Longest time without a packet since the last sample, s.
    pub quiet_s: f64,
    /// Round-trip time, s; zero if unknown.
    pub rtt_s: f64,
    /// Layers that are received.
    pub layers: usize,
    /// Number of layers of the stream.
    pub of: usize,
    /// Rate for joining and leaving groups, bit/s; NaN without groups.
    pub tear_bps: f64,
}

/// Shows a receiver's streams.
#[derive(Debug)]
pub struct PlayingLive {
    shown: MediaTrack<PlayingHistory>,
}

#[derive(Debug, Default)]
struct PlayingHistory {
    /// The last samples of this stream, the oldest first.
    recent: VecDeque<(i64, PlaybackStatistics)>,
    counts: EventCounts,
}

impl PlayingLive {
    /// Shown in this run, with this clock.
    pub fn new(run: Arc<LiveRun>, clock: Clock) -> PlayingLive {
        PlayingLive { shown: MediaTrack::new(run, clock, COLUMNS) }
    }

    /// Adds a sample.
    pub fn show(&self, now: &PlaybackStatistics) {
        self.show_at(self.shown.now_us(), now);
    }

    fn show_at(&self, now_us: i64, now: &PlaybackStatistics) {
        self.shown.update(now_us, |known, update, track| {
            let last = known.recent.back().copied();
            let Some((then_us, before)) = last.filter(|(_, last)| last.stream == now.stream) else {
                known.recent.clear();
                known.recent.push_back((now_us, *now));
                let layers =
                    if now.of > 1 { format!(" in {} layers", now.of) } else { String::new() };
                let why = format!("It comes{layers}, with a latency of {}.", ms(now.latency_s));
                return tell(
                    update,
                    track,
                    EventMark::Connection,
                    "a stream begins".into(),
                    vec![why],
                );
            };
            let since = |of: fn(&PlaybackStatistics) -> u64| of(now).saturating_sub(of(&before));
            let row = [
                now.frame_delay_s,
                now.latency_s,
                since(|p| p.late_frames) as f64,
                since(|p| p.missed) as f64,
                since(|p| p.repaired) as f64,
                since(|p| p.delayed) as f64,
                since(|p| p.stalls) as f64,
                bits(since(|p| p.bytes), now_us - then_us),
                now.layers as f64,
                now.tear_bps,
            ];
            update.row(track, &row.map(|x| x as f32));
            let window_us = (now.latency_s * 1e6) as i64 + BEFORE_US;
            while known.recent.len() >= MAX_RECENT
                || known.recent.get(1).is_some_and(|(at, _)| *at < now_us - window_us)
            {
                known.recent.pop_front();
            }
            known.recent.push_back((now_us, *now));
            let PlayingHistory { recent, counts } = known;
            let stalls = since(|p| p.stalls);
            if stalls > 0 {
                let stood = now.frozen_s - before.frozen_s;
                let title = format!("the picture stood for {stood:.2} s");
                tell(update, track, EventMark::Frames, title, why_late(recent));
            }
            if let Some((n, more)) = counts.count("late", now_us, since(|p| p.late_frames)) {
                let title = format!("{} late", number(n, "frame", more));
                tell(update, track, EventMark::Frames, title, why_late(recent));
            }
            if let Some((n, more)) = counts.count("delayed", now_us, since(|p| p.delayed)) {
                let title = format!("{} handed out after their time", number(n, "packet", more));
                let mut why = vec![
                    "Everything sent before was as late, so it is still delivered, in order."
                        .into(),
                ];
                why.extend(quiet(recent));
                tell(update, track, EventMark::Frames, title, why);
            }
            if now.of > 1 && now.layers != before.layers && before.layers > 0 {
                let title = format!("layers {} → {} of {}", before.layers, now.layers, now.of);
                tell(update, track, EventMark::Layers, title, why_layers(&before, now));
            }
        });
    }
}

fn why_layers(before: &PlaybackStatistics, now: &PlaybackStatistics) -> Vec<String> {
    let mut why = vec![match now.layers {
        0 => "No packet has arrived for a second.".into(),
        n if n < before.layers => format!("No packet of layer {} has arrived for a second.", n + 1),
        n => format!("Layer {n} arrives."),
    }];
    if now.tear_bps.is_finite() {
        why.push(format!("The rate for joining and leaving groups is {}.", mbit(now.tear_bps)));
    }
    why
}

/// Mentions the longest pause without packets, if it was long.
fn quiet(recent: &VecDeque<(i64, PlaybackStatistics)>) -> Option<String> {
    let longest = recent.iter().map(|(_, p)| p.quiet_s).fold(0.0, f64::max);
    (longest >= LONG_QUIET_S).then(|| {
        format!("No packet arrived for {}: the path or the sender had an outage.", ms(longest))
    })
}

/// Explains why frames were late, the cause first.
fn why_late(recent: &VecDeque<(i64, PlaybackStatistics)>) -> Vec<String> {
    let (Some((from_us, first)), Some((to_us, last))) = (recent.front(), recent.back()) else {
        return Vec::new();
    };
    let since = |of: fn(&PlaybackStatistics) -> u64| of(last).saturating_sub(of(first));
    let missed = since(|p| p.missed);
    let afterwards = since(|p| p.came_late);
    let repaired = since(|p| p.repaired);
    let mut why: Vec<String> = quiet(recent).into_iter().collect();
    let seconds = (to_us - from_us) as f64 * 1e-6;
    let packets = number(missed, "packet", false);
    let were = if missed == 1 { "was" } else { "were" };
    why.push(match afterwards {
        0 => format!("In the last {seconds:.1} s {packets} {were} not there in time."),
        n => format!(
            "In the last {seconds:.1} s {packets} {were} not there in time; {n} came afterwards."
        ),
    });
    if repaired > 0 {
        why.push(format!("{repaired} more were requested again and met their deadline."));
    }
    if last.rtt_s > 0.0 {
        let fit = (last.latency_s / last.rtt_s).floor();
        let repeats = number(fit as u64, "repeat", false);
        why.push(format!(
            "A repeat takes a round trip, {} now; the latency of {} has time for {repeats}.",
            ms(last.rtt_s),
            ms(last.latency_s)
        ));
    }
    why
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::{Feed, RunDescription};

    fn live() -> (Arc<LiveRun>, PlayingLive) {
        let about =
            RunDescription { name: "m".into(), detail: String::new(), real: true, end_s: None };
        let run = Feed::new("test").begin(about).unwrap();
        (run.clone(), PlayingLive::new(run, Clock::new()))
    }
    fn playing() -> PlaybackStatistics {
        let latency_s = 0.3;
        let rtt_s = 0.08;
        PlaybackStatistics {
            latency_s,
            rtt_s,
            layers: 1,
            of: 1,
            tear_bps: f64::NAN,
            ..PlaybackStatistics::default()
        }
    }

    #[test]
    fn late_frames_are_reported_with_their_cause() {
        let (run, live) = live();
        let mut now = playing();
        for n in 0..100 {
            now.quiet_s = if n == 90 { 0.24 } else { 0.02 };
            if n == 95 {
                now.late_frames = 2;
                now.missed = 3;
                now.came_late = 1;
                now.repaired = 4;
            }
            live.show_at(50_000 * n, &now);
        }
        let state = run.read();
        let events: Vec<_> = state.events().collect();
        assert_eq!(events.len(), 2, "{events:?}");
        assert_eq!(
            (events[1].title.as_str(), events[1].mark),
            ("2 frames late", EventMark::Frames)
        );
        let why = events[1].why.join(" ");
        for part in ["for 240 ms", "3 packets were not", "1 came afterwards", "4 more", "3 repeats"]
        {
            assert!(why.contains(part), "{part}: {why}");
        }
    }

    #[test]
    fn a_new_stream_counts_from_its_own_beginning() {
        let (run, live) = live();
        live.show_at(
            0,
            &PlaybackStatistics { late_frames: 7, missed: 9, bytes: 1 << 20, ..playing() },
        );
        live.show_at(50_000, &PlaybackStatistics { stream: 1, late_frames: 9, ..playing() });
        live.show_at(100_000, &PlaybackStatistics { stream: 1, late_frames: 9, ..playing() });
        let state = run.read();
        let titles: Vec<_> = state.events().map(|e| e.title.as_str()).collect();
        assert_eq!(titles, ["a stream begins", "a stream begins"]);
    }
}
