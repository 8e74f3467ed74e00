//! Westwood+ as in Linux 6.1, `tcp_westwood.c`, which counts time in ticks. At 250 Hz an RTT of 41 ms is 11 ticks. The
//! smallest RTT, in whole ticks rounded up, widens the window after a loss.

use super::window::{HZ, LinuxWindow, WindowEffect, micros, ticks, ticks_of_us};
use crate::{Ack, CongestionEvent, Controller, Environment, SendLimits};

/// No sample over less than this (`TCP_WESTWOOD_RTT_MIN`); the RTT before the first (`TCP_WESTWOOD_INIT_RTT`).
const MIN_INTERVAL: u64 = HZ / 20;
const INITIAL_RTT: u64 = 20 * HZ;

pub fn build(environment: &Environment) -> Box<dyn Controller> {
    Box::new(LinuxWestwood {
        window: LinuxWindow::new(environment),
        segment: u64::from(environment.packet_bytes.max(1)),
        began: None,
        bytes: 0,
        credit: 0,
        fast: 0,
        estimate: 0,
        rtt: INITIAL_RTT,
        min_rtt: INITIAL_RTT,
        anew: true,
    })
}

#[derive(Clone, Debug)]
struct LinuxWestwood {
    window: LinuxWindow,
    /// Bytes of a segment: only whole bytes per tick count.
    segment: u64,
    /// Tick at which this sample began, and bytes in it.
    began: Option<u64>,
    bytes: u64,
    /// Bytes of duplicates, which a later acknowledgement covers once more.
    credit: u64,
    /// Bytes per tick after one and two averages.
    fast: u64,
    estimate: u64,
    /// In ticks.
    rtt: u64,
    min_rtt: u64,
    /// The smallest RTT is measured again from the next ACK on.
    anew: bool,
}

impl LinuxWestwood {
    fn sample(&mut self, interval: u64) {
        let sample = self.bytes / interval;
        if self.fast == 0 && self.estimate == 0 {
            self.fast = sample;
            self.estimate = sample;
        } else {
            self.fast = (7 * self.fast + sample) >> 3;
            self.estimate = (7 * self.estimate + self.fast) >> 3;
        }
    }

    /// Capacity of the path in segments.
    fn carried(&self) -> u64 {
        (self.estimate.saturating_mul(self.min_rtt) / self.segment).max(2)
    }

    /// `westwood_acked_count`.
    fn count(&mut self, ack: &Ack) -> u64 {
        let advance = ack.cumulative.newly_acked * self.segment;
        if advance == 0 {
            self.credit += self.segment;
            return self.segment;
        }
        if advance <= self.segment {
            return advance;
        }
        if self.credit >= advance {
            self.credit -= advance;
            return self.segment;
        }
        advance - std::mem::take(&mut self.credit)
    }
}

impl Controller for LinuxWestwood {
    fn on_ack(&mut self, ack: &Ack) {
        let now = ticks(ack.now);
        let began = *self.began.get_or_insert(now);
        let interval = now - began;
        if self.rtt > 0 && interval > self.rtt.max(MIN_INTERVAL) {
            self.sample(interval);
            self.bytes = 0;
            self.began = Some(now);
        }
        self.bytes += self.count(ack);
        self.min_rtt =
            if std::mem::take(&mut self.anew) { self.rtt } else { self.min_rtt.min(self.rtt) };
        if ack.newly_delivered > 0 {
            self.rtt = ticks_of_us(micros(ack.rtt));
        }
        if self.window.admits(ack) {
            self.window.reno(ack.newly_delivered);
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match self.window.on_event(event, LinuxWindow::half) {
            WindowEffect::Reduced => {
                self.window.ssthresh = self.carried();
                self.window.cwnd = self.window.ssthresh;
                let acked = self.window.take_pending();
                self.window.reno(acked);
            }
            WindowEffect::Loss(true) => {
                self.window.ssthresh = self.carried();
                self.anew = true;
            }
            _ => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        self.window.limits()
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("bandwidth_bps", self.estimate as f64 * 8.0 * HZ as f64);
    }
}
