//! The record of a sent packet.

use super::delivery::Stamp;
use narrows_base::Time;

/// How a packet counts for the controller and for loss detection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PacketClass {
    /// Counts in bytes in flight; the controller gets its outcome.
    InFlight,
    /// Not in flight; the payload source gets its outcome.
    MtuProbe,
    /// Sent on a former path: not in flight; the payload source gets its outcome.
    OldPath,
    /// Carries only a report; not tracked.
    AckOnly,
    /// A number that was skipped; there is no packet.
    Skipped,
}

impl PacketClass {
    /// Whether the controller gets its outcome.
    #[inline]
    pub fn is_counted(self) -> bool {
        self == PacketClass::InFlight
    }
    /// Whether its outcome is not tracked.
    #[inline]
    pub fn is_untracked(self) -> bool {
        matches!(self, PacketClass::AckOnly | PacketClass::Skipped)
    }
}

/// A sent packet of unknown outcome.
#[derive(Clone, Debug)]
pub(super) struct SentPacket<L> {
    pub sent: Time,
    pub stamp: Stamp,
    pub payload: L,
    pub bytes: u16,
    pub class: PacketClass,
    pub arrived: bool,
    pub marked: bool,
    pub radio: bool,
    /// If it arrived: whether it met a short queue. If it was lost: whether the packet before it met a short queue.
    pub short_queue: bool,
}
