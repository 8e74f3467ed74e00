//! Results of a probe, as text and JSON.

use narrows_net::probe::Probed;
use narrows_probe::ecn::{Ecn, EcnVerdict};
use narrows_probe::link_text::{percent, rate, shown, time};
use narrows_probe::{ConfidenceInterval, WayEstimate};
use serde_json::{Value, json};
use std::fmt::Write as _;

pub fn text(probed: &Probed) -> String {
    let e = &probed.estimate;
    let mut out = format!(
        "Base RTT {}; {:.1} s. Values have 95% intervals.\n",
        shown(&e.base_rtt, time),
        probed.seconds
    );
    for (name, way) in [("there", &e.up), ("back", &e.down)] {
        let _ = writeln!(out, "{name:<6}rate   {}", shown(&way.rate, rate));
        for line in lines(way) {
            let _ = writeln!(out, "      {line}");
        }
    }
    for (name, way) in ["there", "back"].iter().zip(probed.recorded.iter().flatten()) {
        let _ = writeln!(
            out,
            "{name:<6}trace  {} under load for {:.1} s, a queue for {} of it; {} trains",
            rate(way.rate),
            way.seconds,
            percent(way.waited),
            way.trains
        );
    }
    out
}

/// The rates that are only lower bounds, for the saved link: `at least 418Mbit/s there`.
pub fn bounds(probed: &Probed) -> Option<String> {
    let e = &probed.estimate;
    let ways = [("there", &e.up.rate), ("back", &e.down.rate)];
    let bounds = ways.iter().filter(|(_, rate)| rate.high.is_infinite());
    let texts: Vec<String> =
        bounds.map(|(name, bound)| format!("{} {name}", shown(bound, rate))).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

fn lines(way: &WayEstimate) -> Vec<String> {
    let mut out = Vec::new();
    match &way.loss {
        Some(loss) => {
            let runs = loss.burst.map_or(String::new(), |b| format!(", in runs of {b:.1}"));
            let share = shown(&loss.share, percent);
            out.push(format!("loss   {share}: {} of {}{runs}", loss.lost, loss.packets));
        }
        None => out.push("loss   not known: there was no time for it".into()),
    }
    if let Some(jitter) = way.jitter.filter(|j| *j > 0.0) {
        out.push(format!("jitter up to {}", time(jitter)));
    }
    if let Some(r) = &way.reordering {
        out.push(format!("order  {} come late, by {}", percent(r.share), time(r.by)));
    }
    if let Some(policer) = &way.policer {
        let bucket = policer.burst.round();
        out.push(format!("policer {}, bucket {bucket} B", shown(&policer.rate, rate)));
    }
    match &way.buffer {
        Some(buffer) => {
            let packets = shown(&buffer.packets, |n| format!("{n:.0}"));
            let managed =
                if buffer.managed { "; queue management drops before it is full" } else { "" };
            out.push(format!("buffer {packets} packets of 1200 B{managed}"));
        }
        None => out.push("buffer not known: it was not filled (--fill)".into()),
    }
    out.push(format!("ECN    {}", ecn(&way.ecn)));
    out.push(format!(
        "sent   {} packets, {:.2} MB",
        way.sent_packets,
        way.sent_bytes as f64 * 1e-6
    ));
    out
}

fn ecn(ecn: &Ecn) -> String {
    let whole = ecn.capable + ecn.ce;
    match ecn.verdict() {
        EcnVerdict::Unknown => "not known: too few packets arrived".into(),
        EcnVerdict::Cleared => {
            format!("cleared on the way, of {} of {whole} packets: no mark arrives", ecn.cleared)
        }
        EcnVerdict::AlwaysMarked => format!(
            "{} of {} packets arrive marked, with or without a queue: marks are no signal here",
            ecn.marked, ecn.capable
        ),
        EcnVerdict::MarksLost => {
            format!(
                "capable packets arrive so, but {} of {} marked ones lose the mark",
                ecn.ce - ecn.ce_kept,
                ecn.ce
            )
        }
        EcnVerdict::Passes => {
            let (filling, marked) = ecn.filling;
            let queue = match (filling, ecn.queue_marks()) {
                (0, _) => "whether a queue marks is not known (--fill)".into(),
                (_, true) => format!("a queue marked {marked} of {filling} while it was filled"),
                (_, false) => "none was set while a queue was filled".into(),
            };
            format!("marks pass; {queue}")
        }
    }
}

pub fn json(probed: &Probed, link: &str) -> Value {
    let e = &probed.estimate;
    json!({
        "link": link, "seconds": probed.seconds, "base_rtt_s": interval(&e.base_rtt),
        "there": way(&e.up), "back": way(&e.down),
        "recorded": probed.recorded.as_ref().map(|ways| ways.each_ref().map(|way| json!({
            "rate_bps": way.rate, "seconds": way.seconds, "waited": way.waited, "trains": way.trains,
        }))),
    })
}

fn interval(i: &ConfidenceInterval) -> Value {
    let high = i.high.is_finite().then_some(i.high);
    json!({ "value": i.value, "low": i.low, "high": high })
}

fn way(way: &WayEstimate) -> Value {
    json!({
        "rate_bps": interval(&way.rate),
        "loss": way.loss.map(|l| json!({
            "share": interval(&l.share), "packets": l.packets, "lost": l.lost, "mean_run": l.burst,
        })),
        "jitter_s": way.jitter,
        "reordering": way.reordering.map(|r| json!({ "share": r.share, "by_s": r.by })),
        "policer": way.policer.map(|p| json!({
            "rate_bps": interval(&p.rate), "burst_bytes": p.burst,
        })),
        "ecn": json!({
            "passes": match way.ecn.verdict() {
                EcnVerdict::Unknown => None,
                verdict => Some(verdict == EcnVerdict::Passes),
            },
            "queue_marks": (way.ecn.filling.0 > 0).then(|| way.ecn.queue_marks()),
            "capable": way.ecn.capable, "marked": way.ecn.marked, "cleared": way.ecn.cleared,
            "sent_marked": way.ecn.ce, "still_marked": way.ecn.ce_kept,
        }),
        "buffer": way.buffer.map(|b| json!({
            "packets": interval(&b.packets), "managed": b.managed,
        })),
        "sent_packets": way.sent_packets, "sent_bytes": way.sent_bytes,
    })
}
