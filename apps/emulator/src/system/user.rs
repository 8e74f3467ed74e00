//! Without root: a user namespace, in which the user may make network namespaces.

use super::runtime_folder::RuntimeFolder;
use crate::error::Error;
use nix::sched::{CloneFlags, unshare};
use rustix::process::{getegid, geteuid};
use std::fs;

/// Whether the caller is root.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Makes the process root of a new user namespace, and moves it to a new network namespace without connectivity. Call
/// it before any thread is started.
///
/// # Errors
/// The system does not permit it.
pub fn become_root_of_own() -> Result<(), Error> {
    // Choose the directory while the user's own id is still visible.
    RuntimeFolder::own()?;
    let user = geteuid().as_raw();
    let group = getegid().as_raw();
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET).map_err(|e| {
        Error::new(format!(
            "without root this needs user namespaces, which this system does not permit ({}; see the sysctls \
             user.max_user_namespaces, kernel.unprivileged_userns_clone and \
             kernel.apparmor_restrict_unprivileged_userns): run as root",
            e.desc()
        ))
    })?;
    for (file, text) in [
        ("uid_map", format!("0 {user} 1")),
        ("setgroups", "deny".to_string()),
        ("gid_map", format!("0 {group} 1")),
    ] {
        let path = format!("/proc/self/{file}");
        fs::write(&path, text)
            .map_err(|e| Error::system(format_args!("cannot write {path}"), &e))?;
    }
    super::interface::up("lo")
}
