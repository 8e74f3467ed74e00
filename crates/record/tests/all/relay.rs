//! A relay's recording, beside what the relay counted; and all captures beside what tshark makes of them.

use super::recording::{captured, speed};
use narrows_base::{Duration, Rate};
use narrows_link::{LinkConfig, LossSpec};
use narrows_net::Relay;
use narrows_record::{About, Recorder};
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;

fn about(ways: &[&str]) -> About {
    About {
        command: "relay",
        command_line: "narrows relay".into(),
        protocol: "any over UDP".into(),
        link: "a test's".into(),
        ways: ways.iter().map(|w| (*w).to_string()).collect(),
    }
}

/// What tshark says of every packet: interface, and whether the checksums of IP and UDP are good;
/// `None`, and why, where there is no tshark.
fn tshark(capture: &Path) -> Option<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"]);
    command.args(["-T", "fields", "-e", "frame.interface_name"]);
    command.args(["-e", "ip.checksum.status", "-e", "udp.checksum.status", "-r"]);
    let out = match command.arg(capture).output() {
        Ok(out) => out,
        Err(e) => {
            eprintln!("skipped: tshark could not be started: {e}");
            return None;
        }
    };
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(String::from_utf8_lossy(&out.stdout).lines().map(str::to_string).collect())
}

/// Every packet is of one of these interfaces, and whole.
fn opens(capture: &Path, names: &[&str], datagrams: u64) {
    let Some(lines) = tshark(capture) else { return };
    assert_eq!(lines.len() as u64, datagrams);
    let good: Vec<String> = names.iter().map(|name| format!("{name}\t1\t1")).collect();
    assert_eq!(lines.iter().find(|line| !good.contains(line)), None);
}

#[test]
fn a_relays_recording_has_what_came_and_what_went_on_both_sides() {
    let folder = std::env::temp_dir().join(format!("narrows-record-relay-{}", std::process::id()));
    let recorder = Recorder::start(&folder, about(&["the way there", "the way back"])).unwrap();
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let plain = LinkConfig::plain(Rate::from_bps(8_000_000), Duration::from_millis(5));
    let lossy = LinkConfig { loss: LossSpec::parse_all("50%").unwrap(), ..plain.clone() };
    let listen = "127.0.0.1:0".parse().unwrap();
    let to = server.local_addr().unwrap();
    let relay = Relay::watched(listen, to, &lossy, &plain, 3, Some(recorder.watch())).unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    for n in 0..100u8 {
        client.send_to(&[n; 200], relay.local_addr()).unwrap();
    }
    let mut buffer = [0; 2000];
    let (_, from) = server.recv_from(&mut buffer).unwrap();
    server.send_to(&[7; 100], from).unwrap();
    client.recv_from(&mut buffer).unwrap();
    // All is over when nothing more is on the links.
    let begun = std::time::Instant::now();
    while {
        let s = relay.stats().there;
        s.offered_packets < 100 || s.delivered_packets + s.lost + s.dropped < 100
    } {
        assert!(begun.elapsed().as_secs() < 60, "{:?}", relay.stats());
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let stats = relay.stop();
    let recording = recorder.finish().unwrap().unwrap();
    let gone = stats.there.delivered_packets;
    assert!((20..80).contains(&gone), "{stats:?}");

    // 100 came, what was not lost went on; one came back.
    let path = folder.join("packets.pcapng");
    assert_eq!(recording.datagrams, 100 + gone + 2);
    let capture = captured(&std::fs::read(&path).unwrap());
    let of = |n: usize| capture[n][0].0 + capture[n][1].0;
    assert_eq!((of(0), of(1)), (101, gone + 1), "the clients' side, the server's");
    opens(&path, &["clients", "server"], recording.datagrams);

    // The series adds up to the same.
    let results = &recording.outcome.results;
    let titles: Vec<String> = results.iter().map(|r| r.title()).collect();
    assert_eq!(titles, ["there", "back"]);
    assert_eq!(results[0].status, "the way there");
    assert_eq!(results[0].measure("loss_rate").unwrap().mean, (100 - gone) as f64 / 100.0);
    let table = &results[0].series[0];
    assert_eq!(table.kind, "link");
    let sum = |name: &str| table.column(name).unwrap().iter().sum::<f64>();
    assert_eq!(sum("losses"), stats.there.lost as f64);
    assert!(table.column("queue_max").unwrap().iter().any(|q| *q > 10.0), "a burst waits");
    for file in ["report.html", "series.parquet", "summary.json"] {
        assert!(folder.join(file).is_file(), "{file}");
    }
    let report = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(report.contains("What passed this relay?") && !report.contains("sqlog"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn tshark_opens_the_capture_of_both_ends_of_a_connection() {
    let folder = std::env::temp_dir().join(format!("narrows-record-ends-{}", std::process::id()));
    let recorder = std::sync::Arc::new(Recorder::start(&folder, about(&[])).unwrap());
    let listen = "127.0.0.1:0".parse().unwrap();
    speed(100_000, 1, recorder.clone()).local(listen, Ok, &mut |_, _| true).unwrap();
    let recording = recorder.finish().unwrap().unwrap();
    opens(&folder.join("packets.pcapng"), &["client", "server"], recording.datagrams);
    std::fs::remove_dir_all(&folder).unwrap();
}
