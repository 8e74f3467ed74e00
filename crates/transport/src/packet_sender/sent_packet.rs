//! The record of a sent packet.

use super::delivery::Stamp;
use narrows_base::Time;

/// How a packet stands to the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PacketClass {
    /// In flight.
    InFlight,
    /// Not in flight; the payload source gets its outcome.
    MtuProbe,
    /// Sent on a former path: not in flight; the payload source gets its outcome.
    OldPath,
    /// Reports only: not tracked.
    AckOnly,
    /// No packet: the number was left out.
    Skipped,
}

impl PacketClass {
    /// Whether the controller is told of its loss.
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

/// A packet whose outcome is not reported yet.
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
    /// It arrived, and saw no long queue; of a lost one, whether the packet before it did.
    pub short_queue: bool,
}
