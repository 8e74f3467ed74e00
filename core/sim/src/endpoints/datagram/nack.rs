//! The receiver's side of a stream's loss recovery in the RRTP thesis (section 3.5). It sends a NACK for missing bytes,
//! and a timer repeats it until they arrive. The sender retransmits only the bytes of a NACK (`stream`) and the
//! stream's last packet.
//!
//! The thesis prints: "When the receiver detects a lost packet event, it sends out a NACK requesting the sender to
//! resend the lost packet. For each unique NACK sent out, the receiver sets up a corresponding timer. After a timer
//! expires […], the receiver will retransmit the corresponding NACK". The timer's unit is the RTT, of which "running
//! averages […] are calculated at the end of every epoch". Several packets lost together are requested together (its
//! SACK).
//!
//! It leaves these points open; our choices:
//! - The first packet above a lost one reveals the loss, as the thesis does not consider reordering: no threshold. In
//!   the thesis a retransmission has the number of the original. Our packet numbers are never reused, so offsets in the
//!   stream replace them: a gap is between the highest byte received and a packet above it. Only the timer reveals the
//!   loss of a retransmission.
//! - The timer of a NACK is 2 RTT, and doubles to 8 at most: a single one would expire with each delay of the
//!   retransmission in a queue.
//! - The RTT at the receiver is a packet's one-way time plus the shortest one (the return path is assumed empty). The
//!   running average has a weight of a tenth as the thesis' short averages (section 3.4.1). Its value at the end of an
//!   epoch of ten packets applies until the next.
//! - Consecutive lost packets share a NACK and a timer. A NACK has room for three such gaps; further ones leave in
//!   packets of their own at the same moment.
//! - The thesis' sender has no timer, but no later packet reveals the loss of a stream's last packet. The sender's loss
//!   detection retransmits that one.
//! - The thesis' CACK acknowledges 32 packets and is held back while one is missing. Here reports are sent as without
//!   NACKs, since controllers need them: only the retransmissions are compared.

use super::header::NACK_RANGES;
use narrows_base::{Duration, Time};

/// The first and the longest timer of a NACK, in RTTs.
const FIRST_TIMER: u64 = 2;
const LONGEST_TIMER: u64 = 8;
/// Packets in an epoch (section 3.4.1 of the RRTP thesis), and the weight of one in a running average.
const EPOCH: u32 = 10;
const WEIGHT: f64 = 0.1;
/// Smallest RTT used for timers.
const LEAST_RTT: Duration = Duration::from_millis(1);

/// Missing bytes `[from, to)` below received ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MissingBytes {
    from: u64,
    to: u64,
    /// When its next NACK is sent.
    due: Time,
    /// The timer after that NACK, in RTTs.
    timer: u64,
}

/// One NACK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NackRequest {
    /// Missing bytes, in rising order.
    pub ranges: Vec<(u64, u64)>,
    /// When the last received packet was sent, moved forward by the time since it arrived.
    pub stamp: Time,
}

/// The running average of the RTT at the end of the last epoch.
#[derive(Clone, Copy, Debug, Default)]
struct RunningRtt {
    running: Option<f64>,
    read: Duration,
    packets: u32,
}

impl RunningRtt {
    fn sample(&mut self, rtt: Duration) {
        let r = rtt.as_secs_f64();
        let running = self.running.map_or(r, |mean| mean + WEIGHT * (r - mean));
        self.running = Some(running);
        self.packets += 1;
        // Until the first epoch ends, the first sample counts.
        if self.packets >= EPOCH || self.read == Duration::ZERO {
            self.read = Duration::from_secs_f64(running).max(LEAST_RTT);
        }
        if self.packets >= EPOCH {
            self.packets = 0;
        }
    }
}

/// The gaps of a stream and their timers; at most as many as ranges in the stream's reassembly.
#[derive(Debug, Default)]
pub(super) struct Nacks {
    /// In ascending order.
    gaps: Vec<MissingBytes>,
    /// The highest received byte plus one.
    highest: u64,
    rtt: RunningRtt,
    /// When the last packet was sent, and when it arrived.
    last: (Time, Time),
}

impl Nacks {
    /// Bytes `[from, to)` arrived, in a packet sent at `sent` with this RTT.
    pub fn on_packet(&mut self, now: Time, sent: Time, (from, to): (u64, u64), rtt: Duration) {
        self.last = (sent, now);
        self.rtt.sample(rtt);
        if from > self.highest {
            self.gaps.push(MissingBytes {
                from: self.highest,
                to: from,
                due: now,
                timer: FIRST_TIMER,
            });
        } else if from < to {
            self.fill(from, to);
        }
        self.highest = self.highest.max(to);
    }

    /// Removes received bytes from the gaps; the rest of a gap keeps its timer.
    fn fill(&mut self, from: u64, to: u64) {
        let first = self.gaps.partition_point(|g| g.to <= from);
        let last = first + self.gaps[first..].partition_point(|g| g.from < to);
        if first == last {
            return;
        }
        let low = self.gaps[first];
        let high = self.gaps[last - 1];
        let below = MissingBytes { to: from, ..low };
        let above = MissingBytes { from: to, ..high };
        let left = [below, above].into_iter().filter(|g| g.from < g.to);
        self.gaps.splice(first..last, left);
    }

    /// When the next NACK is due.
    pub fn due(&self) -> Time {
        self.gaps.iter().map(|g| g.due).min().unwrap_or(Time::NEVER)
    }

    /// The NACK to send now, if one is due; there may be another.
    pub fn take(&mut self, now: Time) -> Option<NackRequest> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        let rtt = self.rtt.read;
        for gap in self.gaps.iter_mut().filter(|g| g.due <= now) {
            let base = ranges.first().map_or(gap.from, |r| r.0);
            if ranges.len() >= NACK_RANGES
                || (gap.to - base > u64::from(u32::MAX) && !ranges.is_empty())
            {
                break;
            }
            ranges.push((gap.from, gap.to));
            gap.due = now + rtt.saturating_mul(gap.timer);
            gap.timer = (2 * gap.timer).min(LONGEST_TIMER);
        }
        let (sent, arrived) = self.last;
        (!ranges.is_empty()).then(|| NackRequest { ranges, stamp: sent + now.since(arrived) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(n: u64) -> Time {
        Time::ZERO + Duration::from_millis(n)
    }
    const RTT: Duration = Duration::from_millis(100);
    const LONG: Duration = Duration::from_millis(300);

    /// A packet of 1000 bytes that was sent 50 ms before.
    fn arrived(nacks: &mut Nacks, at: u64, packet: u64) {
        nacks.on_packet(ms(at), ms(at - 50), (1000 * packet, 1000 * (packet + 1)), RTT);
    }
    fn taken(nacks: &mut Nacks, at: u64) -> Vec<(u64, u64)> {
        nacks.take(ms(at)).map_or(Vec::new(), |r| r.ranges)
    }

    #[test]
    fn gap_is_requested_at_once_and_with_growing_intervals() {
        let mut nacks = Nacks::default();
        arrived(&mut nacks, 100, 0);
        assert_eq!(nacks.due(), Time::NEVER);
        arrived(&mut nacks, 110, 2);
        for at in [110, 310, 710, 1510, 2310] {
            assert_eq!(nacks.due(), ms(at));
            assert_eq!(taken(&mut nacks, at - 1), []);
            let request = nacks.take(ms(at)).unwrap();
            assert_eq!(request.ranges, [(1000, 2000)]);
            assert_eq!(ms(at).since(request.stamp), Duration::from_millis(50), "the path alone");
        }
        arrived(&mut nacks, 2400, 1);
        assert_eq!((nacks.due(), taken(&mut nacks, 9000)), (Time::NEVER, vec![]));
    }

    /// The timer reveals the loss of a retransmission, not a packet above it: in the thesis the sender never detects
    /// it.
    #[test]
    fn each_gap_has_a_timer_and_its_arrivals_are_skipped() {
        let mut nacks = Nacks::default();
        arrived(&mut nacks, 100, 3);
        assert_eq!(taken(&mut nacks, 100), [(0, 3000)], "the first packets, together");
        arrived(&mut nacks, 150, 5);
        assert_eq!(taken(&mut nacks, 150), [(4000, 5000)], "the first one's timer runs");
        arrived(&mut nacks, 200, 1);
        assert_eq!(taken(&mut nacks, 300), [(0, 1000), (2000, 3000)]);
        assert_eq!(taken(&mut nacks, 350), [(4000, 5000)]);
    }

    #[test]
    fn more_gaps_than_fit_leave_at_the_same_moment() {
        let mut nacks = Nacks::default();
        (0..5).for_each(|n| arrived(&mut nacks, 100, 2 * n + 1));
        let counts: Vec<_> = (0..3).map(|_| taken(&mut nacks, 100).len()).collect();
        assert_eq!(counts, [3, 2, 0]);
        assert_eq!(nacks.due(), ms(300));
    }

    /// A change of the RTT applies after ten packets.
    #[test]
    fn rtt_is_the_running_average_at_the_epochs_end() {
        let mut rtt = RunningRtt::default();
        rtt.sample(RTT);
        (1..19).for_each(|_| rtt.sample(LONG));
        assert!(rtt.read < LONG, "the first epoch's end");
        let before = rtt.read;
        rtt.sample(LONG);
        assert!(before < rtt.read && rtt.read < LONG, "{}", rtt.read);
    }

    proptest! {
        /// In any order and with duplicates, the missing bytes below the highest are requested.
        #[test]
        fn missing_packets_are_requested(packets in prop::collection::vec((0u64..60, 0u64..9), 1..80)) {
            let mut nacks = Nacks::default();
            let mut seen = [false; 80];
            for (at, (from, length)) in packets.into_iter().enumerate() {
                nacks.on_packet(ms(100 + at as u64), ms(at as u64), (from, from + length), RTT);
                seen[from as usize..(from + length) as usize].fill(true);
                let mut asked = [false; 80];
                for gap in &nacks.gaps {
                    prop_assert!(gap.from < gap.to);
                    asked[gap.from as usize..gap.to as usize].fill(true);
                }
                prop_assert!(nacks.gaps.windows(2).all(|w| w[0].to <= w[1].from));
                let highest = nacks.highest as usize;
                for n in 0..80 {
                    prop_assert_eq!(asked[n], n < highest && !seen[n], "{}", n);
                }
            }
        }
    }
}
