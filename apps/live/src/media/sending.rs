//! The sender: the encoder's rate beside the controller's limit, the queue, and why packets were dropped.

use super::{Columns, EventCounts, MediaTrack, mbit, ms, number, tell};
use crate::feed::history::Merge;
use crate::feed::{EventMark, LiveRun};
use narrows_net::Clock;
use std::collections::VecDeque;
use std::sync::Arc;

/// A rate below this part of its highest of the last second is an event.
const FALL: f64 = 0.8;
const FALL_US: i64 = 1_000_000;
/// Most rates that are kept for that.
const MAX_RECENT: usize = 64;
/// If the oldest packet has waited for this part of its time limit, the encoder's rate is reduced.
const QUEUE: f64 = 0.25;

const WHY_MORE: &str = "The media's share of the rate has sufficed for one more layer for a second; or no packet has waited for long, and one more layer is tried.";

const COLUMNS: Columns<'static> = &[
    ("told_bps", "bit/s", "target rate of the encoder", Merge::Last),
    ("source_bps", "bit/s", "what the encoder sends", Merge::Mean),
    ("waiting_s", "s", "wait of the oldest packet", Merge::Max),
    ("longest_wait_s", "s", "longest wait before a packet is dropped", Merge::Last),
    ("dropped", "packets", "packets dropped before their deadline", Merge::Sum),
    ("repeated", "packets", "packets sent again", Merge::Sum),
    (
        "late",
        "packets",
        "packets that missed their deadline, as reported by the receiver",
        Merge::Sum,
    ),
    ("layers", "", "layers that are sent", Merge::Last),
];

/// Statistics of a sender. Counters start with the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SendingStatistics {
    /// Whether there is a connection; without one no sample is shown.
    pub connected: bool,
    /// Target rate of the encoder, bit/s.
    pub told_bps: f64,
    /// Actual rate of the encoder, bit/s.
    pub source_bps: f64,
    /// Rate that the controller permits, headers included, bit/s; zero if unknown.
    pub permitted_bps: f64,
    /// Wait of the oldest packet in the queue, s.
    pub waiting_s: f64,
    /// Time limit of the wait, s.
    pub longest_wait_s: f64,
    /// Packets dropped because the pacing rate was too low.
    pub dropped_by_rate: u64,
    /// Packets dropped because the window was too small.
    pub dropped_by_window: u64,
    /// Packets dropped because no packet arrived from the receiver.
    pub dropped_by_silence: u64,
    /// Packets dropped because this process was suspended.
    pub dropped_by_suspension: u64,
    /// Repeated packets.
    pub repeated: u64,
    /// Packets that missed their deadline, as reported by the receiver.
    pub late: u64,
    /// Layers that are sent.
    pub layers: usize,
}

impl SendingStatistics {
    fn dropped(&self) -> u64 {
        self.dropped_by_rate
            + self.dropped_by_window
            + self.dropped_by_silence
            + self.dropped_by_suspension
    }
}

/// Shows a sender.
#[derive(Debug)]
pub struct SendingLive {
    shown: MediaTrack<SendingHistory>,
}

#[derive(Debug, Default)]
struct SendingHistory {
    before: Option<SendingStatistics>,
    /// The sample at the last report of dropped packets.
    reported: SendingStatistics,
    /// Target rates of the last second.
    rates: VecDeque<(i64, f64)>,
    counts: EventCounts,
}

impl SendingLive {
    /// Shown in this run, with this clock.
    pub fn new(run: Arc<LiveRun>, clock: Clock) -> SendingLive {
        SendingLive { shown: MediaTrack::new(run, clock, COLUMNS) }
    }

    /// Adds a sample.
    pub fn show(&self, now: &SendingStatistics) {
        self.show_at(self.shown.now_us(), now);
    }

    fn show_at(&self, now_us: i64, now: &SendingStatistics) {
        if !now.connected {
            let mut known = self.shown.memory();
            known.before = None;
            known.reported = SendingStatistics::default();
            known.rates.clear();
            return;
        }
        self.shown.update(now_us, |known, update, track| {
            // Counters restart with each connection.
            let before = known.before.replace(*now).unwrap_or_default();
            let since = |of: fn(&SendingStatistics) -> u64| of(now).saturating_sub(of(&before));
            let row = [
                now.told_bps,
                now.source_bps,
                now.waiting_s,
                now.longest_wait_s,
                since(SendingStatistics::dropped) as f64,
                since(|s| s.repeated) as f64,
                since(|s| s.late) as f64,
                now.layers as f64,
            ];
            update.row(track, &row.map(|x| x as f32));
            while known.rates.len() >= MAX_RECENT
                || known.rates.front().is_some_and(|(at, _)| *at < now_us - FALL_US)
            {
                known.rates.pop_front();
            }
            let highest = known.rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
            let falls = u64::from(now.told_bps < FALL * highest);
            if known.counts.count("slower", now_us, falls).is_some() {
                let title = format!("encoder's rate {:.2} → {}", highest * 1e-6, mbit(now.told_bps));
                tell(update, track, EventMark::Slower, title, why_slower(now));
            }
            known.rates.push_back((now_us, now.told_bps));
            if let Some((n, more)) = known.counts.count("dropped", now_us, since(SendingStatistics::dropped)) {
                let title = format!("{} dropped before their deadline", number(n, "packet", more));
                let why = why_dropped(if more { &known.reported } else { &before }, now);
                tell(update, track, EventMark::Frames, title, why);
                known.reported = *now;
            }
            if let Some((n, more)) = known.counts.count("late", now_us, since(|s| s.late)) {
                let title = format!("{} late at the receiver", number(n, "packet", more));
                let why = vec![
                    "The receiver reports them once a second; its own page (media receive --live) shows the frames."
                        .into(),
                    format!("Since the beginning {} were dropped here.", now.dropped()),
                ];
                tell(update, track, EventMark::Frames, title, why);
            }
            if before.layers > 0 && now.layers != before.layers {
                let title = format!("layers {} → {}", before.layers, now.layers);
                let why = match now.layers > before.layers {
                    true => vec![WHY_MORE.into()],
                    false => why_slower(now),
                };
                tell(update, track, EventMark::Layers, title, why);
            }
        });
    }
}

/// The inputs that determine the encoder's rate, and layers.
fn why_slower(now: &SendingStatistics) -> Vec<String> {
    let mut why = Vec::new();
    let waits = format!(
        "The oldest packet has waited {} here, of at most {}.",
        ms(now.waiting_s),
        ms(now.longest_wait_s)
    );
    let is_queue = now.waiting_s > QUEUE * now.longest_wait_s;
    if is_queue {
        why.push(format!("{waits} So the encoder's rate is reduced."));
    }
    if now.permitted_bps > 0.0 {
        why.push(format!(
            "The controller permits {}; media get that less headers, repeats and a reserve.",
            mbit(now.permitted_bps)
        ));
    }
    if !is_queue {
        why.push(waits);
    }
    why.push(format!("The encoder sends {}.", mbit(now.source_bps)));
    why
}

/// Explains why packets were dropped since `reported`: the main cause first, then the rates.
fn why_dropped(reported: &SendingStatistics, now: &SendingStatistics) -> Vec<String> {
    let since = |of: fn(&SendingStatistics) -> u64| of(now).saturating_sub(of(reported));
    let causes = [
        (since(|s| s.dropped_by_rate), "the controller's pacing rate is lower than the media's"),
        (
            since(|s| s.dropped_by_window),
            "as much was in flight as the controller's window permits",
        ),
        (
            since(|s| s.dropped_by_silence),
            "nothing came from the other end for longer than a round trip",
        ),
        (since(|s| s.dropped_by_suspension), "this end did not run for a moment"),
    ];
    let mut why: Vec<(u64, String)> = causes
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, cause)| {
            (n, format!("{} had waited too long because {cause}.", number(n, "packet", false)))
        })
        .collect();
    why.sort_by_key(|(n, _)| std::cmp::Reverse(*n));
    let mut why: Vec<String> = why.into_iter().map(|(_, line)| line).collect();
    why.push(format!(
        "The encoder sends {} where {} are told to it.",
        mbit(now.source_bps),
        mbit(now.told_bps)
    ));
    why
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::{Feed, RunDescription};

    fn shown(all: impl IntoIterator<Item = SendingStatistics>) -> Vec<(EventMark, String, String)> {
        let about =
            RunDescription { name: "m".into(), detail: String::new(), real: true, end_s: None };
        let run = Feed::new("test").begin(about).unwrap();
        let live = SendingLive::new(run.clone(), Clock::new());
        for (n, now) in all.into_iter().enumerate() {
            live.show_at(50_000 * n as i64, &now);
        }
        let state = run.read();
        state.events().map(|e| (e.mark, e.title.clone(), e.why.join(" "))).collect()
    }
    fn sending() -> SendingStatistics {
        let told_bps = 4e6;
        let source_bps = 3.9e6;
        let permitted_bps = 5e6;
        let connected = true;
        let longest_wait_s = 0.2;
        let layers = 3;
        SendingStatistics {
            connected,
            told_bps,
            source_bps,
            permitted_bps,
            longest_wait_s,
            layers,
            ..SendingStatistics::default()
        }
    }

    #[test]
    fn only_a_fall_of_the_rate_is_explained() {
        let mut told_bps = 4e6;
        let creeping = (0..200).map(|_| {
            told_bps *= 0.995;
            SendingStatistics { told_bps, ..sending() }
        });
        assert!(shown(creeping).is_empty());
        let falls = [sending(), SendingStatistics { told_bps: 2e6, waiting_s: 0.12, ..sending() }];
        let events = shown(falls);
        assert_eq!(
            (events[0].0, events[0].1.as_str()),
            (EventMark::Slower, "encoder's rate 4.00 → 2.00 Mbit/s")
        );
        assert!(
            events[0].2.starts_with("The oldest packet has waited 120 ms here, of at most 200 ms"),
            "{events:?}"
        );
    }

    #[test]
    fn drops_are_told_with_their_main_cause_first() {
        let after =
            SendingStatistics { dropped_by_rate: 1, dropped_by_silence: 5, layers: 2, ..sending() };
        let lost = SendingStatistics::default();
        // A new connection counts from zero.
        let events = shown([sending(), after, lost, sending(), sending()]);
        let titles: Vec<_> = events.iter().map(|e| e.1.as_str()).collect();
        assert_eq!(titles, ["6 packets dropped before their deadline", "layers 3 → 2"]);
        assert!(
            events[0].2.starts_with("5 packets had waited too long because nothing came"),
            "{events:?}"
        );
        assert!(
            events[0].2.contains("1 packet had waited too long because the controller's pacing")
        );
    }
}
