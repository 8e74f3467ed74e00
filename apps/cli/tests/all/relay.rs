//! `narrows relay --tcp`: TCP programs over an emulated link, without rights.

use crate::process::{Process, narrows, run};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Each connection's bytes come back in order and whole, and both directions of the link lost packets of them.
#[test]
fn tcp_connections_cross_a_lossy_link_whole() {
    let home = tempfile::tempdir().unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = server.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in server.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                std::io::copy(&mut &stream, &mut &stream).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
            });
        }
    });
    let link = "50Mbit/s,2ms,queue=200p,loss=5%";
    let args = ["relay", "--tcp", "--listen", "127.0.0.1:0", "--to", &to, "--json"];
    let child = narrows(home.path())
        .args([&args[..], &["--link", link, "--link-back", link]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut relay = Process(child.unwrap());
    let mut line = String::new();
    BufReader::new(relay.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let at = line.split(' ').find(|word| word.starts_with("127.0.0.1:")).expect(&line).to_string();

    let sent: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut stream = TcpStream::connect(&at).unwrap();
                let mut writing = stream.try_clone().unwrap();
                let sent = &sent;
                scope.spawn(move || {
                    writing.write_all(sent).unwrap();
                    writing.shutdown(Shutdown::Write).unwrap();
                });
                let mut back = Vec::new();
                stream.read_to_end(&mut back).unwrap();
                assert!(back == *sent, "{} of {} bytes", back.len(), sent.len());
            });
        }
    });
    relay.interrupt();
    let mut text = String::new();
    relay.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    let counters: serde_json::Value = serde_json::from_str(&text).unwrap();
    for direction in ["there", "back"] {
        assert!(counters[direction]["lost"].as_u64().unwrap() > 10, "{counters}");
    }
}

#[test]
fn relay_with_more_clients_than_places_says_so() {
    let home = tempfile::tempdir().unwrap();
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = server.local_addr().unwrap().to_string();
    let args = ["relay", "--listen", "127.0.0.1:0", "--to", &to, "--link", "geo", "--json"];
    let mut command = narrows(home.path());
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut relay = Process(command.spawn().unwrap());
    let mut lines = BufReader::new(relay.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.next().unwrap();
    let at = line.split(' ').find(|word| word.starts_with("127.0.0.1:")).expect(&line);
    // Until the line is there, since a relay that does not run for a while loses what its socket cannot hold.
    let is_told = AtomicBool::new(false);
    let line = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_told.load(Ordering::SeqCst) {
                for _ in 0..100 {
                    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"x", at).unwrap();
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let line = lines.find(|line| line.contains("gave way"));
        is_told.store(true, Ordering::SeqCst);
        line.unwrap()
    });
    assert!(line.contains("More than 512 clients"), "{line}");
    relay.interrupt();
    let mut text = String::new();
    relay.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    let counters: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(counters["clients_replaced"].as_u64().unwrap() > 0, "{counters}");
}

#[test]
fn a_relay_of_tcp_refuses_bad_input_in_one_line() {
    let home = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    let relay = |more: &[&str]| {
        let rest = ["--to", "127.0.0.1:9", "--link", "geo"];
        let out = run(home.path(), &[&["relay"], more, &rest[..]].concat());
        let line = String::from_utf8(out.stderr).unwrap();
        assert_eq!(line.lines().count(), 1, "{line}");
        (out.status.code(), line)
    };
    let (code, line) = relay(&["--tcp=nonesuch", "--listen", "127.0.0.1:0"]);
    assert!(code == Some(2) && line.contains("--tcp: 'nonesuch'"), "{line}");
    let (code, line) = relay(&["--tcp", "--listen", &at]);
    assert!(code == Some(1) && line.contains("another program listens there already"), "{line}");
}
