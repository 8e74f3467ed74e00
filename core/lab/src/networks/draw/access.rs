//! The second law: types of access as people have them. Weights are of 100.
//!
//! - *Fixed access* (48, half of it fibre, of the rest more cable than DSL): OECD broadband statistics, fixed
//!   subscriptions by technology, end of 2023 and 2024: fibre 42 and 47%, DSL 20% and falling.
//! - *Mobile access* (19, of it 5G a third): Ericsson Mobility Report, June 2025: 35% of mobile traffic in 5G at the end
//!   of 2024.
//! - *Wi-Fi* is the bottleneck of one fixed line in four, and the remaining types have enough draws for a score: our
//!   choice. Rates, delays and buffers are round ranges around those on the market, and ours.
//!
//! The parts of a type that are no queue come from its technology: grants of several packets (aggregation of Wi-Fi,
//! slots of 5G), handovers each 15 s (Starlink), a return path that is a fraction of the rate. Delays by Wi-Fi are those
//! of C4's tests (draft-huitema-ccwg-c4-test). Their long ones are drawn per second: the model was fitted to probes each
//! 20 ms, and per packet 100 Mbit/s would have 160 times as many.

use super::draft::{Draft, log_uniform, pick, rate, time};
use crate::networks::item::{BenchNetwork, BenchPart, PACKET};
use narrows_base::{Duration, RandomKey, RandomStream, Rate};
use narrows_link::LinkChange;
use std::fmt::Write as _;
use std::ops::Range;

/// Runs last twice as long as those of the first law, so that there are several handovers and outages.
const LONGER: f64 = 2.0;
/// Long delays of Wi-Fi in a second. In C4's tests the mean is 1 to 12 ms, of probes each 20 ms.
const WIFI_LONG_DELAYS: (f64, f64) = (0.2, 6.0);
/// Mean of short and of long delays of Wi-Fi.
const WIFI_SHORT_S: f64 = 1e-3;
const WIFI_LONG_S: f64 = 90e-3;
/// Seconds between two handovers of Starlink.
const STARLINK_STEP_S: f64 = 15.0;

/// Ranges from which a network of this type is drawn.
struct AccessType {
    name: &'static str,
    weight: f64,
    mbps: (f64, f64),
    delay_ms: (f64, f64),
    /// Length of the buffer at the mean rate.
    queue_ms: (f64, f64),
    /// Rate of the return path over the rate; 1 is the same rate.
    back: (f64, f64),
    /// Adds the parts particular to the type.
    details: fn(&mut Draft, &mut RandomStream),
}

const fn access(
    name: &'static str,
    weight: f64,
    mbps: (f64, f64),
    delay_ms: (f64, f64),
    queue_ms: (f64, f64),
    back: (f64, f64),
    details: fn(&mut Draft, &mut RandomStream),
) -> AccessType {
    AccessType { name, weight, mbps, delay_ms, queue_ms, back, details }
}

const TYPES: [AccessType; 14] = [
    access("fibre", 24.0, (50.0, 1e3), (2.0, 25.0), (5.0, 60.0), (0.2, 1.0), fibre),
    access("cable, PIE", 7.0, (50.0, 500.0), (5.0, 25.0), (150.0, 300.0), (0.05, 0.2), pie),
    access(
        "cable, deep buffer",
        7.0,
        (20.0, 300.0),
        (5.0, 25.0),
        (100.0, 500.0),
        (0.05, 0.2),
        cable,
    ),
    access("DSL", 9.0, (5.0, 100.0), (8.0, 30.0), (50.0, 300.0), (0.1, 0.3), dsl),
    access("Wi-Fi", 14.0, (10.0, 200.0), (2.0, 30.0), (20.0, 200.0), (1.0, 1.0), wifi),
    access("LTE", 11.0, (5.0, 80.0), (15.0, 40.0), (200.0, 2e3), (0.1, 0.4), lte),
    access("5G", 6.0, (50.0, 200.0), (8.0, 25.0), (50.0, 500.0), (0.1, 0.3), new_radio),
    access("Starlink", 4.0, (50.0, 200.0), (12.0, 30.0), (30.0, 120.0), (0.1, 0.2), starlink),
    access("GEO", 2.0, (10.0, 100.0), (260.0, 310.0), (300.0, 1200.0), (0.05, 0.2), lossy),
    access("3G", 1.0, (0.5, 8.0), (40.0, 100.0), (1e3, 5e3), (0.1, 0.4), lte),
    access("2G", 1.0, (0.05, 0.2), (150.0, 350.0), (2e3, 1e4), (0.2, 0.5), edge),
    access("intercontinental", 6.0, (20.0, 500.0), (60.0, 150.0), (10.0, 100.0), (0.2, 1.0), lossy),
    access("policed", 3.0, (20.0, 200.0), (5.0, 60.0), (20.0, 200.0), (0.2, 1.0), policed),
    access("data centre", 5.0, (1e3, 1e3), (0.05, 1.0), (0.5, 5.0), (1.0, 1.0), |_, _| ()),
];

/// Networks of types that are drawn by their weights, each with one flow of the protocol under test.
pub fn networks(seed: u64, numbers: Range<usize>) -> Vec<BenchNetwork> {
    let key = RandomKey::from_seed(seed).named("access");
    numbers.map(|i| item(i, &mut key.numbered(i as u64).stream(), weighted)).collect()
}

/// `n` networks by access type, the types in turn, so that rare ones are not missing.
pub fn networks_in_turn(seed: u64, n: usize) -> Vec<BenchNetwork> {
    let key = RandomKey::from_seed(seed).named("access in turn");
    let types = TYPES.iter().cycle().take(n).enumerate();
    types
        .map(|(i, kind)| item(i, &mut key.numbered(i as u64).stream(), |r| of_type(kind, r)))
        .collect()
}

/// Transfers of each size on the networks of [`networks`].
pub fn transfers(seed: u64, numbers: Range<usize>) -> Vec<BenchNetwork> {
    let key = RandomKey::from_seed(seed).named("access");
    let of = |i: usize| {
        let draft = weighted(&mut key.numbered(i as u64).stream());
        draft.transfers(BenchPart::AccessTransfers, i)
    };
    numbers.flat_map(of).collect()
}

fn item(
    number: usize,
    random: &mut RandomStream,
    draft: impl Fn(&mut RandomStream) -> Draft,
) -> BenchNetwork {
    let mut item = draft(random).item(BenchPart::Access, number);
    item.seed = random.bits() >> 16;
    item
}

/// A network of a type that is drawn by its weight.
fn weighted(random: &mut RandomStream) -> Draft {
    let all: f64 = TYPES.iter().map(|t| t.weight).sum();
    let mut left = random.unit() * all;
    let drawn = TYPES.iter().find(|t| {
        left -= t.weight;
        left < 0.0
    });
    of_type(drawn.unwrap_or(&TYPES[0]), random)
}

fn of_type(kind: &AccessType, random: &mut RandomStream) -> Draft {
    let rate_bps = 1e6 * log_uniform(random, kind.mbps);
    let delay_s = 1e-3 * log_uniform(random, kind.delay_ms);
    let mut draft = Draft::of(rate_bps, delay_s);
    draft.classes = vec![kind.name];
    let packets = 1e-3 * log_uniform(random, kind.queue_ms) / draft.packet_s();
    let _ = write!(draft.text, ",queue={}p", packets.ceil().max(10.0));
    let back = log_uniform(random, kind.back);
    if back < 1.0 {
        let _ = write!(draft.text, ",reverse-rate={}", rate(back * rate_bps));
    }
    // The length of the run must be known for changes.
    draft.last(LONGER);
    (kind.details)(&mut draft, random);
    draft
}

impl Draft {
    /// With this probability single losses, within these bounds.
    fn single_losses(&mut self, random: &mut RandomStream, chance: f64, bounds: (f64, f64)) {
        let loss = log_uniform(random, bounds);
        if random.chance(chance) {
            self.passes *= 1.0 - loss;
            let _ = write!(self.text, ",loss={:.6}%", 100.0 * loss);
        }
    }

    /// A rate that varies, without arrivals in outages, and grants of several packets.
    fn radio(
        &mut self,
        random: &mut RandomStream,
        variation: (f64, f64),
        every_s: (f64, f64),
        outage_s: (f64, f64),
        grant: (f64, f64),
    ) {
        let _ = write!(
            self.text,
            ",trace=cellular(mean={},variation={:.2},every={},outage={},grant={:.1},seed={})",
            rate(self.rate_bps),
            log_uniform(random, variation),
            time(log_uniform(random, every_s)),
            time(log_uniform(random, outage_s)),
            log_uniform(random, grant),
            (1e6 * random.unit()) as u32
        );
    }

    /// Delays with a long tail, in order.
    fn long_tail(&mut self, random: &mut RandomStream, ms: (f64, f64)) {
        let size = 1e-3 * log_uniform(random, ms);
        let _ = write!(self.text, ",jitter=pareto({})", time(size));
    }
}

fn fibre(draft: &mut Draft, random: &mut RandomStream) {
    draft.single_losses(random, 0.2, (1e-5, 1e-4));
}

fn pie(draft: &mut Draft, random: &mut RandomStream) {
    draft.text += ",aqm=pie";
    cable(draft, random);
}

/// Requests and grants of the return path vary the delay.
fn cable(draft: &mut Draft, random: &mut RandomStream) {
    let jitter = 1e-3 * log_uniform(random, (1.0, 4.0));
    let _ = write!(draft.text, ",jitter={}", time(jitter));
}

fn dsl(draft: &mut Draft, random: &mut RandomStream) {
    draft.single_losses(random, 0.3, (1e-5, 1e-3));
}

/// Aggregates of 8 to 32 packets; four in ten access points have FQ-CoDel, as Linux's do.
fn wifi(draft: &mut Draft, random: &mut RandomStream) {
    draft.radio(random, (0.2, 0.6), (0.5, 5.0), (0.02, 0.1), (8.0, 32.0));
    if random.chance(0.4) {
        draft.text += ",aqm=fq-codel";
    }
    let share = log_uniform(random, WIFI_LONG_DELAYS) * draft.packet_s();
    let _ = write!(draft.text, ",jitter=wifi({})", time(WIFI_SHORT_S + share * WIFI_LONG_S));
    draft.single_losses(random, 0.3, (1e-4, 5e-3));
}

/// Ranges of the recordings to which the model is fitted.
fn lte(draft: &mut Draft, random: &mut RandomStream) {
    draft.radio(random, (0.4, 0.9), (0.7, 2.9), (0.104, 0.166), (1.0, 4.2));
}

/// EDGE: retransmissions of blocks of 20 ms make a long tail, in order.
fn edge(draft: &mut Draft, random: &mut RandomStream) {
    draft.radio(random, (0.2, 0.6), (2.0, 10.0), (0.1, 0.5), (1.0, 2.0));
    draft.long_tail(random, (20.0, 100.0));
}

fn new_radio(draft: &mut Draft, random: &mut RandomStream) {
    draft.radio(random, (0.3, 0.8), (2.0, 10.0), (0.02, 0.06), (8.0, 40.0));
}

/// At each handover the rate and the delay are drawn anew, and packets are lost.
fn starlink(draft: &mut Draft, random: &mut RandomStream) {
    let outage = log_uniform(random, (0.02, 0.1));
    let loss = log_uniform(random, (1e-3, 1e-2));
    let step = time(STARLINK_STEP_S);
    let _ = write!(
        draft.text,
        ",loss=outage(at={step},for={},every={step})+{:.4}%",
        time(outage),
        100.0 * loss
    );
    draft.passes *= 1.0 - loss;
    for i in 1..(draft.duration_s / STARLINK_STEP_S).ceil() as usize {
        let at = Duration::from_secs_f64(STARLINK_STEP_S * i as f64);
        let bps = draft.rate_bps * log_uniform(random, (0.6, 1.4));
        let delay = draft.delay_s * log_uniform(random, (0.7, 1.5));
        draft.changes.push((at, LinkChange::Rate(Rate::from_bps_f64(bps))));
        draft.changes.push((at, LinkChange::Delay(Duration::from_secs_f64(delay))));
        draft.passes -= outage / draft.duration_s;
    }
}

fn lossy(draft: &mut Draft, random: &mut RandomStream) {
    draft.single_losses(random, 0.7, (1e-5, 1e-2));
    if random.chance(0.5) {
        draft.long_tail(random, (1.0, 10.0));
    }
}

fn policed(draft: &mut Draft, random: &mut RandomStream) {
    let share = log_uniform(random, (0.05, 0.5));
    let bucket = pick(random, &[20.0, 50.0, 200.0, 1000.0]) * f64::from(PACKET);
    let policed = rate(share * draft.rate_bps);
    let _ = write!(draft.text, ",policer={policed}/{bucket:.0}B");
    draft.passes *= share;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_types_are_drawn_by_their_weights() {
        let items = networks(1, 0..2000);
        for kind in TYPES {
            let count = items.iter().filter(|i| i.classes.contains(&kind.name)).count() as f64;
            let expected = 20.0 * kind.weight;
            // Five standard deviations of a Poisson number.
            assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{}: {count}", kind.name);
        }
        assert_eq!(TYPES.iter().map(|t| t.weight).sum::<f64>(), 100.0);
    }

    #[test]
    fn access_types_in_turn_are_equally_frequent() {
        let items = networks_in_turn(1, 2 * TYPES.len());
        for kind in TYPES {
            let of_kind = items.iter().filter(|i| i.classes.contains(&kind.name));
            assert_eq!(of_kind.count(), 2, "{}", kind.name);
        }
    }
}
