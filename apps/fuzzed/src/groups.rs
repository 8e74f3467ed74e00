//! Packets to groups of `narrows media --multicast`: no panic, packets are decoded and encoded unchanged, and a
//! receiver delivers no more than arrived.

use narrows_base::{Duration, Time};
use narrows_media::group_packet::{read_packet, write};
use narrows_media::group_receiver::GroupReceiver;
use std::net::IpAddr;

/// Runs one input.
pub fn run(bytes: &[u8]) {
    if let Some((head, message)) = read_packet(&mut bytes.to_vec()) {
        assert_eq!(write(&head, message.to_vec()), bytes);
    }
    listen(bytes);
}

/// The input as packets of two senders, each after its length and the milliseconds before it.
fn listen(mut bytes: &[u8]) {
    let mut receiver = GroupReceiver::new(Duration::from_millis(100), Duration::from_millis(100));
    let mut now = Time::ZERO;
    let mut received = 0;
    let mut out = 0;
    while let [length, pause, rest @ ..] = bytes {
        let (packet, rest) = rest.split_at(rest.len().min((*length).into()));
        bytes = rest;
        received += packet.len();
        now += Duration::from_millis((*pause).into());
        let from = IpAddr::from([10, 0, 0, u8::from(*pause == 255)]);
        receiver.on_packet(now, from, &mut packet.to_vec());
        receiver.on_timeout(now);
        while let Some((_, datagram)) = receiver.release(now) {
            out += datagram.len();
        }
        assert!((1..=8).contains(&receiver.level()));
    }
    while let Some((_, datagram)) = receiver.release(now + Duration::from_secs(60)) {
        out += datagram.len();
    }
    assert!(out <= received);
}
