//! The traffic of a relay's two links, over time and in total.

use super::rows::{MergeRule, Rows};
use super::single_run::estimates;
use narrows_lab::outcome::{Estimate, ProtocolOutcome};
use narrows_net::relay::{DirectionStats, RelaySnapshot};

/// The directions as the report names them.
const WAYS: [&str; 2] = ["there", "back"];

/// Both links of a relay.
#[derive(Debug)]
pub struct RelayLinks {
    start: f64,
    end: f64,
    rows: [Rows; 2],
    /// At the last row.
    recorded: [DirectionStats; 2],
    /// Counts of each direction at the last sample.
    last: [DirectionStats; 2],
    /// Most that waited: since the last row, and ever.
    max: [(usize, usize); 2],
    late: (f64, f64),
}

fn ways(look: &RelaySnapshot) -> [DirectionStats; 2] {
    [look.stats.forward, look.stats.reverse]
}

impl RelayLinks {
    /// From this time on, s.
    pub fn new(start: f64) -> RelayLinks {
        RelayLinks {
            start,
            end: start,
            rows: [Rows::new(start), Rows::new(start)],
            recorded: Default::default(),
            last: Default::default(),
            max: Default::default(),
            late: (0.0, 0.0),
        }
    }

    /// Adds a sample at time `at`, s. The `last` sample always makes a row of its own.
    pub fn add(&mut self, at: f64, look: &RelaySnapshot, last: bool) {
        self.end = self.end.max(at);
        self.last = ways(look);
        self.late = (look.stats.lateness.mean_s, look.stats.lateness.p99_s);
        for (n, rows) in self.rows.iter_mut().enumerate() {
            let (Some(now), Some(recorded)) = (self.last.get(n), self.recorded.get_mut(n)) else {
                continue;
            };
            let (Some(max), Some(waiting)) = (self.max.get_mut(n), look.waiting.get(n)) else {
                continue;
            };
            let seen = look.max.get(n).copied().unwrap_or(0);
            *max = (max.0.max(seen), max.1.max(seen));
            let Some(length) = rows.due(at, last) else { continue };
            let before = std::mem::replace(recorded, *now);
            let bits = |of: fn(&DirectionStats) -> u64| {
                of(now).saturating_sub(of(&before)) as f64 * 8.0 / length
            };
            let count = |of: fn(&DirectionStats) -> u64| of(now).saturating_sub(of(&before)) as f64;
            let queue_max = std::mem::take(&mut max.0) as f64;
            rows.add(
                at,
                [
                    ("queue", MergeRule::Mean, *waiting as f64),
                    ("queue_max", MergeRule::Most, queue_max),
                    ("offered_bps", MergeRule::Rate, bits(|w| w.offered_bytes)),
                    ("delivered_bps", MergeRule::Rate, bits(|w| w.delivered_bytes)),
                    ("drops", MergeRule::Count, count(|w| w.dropped)),
                    ("losses", MergeRule::Count, count(|w| w.lost)),
                    ("marks", MergeRule::Count, count(|w| w.marked)),
                ],
            );
        }
    }

    /// How late the relay was, in a line.
    pub fn note(&self) -> String {
        format!(
            "the emulator itself was late by {:.3} ms on average, {:.3} ms for one packet in a hundred",
            self.late.0 * 1e3,
            self.late.1 * 1e3
        )
    }

    /// Seconds from the beginning to the last sample.
    pub fn seconds(&self) -> f64 {
        self.end
    }

    /// One result for each direction.
    pub fn outcomes(self, links: &[String]) -> Vec<ProtocolOutcome> {
        let start = self.start;
        let end = self.end;
        let ways = WAYS.into_iter().zip(self.rows).zip(self.last).zip(self.max).enumerate();
        ways.map(|(n, (((name, rows), stats), max))| ProtocolOutcome {
            protocol: name.to_string(),
            group: "main".into(),
            digest: 0,
            flows: 1,
            seeds: 1,
            rivals: 0,
            one_trajectory: false,
            by_seed: Vec::new(),
            status: links.get(n).cloned().unwrap_or_default(),
            measures: measures(&stats, max.1, end - start),
            per_flow: Vec::new(),
            series: vec![rows.table("link", name, "", end)],
        })
        .collect()
    }
}

/// The measures of a link that exist without its flows, in the list's order.
fn measures(s: &DirectionStats, max: usize, span: f64) -> Vec<(&'static str, Estimate)> {
    let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { f64::NAN };
    let offered = s.offered_packets as f64;
    let of = |name: &str| match name {
        "throughput_bps" => ratio(s.served_bytes as f64 * 8.0, span),
        "loss_rate" => ratio((s.dropped + s.lost) as f64, offered),
        "queue_loss_rate" => ratio(s.dropped as f64, offered),
        "random_loss_rate" => ratio(s.lost as f64, offered),
        // Little: time waited by all, over time.
        "queue_packets_mean" => ratio(s.waited_s, span),
        "queue_packets_max" => max as f64,
        "mark_rate" => ratio(s.marked as f64, offered),
        _ => f64::NAN,
    };
    estimates(of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::Time;
    use narrows_net::relay::RelayStats;

    #[test]
    fn a_long_recording_loses_no_bytes_and_no_peak() {
        let mut links = RelayLinks::new(5.0);
        let mut stats = RelayStats::default();
        for i in 1..=100_000u64 {
            stats.forward.offered_bytes = i * 1000;
            stats.forward.delivered_bytes = i * 900;
            stats.forward.offered_packets = i;
            stats.forward.lost = i / 10;
            let max = if i == 54_321 { [77, 0] } else { [1, 0] };
            let look = RelaySnapshot { at: Time::ZERO, stats, waiting: [1, 0], max };
            links.add(5.0 + i as f64 * 0.01, &look, i == 100_000);
        }
        let results = links.outcomes(&["there".into(), "back".into()]);
        assert_eq!(results[0].measure("loss_rate").unwrap().mean, 0.1);
        assert_eq!(results[0].measure("queue_packets_max").unwrap().mean, 77.0);
        assert!(results[1].measure("loss_rate").is_none(), "nothing went back");
        let table = &results[0].series[0];
        for (column, _) in &table.columns {
            assert!(
                narrows_report::variables::listed(column).is_some(),
                "{column} has no meaning in the list"
            );
        }
        let column = |name: &str| table.column(name).unwrap();
        assert!(table.time_s.len() < 4096);
        assert_eq!(column("losses").iter().sum::<f64>(), 10_000.0);
        assert_eq!(column("queue_max").iter().copied().fold(0.0, f64::max), 77.0);
        for (name, bytes) in [("offered_bps", 1e8), ("delivered_bps", 9e7)] {
            let mut sum = 0.0;
            let mut before = 5.0;
            for (at, rate) in table.time_s.iter().zip(column(name)) {
                sum += rate * (at - before) / 8.0;
                before = *at;
            }
            assert!((sum - bytes).abs() < 1.0, "{name}: {sum}");
        }
    }
}
