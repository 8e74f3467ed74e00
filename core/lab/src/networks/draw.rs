//! The distributions from which networks are drawn; `docs/benchmarks.md` describes them. `access` is the second one.

mod access;
mod routes;

pub use access::networks_in_turn as access_in_turn;

use super::item::{BenchNetwork, BenchPart, Neighbours, PACKET};
use narrows_base::{Duration, RandomKey, RandomStream, Rate, SpecError, math};
use narrows_link::LinkChange;
use narrows_scenario::values;
use narrows_sim::SourceSpec;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

/// Ranges; numbers are drawn evenly in the logarithm.
const RATE_BPS: (f64, f64) = (0.1e6, 1e9);
const DELAY_S: (f64, f64) = (1e-3, 0.3);
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
const MOST_BDP_PACKETS: f64 = 20_000.0;
/// Length of a run in round trips, bounded by the next two constants.
const ROUND_TRIPS: f64 = 150.0;
/// Bounds of a run's length in seconds.
const SECONDS: (f64, f64) = (10.0, 60.0);
/// Bound of a run's length in packets at the highest rate. It applies only above [`LEAST_ROUND_TRIPS`].
const MOST_PACKETS: f64 = 800_000.0;
const LEAST_ROUND_TRIPS: f64 = 40.0;
/// Cellular links have no more.
const MOST_CELLULAR_BPS: f64 = 100e6;
/// Factor on the length for mixes, which need longer to settle.
const MIXES_LONGER: f64 = 3.0;
/// Ranges of bottlenecks for pairs: each is simulated with every two protocols.
const PAIRS_BPS: (f64, f64) = (2e6, 40e6);
const PAIRS_DELAY_S: (f64, f64) = (5e-3, 0.1);
const PAIRS_BDP_PACKETS: f64 = 500.0;
const PAIRS_SECONDS: (f64, f64) = (15.0, 30.0);
/// Numbers of networks are below this.
const MOST_NUMBER: usize = 1_000_000;
const FORM: &str =
    "PART/SEED/NUMBER as in networks/1/17, mixes/1/42, 'transfers/1/3 10 kB' or 'pairs/1/0 bbr'";
/// In the name of a pair: no flow beside.
pub const ALONE: &str = "alone";

/// Names of the sizes of transfers, and their bytes.
pub(super) const SIZES: [(&str, f64); 4] =
    [("10 kB", 1e4), ("100 kB", 1e5), ("1 MB", 1e6), ("10 MB", 1e7)];

fn log_uniform(random: &mut RandomStream, (low, high): (f64, f64)) -> f64 {
    low * math::pow(high / low, random.unit())
}

fn pick<T: Copy>(random: &mut RandomStream, list: &[T]) -> T {
    list[(random.unit() * list.len() as f64) as usize]
}

fn rate(bps: f64) -> String {
    values::rate_text(Rate::from_bps_f64(bps.round()))
}

fn time(seconds: f64) -> String {
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
struct Draft {
    rate_bps: f64,
    delay_s: f64,
    text: String,
    classes: Vec<&'static str>,
    changes: Vec<(Duration, LinkChange)>,
    /// Share of the packets that loss processes leave, times the share that a policer passes.
    passes: f64,
    peak_bps: f64,
    duration_s: f64,
}

impl Draft {
    fn new(
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

    fn of(rate_bps: f64, delay_s: f64) -> Draft {
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

    fn rtt_s(&self) -> f64 {
        2.0 * self.delay_s
    }
    fn packet_s(&self) -> f64 {
        8.0 * f64::from(PACKET) / self.rate_bps
    }

    fn last(&mut self, longer: f64) {
        let rtt = self.rtt_s() + 3.0 * self.packet_s();
        let wanted = (longer * ROUND_TRIPS * rtt).clamp(longer * SECONDS.0, longer * SECONDS.1);
        let most = MOST_PACKETS * 8.0 * f64::from(PACKET) / self.peak_bps;
        self.duration_s = wanted.min(most.max(LEAST_ROUND_TRIPS * rtt)).max(1.0);
    }

    /// The queue's size and discipline.
    fn queue(&mut self, random: &mut RandomStream) {
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

    fn losses(&mut self, random: &mut RandomStream) {
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

    fn delays(&mut self, random: &mut RandomStream) {
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
    fn rates(&mut self, random: &mut RandomStream) {
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

    fn item(self, part: BenchPart, number: usize) -> BenchNetwork {
        let mut item =
            BenchNetwork::new(part, &format!("{number:03}"), &self.text, self.duration_s);
        item.classes = self.classes;
        item.changes = self.changes;
        item.passes = self.passes;
        item
    }
}

/// The network of a name such as `mixes/1/042`: part, seed of the draws, name within the part.
///
/// # Errors
/// A name of another form, or of a network that does not exist.
pub fn find(text: &str) -> Result<BenchNetwork, SpecError> {
    let fields: Vec<&str> = text.splitn(3, '/').collect();
    let found = match fields[..] {
        [part, seed, name] => by_name(part, seed, name),
        _ => None,
    };
    found.ok_or_else(|| SpecError::new(format!("there is no network '{text}': {FORM}")))
}

fn by_name(part: &str, seed: &str, name: &str) -> Option<BenchNetwork> {
    let part = BenchPart::ALL.into_iter().find(|p| p.name() == part)?;
    let seed = seed.parse().ok()?;
    let number = name.split(' ').next()?;
    let of_name = &name[number.len()..];
    let number = number.parse().ok().filter(|n| *n < MOST_NUMBER)?;
    if part == BenchPart::Pairs {
        return Some(pair(seed, number, Some(of_name.strip_prefix(' ')?)));
    }
    let name = format!("{number:03}{of_name}");
    numbered(part, seed, number..number + 1).into_iter().find(|n| n.name == name)
}

/// Networks of a part by their numbers; none of a part that is not drawn by number.
pub fn numbered(part: BenchPart, seed: u64, numbers: Range<usize>) -> Vec<BenchNetwork> {
    match part {
        BenchPart::Networks => networks(seed, numbers),
        BenchPart::Access => access::networks(seed, numbers),
        BenchPart::Routes => routes::networks(seed, numbers),
        BenchPart::Mixes => mixes(seed, numbers),
        BenchPart::Transfers => transfers(seed, numbers),
        BenchPart::AccessTransfers => access::transfers(seed, numbers),
        BenchPart::Pairs | BenchPart::Traces | BenchPart::Named => Vec::new(),
    }
}

/// Networks with one flow of the protocol under test, some with web traffic beside it.
pub fn networks(seed: u64, numbers: Range<usize>) -> Vec<BenchNetwork> {
    let key = RandomKey::from_seed(seed).named("networks");
    let of = |i: usize| network(&mut key.numbered(i as u64).stream(), BenchPart::Networks, i);
    numbers.map(of).collect()
}

fn network(random: &mut RandomStream, part: BenchPart, number: usize) -> BenchNetwork {
    let mut draft = Draft::new(random, RATE_BPS, DELAY_S, MOST_BDP_PACKETS);
    draft.queue(random);
    draft.losses(random);
    draft.delays(random);
    draft.rates(random);
    let (rate_bps, web) = (draft.rate_bps, random.chance(0.1).then(|| random.uniform(0.05, 0.3)));
    let mut item = draft.item(part, number);
    item.seed = random.bits() >> 16;
    if let Some(share) = web {
        // Transfers of 30 kB in the mean, by CUBIC. Their share is subtracted from the flow's capacity.
        item.web = Some(rate_bps * share / (8.0 * 30e3));
        item.classes.push("web beside");
    }
    item
}

/// Mixes: flows of the protocol under test beside flows of another or of the same.
pub fn mixes(seed: u64, numbers: Range<usize>) -> Vec<BenchNetwork> {
    let key = RandomKey::from_seed(seed).named("mixes");
    let mix = |i: usize| {
        let random = &mut key.numbered(i as u64).stream();
        let flows = |random: &mut RandomStream| log_uniform(random, (1.0, 9.0)) as usize;
        let (own, others) = (flows(random), flows(random));
        // At least a few packets for each flow.
        let least = 0.25e6 * (own + others) as f64;
        let mut draft = Draft::new(random, (least.max(1e6), 200e6), (2e-3, 0.15), 3_000.0);
        draft.queue(random);
        if random.chance(0.25) {
            draft.losses(random);
        }
        draft.last(MIXES_LONGER);
        let other = ["cubic", "reno", "bbr", "bbr3", "itself"][i % 5];
        draft.classes.push(match other {
            "itself" => "beside itself",
            "cubic" => "beside cubic",
            "reno" => "beside reno",
            "bbr" => "beside bbr",
            _ => "beside bbr3",
        });
        let mut late = |class| {
            let late = random.chance(0.2);
            if late {
                draft.classes.push(class);
            }
            if late { random.uniform(0.05, 0.25) * draft.duration_s } else { 0.0 }
        };
        let starts_s = (late("starts late"), late("others start late"));
        let side = |random: &mut RandomStream| {
            random.chance(0.4).then(|| {
                let longest = draft.delay_s * log_uniform(random, (0.2, 3.0));
                format!("10Gbit/s/0ms..{}", time(longest))
            })
        };
        let access = (side(random), side(random));
        if access.0.is_some() || access.1.is_some() {
            draft.classes.push("unequal RTTs");
        }
        let duration_s = draft.duration_s;
        let mut item = draft.item(BenchPart::Mixes, i);
        item.question.flows = own;
        item.question.warmup = Duration::from_secs_f64(0.4 * duration_s);
        item.neighbours = Some(Neighbours { other: other.into(), count: others, starts_s, access });
        item.seed = random.bits() >> 16;
        item
    };
    numbers.map(mix).collect()
}

/// As the network is listed, with the protocol beside last.
pub fn pair_name(number: usize, other: Option<&str>) -> String {
    format!("{number:03} {}", other.unwrap_or(ALONE))
}

/// A bottleneck with one flow of the protocol under test beside one of another, or alone.
pub fn pair(seed: u64, number: usize, other: Option<&str>) -> BenchNetwork {
    let key = RandomKey::from_seed(seed).named("pairs");
    let random = &mut key.numbered(number as u64).stream();
    let mut draft = Draft::new(random, PAIRS_BPS, PAIRS_DELAY_S, PAIRS_BDP_PACKETS);
    draft.queue(random);
    if random.chance(0.25) {
        draft.losses(random);
    }
    draft.duration_s = (ROUND_TRIPS * draft.rtt_s()).clamp(PAIRS_SECONDS.0, PAIRS_SECONDS.1);
    let duration_s = draft.duration_s;
    let other = other.filter(|other| *other != ALONE);
    let mut item = draft.item(BenchPart::Pairs, number);
    item.name = pair_name(number, other);
    item.question.warmup = Duration::from_secs_f64(0.3 * duration_s);
    item.neighbours = other.map(|other| Neighbours {
        other: other.into(),
        count: 1,
        starts_s: (0.0, 0.0),
        access: (None, None),
    });
    item.seed = random.bits() >> 16;
    item
}

/// Transfers of each size on each network, without those that would take longer than half a minute.
fn transfers(seed: u64, numbers: Range<usize>) -> Vec<BenchNetwork> {
    let key = RandomKey::from_seed(seed).named("transfers");
    let mut items = Vec::new();
    for i in numbers {
        let random = &mut key.numbered(i as u64).stream();
        let mut draft = Draft::new(random, RATE_BPS, DELAY_S, MOST_BDP_PACKETS);
        draft.queue(random);
        draft.losses(random);
        draft.delays(random);
        items.extend(draft.transfers(BenchPart::Transfers, i));
    }
    items
}

impl Draft {
    /// A transfer of each size that takes at most half a minute at the network's rate.
    fn transfers(&self, part: BenchPart, number: usize) -> Vec<BenchNetwork> {
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

/// Pairs on each of these bottlenecks: one flow alone, and beside a flow of each of `others`.
pub fn pairs(seed: u64, numbers: Range<usize>, others: &[String]) -> Vec<BenchNetwork> {
    let others = || std::iter::once(None).chain(others.iter().map(|name| Some(name.as_str())));
    numbers.flat_map(|i| others().map(move |other| pair(seed, i, other))).collect()
}

fn transfer(bytes: f64) -> SourceSpec {
    let spec = narrows_base::Spec::parse(&format!("transfer(size={bytes}B)"));
    spec.and_then(|spec| SourceSpec::read(&spec)).unwrap_or_else(|_| SourceSpec::bulk())
}

/// The conditions that the benchmark names, each with twenty seeds: bursts of 16 packets at 5%; 8 and 2 Mbit/s in turn,
/// 200 ms each; and a forward path that becomes longer, so that the round trip grows from 30 to 200 ms.
pub fn named() -> Vec<BenchNetwork> {
    let packets = "20Mbit/s,25ms,loss=ge(g=0.0032895,h=0.0625)";
    // 16 packets take 9.6 ms.
    let time = "20Mbit/s,25ms,loss=fade(bad=9.6ms,good=182.4ms)";
    let of = |name: &str, link: &str, passes: f64| {
        let mut item = BenchNetwork::new(BenchPart::Named, name, link, 20.0);
        item.passes = passes;
        item.seeds = 20;
        item
    };
    let mut items = vec![
        of("bursts of 16 packets, 5%", packets, 0.95),
        of("bursts of 16 packets' time, 5%", time, 0.95),
    ];
    for rtt_ms in [5, 10, 20, 30, 40, 60, 120] {
        let link = format!("8Mbit/s,{}ms,queue=50p", f64::from(rtt_ms) / 2.0);
        let mut item = of(&format!("8 and 2 Mbit/s in turn, RTT {rtt_ms} ms"), &link, 1.0);
        let rate = |i: u64| Rate::from_bps(if i.is_multiple_of(2) { 8_000_000 } else { 2_000_000 });
        let change = |i: u64| (Duration::from_millis(200 * i), LinkChange::Rate(rate(i)));
        item.changes = (1..100).map(change).collect();
        items.push(item);
    }
    let mut longer =
        of("RTT from 30 to 200 ms by the forward path", "10Mbit/s,15ms,queue=50p", 1.0);
    // The return path keeps its 15 ms.
    longer.changes.push((Duration::from_secs(8), LinkChange::Delay(Duration::from_millis(185))));
    items.push(longer);
    items
}

/// A recorded link with a deep queue, the flow alone.
///
/// # Errors
/// A file that is no trace.
pub fn recorded(file: &Path) -> Result<BenchNetwork, String> {
    deep("", file, &file.display().to_string())
}

/// The model of a cellular link with the mean rate of a recorded one.
///
/// # Errors
/// A file that is no trace.
pub fn modelled(file: &Path) -> Result<BenchNetwork, String> {
    let (_, trace) =
        values::trace(&file.display().to_string(), Path::new("")).map_err(|e| e.to_string())?;
    let mean = rate(trace.mean_bps());
    deep(MODEL, file, &format!("cellular(mean={mean})"))
}

/// Begins the names of models.
const MODEL: &str = "model of ";

fn deep(prefix: &str, file: &Path, trace: &str) -> Result<BenchNetwork, String> {
    let name = file.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let link = format!("12Mbit/s,30ms,queue=500p,trace={trace}");
    let mut item = BenchNetwork::new(BenchPart::Traces, &format!("{prefix}{name}"), &link, 60.0);
    (item.seeds, item.seed) = (if prefix.is_empty() { 3 } else { 9 }, 1);
    if prefix.is_empty() {
        item.classes.push("recorded");
    }
    // One that is no trace is refused before anything runs.
    item.plan("cubic")?;
    Ok(item)
}
