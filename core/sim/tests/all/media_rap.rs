//! RAP through the engine: TCP's algorithm without TCP's window.

use crate::two_links::{group, link, network};
use narrows_base::Duration;
use narrows_link::QueueLimit;
use narrows_sim::run;

/// Share of 10 Mbit/s that one flow sends at an RTT of 40 ms, from 20 s to 120 s.
fn share(protocol: &str, loss: &str) -> f64 {
    let link = |loss| link(1e7, Duration::from_millis(20), QueueLimit::Packets(50), None, loss);
    let group = group("main", protocol, 1000, [0.0]);
    let spec = network([link(loss), link("none")], vec![group], (20.0, 120.0), 5);
    let link = run(&spec, &mut |_| true).unwrap().links.remove(0);
    link.served_bits / link.capacity_bits
}

/// Measured: 27.2 % of the link at 1 % of losses, while SACK has 25.7 %. Alone, before a queue of one BDP, 87.3 %: a
/// halved rate drains the queue and then leaves capacity unused, while a halved window waits for the queue to drain.
#[test]
fn rap_matches_tcp_under_loss_and_nearly_fills_links() {
    let rap = share("rap", "1%");
    let sack = share("sack", "1%");
    assert!((0.9..1.2).contains(&(rap / sack)), "{rap} {sack}");
    let alone = share("rap", "none");
    assert!((0.8..0.95).contains(&alone), "{alone}");
}
