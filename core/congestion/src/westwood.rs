//! TCP Westwood: Casetti, Gerla, Mascolo, Sanadidi and Wang, MobiCom 2001; the ns-2 module of 2002.
//!
//! Reacts to loss, and measures the rate at which ACKs return. The window grows as Reno's. At a loss it is set to the
//! estimated bandwidth times the smallest RTT, rather than halved.
//!
//! Every ACK gives a sample b = acked / (time since the last ACK); Hu and Zha, section III, describe the four filters
//! and AckedCount. Departures:
//!
//! - ssthresh never falls below 2 (as in the module, but not in Hu and Zha's procedure).
//! - ACKs of the same instant make one sample. The module divides by (almost) zero.
//! - The module's divisor `fr_a` for timeouts in slow start is left out.
//! - The module counts an idle remainder below 10 ms as a whole tau/2; this is left out, too.

use crate::acked_count::AckedCount;
use crate::undo::BeforeLosses;
use crate::{
    Ack, CongestionEvent, Controller, Environment, SendLimits, bounded, positive, variables,
};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, Settings, Status, Time, Variable};

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "westwood",
    summary: "Reno with a back-off by an estimate of the bandwidth, one sample per ACK",
    source: "Casetti et al. 2001; Hu and Zha, section III",
    senses: "loss, rate of returning ACKs",
    sets: "window: +1 segment per RTT; bandwidth times smallest RTT after a loss",
    params: &[
        Param {
            name: "filter",
            help: "how bandwidth samples are averaged",
            kind: ParamKind::Choice(&["tustin10", "ewma", "tustin15", "tustin"]),
            origin: "ns-2 module of 2002; Hu and Zha list the first three, and the fourth as equation 5",
        },
        Param {
            name: "keep",
            help: "share of the old estimate that filter ewma keeps",
            kind: ParamKind::Number { unit: Unit::Fraction, min: 0.0, max: 0.999, default: 0.9 },
            origin: "Hu and Zha, section III",
        },
        Param {
            name: "tau",
            help: "time constant of filter tustin",
            kind: ParamKind::Number { unit: Unit::Seconds, min: 1e-3, max: 1000.0, default: 1.0 },
            origin: "ns-2 module of 2002; 500ms in the paper",
        },
        Param {
            name: "cap",
            help: "whether one ACK counts for at most two segments",
            kind: ParamKind::Choice(&["off", "on"]),
            origin: "Hu and Zha have no cap; the ns-2 module has",
        },
    ],
    status: Status::Validated(
        "Hu and Zha, figure 5 where it is possible; figure 6 differs in part (docs/validation.md)",
    ),
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[variables::BANDWIDTH];

/// Builds the controller.
pub fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    let filter = match settings.choice("filter") {
        "ewma" => BandwidthFilter::Ewma(settings.number("keep")),
        "tustin15" => BandwidthFilter::Fixed(0.93548, 0.03225),
        "tustin" => BandwidthFilter::Tustin(settings.number("tau")),
        _ => BandwidthFilter::Fixed(0.9047, 0.0476),
    };
    Box::new(Westwood {
        packet_bits: f64::from(environment.packet_bytes) * 8.0,
        cwnd: bounded(environment.initial_window, 1.0),
        ssthresh: environment.initial_ssthresh,
        cap: if settings.choice("cap") == "on" { 2 } else { u64::MAX },
        counter: AckedCount::default(),
        bandwidth: BandwidthEstimator {
            filter,
            estimate: 0.0,
            last_sample: 0.0,
            last: None,
            waiting: 0,
        },
        before: BeforeLosses::default(),
    })
}

/// Filters 0 to 3 of the ns-2 module; B is the estimate, b the sample, b' the one before.
#[derive(Clone, Copy, Debug)]
enum BandwidthFilter {
    /// B = a B + (1 - a) b.
    Ewma(f64),
    /// B = p B + q (b + b'): Tustin's with tau = 10 or 15 times the time between samples.
    Fixed(f64, f64),
    /// B = ((2 tau/D - 1) B + b + b') / (2 tau/D + 1), D the time since the last sample.
    Tustin(f64),
}

#[derive(Clone, Debug)]
struct BandwidthEstimator {
    filter: BandwidthFilter,
    /// Segments per second.
    estimate: f64,
    last_sample: f64,
    last: Option<Time>,
    /// Segments of ACKs that arrived at the instant of the last sample.
    waiting: u64,
}

impl BandwidthEstimator {
    fn acked(&mut self, now: Time, segments: u64) {
        let Some(last) = self.last else {
            self.last = Some(now);
            return;
        };
        self.waiting = self.waiting.saturating_add(segments);
        if now <= last || self.waiting == 0 {
            return;
        }
        let mut interval = now.since(last).as_secs_f64();
        if let BandwidthFilter::Tustin(tau) = self.filter {
            // No ACK for tau/2: a sample of zero. After a hundred of them the estimate is zero.
            let idle = (interval / (tau / 2.0)) as u64;
            for _ in 0..idle.min(100) {
                self.sample(0.0, tau / 2.0);
            }
            interval = (interval - idle as f64 * tau / 2.0).max(1e-9);
        }
        self.sample(self.waiting as f64 / interval, interval);
        self.last = Some(now);
        self.waiting = 0;
    }

    fn sample(&mut self, sample: f64, interval: f64) {
        let both = sample + self.last_sample;
        let estimate = match self.filter {
            BandwidthFilter::Ewma(keep) => keep * self.estimate + (1.0 - keep) * sample,
            BandwidthFilter::Fixed(keep, gain) => keep * self.estimate + gain * both,
            BandwidthFilter::Tustin(tau) => {
                let steps = 2.0 * tau / interval;
                ((steps - 1.0) * self.estimate + both) / (steps + 1.0)
            }
        };
        self.estimate = bounded(estimate, 0.0);
        self.last_sample = bounded(sample, 0.0);
    }
}

#[derive(Clone, Debug)]
struct Westwood {
    packet_bits: f64,
    cwnd: f64,
    ssthresh: f64,
    cap: u64,
    counter: AckedCount,
    bandwidth: BandwidthEstimator,
    before: BeforeLosses,
}

impl Westwood {
    /// ssthresh = BWE RTTmin, at least 2 (Hu and Zha, "algorithm after n duplicate ACKs").
    fn set_ssthresh(&mut self, min_rtt: narrows_base::Duration) {
        self.ssthresh = bounded(self.bandwidth.estimate * positive(min_rtt), 2.0);
    }
}

impl Controller for Westwood {
    fn on_ack(&mut self, ack: &Ack) {
        let segments = self.counter.count(ack).min(self.cap);
        self.bandwidth.acked(ack.now, segments);
        if !ack.may_grow() {
            return;
        }
        let growth = if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
        self.cwnd = bounded(self.cwnd + ack.counted as f64 * growth, 1.0);
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match event {
            CongestionEvent::RecoveryStart(recovery) => {
                self.before.on_recovery(recovery, self.cwnd, self.ssthresh);
                self.set_ssthresh(recovery.min_rtt);
                self.cwnd = self.cwnd.min(self.ssthresh);
            }
            CongestionEvent::SlowStartRestart(restart) => {
                if restart.backoffs <= 1 {
                    self.before.keep(self.cwnd, self.ssthresh);
                }
                self.set_ssthresh(restart.min_rtt);
                self.cwnd = 1.0;
            }
            CongestionEvent::SpuriousLosses(spurious) => {
                let undone = self.before.undo(spurious, self.cwnd, self.ssthresh);
                (self.cwnd, self.ssthresh) = undone.unwrap_or((self.cwnd, self.ssthresh));
            }
            _ => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::unpaced(self.cwnd).with_ssthresh(self.ssthresh)
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("bandwidth_bps", self.bandwidth.estimate * self.packet_bits);
    }
}

#[cfg(test)]
mod tests {
    use super::{BandwidthEstimator, BandwidthFilter};
    use crate::scenario::{IdealPath, build};
    use narrows_base::{Duration, Time};

    /// ACKs every 10 ms, then the window after a loss with a smallest RTT of 100 ms.
    #[test]
    fn a_loss_leaves_bandwidth_times_smallest_rtt() {
        for filter in ["ewma", "tustin10", "tustin15", "tustin"] {
            let mut s = IdealPath::new(build(&format!("westwood(filter={filter})")));
            s.gap = Duration::from_millis(10);
            s.acks(1500);
            s.recovery();
            assert!((s.window() - 10.0).abs() < 0.05, "{filter}: {}", s.window());
            s.timeout();
            assert_eq!(s.window(), 1.0);
            assert!((s.ssthresh().unwrap() - 10.0).abs() < 0.05, "{filter}");
        }
    }

    #[test]
    fn a_loss_never_widens_the_window() {
        let mut s = IdealPath::new(build("westwood"));
        s.gap = Duration::from_micros(100);
        s.acks(100);
        let before = s.window();
        s.recovery();
        assert_eq!(s.window(), before);
    }

    #[test]
    fn idle_time_counts_as_zero_samples_in_tustins_filter() {
        let mut b = BandwidthEstimator {
            filter: BandwidthFilter::Tustin(1.0),
            estimate: 100.0,
            last_sample: 100.0,
            last: Some(Time::ZERO),
            waiting: 0,
        };
        // Two zero samples, 3/5 100 + 100/5 = 80 and 3/5 80 = 48, then 1 segment after 0.1 s.
        b.acked(Time::from_secs_f64(1.1), 1);
        assert!((b.estimate - (19.0 * 48.0 + 10.0) / 21.0).abs() < 1e-6, "{}", b.estimate);
    }
}
