//! Small writes at random times.

use super::{Pattern, Source, SourceEntry, number};
use narrows_base::descriptor::{Param, ParamKind};
use narrows_base::math::{exp, ln};
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, RandomStream, Settings, Status, Time};

pub(super) const ENTRY: SourceEntry = SourceEntry::new(&DESCRIPTOR, Pattern::Ongoing(start));

const DESCRIPTOR: Descriptor = Descriptor {
    name: "telnet",
    summary: "a person typing: small writes at random times",
    source: "ns-2 Application/Telnet; the ST-PD thesis, section 3.5.3",
    senses: "-",
    sets: "application data",
    params: &[
        number(
            "size",
            Unit::Bytes,
            "bytes per write",
            1.0,
            1e6,
            64.0,
            "a line of typing with echo",
        ),
        number(
            "interval",
            Unit::Seconds,
            "mean time between writes",
            1e-6,
            1e6,
            1.0,
            "ns-2 interval_ 1.0",
        ),
        Param {
            name: "times",
            help: "distribution of the times between writes; tcplib: measured in 1991, uneven",
            kind: ParamKind::Choice(&["exponential", "tcplib"]),
            origin: "ns-2: exponential if interval_ is set, else tcplib",
        },
    ],
    status: Status::NotValidated,
};

/// Quantiles of tcplib's times between Telnet packets, in seconds: the share of times below, and the time. From the
/// 10,000 times of ns-2.35's table; Danzig and Jamin measured them in 1991. Between the points a time grows
/// exponentially with the share.
const TCPLIB: [(f64, f64); 28] = [
    (0.0, 0.000606),
    (0.05, 0.0204),
    (0.1, 0.068),
    (0.15, 0.0934),
    (0.2, 0.113),
    (0.25, 0.136),
    (0.3, 0.156),
    (0.35, 0.176),
    (0.4, 0.194),
    (0.45, 0.212),
    (0.5, 0.236),
    (0.55, 0.267),
    (0.6, 0.303),
    (0.65, 0.368),
    (0.7, 0.42),
    (0.75, 0.532),
    (0.8, 0.726),
    (0.85, 0.993),
    (0.9, 1.56),
    (0.95, 3.49),
    (0.97, 5.41),
    (0.98, 8.38),
    (0.99, 17.8),
    (0.995, 36.4),
    (0.998, 59.2),
    (0.999, 59.8),
    (0.9995, 64.4),
    (1.0, 210.0),
];

/// Mean of [`TCPLIB`], in seconds. The table's own mean is 1.09 s.
const TCPLIB_MEAN_S: f64 = 1.11;

/// The time below which the share `u`, 0 to 1, of tcplib's times lies, in seconds.
fn tcplib_s(u: f64) -> f64 {
    let after = TCPLIB.partition_point(|q| q.0 <= u).clamp(1, TCPLIB.len() - 1);
    let (a, low) = TCPLIB[after - 1];
    let (b, high) = TCPLIB[after];
    low * exp((u - a) / (b - a) * ln(high / low))
}

fn start(s: &Settings, stream: RandomStream) -> Box<dyn Source> {
    let bytes = s.number("size") as u64;
    let interval_s = s.number("interval");
    Box::new(Telnet { bytes, interval_s, tcplib: s.choice("times") == "tcplib", stream })
}

#[derive(Debug)]
struct Telnet {
    bytes: u64,
    interval_s: f64,
    tcplib: bool,
    stream: RandomStream,
}
impl Source for Telnet {
    fn write(&mut self, now: Time, _allowed_bps: &dyn Fn() -> f64) -> (u64, Time) {
        let gap_s = match self.tcplib {
            true => tcplib_s(self.stream.unit()) * self.interval_s / TCPLIB_MEAN_S,
            false => self.stream.exponential(self.interval_s),
        };
        (self.bytes, now + Duration::from_secs_f64(gap_s).max(Duration::from_nanos(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcplib_has_the_measured_quantiles_and_mean() {
        // Counted in ns-2.35's table.
        for (below_s, share) in [(0.0208, 0.0503), (0.1, 0.1751), (0.25, 0.5226), (1.0, 0.8561)] {
            let n = 10_000;
            let count = (0..n).filter(|i| tcplib_s(f64::from(*i) / f64::from(n)) < below_s).count();
            let drawn = count as f64 / f64::from(n);
            assert!((drawn - share).abs() < 0.01, "{drawn} below {below_s} s, not {share}");
        }
        let n = 100_000;
        let mean = (0..n).map(|i| tcplib_s((f64::from(i) + 0.5) / f64::from(n))).sum::<f64>()
            / f64::from(n);
        assert!((mean - TCPLIB_MEAN_S).abs() < 0.005, "{mean}");
        assert_eq!((tcplib_s(0.0), tcplib_s(1.0).round()), (0.000606, 210.0), "both ends");
    }
}
