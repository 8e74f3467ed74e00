//! Veno as in Linux 6.1, `tcp_veno.c`: as [`crate::veno`], but segments are counted, and RTTs are not measured during
//! recoveries.

use super::window::{LinuxWindow, WindowEffect, micros};
use crate::{Ack, CongestionEvent, Controller, Environment, SendLimits};

/// `beta` in half packets.
pub fn build(beta: u64, environment: &Environment) -> Box<dyn Controller> {
    Box::new(LinuxVeno {
        window: LinuxWindow::new(environment),
        beta,
        measuring: true,
        base: u64::MAX,
        smallest: u64::MAX,
        samples: 0,
        backlog: 0,
        raise_next: true,
    })
}

#[derive(Clone, Debug)]
struct LinuxVeno {
    window: LinuxWindow,
    /// In half packets, as `backlog`.
    beta: u64,
    measuring: bool,
    /// Microseconds, plus one: of the connection, and since the last growth.
    base: u64,
    smallest: u64,
    samples: u64,
    backlog: u64,
    raise_next: bool,
}

impl LinuxVeno {
    fn grow(&mut self, acked: u64) {
        if !self.measuring || self.samples <= 2 {
            self.window.reno(acked);
            return;
        }
        let double = self.window.cwnd * 2;
        let rtt = self.smallest.max(self.base);
        self.backlog =
            double - (u128::from(double) * u128::from(self.base) / u128::from(rtt)) as u64;
        let left = if self.window.in_slow_start() { self.window.slow_start(acked) } else { acked };
        if left == 0 {
            return;
        }
        let cwnd = self.window.cwnd;
        if self.backlog < self.beta {
            self.window.avoid(cwnd, left);
        } else if *self.window.counted() >= cwnd {
            *self.window.counted() = 0;
            self.window.cwnd += u64::from(self.raise_next);
            self.raise_next = !self.raise_next;
        } else {
            *self.window.counted() += left;
        }
    }
}

impl Controller for LinuxVeno {
    fn on_ack(&mut self, ack: &Ack) {
        if ack.newly_delivered > 0 {
            let rtt = micros(ack.rtt) + 1;
            self.base = self.base.min(rtt);
            self.smallest = self.smallest.min(rtt);
            self.samples += 1;
        }
        if self.window.admits(ack) {
            self.grow(ack.newly_delivered);
            self.smallest = u64::MAX;
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        let random = self.backlog < self.beta;
        let turn = self
            .window
            .on_event(event, |w| if random { (w.cwnd * 4 / 5).max(2) } else { w.half() });
        match turn {
            WindowEffect::Reduced | WindowEffect::Open => {
                // The ACK that ends the recovery raises the window afterwards. Without a sample, the whole window
                // counts as queued.
                self.measuring = true;
                self.smallest = u64::MAX;
                let acked = self.window.take_pending();
                if acked > 0 {
                    self.grow(acked);
                    self.smallest = u64::MAX;
                }
            }
            WindowEffect::Recovery | WindowEffect::Loss(_) => self.measuring = false,
            WindowEffect::None => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        self.window.limits()
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("backlog", self.backlog as f64 / 2.0);
    }
}

#[cfg(test)]
mod tests {
    use crate::CongestionEvent;
    use crate::scenario::{IdealPath, build};

    /// At the end of a recovery there is no RTT sample of the time after it, so the whole window counts as queued: a
    /// loss before the next ACK halves it, as in the kernel.
    #[test]
    fn the_end_of_a_recovery_is_taken_for_congestion() {
        for (next_ack, left) in [(false, 12.0), (true, 20.0)] {
            let mut s = IdealPath::new(build("veno(like=linux)"));
            s.acks(28);
            let start = s.recovery_start();
            s.controller.on_congestion_event(&start);
            assert_eq!(s.window(), 25.0);
            let last = s.ack(1, true);
            s.controller.on_ack(&last);
            let CongestionEvent::RecoveryStart(episode) = start else { panic!("{start:?}") };
            s.controller.on_congestion_event(&CongestionEvent::RecoveryEnd(episode));
            if next_ack {
                s.acks(1);
            }
            s.controller.on_congestion_event(&s.recovery_start());
            assert_eq!(s.window(), left, "next ACK {next_ack}");
        }
    }
}
