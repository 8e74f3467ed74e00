//! The tunnel's two commands over loopback, with a target.

use crate::process::{Process, narrows, run};
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;

/// One of the two commands; it ends with the test.
pub(crate) struct Running {
    _child: Process,
    /// Output up to the awaited line.
    pub(crate) last: String,
}

pub(crate) fn start(home: &Path, args: &[&str], until: &str) -> Running {
    let mut child = narrows(home).args(args).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let last = lines.find(|line| line.contains(until));
    let running = Running { _child: Process(child), last: last.unwrap_or_default().trim().into() };
    assert!(running.last.contains(until), "{args:?} ended without '{until}'");
    running
}

/// A server and its URL, for clients with this key.
pub(crate) fn serve(home: &Path, client: &Path, flags: &[&str]) -> (Running, String) {
    let key = run(client, &["key"]);
    std::fs::write(home.join("clients"), key.stdout).unwrap();
    let args = ["tunnel", "serve", "--listen", "127.0.0.1:0", "--clients", "clients"];
    let server = start(home, &[&args[..], flags].concat(), "rrtp://");
    let url = server.last.clone();
    (server, url)
}

/// Accepts one connection, and after its end sends the received bytes in capital letters.
fn target() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            let mut tcp = tcp.unwrap();
            let mut text = String::new();
            tcp.read_to_string(&mut text).unwrap();
            tcp.write_all(text.to_uppercase().as_bytes()).unwrap();
        }
    });
    port
}

fn spoken(at: &str, text: &str) -> std::io::Result<String> {
    let mut tcp = TcpStream::connect(at)?;
    let mut answer = String::new();
    tcp.write_all(text.as_bytes())?;
    tcp.shutdown(Shutdown::Write)?;
    tcp.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn a_port_leads_through_the_tunnel_to_its_target() {
    let far = tempfile::tempdir().unwrap();
    let near = tempfile::tempdir().unwrap();
    let port = target();
    let allow = format!("127.0.0.1:{port}");
    let log = ["--allow", &allow, "--log", "log"];
    let (_server, url) = serve(far.path(), near.path(), &log);
    let forward = format!("0:localhost:{port}");
    let args = ["tunnel", "connect", &url, "--tcp", &forward];
    let client = start(near.path(), &args, "leads to");
    let (at, to) = client.last.split_once(" leads to ").unwrap();
    assert_eq!(to, format!("tcp localhost:{port}"));
    assert_eq!(spoken(at, "hello").unwrap(), "HELLO");
    let log = std::fs::read_to_string(far.path().join("log")).unwrap();
    assert!(log.contains(&format!("tcp localhost:{port} opened to 127.0.0.1:{port}")), "{log}");
    assert!(!log.to_lowercase().contains("hello"), "{log}");
}

#[test]
fn forbidden_target_is_reset_and_named() {
    let far = tempfile::tempdir().unwrap();
    let near = tempfile::tempdir().unwrap();
    let (_server, url) = serve(far.path(), near.path(), &["--allow", "*:*"]);
    let port = target();
    let forward = format!("0:localhost:{port}");
    let args = ["tunnel", "connect", &url, "--log", "log", "--tcp", &forward];
    let client = start(near.path(), &args, "leads to");
    let (at, _) = client.last.split_once(" leads to ").unwrap();
    assert!(spoken(at, "hello").is_err());
    let line = format!("localhost:{port}: it has no public address");
    while !std::fs::read_to_string(near.path().join("log")).unwrap().contains(&line) {
        std::thread::yield_now();
    }
}

#[test]
fn impossible_tunnel_options_give_one_line_and_exit_2() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("empty"), "# no keys\n").unwrap();
    let key = String::from_utf8(run(home.path(), &["key"]).stdout).unwrap();
    std::fs::write(home.path().join("one"), &key).unwrap();
    let key = key.trim();
    let url = format!("rrtp://{key}@127.0.0.1:9");
    let serve = ["tunnel", "serve", "--listen", "127.0.0.1:0"];
    std::fs::write(home.path().join("bad.toml"), "socks = 1080\nsock = 1\n").unwrap();
    std::fs::write(home.path().join("far.toml"), "clients = 'one'\nallow = ['host']\n").unwrap();
    let with = |more: &[&'static str]| [&serve[..], more].concat();
    for (args, part) in [
        (with(&["--allow", "*:80"]), "--clients"),
        (with(&["--clients", "one"]), "--allow"),
        (with(&["--clients", "empty", "--allow", "*:80"]), "no client could connect"),
        (with(&["--clients", "one", "--allow", "host"]), "the port is missing"),
        (with(&["--clients", "one", "--allow", "10.0.0.1/8:22"]), "10.0.0.0/8"),
        (vec!["tunnel", "connect", &url], "--tcp"),
        (vec!["tunnel", "connect", &url, "--config", "bad.toml"], "line 2"),
        (vec!["tunnel", "connect", "--socks", "0"], "the server is missing"),
        (with(&["--config", "far.toml"]), "the port is missing"),
        (vec!["tunnel", "connect", &url, "--tcp", "80:host"], "8080:intranet:80"),
        (vec!["tunnel", "connect", "tcp://host:1/", "--tcp", "80:host:80"], "rrtp://"),
        (vec!["tunnel", "connect", "rrtp://host:1/path", "--tcp", "80:host:80"], "without a path"),
    ] {
        let done = run(home.path(), &args);
        let error = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(part) && error.lines().count() == 1, "{args:?}: {error}");
        assert!(done.stdout.is_empty());
    }
}

#[test]
fn a_port_in_use_is_one_line() {
    let home = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let forward = format!("{}:host:80", taken.local_addr().unwrap().port());
    let done = run(home.path(), &["tunnel", "connect", "rrtp://127.0.0.1:9", "--tcp", &forward]);
    let error = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1), "{error}");
    assert!(
        error.contains("another program listens there already") && error.lines().count() == 1,
        "{error}"
    );
}

#[test]
fn socks_and_datagrams_pass_and_the_port_says_so() {
    let far = tempfile::tempdir().unwrap();
    let near = tempfile::tempdir().unwrap();
    let port = target();
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let allow = [format!("127.0.0.1:{port}"), udp.local_addr().unwrap().to_string()];
    let log = ["--allow", &allow[0], &allow[1], "--log", "log"];
    let (_server, url) = serve(far.path(), near.path(), &log);
    let forward = format!("0:127.0.0.1:{}", udp.local_addr().unwrap().port());
    let client =
        start(near.path(), &["tunnel", "connect", &url, "--udp", &forward], "leads to udp");
    let program = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    program.connect(client.last.split(' ').next().unwrap()).unwrap();
    std::thread::spawn(move || {
        let mut bytes = [0; 100];
        while let Ok((n, from)) = udp.recv_from(&mut bytes) {
            assert_eq!(&bytes[..n], b"question");
            udp.send_to(b"answer", from).unwrap();
        }
    });
    // On a busy machine a datagram may expire.
    program.set_read_timeout(Some(std::time::Duration::from_secs(1))).unwrap();
    let mut bytes = [0; 100];
    let n = loop {
        program.send(b"question").unwrap();
        if let Ok(n) = program.recv(&mut bytes) {
            break n;
        }
    };
    assert_eq!(&bytes[..n], b"answer");

    std::fs::write(near.path().join("near.toml"), format!("server = '{url}'\nsocks = 0\n"))
        .unwrap();
    let client = start(near.path(), &["tunnel", "connect", "--config", "near.toml"], "SOCKS");
    let mut tcp = TcpStream::connect(client.last.split(' ').next().unwrap()).unwrap();
    let [high, low] = port.to_be_bytes();
    tcp.write_all(&[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, high, low]).unwrap();
    tcp.write_all(b"hello").unwrap();
    tcp.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    tcp.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00HELLO");
}
