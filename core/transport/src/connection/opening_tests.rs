//! Cost of a transfer's startup, by the hints on the path and their source.

use super::ConnectionConfig;
use super::pair_tests::{Net, Pair, config};
use crate::streams::{FlowControlLimits, Side};
use narrows_base::{Duration, Rate};
use narrows_congestion::{HintSource, PathHints};

/// Links without losses and with a queue of one BDP: rate, one-way delay in ms, and the permitted round trips for each
/// kind of startup.
const PATHS: [(&str, u64, u64, [f64; 6]); 3] = [
    ("link ii and geo, 1.5 Mbit/s, 250 ms", 1_500_000, 250, [4.1, 2.2, 1.7, 1.7, 1.2, 1.3]),
    ("20 Mbit/s, 300 ms", 20_000_000, 300, [7.4, 3.5, 1.8, 1.8, 1.4, 1.1]),
    ("20 Mbit/s, 25 ms", 20_000_000, 25, [4.1, 1.5, 1.1, 1.1, 1.1, 0.9]),
];

/// Round trips that a transfer of twelve BDPs takes beyond the transmission and propagation of its bytes.
fn lost_round_trips(from: Side, (rate, ms): (u64, u64), source: Option<HintSource>) -> f64 {
    let rate = Rate::from_bps(rate);
    let delay = Duration::from_millis(ms);
    let rtt = 2.0 * delay.as_secs_f64();
    let product = rate.as_bps() as f64 / 8.0 * rtt;
    let net = Net { rate, delay, queue: product as u64 + 3000, ..Net::good() };
    let hints = PathHints { rate: Some(rate), rtt: Some(delay + delay), loss: None };
    let config = ConnectionConfig {
        hints: if source.is_some() { hints } else { PathHints::default() },
        hint_source: source.unwrap_or_default(),
        limits: FlowControlLimits { data: 1 << 26, stream: 1 << 26, both: 16, one_way: 16 },
        send_buffer: 1 << 24,
        turn_bytes: 0,
        ..config("rrtp")
    };
    let mut pair = Pair::new(&config, net, 1);
    let bytes = (product * 12.0) as u64;
    let took = pair.transfer(from, bytes, 600.0).unwrap().as_secs_f64();
    // The largest datagrams have 36 bytes that are no data, and 28 of IP and UDP headers.
    let least = bytes as f64 * (1500.0 / 1436.0) * 8.0 / rate.as_bps() as f64;
    (took - least) / rtt - 0.5
}

/// The startup costs in `docs/rrtp.md`. A server has no hints, or hints of the peer, of a stored measurement or of the
/// user. A client has the latter two.
#[test]
fn handshake_has_the_documented_cost() {
    use HintSource::{Peer, Stored, User};
    for (name, rate, ms, most) in PATHS {
        let lost = |from, source| lost_round_trips(from, (rate, ms), source);
        let server = [None, Some(Peer), Some(Stored), Some(User)].map(|s| lost(Side::Server, s));
        let client = [Some(Stored), Some(User)].map(|s| lost(Side::Client, s));
        println!("{name}: server {server:.2?}, client {client:.2?}");
        for (lost, most) in server.into_iter().chain(client).zip(most) {
            assert!(lost <= most, "{name}: {lost:.2} round trips, {most} at most");
        }
    }
}
