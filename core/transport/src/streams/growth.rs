//! Growth of windows and of the send buffer.
//!
//! A stream that is not to wait needs space for what arrives in a round trip, and as much again while a lost packet is
//! repeated or a slower path delivers. So both are twice the bytes that were carried in one round trip (the rule of
//! Linux's receive buffer), at least as configured, at most [`ConnectionConfig::max_buffered`].
//!
//! Only bytes that this end's application has read, or that the peer has acknowledged in order, are counted: memory
//! follows what the peer has shown, and a peer that leaves gaps gets no more.
//!
//! [`ConnectionConfig::max_buffered`]: crate::connection::ConnectionConfig::max_buffered

use narrows_base::{Duration, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Ratio of the space to the bytes carried in one round trip.
const TIMES: u64 = 2;
/// Longest round trip that counts: that of two satellite hops with a full queue. A peer could delay its reports without
/// a bound.
const MAX_ROUND: Duration = Duration::from_secs(2);

/// Bytes by which the buffers of all connections with one configuration may grow together: those of some five fast ones.
/// Otherwise each of many clients could make a server hold much, one after the other.
const BUDGET: u64 = 256 << 20;

/// What is left for growth, shared by all connections with clones of one configuration.
#[derive(Debug)]
pub struct GrowthBudget {
    left: AtomicU64,
}

impl Default for GrowthBudget {
    fn default() -> GrowthBudget {
        GrowthBudget { left: AtomicU64::new(BUDGET) }
    }
}

impl GrowthBudget {
    /// Takes up to `wanted` bytes. Returns how many.
    fn take(&self, wanted: u64) -> u64 {
        let rest = |left: u64| Some(left.saturating_sub(wanted));
        let before = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
        before.unwrap_or_default().min(wanted)
    }
}

/// Bytes of one direction until now, and the space for them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub bytes: u64,
    pub space: u64,
}

/// Bytes carried in the round trip under way.
#[derive(Debug, Default)]
pub(super) struct BufferGrowth {
    /// Limit on the windows and on the send buffer.
    most: u64,
    budget: Arc<GrowthBudget>,
    /// Bytes of the budget in use.
    grown: u64,
    began: Time,
    ends: Time,
    /// Bytes acknowledged in order, and bytes read, when it began.
    arrived: u64,
    read: u64,
}

impl Drop for BufferGrowth {
    fn drop(&mut self) {
        self.budget.left.fetch_add(self.grown, Ordering::Relaxed);
    }
}

impl BufferGrowth {
    pub fn new(most: usize, budget: Arc<GrowthBudget>) -> BufferGrowth {
        BufferGrowth { most: most as u64, budget, ..BufferGrowth::default() }
    }
    /// Whether a round trip has ended.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        now >= self.ends
    }
    /// A round trip has ended; `round` is the longest of all paths. `sent` is what was acknowledged in order until now
    /// and the space for it, `read` the same of what was read. Returns both spaces from now on.
    pub fn on_round(
        &mut self,
        now: Time,
        round: Duration,
        sent: Carried,
        read: Carried,
    ) -> [u64; 2] {
        let round = round.min(MAX_ROUND);
        let mut spaces = [sent.space, read.space];
        if self.ends > Time::ZERO {
            spaces = [
                self.space(now, round, sent.bytes - self.arrived, sent.space),
                self.space(now, round, read.bytes - self.read, read.space),
            ];
        }
        self.arrived = sent.bytes;
        self.read = read.bytes;
        self.began = now;
        self.ends = now + round;
        spaces
    }
    /// The space for a stream that carried `bytes` since the round trip began, if it has `present` now.
    fn space(&mut self, now: Time, round: Duration, bytes: u64, present: u64) -> u64 {
        // An observation longer than a round trip, after a pause, counts in proportion.
        let elapsed = now.since(self.began).max(round).as_nanos().max(1);
        let in_round = u128::from(bytes) * u128::from(round.as_nanos()) / u128::from(elapsed);
        let wanted = (in_round as u64).saturating_mul(TIMES).min(self.most);
        let more = self.budget.take(wanted.saturating_sub(present));
        self.grown += more;
        present + more
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::tests::{LIMITS, deliver, packet, pair};
    use crate::streams::{Read, SentFrame, Streams};

    const ROUND: Duration = Duration::from_millis(100);

    /// A round trip in which the sender fills the window and the reader reads all. Returns the bytes read.
    fn round(from: &mut Streams, to: &mut Streams, id: u64, at: Time) -> usize {
        while from.write(id, &[1; 1000]).is_ok_and(|n| n > 0) {}
        let mut sent_frames = Vec::new();
        while let Some((bytes, frames)) = packet(from, 1200) {
            deliver(to, &bytes).unwrap();
            sent_frames.extend(frames);
        }
        let mut read = 0;
        let mut buffer = vec![0; 1 << 20];
        while let Ok(Read::Bytes(n)) = to.read(id, &mut buffer) {
            read += n;
        }
        sent_frames.iter().for_each(|frame: &SentFrame| from.arrived(frame));
        while let Some((bytes, _)) = packet(to, 1200) {
            deliver(from, &bytes).unwrap();
        }
        from.grow(at, ROUND);
        to.grow(at, ROUND);
        read
    }

    fn at(rounds: u64) -> Time {
        Time::ZERO + Duration::from_secs(1) + ROUND.saturating_mul(rounds)
    }

    #[test]
    fn full_windows_double_each_round_up_to_the_limit() {
        let (mut client, mut server) = pair(LIMITS, 20_000);
        client.set_growth(100_000, Arc::default());
        server.set_growth(100_000, Arc::default());
        let id = client.open(false).unwrap();
        let read: Vec<usize> =
            (0..12).map(|n| round(&mut client, &mut server, id, at(n))).collect();
        assert_eq!(read[0], LIMITS.stream as usize);
        assert!(read.windows(2).all(|w| w[1] <= 2 * w[0] && w[1] >= w[0]), "{read:?}");
        assert_eq!(read[11], 100_000, "{read:?}");
    }

    #[test]
    fn connections_share_the_budget_and_return_it() {
        let budget = Arc::new(GrowthBudget { left: AtomicU64::new(30_000) });
        let mut bytes = Vec::new();
        for _ in 0..3 {
            let (mut client, mut server) = pair(LIMITS, 100_000);
            client.set_growth(100_000, Arc::default());
            server.set_growth(100_000, budget.clone());
            let id = client.open(false).unwrap();
            let all: Vec<usize> =
                (0..12).map(|n| round(&mut client, &mut server, id, at(n))).collect();
            bytes.push(*all.last().unwrap());
            let (_other, mut second) = pair(LIMITS, 100_000);
            second.set_growth(100_000, budget.clone());
            second.all.read = 50_000;
            second.growth.ends = Time::from_secs_f64(0.5);
            second.grow(at(20), ROUND);
            assert_eq!(second.all.of_stream, LIMITS.stream, "nothing is left");
        }
        assert_eq!(bytes, [40_000; 3]);
        assert_eq!(budget.left.load(Ordering::Relaxed), 30_000);
    }

    #[test]
    fn windows_without_growth_stay() {
        let (mut client, mut server) = pair(LIMITS, 20_000);
        let id = client.open(false).unwrap();
        for n in 0..8 {
            assert_eq!(round(&mut client, &mut server, id, at(n)), LIMITS.stream as usize);
        }
    }

    #[test]
    fn slow_rounds_leave_the_windows() {
        let (mut client, mut server) = pair(LIMITS, 20_000);
        server.set_growth(100_000, Arc::default());
        let id = client.open(false).unwrap();
        for n in 0..8 {
            // A window takes three round trips.
            round(&mut client, &mut server, id, at(3 * n));
        }
        assert_eq!(server.all.of_stream, LIMITS.stream);
    }

    #[test]
    fn resets_without_data_leave_the_windows() {
        let (mut client, mut server) = pair(LIMITS, 20_000);
        server.set_growth(100_000, Arc::default());
        server.grow(at(0), ROUND);
        for n in 0..50 {
            let frame =
                narrows_wire::Frame::ResetStream { id: 4 * n, code: 0, size: LIMITS.stream };
            let Ok(true) = server.on_frame(&frame) else { break };
            server.grow(at(n), ROUND);
        }
        assert_eq!(server.all.of_stream, LIMITS.stream);
        assert!(client.open(false).is_some());
    }
}
