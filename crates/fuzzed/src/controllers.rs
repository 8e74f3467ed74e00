//! Every controller on the list, its receiver side included, under whatever may legally happen:
//! no panic, and what `narrows_congestion::fuzz` says every controller must keep.

use narrows_congestion::CONTROLLERS;
use narrows_congestion::fuzz::{FuzzCase, variants};

/// Tries one input.
pub fn run(bytes: &[u8]) {
    // Which variant of each: the first byte; the rest is what happens.
    let Some((which, events)) = bytes.split_first() else { return };
    let case = FuzzCase::from_bytes(events);
    for entry in CONTROLLERS.iter() {
        let variants = variants(entry);
        case.put(entry, &variants[usize::from(*which) % variants.len()]);
    }
}
