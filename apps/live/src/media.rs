//! Media on the page: frames, and why some were late. Each end reports its statistics several times a second, without
//! payload.
//!
//! [`sending`] is for the sender, [`playing`] for the receiver.

pub mod playing;
pub mod sending;

use crate::feed::history::Merge;
use crate::feed::{EventMark, FeedEvent, LiveRun, TrackColumn, TrackKind, Update};
use narrows_net::Clock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Interval at which a continuing event is reported again; and time without the event after which it counts as new (a
/// receiver counts once a second).
const AGAIN_US: i64 = 5_000_000;
const OVER_US: i64 = 2_000_000;

/// Columns of a media track: name, unit, meaning.
type Columns<'a> = &'a [(&'static str, &'static str, &'static str, Merge)];

/// The track of one end, with its state between updates.
#[derive(Debug)]
struct MediaTrack<M> {
    run: Arc<LiveRun>,
    clock: Clock,
    /// `None` if the run has too many tracks.
    track: Option<usize>,
    memory: Mutex<M>,
}

impl<M: Default> MediaTrack<M> {
    /// Adds a track to this run.
    fn new(run: Arc<LiveRun>, clock: Clock, columns: Columns<'_>) -> MediaTrack<M> {
        let columns = columns.iter().map(|&(name, unit, meaning, merge)| {
            let meaning = meaning.to_string();
            TrackColumn { name, unit, meaning, merge }
        });
        let track = run.track(TrackKind::Media, "media", columns.collect());
        MediaTrack { run, clock, track, memory: Mutex::default() }
    }

    fn now_us(&self) -> i64 {
        (self.clock.now().as_nanos() / 1000) as i64
    }

    fn memory(&self) -> MutexGuard<'_, M> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the track with `write`.
    fn update(&self, now_us: i64, write: impl FnOnce(&mut M, &mut Update<'_>, usize)) {
        if let Some(track) = self.track {
            let mut memory = self.memory();
            self.run.update(now_us, |update| write(&mut memory, update, track));
        }
    }
}

/// Events that occur many times a second: reported once, and again while they continue.
#[derive(Debug, Default)]
struct EventCounts {
    known: BTreeMap<&'static str, ReportedEvent>,
}

#[derive(Clone, Copy, Debug)]
struct ReportedEvent {
    seen_us: i64,
    told_us: i64,
    untold: u64,
}

impl EventCounts {
    /// Counts `more` events. Returns the number to report if it is time, and whether they continue those reported
    /// before.
    fn count(&mut self, what: &'static str, now_us: i64, more: u64) -> Option<(u64, bool)> {
        if more == 0 {
            return None;
        }
        let first = ReportedEvent { seen_us: i64::MIN, told_us: i64::MIN, untold: 0 };
        let known = self.known.entry(what).or_insert(first);
        let goes_on = now_us.saturating_sub(known.seen_us) < OVER_US;
        let untold = if goes_on { known.untold } else { 0 };
        known.seen_us = now_us;
        known.untold = untold + more;
        if goes_on && now_us.saturating_sub(known.told_us) < AGAIN_US {
            return None;
        }
        known.told_us = now_us;
        Some((std::mem::take(&mut known.untold), goes_on))
    }
}

/// Adds an event to this track.
fn tell(update: &mut Update<'_>, track: usize, mark: EventMark, title: String, why: Vec<String>) {
    let time_us = update.time_us();
    update.event(FeedEvent { time_us, track, mark, title, why });
}

/// A count with its noun: `1 packet`, `2 packets`, `3 more packets`.
fn number(n: u64, of: &str, are_more: bool) -> String {
    let more = if are_more { "more " } else { "" };
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {more}{of}{plural}")
}

fn mbit(bps: f64) -> String {
    format!("{:.2} Mbit/s", bps * 1e-6)
}

fn ms(seconds: f64) -> String {
    format!("{:.0} ms", seconds * 1e3)
}

/// Rate in bit/s of `bytes` over a time in microseconds.
fn bits(bytes: u64, over_us: i64) -> f64 {
    if over_us > 0 { bytes as f64 * 8e6 / over_us as f64 } else { f64::NAN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lasting_state_is_reported_at_start_and_every_5_s() {
        let mut counts = EventCounts::default();
        let mut reported = Vec::new();
        for now in (0..12_000_000).step_by(100_000) {
            reported.extend(counts.count("late", now, 1).map(|(n, goes_on)| (now, n, goes_on)));
        }
        assert_eq!(reported, [(0, 1, false), (5_000_000, 50, true), (10_000_000, 50, true)]);
        assert_eq!(counts.count("late", 13_000_000, 0), None);
        // The events had stopped: earlier ones are not included.
        assert_eq!(counts.count("late", 14_000_000, 2), Some((2, false)));
    }
}
