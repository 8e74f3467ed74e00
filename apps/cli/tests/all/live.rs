//! `--live` for commands with real connections: the data that a browser gets, and the data that it must not get.

use crate::process::{Process, narrows};
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time limit for the expected contents of a page.
const PATIENCE: Duration = Duration::from_secs(60);

struct Page {
    _child: Process,
    address: String,
    token: String,
    /// Output of the command before the page's address, on both streams.
    printed: String,
    /// Output of the command after its page's address.
    errors: Arc<Mutex<String>>,
}

/// A command with a page, after it has printed the address; `until` is a word of its standard output to wait for.
fn start(home: &Path, args: &[&str], until: Option<&str>) -> Page {
    let mut command = narrows(home);
    let mut child = command
        .args(args)
        .arg("--live")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = String::new();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let url = errors.by_ref().find_map(|line| line.strip_prefix("live: ").map(str::to_string));
    let url = url.expect("the page's address");
    // Read the streams continuously, so that the command does not block.
    let said = Arc::new(Mutex::new(String::new()));
    let hears = said.clone();
    std::thread::spawn(move || errors.for_each(|line| *hears.lock().unwrap() += &(line + "\n")));
    if let Some(until) = until {
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        for line in lines {
            printed += &(line + "\n");
            if printed.contains(until) {
                break;
            }
        }
    }
    let (address, token) = url.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
    Page {
        _child: Process(child),
        address: address.into(),
        token: token.into(),
        printed,
        errors: said,
    }
}

impl Page {
    /// The stream of updates, until it contains all of these or the time limit is reached.
    fn events_until(&self, parts: &[&str]) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let address = &self.address;
        let token = &self.token;
        write!(stream, "GET /events?token={token}&packets=0 HTTP/1.1\r\nHost: {address}\r\n\r\n")
            .unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut all = String::new();
        let mut part = vec![0; 65_536];
        let begun = Instant::now();
        while !parts.iter().all(|p| all.contains(p)) {
            // Children of other tests end meanwhile, and their signal interrupts a read with a timeout.
            let n = match stream.read(&mut part) {
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                n => n,
            };
            let more = n.as_ref().is_ok_and(|n| *n > 0) && begun.elapsed() < PATIENCE;
            assert!(more, "after {:?} {n:?}; {}", begun.elapsed(), self.lacks(parts, &all));
            all += &String::from_utf8_lossy(&part[..n.unwrap()]);
        }
        all
    }

    /// For a failing test: the missing parts, and the command's messages.
    fn lacks(&self, parts: &[&str], all: &str) -> String {
        let missing: Vec<_> = parts.iter().filter(|p| !all.contains(**p)).collect();
        let end = all.char_indices().rev().nth(2000).map_or(0, |(n, _)| n);
        let said = self.errors.lock().unwrap();
        format!("{missing:?} did not come; the command says: {said}\nthe end: {}", &all[end..])
    }
}

/// A measurement shows the sending end, with its controller's state, and the link between; the page may interrupt the
/// link.
#[test]
fn a_measurement_shows_its_connection_and_its_link() {
    let home = tempfile::tempdir().unwrap();
    let args = ["speed", "--link", "5Mbit/s,20ms", "--duration", "4s"];
    let page = start(home.path(), &args, None);
    let seen = page.events_until(&[
        "\"name\":\"there\"",
        "\"name\":\"connection.1\"",
        "pacing_bps",
        "bandwidth_bps",
        "\"mark\":\"connection\"",
        "\"rate\":5000000",
        "the connection is over",
        "\"phase\":\"done\"",
    ]);
    assert!(seen.contains("narrows speed --link"), "the command line");
    assert!(!seen.contains("client.1"), "who crosses the link is seen at the end");
}

/// A server's page shows clients and rates, but no key of either end, no name or content of a file, and no command
/// line.
#[test]
fn a_servers_page_shows_no_key_and_no_payload() {
    let home = tempfile::tempdir().unwrap();
    let server = home.path().join("server");
    let client = home.path().join("client");
    let root = home.path().join("secretroot");
    for folder in [&server, &client, &root] {
        std::fs::create_dir(folder).unwrap();
    }
    std::fs::write(root.join("secretname"), "secretbytes ".repeat(100_000)).unwrap();
    let args = ["serve", root.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let page = start(&server, &args, Some("tcp://"));
    let url = page.printed.lines().find(|l| l.contains("rrtp://")).unwrap().trim();
    let (key, _) = url.strip_prefix("rrtp://").unwrap().split_once('@').unwrap();
    let own = narrows(&client).arg("key").output().unwrap();
    let own = String::from_utf8_lossy(&own.stdout).trim().to_string();
    let got = narrows(&client).args(["get", &format!("{url}secretname")]).output().unwrap();
    assert!(got.status.success(), "{}", String::from_utf8_lossy(&got.stderr));
    let seen = page.events_until(&["127.0.0.1:", "opened by the peer", "is over"]);
    assert!(key.len() > 20 && own.len() > 20);
    for hidden in [key, &own, "secretname", "secretbytes", "secretroot", page.token.as_str()] {
        assert!(!seen.contains(hidden), "{hidden}");
    }
    assert!(seen.contains("\"title\":\"narrows serve\""));
}

/// An invalid page address causes one line of error, before any work is done.
#[test]
fn a_page_that_cannot_be_is_one_line() {
    let home = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let live = format!("--live={}", taken.local_addr().unwrap());
    for args in [vec!["speed", "--duration", "1s"], vec!["serve", "."]] {
        let out = narrows(home.path()).args(&args).arg(&live).output().unwrap();
        let line = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!((out.status.code(), line.lines().count()), (Some(2), 1), "{args:?}: {line}");
        assert!(line.contains("--live: 127.0.0.1:"), "{line}");
    }
    let args = ["get", "tcp://127.0.0.1:9/f", "--live"];
    let out = narrows(home.path()).args(args).output().unwrap();
    let line = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{line}");
    assert!(line.contains("--live is for rrtp"), "{line}");
}

/// The folders of a server and of a client in `home`, and the client's key, which the server lists in `secretclients`.
fn both_homes(home: &Path) -> (PathBuf, PathBuf, String) {
    let server = home.join("server");
    let client = home.join("client");
    for folder in [&server, &client] {
        std::fs::create_dir(folder).unwrap();
    }
    let own = narrows(&client).arg("key").output().unwrap();
    std::fs::write(server.join("secretclients"), &own.stdout).unwrap();
    (server, client, String::from_utf8_lossy(&own.stdout).trim().to_string())
}

/// The pages of both ends of a tunnel show that there is a connection, but no keys and no contents.
#[test]
fn a_tunnels_pages_show_no_key_and_no_payload() {
    let home = tempfile::tempdir().unwrap();
    let (server, client, own) = both_homes(home.path());
    let target = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let allow = target.local_addr().unwrap().to_string();
    let args = ["tunnel", "serve", "--listen", "127.0.0.1:0", "--clients", "secretclients"];
    let far = start(&server, &[&args[..], &["--allow", &allow]].concat(), Some("rrtp://"));
    let url = far.printed.lines().find(|l| l.contains("rrtp://")).unwrap().trim().to_string();
    let (key, _) = url.strip_prefix("rrtp://").unwrap().split_once('@').unwrap();
    let forward = format!("0:{allow}");
    let args = ["tunnel", "connect", &url, "--tcp", &forward];
    let near = start(&client, &args, Some("leads to"));
    let port = near.printed.lines().find_map(|l| l.trim().split_once(" leads to ")).unwrap().0;
    let mut program = TcpStream::connect(port).unwrap();
    program.write_all(b"secretquestion").unwrap();
    let (mut tcp, _) = target.accept().unwrap();
    let mut question = [0; 14];
    tcp.read_exact(&mut question).unwrap();
    tcp.write_all(b"secretanswer").unwrap();
    let mut answer = [0; 12];
    program.read_exact(&mut answer).unwrap();
    assert_eq!((&question, &answer), (b"secretquestion", b"secretanswer"));
    for (page, name) in [(&far, "\"name\":\"127.0.0.1:"), (&near, "\"name\":\"connection.1\"")] {
        let seen = page.events_until(&[name, "\"mark\":\"connection\"", "throughput_bps"]);
        for hidden in [key, &own, "secretclients", "secretquestion", "secretanswer", &page.token] {
            assert!(hidden.len() > 10 && !seen.contains(hidden), "{hidden}");
        }
    }
}

/// The pages of both ends of a media stream show frames and rates, but no keys and no contents.
#[test]
fn pages_of_media_show_no_key_and_no_payload() {
    let home = tempfile::tempdir().unwrap();
    let (server, client, own) = both_homes(home.path());
    let player = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = player.local_addr().unwrap().to_string();
    let args = ["media", "receive", "--listen", "127.0.0.1:0", "--clients", "secretclients"];
    let far = start(&server, &[&args[..], &["--to", &to]].concat(), Some("rrtp://"));
    let url = far.printed.lines().find(|l| l.contains("rrtp://")).unwrap().trim().to_string();
    let (key, _) = url.strip_prefix("rrtp://").unwrap().split_once('@').unwrap();
    let near = start(&client, &["media", "send", &url, "--from", "0"], Some("from 127"));
    let from =
        near.printed.lines().find_map(|l| l.trim().strip_prefix("from ")).unwrap().to_string();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let encoder = std::thread::spawn(move || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        while !stopped.load(Ordering::SeqCst) {
            socket.send_to(b"secretpicture", &from).unwrap();
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    let received =
        far.events_until(&["\"kind\":\"media\"", "frame_delay_s", "a stream begins", "opened by"]);
    let sent =
        near.events_until(&["\"kind\":\"media\"", "told_bps", "pacing_bps", "bandwidth_bps"]);
    stop.store(true, Ordering::SeqCst);
    encoder.join().unwrap();
    for (page, seen) in [(&far, received), (&near, sent)] {
        for hidden in [key, &own, "secretclients", "secretpicture", &to, &page.token] {
            assert!(hidden.len() > 10 && !seen.contains(hidden), "{hidden}");
        }
    }
}
