//! The permissions of a server. They may be replaced while it runs.

use crate::allow::Targets;
use crate::limits::ClientLimits;
use crate::reverse::Ports;
use narrows_files::access::AllowList;
use narrows_files::{Error, Kind};

/// Permitted clients and targets, and the limits for each client.
#[derive(Clone, Debug)]
pub struct Permissions {
    /// Keys that may connect.
    pub clients: AllowList,
    /// Permitted targets.
    pub targets: Targets,
    /// Ports at which clients may let the server listen; none by default.
    pub reverse: Vec<Ports>,
    /// Limits for each client.
    pub limits: ClientLimits,
}

impl Permissions {
    /// Checks that clients and targets are listed.
    ///
    /// # Errors
    /// A list is empty.
    pub fn check(&self) -> Result<(), Error> {
        let empty = |line| Err(Error::new(Kind::Input, line));
        if self.clients.is_empty() {
            return empty("--clients: no key is listed, so nobody may come");
        }
        if self.targets.is_empty() {
            return empty("--allow: no target is listed");
        }
        Ok(())
    }
}
