//! A thread's own view of single files: another `/etc/resolv.conf` or `/etc/hosts`, by a mount namespace.

use super::rights::{SYS_ADMIN, failed};
use crate::error::Error;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::path::{Path, PathBuf};

/// Gives the calling thread, and programs that it starts, these files (second) in place of those (first).
///
/// # Errors
/// No permission, or a file is not there.
pub fn replace(files: &[(PathBuf, PathBuf)]) -> Result<(), Error> {
    if files.is_empty() {
        return Ok(());
    }
    let none = None::<&Path>;
    let unshared = unshare(CloneFlags::CLONE_NEWNS)
        // What is mounted here stays here.
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
