//! A network while it is drawn.

use crate::networks::item::{BenchNetwork, BenchPart, PACKET};
use narrows_base::{Duration, RandomStream, Rate, math};
use narrows_link::LinkChange;
use narrows_scenario::values;
use narrows_sim::SourceSpec;
use std::fmt::Write as _;

/// Ranges; numbers are drawn evenly in the logarithm.
pub const RATE_BPS: (f64, f64) = (0.1e6, 1e9);
pub const DELAY_S: (f64, f64) = (1e-3, 0.3);
const LOSS: (f64, f64) = (1e-4, 0.1);
/// Packets, or their transmission time at the link's rate.
const BURST: (f64, f64) = (1.0, 32.0);
/// Of the base RTT.
const JITTER_RTT: (f64, f64) = (0.01, 1.0);
const REORDERED: (f64, f64) = (0.001, 0.3);
const REORDER_RTT: (f64, f64) = (0.02, 0.5);
const RETURN: (f64, f64) = (0.01, 1.0);
const MOST_QUEUE_BDP: f64 = 4.0;
/// Networks with a larger BDP are drawn again: they need the most events and add little to the results.
pub const MOST_BDP_PACKETS: f64 = 20_000.0;
/// Length of a run in round trips, bounded by the next two constants.
pub const ROUND_TRIPS: f64 = 150.0;
/// Bounds of a run's length in seconds.
const SECONDS: (f64, f64) = (10.0, 60.0);
/// Bound of a run's length in packets at the highest rate. It applies only above [`LEAST_ROUND_TRIPS`].
const MOST_PACKETS: f64 = 800_000.0;
const LEAST_ROUND_TRIPS: f64 = 40.0;
/// Cellular links have no more.
const MOST_CELLULAR_BPS: f64 = 100e6;

/// Names of the sizes of transfers, and their bytes.
pub const SIZES: [(&str, f64); 4] =
    [("10 kB", 1e4), ("100 kB", 1e5), ("1 MB", 1e6), ("10 MB", 1e7)];

pub fn log_uniform(random: &mut RandomStream, (low, high): (f64, f64)) -> f64 {
    low * math::pow(high / low, random.unit())
}

pub fn pick<T: Copy>(random: &mut RandomStream, list: &[T]) -> T {
    list[(random.unit() * list.len() as f64) as usize]
}

pub fn rate(bps: f64) -> String {
    values::rate_text(Rate::from_bps_f64(bps.round()))
}

pub fn time(seconds: f64) -> String {
    values::time_text(Duration::from_micros((seconds * 1e6).round().max(1.0) as u64))
}

fn size_classes(rate_bps: f64, delay_s: f64) -> Vec<&'static str> {
    let bdp = rate_bps * 2.0 * delay_s / (8.0 * f64::from(PACKET));
    let classes = [
        (rate_bps < 1e6, "rate < 1 Mbit/s"),
        (rate_bps >= 100e6, "rate ≥ 100 Mbit/s"),
        (delay_s < 5e-3, "RTT < 10 ms"),
        (delay_s >= 0.1, "RTT ≥ 200 ms"),
        (bdp >= 1_000.0, "BDP ≥ 1000 packets"),
    ];
    classes.iter().filter(|c| c.0).map(|c| c.1).collect()
}

/// A network while it is drawn.
pub struct Draft {
    pub rate_bps: f64,
    pub delay_s: f64,
    pub text: String,
    pub classes: Vec<&'static str>,
    pub changes: Vec<(Duration, LinkChange)>,
    /// Share of the packets that loss processes leave, times the share that a policer passes.
    pub passes: f64,
    pub peak_bps: f64,
    pub duration_s: f64,
}

impl Draft {
    pub fn new(
        random: &mut RandomStream,
        rates: (f64, f64),
        delays: (f64, f64),
        most_bdp: f64,
    ) -> Draft {
        loop {
            let rate_bps = log_uniform(random, rates);
            let delay_s = log_uniform(random, delays);
            if rate_bps * 2.0 * delay_s <= most_bdp * 8.0 * f64::from(PACKET) {
                return Draft::of(rate_bps, delay_s);
            }
        }
    }

    pub fn of(rate_bps: f64, delay_s: f64) -> Draft {
        Draft {
            rate_bps,
            delay_s,
            text: format!("{},{}", rate(rate_bps), time(delay_s)),
            classes: size_classes(rate_bps, delay_s),
            changes: Vec::new(),
            passes: 1.0,
            peak_bps: rate_bps,
            duration_s: 0.0,
        }
    }

    pub fn rtt_s(&self) -> f64 {
        2.0 * self.delay_s
    }
    pub fn packet_s(&self) -> f64 {
        8.0 * f64::from(PACKET) / self.rate_bps
    }

    pub fn last(&mut self, longer: f64) {
        let rtt = self.rtt_s() + 3.0 * self.packet_s();
        let wanted = (longer * ROUND_TRIPS * rtt).clamp(longer * SECONDS.0, longer * SECONDS.1);
        let most = MOST_PACKETS * 8.0 * f64::from(PACKET) / self.peak_bps;
        self.duration_s = wanted.min(most.max(LEAST_ROUND_TRIPS * rtt)).max(1.0);
    }

    /// The queue's size and discipline.
    pub fn queue(&mut self, random: &mut RandomStream) {
        let bdp = self.rtt_s() / self.packet_s();
        let managed = random.chance(0.4);
        // A managed queue that is too small to be managed is a drop-tail queue.
        let least = if managed { (0.5 * bdp).max(20.0) } else { 1.0 };
        let packets = log_uniform(random, (least, (MOST_QUEUE_BDP * bdp).max(2.0 * least))).round();
        let _ = write!(self.text, ",queue={packets}p");
        if managed {
            let aqm = pick(random, &["codel", "fq-codel", "pie", "red", "dualpi2"]);
            let _ = write!(self.text, ",aqm={aqm}");
            if aqm == "red" {
                let least = (packets / 8.0).max(3.0);
                let _ = write!(self.text, "(min={},max={})", least.round(), (3.0 * least).round());
            }
            self.classes.push("managed queue");
            self.classes.push(aqm);
        } else {
            self.classes.push(match packets / bdp {
                x if x < 0.25 || packets < 4.0 => "queue < 1/4 BDP",
                x if x < 1.0 => "queue 1/4 to 1 BDP",
                _ => "queue 1 to 4 BDP",
            });
        }
    }

    pub fn losses(&mut self, random: &mut RandomStream) {
        let kind = random.unit();
        let (p, burst) = (log_uniform(random, LOSS), log_uniform(random, BURST));
        let text = match kind {
            x if x < 0.3 => {
                self.classes.push("no loss");
                return;
            }
            x if x < 0.5 => {
                self.classes.push("single losses");
                format!("{:.3}%", 100.0 * p)
            }
            x if x < 0.75 => {
                self.classes.push("bursts in packets");
                format!("ge(g={:.7},h={:.5})", p / burst / (1.0 - p), 1.0 / burst)
            }
            _ => {
                self.classes.push("bursts in time");
                let bad = burst * self.packet_s();
                format!("fade(bad={},good={})", time(bad), time(bad * (1.0 - p) / p))
            }
        };
        if p >= 0.01 {
            self.classes.push("loss ≥ 1%");
        }
        if kind >= 0.5 && burst >= 6.0 {
            self.classes.push("bursts ≥ 6");
        }
        self.passes *= 1.0 - p;
        let _ = write!(self.text, ",loss={text}");
    }

    pub fn delays(&mut self, random: &mut RandomStream) {
        let rtt = self.rtt_s();
        if random.chance(0.3) {
            let jitter = log_uniform(random, JITTER_RTT);
            let _ = write!(self.text, ",jitter={}", time(jitter * rtt));
            self.classes.push(if jitter > 0.1 { "jitter > RTT/10" } else { "jitter ≤ RTT/10" });
        }
        if random.chance(0.15) {
            let (p, by) = (log_uniform(random, REORDERED), log_uniform(random, REORDER_RTT));
            let _ = write!(self.text, ",reorder={:.2}%/{}", 100.0 * p, time(by * rtt));
            self.classes.push("reordering");
        }
        if random.chance(0.25) {
            let back = self.rate_bps * log_uniform(random, RETURN);
            let _ = write!(self.text, ",reverse-rate={}", rate(back));
            self.classes.push("return path < rate");
        }
    }

    /// Draws changes of the rate; afterwards the length of the run is known.
    pub fn rates(&mut self, random: &mut RandomStream) {
        let kind = random.unit();
        let (low, high) = (RATE_BPS.0 / 2.0, RATE_BPS.1);
        let rate_bps = self.rate_bps;
        let within = |factor: f64| Rate::from_bps_f64((rate_bps * factor).clamp(low, high));
        let change = |at: f64, rate: Rate| (Duration::from_secs_f64(at), LinkChange::Rate(rate));
        match kind {
            x if x < 0.1 => {
                let factor = log_uniform(random, (0.1, 10.0));
                self.peak_bps *= factor.max(1.0);
                self.last(1.0);
                self.changes.push(change(self.duration_s / 3.0, within(factor)));
                self.classes.push("rate steps");
            }
            x if x < 0.2 => {
                self.peak_bps *= 2.0;
                self.last(1.0);
                let every = log_uniform(random, (0.2, 5.0)).max(4.0 * self.packet_s());
                let mut factor = 1.0f64;
                for i in 1..(self.duration_s / every) as usize {
                    factor = (factor * log_uniform(random, (0.6, 1.67))).clamp(0.2, 4.0);
                    self.changes.push(change(i as f64 * every, within(factor)));
                }
                self.classes.push("rate walks");
            }
            x if x < 0.27 => {
                self.last(1.0);
                let every = log_uniform(random, (0.1, 3.0)).max(4.0 * self.packet_s());
                let factor = log_uniform(random, (0.1, 0.6));
                for i in 1..(self.duration_s / every) as usize {
                    let factor = if i % 2 == 1 { factor } else { 1.0 };
                    self.changes.push(change(i as f64 * every, within(factor)));
                }
                self.classes.push("two rates in turn");
            }
            x if x < 0.34 => {
                let share = random.uniform(0.3, 0.9);
                let bucket = log_uniform(random, (4.0, 100.0)) * f64::from(PACKET);
                let _ = write!(self.text, ",policer={}/{bucket:.0}B", rate(rate_bps * share));
                self.passes *= share;
                self.last(1.0);
                self.classes.push("policer");
            }
            x if x < 0.41 => {
                self.last(1.0);
                let length = log_uniform(random, (0.1, 2.0)).min(self.duration_s / 8.0);
                let every = random.uniform(0.2, 0.6) * self.duration_s;
                let outage = format!(
                    "outage(at={},for={},every={})",
                    time(every),
                    time(length),
                    time(every)
                );
                self.text = match self.text.split_once(",loss=") {
                    Some((before, rest)) => format!("{before},loss={outage}+{rest}"),
                    None => format!("{},loss={outage}", self.text),
                };
                let outages = (self.duration_s / every).ceil() - 1.0;
                self.passes *= 1.0 - outages * length / self.duration_s;
                self.classes.push("outages");
            }
            x if x < 0.55 && rate_bps <= MOST_CELLULAR_BPS => {
                self.peak_bps *= 2.0;
                self.last(1.0);
                let seed = (1e6 * random.unit()) as u32;
                let _ = write!(self.text, ",trace=cellular(mean={},seed={seed})", rate(rate_bps));
                self.classes.push("cellular model");
            }
            _ => {
                self.last(1.0);
                self.classes.push("constant rate");
            }
        }
    }

    pub fn item(self, part: BenchPart, number: usize) -> BenchNetwork {
        let mut item =
            BenchNetwork::new(part, &format!("{number:03}"), &self.text, self.duration_s);
        item.classes = self.classes;
        item.changes = self.changes;
        item.passes = self.passes;
        item
    }

    /// A transfer of each size that takes at most half a minute at the network's rate.
    pub fn transfers(&self, part: BenchPart, number: usize) -> Vec<BenchNetwork> {
        let mut items = Vec::new();
        for (name, bytes) in SIZES {
            let ideal_s = 8.0 * bytes / self.rate_bps;
            if ideal_s > 30.0 {
                continue;
            }
            let most = (20.0 * ideal_s + 200.0 * self.rtt_s() + 20.0).min(300.0);
            let mut item =
                BenchNetwork::new(part, &format!("{number:03} {name}"), &self.text, most);
            item.classes = self.classes.clone();
            item.classes.push(name);
            item.question.source = transfer(bytes);
            item.changes = self.changes.clone();
            item.seeds = 3;
            item.seed = 1 + 10 * number as u64;
            items.push(item);
        }
        items
    }
}

fn transfer(bytes: f64) -> SourceSpec {
    let spec = narrows_base::Spec::parse(&format!("transfer(size={bytes}B)"));
    spec.and_then(|spec| SourceSpec::read(&spec)).unwrap_or_else(|_| SourceSpec::bulk())
}
