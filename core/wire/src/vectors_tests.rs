//! The test vectors of `docs/rrtp.md`: made anew from fixed keys and compared with the file.
//!
//! After a change of format (and of its version): `NARROWS_WRITE_VECTORS=1 cargo test -p
//! narrows-wire vectors`.

use crate::bytes::Sink;
use crate::cookie::CookieSecrets;
use crate::frame::{
    NEW_PATH, PATH_ID, PATH_LEADER, PATH_STATUS, PathId, PathStatusFrame, REPAIR, SKIPPED,
    UNCOUNTED,
};
use crate::header::ConnectionId;
use crate::keys::Secret;
use crate::noise::{ClientHandshake, ServerHandshake, StaticKey};
use crate::packet::{self, ParsedPacket};
use crate::params::{Hello, MAX_HELLO_BYTES, Params};
use crate::path_keys::PathKeys;
use crate::report::{self, PacketRun, Report, ReportReason};
use crate::reset::ResetKey;
use crate::{Frame, FrameWriter, Prelude, Sealer, Suite, VERSION};
use narrows_base::Time;
use std::fmt::Write;
use std::net::SocketAddr;

const FILE: &str = include_str!("../testdata/vectors.txt");

struct Vectors(String);

impl Vectors {
    fn title(&mut self, title: &str) {
        write!(self.0, "\n# {title}\n").unwrap();
    }
    fn add(&mut self, name: &str, bytes: &[u8]) {
        write!(self.0, "{name} = ").unwrap();
        for byte in bytes {
            write!(self.0, "{byte:02x}").unwrap();
        }
        self.0.push('\n');
    }
}

fn hello_bytes(hello: &Hello) -> Vec<u8> {
    let mut buffer = [0; MAX_HELLO_BYTES];
    let mut sink = Sink::new(&mut buffer);
    hello.write(&mut sink).unwrap();
    sink.written().to_vec()
}

fn handshake(v: &mut Vectors, suite: Suite) {
    v.title(suite.noise());
    let nonce = [0xa0; 16];
    let client_seed = [0xc2; 32];
    let server_seed = [0x52; 32];
    let client_key = StaticKey::new([0xc1; 32]).unwrap();
    let server_key = StaticKey::new([0x51; 32]).unwrap();
    let client: SocketAddr = "192.0.2.1:40000".parse().unwrap();
    let secrets = CookieSecrets::new(&[0xcc; 32]);
    let cookie = secrets.create(Time::from_secs_f64(1234.0), client, &nonce, VERSION);
    let token = ResetKey::new(&[0x99; 32]).token(ConnectionId(0x5e5e_0001), client);
    let server_hello = Hello {
        connection: ConnectionId(0x5e5e_0001),
        params: Params {
            idle_timeout_ms: 30_000,
            max_datagram: 1472,
            max_data: 1 << 22,
            max_stream: 1 << 20,
            max_streams_both: 16,
            max_streams_one: 3,
            max_message: 1200,
            offered: None,
            reset_token: Some(token),
            controller: "rrtp".into(),
            applications: Default::default(),
            repair: 0,
            paths: 0,
        },
    };
    let client_hello = Hello {
        connection: ConnectionId(0xc1c1_0001),
        params: Params {
            max_data: 70_000,
            offered: Some(VERSION),
            controller: "tfrc".into(),
            ..Params::default()
        },
    };
    let mut at_client =
        ClientHandshake::new(suite, nonce, &cookie, &client_key, client_seed).unwrap();
    let start = at_client.start().to_vec();
    let Ok(ParsedPacket::Start(read)) = ParsedPacket::read(&start) else { panic!("no START") };
    let mut at_server =
        ServerHandshake::new(&read, &server_key, server_seed, &server_hello).unwrap();
    let echo = at_server.start_echo().to_vec();
    let Ok(ParsedPacket::StartEcho(read)) = ParsedPacket::read(&echo) else {
        panic!("no START-ECHO")
    };
    let (mut client_end, finish) = at_client.on_start_echo(&read, &client_hello, |_| true).unwrap();
    let Ok(ParsedPacket::Finish(read)) = ParsedPacket::read(&finish) else { panic!("no FINISH") };
    let mut server_end = at_server.on_finish(&read).unwrap();
    v.add("nonce", &nonce);
    v.add("cookie.secret", &[0xcc; 32]);
    v.add("reset.key", &[0x99; 32]);
    v.add("client.static.private", &[0xc1; 32]);
    v.add("client.static.public", client_key.public());
    v.add("client.ephemeral.private", &client_seed);
    v.add("server.static.private", &[0x51; 32]);
    v.add("server.static.public", server_key.public());
    v.add("server.ephemeral.private", &server_seed);
    v.add("server.hello", &hello_bytes(&server_hello));
    v.add("client.hello", &hello_bytes(&client_hello));
    v.add("SYN", &packet::syn(VERSION, &nonce));
    v.add("SYN-ECHO", &packet::syn_echo(&nonce, &cookie));
    v.add("START", &start);
    v.add("START-ECHO", &echo);
    v.add("FINISH", &finish);
    v.add("handshake.hash", &client_end.hash);
    let mut ping = [0; 8 + 5 + 16];
    ping[12] = 1;
    client_end.sealer.seal(0, None, &mut ping).unwrap();
    v.add("client.data.0", &ping);
    let mut ping = [0; 8 + 5 + 16];
    ping[12] = 1;
    server_end.sealer.seal(0, None, &mut ping).unwrap();
    v.add("server.data.0", &ping);
    v.add("VERSION", &packet::version(0x0102_0304, &nonce, &[VERSION]));
    v.add("RESET", &packet::reset(&token));
    v.add("BUSY", &packet::busy(&nonce));
}

/// The derivation of the reset tokens, which a server repeats after a restart.
fn reset_tokens(v: &mut Vectors) {
    v.title("RESET tokens of a server for connection 5e5e0001 of 192.0.2.1 port 40000");
    let identity = StaticKey::new([0x51; 32]).unwrap();
    v.add("static.private", identity.private());
    for port in [4433u16, 4434] {
        let key = ResetKey::of(&identity, port);
        let token = key.token(ConnectionId(0x5e5e_0001), "192.0.2.1:40000".parse().unwrap());
        v.add(&format!("token.of.port.{port}"), &token);
    }
}

fn schedule(v: &mut Vectors, suite: Suite) {
    v.title(&format!("key schedule and packets, suite {}", suite.code()));
    let hash = [0x48; 32];
    let split = [0x4b; 32];
    let first = Secret::first(suite, &hash, &split);
    let second = first.next().unwrap();
    v.add("handshake.hash", &hash);
    v.add("split.key", &split);
    v.add("key.0", &first.raw_key());
    v.add("key.1", &second.raw_key());
    v.add("payload", &[0, 0, 0, 0, 1]);
    let mut sealer = Sealer::new(ConnectionId(0x0102_0304), &first, 0).unwrap();
    let mut seal = |number: u64, acked: Option<u64>, sealer: &mut Sealer| {
        let head = Sealer::header_len(number, acked);
        let mut datagram = vec![0; head + 5 + 16];
        datagram[head + 4] = 1;
        sealer.seal(number, acked, &mut datagram).unwrap();
        v.add(&format!("packet.{number}"), &datagram);
    };
    seal(5, None, &mut sealer);
    sealer.set_random(0x15);
    seal(0x0123_4567, None, &mut sealer);
    sealer.acknowledged(0x0123_4567);
    assert!(sealer.update());
    seal(0x0123_4568, Some(0x0123_4567), &mut sealer);
    let keys = PathKeys { send: first, receive: second };
    let secrets = keys.path(1).unwrap();
    v.add("path.1.key.0", &secrets.raw_key());
    let mut sealer = secrets.sealer(ConnectionId(0x0506_0708)).unwrap();
    let mut datagram = [0; 8 + 5 + 16];
    datagram[12] = 1;
    sealer.seal(5, None, &mut datagram).unwrap();
    v.add("path.1.packet.5", &datagram);
}

fn frames(v: &mut Vectors) {
    v.title("payloads: the prelude (stamp 1000000, distance 300) and one frame");
    let mut space = [0; 600];
    let runs = report::runs(
        &mut space,
        [
            PacketRun { arrived: 6, missing: 1, radio: true },
            PacketRun { arrived: 100, missing: 2, radio: false },
            PacketRun { arrived: 1, missing: 0, radio: false },
        ],
    );
    let report = Report {
        reason: ReportReason::Selective,
        highest: 70_000,
        echo: 999_000,
        delay: 250,
        marks: Some(3),
        feedback: &[1, 2, 3, 4],
        nonce_sum: 0xa5,
        runs,
    };
    let path_id = PathId { path: 1, connection: ConnectionId(0x0506_0708) }.bytes();
    let path_status = PathStatusFrame { path: 1, status: 1, sequence: 2 }.bytes();
    let all = [
        ("PADDING", Frame::Padding(3)),
        ("PING", Frame::Ping),
        ("REPORT", Frame::Report(report)),
        ("FEEDBACK", Frame::Feedback(&[1, 2, 3, 4])),
        ("DATAGRAM", Frame::Datagram(b"hello")),
        ("STREAM.small", Frame::Stream { id: 2, offset: 0, fin: false, data: b"hello" }),
        ("STREAM.large", Frame::Stream { id: 300, offset: 1 << 30, fin: true, data: b"hello" }),
        ("MAX_DATA", Frame::MaxData(70_000)),
        ("MAX_STREAM", Frame::MaxStream { id: 1, most: 70_000 }),
        ("MAX_STREAMS.both", Frame::MaxStreams { one_way: false, most: 9 }),
        ("MAX_STREAMS.one", Frame::MaxStreams { one_way: true, most: 9 }),
        ("BLOCKED", Frame::Blocked { at: 70_000 }),
        ("STREAM_BLOCKED", Frame::StreamBlocked { id: 1, at: 70_000 }),
        ("STREAMS_BLOCKED.both", Frame::StreamsBlocked { one_way: false, at: 9 }),
        ("STREAMS_BLOCKED.one", Frame::StreamsBlocked { one_way: true, at: 9 }),
        ("PATH_CHALLENGE", Frame::PathChallenge(*b"whoareu?")),
        ("PATH_RESPONSE", Frame::PathResponse(*b"whoareu?")),
        ("RESET_STREAM", Frame::ResetStream { id: 1, code: 256, size: 5000 }),
        ("STOP", Frame::Stop { id: 1, code: 256 }),
        ("CLOSE", Frame::Close { code: 0, reason: b"done" }),
        ("extension", Frame::Extension { kind: 0x40, body: &[1, 2, 3] }),
        ("SKIPPED", Frame::Extension { kind: SKIPPED, body: &[1] }),
        ("NEW_PATH", Frame::Extension { kind: NEW_PATH, body: &[1] }),
        ("UNCOUNTED", Frame::Extension { kind: UNCOUNTED, body: &[1] }),
        ("PATH_ID", Frame::Extension { kind: PATH_ID, body: &path_id }),
        ("PATH_STATUS", Frame::Extension { kind: PATH_STATUS, body: &path_status }),
        ("PATH_LEADER", Frame::Extension { kind: PATH_LEADER, body: &[1, 0] }),
        // Of the packets 9 and 7 numbers below, with a PING and an empty payload.
        ("REPAIR", Frame::Extension { kind: REPAIR, body: &[9, 1, 0b101, 0, 1] }),
    ];
    let prelude = Prelude { stamp: 1_000_000, distance: 300 };
    for (name, frame) in all {
        let mut buffer = [0; 200];
        let mut writer = FrameWriter::new(&mut buffer, prelude).unwrap();
        writer.frame(&frame).unwrap();
        let length = writer.len();
        v.add(name, &buffer[..length]);
    }
    let mut buffer = [0; 200];
    let mut writer = FrameWriter::new(&mut buffer, prelude).unwrap();
    writer.last_stream(6, (1 << 40) - 1, false, b"hello").unwrap();
    let length = writer.len();
    v.add("STREAM.last", &buffer[..length]);
    let mut writer = FrameWriter::new(&mut buffer, prelude).unwrap();
    writer.last_datagram(b"hello").unwrap();
    let length = writer.len();
    v.add("DATAGRAM.last", &buffer[..length]);
}

#[test]
fn vectors_are_as_published() {
    let mut v = Vectors(String::from(
        "# Test vectors of rrtp, format version 1: see docs/rrtp.md. Written by a test of narrows-wire.\n\
         # The cookie is of server time 1234 s for 192.0.2.1 port 40000.\n",
    ));
    for suite in Suite::ALL {
        handshake(&mut v, suite);
        schedule(&mut v, suite);
    }
    frames(&mut v);
    reset_tokens(&mut v);
    if std::env::var_os("NARROWS_WRITE_VECTORS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/vectors.txt");
        std::fs::write(path, &v.0).unwrap();
        return;
    }
    for (line, (made, published)) in v.0.lines().zip(FILE.lines()).enumerate() {
        assert_eq!(made, published, "line {}", line + 1);
    }
    assert_eq!(v.0.len(), FILE.len());
}
