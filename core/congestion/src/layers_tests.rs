//! The buffer model against a fluid simulation, and the rules one by one.

use super::*;

const RATES: [f64; 4] = [100e3, 100e3, 200e3, 400e3];

fn outlook(rate: f64) -> Outlook {
    Outlook { rate, slope: 50e3 }
}
fn buffers(bits: [f64; 4]) -> Buffers {
    let mut all = [0.0; MAX_LAYERS];
    all[..4].copy_from_slice(&bits);
    Buffers { bits: all, limit_s: 10.0 }
}
fn with_layers(n: usize) -> QualityAdaptation {
    QualityAdaptation { active: n, ..QualityAdaptation::new(&RATES, 1, 0.5) }
}

/// Slices of the triangle sum up to it, and lower layers carry more of it where rates are equal.
#[test]
fn slices_add_up_to_the_deficit() {
    let q = with_layers(4);
    for rate in [0.0, 150e3, 500e3, 799e3, 900e3] {
        let slices = q.deficit(4, outlook(rate));
        let height: f64 = (800e3_f64 - rate).max(0.0);
        let whole = height * height / (2.0 * 50e3);
        assert!((slices.iter().sum::<f64>() - whole).abs() < 1.0, "{rate}: {slices:?}");
        assert!(slices[0] >= slices[1]);
    }
    assert_eq!(q.deficit(2, outlook(300e3)), [0.0; MAX_LAYERS]);
}

/// With exactly the slices in the buffers, a rate that grows as expected plays every layer without a gap. With a tenth
/// less of any needed one it does not.
#[test]
fn a_climbing_rate_and_the_slices_play_without_a_gap() {
    let q = with_layers(4);
    let plays = |mut held: [f64; MAX_LAYERS]| {
        let (mut rate, step) = (250e3_f64, 1e-3);
        while rate < 800e3 {
            // The network serves the highest layers; the buffers supply the slice below the deficit.
            let (height, mut below): (f64, f64) = (800e3 - rate, 0.0);
            for (layer, bits) in held.iter_mut().enumerate().take(4) {
                *bits -= step * (height.min(below + RATES[layer]) - height.min(below));
                below += RATES[layer];
            }
            rate += 50e3 * step;
        }
        held.iter().all(|bits| *bits > -1000.0)
    };
    let slices = q.deficit(4, outlook(250e3));
    assert!(plays(slices));
    for layer in 0..4 {
        let mut less = slices;
        less[layer] *= 0.9;
        assert!(slices[layer] == 0.0 || !plays(less), "layer {layer}");
    }
}

#[test]
fn adding_a_layer_needs_both_rate_and_reserve() {
    let reserve: f64 = with_layers(1).reserve(2, outlook(250e3)).iter().sum();
    // Two layers consume 200 kbit/s and a back-off leaves 125: a triangle of height 75.
    assert!((reserve - 75e3 * 75e3 / (2.0 * 50e3)).abs() < 1.0);
    let more = buffers([reserve + 1.0, 0.0, 0.0, 0.0]);
    let less = buffers([reserve - 1.0, 0.0, 0.0, 0.0]);
    assert_eq!(with_layers(1).adapt(outlook(250e3), &more), Some(LayerChange::Added));
    assert_eq!(with_layers(1).adapt(outlook(250e3), &less), None);
    assert_eq!(with_layers(1).adapt(outlook(199e3), &buffers([9e6; 4])), None);
    assert_eq!(with_layers(4).adapt(outlook(9e6), &buffers([9e6; 4])), None, "there are four");
    // A live stream's buffers hold little: full ones suffice.
    let live = Buffers { limit_s: 0.1, ..buffers([10e3, 0.0, 0.0, 0.0]) };
    assert_eq!(with_layers(1).adapt(outlook(250e3), &live), Some(LayerChange::Added));
}

#[test]
fn layers_above_base_drop_until_buffers_suffice() {
    let mut q = with_layers(4);
    assert_eq!(q.adapt(outlook(800e3), &buffers([0.0; 4])), None);
    assert_eq!(q.adapt(outlook(790e3), &buffers([1500.0, 0.0, 0.0, 0.0])), None);
    assert_eq!(
        q.adapt(outlook(390e3), &buffers([1500.0, 0.0, 0.0, 0.0])),
        Some(LayerChange::Dropped)
    );
    assert_eq!(q.active(), 3);
    assert_eq!(q.adapt(outlook(0.0), &buffers([-1.0; 4])), Some(LayerChange::Dropped));
    assert_eq!(q.active(), 1);
    // The highest layer's data cannot be played in place of the base layer's.
    let mut q = with_layers(2);
    assert_eq!(q.adapt(outlook(20e3), &buffers([0.0, 1e9, 0.0, 0.0])), Some(LayerChange::Dropped));
}

#[test]
fn more_backoffs_need_more() {
    let total = |k| {
        let q = QualityAdaptation::new(&RATES, k, 0.5);
        q.reserve(3, outlook(450e3)).iter().sum::<f64>()
    };
    assert_eq!(total(0), 0.0);
    assert!(total(1) < total(2) && total(2) < total(3));
}

#[test]
fn base_layer_is_sent_first_until_buffers_are_full() {
    let q = with_layers(3);
    let next = |rate, bits| q.next_layer(outlook(rate), &buffers(bits));
    assert_eq!(next(100e3, [0.0; 4]), Some(0));
    assert_eq!(next(1e6, [-1.0, -1.0, -1.0, 0.0]), Some(0));
    assert_eq!(next(1e6, [5.0, 5.0, -1.0, 0.0]), Some(2), "behind its margin");
    // No deficit and full reserves: the layer that is the least time ahead.
    assert_eq!(next(1e6, [500e3, 400e3, 600e3, 0.0]), Some(2));
    assert_eq!(next(1e6, [1e6, 1e6, 2e6, 0.0]), None);
}
