//! Every controller on the list and every printed form with its receiver side, under any permitted sequence of events:
//! no panic, and the invariants of `narrows_congestion::fuzz` hold.

use narrows_congestion::CONTROLLERS;
use narrows_congestion::fuzz::{FuzzCase, variants};

/// Runs one input.
pub fn run(bytes: &[u8]) {
    // The first byte selects the variant of each; the rest are the events.
    let Some((which, events)) = bytes.split_first() else { return };
    let case = FuzzCase::from_bytes(events);
    for entry in CONTROLLERS.iter().chain(narrows_printed::CONTROLLERS.iter()) {
        let variants = variants(entry);
        case.put(entry, &variants[usize::from(*which) % variants.len()]);
    }
}
