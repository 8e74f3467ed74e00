//! The sender's timer.

use narrows_base::{Duration, Time};
use narrows_recovery::rtt::{RtoConfig, RtoMethod};

/// Actions that the timer triggers when it is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TimerPurpose {
    Retransmission,
    Probe,
    Reordering,
}

/// An unacknowledged tail loss probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct TailLossProbe {
    /// Next new segment when it was sent.
    pub end: u64,
    /// Whether it repeated a segment.
    pub repeats: bool,
}

/// The sender's only timer.
#[derive(Debug)]
pub(super) struct RetransmissionTimer {
    /// When it is due, and what for.
    pub due: Time,
    pub purpose: TimerPurpose,
    /// The tick of its clock; zero without ticks.
    tick: Duration,
    /// Consecutive retransmission timeouts.
    pub backoffs: u32,
    pub probe: Option<TailLossProbe>,
}

impl RetransmissionTimer {
    pub fn new(config: &RtoConfig) -> RetransmissionTimer {
        let is_linux = config.method == RtoMethod::Linux;
        RetransmissionTimer {
            due: Time::NEVER,
            purpose: TimerPurpose::Retransmission,
            tick: if is_linux { config.granularity } else { Duration::ZERO },
            backoffs: 0,
            probe: None,
        }
    }
    pub fn set(&mut self, purpose: TimerPurpose, now: Time, after: Duration) {
        self.due = self.at_tick(now, after);
        self.purpose = purpose;
    }
    /// The time `after` now, rounded to a tick if timers have ticks.
    fn at_tick(&self, now: Time, after: Duration) -> Time {
        if self.tick == Duration::ZERO {
            return now + after;
        }
        let tick = self.tick.as_nanos();
        let ticks = after.as_nanos().div_ceil(tick);
        Time::from_nanos((now.as_nanos() / tick).saturating_add(ticks).saturating_mul(tick))
    }
}
