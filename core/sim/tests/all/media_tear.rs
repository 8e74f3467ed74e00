//! TEAR in the simulator.

use crate::two_links::{self, network};
use narrows_base::{Duration, Time};
use narrows_link::{LinkConfig, QueueLimit};
use narrows_sim::{NetworkSpec, RunResult, run};

/// A bottleneck: Mbit/s, one-way ms, packets of buffer, loss in the forward direction.
#[derive(Clone, Copy)]
struct Net {
    mbps: f64,
    ms: u64,
    room: u64,
    loss: &'static str,
    jitter_ms: u64,
}

fn link(net: &Net, loss: &str) -> LinkConfig {
    let delay = Duration::from_millis(net.ms);
    let mut config =
        two_links::link(net.mbps * 1e6, delay, QueueLimit::Packets(net.room), None, loss);
    config.impairments.jitter = Duration::from_millis(net.jitter_ms);
    config
}

/// Groups (protocol, flows) in parallel, started 100 ms apart; measured after 30 s.
fn go(net: Net, groups: &[(&str, usize)], seconds: f64, seed: u64) -> RunResult {
    run(&spec(net, groups, seconds, seed), &mut |_| true).unwrap()
}

fn spec(net: Net, groups: &[(&str, usize)], seconds: f64, seed: u64) -> NetworkSpec {
    let mut starts = (1..).map(|i| f64::from(i) * (0.1 + 0.037 * seed as f64));
    let mut all = Vec::new();
    for (i, (spec, n)) in groups.iter().enumerate() {
        all.push(two_links::group(&format!("g{i}"), spec, 1000, starts.by_ref().take(*n)));
    }
    network([link(&net, net.loss), link(&net, "none")], all, (30.0, seconds), seed)
}

/// Goodput of a group in kbit/s, all flows, and the mean coefficient of variation over 1 s.
fn group(r: &RunResult, g: usize) -> (f64, f64) {
    let flows = &r.groups[g].flows;
    let bits = flows.iter().map(|f| f.goodput_bytes as f64 * 8.0).sum::<f64>();
    let cov = flows.iter().filter_map(|f| f.bins_1s).map(|(m, s)| s / m).sum::<f64>();
    (bits / r.span_s / 1e3, cov / flows.len() as f64)
}

/// Means over three seeds.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    /// Of the first group and the second.
    kbps: [f64; 2],
    cov: [f64; 2],
    /// Of the first group.
    dropped: f64,
    rtt_ms: f64,
    /// Of the forward direction.
    used: f64,
    queue: f64,
}

fn mean(net: Net, groups: &[(&str, usize)]) -> Mean {
    let mut m = Mean::default();
    let n = 3.0;
    for seed in 1..=3 {
        let r = go(net, groups, 230.0, seed);
        for g in 0..groups.len() {
            let (kbps, cov) = group(&r, g);
            m.kbps[g] += kbps / n;
            m.cov[g] += cov / n;
        }
        let l = &r.links[0];
        m.dropped += l.groups[0].dropped as f64 / l.groups[0].offered as f64 / n;
        m.rtt_ms += r.groups[0].rtt.mean().unwrap_or(0.0) / 1e6 / n;
        m.used += l.served_bits / l.capacity_bits / n;
        m.queue += l.queue_mean / n;
    }
    m
}

const fn net(mbps: f64, ms: u64, room: u64, loss: &'static str) -> Net {
    Net { mbps, ms, room, loss, jitter_ms: 0 }
}
/// A buffer of one BDP.
const SLOW: Net = net(1.5, 30, 12, "none");
const FAST: Net = net(10.0, 20, 50, "none");
/// TCP gets about 275 kbit/s, as between the United States and Korea in 2001 (Jayaram 2001 section 4.2).
const TRANSPACIFIC: Net = net(10.0, 100, 500, "2.5%");
/// IS-95B of Jayaram 2001: 64 kbit/s.
const RADIO: Net = net(0.064, 250, 20, "none");

/// As defined in Jayaram 2001, two fifths of an idle path stay unused (`tear/smoothing.rs` explains why); discounting
/// uses most of them.
#[test]
fn alone_tear_uses_most_of_a_path() {
    let with = mean(SLOW, &[("tear", 1)]);
    assert!(with.used > 0.82, "{with:?}");
    let letter = mean(SLOW, &[("tear(discount=off,yield=off)", 1)]);
    assert!((0.5..0.75).contains(&letter.used), "{letter:?}");
}

/// Jayaram 2001 figures 4.1 and 4.2: 275 and 250 kbit/s, and much smoother.
#[test]
fn tear_on_lossy_path_matches_tcps_rate_more_smoothly() {
    let tcp = mean(TRANSPACIFIC, &[("newreno", 1)]);
    assert!((250.0..310.0).contains(&tcp.kbps[0]), "{tcp:?}");
    for spec in ["tear", "tear(discount=off)"] {
        let tear = mean(TRANSPACIFIC, &[(spec, 1)]);
        assert!((0.8..1.15).contains(&(tear.kbps[0] / tcp.kbps[0])), "{tear:?}");
        assert!(tear.cov[0] < 0.65 * tcp.cov[0], "{tear:?} {tcp:?}");
    }
}

/// Jayaram 2001 section 4.3: TEAR's share is a little below TCP's, and falls with more TCP flows. Here it is 0.8 of
/// TCP's at 1 + 1 on a slow path, and 0.4 at 4 + 4 on a faster one: less than in the paper.
#[test]
fn beside_tcp_tears_share_is_smaller_and_smoother() {
    let slow = mean(SLOW, &[("tear", 1), ("sack", 1)]);
    assert!((0.6..1.05).contains(&(slow.kbps[0] / slow.kbps[1])), "{slow:?}");
    let many = mean(FAST, &[("tear", 4), ("sack", 4)]);
    assert!((0.3..1.0).contains(&(many.kbps[0] / many.kbps[1])), "{many:?}");
    for m in [slow, many] {
        assert!(m.cov[0] < m.cov[1], "{m:?}");
        assert!(m.used > 0.95, "{m:?}");
    }
}

/// Jayaram 2001 figures 4.13 and 4.14: when TCP leaves, TEAR grows slowly into the free capacity.
#[test]
fn when_tcp_leaves_tear_takes_its_place() {
    let bytes = |end| {
        let mut s = spec(FAST, &[("tear", 4), ("sack", 4)], end, 1);
        s.groups[1].flows.iter_mut().for_each(|f| f.stop = Time::from_secs_f64(75.0));
        let r = run(&s, &mut |_| true).unwrap();
        r.groups[0].flows.iter().map(|f| f.goodput_bytes as f64).sum::<f64>()
    };
    let at_75 = bytes(75.0);
    let at_200 = bytes(200.0);
    let at_300 = bytes(300.0);
    let before = at_75 / 45.0;
    let after = (at_300 - at_200) / 100.0;
    assert!(after > 2.0 * before, "{before} {after}");
    assert!(after * 8.0 > 0.8 * 10e6, "{after}");
}

/// Losses up to 10% have no effect on the rate, and the queue stays short, on a path of 20 ms.
#[test]
fn by_delay_losses_cost_only_themselves() {
    for (loss, delivered) in [("none", 1.0), ("1%", 0.99), ("10%", 0.9)] {
        let m = mean(net(10.0, 10, 25, loss), &[("tear-wireless", 1)]);
        assert!(m.kbps[0] > 0.85 * 9360.0 * delivered, "{loss}: {m:?}");
        assert!(m.dropped < 0.001 && m.queue < 4.0, "{loss}: {m:?}");
    }
    let tcp = mean(net(10.0, 10, 25, "10%"), &[("newreno", 1)]);
    assert!(tcp.used < 0.1, "{tcp:?}");
}

/// Alone, it reacts to delay before the buffer overflows: one BDP, or eight packets. If only the receiver side reports,
/// once per round trip, the smoothed RTT changes slowly and the queue is a little shorter. With the reports of a real
/// connection it stays below the upper threshold: six packets' transmission times, or 0.24 of the RTT.
#[test]
fn by_delay_the_queue_is_short_without_loss() {
    for (net, flows) in [(SLOW, 1), (net(10.0, 10, 200, "none"), 1), (FAST, 4)] {
        let packet = 8.0 / net.mbps;
        let base = 2.0 * net.ms as f64 + packet;
        let above = base + (6.0 * packet).max(0.24 * base);
        let paper = 1.4 * 2.0 * net.ms as f64;
        for (protocol, rtt) in [("tear-wireless(ack-every=0)", paper), ("tear-wireless", above)] {
            let m = mean(net, &[(protocol, flows)]);
            assert!(m.used > 0.85, "{protocol}: {m:?}");
            assert!(m.dropped < 0.001, "{protocol}: {m:?}");
            assert!(m.rtt_ms < rtt, "{protocol}: {m:?}");
        }
    }
    let short = mean(net(10.0, 10, 8, "none"), &[("tear-wireless", 1)]);
    assert!(short.dropped < 0.02, "{short:?}");
}

/// Beside TCP, which fills every buffer, a delay-based sender would starve. It does not, nor does TCP.
#[test]
fn by_delay_neither_side_starves() {
    let one = mean(FAST, &[("tear-wireless", 1), ("newreno", 1)]);
    let many = mean(FAST, &[("tear-wireless", 4), ("sack", 4)]);
    let slow = mean(SLOW, &[("tear-wireless", 1), ("sack", 1)]);
    for m in [one, many, slow] {
        let share = m.kbps[0] / m.kbps[1];
        assert!((0.15..1.1).contains(&share), "{m:?}");
    }
}

/// Delays that vary, in order, by as much as the path's delay.
#[test]
fn by_delay_a_variable_path_stays_on() {
    let jitter = |net: Net, jitter_ms| Net { jitter_ms, ..net };
    let radio = mean(jitter(net(0.144, 250, 20, "5%"), 150), &[("tear-wireless", 1)]);
    assert!(radio.used > 0.75, "{radio:?}");
    let tcp = mean(jitter(net(0.144, 250, 20, "5%"), 150), &[("newreno", 1)]);
    assert!(radio.kbps[0] > 1.5 * tcp.kbps[0], "{radio:?} {tcp:?}");
    let near = mean(jitter(net(10.0, 10, 25, "1%"), 10), &[("tear-wireless", 1)]);
    assert!(near.used > 0.55, "{near:?}");
}

/// Jayaram 2001 figure 7.1: 40 kbit/s of 64, in triangles. The fixed thresholds keep the RTT about R1.
#[test]
fn fixed_thresholds_on_radio_behave_as_the_thesis_says() {
    let m = mean(RADIO, &[("tear-wireless(thresholds=fixed)", 1)]);
    assert!((32.0..48.0).contains(&m.kbps[0]), "{m:?}");
    assert!((700.0..1200.0).contains(&m.rtt_ms), "{m:?}");
    assert!(m.cov[0] > 0.3, "triangles: {m:?}");
    let adaptive = mean(RADIO, &[("tear-wireless", 1)]);
    assert!(adaptive.kbps[0] > m.kbps[0] && adaptive.cov[0] < m.cov[0], "{adaptive:?}");
}

/// Jayaram 2001 figure 4.4: four flows got 62 to 70 kbit/s.
#[test]
fn tear_flows_are_fair_to_each_other() {
    let r = go(FAST, &[("tear", 4)], 330.0, 1);
    let bytes: Vec<u64> = r.groups[0].flows.iter().map(|f| f.goodput_bytes).collect();
    let min = bytes.iter().min().unwrap();
    let max = bytes.iter().max().unwrap();
    assert!(min * 10 > max * 8, "{bytes:?}");
}
