//! Links that reorder: a late packet is no loss, for any controller, and lost ones are still found.

use crate::two_links::{group, link, network};
use narrows_base::Duration;
use narrows_link::QueueLimit;
use narrows_sim::{FlowResult, run};

const BPS: f64 = 20e6;
const SECONDS: f64 = 12.0;
/// Application bytes of a packet over its bytes on the wire.
const SHARE: f64 = 936.0 / 1000.0;

/// One flow on 20 Mbit/s, 25 ms and a queue of 1 BDP, where a quarter of the packets is held back: its result, and the
/// number of packets that the link dropped or lost.
fn held_back(protocol: &str, by_ms: u64, loss: &str, seed: u64) -> (FlowResult, u64) {
    let link = |loss| link(BPS, Duration::from_millis(25), QueueLimit::Bytes(125_000), None, loss);
    let mut there = link(loss);
    there.impairments.reorder = 0.25;
    there.impairments.reorder_by = Duration::from_millis(by_ms);
    let group = group("g", protocol, 1000, [0.0]);
    let spec = network([there, link("none")], vec![group], (0.0, SECONDS), seed);
    let mut result = run(&spec, &mut |_| true).unwrap();
    let link = &result.links[0].groups[0];
    let gone = link.dropped + link.lost;
    (result.groups.remove(0).flows.remove(0), gone)
}

/// With a fixed threshold of three packets each of these has less than a third of the link. The median is tested, since
/// a server cannot decrypt packets that overtake the end of the handshake, which loses the first window.
#[test]
fn links_that_reorder_are_filled() {
    for protocol in ["rrtp", "rrtp+cubic", "rrtp+bbr"] {
        let flows: Vec<_> = (1..=3).map(|seed| held_back(protocol, 10, "none", seed).0).collect();
        let mut bytes: Vec<_> = flows.iter().map(|f| f.goodput_bytes).collect();
        bytes.sort_unstable();
        let share = bytes[1] as f64 * 8.0 / SECONDS / BPS / SHARE;
        assert!(share > 0.90, "{protocol}: {share:.3}");
        for f in &flows {
            let spurious = f.spurious_losses as f64 / f.sent_packets as f64;
            assert!(spurious < 0.01, "{protocol}: {spurious}");
        }
    }
}

/// Every packet that is counted as lost at the end was lost, except for those still in flight.
#[test]
fn packets_counted_lost_were_lost() {
    for (by, loss) in [(10, "none"), (10, "2%"), (25, "1%")] {
        let (flow, gone) = held_back("rrtp+stpd", by, loss, 1);
        assert!(flow.lost_packets <= gone, "{by} ms, {loss}: {} of {gone}", flow.lost_packets);
        assert!(flow.lost_packets + 20 > gone, "{by} ms, {loss}: {} of {gone}", flow.lost_packets);
    }
}
