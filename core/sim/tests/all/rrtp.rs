//! Requirements of rrtp's default controller: four links with radio losses alone, and shared links. Packets of 1500
//! bytes with 64 bytes of headers, as on the wire; the handshake counts.

use crate::two_links::{self, network};
use narrows_base::{Duration, Rate, Spec};
use narrows_link::{Distribution, JitterForm, LinkConfig, QueueConfig, QueueLimit};
use narrows_sim::{LinkSpec, NetworkSpec, RunResult, SourceSpec, run};

#[derive(Clone, Copy)]
struct Net {
    bps: f64,
    /// One-way delay.
    ms: f64,
    /// Size of the queue in bytes.
    queue: u64,
    loss: &'static str,
    packet: u32,
}

fn link(net: &Net, loss: &str) -> LinkConfig {
    let delay = Duration::from_secs_f64(net.ms * 1e-3);
    two_links::link(net.bps, delay, QueueLimit::Bytes(net.queue), None, loss)
}

/// Groups (protocol, flows); the first starts at `start`, the others `stagger` apart.
fn go(
    net: &Net,
    groups: &[(&str, usize)],
    (from, end): (f64, f64),
    (start, stagger): (f64, f64),
    seed: u64,
) -> RunResult {
    run(&spec(net, groups, (from, end), (start, stagger), seed), &mut |_| true).unwrap()
}

fn spec(
    net: &Net,
    groups: &[(&str, usize)],
    (from, end): (f64, f64),
    (start, stagger): (f64, f64),
    seed: u64,
) -> NetworkSpec {
    let mut starts = (0..).map(|i| start + stagger * f64::from(i));
    let mut all = Vec::new();
    for (i, (name, n)) in groups.iter().enumerate() {
        let starts = starts.by_ref().take(*n);
        all.push(two_links::group(&format!("g{i}"), name, net.packet, starts));
    }
    network([link(net, net.loss), link(net, "none")], all, (from, end), seed)
}

/// Alone over the whole run, mean of three seeds: application bits over the link's, offered over delivered, and the
/// queueing delay in milliseconds.
fn alone(protocol: &str, net: &Net, seconds: f64) -> (f64, f64, f64) {
    let mut goodput = 0.0;
    let mut offered = 0.0;
    let mut delay = 0.0;
    for seed in 1..=3 {
        let r = go(net, &[(protocol, 1)], (0.0, seconds), (0.0, 0.0), seed);
        let f = &r.groups[0].flows[0];
        goodput += f.goodput_bytes as f64 * 8.0 / seconds / net.bps / 3.0;
        offered += f.sent_bytes as f64 / f.goodput_bytes as f64 / 3.0;
        delay += r.links[0].queue_mean * f64::from(net.packet) * 8e3 / net.bps / 3.0;
    }
    (goodput, offered, delay)
}

const I: Net = Net { bps: 20e6, ms: 25.0, queue: 125_000, loss: "1%", packet: 1500 };
const II: Net = Net { bps: 1.5e6, ms: 250.0, queue: 93_750, loss: "1%", packet: 1500 };
/// Two packets in the queue, and two in flight: smaller ones, as usual on slow links.
const III: Net = Net { bps: 144e3, ms: 75.0, queue: 2700, loss: "1%", packet: 1228 };
const IV: Net = Net { bps: 100e6, ms: 50.0, queue: 1_250_000, loss: "0.1%", packet: 1500 };

/// Application bits that a link can carry, over its rate: no headers, and no lost packets.
fn carries(net: &Net) -> f64 {
    let loss: f64 = net.loss.trim_end_matches('%').parse().unwrap();
    (1.0 - loss / 100.0) * (1.0 - 64.0 / f64::from(net.packet))
}

/// Startup and handshake included, and again with rate and base RTT as hints, which replace the startup.
#[test]
fn links_that_lose_are_filled() {
    let links = [
        (I, "(rate=20Mbit/s,rtt=50ms)", 30.0),
        (II, "(rate=1.5Mbit/s,rtt=500ms)", 60.0),
        (III, "(rate=144kbit/s,rtt=150ms)", 60.0),
        (IV, "(rate=100Mbit/s,rtt=100ms)", 30.0),
    ];
    for (net, hints, seconds) in links {
        for (hints, min) in [("", 0.92), (hints, 0.94)] {
            let (goodput, offered, delay) = alone(&format!("rrtp{hints}"), &net, seconds);
            let found = format!("{} bit/s {hints}: {goodput:.4} {offered:.4} {delay:.2}", net.bps);
            assert!(goodput >= min * carries(&net) && offered <= 1.06, "{found}");
            assert!(delay < 10.0 || net.bps < 2e6, "{found}");
        }
    }
}

/// Single losses and bursts of sixteen, and a queue that is never long.
#[test]
fn losses_in_bursts_leave_the_link_filled() {
    let bursts = "ge(g=0.0032895,h=0.0625)";
    for (loss, passes) in [("1%", 0.99), ("10%", 0.9), (bursts, 0.95)] {
        let (goodput, _, delay) = alone("rrtp", &Net { loss, ..I }, 30.0);
        assert!(goodput > 0.8 * passes && delay < 15.0, "{loss}: {goodput:.3} {delay:.1} ms");
    }
}

#[test]
fn one_flow_shares_a_queue_of_one_bdp() {
    let net = Net { bps: 10e6, ms: 20.0, queue: 50_000, loss: "none", packet: 1500 };
    for rival in ["sack", "cubic"] {
        let of = |start: u32| {
            let later = 0.11 + 0.0037 * f64::from(start);
            let groups = [("rrtp", 1), (rival, 1)];
            let r = go(&net, &groups, (20.0, 80.0), (0.1, later), 1);
            let bytes = |i: usize| r.groups[i].flows[0].goodput_bytes as f64;
            bytes(0) / (bytes(0) + bytes(1))
        };
        let share = (1..=6).map(of).sum::<f64>() / 6.0;
        assert!((0.3..=0.75).contains(&share), "{rival}: {share:.3}");
    }
}

/// Packets of these links take 0.2 to 1.2 s to send, and the buffer holds 50 of them. The controller keeps at least
/// three packets in flight.
#[test]
fn slow_links_keep_a_queue_of_few_packets() {
    for (bps, seconds) in [(9.6e3, 120.0), (20e3, 60.0), (50e3, 60.0)] {
        let net = Net { bps, ms: 300.0, queue: 70_000, loss: "1%", packet: 1400 };
        let (goodput, offered, delay) = alone("rrtp", &net, seconds);
        let found = format!("{bps} bit/s: {goodput:.4} {offered:.4} {delay:.0} ms");
        assert!(goodput >= 0.9 && offered <= 1.06, "{found}");
        assert!(delay < 5.0 * 1400.0 * 8e3 / bps, "{found}");
    }
}

/// On such links a single late packet changes rates and delays as much as a competing flow would.
#[test]
fn a_path_of_two_packets_never_fills_its_buffer() {
    for bps in [50e3, 100e3] {
        let net = Net { bps, ms: 250.0, queue: 70_000, loss: "1%", packet: 1400 };
        for seed in 1..=60 {
            let r = go(&net, &[("rrtp", 1)], (0.0, 60.0), (0.0, 0.0), seed);
            let queue = r.links[0].queue_mean;
            assert!(queue < 4.0, "{bps} bit/s, seed {seed}: {queue:.2} packets");
        }
    }
}

/// Retransmissions must not always meet the queue in the same state. If they left directly behind each report, they
/// would find the one place taken each time: 0.01 of the link arrived in order, while 0.97 of it was busy.
#[test]
fn one_packet_queue_does_not_drop_the_same_bytes_forever() {
    let net = Net { bps: 100e6, ms: 0.1, queue: 1500, loss: "none", packet: 1500 };
    let flow = &go(&net, &[("rrtp", 1)], (0.0, 1.0), (0.0, 0.0), 1).groups[0].flows[0];
    let share = flow.goodput_bytes as f64 * 8.0 / net.bps;
    assert!(share > 0.8, "{share:.3}");
}

/// One packet of 1500 bytes fits into the queue, and three into the pipe: a window that grows to find that out loses a
/// quarter of its packets.
#[test]
fn packets_too_large_for_the_queue_are_not_sent() {
    for packet in [1300, 1400, 1500] {
        let (goodput, offered, _) = alone("rrtp", &Net { packet, ..III }, 60.0);
        assert!(goodput >= 0.88 && offered <= 1.12, "{packet} bytes: {goodput:.4} {offered:.4}");
    }
}

/// A queue of an eighth of the BDP and less: a controller that halves at losses leaves the link idle.
#[test]
fn a_shallow_queue_costs_no_goodput() {
    for queue in [15_000, 31_250] {
        let (goodput, offered, _) = alone("rrtp", &Net { queue, ..I }, 30.0);
        assert!(goodput >= 0.9 && offered <= 1.06, "{queue} bytes: {goodput:.4} {offered:.4}");
    }
    // With a competitor the share is less than the whole: three quarters (24 starts: 0.76) beside bursts that such a
    // queue drops, half (0.50) beside CUBIC. The link has no random draws: only the competitor's start differs, which decides
    // on the packets that find the queue full.
    let net = Net { bps: 10e6, ms: 20.0, queue: 12_500, loss: "none", packet: 1500 };
    for (rival, max) in [("sack", 0.80), ("cubic", 0.55)] {
        let share = |start: u32| {
            let later = 0.47 + 0.0037 * f64::from(start);
            let r = go(&net, &[("rrtp", 1), (rival, 1)], (20.0, 80.0), (0.1, later), 1);
            let bytes = |i: usize| r.groups[i].flows[0].goodput_bytes as f64;
            bytes(0) / (bytes(0) + bytes(1))
        };
        let mean = (1..=24).map(share).sum::<f64>() / 24.0;
        assert!((0.4..=max).contains(&mean), "{rival}: {mean:.3}");
    }
}

/// The share of the link that `n` flows of rrtp have beside as many of a rival, between two times in seconds, mean of
/// six starts.
fn share(net: &Net, n: usize, rival: &str, span: (f64, f64)) -> f64 {
    let of = |start: u32| {
        let later = 0.11 + 0.0037 * f64::from(start);
        let r = go(net, &[("rrtp", n), (rival, n)], span, (0.1, later), 1);
        let bytes =
            |i: usize| r.groups[i].flows.iter().map(|f| f.goodput_bytes as f64).sum::<f64>();
        bytes(0) / (bytes(0) + bytes(1))
    };
    (1..=6).map(of).sum::<f64>() / 6.0
}

/// With a queue of one BDP four of them take a share from neither TCP with SACK nor CUBIC.
/// Delays beyond the base RTT that no lower rate shortens are no queue: a sender that drained them would fall to a few
/// packets.
#[test]
fn jitter_beyond_the_base_rtt_leaves_the_link_filled() {
    let net = Net { bps: 50e6, ms: 20.0, queue: 250_000, loss: "none", packet: 1500 };
    for seed in 1..=10 {
        let mut spec = spec(&net, &[("rrtp", 1)], (5.0, 25.0), (0.0, 0.0), seed);
        let link = std::sync::Arc::make_mut(&mut spec.links[0].config);
        link.impairments.jitter = Duration::from_millis(20);
        link.impairments.jitter_form =
            JitterForm { distribution: Distribution::Normal, ..JitterForm::default() };
        let result = run(&spec, &mut |_| true).unwrap();
        let used = result.groups[0].flows[0].goodput_bytes as f64 * 8.0 / 20.0 / net.bps;
        assert!(used > 0.6, "seed {seed}: {used}");
    }
}

#[test]
fn four_beside_four_have_half() {
    let net = Net { bps: 10e6, ms: 20.0, queue: 50_000, loss: "none", packet: 1500 };
    for rival in ["sack", "cubic"] {
        let share = share(&net, 4, rival, (30.0, 60.0));
        assert!((0.4..=0.65).contains(&share), "{rival}: {share:.3}");
    }
}

#[test]
fn lasthop_mode_fills_a_dedicated_channel() {
    for (net, seconds, min) in [(I, 30.0, 0.93), (III, 60.0, 0.88)] {
        let (goodput, offered, _) = alone("rrtp-lasthop", &net, seconds);
        assert!(goodput >= min && offered <= 1.06, "{}: {goodput:.4} {offered:.4}", net.bps);
    }
}

/// The first packet of a recovery meets the queue that caused the loss, and is often dropped. When that counted as
/// another loss, Reno's window fell to a quarter five times of six and 0.86 of this link was filled.
#[test]
fn a_queue_that_overflows_halves_the_window_once() {
    let net = Net { bps: 10e6, ms: 20.0, queue: 50_000, loss: "none", packet: 1500 };
    let (goodput, offered, delay) = alone("rrtp+reno", &net, 20.0);
    let what = format!("{goodput:.4} {offered:.4} {delay:.2} ms");
    assert!(goodput > 0.93 && offered < 1.06 && delay > 18.0, "{what}");
}

/// The mean over start times and orders, since a single run scatters by some hundredths. Four Renos that halve
/// FlightSize without the segments of limited transmit (RFC 5681) keep a third instead of two fifths.
#[test]
fn a_clean_link_is_shared_with_reno_and_cubic() {
    let net = Net { bps: 10e6, ms: 20.0, queue: 50_000, loss: "none", packet: 1500 };
    for (rival, n) in [("sack", 1), ("cubic", 1), ("sack", 4), ("cubic", 4)] {
        let mut shares = Vec::new();
        for apart in [0.31, 0.39, 0.47, 0.55, 0.63, 0.71, 0.8, 0.88] {
            let ours_first = shares.len() % 2 == 0;
            let own_flows = ("rrtp", n);
            let rival_flows = (rival, n);
            let groups =
                if ours_first { [own_flows, rival_flows] } else { [rival_flows, own_flows] };
            let r = go(&net, &groups, (20.0, 80.0), (0.1, apart), 1);
            let bytes = |i: usize| r.groups[i].flows.iter().map(|f| f.goodput_bytes).sum::<u64>();
            let sum = (bytes(0) + bytes(1)) as f64;
            shares.push(bytes(usize::from(!ours_first)) as f64 / sum);
            assert!(sum * 8.0 / 60.0 > 0.94 * net.bps, "{n} {rival}: the link is full");
        }
        let share = shares.iter().sum::<f64>() / shares.len() as f64;
        let max = if (rival, n) == ("sack", 4) { 0.68 } else { 0.6 };
        assert!((0.4..=max).contains(&share), "{n} {rival}: {share:.3}, {shares:.3?}");
    }
}

/// A queue of four BDPs: with an increase of a packet per round trip CUBIC takes three quarters. CUBIC leaves Reno a
/// quarter. A sender that gets half beside one gets more beside the other, and rrtp less than that.
#[test]
fn behind_a_deep_queue_cubic_does_not_take_it_all() {
    let net = Net { bps: 10e6, ms: 20.0, queue: 200_000, loss: "none", packet: 1500 };
    let share = |rival| {
        let mut sum = 0.0;
        for k in 0..10 {
            let own_flows = ("rrtp", 1);
            let rival_flows = (rival, 1);
            let groups =
                if k % 2 == 0 { [own_flows, rival_flows] } else { [rival_flows, own_flows] };
            let apart = 0.47 + 0.031 * f64::from(k / 2);
            let r = go(&net, &groups, (20.0, 140.0), (0.1, apart), 1);
            let bytes = |i: usize| r.groups[i].flows[0].goodput_bytes as f64;
            sum += bytes((k % 2) as usize) / (bytes(0) + bytes(1)) / 10.0;
        }
        sum
    };
    let cubic = share("cubic");
    let reno = share("sack");
    // 0.42 if it begins first, 0.35 if it begins half a second later: a sender that detects competitors begins with its
    // present flight, and CUBIC remembers its window of that time for two minutes.
    assert!((0.35..=0.6).contains(&cubic), "beside CUBIC {cubic:.3}");
    assert!((0.4..=0.72).contains(&reno), "beside Reno {reno:.3}");
}

#[test]
fn thirty_share_alike_whatever_the_radio_loses() {
    let wireless = |loss| Net { bps: 11e6, ms: 5.0, queue: 150_000, loss, packet: 1500 };
    let wired = Net { bps: 100e6, ms: 20.0, queue: 500_000, loss: "none", packet: 1500 };
    for net in [wireless("none"), wireless("1%"), wireless("5%"), wired] {
        let jain = |apart: f64| {
            let r = go(&net, &[("rrtp", 30)], (10.0, 60.0), (0.0, apart), 1);
            let x: Vec<f64> = r.groups[0].flows.iter().map(|f| f.goodput_bytes as f64).collect();
            let sum: f64 = x.iter().sum();
            sum * sum / 30.0 / x.iter().map(|v| v * v).sum::<f64>()
        };
        let mut runs = [0.09, 0.1, 0.11].map(jain);
        runs.sort_by(f64::total_cmp);
        // The medians are above 0.95, but 0.93 on the wired link.
        assert!(runs[0] >= 0.8 && runs[1] >= 0.9, "{} bit/s, {}: {runs:.4?}", net.bps, net.loss);
    }
}

/// The classification with known causes: our own queue overflows, a radio link loses.
#[test]
fn spike_is_right_about_most_losses() {
    let classifier_counts = |protocol, net: &Net| {
        let r = go(net, &[(protocol, 1)], (0.0, 30.0), (0.0, 0.0), 1);
        r.groups[0].flows[0].classifier_counts.unwrap()
    };
    // Reno's window under a stream: every loss of a clean link is the queue's.
    let clean = classifier_counts("rrtp+reno(classifier=spike)", &Net { loss: "none", ..I });
    assert!(clean.congestion > 50 && clean.radio == 0, "{clean:?}");
    assert!(clean.congestion_judged_radio * 20 < clean.congestion, "{clean:?}");
    let lossy = classifier_counts("rrtp", &I);
    assert!(lossy.radio > 300 && lossy.congestion_judged_radio == 0, "{lossy:?}");
    assert!(lossy.radio_judged_congestion * 10 < lossy.radio, "{lossy:?}");
}

/// Flows that begin within one round trip each find the link free between the trains of the others. If each sent a
/// whole BDP then, thirty on 100 Mbit/s would lose 10000 packets in the first 1.5 seconds, in which the link sends
/// 12000. Twenty on a path with a BDP of 2500 packets collide only as their flights become longer.
#[test]
fn flows_that_begin_together_share_the_opening() {
    let lost = |ms: f64, flows: usize, end: f64| {
        let queue = (100e6 / 8.0 * 2e-3 * ms) as u64;
        let net = Net { bps: 100e6, ms, queue, loss: "none", packet: 1500 };
        let stagger = 2e-3 * ms / flows as f64;
        let result = go(&net, &[("rrtp", flows)], (0.0, end), (0.0, stagger), 1);
        result.groups[0].flows.iter().map(|f| f.lost_packets).sum::<u64>()
    };
    let thirty = lost(45.0, 30, 1.5);
    assert!(thirty < 2000, "{thirty}");
    let twenty = lost(150.0, 20, 3.0);
    assert!(twenty < 2500, "{twenty}");
}

/// The acknowledgements of four TCP downloads fill a return path of 1/50 of the rate twice over, and one of 1/300 ten
/// times, and the queue drops rrtp's few reports at the same ratio.
#[test]
fn cross_traffic_acks_leave_part_of_a_slow_return_path() {
    let net = Net { bps: 20e6, ms: 25.0, queue: 125_000, loss: "none", packet: 1500 };
    for (back, min) in [(400e3, 0.03), (60e3, 0.06)] {
        let share = |n: u32| {
            let groups = [("rrtp", 1), ("cubic", 4)];
            let apart = 0.05 + 0.0037 * f64::from(n);
            let mut spec = spec(&net, &groups, (0.0, 30.0), (0.1, apart), 1);
            let mut way = LinkConfig::plain(Rate::from_bps_f64(back), Duration::from_millis(25));
            way.queue = QueueConfig { limit: QueueLimit::Packets(10), aqm: None };
            spec.links[1] = LinkSpec { name: "back".into(), config: way.into(), metered: true };
            let r = run(&spec, &mut |_| true).unwrap();
            r.groups[0].flows[0].goodput_bytes as f64 * 8.0 / 30.0 / net.bps
        };
        let mean = (0..10).map(share).sum::<f64>() / 10.0;
        assert!(mean >= min, "{back} bit/s back: {mean:.3}");
    }
}

/// An upload fills the return path, so reports come late by many round trips. If a probe could send no more packets than
/// arrive, the download would keep about the rate at which its startup ended, a third of the link.
#[test]
fn a_download_finds_its_rate_beside_an_upload() {
    let net = Net { bps: 100e6, ms: 10.0, queue: 250_000, loss: "none", packet: 1500 };
    let mut spec = spec(&net, &[("rrtp", 1), ("cubic", 1)], (0.0, 30.0), (0.0, 0.0), 1);
    let mut way = LinkConfig::plain(Rate::from_bps_f64(5e6), Duration::from_millis(10));
    way.queue = QueueConfig { limit: QueueLimit::Packets(200), aqm: None };
    spec.links[1] = LinkSpec { name: "back".into(), config: way.into(), metered: true };
    let upload = &mut spec.groups[1].flows[0];
    std::mem::swap(&mut upload.forward, &mut upload.back);
    let r = run(&spec, &mut |_| true).unwrap();
    let share = r.groups[0].flows[0].goodput_bytes as f64 * 8.0 / 30.0 / net.bps;
    assert!(share >= 0.5, "{share:.3}");
}

/// A fifth of the packets is lost, and all of them in fades. A controller with a timer of its own may then have lost all
/// that is in flight, probes included, with no window or rate left: the transfer must end all the same.
#[test]
fn a_transfer_ends_whatever_is_lost() {
    let bps = 70e3;
    let ms = 200.0;
    let loss = "fade(bad=1s,good=20s) + 20%";
    let net = Net { bps, ms, queue: 16_000, loss, packet: 576 };
    for protocol in ["tear-reliable", "rrtp+tfrc", "rrtp+tfwc", "rrtp+rap", "rrtp"] {
        for seed in 1..=150 {
            let mut spec = spec(&net, &[(protocol, 1)], (0.0, 900.0), (0.0, 0.0), seed);
            let size = Spec::parse("transfer(size=100kB)").unwrap();
            spec.groups[0].source = SourceSpec::read(&size).unwrap();
            let done = run(&spec, &mut |_| true).unwrap().groups[0].flows[0].done;
            assert!(done.is_some(), "{protocol}, seed {seed}");
        }
    }
}
