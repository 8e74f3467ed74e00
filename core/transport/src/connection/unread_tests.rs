//! Data that the application never reads, and reports with many ranges. The connection's limits bound memory and work.

use super::pair_tests::{Net, Pair, config};
use crate::streams::Side;
use narrows_base::Duration;

/// Unread messages: the newest are kept, and memory does not grow with their number.
#[test]
fn unread_messages_take_at_most_the_agreed_memory() {
    let ours = config("rrtp");
    let mut pair = Pair::new(&ours, Net::good(), 1);
    let mut memory = Vec::new();
    let mut sent = 0_u64;
    for _ in 0..200 {
        let until = pair.now + Duration::from_millis(100);
        pair.run(until, |pair| {
            let now = pair.now;
            while pair.client.messages_waiting() < 8
                && pair.client.send_message(now, &[7; 1000], Duration::ZERO).is_ok()
            {
                sent += 1;
            }
            false
        });
        memory.push(pair.server.memory());
    }
    assert!(sent > 5000, "{sent} messages: nothing was tried");
    let early = memory[20..60].iter().max();
    let late = memory[60..].iter().max();
    // 16 messages of 1,000 bytes, and the records of packets.
    assert!(*late.unwrap() <= early.unwrap() + 2000, "{memory:?}");
    assert!(*late.unwrap() < 200_000, "{} bytes", late.unwrap());
    let read = std::iter::from_fn(|| pair.server.receive_message()).count();
    assert_eq!(read, 16);
    // Later messages still arrive.
    let now = pair.now;
    pair.client.send_message(now, b"new", Duration::ZERO).unwrap();
    pair.run_for(1.0);
    assert!(std::iter::from_fn(|| pair.server.receive_message()).any(|m| m == b"new"));
    assert!(pair.closed(Side::Server).is_none());
}

/// If every other packet is missing, every report names as many ranges as possible. The sender's work grows with the
/// number of packets plus the number of reports, not with their product.
#[test]
fn reports_of_many_pieces_cost_work_in_proportion_to_packets() {
    let ours = config("rrtp");
    let net = Net { loss: 0.4, swapped: 0.2, ..Net::good() };
    let mut pair = Pair::new(&ours, net, 5);
    assert!(pair.transfer(Side::Client, 3_000_000, 300.0).is_some());
    let packets = pair.log.iter().filter(|l| l.1 == Side::Client).count() as u64;
    let reports = pair.log.iter().filter(|l| l.1 == Side::Server).count() as u64;
    let looked = pair.client.path.sender.packets_looked_at();
    assert!(packets > 3000 && reports > 500, "{packets} packets, {reports} reports");
    // A report names at most 32 pieces.
    assert!(looked <= 2 * packets + 32 * reports, "{looked}: {packets} packets, {reports} reports");
}
