use super::*;
use crate::feed::frame::{FeedCursor, Wants};
use narrows_lab::Question;
use narrows_lab::execute::{RunControl, execute, execute_observed};
use serde_json::Value;
use std::path::Path;

fn plan(link: &str, protocols: &str) -> Plan {
    let question = Question {
        link: link.into(),
        protocols: protocols.into(),
        flows: 2,
        duration: Duration::from_secs(20),
        seeds: 2,
        ..Question::default()
    };
    Plan::new(question.scenario(Path::new("")).unwrap().0).unwrap()
}

fn watched(plan: &Plan) -> (Arc<Feed>, Vec<u64>) {
    let feed = Feed::new("test");
    let seen = Simulations::new(&feed, plan, "the link", None);
    let control = RunControl::quiet(2);
    let runs = execute_observed(plan, &control, Some(&seen)).unwrap();
    (feed, runs.iter().flatten().flatten().map(|r| r.digest).collect())
}

fn frame(feed: &Feed, run: u64) -> Value {
    let wants = Wants { run: Some(run), flows: None, packets: Some(1) };
    serde_json::from_str(&FeedCursor::new(wants).frame(feed).unwrap()).unwrap()
}

/// Observation changes no result, and each protocol's first seed can be observed.
#[test]
fn observed_and_unobserved_runs_are_identical() {
    let plan = plan("5Mbit/s,30ms,loss=0.5%", "cubic,bbr,rrtp");
    let control = RunControl::quiet(1);
    let alone: Vec<u64> =
        execute(&plan, &control).unwrap().iter().flatten().flatten().map(|r| r.digest).collect();
    let (feed, digests) = watched(&plan);
    assert_eq!(digests, alone);
    let names: Vec<String> = feed.runs().iter().map(|r| r.about.name.clone()).collect();
    assert_eq!(names, ["cubic", "bbr", "rrtp"], "in the order of the plan");
    assert!(feed.runs().iter().all(|r| frame(&feed, r.id)["phase"] == "done"));
}

/// A queue that overflows appears on the page as drops, the affected flow, its smaller window with that reason, and the
/// packet in the sequence plot.
#[test]
fn drop_appears_in_queue_flow_events_and_sequence() {
    let plan = plan("5Mbit/s,30ms,queue=20p", "cubic");
    let (feed, _) = watched(&plan);
    let frame = frame(&feed, feed.runs()[0].id);
    let track = |name: &str| {
        let tracks = frame["tracks"].as_array().unwrap();
        tracks.iter().position(|t| t["name"] == name).unwrap()
    };
    let sum = |name: &str, column: &str| -> f64 {
        let track = track(name);
        let columns = frame["tracks"][track]["columns"].as_array().unwrap();
        let at = columns.iter().position(|c| c["name"] == column).unwrap();
        let rows = frame["rows"].as_array().unwrap().iter().find(|r| r["track"] == track).unwrap();
        rows["c"][at].as_array().unwrap().iter().filter_map(Value::as_f64).sum()
    };
    let dropped = sum("bottleneck", "drops");
    assert!(dropped > 0.0);
    assert_eq!(dropped, sum("main.0", "queue_drops") + sum("main.1", "queue_drops"));
    assert!(sum("main.0", "pacing_bps") == 0.0 && sum("main.0", "w_max") > 0.0, "cubic's own");
    let events = frame["events"].as_array().unwrap();
    let found = events.iter().filter(|e| e["mark"] == "slower").any(|e| {
        e["why"][0].as_str().unwrap().starts_with("The queue dropped")
            && e["title"].as_str().unwrap().starts_with("cwnd")
    });
    assert!(found, "{events:?}");
    let points: Vec<u64> =
        (frame["packets"]["p"].as_array().unwrap().iter()).map(|v| v.as_u64().unwrap()).collect();
    let kinds: Vec<u64> = points.chunks(3).map(|p| p[2]).collect();
    for kind in 0..4 {
        assert!(kinds.contains(&kind), "kind {kind}");
    }
    assert!(!kinds.contains(&4), "nothing is lost on this link");
}

/// A send buffer smaller than the path's BDP is an event, with the setting that lifts it.
#[test]
fn a_buffer_that_binds_is_an_event() {
    let plan = plan("200Mbit/s,125ms", "cubic");
    let (feed, _) = watched(&plan);
    let frame = frame(&feed, feed.runs()[0].id);
    let events = frame["events"].as_array().unwrap();
    let event = events.iter().find(|e| e["title"] == "the send buffer binds, not cwnd").unwrap();
    assert!(event["why"][0].as_str().unwrap().contains("net.ipv4.tcp_wmem="), "{event}");
}
