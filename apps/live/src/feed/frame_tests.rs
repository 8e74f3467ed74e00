use super::*;
use crate::feed::history::{LEVEL_ROWS, Merge};
use crate::feed::{RunDescription, TrackColumn};

fn run_of(flows: usize) -> (Arc<Feed>, Arc<LiveRun>) {
    let feed = Feed::new("narrows \"test\"");
    let about =
        RunDescription { name: "a".into(), detail: "b".into(), real: false, end_s: Some(2.0) };
    let run = feed.begin(about).unwrap();
    for n in 0..flows {
        let merge = Merge::Mean;
        let cwnd = TrackColumn { name: "cwnd", unit: "packets", meaning: String::new(), merge };
        run.track(TrackKind::Flow, &format!("main.{n}"), vec![cwnd]).unwrap();
    }
    (feed, run)
}

fn read(text: Option<String>) -> Value {
    serde_json::from_str(&text.unwrap()).unwrap()
}

/// The first frame has all data, the next ones only the changes, and without changes there is no frame.
#[test]
fn each_frame_has_only_changes() {
    let (feed, run) = run_of(2);
    run.update(1000, |u| u.row(0, &[4.5]));
    let mut cursor = FeedCursor::new(Wants { packets: Some(0), ..Wants::default() });
    let first = read(cursor.frame(&feed));
    assert_eq!(first["feed"]["title"], "narrows \"test\"");
    assert_eq!(first["tracks"][1]["name"], "main.1");
    assert_eq!(first["rows"], json!([{ "track": 0, "all": 1, "t": [1000], "c": [[4.5]] }]));
    assert_eq!(cursor.frame(&feed), None);
    run.update(2000, |u| {
        u.row(0, &[f32::NAN]);
        u.packet(0, 1999, 7, PacketKind::Dropped);
        let title = "slower".into();
        let why = vec!["because".into()];
        u.event(FeedEvent { time_us: 2000, track: 0, mark: EventMark::Slower, title, why });
    });
    let second = read(cursor.frame(&feed));
    assert_eq!(second["rows"], json!([{ "track": 0, "all": 0, "t": [2000], "c": [[null]] }]));
    assert_eq!(second["packets"]["p"], json!([1999, 7, 3]));
    assert_eq!(second["events"][0]["why"], json!(["because"]));
    assert!(second.get("tracks").is_none() && second.get("feed").is_none());
    run.end(RunPhase::Stopped("the peer vanished".into()));
    assert_eq!(read(cursor.frame(&feed))["phase"], "stopped: the peer vanished");
}

/// A browser that slept gets the stored data, whose size is bounded, instead of all missed frames.
#[test]
fn a_slow_browser_is_brought_to_the_newest() {
    let (feed, run) = run_of(1);
    run.update(0, |u| u.row(0, &[0.0]));
    let mut cursor = FeedCursor::new(Wants::default());
    cursor.frame(&feed);
    for i in 1..=100_000 {
        run.update(i, |u| u.row(0, &[i as f32]));
    }
    let frame = read(cursor.frame(&feed));
    let rows = &frame["rows"][0];
    assert_eq!(rows["all"], 1);
    let times = rows["t"].as_array().unwrap();
    assert!(times.len() < 10 * LEVEL_ROWS, "{}", times.len());
    assert_eq!(times.last().unwrap(), 100_000);
}

/// Of a hundred flows a browser gets those that it selects.
#[test]
fn only_the_wanted_flows_are_sent() {
    let (feed, run) = run_of(100);
    run.update(5, |u| (0..100).for_each(|n| u.row(n, &[1.0])));
    let mut cursor = FeedCursor::new(Wants { flows: Some(vec![3, 97, 4000]), ..Wants::default() });
    let frame = read(cursor.frame(&feed));
    let tracks: Vec<_> = frame["rows"].as_array().unwrap().iter().map(|r| &r["track"]).collect();
    assert_eq!(tracks, [3, 97]);
    let unknown = Wants { run: Some(99), ..Wants::default() };
    assert_eq!(read(FeedCursor::new(unknown).frame(&feed))["run"], 0, "a run that is gone");
}

/// Numbers of any size are valid JSON, and as exact as a screen needs.
#[test]
fn numbers_are_read_back() {
    for (x, text) in [
        (0.0, "0"),
        (-0.0, "0"),
        (7.0, "7"),
        (-2.5, "-2.5"),
        (0.000_25, "0.00025"),
        (1234.56, "1234.6"),
        (20_000_000.0, "20000000"),
        (0.062_345_6, "0.062346"),
        (1e-9, "0"),
        (9.9999, "10"),
        (f32::NAN, "null"),
        (f32::INFINITY, "null"),
    ] {
        let mut out = String::new();
        number(&mut out, x);
        assert_eq!(out, text);
    }
    for exponent in -30..38 {
        let x = 1.234_567 * 10f32.powi(exponent);
        let mut out = String::new();
        number(&mut out, -x);
        let read: f64 = serde_json::from_str(&out).unwrap();
        let max = (f64::from(x) * 1e-3).max(1e-6);
        assert!(exponent > 18 || (read + f64::from(x)).abs() <= max, "{x}: {out}");
    }
}
