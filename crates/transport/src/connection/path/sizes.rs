//! Outcomes of packets by their size, and their way to the payload.

use crate::connection::payload::{ConnectionPayload, SentFrames};
use crate::packet_sender::PayloadSource;

/// This many consecutive losses of large packets indicate a black hole.
const BLACK_HOLE: u32 = 3;

/// If this many packets of the first size were lost, in this many reports, and no such packet arrived, the path carries
/// only smaller packets. At 50% random loss, 1 of 4,096 connections loses 12 in a row. All losses of an outage are in a
/// single report.
const TOO_SMALL: (u32, u32) = (12, 3);

/// Outcome of a connection's packets of the first size or more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct FullPackets {
    has_arrived: bool,
    lost: u32,
    /// Reports with losses.
    reports: u32,
    is_in_report: bool,
}

impl FullPackets {
    /// Counts an arrival.
    fn on_arrived(&mut self) {
        self.has_arrived = true;
    }
    /// Counts a loss. The caller must not count MTU probes.
    fn on_lost(&mut self) {
        self.lost = self.lost.saturating_add(1);
        self.is_in_report = true;
    }
    /// Handles the end of a report; returns whether the path carries only smaller packets.
    fn on_report(&mut self) -> bool {
        self.reports += u32::from(std::mem::take(&mut self.is_in_report) && !self.has_arrived);
        !self.has_arrived && self.lost >= TOO_SMALL.0 && self.reports >= TOO_SMALL.1
    }
}

/// Outcomes of packets by their size, in bytes of UDP payload.
#[derive(Debug)]
pub(super) struct SizeOutcomes {
    /// Packets larger than this are *large*.
    small: u16,
    /// Large packets lost since one was acknowledged.
    large_lost: u32,
    /// Whether a PTO expired since a large packet was acknowledged.
    suspects: bool,
    /// Packets of size `small` or more.
    full_packets: FullPackets,
    /// Size of the last MTU probe, and whether it arrived.
    probed: Option<(u16, bool)>,
}

impl SizeOutcomes {
    pub fn new(small: u16) -> SizeOutcomes {
        SizeOutcomes {
            small,
            large_lost: 0,
            suspects: false,
            full_packets: FullPackets::default(),
            probed: None,
        }
    }
    /// A packet arrived. Returns whether it carried more than a probe.
    #[inline]
    fn on_arrived(&mut self, frames: &SentFrames) -> bool {
        if frames.size >= self.small {
            self.full_packets.on_arrived();
        }
        if frames.is_probe {
            self.probed = Some((frames.size, true));
        } else if frames.size > self.small {
            self.large_lost = 0;
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
            self.large_lost = self.large_lost.saturating_add(1);
        }
        if frames.size >= self.small {
            self.full_packets.on_lost();
        }
        true
    }
    /// Size of the last MTU probe, and whether it arrived; returned once.
    pub fn probed(&mut self) -> Option<(u16, bool)> {
        self.probed.take()
    }
    /// A PTO expired: the size of large packets may be the cause.
    pub fn suspect(&mut self) {
        self.suspects = true;
    }
    /// After a report: whether the path no longer carries large packets. Counting then begins anew.
    pub fn is_black_hole(&mut self) -> bool {
        let is_black_hole = self.large_lost >= BLACK_HOLE && self.suspects;
        if is_black_hole {
            self.forget_large();
        }
        self.suspects &= self.large_lost > 0;
        is_black_hole
    }
    /// Counts large packets anew.
    pub fn forget_large(&mut self) {
        (self.large_lost, self.suspects) = (0, false);
    }
    /// After a report: whether the path carries only packets smaller than `small`.
    pub fn is_too_small(&mut self) -> bool {
        self.full_packets.on_report()
    }
    /// Whether a packet of size `small` or more arrived.
    pub fn has_arrived(&self) -> bool {
        self.full_packets.has_arrived
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
