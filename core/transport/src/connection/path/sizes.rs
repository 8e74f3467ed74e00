//! Outcomes of packets by their size, and their way to the payload.

use crate::connection::payload::{ConnectionPayload, SentFrames};
use narrows_base::{Duration, Time};
use narrows_recovery::packet_sender::PayloadSource;

/// This many consecutive losses of large packets indicate a black hole, if a PTO expired meanwhile.
const BLACK_HOLE: u16 = 3;

/// Without a PTO, because smaller packets arrive: this many consecutive losses of large packets, in this many reports.
const LARGE_LOST: (u16, u16) = (12, 3);

/// The same for packets of the first size, on a path where none has arrived yet: the path carries only smaller packets.
/// At 50% random loss, 1 of 4,096 connections loses 12 in a row.
const TOO_SMALL: (u16, u16) = (12, 3);

/// The same on a path where such packets arrived. A long transfer at 50% loss often loses 12 in a row, and 32 once in
/// four billion packets.
const BECAME_TOO_SMALL: (u16, u16) = (32, 4);

/// Losses and PTOs since a packet of some size arrived. MTU probes are not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct LossRun {
    lost: u16,
    /// Reports with losses, one per PTO at most: losses of one flight may come in several reports.
    reports: u16,
    /// The earliest report that is counted next.
    next_report: Time,
    is_in_report: bool,
    timeouts: u16,
}

impl LossRun {
    fn on_lost(&mut self) {
        self.lost = self.lost.saturating_add(1);
        self.is_in_report = true;
    }
    fn on_report(&mut self, now: Time, pto: Duration) {
        if std::mem::take(&mut self.is_in_report) && now >= self.next_report {
            self.reports = self.reports.saturating_add(1);
            self.next_report = now + pto;
        }
    }
    fn on_timeout(&mut self) {
        self.timeouts = self.timeouts.saturating_add(1);
    }
    /// Whether it has so many losses, in so many reports.
    fn has(&self, (lost, reports): (u16, u16)) -> bool {
        self.lost >= lost && self.reports >= reports
    }
}

/// Outcomes of packets by their size, in bytes of UDP payload.
#[derive(Debug)]
pub(super) struct SizeOutcomes {
    /// Packets larger than this are *large*.
    small: u16,
    large: LossRun,
    /// Packets of size `small` or more.
    full: LossRun,
    has_full_arrived: bool,
    /// Size of the last MTU probe, and whether it arrived.
    probed: Option<(u16, bool)>,
}

impl SizeOutcomes {
    pub fn new(small: u16) -> SizeOutcomes {
        let large = LossRun::default();
        let full = LossRun::default();
        SizeOutcomes { small, large, full, has_full_arrived: false, probed: None }
    }
    /// A packet arrived. Returns whether it carried more than a probe.
    #[inline]
    fn on_arrived(&mut self, frames: &SentFrames) -> bool {
        if frames.size >= self.small {
            self.full = LossRun::default();
            self.has_full_arrived = true;
        }
        if frames.is_probe {
            self.probed = Some((frames.size, true));
        } else if frames.size > self.small {
            self.large = LossRun::default();
        }
        !frames.is_probe
    }
    /// A packet was declared lost. Returns whether it carried more than a probe.
    fn on_lost(&mut self, frames: &SentFrames) -> bool {
        if frames.is_probe {
            self.probed = Some((frames.size, false));
            return false;
        }
        if frames.size > self.small {
            self.large.on_lost();
        }
        if frames.size >= self.small {
            self.full.on_lost();
        } else {
            // An outage, or losses that do not depend on the size.
            self.full.lost = 0;
            self.full.reports = 0;
        }
        true
    }
    /// Size of the last MTU probe, and whether it arrived; returned once.
    pub fn probed(&mut self) -> Option<(u16, bool)> {
        self.probed.take()
    }
    /// A PTO expired while a packet of `oldest` bytes waited for its report. Returns whether the probe should be short,
    /// since its report distinguishes a path that carries only small packets from an outage: every second one, from the
    /// third PTO without an arrival of a full packet.
    pub fn on_timeout(&mut self, oldest: u16) -> bool {
        self.large.on_timeout();
        self.full.on_timeout();
        let timeouts = self.full.timeouts;
        oldest >= self.small && timeouts > 2 && timeouts % 2 == 1
    }
    /// After a report: whether the path no longer carries large packets. Counting then begins anew.
    pub fn is_black_hole(&mut self, now: Time, pto: Duration) -> bool {
        self.large.on_report(now, pto);
        let suspects = self.large.timeouts > 0;
        let is_black_hole = self.large.has(LARGE_LOST) || self.large.lost >= BLACK_HOLE && suspects;
        // A PTO before the first loss has another cause.
        if is_black_hole || self.large.lost == 0 {
            self.large = LossRun::default();
        }
        is_black_hole
    }
    /// Counts losses anew.
    pub fn on_new_path(&mut self) {
        (self.large, self.full) = Default::default();
    }
    /// After a report: whether the path carries only packets smaller than `small`.
    pub fn is_too_small(&mut self, now: Time, pto: Duration) -> bool {
        self.full.on_report(now, pto);
        self.full.has(if self.has_full_arrived { BECAME_TOO_SMALL } else { TOO_SMALL })
    }
}

/// Passes packets' outcomes to the path's counts and to the connection's payload.
pub(super) struct Outcomes<'a> {
    pub payload: &'a mut ConnectionPayload,
    pub sizes: &'a mut SizeOutcomes,
}

impl PayloadSource for Outcomes<'_> {
    type Payload = SentFrames;

    #[inline]
    fn is_empty(&mut self) -> bool {
        self.payload.is_empty()
    }
    #[inline]
    fn all_arrived(&self, in_flight: u64) -> bool {
        in_flight == 0
    }
    #[inline]
    fn arrived(&mut self, frames: &SentFrames) {
        if self.sizes.on_arrived(frames) {
            self.payload.arrived(frames);
        }
    }
    fn lost(&mut self, frames: &SentFrames) -> bool {
        self.sizes.on_lost(frames) && self.payload.lost(frames)
    }
}
