//! How many more packets ACKs report than the bandwidth explains (Linux `tcp_bbr.c`, since 5.1).
//!
//! If a link delivers in bursts (Wi-Fi, cable), two bandwidth-delay products do not suffice to keep
//! sending between bursts. The window is widened by the largest excess of the last 5 to 10 rounds.

use narrows_base::Time;

const WINDOW_ROUNDS: u32 = 5;
/// An epoch restarts after this many packets.
const EPOCH_LIMIT: u64 = 1 << 20;
/// The excess is at most the bandwidth times this, in seconds.
const MAX_EXTRA_ACKED_S: f64 = 0.1;

#[derive(Clone, Debug, Default)]
pub struct Aggregation {
    began: Option<Time>,
    acked: u64,
    /// Largest excess in the present and in the previous stretch of five rounds.
    excess: [f64; 2],
    rounds: u32,
}

impl Aggregation {
    /// The sender was idle: a new epoch begins.
    pub fn restart(&mut self, now: Time) {
        self.began = Some(now);
        self.acked = 0;
    }

    pub fn on_ack(&mut self, now: Time, round_start: bool, acked: u64, bandwidth: f64, cwnd: f64) {
        if round_start {
            self.rounds += 1;
            if self.rounds >= WINDOW_ROUNDS {
                self.rounds = 0;
                self.excess = [0.0, self.excess[0]];
            }
        }
        let passed = self.began.map_or(0.0, |b| now.since(b).as_secs_f64());
        let mut expected = (bandwidth * passed).floor();
        if self.acked as f64 <= expected || self.acked.saturating_add(acked) >= EPOCH_LIMIT {
            self.restart(now);
            expected = 0.0;
        }
        self.acked = self.acked.saturating_add(acked).min(EPOCH_LIMIT);
        let excess = (self.acked as f64 - expected).min(cwnd);
        self.excess[0] = self.excess[0].max(excess);
    }

    /// Segments to add to the window.
    pub fn extra_acked(&self, bandwidth: f64) -> f64 {
        let max = (bandwidth * MAX_EXTRA_ACKED_S).floor();
        self.excess[0].max(self.excess[1]).min(max)
    }
}
