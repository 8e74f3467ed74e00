use super::*;
use crate::feed::frame::{FeedCursor, Wants};
use crate::feed::{Feed, MAX_TRACKS, RunDescription};
use serde_json::Value;

fn connections() -> (Arc<Feed>, ConnectionTracks) {
    let feed = Feed::new("test");
    let about = RunDescription { name: "serve".into(), detail: "".into(), real: true, end_s: None };
    let run = feed.begin(about).unwrap();
    (feed, ConnectionTracks::new(run, "rrtp"))
}

fn key(n: u64) -> ConnectionKey {
    (1, n)
}

fn opened(n: u64) -> AnnouncedConnection {
    let name = format!("192.0.2.{}:{}", n % 250, 1000 + n);
    AnnouncedConnection { key: key(n), name: Some(name), title: "opened by the peer" }
}

/// Statistics after `ms` at 100 packets a second with an RTT of 40 ms.
fn figures(ms: u64) -> ConnectionStatistics {
    ConnectionStatistics {
        cwnd: 20.0,
        in_flight: 5,
        rtt_sum_s: 4e-3 * ms as f64,
        rtt_samples: ms / 10,
        pacing_bps: 2e6,
        carried_bytes: 125 * ms,
        sent_bytes: 130 * ms,
        sent: ms / 10,
        ..ConnectionStatistics::default()
    }
}

fn ended(ms: u64) -> ConnectionEnd {
    ConnectionEnd { why: "The peer closed it, with code 0.".into(), last: figures(ms) }
}

fn titles(frame: &Value) -> Vec<&str> {
    frame["events"].as_array().unwrap().iter().filter_map(|e| e["title"].as_str()).collect()
}

fn all(feed: &Arc<Feed>) -> Value {
    let mut cursor = FeedCursor::new(Wants { packets: Some(0), ..Wants::default() });
    serde_json::from_str(&cursor.frame(feed).unwrap()).unwrap()
}

fn column(frame: &Value, track: usize, name: &str) -> Vec<Value> {
    let columns = frame["tracks"][track]["columns"].as_array().unwrap();
    let at = columns.iter().position(|c| c["name"] == name).unwrap();
    frame["rows"][track]["c"][at].as_array().unwrap().clone()
}

/// The page draws the endpoint's own statistics: counters since the former sample, the mean RTT.
#[test]
fn figures_of_a_connection_become_a_flow() {
    let (feed, mut connections) = connections();
    connections.admit(vec![opened(7)]);
    assert_eq!(connections.wanted(1), [7]);
    assert!(connections.wanted(2).is_empty(), "another endpoint's");
    for n in 1..=10 {
        let mut now = figures(100 * n);
        if n == 10 {
            now.lost = 3;
            now.cwnd = 10.0;
        }
        let watched = vec![("mode", 1.0)];
        connections.sample(100_000 * n as i64, vec![(key(7), now, watched)], &BTreeMap::new());
    }
    let frame = all(&feed);
    assert_eq!(frame["tracks"][0]["name"], "192.0.2.7:1007");
    let last = |name| column(&frame, 0, name).last().unwrap().as_f64().unwrap();
    assert_eq!((last("throughput_bps"), last("sent_bps")), (1e6, 1.04e6));
    assert_eq!((last("sent"), last("acked"), last("lost")), (100.0, 95.0, 3.0));
    assert!((last("rtt_s") - 0.04).abs() < 1e-6, "the samples' mean: {}", last("rtt_s"));
    assert_eq!(last("pacing_bps"), 2e6);
    assert_eq!(frame["packets"]["p"], serde_json::json!([1_000_000, 95, 4]));
    let events = frame["events"].as_array().unwrap();
    let slower = events.iter().find(|e| e["mark"] == "slower").unwrap();
    assert_eq!(slower["why"][0], "The sender found 3 packets lost.");
}

/// A hundred thousand connections, sequential and concurrent: memory is bounded, ended ones give way, and a browser
/// learns which connection each track now has.
#[test]
fn connections_without_end_stay_bounded() {
    let (feed, mut connections) = connections();
    let mut cursor = FeedCursor::new(Wants::default());
    let mut names = std::collections::BTreeSet::new();
    for round in 0..2_000_u64 {
        let new: Vec<AnnouncedConnection> = (0..50).map(|n| opened(round * 50 + n)).collect();
        connections.admit(new);
        let wanted = connections.wanted(1);
        assert!(wanted.len() <= MAX_SHOWN);
        // Every connection lives for three rounds after its first sample.
        let seen = wanted.iter().filter(|h| *h + 500 > round * 50);
        let seen = seen.map(|h| ((1, *h), figures(round), Vec::new())).collect();
        connections.sample(round as i64 * 16_667, seen, &BTreeMap::new());
        let frame: Value = serde_json::from_str(&cursor.frame(&feed).unwrap()).unwrap();
        let tracks = frame["tracks"].as_array().cloned().unwrap_or_default();
        // Four per update.
        assert!(tracks.len() <= 4, "a frame tells of few new ones: {}", tracks.len());
        names.extend(tracks.iter().map(|t| t["name"].to_string()));
    }
    let frame = all(&feed);
    let tracks = frame["tracks"].as_array().unwrap();
    assert!(tracks.len() <= MAX_TRACKS && names.len() > 1000, "{} {}", tracks.len(), names.len());
    let events = frame["events"].as_array().unwrap();
    let first = names.len() as u64;
    assert!(events.len() as u64 <= 2 * first && !events.is_empty());
}

/// Connections beyond the limit are not sampled, and one that closes makes room for the next new one.
#[test]
fn a_hundred_are_shown_at_a_time() {
    let (_feed, mut connections) = connections();
    for n in 0..150 {
        connections.admit(vec![opened(n)]);
    }
    assert_eq!(connections.shown.len(), MAX_SHOWN);
    assert_eq!(connections.wanted(1).len(), MAX_SHOWN);
    assert!(connections.wanted(0).is_empty() && connections.wanted(2).is_empty());
    let seen = |from: u64| (from..100).map(|n| (key(n), figures(1), Vec::new())).collect();
    connections.sample(1, seen(0), &BTreeMap::new());
    assert_eq!(connections.shown.len(), MAX_SHOWN);
    let why = BTreeMap::from([(key(0), ended(1))]);
    connections.sample(2, seen(1), &why);
    connections.admit(Vec::new());
    assert!(connections.shown.contains_key(&key(100)), "the one that waited longest");
    assert!(!connections.shown.contains_key(&key(0)));
}

/// An hour at 60 samples a second uses the memory of the history's levels, independent of readers.
#[test]
fn an_hour_of_a_connection_is_bounded() {
    let (feed, mut connections) = connections();
    connections.admit(vec![opened(1)]);
    for n in 0..216_000_u64 {
        let mut now = figures(n * 16);
        now.lost = n / 7;
        connections.sample(n as i64 * 16_667, vec![(key(1), now, Vec::new())], &BTreeMap::new());
    }
    let frame = all(&feed);
    let rows = column(&frame, 0, "cwnd").len();
    assert!(rows < 10 * 1024, "{rows}");
    assert!(frame["packets"]["p"].as_array().unwrap().len() <= 3 * 8_192);
    let lost: f64 = column(&frame, 0, "lost").iter().filter_map(Value::as_f64).sum();
    assert_eq!(lost, (215_999 / 7) as f64, "nothing is forgotten");
}

/// A small file is served between two samples: its connection is on the page all the same.
#[test]
fn connection_within_one_interval_is_shown() {
    let (feed, mut connections) = connections();
    connections.admit(vec![opened(1)]);
    connections.sample(16_667, Vec::new(), &BTreeMap::from([(key(1), ended(10))]));
    let frame = all(&feed);
    assert_eq!(titles(&frame), ["opened by the peer", "the connection is over"]);
    assert_eq!(frame["tracks"][0]["name"], "192.0.2.1:1001");
    let carried = column(&frame, 0, "throughput_bps")[0].as_f64().unwrap();
    assert!((carried - 1250.0 * 8.0 / 16.667e-3).abs() < 1e3, "{carried}");
    assert!(connections.shown.is_empty());
}

/// The endpoint reports an end after the connection disappears, and a sample may fall between.
#[test]
fn an_end_that_is_told_late_keeps_its_reason() {
    let (feed, mut connections) = connections();
    connections.admit(vec![opened(1), opened(2)]);
    let seen = |n| (key(n), figures(1), Vec::new());
    connections.sample(1, vec![seen(1)], &BTreeMap::new());
    connections.sample(2, Vec::new(), &BTreeMap::from([(key(2), ended(2))]));
    assert!(connections.shown.contains_key(&key(1)), "missed once");
    connections.sample(3, Vec::new(), &BTreeMap::new());
    assert!(connections.shown.is_empty());
    let frame = all(&feed);
    let events = frame["events"].as_array().unwrap().iter();
    let why: Vec<&str> = events.filter_map(|e| e["why"][0].as_str()).collect();
    let peer = "The peer closed it, with code 0.";
    let own = "Its endpoint has ended.";
    let shown = "From here on it is shown.";
    assert_eq!(why, [shown, shown, peer, own]);
}
