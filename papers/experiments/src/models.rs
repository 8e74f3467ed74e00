//! Closed forms: the throughput that theory predicts for TCP, in the range where it applies.
//!
//! Sources: `docs/sources.md`. Windows in packets, times in seconds, results in bit/s, seconds or
//! packets as named. Loss models are upper bounds; the capacity bounds them further.

#[path = "models_queues.rs"]
mod queues;
#[path = "models_random.rs"]
mod random;
#[path = "models_stpd.rs"]
mod stpd;

use std::collections::BTreeMap;

type Arguments = BTreeMap<String, f64>;

/// A model: its name, where it is from, its arguments, and the function.
pub struct Model {
    /// As experiments name it.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Arguments, all required.
    pub arguments: &'static [&'static str],
    /// Computes it.
    pub of: fn(&Arguments) -> f64,
}

/// TCP's and queues'; those of single papers are in files of their own.
const MODELS: &[Model] = &[
    Model {
        name: "slow_start_time",
        summary: "time from the opening to the last of N packets, doubling from the initial window",
        source: "RFC 5681 section 3.1",
        arguments: &["rtt", "packets", "initial_window"],
        of: |a| slow_start_time(a["rtt"], a["packets"], a["initial_window"]),
    },
    Model {
        name: "sawtooth_period",
        summary: "time from loss to loss of one Reno flow over a drop-tail buffer of at least a BDP",
        source: "S0 section 3.5.1; integrated here",
        arguments: &["bps", "rtt", "queue", "packet_bits"],
        of: |a| sawtooth(a).period,
    },
    Model {
        name: "sawtooth_window",
        summary: "mean over time of that flow's window",
        source: "as sawtooth_period",
        arguments: &["bps", "rtt", "queue", "packet_bits"],
        of: |a| sawtooth(a).mean_window,
    },
    Model {
        name: "sawtooth_peak",
        summary: "largest window of that flow before it overflows the buffer: BDP and buffer",
        source: "S0 section 3.5.1",
        arguments: &["bps", "rtt", "queue", "packet_bits"],
        of: |a| sawtooth(a).peak,
    },
    Model {
        name: "mathis",
        summary: "throughput of a window that halves at every 1/p-th packet, one ACK per packet",
        source: "Mathis, Semke, Mahdavi, Ott 1997",
        arguments: &["rtt", "p", "packet_bits"],
        of: |a| mathis(a["rtt"], a["p"]) * a["packet_bits"],
    },
    Model {
        name: "pftk",
        summary: "throughput of Reno with timeouts, full model, no limit on the window",
        source: "Padhye, Firoiu, Towsley, Kurose 1998, equation 32",
        arguments: &["rtt", "p", "t0", "b", "packet_bits"],
        of: |a| pftk(a["rtt"], a["p"], a["t0"], a["b"]) * a["packet_bits"],
    },
    Model {
        name: "pftk_capped",
        summary: "the same, as a share of a link's capacity, at most 1",
        source: "as pftk",
        arguments: &["rtt", "p", "t0", "b", "packet_bits", "bps"],
        of: |a| (pftk(a["rtt"], a["p"], a["t0"], a["b"]) * a["packet_bits"] / a["bps"]).min(1.0),
    },
    Model {
        name: "tcp_window",
        summary: "packets per round trip by the TCP equation with a timeout of 4 RTT: 1/f(p)",
        source: "S1 equation 4.4; RFC 5348 section 3.1",
        arguments: &["p"],
        of: |a| 1.0 / friendly(a["p"]),
    },
    Model {
        name: "red_average",
        summary: "RED's average queue where a constant rate arrives, load times the link's (wait: 0 or 1)",
        source: "Floyd and Jacobson 1993 section 4; ns-2 wait_; integrated here",
        arguments: &["min", "max", "max_p", "load", "wait"],
        of: queues::red_average,
    },
    Model {
        name: "codel_drops",
        summary: "drops in so many seconds from the first, while packets wait above the target",
        source: "RFC 8289 section 3.4",
        arguments: &["interval", "seconds"],
        of: |a| queues::codel_drops(a["interval"], a["seconds"]),
    },
];

/// The model of that name.
pub fn find(name: &str) -> Option<&'static Model> {
    [MODELS, stpd::MODELS, random::MODELS].into_iter().flatten().find(|m| m.name == name)
}

impl Model {
    /// Checks the names of the arguments.
    ///
    /// # Errors
    /// Names a missing or an unknown argument.
    pub fn check(&self, with: &Arguments) -> Result<(), String> {
        let known = self.arguments.join(", ");
        for name in self.arguments {
            if !with.contains_key(*name) {
                return Err(format!("model {} needs {known}; '{name}' is missing", self.name));
            }
        }
        match with.keys().find(|k| !self.arguments.contains(&k.as_str())) {
            Some(other) => Err(format!("model {} has no '{other}'; it needs {known}", self.name)),
            None => Ok(()),
        }
    }
}

/// A round trip for the opening, one for each doubling, half of one for the last way.
pub fn slow_start_time(rtt: f64, packets: f64, initial_window: f64) -> f64 {
    let mut rounds = 0.0;
    let mut sent = 0.0;
    let mut window = initial_window;
    while sent < packets {
        sent += window;
        window *= 2.0;
        rounds += 1.0;
    }
    rtt * (1.0 + (rounds - 1.0) + 0.5)
}

/// Properties of a Reno sawtooth.
#[derive(Clone, Copy, Debug)]
pub struct Sawtooth {
    /// Largest window in packets.
    pub peak: f64,
    /// Seconds from loss to loss.
    pub period: f64,
    /// Mean window over time, in packets.
    pub mean_window: f64,
}

/// A window grows by one packet per round trip from half its peak to its peak; above the BDP a
/// round trip lasts window / rate.
fn sawtooth(a: &Arguments) -> Sawtooth {
    let rate = a["bps"] / a["packet_bits"];
    let bdp = rate * a["rtt"];
    let peak = bdp + a["queue"];
    let round = |w: f64| w.max(bdp) / rate;
    let steps = 10_000;
    let width = peak / 2.0 / f64::from(steps);
    let mut period = 0.0;
    let mut area = 0.0;
    for i in 0..steps {
        let w = peak / 2.0 + (f64::from(i) + 0.5) * width;
        period += round(w) * width;
        area += w * round(w) * width;
    }
    Sawtooth { peak, period, mean_window: area / period }
}

/// Packets per second: `sqrt(3/2) / (RTT sqrt(p))`.
pub fn mathis(rtt: f64, p: f64) -> f64 {
    (1.5f64).sqrt() / (rtt * p.sqrt())
}

/// f(p) of Choi 2006 equation 4.2: round trips per packet of a TCP with a timeout of 4 RTT.
pub fn friendly(p: f64) -> f64 {
    (2.0 * p / 3.0).sqrt() + 12.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p)
}

/// Packets per second by the full model: `t0` is the timeout, `b` packets per ACK.
pub fn pftk(rtt: f64, p: f64, t0: f64, b: f64) -> f64 {
    let k = (2.0 + b) / (3.0 * b);
    let window = k + (8.0 * (1.0 - p) / (3.0 * b * p) + k * k).sqrt();
    let q = 1.0 - p;
    let q3 = q * q * q;
    let survive = |n: f64| narrows_base::math::pow(q, n);
    let timeout = (1.0 - q3) * (1.0 + q3 * (1.0 - survive(window - 3.0))) / (1.0 - survive(window));
    let timeout = timeout.min(1.0);
    let p2 = p * p;
    let p4 = p * p * p * p;
    let backoffs = 1.0 + p + 2.0 * p2 + 4.0 * p2 * p + 8.0 * p4 + 16.0 * p4 * p + 32.0 * p4 * p2;
    let packets = q / p + window + timeout / q;
    packets / (rtt * (b / 2.0 * window + 1.0) + timeout * t0 * backoffs / q)
}
