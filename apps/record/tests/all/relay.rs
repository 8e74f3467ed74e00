//! A relay's recording, compared with the relay's counts; and all captures, compared with tshark's output.

use super::recording::{captured, speed};
use narrows_base::{Duration, Rate};
use narrows_link::{LinkConfig, LossSpec};
use narrows_net::Relay;
use narrows_record::{Recorder, RecordingDescription};
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;

fn about(ways: &[&str]) -> RecordingDescription {
    RecordingDescription {
        command: "relay",
        command_line: "narrows relay".into(),
        protocol: "any over UDP".into(),
        link: "a test's".into(),
        ways: ways.iter().map(|w| (*w).to_string()).collect(),
    }
}

/// tshark's output for every packet: interface, and whether the checksums of IP and UDP are good; `None` after a
/// message if tshark is not installed.
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

/// Number of packets that tcpdump (libpcap) reads; `None` after a message if tcpdump is not installed.
fn tcpdump(capture: &Path) -> Option<u64> {
    // Without a change of user: tcpdump's own user may not read this folder.
    let out = match Command::new("tcpdump").args(["-Z", "root", "-nr"]).arg(capture).output() {
        Ok(out) => out,
        Err(e) => {
            eprintln!("skipped: tcpdump could not be started: {e}");
            return None;
        }
    };
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(String::from_utf8_lossy(&out.stdout).lines().filter(|l| l.contains(" IP")).count() as u64)
}

/// Every packet of the captures is complete and belongs to its end; there are `datagrams` in all.
fn opens(folder: &Path, ends: &[&str; 2], datagrams: u64) {
    let files = [folder.join("packets.pcapng"), folder.join(format!("packets-{}.pcapng", ends[1]))];
    if let Some(read) = files.iter().map(|file| tcpdump(file)).sum::<Option<u64>>() {
        assert_eq!(read, datagrams);
    }
    let Some(lines) = files.iter().map(|file| tshark(file)).collect::<Option<Vec<_>>>() else {
        return;
    };
    assert_eq!(lines.iter().map(Vec::len).sum::<usize>() as u64, datagrams);
    for (lines, end) in lines.iter().zip(ends) {
        assert_eq!(lines.iter().find(|line| **line != format!("{end}\t1\t1")), None);
    }
}

#[test]
fn relays_recording_has_arrivals_and_departures_of_both_sides() {
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
    // The relay is done when its links are empty.
    let begun = std::time::Instant::now();
    while {
        let s = relay.stats().forward;
        s.offered_packets < 100 || s.delivered_packets + s.lost + s.dropped < 100
    } {
        assert!(begun.elapsed().as_secs() < 60, "{:?}", relay.stats());
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let stats = relay.stop();
    let recording = recorder.finish().unwrap().unwrap();
    let gone = stats.forward.delivered_packets;
    assert!((20..80).contains(&gone), "{stats:?}");

    // 100 arrived; those that were not lost went on; one returned.
    assert_eq!(recording.datagrams, 100 + gone + 2);
    let of = |name: &str| {
        let capture = captured(&std::fs::read(folder.join(name)).unwrap());
        capture[0].0 + capture[1].0
    };
    assert_eq!(of("packets.pcapng"), 101, "the clients' side");
    assert_eq!(of("packets-server.pcapng"), gone + 1);
    opens(&folder, &["clients", "server"], recording.datagrams);

    // The series adds up to the same.
    let results = &recording.outcome.results;
    let titles: Vec<String> = results.iter().map(|r| r.title()).collect();
    assert_eq!(titles, ["there", "back"]);
    assert_eq!(results[0].status, "the way there");
    assert_eq!(results[0].measure("loss_rate").unwrap().mean, (100 - gone) as f64 / 100.0);
    let table = &results[0].series[0];
    assert_eq!(table.kind, "link");
    let sum = |name: &str| table.column(name).unwrap().iter().sum::<f64>();
    assert_eq!(sum("losses"), stats.forward.lost as f64);
    assert!(table.column("queue_max").unwrap().iter().any(|q| *q > 10.0), "a burst waits");
    for file in ["report.html", "series.parquet", "summary.json"] {
        assert!(folder.join(file).is_file(), "{file}");
    }
    let report = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(report.contains("What passed this relay?") && !report.contains("sqlog"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn tcpdump_and_tshark_open_captures_of_both_ends() {
    let folder = std::env::temp_dir().join(format!("narrows-record-ends-{}", std::process::id()));
    let recorder = std::sync::Arc::new(Recorder::start(&folder, about(&[])).unwrap());
    let listen = "127.0.0.1:0".parse().unwrap();
    speed(100_000, 1, recorder.clone()).local(listen, Ok, &mut |_, _| true).unwrap();
    let recording = recorder.finish().unwrap().unwrap();
    // The server is there first.
    opens(&folder, &["server", "client"], recording.datagrams);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A received packet is reported when it is read, but its time is that of its arrival.
#[test]
fn packets_reported_out_of_order_are_recorded_by_time() {
    let folder = std::env::temp_dir().join(format!("narrows-record-order-{}", std::process::id()));
    let recorder = Recorder::start(&folder, about(&["the way there", "the way back"])).unwrap();
    let link = recorder.ip_link(["a", "b"], narrows_net::Clock::new());
    let packet = |n: u8| [&[0x45, 0, 0, 28][..], &[n; 25]].concat();
    for (end, ms) in [(0, 50), (0, 10), (1, 60), (0, 30), (1, 20)] {
        let at = narrows_base::Time::from_nanos(ms * 1_000_000);
        link.passed(end, at, &packet(ms as u8));
    }
    drop(link);
    recorder.finish().unwrap().unwrap();
    for (file, packets) in [("packets.pcapng", 3), ("packets-b.pcapng", 2)] {
        let capture = captured(&std::fs::read(folder.join(file)).unwrap());
        assert_eq!(capture[0].0 + capture[1].0, packets, "{file}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A link that another user planted in the folder is not followed.
#[cfg(unix)]
#[test]
fn a_recording_writes_through_no_link() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let treasure = folder.join("treasure");
    std::fs::write(&treasure, "gold").unwrap();
    let rec = folder.join("rec");
    std::fs::create_dir(&rec).unwrap();
    std::os::unix::fs::symlink(&treasure, rec.join("packets.pcapng")).unwrap();
    for name in ["packets-b.pcapng", "connection-1.sqlog", "report.html", "series.parquet"] {
        std::fs::hard_link(&treasure, rec.join(name)).unwrap();
    }
    let recorder = Recorder::start(&rec, about(&["the way there", "the way back"])).unwrap();
    let link = recorder.ip_link(["a", "b"], narrows_net::Clock::new());
    link.passed(0, narrows_base::Time::ZERO, &[0x45; 40]);
    link.passed(1, narrows_base::Time::ZERO, &[0x45; 40]);
    drop(link);
    recorder.finish().unwrap().unwrap();
    assert_eq!(std::fs::read(&treasure).unwrap(), b"gold");
    assert!(!rec.join("packets.pcapng").is_symlink());
}
