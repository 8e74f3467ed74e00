//! Networks whose route changes: the forward path becomes longer or shorter once or twice.

use super::draft::{DELAY_S, Draft, MOST_BDP_PACKETS, RATE_BPS, log_uniform};
use crate::networks::item::{BenchNetwork, BenchPart};
use narrows_base::{Duration, RandomKey};
use narrows_link::LinkChange;
use std::ops::Range;

/// Factor of the forward delay.
const FACTOR: (f64, f64) = (0.1, 10.0);

/// Networks of the first law with a constant rate and one to two changes of the forward delay.
pub fn networks(seed: u64, numbers: Range<usize>) -> Vec<BenchNetwork> {
    let key = RandomKey::from_seed(seed).named("routes");
    let network = |i: usize| {
        let random = &mut key.numbered(i as u64).stream();
        let mut draft = Draft::new(random, RATE_BPS, DELAY_S, MOST_BDP_PACKETS);
        draft.queue(random);
        draft.losses(random);
        draft.delays(random);
        let changes = 1 + usize::from(random.chance(0.5));
        let delays: Vec<f64> = (0..changes)
            .map(|_| (draft.delay_s * log_uniform(random, FACTOR)).clamp(DELAY_S.0, DELAY_S.1))
            .collect();
        draft.classes.push(if delays[0] > draft.delay_s {
            "route becomes longer"
        } else {
            "route becomes shorter"
        });
        draft.last(1.0);
        for (i, delay) in delays.iter().enumerate() {
            let at = draft.duration_s * (i + 1) as f64 / (changes + 1) as f64;
            let delay = Duration::from_secs_f64(*delay);
            draft.changes.push((Duration::from_secs_f64(at), LinkChange::Delay(delay)));
        }
        let mut item = draft.item(BenchPart::Routes, i);
        item.seed = random.bits() >> 16;
        item
    };
    numbers.map(network).collect()
}
