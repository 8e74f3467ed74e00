use super::*;

const S: u64 = 1_000_000_000;

/// Bytes at tenths of a second, over `seconds`.
fn of(arrivals: &[(u64, u64)], seconds: u64) -> (Option<(f64, f64)>, Option<Box<FlowDetail>>) {
    let mut s = Smoothness::default();
    for (tenth, bytes) in arrivals {
        s.add(tenth * S / 10, *bytes, true);
    }
    s.result(seconds * S, true)
}

/// The values that the running sums must give, from stored bins.
fn by_hand(bins: &[f64]) -> (f64, f64) {
    let n = bins.len() as f64;
    let mean = bins.iter().sum::<f64>() / n;
    let variance = bins.iter().map(|b| (b - mean) * (b - mean)).sum::<f64>() / n;
    let change = bins.windows(2).map(|w| (w[1] - w[0]).abs()).sum::<f64>() / (n - 1.0);
    (variance.sqrt() / mean, change / mean)
}

#[test]
fn a_small_series_has_the_sums_of_pencil_and_paper() {
    // Seconds 0 to 3: 4, 2, 0 and 6 bytes. Mean 3, deviations 1, -1, -3, 3: variance 5.
    // Changes 2, 2, 6: their mean is 10/3.
    let (bins, detail) = of(&[(0, 1), (5, 3), (11, 2), (39, 6)], 4);
    assert_eq!(bins, Some((3.0, 5f64.sqrt())));
    let detail = detail.unwrap();
    let second = detail.roughness[SECOND];
    assert!((second.cov - 5f64.sqrt() / 3.0).abs() < 1e-12);
    assert!((second.change - 10.0 / 9.0).abs() < 1e-12);
    assert_eq!((detail.first, detail.seconds), (0, vec![4, 2, 0, 6]));
    // Over two seconds there are 6 and 6: smooth. Over five there is no whole bin.
    assert_eq!((detail.roughness[4].cov, detail.roughness[4].change), (0.0, 0.0));
    assert!(detail.roughness[5].cov.is_nan() && detail.roughness[5].change.is_nan());
}

#[test]
fn every_scale_agrees_with_bins_that_are_kept() {
    // Bursts and pauses of many lengths, a late start, and an end within bins of all scales.
    let mut arrivals = Vec::new();
    let mut tenth = 37;
    let mut state = 12345u64;
    while tenth < 1_234 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        arrivals.push((tenth, state >> 54));
        tenth += [0, 0, 1, 1, 1, 2, 7, 31][(state >> 40) as usize % 8];
    }
    let mut s = Smoothness::default();
    arrivals.iter().for_each(|(t, b)| s.add(t * S / 10, *b, true));
    let span = 1_234 * S / 10 + 5;
    let (_, detail) = s.result(span, true);
    let detail = detail.unwrap();
    for (scale, ms) in SCALES_MS.into_iter().enumerate() {
        let mut bins = vec![0.0; (span / (ms * 1_000_000)) as usize];
        for (tenth, bytes) in &arrivals {
            if let Some(bin) = bins.get_mut((tenth * 100 / ms) as usize) {
                *bin += *bytes as f64;
            }
        }
        let (cov, change) = by_hand(&bins);
        let found = detail.roughness[scale];
        assert!((found.cov / cov - 1.0).abs() < 1e-9, "{ms} ms: {} {cov}", found.cov);
        assert!((found.change / change - 1.0).abs() < 1e-9, "{ms} ms: {} {change}", found.change);
        if scale == SECOND {
            let kept: Vec<f64> = detail.seconds.iter().map(|b| *b as f64).collect();
            assert_eq!(kept, bins[detail.first..detail.first + kept.len()]);
            assert!(bins[..detail.first].iter().all(|b| *b == 0.0));
        }
    }
}

#[test]
fn empty_or_unrequested_series_are_not_kept() {
    let (bins, detail) = of(&[], 10);
    assert!(bins == Some((0.0, 0.0)) && detail.is_none());
    assert_eq!(of(&[(0, 5)], 1).0, None, "one bin has no deviation");
    let mut s = Smoothness::default();
    (0..50).for_each(|t| s.add(t * S / 10, 1, false));
    let (_, detail) = s.result(5 * S, false);
    assert!(detail.unwrap().seconds.is_empty());
    // A flow without received data has no heap memory.
    assert!(size_of::<Smoothness>() <= 24);
}
