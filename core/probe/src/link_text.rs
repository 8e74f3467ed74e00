//! An estimate as the text of `--link`.

use crate::ecn::EcnVerdict;
use crate::probe::{PathEstimate, WayEstimate};
use crate::statistics::ConfidenceInterval;
use std::fmt::Write as _;

/// Shortest queue in packets: that of a link without a given queue.
const USUAL_PACKETS: f64 = 10.0;

impl PathEstimate {
    /// A specification for `compare`, `link` and `relay`. Unknown values are left out, so that they have their
    /// defaults. Each direction's delay is half of the base round trip, since the clocks' offset is unknown.
    pub fn link(&self) -> String {
        self.link_with([None, None])
    }

    /// As [`link`](PathEstimate::link), with the recorded traces of these files: there and back.
    pub fn link_with(&self, traces: [Option<&str>; 2]) -> String {
        let mut out = format!("{},{}", rate(self.up.rate.value), time(self.base_rtt.value / 2.0));
        let managed = |way: &WayEstimate| way.buffer.is_some_and(|b| b.managed);
        write(&mut out, "", &self.up, traces[0]);
        let _ = write!(out, ",reverse-rate={}", rate(self.down.rate.value));
        write(&mut out, "reverse-", &self.down, traces[1]);
        if managed(&self.up) && !managed(&self.down) {
            // Otherwise the reverse link would have the forward link's queue management.
            out += ",reverse-aqm=droptail";
        }
        out
    }
}

fn write(out: &mut String, prefix: &str, way: &WayEstimate, trace: Option<&str>) {
    let mut key = |name: &str, value: String| {
        let _ = write!(out, ",{prefix}{name}={value}");
    };
    if let Some(buffer) = &way.buffer {
        let packets = buffer.packets.value.round().max(1.0);
        let known = buffer.packets.high.is_finite();
        key("queue", if known { format!("{packets}p") } else { at_least(packets) });
        if buffer.managed {
            // The kind of queue management is unknown. CoDel is chosen because it has no required parameters.
            let drops = way.ecn.verdict() != EcnVerdict::Unknown && !way.ecn.queue_marks();
            key("aqm", if drops { "codel(ecn=off)" } else { "codel" }.into());
        }
    } else {
        key("queue", at_least(0.0));
    }
    if let Some(loss) = way.loss.filter(|l| l.lost > 0) {
        let share = loss.share.value;
        match loss.burst {
            Some(run) if share < 1.0 => {
                let ended = 1.0 / run;
                let begun = (share / (1.0 - share) * ended).min(1.0);
                key("loss", format!("ge(g={},h={})", percent(begun), percent(ended)));
            }
            _ => key("loss", percent(share)),
        }
    }
    if let Some(trace) = trace {
        // Its trains have the jitter, and its rate that of a policer.
        return key("trace", trace.into());
    }
    if let Some(policer) = &way.policer {
        key("policer", format!("{}/{}B", rate(policer.rate.value), policer.burst.round()));
    }
    if let Some(jitter) = way.jitter.filter(|j| *j > 0.0) {
        key("jitter", time(jitter));
    }
    if let Some(r) = &way.reordering {
        key("reorder", format!("{}/{}", percent(r.share), time(r.by)));
    }
}

/// The default queue, but no shorter than the observed one.
fn at_least(packets: f64) -> String {
    format!("max(1bdp,{}p)", packets.max(USUAL_PACKETS))
}

/// Four digits: no estimate has more.
fn digits(x: f64) -> f64 {
    let mut scale = 1.0;
    while x * scale < 1000.0 && scale < 1e9 {
        scale *= 10.0;
    }
    (x * scale).round() / scale
}

/// As a specification has it.
pub fn rate(bps: f64) -> String {
    match bps {
        b if b >= 1e6 => format!("{}Mbit/s", digits(b / 1e6)),
        b if b >= 1e3 => format!("{}kbit/s", digits(b / 1e3)),
        b => format!("{}bit/s", b.round().max(1.0)),
    }
}

/// As a specification has it.
pub fn time(seconds: f64) -> String {
    format!("{}ms", (seconds * 1e5).round().max(0.0) / 100.0)
}

/// As a specification has it.
pub fn percent(share: f64) -> String {
    format!("{}%", digits(share * 100.0))
}

/// A value with its interval, for readers.
pub fn shown(interval: &ConfidenceInterval, text: impl Fn(f64) -> String) -> String {
    if interval.high.is_infinite() {
        return format!("at least {}", text(interval.low));
    }
    format!("{} ({} to {})", text(interval.value), text(interval.low), text(interval.high))
}
