//! Measurements over loopback end, and count all connections.

use super::*;
use narrows_base::Spec;
use narrows_flow::Preset;

fn measured(direction: Direction, connections: usize, amount: Amount) -> SpeedResult {
    let protocol = Protocol::read(&Spec::parse("rrtp").unwrap(), Preset::Rfc, 1500).unwrap();
    let speed = Speed {
        protocol,
        profile: Profile::default(),
        rate_limit: None,
        suite: Suite::Aes256Gcm,
        connections,
        direction,
        cargo: Cargo::Stream,
        amount,
        recorder: None,
    };
    let any = "127.0.0.1:0".parse().unwrap();
    speed.local(any, Ok, &mut |_, _| true).unwrap()
}

/// A client that always found something to read once never looked whether its time was over.
#[test]
fn both_directions_end_with_their_time() {
    for direction in [Direction::Up, Direction::Down] {
        let result = measured(direction, 2, Amount::Time(Duration::from_millis(300)));
        assert!(result.bytes > 0 && result.per_connection.iter().all(|b| *b > 0));
        assert!(result.seconds >= 0.3);
    }
}

/// As many as are opened at the same time, and more that wait for their turn.
#[test]
fn every_connection_of_a_crowd_brings_all_of_its_bytes() {
    let connections = OPENING + 40;
    for direction in [Direction::Up, Direction::Down] {
        let result = measured(direction, connections, Amount::Bytes(20_000));
        assert_eq!(result.per_connection, vec![20_000; connections]);
        assert_eq!(result.bytes, 20_000 * connections as u64);
    }
}
