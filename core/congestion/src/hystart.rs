//! HyStart++: RFC 9406. Detects by delay when to leave the first slow start.
//!
//! ```text
//! slow start --(RTT rose by an eighth)--> conservative slow start --(5 rounds)--> done
//!      ^------------(RTT fell back)-----------------'
//! ```

use crate::Ack;
use narrows_base::Duration;

// RFC 9406 section 4.3.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;
/// Most segments that one ACK may add, for a sender without pacing.
const L: u64 = 8;

/// The state of the first slow start.
#[derive(Clone, Debug)]
pub struct Hystart {
    last_round: Duration,
    this_round: Duration,
    samples: u32,
    /// Conservative slow start: the RTT when it began, and rounds since.
    conservative: Option<(Duration, u32)>,
}

/// Reaction to an ACK.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum HyStartReaction {
    /// Add this to the window.
    Grow(f64),
    /// Slow start is over.
    Leave,
}

impl Hystart {
    pub fn new() -> Hystart {
        Hystart {
            last_round: Duration::MAX,
            this_round: Duration::MAX,
            samples: 0,
            conservative: None,
        }
    }

    /// RFC 9406 section 4.2, for an ACK in slow start.
    pub fn on_ack(&mut self, ack: &Ack) -> HyStartReaction {
        if ack.round_start {
            self.last_round = self.this_round;
            self.this_round = Duration::MAX;
            self.samples = 0;
            if let Some((_, rounds)) = &mut self.conservative {
                *rounds += 1;
                if *rounds >= CSS_ROUNDS {
                    return HyStartReaction::Leave;
                }
            }
        }
        self.this_round = self.this_round.min(ack.rtt);
        self.samples = self.samples.saturating_add(1);
        if self.samples >= N_RTT_SAMPLE {
            match self.conservative {
                None if self.last_round != Duration::MAX => {
                    let eighth = Duration::from_nanos(self.last_round.as_nanos() / MIN_RTT_DIVISOR);
                    let threshold = eighth.clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                    if self.this_round >= self.last_round + threshold {
                        self.conservative = Some((self.this_round, 0));
                    }
                }
                // The rise was a false alarm.
                Some((baseline, _)) if self.this_round < baseline => self.conservative = None,
                _ => {}
            }
        }
        let acked = ack.cumulative.newly_acked.min(L) as f64;
        HyStartReaction::Grow(if self.conservative.is_some() {
            acked / CSS_GROWTH_DIVISOR
        } else {
            acked
        })
    }
}
