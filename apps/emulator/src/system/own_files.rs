//! Replaces single files for one thread, such as `/etc/resolv.conf` or `/etc/hosts`, by a mount namespace.

use super::rights::{SYS_ADMIN, failed};
use crate::error::Error;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::path::{Path, PathBuf};

/// Gives the calling thread, and programs that it starts, the second file of each pair in place of the first.
///
/// # Errors
/// No permission, or a file does not exist.
pub fn replace(files: &[(PathBuf, PathBuf)]) -> Result<(), Error> {
    if files.is_empty() {
        return Ok(());
    }
    let none = None::<&Path>;
    let unshared = unshare(CloneFlags::CLONE_NEWNS)
        // Mounts made here do not propagate to other mount namespaces.
        .and_then(|()| mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none));
    unshared.map_err(|e| failed("cannot make a mount namespace", &e.into(), SYS_ADMIN))?;
    for (place, file) in files {
        let mounted = mount(Some(file), place, none, MsFlags::MS_BIND, none);
        mounted.map_err(|e| {
            Error::system(
                format_args!("cannot put a file of its own at {}", place.display()),
                &e.into(),
            )
        })?;
    }
    Ok(())
}
