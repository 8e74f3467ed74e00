//! The source's writes for given rates, without a network.

use super::*;
use narrows_base::{RandomKey, Spec};

fn source(text: &str) -> Box<dyn FrameSource> {
    let settings = Settings::read(&Spec::parse(text).unwrap(), DESCRIPTOR.params).unwrap();
    check(&settings).unwrap();
    start(&settings, RandomKey::from_seed(1).named("source").stream())
}

/// Plays `seconds` with a transport that sends exactly the present rate, and returns the parts written.
fn play(
    source: &mut dyn FrameSource,
    seconds: f64,
    rate: impl Fn(f64) -> f64,
) -> Vec<(Time, FramePart)> {
    let mut now = Time::ZERO;
    let mut unsent = 0.0;
    let mut written = Vec::new();
    while now < Time::from_secs_f64(seconds) {
        let allowed_bps = rate(now.as_secs_f64());
        let state = TransportState {
            allowed_bps,
            unsent_bytes: unsent as u64,
            srtt: Duration::from_millis(50),
            payload_bytes: 1000,
        };
        let mut parts = Vec::new();
        let next = source.write(now, &state, &mut parts);
        unsent += parts.iter().map(|p| f64::from(p.bytes)).sum::<f64>();
        unsent = (unsent - allowed_bps / 8.0 * next.since(now).as_secs_f64()).max(0.0);
        written.extend(parts.into_iter().map(|p| (now, p)));
        now = next;
    }
    written
}
fn highest(written: &[(Time, FramePart)], from: f64, to: f64) -> u8 {
    let within = |t: &Time| (from..to).contains(&t.as_secs_f64());
    written.iter().filter(|w| within(&w.0)).map(|w| w.1.layer).max().unwrap_or(0)
}

#[test]
fn layers_follow_the_rate_and_base_layer_is_always_sent() {
    let mut s = source("layers(count=4,rate=100kbit/s)");
    let written =
        play(s.as_mut(), 120.0, |t| if (50.0..80.0).contains(&t) { 120e3 } else { 450e3 });
    assert_eq!(highest(&written, 30.0, 50.0), 3, "450 kbit/s carry four layers");
    assert_eq!(highest(&written, 75.0, 80.0), 0, "120 kbit/s carry one");
    assert!(highest(&written, 100.0, 120.0) >= 2, "and they come back");
    let base: Vec<_> = written.iter().filter(|w| w.1.layer == 0).collect();
    assert!(base.iter().enumerate().all(|(n, w)| w.1.frame == n as u64 && w.1.bytes > 0));
    assert!(base.iter().all(|w| w.1.playout > w.0 + Duration::from_millis(25)), "in time");
    // The buffer bridges a second at rate zero.
    let mut s = source("layers(count=2,rate=100kbit/s)");
    let written = play(s.as_mut(), 60.0, |t| if (40.0..41.0).contains(&t) { 0.0 } else { 250e3 });
    assert!(written.iter().all(|w| w.1.bytes > 0));
    assert_eq!(highest(&written, 42.0, 60.0), 1);
}

#[test]
fn source_never_runs_beyond_the_receivers_buffer() {
    for (text, ahead) in [("layers(ahead=3s)", 3.0), ("layers(latency=0.4s,ahead=0.4s)", 0.4)] {
        let mut s = source(text);
        let interval = s.frame_interval().as_secs_f64();
        let written = play(s.as_mut(), 30.0, |_| 5e6);
        assert_eq!(highest(&written, 10.0, 30.0), 3, "{text}");
        for (now, part) in &written {
            assert!(part.playout.since(*now).as_secs_f64() <= ahead + interval, "{text}: {part:?}");
        }
        let bits: f64 = written.iter().map(|w| f64::from(w.1.bytes) * 8.0).sum();
        assert!((bits / 30.0 - 1e6).abs() < 0.12e6, "{text}: {bits}");
    }
}

#[test]
fn frames_that_cannot_come_in_time_are_left_out() {
    let mut s = source("layers(count=1,rate=100kbit/s,latency=0.5s,ahead=1s)");
    let written = play(s.as_mut(), 20.0, |_| 50e3);
    let left_out = written.iter().filter(|w| w.1.bytes == 0).count() as f64;
    let share = left_out / written.len() as f64;
    assert!((0.4..0.6).contains(&share), "half of the rate is half of the frames: {share}");
}

#[test]
fn incompatible_layers_are_refused() {
    let read = |text: &str| {
        let settings = Settings::read(&Spec::parse(text).unwrap(), DESCRIPTOR.params).unwrap();
        check(&settings).unwrap_err().to_string()
    };
    assert!(read("layers(latency=5s,ahead=2s)").contains("below latency"));
    assert!(read("layers(rate=1Tbit/s,growth=10,fps=0.1)").contains("1 GB"));
}
