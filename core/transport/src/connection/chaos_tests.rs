//! With random networks and peers, bytes arrive unchanged, or the connection ends with a clear reason.

use super::Connection;
use super::pair_tests::{Net, Pair, beginning, config, keys, params};
use crate::streams::Side;
use narrows_base::{Duration, RandomKey, Rate};

/// Schedules of a usual run. `NARROWS_SCHEDULES=10000` runs more, `NARROWS_SCHEDULE=17` only that one. A failure's
/// message has the number.
const SCHEDULES: u64 = 60;

fn schedules() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    match number("NARROWS_SCHEDULE") {
        Some(one) => one..one + 1,
        None => 0..number("NARROWS_SCHEDULES").unwrap_or(SCHEDULES),
    }
}

#[test]
fn bytes_arrive_whatever_the_schedule() {
    let protocols =
        ["rrtp+cubic", "rrtp+bbr", "rrtp+stpd", "rrtp+westwood+", "rrtp+reno", "rrtp+veno"];
    for seed in schedules() {
        let mut random = RandomKey::from_seed(seed).named("schedule").stream();
        let net = Net {
            delay: Duration::from_micros(500 + random.bits() % 150_000),
            rate: Rate::from_bps(200_000 << (random.bits() % 9)),
            queue: 5_000 << (random.bits() % 6),
            loss: random.unit() * 0.15,
            twice: random.unit() * 0.1,
            late: random.unit() * 0.2,
            damaged: random.unit() * 0.05,
            mtu: 1200 + (random.bits() % 300) as usize,
            ..Net::good()
        };
        let protocol = protocols[(random.bits() % protocols.len() as u64) as usize];
        let mut pair = Pair::new(&config(protocol), net, seed);
        pair.segments = 1 + (random.bits() % 40) as usize;
        for turn in 0..4u16 {
            let from = if random.chance(0.5) { Side::Client } else { Side::Server };
            match random.bits() % 4 {
                0 => {
                    pair.client_at.set_port(6000 + turn);
                    // With a new port, only the client can reach the other end at first.
                    pair.transfer(Side::Client, 2000, 300.0)
                        .unwrap_or_else(|| panic!("seed {seed}: moved, {net:?}"));
                }
                1 => pair.outage_until = pair.now + Duration::from_secs(random.bits() % 25),
                2 => pair.net.mtu = 1200 + (random.bits() % 300) as usize,
                _ => {}
            }
            let bytes = 1 + random.bits() % 60_000;
            pair.transfer(from, bytes, 600.0).unwrap_or_else(|| {
                panic!("seed {seed}: {bytes} from {from:?} in turn {turn}, {protocol}, {net:?}")
            });
        }
        let now = pair.now;
        pair.client.close(now, 256, "done");
        pair.run_for(100.0);
        assert!(pair.client.is_drained() && pair.server.is_drained(), "seed {seed}");
        let quiet = pair.now;
        pair.run_for(10.0);
        assert!(pair.log.iter().all(|l| l.0 <= quiet), "seed {seed}: sends after the end");
    }
}

/// A peer with the keys may send any bytes. At worst they end the connection.
#[test]
fn malformed_frames_of_an_authentic_peer_are_harmless() {
    use narrows_wire::packet::TAG_BYTES;
    let c = config("rrtp+tfrc");
    let mut random = narrows_base::RandomKey::from_seed(1).named("nonsense").stream();
    let mut ended = 0;
    let mut lasted = 0;
    for round in 0..200 {
        let (ours, theirs) = keys(&c, &c);
        let mut hostile = ours.sealer;
        let mut pair = Pair::new(&c, Net::good(), 1);
        let now = pair.now;
        let at = pair.client_at;
        let mut server =
            Connection::new(now, beginning(Side::Server, &c, &params(&c), theirs, at, None));
        let mut out = vec![0; 1500];
        for number in 0..50u64 {
            let size = 8 + TAG_BYTES + 4 + (random.bits() % 60) as usize;
            let mut datagram: Vec<u8> = (0..size).map(|_| random.bits() as u8).collect();
            // Mostly existing frame types, and reports of packets that were sent.
            datagram[8] &= 0x3f;
            if random.chance(0.8) {
                let kinds =
                    [1, 2, 3, 4, 5, 6, 7, 8, 0x10, 0x11, 0x12, 0x13, 0x41, 0x80, 0x89, 0xf3];
                datagram[12] = kinds[(random.bits() % 16) as usize];
                datagram[14] &= 0x0f;
            }
            hostile.seal(number * (1 + round % 3), None, &mut datagram).unwrap();
            pair.now += Duration::from_micros(random.bits() % 3_000_000);
            assert!(server.receive(pair.now, at, (number % 4) as u8, &mut datagram));
            for _ in 0..100 {
                if server.transmit(pair.now, &mut out, 4).is_none() {
                    break;
                }
            }
            while server.event().is_some() {}
            if server.next_timeout() <= pair.now {
                server.on_timeout(pair.now);
            }
        }
        if server.is_open() { lasted += 1 } else { ended += 1 }
    }
    assert!(ended > 50 && lasted + ended == 200, "{ended} {lasted}");
}
