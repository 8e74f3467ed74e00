//! Properties of a connection, over the small network of `pair_tests`.

use super::pair_tests::{Net, Pair, config};
use super::{Closed, Connection, ConnectionEvent, MessageError};
use crate::streams::{Read, Side, StreamEvent};
use narrows_base::{Duration, Rate};
use narrows_congestion::PathHints;

#[test]
fn bytes_arrive_as_they_were_whatever_the_network_does() {
    for protocol in ["rrtp+cubic", "rrtp+bbr", "tear-reliable", "rrtp+stpd", "rrtp+tfrc"] {
        for seed in 0..6 {
            let net = Net { loss: 0.03, twice: 0.03, late: 0.05, ..Net::good() };
            let mut pair = Pair::new(&config(protocol), net, seed);
            for from in [Side::Client, Side::Server] {
                let took = pair.transfer(from, 400_000, 120.0);
                assert!(took.is_some(), "{protocol} seed {seed} from {from:?}");
            }
            let refused = pair.server.stats().refused;
            assert!(refused > 0, "copies are refused");
        }
    }
}

#[test]
fn clean_link_is_filled_with_large_packets() {
    let net = Net { queue: 1_000_000, ..Net::good() };
    let mut pair = Pair::new(&config("rrtp+bbr"), net, 1);
    let bytes = 10_000_000u64;
    let took = pair.transfer(Side::Client, bytes, 60.0).unwrap().as_secs_f64();
    let goodput = bytes as f64 * 8.0 / took / 20e6;
    assert!(goodput > 0.85, "{goodput}");
    let stats = pair.client.stats();
    assert_eq!((stats.datagram, stats.counters.lost), (1472, 0), "{stats:?}");
    // A full packet has at most 36 bytes that are no data; the total has little more.
    let overhead = stats.bytes_sent as f64 / bytes as f64;
    assert!(overhead < 1.0 + 36.0 / 1436.0 + 0.005, "{overhead}");
    let learned = pair.client.learned();
    let rate = learned.rate.unwrap().as_bps() as f64;
    assert!((rate / 20e6 - 1.0).abs() < 0.1, "{rate}");
    assert!(learned.rtt.unwrap() >= Duration::from_millis(40));
    assert!(learned.rtt.unwrap() < Duration::from_millis(42), "{learned:?}");
    // A report covers the arrivals of 1/32 RTT: two to three packets here.
    let reports = pair.log.iter().filter(|l| l.1 == Side::Server).count();
    assert!(reports < 7000 * 2 / 5, "{reports}");
}

/// The first packet is a full one, so that its RTT is the path's on a slow link, too. A small packet, which is
/// transmitted sooner, never sets a smaller RTT.
#[test]
fn small_packets_set_no_smallest_round_trip() {
    let slow = Net { rate: Rate::from_bps(144_000), queue: 20_000, ..Net::good() };
    let mut pair = Pair::new(&config("rrtp+cubic"), slow, 1);
    for _ in 0..20 {
        pair.transfer(Side::Client, 10, 5.0).unwrap();
    }
    let first = pair.log.iter().find(|l| l.1 == Side::Client).unwrap();
    assert_eq!(first.2, 1200);
    // Propagation takes 40 ms in both directions together, and the transmission of 1228 bytes takes 68 ms.
    let least = pair.client.stats().min_rtt.as_secs_f64();
    assert!(least > 0.1, "{least}");
}

/// The spacing of four packets that leave together reveals the path's rate, so the pacer must not space them before.
#[test]
fn the_first_flight_leaves_together() {
    let mut pair = Pair::new(&config("rrtp"), Net::good(), 1);
    pair.transfer(Side::Client, 3000, 5.0).unwrap();
    let data: Vec<_> = pair.log.iter().filter(|l| l.1 == Side::Client && l.2 > 500).collect();
    assert!(data.len() >= 4, "{data:?}");
    assert_eq!(data[1].0, data[3].0, "{data:?}");
}

/// The receiver's classification reaches the sender in sealed reports. Without a queue every loss is attributed to the
/// radio link.
#[test]
fn radio_losses_are_told_apart_over_the_wire() {
    let net = Net { loss: 0.02, queue: 1_000_000, ..Net::good() };
    let mut pair = Pair::new(&config("rrtp"), net, 1);
    pair.transfer(Side::Client, 5_000_000, 60.0).unwrap();
    let stats = pair.client.stats();
    let share = stats.radio_losses as f64 / stats.counters.lost as f64;
    assert!(stats.counters.lost > 30 && share > 0.5, "{share} of {}", stats.counters.lost);
}

/// The loss rate stored for a path is its own, within four standard deviations of the sample. This holds over fast and
/// slow links, with queues of 0.2 and 5 BDP, for any controller. If the queue is hardly ever short, no loss rate is
/// stored.
#[test]
fn the_loss_that_is_remembered_is_the_paths() {
    let cases = [("rrtp", 0.2), ("rrtp", 5.0), ("rrtp+cubic", 5.0), ("rrtp+bbr", 2.0)];
    for (bps, ms) in [(20_000_000, 20), (20_000_000, 1), (8_000_000, 150)] {
        for loss in [0.009, 0.04] {
            for (protocol, products) in cases {
                for seed in 1..=2 {
                    let product = bps as f64 / 8.0 * 0.002 * ms as f64;
                    let net = Net {
                        loss,
                        rate: Rate::from_bps(bps),
                        delay: Duration::from_millis(ms),
                        queue: (product * products) as u64 + 15_000,
                        ..Net::good()
                    };
                    let mut pair = Pair::new(&config(protocol), net, seed);
                    pair.transfer(Side::Client, 6_000_000, 600.0).unwrap();
                    let what =
                        format!("{protocol}, {bps} bit/s, {ms} ms, {products}, {loss}, {seed}");
                    let told = pair.client.path.sender.losses_at_short_queue().1 as f64;
                    let Some(known) = pair.client.learned().loss else {
                        assert!(protocol != "rrtp" && told < 200.0, "{what}: nothing is said");
                        continue;
                    };
                    let deviation = (loss * (1.0 - loss) / told).sqrt();
                    assert!((known - loss).abs() < 4.0 * deviation, "{what}: {known} of {told}");
                }
            }
        }
    }
}

/// Drops by a full queue are no loss of the path itself.
#[test]
fn queue_drops_are_not_stored_as_the_paths_loss() {
    for protocol in ["rrtp+cubic", "rrtp+reno"] {
        let mut pair = Pair::new(&config(protocol), Net::good(), 1);
        pair.transfer(Side::Client, 10_000_000, 120.0).unwrap();
        let lost = pair.client.stats().counters.lost;
        let loss = pair.client.learned().loss;
        assert!(lost > 20 && loss.is_none_or(|l| l < 0.0005), "{protocol}: {lost} lost: {loss:?}");
    }
}

#[test]
fn a_close_tells_why_once_and_both_ends_forget() {
    let mut pair = Pair::new(&config("rrtp+cubic"), Net::good(), 1);
    pair.run_for(1.0);
    let now = pair.now;
    pair.client.close(now, 300, "enough\u{7}\u{202e}!");
    pair.client.close(now, 301, "again");
    pair.run_for(5.0);
    let reason = r"enough\u{7}\u{202e}!".to_string();
    assert_eq!(pair.closed(Side::Client), Some(&Closed::Locally));
    assert_eq!(pair.closed(Side::Server), Some(&Closed::ByPeer { code: 300, reason }));
    assert!(pair.client.is_drained() && pair.server.is_drained());
    assert!(pair.client.open(false).is_none() && pair.client.event().is_none());
}

#[test]
fn a_close_tells_everything_that_came_until_then() {
    // At any time of closing, also while packets wait for their report.
    for step in 0..40 {
        let mut pair = Pair::new(&config("rrtp+cubic"), Net::good(), 1);
        pair.run_for(1.0);
        let id = pair.server.open(true).unwrap();
        pair.server.write(id, &[1; 1_000_000]).unwrap();
        pair.run_for(0.15 + f64::from(step) * 0.000_13);
        let now = pair.now;
        pair.client.close(now, 256, "");
        let mut came = 0;
        let mut piece = [0; 4096];
        while let Ok(Read::Bytes(count)) = pair.client.read(id, &mut piece) {
            came += count as u64;
        }
        pair.run_for(5.0);
        assert!(matches!(pair.closed(Side::Server), Some(Closed::ByPeer { code: 256, .. })));
        assert!(came > 30_000 && came < 1_000_000, "{came}");
        assert_eq!(pair.server.stats().bytes_arrived, came, "closed at {now:?}");
    }
}

#[test]
fn lost_close_is_repeated_while_the_peer_sends() {
    let mut pair = Pair::new(&config("rrtp+cubic"), Net::good(), 1);
    pair.run_for(1.0);
    let id = pair.server.open(true).unwrap();
    let data = vec![1; 500_000];
    pair.server.write(id, &data).unwrap();
    pair.run_for(0.05);
    let now = pair.now;
    pair.outage_until = now + Duration::from_nanos(1);
    pair.client.close(now, 256, "");
    pair.run_for(5.0);
    assert!(matches!(pair.closed(Side::Server), Some(Closed::ByPeer { code: 256, .. })));
    let said = pair.log.iter().filter(|l| l.0 >= now && l.1 == Side::Client).count();
    assert!((2..6).contains(&said), "{said}");
}

#[test]
fn forged_replayed_and_tampered_packets_change_no_state() {
    let mut pair = Pair::new(&config("rrtp+cubic"), Net::good(), 1);
    pair.keep = Some(Vec::new());
    pair.transfer(Side::Client, 50_000, 5.0).unwrap();
    pair.run_for(1.0);
    let before = (format!("{:?}", pair.server), pair.server.stats().bytes_received);
    let due = pair.server.next_timeout();
    for (i, mut flying) in pair.keep.take().unwrap().into_iter().enumerate() {
        let now = pair.now;
        let mut copy = flying.bytes.clone();
        let elsewhere = "203.0.113.9:9".parse().unwrap();
        assert!(!pair.server.receive(now, elsewhere, 3, &mut copy), "a replay");
        let place = i * 7 % flying.bytes.len();
        flying.bytes[place] ^= 1 << (i % 8);
        assert!(!pair.server.receive(now, flying.from, 0, &mut flying.bytes), "changed");
        flying.bytes.truncate(i % 40);
        assert!(!pair.server.receive(now, flying.from, 0, &mut flying.bytes), "cut");
    }
    assert!(pair.server.stats().refused > 100);
    assert_eq!((format!("{:?}", pair.server), pair.server.stats().bytes_received), before);
    assert_eq!((pair.server.next_timeout(), pair.server.remote()), (due, pair.client_at));
    pair.transfer(Side::Client, 50_000, 5.0).unwrap();
}

#[test]
fn the_connection_follows_the_client_to_a_new_address() {
    for there in ["192.0.2.1:6000", "203.0.113.7:80"] {
        let mut pair = Pair::new(&config("rrtp+cubic"), Net::good(), 1);
        pair.transfer(Side::Server, 300_000, 10.0).unwrap();
        let there = there.parse().unwrap();
        pair.client_at = there;
        // The client does not notice the change, but has data to send.
        pair.transfer(Side::Client, 1000, 5.0).unwrap();
        pair.run_for(0.2);
        assert_eq!(pair.server.remote(), there);
        assert!(pair.events.contains(&(Side::Server, ConnectionEvent::Moved(there))));
        assert!(pair.transfer(Side::Server, 300_000, 10.0).unwrap() < Duration::from_secs(2));
    }
}

#[test]
fn unvalidated_address_is_neither_followed_nor_flooded() {
    let mut pair = Pair::new(&config("rrtp+cubic"), Net::good(), 1);
    pair.run_for(1.0);
    let here = pair.client_at;
    // An attacker on the path forwards a packet of the client from another address, and drops the client's.
    let id = pair.client.open(true).unwrap();
    pair.client.write(id, &[1; 100]).unwrap();
    let mut buffer = [0; 1500];
    let now = pair.now;
    let t = pair.client.transmit(now, &mut buffer, 1).unwrap();
    let elsewhere = "203.0.113.9:9".parse().unwrap();
    assert!(pair.server.receive(now, elsewhere, 0, &mut buffer[..t.size]));
    let mut sent = 0;
    for _ in 0..100 {
        while let Some(t) = pair.server.transmit(pair.now, &mut buffer, 1) {
            sent += if t.to == elsewhere { t.size } else { 0 };
        }
        let due = pair.server.next_timeout();
        pair.now = due;
        pair.server.on_timeout(due);
    }
    assert!(sent > 0 && sent <= 3 * t.size, "{sent} for {}", t.size);
    assert_eq!(pair.server.remote(), here);
}

#[test]
fn messages_keep_their_bounds_expire_and_are_not_repeated() {
    let mut pair = Pair::new(&config("rrtp+cubic"), Net::good(), 1);
    pair.run_for(1.0);
    let now = pair.now;
    let refused = pair.client.send_message(now, &[0; 1401], Duration::ZERO);
    assert_eq!(refused, Err(MessageError::TooLong { most: 1400 }));
    for i in 0..3u8 {
        let taken = pair.client.send_message(now, &[i; 1000], Duration::from_millis(500));
        assert_eq!(taken, Ok(()));
    }
    pair.run_for(0.2);
    assert_eq!(pair.server.receive_message().as_deref(), Some(&[0; 1000][..]));
    assert!(pair.events.contains(&(Side::Server, ConnectionEvent::Message)));
    // During an outage sent messages are lost and waiting ones expire. No message arrives late.
    while pair.server.receive_message().is_some() {}
    let now = pair.now;
    pair.outage_until = now + Duration::from_secs(5);
    for i in 0..200u8 {
        let taken = pair.client.send_message(now, &[i; 1000], Duration::from_millis(500));
        assert_eq!(taken, Ok(()));
    }
    pair.run_for(10.0);
    assert_eq!(pair.server.receive_message(), None);
    assert!(pair.client.stats().counters.expired > 100);
    // The newest of many waiting messages is sent first.
    pair.client.newest_first(true);
    let now = pair.now;
    for i in 0..100u8 {
        pair.client.send_message(now, &[i; 1000], Duration::ZERO).unwrap();
    }
    pair.run_for(0.03);
    assert_eq!(pair.server.receive_message().map(|m| m[0]), Some(99));
}

/// Senders of MPEG transport streams use 7 × 188 bytes. An idle connection without large packets so far must find that
/// the path carries them. This includes paths of unknown or low rate.
#[test]
fn fitting_message_is_refused_for_one_rtt_only() {
    for (told, mtu) in [(None, 1500), (Some(200_000), 1500), (None, 1400)] {
        let net = Net { mtu, ..Net::good() };
        let hints = PathHints { rate: told.map(Rate::from_bps), ..PathHints::default() };
        let config = super::ConnectionConfig { hints, ..config("rrtp") };
        let mut pair = Pair::new(&config, net, 1);
        pair.run_for(2.0);
        let begun = pair.now;
        assert_eq!(pair.client.max_message_len(), 1200 - 54);
        let refused = pair.client.send_message(begun, &[7; 1316], Duration::ZERO);
        assert_eq!(refused, Err(MessageError::TooLongForPath { most: 1200 - 54 }));
        // After one refusal the search runs without further data.
        while pair.client.max_message_len() < 1316 {
            pair.run_for(0.01);
            assert!(pair.now < begun + Duration::from_secs(2), "for ever, on a path of {mtu}");
        }
        let took = pair.now.since(begun);
        assert!(mtu < 1500 || took < Duration::from_millis(90), "{took:?}");
        assert_eq!(pair.client.send_message(pair.now, &[7; 1316], Duration::ZERO), Ok(()));
        pair.run_for(0.2);
        assert_eq!(pair.server.receive_message().as_deref(), Some(&[7; 1316][..]));
        let sent = pair.log.len();
        pair.run_for(60.0);
        assert!(pair.log.len() - sent < 40, "it is asked for ever");
    }
    // If the path does not carry the message, the error reports that and the search ends.
    let mut pair = Pair::new(&config("rrtp"), Net { mtu: 1300, ..Net::good() }, 1);
    pair.run_for(2.0);
    for _ in 0..3000 {
        let refused = pair.client.send_message(pair.now, &[7; 1316], Duration::ZERO);
        assert!(matches!(refused, Err(MessageError::TooLongForPath { .. })), "{refused:?}");
        pair.run_for(0.01);
    }
    assert!((1225..=1246).contains(&pair.client.max_message_len()));
    assert!(pair.log.len() < 200, "{} packets", pair.log.len());
    while pair.client.send_message(pair.now, &[7; 1000], Duration::ZERO).is_ok() {}
    let full = pair.client.send_message(pair.now, &[7; 1000], Duration::ZERO);
    assert_eq!(full, Err(MessageError::QueueFull));
}

#[test]
fn datagram_size_follows_the_path_and_its_rate() {
    let sizes = |net: Net, hints: PathHints| {
        let config = super::ConnectionConfig { hints, ..config("rrtp+bbr") };
        let mut pair = Pair::new(&config, net, 1);
        let bytes = net.rate.as_bps() / 8 * 5;
        pair.transfer(Side::Client, bytes, 60.0).unwrap();
        pair.client.stats()
    };
    let net = |mtu| Net { mtu, queue: 1_000_000, ..Net::good() };
    assert_eq!(sizes(net(1200), PathHints::default()).datagram, 1200);
    let between = sizes(net(1350), PathHints::default());
    assert!((1334..=1350).contains(&between.datagram), "{}", between.datagram);
    assert_eq!(between.counters.lost, 0, "a probe is no loss");
    let slow = Net { rate: Rate::from_bps(144_000), queue: 8000, ..Net::good() };
    assert_eq!(sizes(slow, PathHints::default()).datagram, 1200);
    let told = PathHints { rate: Some(Rate::from_bps(144_000)), ..PathHints::default() };
    assert_eq!(sizes(slow, told).datagram, 1200);
}

#[test]
fn mtu_black_hole_is_detected_without_closing() {
    let mut pair = Pair::new(&config("rrtp+cubic"), Net::good(), 1);
    pair.transfer(Side::Client, 2_000_000, 20.0).unwrap();
    assert_eq!(pair.client.stats().datagram, 1472);
    pair.net.mtu = 1300;
    let begun = pair.now;
    pair.transfer(Side::Client, 100_000, 30.0).expect("it goes on with small packets");
    assert!(pair.now.since(begun) < Duration::from_secs(3), "{:?}", pair.now.since(begun));
    assert!(pair.client.stats().datagram <= 1300);
}

/// Small messages pass and are acknowledged, so that no PTO expires. The stream's large packets would be repeated as
/// large ones, and lost, for ever.
#[test]
fn a_black_hole_is_found_although_small_packets_pass() {
    let mut pair = Pair::new(&config("rrtp+cubic"), Net::good(), 1);
    pair.transfer(Side::Client, 2_000_000, 20.0).unwrap();
    assert_eq!(pair.client.stats().datagram, 1472);
    pair.net.mtu = 1300;
    let id = pair.client.open(true).unwrap();
    pair.client.write(id, &[7; 100_000]).unwrap();
    for _ in 0..500 {
        pair.client.send_message(pair.now, &[7; 50], Duration::ZERO).unwrap();
        pair.run_for(0.01);
        pair.server.receive_message();
    }
    assert!(pair.client.stats().datagram <= 1300);
}

/// Packets of 1200 bytes passed at first. The sending end closes the connection within seconds, with the reason.
#[test]
fn path_mtu_that_becomes_too_small_closes_with_reason() {
    for from in [Side::Client, Side::Server] {
        for (mtu, protocol) in [(1199, "rrtp"), (600, "rrtp+cubic"), (250, "rrtp+bbr")] {
            let mut pair = Pair::new(&config(protocol), Net::good(), 1);
            pair.transfer(from, 2_000_000, 20.0).unwrap();
            pair.net.mtu = mtu;
            let id = pair.end(from).open(true).unwrap();
            pair.end(from).write(id, &[7; 200_000]).unwrap();
            let begun = pair.now;
            while pair.closed(from).is_none() && pair.now.since(begun) < Duration::from_secs(10) {
                pair.run_for(0.1);
            }
            let why = pair.closed(from);
            assert_eq!(why, Some(&super::Closed::SmallPath { size: 1200 }), "{mtu} {from:?}");
        }
    }
}

/// An outage, and losses of half of the packets, are no small path, however long the connection lasts.
#[test]
fn losses_are_no_small_path() {
    for seed in 0..4 {
        let mut pair = Pair::new(&config("rrtp"), Net { loss: 0.5, ..Net::good() }, seed);
        pair.transfer(Side::Client, 3_000_000, 3000.0).expect("half of the packets pass");
        pair.net = Net { mtu: 0, ..Net::good() };
        pair.transfer(Side::Client, 100_000, 10.0);
        pair.net.mtu = 1500;
        pair.transfer(Side::Client, 100_000, 30.0).expect("the outage is over");
    }
}

/// The sending end closes the connection within seconds, and its CLOSE reaches the other end. At 50% loss, or after an
/// outage of two seconds, the connection continues.
#[test]
fn path_with_too_small_mtu_closes_with_its_reason() {
    for (from, other) in [(Side::Client, Side::Server), (Side::Server, Side::Client)] {
        for mtu in [1199, 600, 250] {
            let mut pair = Pair::new(&config("rrtp"), Net { mtu, ..Net::good() }, 1);
            let id = pair.end(from).open(true).unwrap();
            pair.end(from).write(id, &[7; 200_000]).unwrap();
            pair.run_for(10.0);
            let why = pair.closed(from);
            assert_eq!(why, Some(&super::Closed::SmallPath { size: 1200 }), "{mtu} {from:?}");
            let by_peer =
                matches!(pair.closed(other), Some(super::Closed::ByPeer { code: 11, .. }));
            assert!(by_peer || pair.closed(other) == why, "{:?}", pair.closed(other));
        }
    }
    for seed in 0..20 {
        let mut pair = Pair::new(&config("rrtp"), Net { loss: 0.5, ..Net::good() }, seed);
        pair.transfer(Side::Client, 100_000, 100.0).expect("half of the packets pass");
        let mut pair = Pair::new(&config("rrtp"), Net { mtu: 0, ..Net::good() }, seed);
        pair.transfer(Side::Client, 100_000, 2.0);
        pair.net.mtu = 1500;
        pair.transfer(Side::Client, 100_000, 30.0).expect("the outage is over");
    }
}

#[test]
fn larger_path_mtu_is_found_within_ten_minutes() {
    let patient = super::ConnectionConfig { idle_timeout: Duration::ZERO, ..config("rrtp+cubic") };
    let mut pair = Pair::new(&patient, Net { mtu: 1300, ..Net::good() }, 1);
    pair.transfer(Side::Client, 2_000_000, 20.0).unwrap();
    let before = pair.client.stats().datagram;
    assert!((1285..=1300).contains(&before), "{before}");
    pair.net.mtu = 1500;
    pair.run_for(500.0);
    pair.transfer(Side::Client, 2_000_000, 20.0).unwrap();
    assert_eq!(pair.client.stats().datagram, before);
    pair.run_for(100.0);
    pair.transfer(Side::Client, 2_000_000, 20.0).unwrap();
    assert_eq!(pair.client.stats().datagram, 1472);
}

#[test]
fn slow_link_gets_single_packets_fast_link_batches() {
    let batch = |bps: u64| {
        let hints = PathHints { rate: Some(Rate::from_bps(bps)), rtt: None, loss: None };
        let config = super::ConnectionConfig { hints, ..config("rrtp+bbr") };
        let net = Net {
            rate: Rate::from_bps(bps),
            delay: Duration::from_millis(5),
            queue: 4_000_000,
            ..Net::good()
        };
        let mut pair = Pair::new(&config, net, 1);
        pair.transfer(Side::Client, (bps / 16).min(30_000_000), 30.0).unwrap();
        let late = &pair.log[pair.log.len() / 2..];
        late.iter().filter(|l| l.1 == Side::Client).map(|l| l.3).max().unwrap()
    };
    assert_eq!(batch(3_000_000), 1);
    assert!(batch(1_000_000_000) >= 20);
}

/// Earlier, the pacer computed a packet's delay when the one before left. TEAR, which begins with a packet per second,
/// waited out that second although the first report had raised its rate twenty times.
#[test]
fn a_rate_that_rises_counts_at_once() {
    let mut pair = Pair::new(&config("tear-reliable"), Net::good(), 1);
    let begun = pair.now;
    pair.transfer(Side::Client, 5000, 10.0).unwrap();
    let data = pair.log.iter().filter(|l| l.1 == Side::Client && l.2 > 1000);
    let left: Vec<f64> = data.map(|l| l.0.since(begun).as_secs_f64()).collect();
    assert!(left.len() >= 4 && left[1] < 0.3, "{left:?}");
}

#[test]
fn an_application_may_bound_the_rate() {
    let mut bounded = config("rrtp+cubic");
    bounded.rate_limit = Some(Rate::from_bps(2_000_000));
    let mut pair = Pair::new(&bounded, Net::good(), 1);
    let took = pair.transfer(Side::Client, 1_000_000, 30.0).unwrap().as_secs_f64();
    assert!((4.0..4.6).contains(&took), "{took}");
    pair.client.limit_rate(None);
    let took = pair.transfer(Side::Client, 1_000_000, 30.0).unwrap().as_secs_f64();
    assert!(took < 1.5, "{took}");
}

#[test]
fn a_reset_with_the_right_token_ends_it() {
    let mut pair = Pair::new(&config("rrtp+cubic"), Net::good(), 1);
    pair.client.on_reset(&[8; 16]);
    pair.run_for(1.0);
    assert_eq!(pair.closed(Side::Client), None);
    pair.client.on_reset(&[9; 16]);
    pair.run_for(1.0);
    assert_eq!(pair.closed(Side::Client), Some(&Closed::Reset));
}

#[test]
fn streams_report_their_events() {
    let mut pair = Pair::new(&config("rrtp+cubic"), Net::good(), 1);
    pair.transfer(Side::Client, 1000, 5.0).unwrap();
    pair.run_for(1.0);
    assert!(pair.saw(Side::Server, StreamEvent::Opened));
    assert!(pair.saw(Side::Client, StreamEvent::Arrived(2)));
}

/// Windows without a rate are paced, however many packets a report acknowledges.
#[test]
fn a_window_leaves_no_bursts_on_a_slow_link() {
    for protocol in ["rrtp+cubic", "rrtp+stpd"] {
        let net = Net { rate: Rate::from_bps(3_000_000), queue: 30_000, ..Net::good() };
        let mut pair = Pair::new(&config(protocol), net, 1);
        pair.transfer(Side::Client, 2_000_000, 60.0).unwrap();
        let data: Vec<_> =
            pair.log.iter().filter(|l| l.1 == Side::Client && l.2 > 1000).map(|l| l.0).collect();
        let late = &data[data.len() / 4..];
        let most = late.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap();
        assert!(most <= 3, "{protocol}: {most} packets at once");
    }
}

/// Ten thousand idle connections need little memory.
#[test]
fn a_connection_is_small() {
    let size = std::mem::size_of::<Connection>();
    assert!(size < 6_000, "{size} bytes");
}
