//! Watching a link: every packet that enters or leaves it.

use narrows_base::Time;
use std::fmt;

/// Which end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// From here packets go *there*.
    A,
    /// From here they go *back*.
    B,
}

impl End {
    /// The far one.
    #[must_use]
    pub fn other(self) -> End {
        match self {
            End::A => End::B,
            End::B => End::A,
        }
    }
}

/// A packet at one end.
#[derive(Clone, Copy, Debug)]
pub struct PassedPacket<'a> {
    /// When, by the link's clock.
    pub at: Time,
    /// Where.
    pub end: End,
    /// It entered the link there; otherwise it left it.
    pub entered: bool,
    /// From its IP header on, its checksums complete.
    pub bytes: &'a [u8],
}

/// Somebody who watches a link. It is called by the link's threads: it copies what it wants and returns.
pub trait LinkTap: Send + Sync + fmt::Debug {
    /// A packet entered or left.
    fn passed(&self, packet: &PassedPacket<'_>);
}
