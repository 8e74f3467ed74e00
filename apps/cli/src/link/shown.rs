//! Counters of a link, as text and JSON.

use crate::relay::too_large;
use narrows_emulator::{LinkStats, WayStats};
use narrows_net::relay::Lateness;
use serde_json::{Value, json as object};

/// Lateness in seconds (99th percentile) above which a warning is printed.
const LATE: f64 = 1e-3;

/// The statistics of a link in one second, as one line.
pub fn live_line(name: &str, now: &LinkStats, before: &LinkStats, seconds: f64) -> String {
    let way = |way: &str, now: &WayStats, before: &WayStats| {
        let bits = (now.packets.delivered_bytes - before.packets.delivered_bytes) as f64 * 8.0;
        let gone = |w: &WayStats| w.packets.dropped + w.packets.lost;
        format!(
            "{way} {:.2} Mbit/s, {} waiting, {} gone",
            bits * 1e-6 / seconds,
            now.waiting,
            gone(now) - gone(before)
        )
    };
    let there = way("there", &now.forward, &before.forward);
    let back = way("back", &now.reverse, &before.reverse);
    let late = now.forward.lateness.p99_s.max(now.reverse.lateness.p99_s) * 1e3;
    format!("{name}: {there}; {back}; late by {late:.2} ms (99th percentile)")
}

/// All counters as a table.
pub fn table(name: &str, s: &LinkStats) -> String {
    let mut out = format!(
        "{name:<8}{:>10}{:>11}{:>9}{:>8}{:>8}{:>13}{:>13}{:>12}{:>10}\n",
        "offered",
        "delivered",
        "dropped",
        "lost",
        "marked",
        "mean queue",
        "longest",
        "late p50",
        "p99"
    );
    for (way, w) in [("there", &s.forward), ("back", &s.reverse)] {
        let p = &w.packets;
        out += &format!(
            "{way:<8}{:>10}{:>11}{:>9}{:>8}{:>8}{:>10.2} ms{:>10.2} ms{:>9.3} ms{:>7.3} ms\n",
            p.offered_packets,
            p.delivered_packets,
            p.dropped,
            p.lost,
            p.marked,
            p.mean_wait_s() * 1e3,
            p.longest_wait_s * 1e3,
            w.lateness.p50_s * 1e3,
            w.lateness.p99_s * 1e3,
        );
    }
    out.truncate(out.trim_end().len());
    out += &too_large([&s.forward.packets, &s.reverse.packets]);
    out
}

/// A warning for the reader, if packets were lost in the emulator or left late.
pub fn warning(name: &str, s: &LinkStats, real_time: bool) -> Option<String> {
    let late = s.forward.lateness.p99_s.max(s.reverse.lateness.p99_s);
    let of = |w: &WayStats| w.packets.overflowed + w.unread + w.refused;
    let lost = of(&s.forward) + of(&s.reverse);
    if lost > 0 {
        return Some(format!("{name}: {lost} packets were lost in the emulator, not on the link"));
    }
    if late <= LATE {
        return None;
    }
    let why =
        if real_time { "the machine is busy" } else { "without real-time priority (root has it)" };
    Some(format!(
        "{name}: one packet in a hundred left {:.2} ms late or more ({why}): figures finer than that are the machine's",
        late * 1e3
    ))
}

/// All counters as JSON.
pub fn json(s: &LinkStats, real_time: bool) -> Value {
    let late = |l: &Lateness| object!({ "mean_s": l.mean_s, "p50_s": l.p50_s, "p99_s": l.p99_s, "max_s": l.max_s });
    let way = |w: &WayStats| {
        let p = &w.packets;
        object!({
            "offered_packets": p.offered_packets, "offered_bytes": p.offered_bytes,
            "delivered_packets": p.delivered_packets, "delivered_bytes": p.delivered_bytes,
            "dropped": p.dropped, "too_large": p.too_large, "lost": p.lost, "marked": p.marked,
            "overflowed": p.overflowed, "unread": w.unread, "refused": w.refused,
            "mean_queue_s": p.mean_wait_s(), "longest_queue_s": p.longest_wait_s,
            "lateness": late(&w.lateness),
            "lateness_10s": w.windows.iter().map(late).collect::<Vec<_>>(),
        })
    };
    object!({ "there": way(&s.forward), "back": way(&s.reverse), "real_time": real_time })
}
