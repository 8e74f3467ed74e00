//! `narrows probe` over loopback, as in the documentation: a server, a relay with a link, then `compare`.

use crate::process::{Process, narrows, run};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;

/// A process, and the address that it has printed; it ends when this is dropped.
struct Running(#[expect(dead_code, reason = "it ends the process")] Process, String);

fn start(home: &Path, args: &[&str]) -> Running {
    let mut child =
        narrows(home).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let both: [Box<dyn Read + Send>; 2] =
        [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
    let (found, address) = std::sync::mpsc::channel();
    for output in both {
        let found = found.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let word = line.split([' ', '@', '/', ';']).find(|w| w.starts_with("127.0.0.1:"));
                word.map(|w| found.send(w.to_string()));
            }
        });
    }
    let at = address.recv_timeout(std::time::Duration::from_secs(60)).expect("no address");
    Running(Process(child), at)
}

fn fails(home: &Path, args: &[&str], code: i32, hint: &str) {
    let out = run(home, args);
    let err = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(code), "{args:?}: {err}");
    assert_eq!(err.lines().count(), 1, "{args:?}: {err}");
    assert!(err.contains(hint), "{args:?}: {err}");
}

/// Attempts of a measurement before it counts as wrong: a busy machine sends and reads late, and spoils some.
const ATTEMPTS: usize = 6;

/// The output of a probe that `is_right`, in JSON.
fn probed(home: &Path, args: &[&str], is_right: impl Fn(&Value) -> bool) -> Value {
    let mut wrong = Vec::new();
    for _ in 0..ATTEMPTS {
        let out = run(home, &[&["probe", "--json"], args].concat());
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let found: Value = serde_json::from_slice(&out.stdout).unwrap();
        if is_right(&found) {
            return found;
        }
        wrong.push(found);
    }
    panic!("each time another path was found: {wrong:?}")
}

fn number(value: &Value, at: &str) -> f64 {
    value.pointer(at).and_then(Value::as_f64).unwrap()
}

#[test]
fn each_path_is_probed_and_an_unbindable_one_named() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let server = start(home, &["speed", "--serve", "--listen", "127.0.0.1:0"]);
    let args = ["--path", "192.0.2.77", "--path", "127.0.0.1", &server.1];
    let found = probed(home, &args, |found| found["paths"][1]["base_rtt_s"]["value"].is_number());
    assert_eq!(found["paths"][0]["path"], "192.0.2.77");
    assert!(found["paths"][0]["error"].as_str().unwrap().contains("assign"), "{found}");
    assert_eq!(found["paths"][1]["path"], "127.0.0.1");
    fails(home, &["probe", "--path", "192.0.2.77", &server.1], 1, "assign");
}

/// The file server answers probes with any of its protocols; the saved path is a link for every command.
#[test]
fn a_probed_path_is_a_link_that_can_be_compared() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let folder = home.join("root");
    std::fs::create_dir(&folder).unwrap();
    let folder = folder.to_str().unwrap();
    let server =
        start(home, &["serve", "--listen", "127.0.0.1:0", "--protocol", "rrtp+cubic", folder]);
    let link = "4Mbit/s,20ms,queue=30p,loss=2%,reverse-rate=2Mbit/s";
    let relay =
        start(home, &["relay", "--listen", "127.0.0.1:0", "--to", &server.1, "--link", link]);
    // The accuracy of estimates is tested in simulation.
    let found = probed(home, &[&relay.1, "--fill", "--save", "here"], |found| {
        (2.8e6..4.6e6).contains(&number(found, "/there/rate_bps/value"))
            && (1.4e6..2.3e6).contains(&number(found, "/back/rate_bps/value"))
            && (0.039..0.080).contains(&number(found, "/base_rtt_s/value"))
            && number(found, "/there/loss/share/high") > 0.015
            && number(found, "/there/loss/share/low") < 0.025
    });
    assert!(number(&found, "/there/sent_bytes") < 25e6);
    let saved = std::fs::read_to_string(home.join("config/narrows/links.toml")).unwrap();
    assert!(saved.contains(found["link"].as_str().unwrap()), "{saved}");
    let compared = run(
        home,
        &["compare", "--link", "here", "--protocols", "cubic", "--seeds", "1", "--duration", "5s"],
    );
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stderr));
    let listed = run(home, &["list", "here", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed.pointer("/0/specification"), found.get("link"), "{listed}");
    fails(home, &["compare", "--link", "heer", "--protocols", "cubic"], 2, "'here'");
}

/// The recorded path is played by `relay`, and by `compare`: within a tenth of the path's rate there, and of its lower
/// rate back.
#[test]
fn a_recorded_path_is_replayed_at_its_rate() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let server = start(home, &["speed", "--serve", "--listen", "127.0.0.1:0"]);
    let link = "4Mbit/s,20ms,queue=200p,reverse-rate=2Mbit/s";
    let relay =
        start(home, &["relay", "--listen", "127.0.0.1:0", "--to", &server.1, "--link", link]);
    let is_near = |rate: f64, truth: f64| (rate / truth - 1.0).abs() < 0.1;
    let goodput = |link: &str| {
        let args = ["compare", "--link", link, "--protocols", "cubic", "--seeds", "1"];
        let out = run(home, &[&args[..], &["--duration", "20s", "--json"]].concat());
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let compared: Value = serde_json::from_slice(&out.stdout).unwrap();
        number(&compared, "/results/0/goodput_bps/mean")
    };
    let truth = goodput(link);
    probed(home, &[&relay.1, "--trace", "path", "--save", "path"], |found| {
        is_near(number(found, "/recorded/0/rate_bps"), 4e6)
            && is_near(number(found, "/recorded/1/rate_bps"), 2e6)
            && is_near(goodput("path"), truth)
    });
}

#[test]
fn failed_probe_gives_one_line() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    fails(home, &["probe", "127.0.0.1:9", "--save", "geo"], 2, "narrows' own");
    fails(home, &["probe", "127.0.0.1:9", "--save", "../x"], 2, "no name of a link");
    fails(home, &["probe", "http://127.0.0.1"], 2, "rrtp");
    fails(home, &["probe", "127.0.0.1:0"], 2, "the port is 0");
    fails(home, &["probe", "127.0.0.1:9", "--trace", "a,b"], 2, "without commas");
    // If no server answers, the error names the possible servers, and the measurement that needs none.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = silent.local_addr().unwrap().to_string();
    fails(home, &["probe", &at], 1, "--tcp");
    std::fs::create_dir_all(home.join("config/narrows")).unwrap();
    std::fs::write(home.join("config/narrows/links.toml"), "here = 3\n").unwrap();
    fails(home, &["compare", "--link", "here"], 2, "links.toml");
    fails(home, &["list", "links"], 2, "links.toml");
}

#[test]
fn any_tcp_server_says_the_round_trip_and_no_more() {
    let home = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let out = run(home.path(), &["probe", &at, "--tcp", "--json"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let found: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(found["handshakes"], 10);
    assert!(found["least_s"].as_f64().unwrap() <= found["median_s"].as_f64().unwrap());
    assert!(found.get("link").is_none(), "{found}");
}
