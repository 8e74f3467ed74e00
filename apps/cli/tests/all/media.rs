//! Both ends of media over loopback, with a program at each end.

use crate::process::{Process, narrows, run};
use std::io::{BufRead, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::path::Path;
use std::process::{ChildStdout, Stdio};
use std::time::Duration;

/// One of the two commands; it ends with the test.
struct Running {
    child: Process,
    lines: BufReader<ChildStdout>,
    /// The awaited line.
    last: String,
}

fn spawn(home: &Path, args: &[&str]) -> Running {
    let mut child = narrows(home).args(args).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    Running { child: Process(child), lines, last: String::new() }
}

fn start(home: &Path, args: &[&str], until: &str) -> Running {
    let mut running = spawn(home, args);
    running.wait_for(until);
    running
}

impl Running {
    fn wait_for(&mut self, part: &str) {
        let mut lines = self.lines.by_ref().lines().map_while(Result::ok);
        let last = lines.find(|line| line.contains(part));
        self.last = last.unwrap_or_default().trim().into();
        assert!(self.last.contains(part), "it ended without '{part}'");
    }
}

/// A player's socket, and a receiver for these senders.
fn receiver(home: &Path, senders: &[&Path], flags: &[&str]) -> (UdpSocket, Running, String) {
    let keys: Vec<_> = senders.iter().map(|sender| run(sender, &["key"]).stdout).collect();
    std::fs::write(home.join("clients"), keys.concat()).unwrap();
    let player = UdpSocket::bind("127.0.0.1:0").unwrap();
    player.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let to = player.local_addr().unwrap().to_string();
    let args = ["media", "receive", "--listen", "127.0.0.1:0", "--clients", "clients", "--to", &to];
    let receiver = start(home, &[&args[..], flags].concat(), "rrtp://");
    let url = receiver.last.clone();
    (player, receiver, url)
}

/// Longer than a busy machine keeps a packet waiting.
const LATENCY: &str = "5s";

/// A datagram of RTP.
fn rtp(frame: u32, packet: u8) -> Vec<u8> {
    let mut datagram = vec![0x80, 96, 0, 0];
    datagram.extend((frame + 1).to_be_bytes());
    datagram.extend([0, 0, 0, 1, packet]);
    datagram.resize(1000, packet);
    datagram
}

/// Sends until the first datagram is received, then 20 frames; returns the datagrams received of these.
fn play(encoder: &UdpSocket, player: &UdpSocket) -> Vec<Vec<u8>> {
    let mut buffer = [0; 2000];
    player.set_nonblocking(true).unwrap();
    while player.recv(&mut buffer).is_err() {
        encoder.send(&rtp(0, 0)).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    player.set_nonblocking(false).unwrap();
    for frame in 1..=20 {
        for packet in 0..3 {
            encoder.send(&rtp(frame, packet)).unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut received = Vec::new();
    while received.len() < 60 {
        let length = match player.recv(&mut buffer) {
            // Children of other tests end meanwhile, and their signal interrupts a read with a timeout.
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            length => length.unwrap(),
        };
        let datagram = buffer[..length].to_vec();
        if datagram != rtp(0, 0) {
            received.push(datagram);
        }
    }
    received
}

/// The encoder's rate over HTTP.
fn asked(url: &str) -> serde_json::Value {
    let at = url.split("http://").nth(1).unwrap().trim_end_matches('/');
    let mut tcp = TcpStream::connect(at).unwrap();
    write!(tcp, "GET / HTTP/1.1\r\nHost: {at}\r\n\r\n").unwrap();
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap()
}

#[test]
fn media_of_a_program_arrive_in_order_and_are_measured() {
    let far = tempfile::tempdir().unwrap();
    let near = tempfile::tempdir().unwrap();
    let (player, mut receiver, url) = receiver(far.path(), &[near.path()], &["--once"]);
    let args = ["media", "send", &url, "--from", "0", "--latency", LATENCY, "--rate-http", "0"];
    let args = [&args[..], &["--protocol", "tfrc"]].concat();
    let mut sender = start(near.path(), &args, "from 127");
    let encoder = UdpSocket::bind("127.0.0.1:0").unwrap();
    encoder.connect(sender.last.trim_start_matches("from ")).unwrap();
    sender.wait_for("http://");
    let expected: Vec<_> =
        (1..=20).flat_map(|frame| (0..3).map(move |packet| rtp(frame, packet))).collect();
    assert_eq!(play(&encoder, &player), expected);
    let state = asked(&sender.last);
    assert!(state["bits_per_second"].as_u64().unwrap() >= 300_000, "{state}");
    assert!(state["connected"].as_bool().unwrap() && state["dropped"] == 0, "{state}");
    // The receiver detects at once that its sender was stopped, and prints its measures.
    sender.child.interrupt();
    receiver.wait_for("frames:");
    assert!(receiver.last.contains(" 0 of "), "{}", receiver.last);
    assert!(receiver.child.wait().unwrap().success());
}

#[test]
fn a_second_sender_waits_until_the_first_is_gone() {
    let far = tempfile::tempdir().unwrap();
    let near = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let both = [near.path(), other.path()];
    let (_player, _receiver, url) = receiver(far.path(), &both, &[]);
    let args = ["media", "send", &url, "--from", "0", "--rate-lines"];
    let first = start(near.path(), &args, "rate ");
    let args = ["media", "send", &url, "--from", "0", "--log", "log"];
    let second = start(other.path(), &args, "from 127");
    let log = || std::fs::read_to_string(other.path().join("log")).unwrap_or_default();
    while !log().contains("another sends to this receiver") {
        std::thread::sleep(Duration::from_millis(20));
    }
    drop((first, second));
}

/// A receiver behind a NAT connects; the sender reports its rates nevertheless.
#[test]
fn connecting_receiver_plays_the_media_of_its_sender() {
    let far = tempfile::tempdir().unwrap();
    let near = tempfile::tempdir().unwrap();
    std::fs::write(near.path().join("viewers"), run(far.path(), &["key"]).stdout).unwrap();
    let args = ["media", "send", "--listen", "127.0.0.1:0", "--clients", "viewers"];
    let args = [&args[..], &["--from", "0", "--latency", LATENCY]].concat();
    let mut sender = start(near.path(), &args, "from 127");
    let encoder = UdpSocket::bind("127.0.0.1:0").unwrap();
    encoder.connect(sender.last.trim_start_matches("from ")).unwrap();
    sender.wait_for("rrtp://");
    let player = UdpSocket::bind("127.0.0.1:0").unwrap();
    player.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let to = player.local_addr().unwrap().to_string();
    let args = ["media", "receive", &sender.last, "--to", &to, "--json"];
    let mut receiver = spawn(far.path(), &args);
    let expected: Vec<_> =
        (1..=20).flat_map(|frame| (0..3).map(move |packet| rtp(frame, packet))).collect();
    assert_eq!(play(&encoder, &player), expected);
    // When it is stopped, it prints its measures.
    receiver.child.interrupt();
    receiver.wait_for("late_packets");
    let measures: serde_json::Value = serde_json::from_str(&receiver.last).unwrap();
    assert_eq!(measures["late_packets"], 0);
    assert!(receiver.child.wait().unwrap().success());
}

#[test]
fn impossible_media_options_give_one_line_and_exit_2() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("empty"), "# no keys\n").unwrap();
    let key = String::from_utf8(run(home.path(), &["key"]).stdout).unwrap();
    std::fs::write(home.path().join("one"), &key).unwrap();
    let url = format!("rrtp://{}@127.0.0.1:9", key.trim());
    std::fs::write(home.path().join("bad.toml"), "latency = '1s'\nlatenzy = '1s'\n").unwrap();
    std::fs::write(home.path().join("short.toml"), "latency = '1ms'\n").unwrap();
    let receive = ["media", "receive", "--listen", "127.0.0.1:0"];
    let with = |more: &[&'static str]| [&receive[..], more].concat();
    let send = |more: &[&'static str]| [&["media", "send", &url][..], more].concat();
    for (args, part) in [
        (with(&[]), "--clients"),
        (with(&["--clients", "empty"]), "no client could connect"),
        (with(&["--clients", "one", "--to", "0"]), "--to"),
        (with(&["--clients", "one", "--to", "5004,0"]), "--to"),
        (send(&["--layer", "5000"]), "5000:500kbit/s"),
        (send(&["--layer", "5000:1Mbit/s", "--from", "5002"]), "--from"),
        (send(&["--latency", "1ms"]), "10ms to 30s"),
        (send(&["--config", "short.toml"]), "10ms to 30s"),
        (send(&["--config", "bad.toml"]), "line 2"),
        (send(&["--min-rate", "9Mbit/s"]), "--min-rate"),
        (send(&["--protocol", "vegas"]), "rrtp+vegas"),
        (vec!["media", "send", "--multicast", "10.0.0.1"], "239.255.78.87"),
        (vec!["media", "send", "--multicast", "site", "--layer", "0:1Mbit/s"], "--max-total"),
        (
            vec![
                "media",
                "send",
                "--multicast",
                "site",
                "--layer",
                "0:1Mbit/s",
                "--max-total",
                "0.5Mbit/s",
            ],
            "--max-total",
        ),
        (
            vec!["media", "send", "--multicast", "site", "--max-total", "1Mbit/s"],
            "the layers are missing",
        ),
        (
            vec!["media", "receive", "--multicast", "ff15::1", "--interface", "10.0.0.1"],
            "an interface's number",
        ),
        (vec!["media", "receive", "--multicast", "site", "--interface", "2"], "an address"),
        (vec!["media", "send"], "the receiver is missing"),
        (vec!["media", "send", "--listen", "127.0.0.1:0"], "--clients"),
        (
            vec!["media", "send", "--listen", "127.0.0.1:0", "--clients", "empty"],
            "no client could connect",
        ),
        (send(&["--listen", "127.0.0.1:0"]), "--listen"),
        (vec!["media", "receive", "rrtp://host:1", "--clients", "one"], "--clients"),
        (vec!["media", "receive", "rrtp://host:1/path"], "a sender of media"),
        (
            vec![
                "media",
                "send",
                "--multicast",
                "site",
                "--layer",
                "0:1Mbit/s",
                "--max-total",
                "2Mbit/s",
                "--live",
            ],
            "send no reports",
        ),
        (vec!["media", "send", "tcp://host:1/"], "rrtp://"),
        (vec!["media", "send", "rrtp://host:1/path"], "without a path"),
    ] {
        let done = run(home.path(), &args);
        let error = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(part), "{args:?}: {error}");
        assert!(done.stdout.is_empty());
    }
}

#[test]
fn a_port_in_use_is_one_line() {
    let home = tempfile::tempdir().unwrap();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let from = taken.local_addr().unwrap().port().to_string();
    let done = run(home.path(), &["media", "send", "rrtp://127.0.0.1:9", "--from", &from]);
    let error = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1), "{error}");
    let line = format!("--from 127.0.0.1:{from}: another program listens there already");
    assert!(error.contains(&line) && error.lines().count() == 1, "{error}");
}
