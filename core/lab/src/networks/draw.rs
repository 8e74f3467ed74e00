//! The distributions from which networks are drawn; `docs/benchmarks.md` describes them. `access` is the second one.

mod access;
mod draft;
mod routes;

pub use access::networks_in_turn as access_in_turn;
pub(super) use draft::SIZES;

use super::item::{BenchNetwork, BenchPart, Neighbours};
use draft::{DELAY_S, Draft, MOST_BDP_PACKETS, RATE_BPS, ROUND_TRIPS, log_uniform, rate, time};
use narrows_base::{Duration, RandomKey, RandomStream, Rate, SpecError};
use narrows_link::LinkChange;
use narrows_scenario::values;
use std::ops::Range;
use std::path::Path;

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

/// Pairs on each of these bottlenecks: one flow alone, and beside a flow of each of `others`.
pub fn pairs(seed: u64, numbers: Range<usize>, others: &[String]) -> Vec<BenchNetwork> {
    let others = || std::iter::once(None).chain(others.iter().map(|name| Some(name.as_str())));
    numbers.flat_map(|i| others().map(move |other| pair(seed, i, other))).collect()
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
