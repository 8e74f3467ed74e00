//! The permissions of a server. They may be replaced while it runs.

use crate::allow::Targets;
use crate::limits::ClientLimits;
use crate::reverse::ReversePorts;
use narrows_peers::access::AllowList;
use narrows_peers::{Error, ErrorKind};

/// Permitted clients and targets, and the limits for each client.
#[derive(Clone, Debug)]
pub struct Permissions {
    /// Keys that may connect.
    pub clients: AllowList,
    /// Permitted targets.
    pub targets: Targets,
    /// Ports at which clients may let the server listen; none by default.
    pub reverse: ReversePorts,
    /// Limits for each client.
    pub limits: ClientLimits,
}

impl Permissions {
    /// Checks that clients and targets are listed.
    ///
    /// # Errors
    /// A list is empty.
    pub fn check(&self) -> Result<(), Error> {
        self.clients.not_empty()?;
        if self.targets.is_empty() {
            return Err(Error::new(ErrorKind::Input, "--allow: no target is listed"));
        }
        Ok(())
    }
}
