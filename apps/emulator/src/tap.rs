//! Observation of a link: every packet that enters or leaves it.

use narrows_base::Time;
use std::fmt;

/// One end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkSide {
    /// The end where the forward direction begins.
    A,
    /// The end where the reverse direction begins.
    B,
}

impl LinkSide {
    /// The opposite end.
    #[must_use]
    pub fn other(self) -> LinkSide {
        match self {
            LinkSide::A => LinkSide::B,
            LinkSide::B => LinkSide::A,
        }
    }
}

/// A packet at one end.
#[derive(Clone, Copy, Debug)]
pub struct PassedPacket<'a> {
    /// Time by the link's clock.
    pub at: Time,
    /// The end where it was seen.
    pub end: LinkSide,
    /// True if the packet entered the link there, false if it left it.
    pub entered: bool,
    /// The packet from its IP header on, with complete checksums.
    pub bytes: &'a [u8],
}

/// An observer of a link. The link's threads call it, so it should copy the data that it needs and return at once.
pub trait LinkTap: Send + Sync + fmt::Debug {
    /// A packet entered or left.
    fn passed(&self, packet: &PassedPacket<'_>);
}
