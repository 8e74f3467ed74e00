use super::incoming::RepairOutcome;
use super::kept::KeptPackets;
use super::*;
use crate::connection::pair_tests::{Flying, Net, Pair, config};
use crate::connection::repair_tests::{Losses, pair};
use crate::connection::{Closed, ConnectionConfig, ConnectionEvent};
use crate::streams::Side;
use narrows_base::{Duration, Time};
use narrows_wire::frame::REPAIR;
use narrows_wire::repair::{add_symbol, bitmap};
use narrows_wire::{Frame, RepairFields};
use std::collections::BTreeSet;

const NOW: Time = Time::from_nanos(1_000_000_000);

#[test]
fn kept_packets_are_bounded_in_number_and_bytes() {
    let mut kept = KeptPackets::default();
    (0..1000).for_each(|n| kept.keep(NOW, n, [&[1; 300], &[2; 200]]));
    assert_eq!(kept.iter().count(), 128);
    assert_eq!(kept.get(999).map(|f| (f.len(), f[0], f[499])), Some((500, 1, 2)));
    assert!(kept.get(871).is_none() && kept.get(872).is_some());
    assert!(kept.memory() < 128 * 500 + 20_000, "{}", kept.memory());
    (1000..2000).for_each(|n| kept.keep(NOW, n, [&[1; 60_000], &[]]));
    assert!(kept.memory() < 210_000, "{}", kept.memory());
    kept.drop_older(NOW + Duration::from_secs(1), Duration::from_millis(900));
    assert!(kept.is_empty());
}

/// A receiver that lacks every tenth packet below 200; `frames` gives the packets' contents.
fn receiver(rtt: Duration) -> RepairDecoder {
    let mut incoming = RepairDecoder::default();
    for n in (0..200).filter(|n| n % 10 != 5) {
        incoming.on_packet(NOW, n, 0, Some(&frames(n)), rtt);
    }
    incoming
}
fn frames(number: u64) -> Vec<u8> {
    vec![number as u8; 20 + (number % 7) as usize]
}
/// Handles a REPAIR in packet 200 that covers these numbers.
fn rebuild(
    incoming: &mut RepairDecoder,
    numbers: &[u64],
    is_new: bool,
    spoil: u8,
) -> RepairOutcome {
    let mut code = Vec::new();
    numbers.iter().for_each(|n| add_symbol(&mut code, &frames(*n)));
    *code.last_mut().unwrap() ^= spoil;
    let (bits, used) = bitmap(numbers.iter().copied()).unwrap();
    let repair = RepairFields { distance: 200 - numbers[0], bitmap: &bits[..used], code: &code };
    incoming.rebuild(200, &repair, |_| is_new)
}

#[test]
fn only_the_missing_packet_is_rebuilt_and_once() {
    let mut incoming = receiver(Duration::ZERO);
    let mut of = |numbers: &[u64]| rebuild(&mut incoming, numbers, true, 0);
    assert_eq!(of(&[190, 192, 193]), RepairOutcome::Nothing, "all came");
    assert_eq!(of(&[185, 190, 195]), RepairOutcome::Nothing, "two are missing");
    assert_eq!(of(&[190, 195, 196]), RepairOutcome::Rebuilt(frames(195)));
    assert_eq!(of(&[191, 195, 197]), RepairOutcome::Nothing, "it is there");
    assert_eq!(of(&[185]), RepairOutcome::Rebuilt(frames(185)), "a repair of one is a copy");
    assert!(incoming.was_rebuilt(195) && !incoming.was_rebuilt(175));
    assert_eq!(rebuild(&mut incoming, &[175], false, 0), RepairOutcome::Nothing, "it came before");
    // A wrong repair is detected, or its content is one that the sender could send anyway.
    assert_eq!(rebuild(&mut incoming, &[174, 175], true, 7), RepairOutcome::Wrong);
    let code = [1; 5];
    let short = RepairFields { distance: 26, bitmap: &[3], code: &code };
    assert_eq!(
        incoming.rebuild(200, &short, |_| true),
        RepairOutcome::Wrong,
        "shorter than one of them"
    );
}

#[test]
fn rare_losses_keep_and_rebuild_no_packets() {
    let mut incoming = RepairDecoder::default();
    for n in (0..1000).filter(|n| n % 100 != 99) {
        incoming.on_packet(NOW, n, 0, Some(&frames(n)), Duration::ZERO);
        assert!(incoming.memory() == 0);
    }
    let code = [1];
    let repair = RepairFields { distance: 101, bitmap: &[1], code: &code };
    assert_eq!(incoming.rebuild(1000, &repair, |_| true), RepairOutcome::Nothing);
    // Skipped numbers are not missing.
    let mut incoming = RepairDecoder::default();
    for n in (0..1000).step_by(2) {
        incoming.on_packet(NOW, n, u64::from(n > 0), Some(&frames(n)), Duration::ZERO);
    }
    assert_eq!(incoming.memory(), 0);
}

/// The number of 200 transfers of 10 kB that took a round trip more than necessary, and the pair.
fn late_transfers(is_repaired: bool, losses: Losses) -> (usize, Pair) {
    let mut pair = pair("rrtp", is_repaired, losses, 1);
    let late = (0..200).filter(|_| {
        let time = pair.transfer(Side::Client, 10_000, 60.0).expect("a transfer ends");
        pair.run_for(0.3);
        time > Duration::from_millis(60)
    });
    (late.count(), pair)
}

/// A single loss at a transfer's end costs no further round trip. Rebuilt packets still count as lost for the sender.
/// Repair packets stay within their budget.
#[test]
fn short_transfers_over_a_link_that_loses_are_faster() {
    let single = || Losses::new(0.1, Duration::ZERO);
    let (without, none) = late_transfers(false, single());
    assert_eq!(none.client.stats().repairs_sent, 0, "the server takes none");
    let (with, pair) = late_transfers(true, single());
    let sent = pair.client.stats();
    let came = pair.server.stats();
    assert!(without > 80 && 4 * with < 3 * without, "{with} {without}");
    let share = sent.repair_bytes as f64 / sent.bytes_sent as f64;
    assert!(sent.repairs_sent > 100 && share < 0.14, "{sent:?}");
    assert!(came.rebuilt > 50, "{came:?}");
    assert!(sent.counters.lost >= came.rebuilt, "a rebuilt packet is a lost one: {sent:?}");
    assert!(pair.events.iter().all(|(_, e)| !matches!(e, ConnectionEvent::Closed(_))));
}

#[test]
fn losses_in_bursts_make_no_more_transfers_late_with_repair() {
    let bursts = || Losses::new(0.1, Duration::from_millis(2));
    let without = late_transfers(false, bursts()).0;
    let with = late_transfers(true, bursts()).0;
    assert!(without > 20 && with <= without, "{with} {without}");
}

/// On a clean path, one with 1% loss, and one with queue overflow, no repair packet is sent and no copy kept.
#[test]
fn rare_losses_or_full_queue_send_no_repairs() {
    for (protocol, queue, loss) in
        [("rrtp", 125_000, 0.0), ("rrtp", 125_000, 0.01), ("rrtp+cubic", 20_000, 0.0)]
    {
        let mut pair = Pair::new(&config(protocol), Net { queue, ..Net::good() }, 3);
        pair.losses = Some(Losses::new(loss, Duration::ZERO));
        for _ in 0..20 {
            pair.transfer(Side::Client, 300_000, 60.0).expect("a transfer ends");
            let stats = pair.client.stats();
            assert_eq!(stats.repair_bytes, 0, "{protocol} {queue} {loss}: {stats:?}");
        }
        let stats = pair.client.stats();
        assert!((loss == 0.0 && queue > 100_000) || stats.counters.lost > 0, "{stats:?}");
        for side in [Side::Client, Side::Server] {
            let kept = pair.end(side).repairs.as_ref().expect("both take repairs").memory();
            let is_clean = loss == 0.0 && queue > 100_000;
            assert!(!is_clean || kept == size_of::<Repairs>(), "{kept}");
        }
    }
}

/// Packets arrive late, twice and after their repair. Each message is delivered once.
#[test]
fn rebuilt_packet_is_delivered_once() {
    let net = Net { loss: 0.08, late: 0.3, twice: 0.05, swapped: 0.05, ..Net::good() };
    let config = ConnectionConfig { messages_held: 1000, ..config("rrtp") };
    let mut pair = Pair::new(&config, net, 5);
    pair.transfer(Side::Client, 2_000_000, 60.0).expect("the first transfer ends");
    let mut seen = BTreeSet::new();
    for n in 0..4000u32 {
        let now = pair.now;
        let _ = pair.client.send_message(now, &n.to_be_bytes().repeat(50), Duration::ZERO);
        if n % 4 == 3 {
            pair.run_for(0.01);
        }
        while let Some(message) = pair.server.receive_message() {
            assert_eq!(message.len(), 200);
            assert!(seen.insert(message.to_vec()), "{:?} came twice", &message[..4]);
        }
    }
    let came = pair.server.stats();
    assert!(came.rebuilt > 20 && seen.len() > 3600, "{came:?} {}", seen.len());
    pair.transfer(Side::Client, 100_000, 60.0).expect("neither end broke a rule");
}

/// How the server ends after a REPAIR with this content.
fn after_repair(server: &str, body: &[u8]) -> Option<Closed> {
    let mut pair = Pair::of(&config("rrtp"), &config(server), Net::good(), 1);
    pair.transfer(Side::Client, 10_000, 10.0).expect("a transfer ends");
    let now = pair.now;
    let mut buffer = [0; 1200];
    let frame = Frame::Extension { kind: REPAIR, body };
    let size = pair.client.seal_not_in_flight(now, &mut buffer, &frame).expect("it fits");
    let from = pair.client_at;
    let to = pair.server_at;
    let bytes = buffer[..size].to_vec();
    assert!(pair.hand(Flying { from, to, ecn: 0, bytes }));
    pair.run_for(1.0);
    pair.closed(Side::Server).cloned()
}

#[test]
fn malformed_repair_ends_connection_and_unnegotiated_one_is_skipped() {
    let itself = [1, 1, 0b10, 0, 1];
    let closed = after_repair("rrtp", &itself);
    assert!(matches!(closed, Some(Closed::Fault { code: 1, .. })), "{closed:?}");
    assert_eq!(
        after_repair("rrtp", &[1, 1, 0b1, 0, 1]),
        None,
        "what is not missing is not rebuilt"
    );
    assert_eq!(after_repair("rrtp(repair=off)", &itself), None);
}
