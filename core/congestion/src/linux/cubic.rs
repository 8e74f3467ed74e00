//! CUBIC as in Linux 6.1, `tcp_cubic.c`.
//!
//! Older than RFC 9438: segments are whole. The cubic and Reno's window are updated at most once per tick. Reno's
//! window grows by 0.53 segments a round trip both below and above the window of the last loss. A timeout resets all
//! state. The first slow start ends by HyStart (Ha and Rhee 2011): a train of ACKs half the smallest RTT long, or a
//! rise of the RTT by an eighth.

use super::window::{HZ, LinuxWindow, WindowEffect, micros, ticks, ticks_of_us};
use crate::{Ack, CongestionEvent, Controller, Environment, SendLimits};
use narrows_base::{Time, math};

/// `BICTCP_BETA_SCALE`: factors are whole numbers of 1024ths.
const SCALE: u64 = 1024;

const LOW_WINDOW: u64 = 16;
const TRAIN_GAP_US: u64 = 2000;
const TRAIN_SLACK_US: u64 = 1000;
const SAMPLES: u32 = 8;

/// Parameters of the kernel module.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub hystart: bool,
    pub fast_convergence: bool,
    /// `beta`: the share of the window that a loss leaves, in 1024ths; 717 by default.
    beta: u64,
    /// `bic_scale`, times ten: C of the cubic in 1024ths of a segment per second cubed; 410 by default.
    cube_scale: u64,
}

impl Options {
    /// `c` and `beta` as in RFC 9438, at least a 1024th.
    pub fn new(c: f64, beta: f64, hystart: bool, fast_convergence: bool) -> Options {
        let scaled = |x: f64| ((x * SCALE as f64).round() as u64).max(1);
        Options {
            hystart,
            fast_convergence,
            beta: scaled(beta).min(SCALE - 1),
            cube_scale: scaled(c),
        }
    }
    /// Acknowledged segments per segment of Reno's growth, in eighths of the window (`beta_scale`); 15 by default.
    fn reno_scale(self) -> u64 {
        8 * (SCALE + self.beta) / 3 / (SCALE - self.beta)
    }
}

pub fn build(options: Options, environment: &Environment) -> Box<dyn Controller> {
    Box::new(LinuxCubic {
        window: LinuxWindow::new(environment),
        options,
        acked: 0,
        curve: Curve::default(),
        start: HyStart::default(),
    })
}

/// The cubic: forgotten at a timeout.
#[derive(Clone, Debug, Default)]
struct Curve {
    /// ACKed segments per segment of growth (`cnt`).
    per: u64,
    last_max: u64,
    last_window: u64,
    last_tick: Option<u64>,
    epoch: Option<u64>,
    origin: u64,
    /// When the curve reaches the origin, in 1024ths of a second.
    k: u64,
    acked: u64,
    reno: u64,
    /// Smallest RTT in microseconds; 0 before the first sample.
    delay_min: u64,
}

#[derive(Clone, Debug, Default)]
struct HyStart {
    found: bool,
    /// Microseconds.
    round_began: u64,
    last_ack: u64,
    round_end: u64,
    smallest: u64,
    samples: u32,
}

#[derive(Clone, Debug)]
struct LinuxCubic {
    window: LinuxWindow,
    options: Options,
    acked: u64,
    curve: Curve,
    start: HyStart,
}

impl Curve {
    /// `bictcp_update`.
    fn update(&mut self, options: Options, tick: u64, cwnd: u64, acked: u64) {
        self.acked += acked;
        let last = self.last_tick.unwrap_or(0);
        if self.last_window == cwnd && self.last_tick.is_some() && tick - last <= HZ / 32 {
            return;
        }
        if self.epoch.is_none() || self.last_tick != Some(tick) {
            self.last_window = cwnd;
            self.last_tick = Some(tick);
            self.cubic(options.cube_scale, tick, cwnd, acked);
        }
        let per = cwnd * options.reno_scale() / 8;
        while self.acked > per {
            self.acked -= per.max(1);
            self.reno += 1;
        }
        if self.reno > cwnd {
            self.per = self.per.min(cwnd / (self.reno - cwnd));
        }
        self.per = self.per.max(2);
    }

    fn cubic(&mut self, cube_scale: u64, tick: u64, cwnd: u64, acked: u64) {
        let epoch = *self.epoch.get_or_insert_with(|| {
            self.acked = acked;
            self.reno = cwnd;
            self.origin = self.last_max.max(cwnd);
            let below = (self.origin - cwnd) as f64;
            self.k = math::cbrt(below * (1u64 << 40) as f64 / cube_scale as f64) as u64;
            tick
        });
        let t = (tick - epoch + ticks_of_us(self.delay_min)) * 1024 / HZ;
        let off = u128::from(t.abs_diff(self.k));
        let delta = ((u128::from(cube_scale) * off * off * off) >> 40) as u64;
        let target = if t < self.k {
            self.origin.saturating_sub(delta)
        } else {
            self.origin.saturating_add(delta)
        };
        self.per = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if self.last_max == 0 {
            self.per = self.per.min(20);
        }
    }
}

impl LinuxCubic {
    /// `cubictcp_cong_avoid`.
    fn grow(&mut self, now: Time, acked: u64) {
        let left = if self.window.in_slow_start() { self.window.slow_start(acked) } else { acked };
        if left > 0 {
            self.curve.update(self.options, ticks(now), self.window.cwnd, left);
            self.window.avoid(self.curve.per, left);
        }
    }

    /// `cubictcp_acked`.
    fn take_delay(&mut self, ack: &Ack) {
        let tick = ticks(ack.now);
        if self.curve.epoch.is_some_and(|e| tick - e < HZ) {
            return;
        }
        let delay = micros(ack.rtt);
        let min = &mut self.curve.delay_min;
        *min = if *min == 0 { delay } else { delay.min(*min) };
        if self.options.hystart && !self.start.found && self.window.in_slow_start() {
            let min = *min;
            self.look_for_end(ack, delay, min);
        }
    }

    /// `hystart_update`.
    fn look_for_end(&mut self, ack: &Ack, delay: u64, min: u64) {
        let now = ack.now.as_nanos() / 1000;
        let s = &mut self.start;
        if self.acked > s.round_end {
            s.round_began = now;
            s.last_ack = now;
            s.round_end = self.acked + ack.flight;
            s.smallest = u64::MAX;
            s.samples = 0;
        }
        if self.window.cwnd < LOW_WINDOW {
            return;
        }
        if now - s.last_ack <= TRAIN_GAP_US {
            s.last_ack = now;
            s.found |= now - s.round_began > (min + TRAIN_SLACK_US) / 2;
        }
        s.smallest = s.smallest.min(delay);
        if s.samples < SAMPLES {
            s.samples += 1;
        } else {
            s.found |= s.smallest > min + (min / 8).clamp(4000, 16_000);
        }
        if s.found {
            self.window.ssthresh = self.window.cwnd;
        }
    }
}

impl Controller for LinuxCubic {
    fn on_ack(&mut self, ack: &Ack) {
        self.acked += ack.cumulative.newly_acked;
        // A duplicate segment has no RTT.
        if ack.cumulative.newly_acked + ack.cumulative.newly_sacked > 0 {
            self.take_delay(ack);
        }
        if self.window.admits(ack) {
            self.grow(ack.now, ack.newly_delivered);
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        let Options { beta, fast_convergence, .. } = self.options;
        let curve = &mut self.curve;
        let turn = self.window.on_event(event, |w| {
            curve.epoch = None;
            curve.last_max = if w.cwnd < curve.last_max && fast_convergence {
                w.cwnd * (SCALE + beta) / (2 * SCALE)
            } else {
                w.cwnd
            };
            (w.cwnd * beta / SCALE).max(2)
        });
        match (turn, event) {
            (WindowEffect::Loss(_), _) => {
                (self.curve, self.start) = (Curve::default(), HyStart::default())
            }
            (WindowEffect::Reduced, CongestionEvent::RecoveryEnd(end)) => {
                let acked = self.window.take_pending();
                self.grow(end.now, acked);
            }
            // Linux undoes a reduction before the same ACK raises the window, so that no epoch begins. HyStart ignores
            // delays in an epoch's first second.
            (WindowEffect::None, CongestionEvent::SpuriousLosses(spurious))
                if spurious.undo && self.curve.epoch == Some(ticks(spurious.now)) =>
            {
                self.curve.epoch = None;
            }
            _ => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        self.window.limits()
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("w_max", self.curve.last_max as f64);
        put("w_est", self.curve.reno as f64);
    }
}

#[cfg(test)]
mod tests {
    use crate::CongestionEvent;
    use crate::scenario::{IdealPath, build};
    use narrows_base::Duration;

    #[test]
    fn undone_recovery_leaves_hystart_awake() {
        let mut s = IdealPath::new(build("cubic(like=linux)"));
        s.gap = Duration::from_millis(3);
        s.acks(28);
        s.controller.on_congestion_event(&s.recovery_start());
        let ack = s.ack(1, true);
        s.controller.on_ack(&ack);
        let CongestionEvent::RecoveryStart(episode) = s.recovery_start() else { unreachable!() };
        s.controller.on_congestion_event(&CongestionEvent::RecoveryEnd(episode));
        s.spurious(true);
        assert_eq!(s.ssthresh(), Some(f64::INFINITY));
        // Within the second in which an epoch would hide the queue.
        s.rtt = Duration::from_millis(130);
        s.acks(200);
        assert!(s.ssthresh().is_some_and(f64::is_finite));
    }
}
