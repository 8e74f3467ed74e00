//! Detects a policer on the path (Linux `tcp_bbr.c`, "long-term" bandwidth.)
//!
//! A token bucket passes bursts, then drops packets above its rate, so the largest delivery rate exceeds that rate. Two
//! stretches of 4 to 16 rounds that begin and end with losses, lose at least a fifth, and deliver at nearly the same
//! rate indicate a policer. Their rate then replaces the estimate for 48 rounds.

use narrows_base::Time;

const MIN_ROUNDS: u32 = 4;
/// 50/256, as Linux counts it.
const LOSSY: f64 = 50.0 / 256.0;
/// Rates within an eighth are the same.
const SAME: f64 = 1.0 / 8.0;
/// Or within 4 kbit/s.
const SAME_BPS: f64 = 4000.0;
const MAX_ROUNDS: u32 = 48;
/// Intervals shorter than 1 ms are not evaluated.
const MIN_INTERVAL_S: f64 = 1e-3;

#[derive(Clone, Debug, Default)]
pub struct PolicerDetector {
    /// Rate of the last interval, in segments per second; 0 if no policer was detected.
    rate: f64,
    in_use: bool,
    sampling: bool,
    rounds: u32,
    began: Time,
    delivered: u64,
    lost: u64,
}

/// Counts of one ACK, with the connection's totals.
#[derive(Clone, Copy, Debug)]
pub struct PolicerSample {
    pub now: Time,
    pub delivered: u64,
    pub lost: u64,
    /// Whether losses were found since the last ACK.
    pub losses: bool,
    pub app_limited: bool,
    pub round_start: bool,
    pub probing_bandwidth: bool,
    pub packet_bits: f64,
}

impl PolicerDetector {
    /// The policed rate, if there is a policer.
    pub fn rate(&self) -> Option<f64> {
        self.in_use.then_some(self.rate)
    }

    fn begin_stretch(&mut self, seen: &PolicerSample) {
        self.began = seen.now;
        self.delivered = seen.delivered;
        self.lost = seen.lost;
        self.rounds = 0;
    }

    /// Starts anew.
    pub fn reset(&mut self, seen: &PolicerSample) {
        *self = PolicerDetector::default();
        self.begin_stretch(seen);
    }

    /// Returns true when the policed rate has been in use for its full time and probing must
    /// restart.
    pub fn on_ack(&mut self, seen: &PolicerSample) -> bool {
        if self.in_use {
            if seen.probing_bandwidth && seen.round_start {
                self.rounds += 1;
                if self.rounds >= MAX_ROUNDS {
                    self.reset(seen);
                    return true;
                }
            }
            return false;
        }
        // The first loss shows that the tokens are used up.
        if !self.sampling {
            if !seen.losses {
                return false;
            }
            self.begin_stretch(seen);
            self.sampling = true;
        }
        if seen.app_limited {
            self.reset(seen);
            return false;
        }
        self.rounds += u32::from(seen.round_start);
        if self.rounds > 4 * MIN_ROUNDS {
            self.reset(seen);
        } else if self.rounds >= MIN_ROUNDS && seen.losses {
            self.end_stretch(seen);
        }
        false
    }

    fn end_stretch(&mut self, seen: &PolicerSample) {
        let lost = seen.lost.saturating_sub(self.lost) as f64;
        let delivered = seen.delivered.saturating_sub(self.delivered) as f64;
        let seconds = seen.now.since(self.began).as_secs_f64();
        if delivered == 0.0 || lost < LOSSY * delivered || seconds < MIN_INTERVAL_S {
            return;
        }
        let rate = delivered / seconds;
        let difference = (rate - self.rate).abs();
        let same = difference <= SAME * self.rate || difference * seen.packet_bits <= SAME_BPS;
        if self.rate > 0.0 && same {
            self.rate = (rate + self.rate) / 2.0;
            self.in_use = true;
            self.rounds = 0;
        } else {
            self.rate = rate;
            self.begin_stretch(seen);
        }
    }
}

#[cfg(test)]
#[path = "policer_tests.rs"]
mod tests;
