//! A further path before it begins.

use narrows_base::Time;
use narrows_wire::{ConnectionId, Opener, PathSecrets};

/// A further path on which both ends agree by their parameters.
#[derive(Debug)]
pub(super) struct OpeningPath {
    /// Taken when the path begins, so that no second sealer uses its nonces.
    pub secrets: Option<PathSecrets>,
    /// This end's connection ID, and the peer's.
    pub ours: Option<ConnectionId>,
    pub theirs: Option<ConnectionId>,
    /// At a server, from the client's PATH_ID until the path begins.
    pub opener: Option<Box<Opener>>,
    /// Whether this end needs an ID.
    pub is_wanted: bool,
    /// When PATH_ID is sent.
    pub announce: Time,
    pub tries: u32,
}

impl OpeningPath {
    pub fn new(secrets: Option<PathSecrets>) -> OpeningPath {
        OpeningPath {
            secrets,
            ours: None,
            theirs: None,
            opener: None,
            is_wanted: false,
            announce: Time::NEVER,
            tries: 0,
        }
    }
    /// When PATH_ID is sent.
    pub fn due(&self) -> Time {
        self.announce
    }
    pub fn memory(&self) -> usize {
        let opener = self.opener.as_ref().map_or(0, |_| size_of::<Opener>());
        size_of::<OpeningPath>() + opener
    }
}
