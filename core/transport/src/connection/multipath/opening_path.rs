//! A further path before it begins.

use super::announcement::Announcement;
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
    /// Of PATH_ID.
    pub announcement: Announcement,
}

impl OpeningPath {
    pub fn new(secrets: Option<PathSecrets>) -> OpeningPath {
        OpeningPath {
            secrets,
            ours: None,
            theirs: None,
            opener: None,
            is_wanted: false,
            announcement: Announcement::default(),
        }
    }
    pub fn memory(&self) -> usize {
        let opener = self.opener.as_ref().map_or(0, |_| size_of::<Opener>());
        size_of::<OpeningPath>() + opener
    }
}
