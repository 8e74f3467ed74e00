//! What a report brings.

use super::{Cargo, Carrier, Standing};
use narrows_base::{Duration, Time};
use narrows_control::{Ack, Advice, Advised, RateSample};

/// Marks are counted modulo this.
pub const MARKS: u32 = 1 << 29;

/// A report, beside what arrived and what is missing.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// The highest number that it names.
    pub highest: u64,
    /// Round-trip time of the packet that it echoes, the receiver's delay taken off.
    pub rtt: Duration,
    /// Packets so far that came with a router's mark, modulo [`MARKS`].
    pub marks: u32,
    /// What the controller's receiver half says.
    pub advice: Advice,
}

impl<C: Cargo> Carrier<C> {
    /// Whether a report can be true: it names no packet that was never sent, neither above all that
    /// were nor among the numbers left out. No reordering or loss makes an honest one impossible.
    #[inline]
    pub fn is_possible(&self, highest: u64, mut arrived: impl Iterator<Item = (u64, u64)>) -> bool {
        highest < self.next && arrived.all(|(from, to)| self.skipped(from, to) == 0)
    }

    /// Whether a report about `highest` can say anything: not if it is older than everything that is
    /// known. One about what is just known counts: it may bring advice.
    #[inline]
    pub fn concerns(&self, highest: u64) -> bool {
        // Packets that stand aside are resolved without a report.
        let end = highest.saturating_add(1);
        highest < self.next && (end >= self.unresolved || end >= self.reported)
    }

    /// Reports whose highest number is below say nothing that [`concerns`](Carrier::concerns) this end, nor does one
    /// of the number below.
    #[inline]
    pub fn lowest_concern(&self) -> u64 {
        self.unresolved.min(self.reported)
    }

    /// A report: what arrived, as ranges `[from, to)` in falling order from the highest number, and
    /// what the receiver takes for lost by the radio link. The delivery rate that it shows.
    #[inline]
    pub fn on_report(
        &mut self,
        now: Time,
        heard: &Heard,
        arrived: impl Iterator<Item = (u64, u64)>,
        radio: impl Iterator<Item = (u64, u64)>,
    ) -> Option<RateSample> {
        if !self.concerns(heard.highest) {
            return None;
        }
        let end = heard.highest + 1;
        let mut fresh = 0;
        self.smallest = u16::MAX;
        if heard.highest >= self.path_start && now.since(self.path_since) >= heard.rtt {
            self.limiter.on_rtt(now, heard.rtt);
        }
        for (from, to) in arrived {
            if to <= self.unresolved {
                break;
            }
            fresh += self.take_arrived(now, from, to);
        }
        for (from, to) in radio {
            if to <= self.unresolved {
                break;
            }
            for p in self.pending.range_mut(self.places(from, to)) {
                p.radio = true;
            }
        }
        self.limiter.on_report(now);
        let prior = self.in_flight;
        self.in_flight -= fresh;
        self.arrived += fresh;
        let marks = self.take_marks(heard.marks, fresh, end);
        self.reported = self.reported.max(end);
        let Some(rtt) = self.rtt_of_this_path(now, heard.highest, heard.rtt) else {
            // Nothing for the controller.
            self.find_losses(now);
            self.arm(now);
            return None;
        };
        let rtt = self.of_a_full_packet(self.without_leap(now, heard.highest, rtt));
        self.latest = rtt;
        self.first_rtt = self.first_rtt.min(now);
        self.rtt.observe(rtt);
        let round_start = end > self.round_end;
        if round_start {
            self.round += 1;
            self.round_end = self.next;
        }
        if fresh > 0 {
            self.backoffs = 0;
        }
        let found = self.find_losses(now);
        let rate = self.delivery.sample(now, self.rtt.min());
        let ack = Ack {
            now,
            rtt,
            rtt_unambiguous: true,
            srtt: self.rtt.srtt(),
            rttvar: self.rtt.rttvar(),
            min_rtt: self.rtt.min(),
            arrived: None,
            newly_acked: 1,
            newly_sacked: 0,
            newly_delivered: 1,
            duplicate: false,
            sent_since: self.next - end - self.skipped(end, self.next),
            flight: self.in_flight,
            outstanding: self.in_flight,
            prior_outstanding: prior,
            window_limited: self.window_limited,
            in_repair: self.repairing,
            round: self.round,
            round_start,
            marks,
            rate,
        };
        self.tell_acks(&ack, fresh);
        self.tell_losses(now, &found);
        self.tell_marks(now, marks);
        if !heard.advice.is_empty() {
            self.controller.on_advice(&Advised {
                now,
                advice: heard.advice,
                rtt,
                srtt: ack.srtt,
                rttvar: ack.rttvar,
            });
        }
        self.arm(now);
        rate
    }

    /// The round-trip time that counts: small packets are transmitted faster than full ones, which
    /// on a slow link looks like a queue that vanished. So they never set a new minimum below full
    /// packets'.
    #[inline]
    fn of_a_full_packet(&mut self, rtt: Duration) -> Duration {
        if self.smallest >= self.largest / 4 * 3 {
            self.least_full = self.least_full.min(rtt);
            return rtt;
        }
        if self.least_full == Duration::MAX { rtt } else { rtt.max(self.least_full) }
    }

    /// One `on_ack` for each packet that arrived; a report without news is a duplicate.
    #[inline]
    fn tell_acks(&mut self, ack: &Ack, fresh: u64) {
        if fresh == 0 {
            let ack = Ack { newly_acked: 0, newly_delivered: 0, duplicate: true, ..*ack };
            self.controller.on_ack(&ack);
            return;
        }
        for i in 0..fresh {
            let later = i > 0;
            self.controller.on_ack(&Ack {
                // The losses that the report reveals are taken off for all.
                outstanding: ack.outstanding + (fresh - 1 - i),
                flight: ack.flight + (fresh - 1 - i),
                prior_outstanding: ack.prior_outstanding - i,
                round_start: ack.round_start && !later,
                marks: if later { 0 } else { ack.marks },
                ..*ack
            });
        }
    }

    /// Where `[from, to)` is among the pending.
    #[inline]
    fn places(&self, from: u64, to: u64) -> std::ops::Range<usize> {
        let to = ((to.saturating_sub(self.unresolved)) as usize).min(self.pending.len());
        let from = (from.max(self.unresolved) - self.unresolved) as usize;
        from.min(to)..to
    }

    /// Books `[from, to)` as arrived; how many are news.
    #[inline]
    fn take_arrived(&mut self, now: Time, from: u64, to: u64) -> u64 {
        let mut fresh = 0;
        let short = self.short_queue_rtt();
        for p in self.pending.range_mut(self.places(from, to)) {
            if p.arrived {
                continue;
            }
            p.arrived = true;
            p.short_queue = now.since(p.sent) < short;
            match p.standing {
                Standing::Counted => {
                    fresh += 1;
                    self.smallest = self.smallest.min(p.bytes);
                    self.cargo.arrived(&p.load);
                    self.limiter.on_arrived(now, p.sent, p.bytes);
                    self.delivery.arrived(now, p.sent, &p.stamp);
                }
                Standing::Probe => self.cargo.arrived(&p.load),
                Standing::Former => {
                    self.cargo.arrived(&p.load);
                    self.former -= 1;
                }
                Standing::Mute | Standing::Skipped => {}
            }
        }
        fresh
    }

    /// New marks since the last report, laid on the newest packets: exact where every packet is
    /// reported, as good as any other order where not.
    fn take_marks(&mut self, marks: u32, fresh: u64, end: u64) -> u32 {
        let new = marks.wrapping_sub(self.marks) % MARKS;
        if new == 0 || new >= MARKS / 2 {
            return 0; // Nothing new, or a report that was overtaken.
        }
        self.marks = marks;
        let new = new.min(u32::try_from(fresh).unwrap_or(u32::MAX));
        let arrived = self.pending.range_mut(self.places(0, end)).rev().filter(|p| p.arrived);
        arrived.take(new as usize).for_each(|p| p.marked = true);
        new
    }
}
