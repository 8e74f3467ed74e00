//! Peers with keys that break the rules of several paths, and strangers without keys.

use super::super::pair_tests::{beginning, keys, params};
use super::MAX_PATHS;
use super::tests::{Bonded, bonded_config, client_at, link};
use crate::connection::{Closed, Connection, ConnectionEvent};
use crate::streams::Side;
use narrows_base::{Duration, Time};
use narrows_multipath::PathStatus;
use narrows_wire::frame::{PATH_ID, PATH_LEADER, PATH_STATUS, PathId, PathStatusFrame};
use narrows_wire::packet::TAG_BYTES;
use narrows_wire::report::runs;
use narrows_wire::{
    ConnectionId, Frame, FrameWriter, PacketRun, PathKeys, Prelude, Report, ReportReason, Sealer,
};
use std::net::SocketAddr;

/// A server, and the keys of its client.
struct Hostile {
    now: Time,
    server: Connection,
    /// The client's sealers of paths.
    sealers: Vec<Sealer>,
    keys: PathKeys,
    numbers: Vec<u64>,
}

/// The server's connection ID of a path.
fn server_id(path: u8) -> ConnectionId {
    ConnectionId(0x50 + u32::from(path))
}

fn sealed(sealer: &mut Sealer, number: u64, now: Time, frames: &[Frame<'_>]) -> Vec<u8> {
    let head = Sealer::header_len(number, None);
    let mut buffer = vec![0; 1500];
    let mut writer =
        FrameWriter::new(&mut buffer[head..1400], Prelude::new(now, number, 0)).unwrap();
    for frame in frames {
        writer.frame(frame).unwrap();
    }
    let size = head + writer.len() + TAG_BYTES;
    buffer.truncate(size);
    sealer.seal(number, None, &mut buffer).unwrap();
    buffer
}

impl Hostile {
    fn new(paths: u8) -> Hostile {
        let ours = bonded_config(paths);
        let theirs = bonded_config(8);
        let (client, server) = keys(&ours, &theirs);
        let now = Time::from_secs_f64(50.0);
        let hello = params(&theirs);
        let rtt = Some(Duration::from_millis(20));
        let beginning = beginning(Side::Server, &theirs, &hello, server, client_at(0), rtt);
        let server = Connection::new(now, beginning);
        let keys = client.path_keys;
        let sealers = vec![client.sealer];
        Hostile { now, server, sealers, keys, numbers: vec![0; MAX_PATHS.into()] }
    }

    /// Sends frames on a path, from an address. Returns whether they were authentic.
    fn send(&mut self, path: u8, from: SocketAddr, frames: &[Frame<'_>]) -> bool {
        while self.sealers.len() <= usize::from(path) {
            let next = self.sealers.len() as u8;
            let secrets = self.keys.path(next).unwrap();
            self.sealers.push(secrets.sealer(server_id(next)).unwrap());
        }
        let number = &mut self.numbers[usize::from(path)];
        let sealer = &mut self.sealers[usize::from(path)];
        let mut datagram = sealed(sealer, *number, self.now, frames);
        *number += 1;
        self.server.receive_on(self.now, path, from, 0, &mut datagram)
    }
    fn announce(&mut self, path: u8, id: u32) {
        let body = PathId { path, connection: ConnectionId(id) }.bytes();
        self.send(0, client_at(0), &[Frame::Extension { kind: PATH_ID, body: &body }]);
        if let Some(path) = self.server.wanted_path() {
            assert!(self.server.give_path_id(self.now, path, server_id(path)));
        }
    }
    /// Bytes that the server sends now, to each address.
    fn sent(&mut self) -> Vec<(SocketAddr, u64)> {
        let mut buffer = vec![0; 64 * 1024];
        let mut all = Vec::new();
        while let Some(t) = self.server.transmit(self.now, &mut buffer, 40) {
            all.push((t.to, t.size as u64));
        }
        all
    }
    fn wait(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
        if self.server.next_timeout() <= self.now {
            self.server.on_timeout(self.now);
        }
    }
    fn closed(&mut self) -> Option<Closed> {
        while let Some(event) = self.server.event() {
            if let ConnectionEvent::Closed(why) = event {
                return Some(why);
            }
        }
        None
    }
    fn fault(&mut self) -> &'static str {
        match self.closed() {
            Some(Closed::Fault { code: 1, why }) => why,
            other => panic!("{other:?}"),
        }
    }
}

/// A report of packets `highest - arrived + 1` to `highest`.
fn report<'b>(buffer: &'b mut [u8], highest: u64, arrived: u64) -> Frame<'b> {
    let runs = runs(buffer, [PacketRun { arrived, missing: 0, radio: false }]);
    Frame::Report(Report {
        reason: ReportReason::Regular,
        highest,
        echo: 0,
        delay: 0,
        marks: None,
        feedback: &[],
        nonce_sum: 0,
        runs,
    })
}

#[test]
fn path_beyond_the_agreed_number_closes_the_connection() {
    for path in [0, 2, 8, 255] {
        let mut hostile = Hostile::new(2);
        hostile.announce(path, 7);
        assert_eq!(hostile.fault(), "a path beyond the agreed number", "path {path}");
        assert_eq!(hostile.server.path_count(), 1);
    }
}

#[test]
fn second_id_for_a_path_closes_the_connection() {
    let mut hostile = Hostile::new(2);
    hostile.announce(1, 7);
    hostile.announce(1, 7);
    assert_eq!(hostile.closed(), None, "a repetition");
    hostile.announce(1, 8);
    assert_eq!(hostile.fault(), "a second connection id for one path");
}

#[test]
fn malformed_path_id_closes_the_connection() {
    for length in [0, 1, 4, 6] {
        let mut hostile = Hostile::new(2);
        let body = [1; 6];
        hostile.send(0, client_at(0), &[Frame::Extension { kind: PATH_ID, body: &body[..length] }]);
        hostile.fault();
    }
}

#[test]
fn unopened_path_announced_by_server_closes_connection() {
    let mut world = Bonded::new(&[link(20, 20), link(20, 20)], 1);
    let now = world.now;
    // The test's server announces a path that its client did not open.
    assert!(world.server.give_path_id(now, 1, ConnectionId(0x51)));
    world.run(1.0, |_| false);
    let why = world.closed(Side::Client);
    assert!(
        matches!(why, Some(Closed::Fault { why: "a path that this end did not open", .. })),
        "{why:?}"
    );
}

/// Memory follows what the client has shown: no path begins before an authentic packet of it, and an announced one costs
/// little.
#[test]
fn announced_paths_cost_little_until_they_are_used() {
    let mut hostile = Hostile::new(8);
    let before = hostile.server.memory();
    for path in 1..MAX_PATHS {
        for _ in 0..100 {
            hostile.announce(path, u32::from(path));
        }
    }
    assert_eq!(hostile.closed(), None);
    assert_eq!(hostile.server.path_count(), 1);
    let each = (hostile.server.memory() - before) / usize::from(MAX_PATHS - 1);
    assert!(each < 4096, "{each} bytes for an announced path");
    // One reply for each path, whatever the number of requests.
    let sent = hostile.sent();
    assert!(sent.iter().filter(|(to, size)| *to == client_at(0) && *size < 100).count() <= 9);
    for path in 1..MAX_PATHS {
        assert!(hostile.send(path, client_at(usize::from(path)), &[Frame::Ping]));
    }
    assert_eq!(hostile.server.path_count(), usize::from(MAX_PATHS));
    let each = (hostile.server.memory() - before) / usize::from(MAX_PATHS - 1);
    assert!(each < 16 * 1024, "{each} bytes for a path");
}

#[test]
fn packets_without_path_keys_begin_no_path() {
    let mut hostile = Hostile::new(3);
    // Not announced.
    assert!(!hostile.send(1, client_at(1), &[Frame::Ping]));
    hostile.announce(1, 7);
    hostile.announce(2, 8);
    for n in 0..200u16 {
        let mut forged = vec![n as u8; 60];
        forged[0] = 0;
        assert!(!hostile.server.receive_on(hostile.now, 1, client_at(1), 0, &mut forged));
    }
    // Packets of other paths.
    let mut first = sealed(&mut hostile.sealers[0], 900, hostile.now, &[Frame::Ping]);
    assert!(!hostile.server.receive_on(hostile.now, 1, client_at(1), 0, &mut first));
    hostile.send(2, client_at(2), &[Frame::Ping]);
    let mut second = sealed(&mut hostile.sealers[2], 901, hostile.now, &[Frame::Ping]);
    assert!(!hostile.server.receive_on(hostile.now, 1, client_at(1), 0, &mut second));
    assert!(!hostile.server.receive_on(hostile.now, 9, client_at(1), 0, &mut [0; 60]));
    assert_eq!(hostile.server.path_count(), 2, "path 2 only");
    assert_eq!(hostile.server.stats().refused, 202);
    assert_eq!(hostile.closed(), None);
    assert!(hostile.send(1, client_at(1), &[Frame::Ping]), "the path can still begin");
}

#[test]
fn packet_of_a_path_is_taken_once() {
    let mut hostile = Hostile::new(2);
    hostile.announce(1, 7);
    hostile.send(1, client_at(1), &[]);
    let datagram = sealed(&mut hostile.sealers[1], 5, hostile.now, &[Frame::Ping]);
    let now = hostile.now;
    let mut receive = |datagram: &[u8]| {
        let mut copy = datagram.to_vec();
        hostile.server.receive_on(now, 1, client_at(1), 0, &mut copy)
    };
    assert!(receive(&datagram));
    assert!(!receive(&datagram));
}

#[test]
fn report_of_packets_of_another_path_closes_the_connection() {
    // Path 0 has sent several packets, path 1 only path frames.
    let mut hostile = Hostile::new(2);
    hostile.announce(1, 7);
    let id = hostile.server.open(true).unwrap();
    hostile.server.write(id, &[1; 9000]).unwrap();
    hostile.send(1, client_at(1), &[Frame::PathChallenge([1; 8]), Frame::Padding(1100)]);
    hostile.sent();
    let mut buffer = [0; 600];
    let frame = report(&mut buffer, 5, 1);
    hostile.send(1, client_at(1), &[frame]);
    assert_eq!(hostile.fault(), "a report of a packet that was never sent");
}

#[test]
fn report_without_the_nonces_of_the_path_closes_the_connection() {
    let mut faults = 0;
    for seed in 0..4 {
        let mut hostile = Hostile::new(2);
        hostile.announce(1, 7);
        for _ in 0..seed {
            hostile.send(1, client_at(1), &[]);
        }
        hostile.send(1, client_at(1), &[Frame::PathChallenge([1; 8]), Frame::Padding(1100)]);
        let count = hostile.sent().iter().filter(|(to, _)| *to == client_at(1)).count() as u64;
        assert_eq!(count, 2, "a response and a challenge");
        let mut buffer = [0; 600];
        let frame = report(&mut buffer, count - 1, count);
        hostile.send(1, client_at(1), &[frame]);
        faults += usize::from(hostile.closed().is_some());
    }
    // A sum of zero is right by chance once in 256 times.
    assert!(faults >= 3, "{faults}");
}

/// Before an address is validated, at most three times the bytes that came from it leave.
#[test]
fn unvalidated_path_gets_three_times_its_bytes_at_most() {
    for size in [20, 400, 1100] {
        let mut hostile = Hostile::new(2);
        hostile.announce(1, 7);
        let id = hostile.server.open(true).unwrap();
        hostile.server.write(id, &vec![1; 500_000]).unwrap();
        for target in 1..40 {
            let from = client_at(target);
            let mut came = 0;
            let mut went = 0;
            for _ in 0..4 {
                let frames = [Frame::PathChallenge([1; 8]), Frame::Padding(size)];
                hostile.send(1, from, &frames);
                came += size as u64 + 30;
                for _ in 0..20 {
                    let sent = hostile.sent();
                    went += sent.iter().filter(|s| s.0 == from).map(|s| s.1).sum::<u64>();
                    hostile.wait(250);
                }
            }
            assert!(went <= 3 * came, "{went} bytes for {came}");
        }
        assert!(!hostile.server.path_stats()[1].is_usable);
    }
}

/// A response to no challenge, or to that of another path, validates no path.
#[test]
fn wrong_response_validates_no_path() {
    let mut hostile = Hostile::new(2);
    hostile.announce(1, 7);
    hostile.send(1, client_at(1), &[Frame::Padding(1100)]);
    hostile.sent();
    hostile.send(1, client_at(1), &[Frame::PathResponse([0; 8])]);
    hostile.send(0, client_at(0), &[Frame::PathResponse([0; 8])]);
    assert!(!hostile.server.path_stats()[1].is_usable);
    assert_eq!(hostile.closed(), None);
}

/// Packets that are replayed from other addresses neither open nor move a path.
#[test]
fn replayed_packets_of_paths_change_no_state() {
    let mut world = Bonded::new(&[link(20, 20), link(20, 20)], 1);
    world.keep = Some(Vec::new());
    world.open_paths();
    world.transfer(Side::Server, 2_000_000, 3.0);
    world.run(4.0, |_| false);
    let before = world.server.path_stats();
    for mut flying in world.keep.take().unwrap() {
        flying.from = "203.0.113.9:9".parse().unwrap();
        assert!(!world.hand(flying));
    }
    assert_eq!(world.server.path_stats(), before);
}

fn status(path: u8, status: u8, sequence: u32) -> [u8; 6] {
    PathStatusFrame { path, status, sequence }.bytes()
}

#[test]
fn malformed_path_status_closes_the_connection() {
    for (body, why) in [
        (&status(2, 1, 1)[..], "the status of a path beyond the agreed number"),
        (&status(255, 1, 1)[..], "the status of a path beyond the agreed number"),
        (&status(1, 102, 1)[..], "an unknown status of a path"),
        (&status(1, 255, 1)[..], "an unknown status of a path"),
        (&[1, 1, 0, 0, 0, 1, 0][..], "a PATH_STATUS of more than 6 bytes"),
    ] {
        let mut hostile = Hostile::new(2);
        hostile.send(0, client_at(0), &[Frame::Extension { kind: PATH_STATUS, body }]);
        assert_eq!(hostile.fault(), why);
    }
    for length in 0..6 {
        let mut hostile = Hostile::new(2);
        let body = &status(1, 1, 1)[..length];
        hostile.send(0, client_at(0), &[Frame::Extension { kind: PATH_STATUS, body }]);
        hostile.fault();
    }
}

#[test]
fn false_path_leader_closes_the_connection() {
    for (body, why) in [
        (&[1, 0][..], "a PATH_LEADER of a client"),
        (&[2, 0], "the leader of a path beyond the agreed number"),
        (&[0, 2], "the leader of a path beyond the agreed number"),
        (&[0, 255], "the leader of a path beyond the agreed number"),
        (&[1], "a PATH_LEADER of another length than 2 bytes"),
        (&[1, 0, 0], "a PATH_LEADER of another length than 2 bytes"),
        (&[], "a PATH_LEADER of another length than 2 bytes"),
    ] {
        let mut hostile = Hostile::new(2);
        hostile.send(0, client_at(0), &[Frame::Extension { kind: PATH_LEADER, body }]);
        assert_eq!(hostile.fault(), why);
    }
}

/// The newest status counts, and a closed path stays closed. Each packet gets at most one echo.
#[test]
fn statuses_in_any_order_leave_the_newest() {
    let mut hostile = Hostile::new(2);
    for (code, sequence, expected) in [
        (1, 5, PathStatus::Standby),
        (0, 4, PathStatus::Standby),
        (0, 6, PathStatus::Available),
        (2, 7, PathStatus::Unusable),
        (0, 8, PathStatus::Unusable),
        (1, u32::MAX, PathStatus::Unusable),
    ] {
        let body = status(0, code, sequence);
        let before = hostile.server.stats().datagrams_sent;
        let frame = Frame::Extension { kind: PATH_STATUS, body: &body };
        hostile.send(0, client_at(0), &[frame; 3]);
        hostile.sent();
        assert!(hostile.server.stats().datagrams_sent <= before + 2, "an echo and a PING");
        assert_eq!(hostile.server.path_stats()[0].status, expected);
    }
    assert_eq!(hostile.closed(), None);
}

/// A client that closes all of its paths gets nothing more, and the connection ends by its idle timeout.
#[test]
fn client_without_open_paths_ends_by_timeout() {
    let mut hostile = Hostile::new(2);
    let id = hostile.server.open(true).unwrap();
    hostile.server.write(id, &[1; 9000]).unwrap();
    let body = status(0, 2, 1);
    hostile.send(0, client_at(0), &[Frame::Extension { kind: PATH_STATUS, body: &body }]);
    hostile.sent();
    for _ in 0..200 {
        hostile.wait(1000);
        assert_eq!(hostile.sent(), [], "at {:?}", hostile.now);
    }
    assert_eq!(hostile.closed(), Some(Closed::TimedOut));
}

#[test]
fn status_that_the_client_did_not_set_closes_its_connection() {
    let mut world = Bonded::new(&[link(20, 20), link(20, 20)], 1);
    world.open_paths();
    world.run(1.0, |_| false);
    let now = world.now;
    let mut datagram = [0; 200];
    let body = status(1, 1, 1);
    let frame = Frame::Extension { kind: PATH_STATUS, body: &body };
    let size = world.server.seal_not_in_flight(now, &mut datagram, &frame).unwrap();
    world.client.receive(now, "198.51.100.2:443".parse().unwrap(), 0, &mut datagram[..size]);
    world.run(2.0, |_| false);
    let why = world.closed(Side::Client);
    assert!(
        matches!(why, Some(Closed::Fault { why: "a status that this end did not set", .. })),
        "{why:?}"
    );
}
