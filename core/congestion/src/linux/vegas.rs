//! Vegas as in Linux 6.1, `tcp_vegas.c`.
//!
//! Differences to the algorithm of Brakmo and Peterson: the smallest RTT of a round counts, not their mean. Slow start
//! doubles in every round. Losses halve the window. During recoveries, and with fewer than three samples in a round, it
//! is Reno.

use super::window::{LinuxWindow, WindowEffect, micros};
use crate::{Ack, CongestionEvent, Controller, Environment, SendLimits};

/// Packets queued: grow below `alpha`, shrink above `beta`, leave slow start above `gamma`.
#[derive(Clone, Copy, Debug)]
pub struct VegasThresholds {
    pub alpha: u64,
    pub beta: u64,
    pub gamma: u64,
}

pub fn build(marks: VegasThresholds, environment: &Environment) -> Box<dyn Controller> {
    Box::new(LinuxVegas {
        window: LinuxWindow::new(environment),
        marks,
        measuring: true,
        acked: 0,
        round_end: 0,
        base: u64::MAX,
        smallest: u64::MAX,
        samples: 0,
        backlog: 0,
    })
}

#[derive(Clone, Debug)]
struct LinuxVegas {
    window: LinuxWindow,
    marks: VegasThresholds,
    measuring: bool,
    /// Segments acknowledged, and the highest segment of the round.
    acked: u64,
    round_end: u64,
    /// Microseconds, plus one: of the connection, and of the round.
    base: u64,
    smallest: u64,
    samples: u32,
    backlog: u64,
}

impl LinuxVegas {
    fn end_round(&mut self, delivered: u64) {
        if self.samples <= 2 {
            self.window.reno(delivered);
            return;
        }
        let cwnd = u128::from(self.window.cwnd);
        let base = u128::from(self.base);
        let rtt = u128::from(self.smallest);
        let target = (cwnd * base / rtt) as u64;
        self.backlog = (cwnd * (rtt - base) / base) as u64;
        if self.window.in_slow_start() {
            if self.backlog > self.marks.gamma {
                self.window.cwnd = self.window.cwnd.min(target + 1);
                self.lower_ssthresh();
            } else {
                self.window.slow_start(delivered);
            }
        } else if self.backlog > self.marks.beta {
            self.window.cwnd = self.window.cwnd.saturating_sub(1);
            self.lower_ssthresh();
        } else if self.backlog < self.marks.alpha {
            self.window.cwnd += 1;
        }
        self.window.cwnd = self.window.cwnd.max(2);
        self.window.raise_ssthresh();
    }

    fn lower_ssthresh(&mut self) {
        self.window.ssthresh = self.window.ssthresh.min(self.window.cwnd.saturating_sub(1));
    }

    fn begin_round(&mut self, flight: u64) {
        self.round_end = self.acked + flight;
        self.samples = 0;
        self.smallest = u64::MAX;
    }
}

impl Controller for LinuxVegas {
    fn on_ack(&mut self, ack: &Ack) {
        self.acked += ack.cumulative.newly_acked;
        if ack.newly_delivered > 0 {
            let rtt = micros(ack.rtt) + 1;
            self.base = self.base.min(rtt);
            self.smallest = self.smallest.min(rtt);
            self.samples += 1;
        }
        if ack.cumulative.newly_acked == 0 || ack.in_recovery || ack.marks > 0 {
            return;
        }
        if !self.measuring {
            if ack.window_limited {
                self.window.reno(ack.newly_delivered);
            }
        } else if self.acked > self.round_end {
            self.end_round(ack.newly_delivered);
            self.begin_round(ack.flight);
        } else if self.window.in_slow_start() {
            self.window.slow_start(ack.newly_delivered);
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match self.window.on_event(event, LinuxWindow::half) {
            WindowEffect::Reduced | WindowEffect::Open => {
                self.measuring = true;
                let flight = match event {
                    CongestionEvent::RecoveryEnd(r) => r.flight,
                    _ => 0,
                };
                self.begin_round(flight);
            }
            WindowEffect::Recovery | WindowEffect::Loss(_) => self.measuring = false,
            WindowEffect::None => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        self.window.limits()
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("backlog", self.backlog as f64);
        if self.base != u64::MAX {
            put("min_rtt_s", self.base as f64 / 1e6);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LinuxVegas, LinuxWindow, VegasThresholds};
    use crate::Environment;

    /// A window of one packet after a timeout is not reduced to zero by a queue.
    #[test]
    fn a_queue_does_not_take_a_window_below_two() {
        for cwnd in 0..3 {
            let mut window = LinuxWindow::new(&Environment::default());
            window.cwnd = cwnd;
            window.ssthresh = 0;
            let marks = VegasThresholds { alpha: 0, beta: 0, gamma: 0 };
            let mut vegas = LinuxVegas {
                window,
                marks,
                measuring: true,
                acked: 0,
                round_end: 0,
                base: 10,
                smallest: 1000,
                samples: 3,
                backlog: 0,
            };
            vegas.end_round(1);
            assert_eq!(vegas.window.cwnd, 2, "from {cwnd}");
        }
    }
}
