//! Bursts of messages leave in few system calls.

use super::pair_tests::{Net, Pair, config};
use crate::streams::Side;
use narrows_base::{Duration, Rate};
use narrows_congestion::PathHints;

/// Messages of a burst, and bytes of each: several full packets and a shorter one.
const BURST: usize = 64;
const MESSAGE: usize = 100;

/// Both ends send bursts at the same time, so that packets carry reports. A packet with a report is longer than those
/// after it. These must still leave in the same call, with little padding.
#[test]
fn a_burst_of_messages_leaves_in_one_call() {
    let hints = PathHints { rate: Some(Rate::from_bps(1_000_000_000)), ..PathHints::default() };
    let config = super::ConnectionConfig { hints, messages_held: 1000, ..config("rrtp") };
    let net = Net { rate: Rate::from_bps(1_000_000_000), queue: 1_000_000, ..Net::good() };
    let mut pair = Pair::new(&config, net, 1);
    pair.run_for(1.0);
    pair.log.clear();
    let mut received = 0;
    for _ in 0..100 {
        let now = pair.now;
        for _ in 0..BURST {
            pair.client.send_message(now, &[1; MESSAGE], Duration::ZERO).unwrap();
            pair.server.send_message(now, &[2; MESSAGE], Duration::ZERO).unwrap();
        }
        pair.run_for(0.005);
        received += std::iter::from_fn(|| pair.server.receive_message()).count();
    }
    pair.run_for(0.5);
    received += std::iter::from_fn(|| pair.server.receive_message()).count();
    assert_eq!(received, 100 * BURST);
    let of_client = || pair.log.iter().filter(|l| l.1 == Side::Client && l.2 > MESSAGE);
    let calls: f64 = of_client().map(|l| 1.0 / l.3 as f64).sum();
    let bytes: usize = of_client().map(|l| l.2).sum();
    assert!(calls < 130.0, "{calls} calls");
    assert!(bytes < 100 * BURST * MESSAGE * 110 / 100, "{bytes} bytes");
}
