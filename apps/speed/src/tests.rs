//! Measurements over loopback end, and count all connections.

use super::*;
use crate::client::OPENING;
use narrows_base::{Duration, Rate, Spec};
use narrows_congestion::PathHints;
use narrows_link::LinkConfig;
use narrows_net::Relay;
use narrows_transport::Protocol;
use narrows_transport::endpoint::{Clients, ServerKey};
use std::net::SocketAddr;

fn measured(direction: SpeedDirection, connections: usize, amount: Amount) -> SpeedResult {
    measured_with(TrafficKind::Stream, direction, connections, amount)
}

fn measured_with(
    traffic: TrafficKind,
    direction: SpeedDirection,
    connections: usize,
    amount: Amount,
) -> SpeedResult {
    let protocol = Protocol::rrtp();
    let speed = Speed { connections, direction, traffic, ..Speed::new(protocol, amount) };
    let any = "127.0.0.1:0".parse().unwrap();
    speed.local(any, Ok, &mut |_, _| true).unwrap()
}

/// The result of the first of these times within which the machine transfers anything on each connection.
fn measured_in_time(
    traffic: TrafficKind,
    direction: SpeedDirection,
    connections: usize,
) -> SpeedResult {
    let results = [300, 3000, 30_000].into_iter().map(|ms| {
        let time = Duration::from_millis(ms);
        let result = measured_with(traffic, direction, connections, Amount::Time(time));
        assert!(result.seconds >= time.as_secs_f64(), "{result:?}");
        result
    });
    let mut results = results.skip_while(|r| r.bytes == 0 || r.per_connection.contains(&0));
    results.next().expect("no bytes in 30 s")
}

/// Each message has seven packets of an MPEG transport stream, as their senders use.
#[test]
fn messages_may_exceed_the_smallest_path_mtu() {
    let result = measured_in_time(TrafficKind::Messages(1316), SpeedDirection::Up, 1);
    assert!(result.messages > 0 && result.bytes.is_multiple_of(1316), "{result:?}");
}

/// A megabyte of messages is accepted at once and sent over seconds: neither end closes before.
#[test]
fn all_messages_leave_before_the_end() {
    let protocol = Protocol::rrtp();
    let speed = Speed {
        traffic: TrafficKind::Messages(1000),
        ..Speed::new(protocol, Amount::Bytes(200_000))
    };
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let link = LinkConfig::plain(Rate::from_bps(2_000_000), Duration::from_millis(10));
    let mut relay = None;
    let through = |server| {
        let started = Relay::bind(any, server, &link, &link, 1)?;
        Ok(relay.insert(started).local_addr())
    };
    let result = speed.local(any, through, &mut |_, _| true).unwrap();
    assert_eq!((result.bytes, result.messages), (200_000, 200), "{result:?}");
}

/// A client that always found something to read once never looked whether its time was over.
#[test]
fn both_directions_end_with_their_time() {
    for direction in [SpeedDirection::Up, SpeedDirection::Down] {
        measured_in_time(TrafficKind::Stream, direction, 2);
    }
}

/// As many connections as are opened at the same time, and more that wait for their turn.
#[test]
fn every_connection_of_a_crowd_brings_all_of_its_bytes() {
    let connections = OPENING + 40;
    for direction in [SpeedDirection::Up, SpeedDirection::Down] {
        let result = measured(direction, connections, Amount::Bytes(20_000));
        assert_eq!(result.per_connection, vec![20_000; connections]);
        assert_eq!(result.bytes, 20_000 * connections as u64);
    }
}

/// The controller without limits is for probes only: a measurement cannot make the server send with it.
#[test]
fn the_controller_of_probes_is_for_probes_only() {
    let label = "rrtp+fixed(rate=10Gbit/s,repair=off)";
    let protocol = label.parse::<Protocol>().unwrap();
    let speed = |protocol: &Protocol| Speed {
        direction: SpeedDirection::Down,
        ..Speed::new(protocol.clone(), Amount::Bytes(100_000))
    };
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let usual = Protocol::rrtp();
    let key = narrows_net::endpoint::new_key().unwrap();
    let config = speed(&usual).config();
    let public = *key.public();
    let server = SpeedServer::start(any, key, Clients::Any, config, None).unwrap();
    let run = |protocol: &Protocol| {
        speed(protocol).run(&[server.local_addr()], ServerKey::Is(public), None, &mut |_, _| true)
    };
    assert!(run(&usual).is_ok());
    let refused = run(&protocol).unwrap_err();
    assert!(refused.to_string().contains("for probes"), "{refused}");
}

/// Changed hints reach the controller during the transfer: at the first rate the bytes would take 240 s.
#[test]
fn a_sender_is_told_of_its_path_while_it_sends() {
    let spec = Spec::parse("rrtp+brutal").unwrap();
    let rate = |bps| PathHints { rate: Some(Rate::from_bps(bps)), ..PathHints::default() };
    let speed = Speed {
        hints: rate(100_000),
        reconfigurations: vec![(Duration::from_millis(200), rate(50_000_000))],
        ..Speed::new(Protocol::read(&spec, 1500).unwrap(), Amount::Bytes(3_000_000))
    };
    let any = "127.0.0.1:0".parse().unwrap();
    let result = speed.local(any, Ok, &mut |_, _| true).unwrap();
    assert!(result.bytes == 3_000_000 && result.seconds < 120.0, "{result:?}");
}
