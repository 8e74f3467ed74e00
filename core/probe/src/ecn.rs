//! ECN (RFC 3168): whether its field passes the path, and whether a queue on it marks.
//!
//! Some packets leave already marked, all the rest as ECN-capable. A difference at arrival was made on the path: a
//! device without ECN cleared the field, or a device with ECN marked it. The packets that left marked show whether
//! marks pass.

use crate::train::{Purpose, Train, TrainObservation};

/// Of an ECN field: capable, and marked.
pub const ECT0: u8 = 2;
/// See [`ECT0`].
pub const CE: u8 = 3;

/// Marks at which a train that fills a queue is stopped: queue management acts.
const ENOUGH: u8 = 5;
/// A path that marks more than this share without a queue marks all packets.
const WHATEVER_COMES: f64 = 0.01;

/// Counts of the ECN fields of arrived packets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Ecn {
    /// Packets sent as ECN-capable.
    pub capable: u32,
    /// Of them, marked on the way.
    pub marked: u32,
    /// Of them, arrived as of a sender without ECN.
    pub cleared: u32,
    /// Packets sent as marked.
    pub ce: u32,
    /// Of them, still marked.
    pub ce_kept: u32,
    /// ECN-capable packets of trains that fill a queue, and the marked ones of them.
    pub filling: (u32, u32),
}

/// Result of the test of ECN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnVerdict {
    /// Too few packets arrived.
    Unknown,
    /// Fields arrive as they left, and marks pass.
    Passes,
    /// Fields are cleared on the way: a router's mark would be, too.
    Cleared,
    /// Nearly all packets arrive marked, with or without a queue, so marks carry no information.
    AlwaysMarked,
    /// Packets that leave as ECN-capable arrive so, but those that leave marked do not arrive marked.
    MarksLost,
}

impl Ecn {
    pub(crate) fn add(&mut self, train: &Train, observed: &TrainObservation) {
        let first_ce = train.packets.saturating_sub(train.ce) as usize;
        for (i, (arrived, field)) in observed.arrived.iter().zip(&observed.ecn).enumerate() {
            if arrived.is_none() {
                continue;
            }
            let marked = u32::from(*field == CE);
            if i >= first_ce {
                self.ce += 1;
                self.ce_kept += marked;
                continue;
            }
            self.capable += 1;
            self.marked += marked;
            self.cleared += u32::from(*field == 0);
            if train.purpose == Purpose::Fill {
                self.filling = (self.filling.0 + 1, self.filling.1 + marked);
            }
        }
    }

    /// Marks at which a train that fills a queue is stopped; 0 for never.
    pub(crate) fn stop_at(&self) -> u8 {
        if self.verdict() == EcnVerdict::Passes { ENOUGH } else { 0 }
    }

    /// Whether a queue marks: while it is filled, and not always.
    pub fn queue_marks(&self) -> bool {
        self.verdict() == EcnVerdict::Passes && self.filling.1 >= u32::from(ENOUGH)
    }

    /// Evaluates the counts.
    pub fn verdict(&self) -> EcnVerdict {
        let usual = self.capable - self.filling.0;
        let usually_marked = self.marked - self.filling.1;
        if usual == 0 {
            return EcnVerdict::Unknown;
        }
        if 2 * self.cleared > self.capable {
            return EcnVerdict::Cleared;
        }
        if f64::from(usually_marked) > WHATEVER_COMES * f64::from(usual) {
            return EcnVerdict::AlwaysMarked;
        }
        match (self.ce, 2 * self.ce_kept > self.ce) {
            (0, _) => EcnVerdict::Unknown,
            (_, true) => EcnVerdict::Passes,
            (_, false) => EcnVerdict::MarksLost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::Duration;

    /// Fields of forty packets, of which the last eight leave marked.
    fn seen(field: impl Fn(usize) -> u8) -> Ecn {
        let gap = Duration::from_millis(12);
        let train = Train { purpose: Purpose::Idle, packets: 40, bytes: 200, gap, ce: 8 };
        let fields = (0..40).map(field).collect();
        let observed = TrainObservation {
            sent: vec![0; 40],
            arrived: vec![Some(0); 40],
            ecn: fields,
            late: 0,
        };
        let mut ecn = Ecn::default();
        ecn.add(&train, &observed);
        ecn
    }
    fn as_it_left(i: usize) -> u8 {
        if i < 32 { ECT0 } else { CE }
    }

    #[test]
    fn effects_of_a_path_on_ecn_are_distinguished() {
        assert_eq!(seen(as_it_left).verdict(), EcnVerdict::Passes);
        assert_eq!(seen(|_| 0).verdict(), EcnVerdict::Cleared);
        assert_eq!(seen(|_| CE).verdict(), EcnVerdict::AlwaysMarked);
        assert_eq!(seen(|_| ECT0).verdict(), EcnVerdict::MarksLost);
        assert_eq!(Ecn::default().verdict(), EcnVerdict::Unknown);
    }

    #[test]
    fn marks_in_a_queue_that_is_filled_are_the_queues() {
        let mut ecn = seen(as_it_left);
        assert!(!ecn.queue_marks());
        let gap = Duration::from_millis(1);
        let train = Train { purpose: Purpose::Fill, packets: 100, bytes: 1200, gap, ce: 0 };
        let fields = (0..100).map(|i| if i % 20 == 0 { CE } else { ECT0 }).collect();
        let sent = vec![0; 100];
        let arrived = vec![Some(0); 100];
        ecn.add(&train, &TrainObservation { sent, arrived, ecn: fields, late: 0 });
        assert!(ecn.queue_marks() && ecn.verdict() == EcnVerdict::Passes, "{ecn:?}");
    }
}
