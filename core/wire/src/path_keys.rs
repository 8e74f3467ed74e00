//! Secrets of a connection's further paths, and what seals and opens their packets.

use crate::header::ConnectionId;
use crate::keys::Secret;
use crate::seal::{Opener, Sealer};

/// Secrets 0 of both directions, from which those of further paths are derived.
pub struct PathKeys {
    pub(crate) send: Secret,
    pub(crate) receive: Secret,
}

impl PathKeys {
    /// The secrets of a further path. `None` for path 0, whose keys the handshake has made.
    pub fn path(&self, path: u8) -> Option<PathSecrets> {
        if path == 0 {
            return None;
        }
        Some(PathSecrets { send: self.send.path(path)?, receive: self.receive.path(path)?, path })
    }
}

/// The secrets of one further path. They must make one [`Sealer`] in all: another would repeat its nonces.
pub struct PathSecrets {
    send: Secret,
    receive: Secret,
    path: u8,
}

impl PathSecrets {
    /// Number of the path, from 1.
    pub fn path(&self) -> u8 {
        self.path
    }
    /// The key of the first phase for sending, for the test vectors.
    #[cfg(test)]
    pub(crate) fn raw_key(&self) -> [u8; 32] {
        self.send.raw_key()
    }
    /// Opens the peer's packets of this path.
    pub fn opener(&self) -> Option<Opener> {
        Opener::new(&self.receive, self.path)
    }
    /// Seals packets of this path, to the peer's `connection`.
    pub fn sealer(self, connection: ConnectionId) -> Option<Sealer> {
        Sealer::new(connection, &self.send, self.path)
    }
}

impl std::fmt::Debug for PathKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PathKeys")
    }
}

impl std::fmt::Debug for PathSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PathSecrets({})", self.path)
    }
}
