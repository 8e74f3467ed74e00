//! TCP Westwood+: Mascolo, Grieco, Ferorelli, Camarda and Piscitelli, Performance Evaluation 55,
//! 2004; Linux `tcp_westwood.c`.
//!
//! Reacts to loss, and measures the delivery rate once per round trip, so that compressed ACKs do
//! not inflate it as they do Westwood's. The window grows as Reno's; after a loss it is set to
//! bandwidth times smallest RTT.
//!
//! Three implementations reduce the window at different times, see parameter `cut`:
//!
//! | cut | at the loss | at the end of the recovery | at a timeout |
//! |---|---|---|---|
//! | linux | half | B RTTmin | ssthresh = B RTTmin, RTTmin measured anew |
//! | ns2 | B RTTmin | half, if more | ssthresh = half |
//! | ns3 | B RTTmin | - | ssthresh = B RTTmin |
//!
//! `ns2` is ns-2.35's TCP/Linux, which calls Linux 2.6.22's code at other times than Linux does. `arithmetic=jiffies`
//! adds that code's whole bytes per millisecond. They lose up to 8 percent of the estimate at 1.5 Mbit/s, which the
//! reference numbers contain.

use crate::acked_count::AckedCount;
use crate::linux;
use crate::linux::{MAX_COUNTED, WholeWindow};
use crate::undo::BeforeLosses;
use crate::{
    Ack, CongestionEvent, Controller, Dialect, Environment, SendLimits, bounded, variables,
};
use narrows_base::descriptor::ParamKind;
use narrows_base::{Descriptor, Duration, Param, Settings, Status, Time, Variable};

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "westwood+",
    summary: "Westwood with one bandwidth sample per round trip",
    source: "Mascolo et al. 2004, as in Linux",
    senses: "loss, delivery rate",
    sets: "window: +1 segment per RTT; bandwidth times smallest RTT after a loss",
    params: &[
        Param {
            name: "filter",
            help: "how samples are averaged: two cascaded 7/8-1/8 averages, or 0.9-0.1 of two",
            kind: ParamKind::Choice(&["linux", "ns3"]),
            origin: "Linux tcp_westwood.c; ns-3 TcpWestwoodPlus",
        },
        Param {
            name: "cut",
            help: "when a loss sets the window to bandwidth times smallest RTT",
            kind: ParamKind::Choice(&["linux", "ns2", "ns3"]),
            origin: "Linux tcp_westwood.c; ns-2.35 tcp-linux.cc; ns-3 TcpWestwoodPlus",
        },
        Param {
            name: "arithmetic",
            help: "real numbers, or whole bytes per millisecond and smoothed RTTs",
            kind: ParamKind::Choice(&["real", "jiffies"]),
            origin: "ours; jiffies: Linux 2.6.22 at 1000 Hz",
        },
        crate::linux::like(&["preset", "ns2", "linux"]),
    ],
    status: Status::Differs(
        "ns-2.35 TCP/Linux Westwood: within 4% up to 1% loss, apart at 10% (docs/validation.md)",
    ),
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[variables::BANDWIDTH];

/// Linux `TCP_WESTWOOD_RTT_MIN`: no sample over less than this.
const MIN_SAMPLE_INTERVAL: Duration = Duration::from_millis(50);

/// Builds the controller.
pub fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    if linux::is_meant(settings, environment) {
        return linux::westwood::build(environment);
    }
    Box::new(WestwoodPlus {
        tustin: settings.choice("filter") == "ns3",
        cut: match settings.choice("cut") {
            "ns2" => Cut::Ns2,
            "ns3" => Cut::Ns3,
            _ => Cut::Linux,
        },
        jiffies: settings.choice("arithmetic") == "jiffies",
        cut_again: environment.dialect == Dialect::Ns2,
        bytes: f64::from(environment.packet_bytes.max(1)),
        window: WholeWindow::new(environment.initial_window, environment.initial_ssthresh),
        before: BeforeLosses::default(),
        counter: AckedCount::default(),
        since: None,
        acked: 0,
        fast: 0.0,
        estimate: 0.0,
        last_sample: 0.0,
        min_rtt: f64::INFINITY,
    })
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cut {
    Linux,
    Ns2,
    Ns3,
}

#[derive(Clone, Debug)]
struct WestwoodPlus {
    tustin: bool,
    cut: Cut,
    jiffies: bool,
    cut_again: bool,
    bytes: f64,
    window: WholeWindow,
    before: BeforeLosses,
    counter: AckedCount,
    /// Start of this sample (`rtt_win_sx`).
    since: Option<Time>,
    /// Segments acknowledged in it (`bk`).
    acked: u64,
    /// Estimates after one and two averages, in bytes per millisecond (`bw_ns_est`, `bw_est`).
    fast: f64,
    estimate: f64,
    last_sample: f64,
    /// Smallest RTT in milliseconds.
    min_rtt: f64,
}

impl WestwoodPlus {
    fn whole(&self, x: f64) -> f64 {
        if self.jiffies { x.floor() } else { x }
    }

    fn sample(&mut self, milliseconds: f64) {
        let sample = self.whole(self.acked as f64 * self.bytes / milliseconds);
        if self.tustin {
            // ns-3: B = 0.9 B + 0.1 (b + b')/2.
            self.estimate = 0.9 * self.estimate + 0.1 * (sample + self.last_sample) / 2.0;
        } else if self.fast == 0.0 && self.estimate == 0.0 {
            self.fast = sample;
            self.estimate = sample;
        } else {
            self.fast = self.whole((7.0 * self.fast + sample) / 8.0);
            self.estimate = self.whole((7.0 * self.estimate + self.fast) / 8.0);
        }
        self.last_sample = sample;
    }

    /// B RTTmin in whole segments, at least 2.
    fn carried(&self) -> u64 {
        let rtt = if self.min_rtt.is_finite() { self.min_rtt } else { 0.0 };
        bounded(self.estimate * rtt / self.bytes, 2.0) as u64
    }

    fn half(&self) -> u64 {
        (self.window.cwnd / 2).max(2)
    }
}

impl Controller for WestwoodPlus {
    fn on_ack(&mut self, ack: &Ack) {
        let rtt = if self.jiffies { ack.estimate.srtt } else { ack.rtt };
        match self.since {
            None => self.since = Some(ack.now),
            Some(since) => {
                let passed = ack.now.since(since);
                if passed > rtt.max(MIN_SAMPLE_INTERVAL) {
                    let milliseconds = passed.as_secs_f64() * 1e3;
                    self.sample(self.whole(milliseconds).max(1.0));
                    self.acked = 0;
                    self.since = Some(ack.now);
                }
                self.acked = self.acked.saturating_add(self.counter.count(ack));
            }
        }
        let rtt = rtt.as_secs_f64() * 1e3;
        self.min_rtt = self.min_rtt.min(if self.jiffies { (rtt + 0.5).floor() } else { rtt });
        if ack.may_grow() {
            for _ in 0..ack.counted.min(MAX_COUNTED) {
                self.window.reno();
            }
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match event {
            CongestionEvent::RecoveryStart(recovery) => {
                let cwnd = self.window.cwnd as f64;
                let ssthresh = self.window.ssthresh;
                self.before.on_recovery(recovery, cwnd, ssthresh);
                let half = self.half();
                let carried = self.carried();
                let (ssthresh, cwnd) = match self.cut {
                    Cut::Linux => (half, half),
                    Cut::Ns2 => (half, carried),
                    Cut::Ns3 => (carried, carried),
                };
                self.window.ssthresh = ssthresh as f64;
                self.window.set(cwnd.min(self.window.cwnd));
            }
            CongestionEvent::RecoveryEnd(recovery) => {
                match self.cut {
                    Cut::Linux => {
                        let carried = self.carried();
                        self.window.ssthresh = carried as f64;
                        self.window.set(carried);
                    }
                    // Raised to ssthresh, but at most three packets are sent at once.
                    Cut::Ns2 if (self.window.cwnd as f64) < self.window.ssthresh => {
                        let half = self.window.ssthresh as u64;
                        self.window.cwnd = half.min(recovery.outstanding.saturating_add(3)).max(1);
                    }
                    Cut::Ns2 | Cut::Ns3 => {}
                }
            }
            CongestionEvent::SlowStartRestart(restart) => {
                if restart.backoffs <= 1 {
                    self.before.keep(self.window.cwnd as f64, self.window.ssthresh);
                }
                match self.cut {
                    Cut::Ns2 if restart.backoffs <= 1 || self.cut_again => {
                        self.window.ssthresh = self.half() as f64;
                    }
                    Cut::Ns2 => {}
                    Cut::Linux | Cut::Ns3 => self.window.ssthresh = self.carried() as f64,
                }
                if self.cut == Cut::Linux {
                    self.min_rtt = f64::INFINITY; // the path may have changed
                }
                self.window.set(1);
            }
            CongestionEvent::SpuriousLosses(spurious) => {
                let cwnd = self.window.cwnd as f64;
                let ssthresh = self.window.ssthresh;
                if let Some((cwnd, ssthresh)) = self.before.undo(spurious, cwnd, ssthresh) {
                    self.window.set(cwnd as u64);
                    self.window.ssthresh = ssthresh;
                }
            }
            _ => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::unpaced(self.window.cwnd as f64).with_ssthresh(self.window.ssthresh)
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("bandwidth_bps", self.estimate * 8e3);
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{IdealPath, build};
    use narrows_base::Duration;

    /// One ACK per 10 ms over a smallest RTT of 100 ms: 10 segments.
    fn steady(spec: &str) -> IdealPath {
        let mut s = IdealPath::new(build(spec));
        s.gap = Duration::from_millis(10);
        s.acks(1);
        s.rtt = Duration::from_millis(300);
        s.acks(1500);
        s
    }

    #[test]
    fn linux_halves_at_loss_then_takes_the_rate_estimate() {
        for filter in ["linux", "ns3"] {
            let mut s = steady(&format!("westwood+(filter={filter})"));
            assert_eq!(s.window(), 1505.0);
            s.recovery();
            assert!((9.0..=10.0).contains(&s.window()), "{filter}: {}", s.window());
            assert_eq!(s.ssthresh(), Some(s.window()));
        }
    }

    #[test]
    fn ns3_sets_ssthresh_at_the_loss_and_at_a_timeout() {
        let mut s = steady("westwood+(cut=ns3)");
        s.timeout();
        assert_eq!(s.window(), 1.0);
        assert!((9.0..=10.0).contains(&s.ssthresh().unwrap()));
    }

    #[test]
    fn ns2_ends_the_repair_at_half_if_that_is_more() {
        let mut s = steady("westwood+(cut=ns2)");
        s.recovery();
        assert_eq!(s.ssthresh(), Some(752.0));
        assert!(s.window() <= 13.0, "at most three more than the path carries: {}", s.window());
    }

    #[test]
    fn whole_bytes_per_millisecond_lose_some() {
        // 1000 bytes per 10 ms are 100 bytes/ms; each of the two averages settles up to 7 below.
        let mut s = steady("westwood+(arithmetic=jiffies)");
        s.gap = Duration::from_millis(9);
        s.acks(2000);
        let mut bandwidth = 0.0;
        s.controller.watch(&mut |_, value| bandwidth = value);
        let true_rate = 8000.0 / 0.009;
        assert!(bandwidth < true_rate - 8000.0 && bandwidth > 0.85 * true_rate, "{bandwidth}");
    }

    #[test]
    fn compressed_acks_do_not_inflate_the_estimate() {
        let mut s = steady("westwood+");
        for _ in 0..20 {
            s.gap = Duration::from_nanos(1);
            s.acks(39);
            s.gap = Duration::from_millis(400);
            s.acks(1);
        }
        s.recovery();
        assert!(s.window() <= 11.0, "{}", s.window());
    }
}
