//! Files that decide whom this process admits: no other user can change or replace them, as with `StrictModes` of sshd.
//! A folder with the sticky bit, such as /tmp, is accepted, as its entries belong to their users.

use crate::error::shown;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Opens a file for reading.
///
/// # Errors
/// The system's; `InvalidData` if it is no regular file, or another user can change it, a folder above it or a symbolic
/// link on the way.
pub fn open(path: &Path) -> io::Result<File> {
    let kind = fs::metadata(path)?.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !kind.is_file() {
        return Err(refused(
            "is a pipe or a device; a regular file is needed, as it is read again",
        ));
    }
    #[cfg(unix)]
    {
        let users = unix::TrustedUsers::of_process();
        let place = users.follow(path)?;
        let file = File::open(&place)?;
        users.check(&file.metadata()?, &place)?;
        Ok(file)
    }
    #[cfg(not(unix))]
    File::open(path)
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::ffi::OsString;
    use std::fs::Metadata;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::{Component, PathBuf};

    /// Most symbolic links on a path, as on Linux.
    const MAX_LINKS: usize = 40;
    /// The owner of files of users that this user namespace does not have.
    const UNMAPPED: u32 = 65534;

    /// Users who may own these files: root, the one of this process, and the one who has called it by sudo.
    pub struct TrustedUsers {
        own: u32,
        caller: Option<u32>,
        has_unmapped: bool,
    }

    impl TrustedUsers {
        pub fn of_process() -> TrustedUsers {
            let own = rustix::process::geteuid().as_raw();
            let caller = std::env::var("SUDO_UID").ok().filter(|_| own == 0);
            TrustedUsers {
                own,
                caller: caller.and_then(|uid| uid.parse().ok()),
                has_unmapped: is_mapped_elsewhere(own),
            }
        }

        fn has(&self, user: u32) -> bool {
            // In a namespace of one user, root outside has no id of its own.
            [0, self.own].contains(&user)
                || self.caller == Some(user)
                || self.has_unmapped && user == UNMAPPED
        }

        /// The path without symbolic links. Checks each folder and link on the way.
        pub fn follow(&self, path: &Path) -> io::Result<PathBuf> {
            let mut left = Vec::new();
            let mut place = PathBuf::from("/");
            let mut links = 0;
            push(&mut left, &std::path::absolute(path)?);
            while let Some(name) = left.pop() {
                self.check(&fs::symlink_metadata(&place)?, &place)?;
                if name == ".." {
                    place.pop();
                    continue;
                }
                place.push(name);
                let found = fs::symlink_metadata(&place)?;
                if !found.is_symlink() {
                    continue;
                }
                self.check(&found, &place)?;
                links += 1;
                if links > MAX_LINKS {
                    return Err(refused("too many symbolic links"));
                }
                let target = fs::read_link(&place)?;
                place.pop();
                if target.is_absolute() {
                    place = PathBuf::from("/");
                }
                push(&mut left, &target);
            }
            Ok(place)
        }

        /// Checks owner and mode of a file, a folder or a symbolic link.
        pub fn check(&self, found: &Metadata, place: &Path) -> io::Result<()> {
            let place = shown(&place.display().to_string());
            let noun = match found.file_type() {
                kind if kind.is_dir() => "folder ",
                kind if kind.is_symlink() => "symbolic link ",
                _ => "",
            };
            let user = found.uid();
            let mode = found.mode();
            if !self.has(user) {
                let own = self.own;
                let chown = if found.is_symlink() { "chown -h" } else { "chown" };
                return Err(refused(format!(
                    "user {user} can change {noun}{place}: {chown} {own} {place}"
                )));
            }
            let is_sticky = found.is_dir() && mode & 0o1000 != 0;
            // A symbolic link has all bits, and no meaning of them.
            if found.is_symlink() || is_sticky {
                return Ok(());
            }
            let by_group = mode & 0o020 != 0 && !is_private_group(found.gid(), user);
            if by_group || mode & 0o002 != 0 {
                return Err(refused(format!(
                    "other users can write to {noun}{place}: chmod go-w {place}"
                )));
            }
            Ok(())
        }
    }

    /// The names of a path, the last one first.
    fn push(left: &mut Vec<OsString>, path: &Path) {
        let names = path.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_os_string()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        });
        let names: Vec<OsString> = names.collect();
        left.extend(names.into_iter().rev());
    }

    /// Whether this user has another id outside of this user namespace.
    fn is_mapped_elsewhere(user: u32) -> bool {
        let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        map.lines().any(|line| {
            let numbers: Vec<u32> =
                line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
            let [inside, outside, count] = numbers[..] else { return false };
            inside != outside && user.checked_sub(inside).is_some_and(|offset| offset < count)
        })
    }

    /// Whether a group is its user's own: it has the user's name, and no other user. Distributions with a umask of 002
    /// make one for each user.
    fn is_private_group(group: u32, user: u32) -> bool {
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        is_private(&read("/etc/passwd"), &read("/etc/group"), group, user)
    }

    /// The fields of each line.
    fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
        text.lines().map(|line| line.split(':').collect())
    }

    pub(super) fn is_private(passwd: &str, groups: &str, group: u32, user: u32) -> bool {
        let number = |fields: &[&str], at: usize| fields.get(at).and_then(|id| id.parse().ok());
        let mut name = None;
        for row in rows(passwd) {
            if number(&row, 2) == Some(user) {
                name = row.first().copied();
            } else if number(&row, 3) == Some(group) {
                return false;
            }
        }
        let mut found = rows(groups).filter(|row| number(row, 2) == Some(group));
        let (Some(row), None, Some(name)) = (found.next(), found.next(), name) else {
            return false;
        };
        let members = row.get(3).copied().unwrap_or_default();
        row.first() == Some(&name) && members.split(',').all(|one| one.is_empty() || one == name)
    }
}

#[cfg(all(test, unix))]
#[path = "trusted_file_tests.rs"]
mod tests;

/// The file is not accepted.
pub(crate) fn refused(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}
