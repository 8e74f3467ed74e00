//! Recordings of real connections over loopback.

use narrows_record::{Recorder, RecordingDescription};
use narrows_speed::{Amount, MeasurementTaps, Speed};
use narrows_transport::Protocol;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// Counts datagrams and payload bytes in a capture of one end, by kind of packet (handshake or data). There is one
/// interface, and times do not run backwards.
pub fn captured(file: &[u8]) -> [(u64, u64); 2] {
    let mut out = [(0, 0); 2];
    let mut interfaces = 0;
    let mut before = 0;
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let mut at = 0;
    while at < file.len() {
        let kind = word(at);
        let length = word(at + 4);
        if kind == 6 {
            let interface = word(at + 8);
            let size = word(at + 20);
            let time = (word(at + 12) as u64) << 32 | word(at + 16) as u64;
            assert!(interface == 0 && time >= before, "{before} and then {time}");
            before = time;
            let payload = &file[at + 28 + 28..at + 28 + size];
            let long = usize::from(payload[0] & 0x80 != 0);
            out[long].0 += 1;
            out[long].1 += payload.len() as u64;
        }
        interfaces += usize::from(kind == 1);
        at += length;
    }
    assert_eq!(interfaces, 1);
    out
}

fn records(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.starts_with('\u{1e}') && text.ends_with('\n'));
    let records: Vec<Value> =
        text.split('\u{1e}').skip(1).map(|r| serde_json::from_str(r).unwrap()).collect();
    let times: Vec<f64> = records[1..].iter().map(|e| e["time"].as_f64().unwrap()).collect();
    assert!(times.is_sorted() && times[0] >= 0.0, "times run backwards in {}", path.display());
    records
}

/// Counts of both captures: the client's, the server's. Each names its interface after its end.
fn captures(folder: &Path) -> [[(u64, u64); 2]; 2] {
    let files = ["packets.pcapng", "packets-client.pcapng", "packets-server.pcapng"];
    let read = |name: &&str| std::fs::read(folder.join(name)).ok();
    let files: Vec<Vec<u8>> = files.iter().filter_map(read).collect();
    assert_eq!(files.len(), 2);
    ["client", "server"].map(|end| {
        let is_of = |file: &&Vec<u8>| file[..80].windows(6).any(|w| w == end.as_bytes());
        captured(files.iter().find(is_of).unwrap())
    })
}

fn named<'a>(events: &'a [Value], name: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |e| e["name"] == name)
}

/// `bytes` bytes from client to server over `connections` connections.
pub fn speed(bytes: u64, connections: usize, recorder: Arc<Recorder>) -> Speed {
    Speed {
        connections,
        taps: MeasurementTaps {
            client: Some(recorder.tap("client")),
            server: Some(recorder.tap("server")),
        },
        ..Speed::new(Protocol::rrtp(), Amount::Bytes(bytes))
    }
}

#[test]
fn a_recording_has_every_packet_that_the_figures_count() {
    let folder = std::env::temp_dir().join(format!("narrows-record-{}", std::process::id()));
    let about = RecordingDescription {
        command: "speed",
        command_line: "narrows speed".into(),
        protocol: "rrtp".into(),
        link: "this machine's loopback".into(),
        ways: Vec::new(),
    };
    let recorder = Arc::new(Recorder::start(&folder, about).unwrap());
    let speed = speed(2_000_000, 2, recorder.clone());
    let listen = "127.0.0.1:0".parse().unwrap();
    let result = speed.local(listen, Ok, &mut |_, _| true).unwrap();
    assert_eq!(result.bytes, 4_000_000);
    let recording = recorder.finish().unwrap().unwrap();
    assert!(recorder.finish().unwrap().is_none(), "it is over");
    assert_eq!(recording.connections, 4, "two at each end");

    // Everything is in the capture, and in the events of some connection.
    let capture = captures(&folder);
    let mut datagrams = 0;
    let mut packets = [(0, 0); 2];
    for number in 1..=4 {
        let events = records(&folder.join(format!("connection-{number}.sqlog")));
        assert_eq!(events[0]["qlog_version"], "0.3");
        assert_eq!(events[0]["qlog_format"], "JSON-SEQ");
        let end = usize::from(events[0]["trace"]["vantage_point"]["type"] == "server");
        assert_eq!(events[1]["name"], "connectivity:connection_started");
        assert_eq!(named(&events, "connectivity:connection_closed").count(), 1);
        assert!(named(&events, "recovery:metrics_updated").count() > 0);
        for event in &events[1..] {
            assert!(event["time"].is_f64() && event["data"].is_object(), "{event}");
        }
        for name in ["transport:packet_sent", "transport:packet_received"] {
            let mut numbers = Vec::new();
            for event in named(&events, name) {
                packets[end].0 += 1;
                packets[end].1 += event["data"]["raw"]["length"].as_u64().unwrap();
                numbers.push(event["data"]["header"]["packet_number"].as_u64().unwrap());
            }
            numbers.sort_unstable();
            let all = numbers.len();
            numbers.dedup();
            assert_eq!(numbers.len(), all, "numbers are never used again");
        }
    }
    for end in 0..2 {
        assert_eq!(capture[end][0], packets[end]);
        assert!(capture[end][1].0 >= 10, "two handshakes of five packets: {capture:?}");
        datagrams += capture[end][0].0 + capture[end][1].0;
    }
    assert_eq!(recording.datagrams, datagrams);

    // The figures agree with it, except for the packets by which a connection closes.
    for (number, figures) in recording.figures.iter().enumerate() {
        let events = records(&folder.join(format!("connection-{}.sqlog", number + 1)));
        let client = events[0]["trace"]["vantage_point"]["type"] == "client";
        let open = events.iter().take_while(|e| e["name"] != "connectivity:connection_closed");
        let open: Vec<Value> = open.cloned().collect();
        let bytes = |name| {
            let lengths = named(&open, name).map(|e| e["data"]["raw"]["length"].as_u64().unwrap());
            lengths.sum::<u64>()
        };
        assert_eq!(figures.bytes_sent, bytes("transport:packet_sent"));
        // Packets that arrive between the application's close and the endpoint's next run are not opened.
        assert!(figures.bytes_received <= bytes("transport:packet_received"));
        // The request is 17 bytes. A client closes after the last tally, before every report has arrived.
        if client {
            assert!(figures.bytes_arrived <= 2_000_017, "{figures:?}");
        } else {
            assert_eq!(figures.bytes_taken, 2_000_017);
        }
    }
    assert_eq!(recording.outcome.results.len(), 2, "both ends");
    for file in ["report.html", "series.parquet", "summary.json"] {
        assert!(folder.join(file).is_file(), "{file}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
