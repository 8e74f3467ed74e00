//! Commands as services: SIGHUP, SIGTERM, and messages to systemd.

use crate::process::{Process, narrows, run};
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A command that has printed a line with `until`; its log is the file `log` in its home.
pub(crate) fn start(home: &Path, args: &[&str], until: &str) -> (Process, String) {
    let mut child = narrows(home)
        .args(args)
        .args(["--log", "log"])
        .env("NOTIFY_SOCKET", home.join("notify"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains(until)).unwrap_or_default();
    assert!(line.contains(until), "{args:?} ended");
    (Process(child), line.trim().into())
}

pub(crate) fn key(home: &Path) -> String {
    String::from_utf8(run(home, &["key"]).stdout).unwrap()
}

/// Sends SIGHUP and waits for one more line of the log with this text.
pub(crate) fn reload(server: &Process, home: &Path, text: &str) {
    let log = || std::fs::read_to_string(home.join("log")).unwrap_or_default();
    let before = log().matches(text).count();
    let begun = Instant::now();
    server.signal("HUP");
    while log().matches(text).count() == before {
        assert!(begun.elapsed() < Duration::from_secs(120), "no '{text}': {}", log());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Exit code after SIGTERM.
pub(crate) fn terminate(mut server: Process) -> Option<i32> {
    server.signal("TERM");
    server.wait().unwrap().code()
}

pub(crate) fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            let mut tcp = tcp.unwrap();
            std::thread::spawn(move || {
                std::io::copy(&mut tcp.try_clone().unwrap(), &mut tcp).unwrap_or(0)
            });
        }
    });
    port
}

pub(crate) fn echoes(tcp: &mut TcpStream) -> std::io::Result<()> {
    tcp.write_all(b"1234")?;
    tcp.read_exact(&mut [0; 4])
}

pub(crate) fn homes() -> [TempDir; 3] {
    std::array::from_fn(|_| tempfile::tempdir().unwrap())
}

#[test]
fn tunnel_reloads_clients_and_targets_and_keeps_connections() {
    let [far, near, friend] = homes();
    let ports = [echo(), echo()];
    let config = |targets: &str| format!("clients = 'clients'\nallow = [{targets}]\n");
    let write = |name: &str, text: &str| std::fs::write(far.path().join(name), text).unwrap();
    let first = format!("'127.0.0.1:{}'", ports[0]);
    write("clients", &key(near.path()));
    write("far.toml", &config(&first));
    let serve = ["tunnel", "serve", "--listen", "127.0.0.1:0", "--config", "far.toml"];
    let (server, url) = start(far.path(), &serve, "rrtp://");
    let connect = |home: &Path, port: u16| {
        let forward = format!("0:127.0.0.1:{port}");
        let (process, line) =
            start(home, &["tunnel", "connect", &url, "--tcp", &forward], "leads to");
        (process, TcpStream::connect(line.split(' ').next().unwrap()).unwrap())
    };
    let (_near, mut tcp) = connect(near.path(), ports[0]);
    echoes(&mut tcp).unwrap();

    write("clients", &(key(near.path()) + &key(friend.path())));
    write("far.toml", &config(&format!("{first}, '127.0.0.1:{}'", ports[1])));
    reload(&server, far.path(), "reloaded: 2 clients, 2 targets");
    let (_friend, mut of_friend) = connect(friend.path(), ports[1]);
    echoes(&mut of_friend).unwrap();
    echoes(&mut tcp).unwrap();

    write("clients", "this is no key\n");
    reload(&server, far.path(), "not reloaded, all stays as it is: --clients: clients: line 1");
    echoes(&mut of_friend).unwrap();
    echoes(&mut tcp).unwrap();

    write("clients", &key(friend.path()));
    write("far.toml", &config(&format!("'127.0.0.1:{}'", ports[1])));
    reload(&server, far.path(), "reloaded: 1 clients, 1 targets");
    echoes(&mut of_friend).unwrap();
    assert!(tcp.read(&mut [0]).is_err(), "its key is not on the list any more");
    assert_eq!(terminate(server), Some(0));
}

/// As ssh does with its ProxyCommand at the end of a session.
#[test]
fn stdio_session_with_sighup_ends_without_a_line() {
    let [far, near, _] = homes();
    let target = format!("127.0.0.1:{}", echo());
    std::fs::write(far.path().join("clients"), key(near.path())).unwrap();
    let serve = ["tunnel", "serve", "--listen", "127.0.0.1:0", "--clients", "clients"];
    let (_server, url) =
        start(far.path(), &[&serve[..], &["--allow", &target]].concat(), "rrtp://");
    let mut session = narrows(near.path())
        .args(["tunnel", "connect", &url, "--stdio", &target])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map(Process)
        .unwrap();
    let mut input = session.stdin.take().unwrap();
    let mut output = session.stdout.take().unwrap();
    for _ in 0..2 {
        input.write_all(b"1234").unwrap();
        output.read_exact(&mut [0; 4]).unwrap();
        session.signal("HUP");
        // Longer than the interval between looks at the signal.
        std::thread::sleep(Duration::from_millis(500));
    }
    drop(input);
    let mut lines = String::new();
    session.stderr.take().unwrap().read_to_string(&mut lines).unwrap();
    assert_eq!(lines, "");
    assert!(session.wait().unwrap().success());
}

#[test]
fn serve_config_without_clients_is_bad_input() {
    let [home, ..] = homes();
    std::fs::write(home.path().join("serve.toml"), "dir = '.'\nlisten = '127.0.0.1:0'\n").unwrap();
    let done = run(home.path(), &["serve", "--config", "serve.toml"]);
    assert_eq!(done.status.code(), Some(2));
    let line = String::from_utf8_lossy(&done.stderr);
    assert!(line.contains("serve.toml: clients is missing"), "{line}");
}

#[test]
fn a_file_server_takes_a_new_list() {
    let [far, near, friend] = homes();
    let write = |name: &str, text: &str| std::fs::write(far.path().join(name), text).unwrap();
    write("clients", &key(near.path()));
    std::fs::create_dir(far.path().join("dir")).unwrap();
    write("dir/f", "content");
    let serve = ["serve", "dir", "--listen", "127.0.0.1:0", "--clients", "clients"];
    let (server, url) = start(far.path(), &serve, "tcp://");
    for url in [url.clone(), url.replace("tcp://", "rrtp://")] {
        let lists = |home: &Path| run(home, &["ls", &url]).status.success();
        assert!(lists(near.path()) && !lists(friend.path()));
        write("clients", &key(friend.path()));
        reload(&server, far.path(), "reloaded: 1 clients");
        assert!(!lists(near.path()) && lists(friend.path()));
        write("clients", &key(near.path()));
        reload(&server, far.path(), "reloaded: 1 clients");
    }
    assert_eq!(terminate(server), Some(0));
}

/// 400 kB in all, at 500 kB/s: less than 0.5 s if each transport had the rate for itself. At the rate after the reload
/// an hour.
#[test]
fn a_clients_rate_holds_over_both_transports_and_is_reloaded() {
    let [far, near, _] = homes();
    let write = |name: &str, text: &str| std::fs::write(far.path().join(name), text).unwrap();
    write("clients", &key(near.path()));
    std::fs::create_dir(far.path().join("dir")).unwrap();
    write("dir/f", &"x".repeat(200_000));
    write("serve.toml", "dir = 'dir'\nclients = 'clients'\nclient-limit = '4Mbit/s'\n");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--config", "serve.toml"];
    let (server, url) = start(far.path(), &serve, "tcp://");
    let get = |url: &str, to: &str| {
        narrows(near.path()).args(["get", &format!("{url}f"), "-o", to]).spawn().unwrap()
    };
    let begun = Instant::now();
    let both = [get(&url, "a"), get(&url.replace("tcp://", "rrtp://"), "b")];
    assert!(both.into_iter().all(|child| Process(child).wait().unwrap().success()));
    assert!(begun.elapsed() > Duration::from_millis(650), "{:?}", begun.elapsed());
    write("serve.toml", "dir = 'dir'\nclients = 'clients'\nclient-limit = '400bit/s'\n");
    reload(&server, far.path(), "reloaded: 1 clients");
    let mut slow = Process(get(&url, "c"));
    std::thread::sleep(Duration::from_millis(500));
    assert!(slow.try_wait().unwrap().is_none(), "it has the former rate");
    write("serve.toml", "dir = 'dir'\nclients = 'clients'\nclient-limit = '1Gbit/s'\n");
    reload(&server, far.path(), "reloaded: 1 clients");
    let mut now = Process(get(&url, "d"));
    assert!(now.wait().unwrap().success());
    assert_eq!(terminate(server), Some(0));
}

#[test]
fn systemd_is_told_of_each_state() {
    let [home, ..] = homes();
    let manager = UnixDatagram::bind(home.path().join("notify")).unwrap();
    let next = || {
        let mut bytes = [0; 200];
        let n = manager.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..n]).into_owned()
    };
    std::fs::write(home.path().join("clients"), key(home.path())).unwrap();
    let serve = ["serve", ".", "--listen", "127.0.0.1:0", "--clients", "clients"];
    let (server, _) = start(home.path(), &serve, "tcp://");
    assert!(next().starts_with("READY=1"));
    server.signal("HUP");
    let reloading = next();
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert!(next().starts_with("READY=1"));
    assert_eq!(terminate(server), Some(0));
    assert!(next().starts_with("STOPPING=1"));
}

/// Sends a request to this address, and returns the answer.
fn http(at: &str, path: &str) -> String {
    let mut tcp = TcpStream::connect(at).unwrap();
    write!(tcp, "GET {path} HTTP/1.1\r\nHost: {at}\r\n\r\n").unwrap();
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).unwrap();
    answer
}

/// A relay to this address: the process, the address of its counters, and that for clients.
fn measured_relay(home: &Path, to: &str) -> (Process, String, String) {
    let mut child = narrows(home)
        .args(["relay", "--listen", "127.0.0.1:0", "--to", to, "--link", "10Mbit/s,1ms"])
        .args(["--metrics", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut after = |text: &str| {
        let found = lines.find_map(|line| Some(line.split_once(text)?.1.to_string()));
        found.unwrap_or_else(|| panic!("no '{text}'"))
    };
    let metrics = after("metrics: http://").trim_end_matches("/metrics").to_string();
    let listen = after("relaying ").split(' ').next().unwrap().to_string();
    std::thread::spawn(move || lines.for_each(drop));
    (Process(child), metrics, listen)
}

/// The value of a sample with these labels.
fn value(metrics: &str, sample: &str) -> f64 {
    let found = metrics.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("{sample}: {metrics}")).parse().unwrap()
}

/// Each sample belongs to a family that is announced before, and no series comes twice.
fn check_format(answer: &str) {
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    let mut family = String::new();
    let mut kind = String::new();
    let mut seen = Vec::new();
    for line in body.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            family = help.split(' ').next().unwrap().into();
            assert!(!seen.contains(&family), "{family} twice");
            seen.push(family.clone());
        } else if let Some(words) = line.strip_prefix("# TYPE ") {
            kind = words.strip_prefix(&format!("{family} ")).unwrap().into();
        } else {
            let (series, number) = line.rsplit_once(' ').unwrap();
            assert_eq!(series.split('{').next().unwrap(), family);
            assert!(number.parse::<f64>().unwrap().is_finite());
            assert_eq!(kind == "counter", family.ends_with("_total"), "{line}");
            assert!(!seen.contains(&series.to_string()) || series == family, "{series} twice");
            seen.push(series.into());
        }
    }
    assert!(seen.len() > 4, "{body}");
}

#[test]
fn prometheus_reads_counters_of_a_server_without_names() {
    let [far, near, _] = homes();
    std::fs::create_dir(far.path().join("dir")).unwrap();
    std::fs::write(far.path().join("dir/secret-name"), vec![7; 300_000]).unwrap();
    let serve = ["serve", "dir", "--listen", "127.0.0.1:0"];
    let args = [&serve[..], &["--metrics", "127.0.0.1:0"]].concat();
    let mut child = narrows(far.path())
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = errors.find(|line| line.starts_with("metrics: ")).unwrap();
    let at = line.trim_start_matches("metrics: http://").trim_end_matches("/metrics").to_string();
    std::thread::spawn(move || errors.for_each(drop));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let url = lines.find(|line| line.contains("rrtp://")).unwrap().trim().to_string();
    let _server = Process(child);
    check_format(&http(&at, "/metrics"));
    assert!(run(near.path(), &["get", &format!("{url}secret-name")]).status.success());
    assert!(!run(near.path(), &["get", &format!("{url}absent")]).status.success());
    // The ends of the connections may take a moment, and the text is renewed ten times a second.
    let metrics = loop {
        let metrics = http(&at, "/metrics");
        if metrics.contains("narrows_connections_closed_total{reason=\"peer\"} 2\n") {
            break metrics;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    check_format(&metrics);
    assert_eq!(value(&metrics, "narrows_connections"), 0.0);
    assert_eq!(value(&metrics, "narrows_connections_opened_total"), 2.0);
    assert!(value(&metrics, "narrows_goodput_bytes_total{direction=\"sent\"}") >= 300_000.0);
    let get = |result: &str| {
        value(&metrics, &format!("narrows_requests_total{{request=\"get\",result=\"{result}\"}}"))
    };
    assert_eq!((get("ok"), get("failed")), (1.0, 1.0));
    assert_eq!(value(&metrics, "narrows_refusals_total{reason=\"not_found\"}"), 1.0);
    assert!(!metrics.contains("secret") && !metrics.contains("absent"), "{metrics}");
    assert!(http(&at, "/").starts_with("HTTP/1.1 404"));
}

#[test]
fn prometheus_reads_the_links_of_a_relay() {
    let [home, ..] = homes();
    let server = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = server.local_addr().unwrap().to_string();
    let (_relay, at, listen) = measured_relay(home.path(), &to);
    let offered = "narrows_link_offered_packets_total{link=\"relay\",direction=\"forward\"}";
    let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    loop {
        let _ = client.send_to(b"hello", &listen);
        let metrics = http(&at, "/metrics");
        check_format(&metrics);
        if metrics.contains(offered) && value(&metrics, offered) >= 1.0 {
            break;
        }
    }
}

/// Each check has a state and a finding; what is not ok says what to do, if anything can be done.
#[test]
fn the_doctor_names_each_thing_that_the_machine_permits() {
    let [home, ..] = homes();
    let done = run(home.path(), &["doctor", "--json"]);
    assert!(done.status.success());
    let text = String::from_utf8(done.stdout).unwrap();
    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    let names: Vec<&str> =
        all.as_array().unwrap().iter().map(|one| one["check"].as_str().unwrap()).collect();
    for name in ["link", "tunnel --tun", "kernel run", "socket buffers", "GSO and GRO", "clock"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    for one in all.as_array().unwrap() {
        assert!(["ok", "limited", "missing"].contains(&one["state"].as_str().unwrap()), "{one}");
        assert!(!one["finding"].as_str().unwrap().is_empty(), "{one}");
    }
    let shown = String::from_utf8(run(home.path(), &["doctor"]).stdout).unwrap();
    assert!(names.iter().all(|name| shown.contains(name)), "{shown}");
}
