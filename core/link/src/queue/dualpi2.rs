//! DualPI2: two coupled queues on one link, the low-latency one for scalable senders (RFC 9332, appendix A).
//!
//! ```text
//!   ECT(1), CE ──> L queue: marked from a millisecond of waiting on, or with k p ──╮
//!                                                                        scheduler ──> link
//!   the rest ────> C queue: dropped, or marked, with p squared ────────────────────╯
//!                  p: a proportional integral controller holds the longer wait at its target
//! ```
//!
//! The rate of a scalable sender (Prague) is proportional to 1/p, that of a Reno-like sender to 1/sqrt(p). Squaring p
//! for the C queue makes them share the link equally. The L queue has priority; while the C queue has packets it gets
//! at least a tenth of the bytes. If the C queue's probability exceeds a quarter, both are overloaded, and packets of
//! the L queue are dropped like those of the C queue.
//!
//! As in the RFC's pseudocode, marks and drops are spaced evenly: each packet adds its probability to a sum, and a
//! packet is marked when the sum reaches one. A queue's wait is that of its head.

use super::discipline::{Discipline, QueueEntry, QueueObserver, limit_param};
use super::fifo::Fifo;
use super::fifo::has_room;
use super::packet::QueuedPacket;
use crate::config::QueueLimit;
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, Param, Settings, Status, Time};

const DUALPI2: Descriptor = Descriptor {
    name: "dualpi2",
    summary: "a low-delay queue for scalable senders (L4S) beside one for the rest",
    source: "RFC 9332, appendix A",
    senses: "waiting time of both queues; ECT(1)",
    sets: "marks in the one queue, drops or marks in the other, coupled; order of service",
    params: &[
        seconds("target", "waiting time of the classic queue to hold", 0.015),
        seconds("update", "time between updates", 0.015),
        Param {
            name: "alpha",
            help: "probability added per update for each second of delay beyond the target",
            kind: ParamKind::Number { unit: Unit::None, min: 0.0, max: 100.0, default: 0.16 },
            origin: "RFC 9332 appendix A.1",
        },
        Param {
            name: "beta",
            help: "probability added per update for each second by which the delay grew",
            kind: ParamKind::Number { unit: Unit::None, min: 0.0, max: 100.0, default: 3.2 },
            origin: "RFC 9332 appendix A.1",
        },
        Param {
            name: "k",
            help: "coupling factor: marks of the low-delay queue per probability",
            kind: ParamKind::Number { unit: Unit::None, min: 0.1, max: 100.0, default: 2.0 },
            origin: "RFC 9332 section 2.1",
        },
        seconds("min-th", "wait from which the low-delay queue marks by itself", 0.0008),
        seconds("range", "further wait at which it marks every packet", 0.0004),
        limit_param(10_000.0, "as Linux's sch_dualpi2; RFC 9332: 250 ms of the link"),
    ],
    status: Status::NotValidated,
};

const fn seconds(name: &'static str, help: &'static str, default: f64) -> Param {
    let kind = ParamKind::Number { unit: Unit::Seconds, min: 1e-5, max: 100.0, default };
    Param { name, help, kind, origin: "RFC 9332 appendix A.1" }
}

pub(super) const ENTRY: QueueEntry =
    QueueEntry::new(&DUALPI2, |s| Box::new(DualPi2::new(s.settings, s.limit)));

/// The classic queue's probability beyond which both queues count as overloaded.
const P_C_MAX: f64 = 0.25;
/// The classic queue gets one of ten bytes while both queues wait.
const CLASSIC_PART: i64 = 10;
/// The low-latency queue's own AQM marks only if more packets than this wait, because a packet's
/// own serialisation is no queue.
const MIN_PACKETS: usize = 1;

/// Spaces marks or drops evenly: RFC 9332's recur().
#[derive(Debug, Default)]
struct Even(f64);

impl Even {
    fn strikes(&mut self, probability: f64) -> bool {
        self.0 += probability;
        let strikes = self.0 > 1.0;
        if strikes {
            self.0 -= 1.0;
        }
        strikes
    }
}

struct DualPi2 {
    target_s: f64,
    update: Duration,
    alpha: f64,
    beta: f64,
    k: f64,
    min_th_s: f64,
    range_s: f64,
    limit: QueueLimit,
    low: Fifo,
    classic: Fifo,
    next_update: Time,
    /// The controller's output, p'.
    p: f64,
    previous_s: f64,
    low_even: Even,
    classic_even: Even,
    /// Bytes by which the low-latency queue is ahead of its share; above 0 the classic queue is
    /// served.
    ahead: i64,
}

impl DualPi2 {
    fn new(s: &Settings, limit: QueueLimit) -> DualPi2 {
        let update = Duration::from_secs_f64(s.number("update"));
        DualPi2 {
            target_s: s.number("target"),
            update,
            alpha: s.number("alpha"),
            beta: s.number("beta"),
            k: s.number("k"),
            min_th_s: s.number("min-th"),
            range_s: s.number("range"),
            limit,
            low: Fifo::new(QueueLimit::Unlimited),
            classic: Fifo::new(QueueLimit::Unlimited),
            next_update: Time::ZERO + update,
            p: 0.0,
            previous_s: 0.0,
            low_even: Even::default(),
            classic_even: Even::default(),
            ahead: 0,
        }
    }

    /// Applies all updates that were due by `now`.
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            let at = self.next_update;
            let wait = |q: &Fifo| q.first().map_or(0.0, |arrived| at.since(arrived).as_secs_f64());
            let delay = wait(&self.low).max(wait(&self.classic));
            let before = (self.p, self.previous_s);
            let change =
                self.alpha * (delay - self.target_s) + self.beta * (delay - self.previous_s);
            self.p = (self.p + change).clamp(0.0, 1.0);
            self.previous_s = delay;
            self.next_update += self.update;
            if before == (self.p, self.previous_s) && self.waiting() == 0 {
                // Further updates would change no state: skip to the last one that is due.
                let behind = now.since(self.next_update).as_nanos() / self.update.as_nanos().max(1);
                self.next_update += self.update.saturating_mul(behind);
            }
        }
    }

    fn classic_p(&self) -> f64 {
        (self.p * self.p).min(P_C_MAX)
    }

    /// The marking probability of the low-latency queue's own AQM: a ramp over its wait.
    fn own_p(&self, wait_s: f64) -> f64 {
        if self.low.len() < MIN_PACKETS {
            return 0.0;
        }
        ((wait_s - self.min_th_s) / self.range_s).clamp(0.0, 1.0)
    }

    /// Whether the low-latency queue is served next.
    fn low_next(&mut self) -> bool {
        match (self.low.len(), self.classic.len()) {
            (0, _) => false,
            (_, 0) => {
                self.ahead = 0;
                true
            }
            _ => self.ahead <= 0,
        }
    }

    /// Marks or drops a packet of the low-latency queue; returns whether it is kept.
    fn passes_low(
        &mut self,
        wait_s: f64,
        packet: &mut QueuedPacket,
        o: &mut dyn QueueObserver,
    ) -> bool {
        let coupled = self.k * self.p;
        let p = if self.classic_p() < P_C_MAX {
            self.own_p(wait_s).max(coupled.min(1.0))
        } else {
            if self.low_even.strikes(self.classic_p()) {
                o.dropped(packet);
                return false;
            }
            1.0
        };
        if self.low_even.strikes(p) && !packet.marked {
            packet.marked = true;
            o.marked(packet);
        }
        true
    }

    /// Marks or drops a packet of the classic queue; returns whether it is kept.
    fn passes_classic(&mut self, packet: &mut QueuedPacket, o: &mut dyn QueueObserver) -> bool {
        let p = self.classic_p();
        if !self.classic_even.strikes(p) {
            return true;
        }
        if !packet.ect || p >= P_C_MAX {
            o.dropped(packet);
            return false;
        }
        if !packet.marked {
            packet.marked = true;
            o.marked(packet);
        }
        true
    }
}

impl Discipline for DualPi2 {
    fn enqueue(
        &mut self,
        now: Time,
        packet: QueuedPacket,
        idle: bool,
        observer: &mut dyn QueueObserver,
    ) -> bool {
        self.catch_up(now);
        let bytes = self.low.bytes() + self.classic.bytes();
        if !idle && !has_room(self.limit, self.waiting() as u64, bytes, packet.size) {
            observer.dropped(&packet);
            return false;
        }
        let queue = if packet.l4s || packet.marked { &mut self.low } else { &mut self.classic };
        queue.push(now, packet);
        true
    }

    fn dequeue(
        &mut self,
        now: Time,
        observer: &mut dyn QueueObserver,
    ) -> Option<(Time, QueuedPacket)> {
        self.catch_up(now);
        loop {
            let is_low = self.low_next();
            let queue = if is_low { &mut self.low } else { &mut self.classic };
            let (arrived, mut packet) = queue.pop()?;
            let passes = match is_low {
                true => self.passes_low(now.since(arrived).as_secs_f64(), &mut packet, observer),
                false => self.passes_classic(&mut packet, observer),
            };
            let size = i64::from(packet.size);
            let change = if is_low { size } else { -size * (CLASSIC_PART - 1) };
            // A queue's unused share is not saved for later.
            self.ahead =
                (self.ahead + change).clamp(-size * CLASSIC_PART * 2, size * CLASSIC_PART * 2);
            if passes {
                return Some((arrived, packet));
            }
        }
    }

    fn waiting(&self) -> usize {
        self.low.len() + self.classic.len()
    }
}

#[cfg(test)]
#[path = "dualpi2_tests.rs"]
mod tests;
