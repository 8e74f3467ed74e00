//! Files of keys: the clients that a server admits, and the servers that a client has connected to.

use crate::error::{Error, ErrorKind};
use crate::text_file::{private, private_folder};
use crate::{key, text_file};
use narrows_wire::noise::PublicKey;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

const EMPTY: &str = "the list has no key, so no client could connect";

/// Keys of the clients that a server admits.
#[derive(Clone, Default, Debug)]
pub struct AllowList {
    keys: BTreeSet<PublicKey>,
    order: Vec<PublicKey>,
}

impl AllowList {
    /// Reads a file with one key per line; `#` begins a comment.
    ///
    /// # Errors
    /// The file cannot be read, or a line does not begin with a key.
    pub fn load(path: &Path) -> Result<AllowList, Error> {
        let what = path.display().to_string();
        let text = text_file::read(path, text_file::LIST).map_err(|e| Error::file(&what, &e))?;
        AllowList::read(&text).map_err(|e| e.at(&what))
    }

    /// Reads such a file again, in a program that has read it before: it may be changing at this moment.
    ///
    /// # Errors
    /// As [`AllowList::load`], or no key is left.
    pub fn reload(path: &Path) -> Result<AllowList, Error> {
        let what = path.display().to_string();
        let text =
            text_file::read_settled(path, text_file::LIST).map_err(|e| Error::file(&what, &e))?;
        let list = AllowList::read(&text).map_err(|e| e.at(&what))?;
        if list.is_empty() {
            return Err(Error::new(ErrorKind::Input, EMPTY).at(&what));
        }
        Ok(list)
    }

    /// Reads the text of such a file, see [`AllowList::load`].
    ///
    /// # Errors
    /// A line does not begin with a key.
    pub fn read(text: &str) -> Result<AllowList, Error> {
        let mut list = AllowList::default();
        for (number, words) in lines(text) {
            // The rest of the line names the key, as in `authorized_keys`.
            let first = words.split_whitespace().next().unwrap_or_default();
            let key = key::read(first).map_err(|e| e.at(&format!("line {number}")))?;
            if list.keys.insert(key) {
                list.order.push(key);
            }
        }
        Ok(list)
    }

    /// Whether this client is admitted.
    pub fn holds(&self, key: &PublicKey) -> bool {
        self.keys.contains(key)
    }
    /// The keys, in the order of the file.
    pub fn keys(&self) -> impl Iterator<Item = &PublicKey> {
        self.order.iter()
    }
    /// Number of distinct keys.
    pub fn len(&self) -> usize {
        self.order.len()
    }
    /// Checks that clients are listed.
    ///
    /// # Errors
    /// The list is empty.
    pub fn not_empty(&self) -> Result<(), Error> {
        if self.is_empty() {
            return Err(Error::new(ErrorKind::Input, EMPTY).at("--clients"));
        }
        Ok(())
    }
    /// Whether the list is empty: no client is admitted.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(i, l)| (i + 1, l.split('#').next().unwrap_or_default().trim()))
        .filter(|(_, l)| !l.is_empty())
}

/// Outcome of comparing a server's key with the stored one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyCheck {
    /// The stored key is the same.
    Same,
    /// No key was stored; this one is stored now.
    New,
}

/// The file of the servers that this user has connected to: `host:port KEY`, one per line.
#[derive(Clone, Debug)]
pub struct KnownServers(PathBuf);

impl KnownServers {
    /// The file at this path, which need not exist.
    pub fn at(path: PathBuf) -> KnownServers {
        KnownServers(path)
    }

    fn text(&self) -> Result<String, Error> {
        match text_file::read(&self.0, text_file::LIST) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            other => other.map_err(|e| Error::file(&self.0.display().to_string(), &e)),
        }
    }

    /// The stored key of `host:port`; `None` for a new server.
    ///
    /// # Errors
    /// As [`known`], or the file cannot be read.
    pub fn get(&self, server: &str) -> Result<Option<PublicKey>, Error> {
        known(&self.text()?, server).map_err(|e| e.at(&self.0.display().to_string()))
    }

    /// Compares a server's key with the stored one; stores it for a new server.
    ///
    /// # Errors
    /// The stored key is another one, or the file cannot be read or written.
    pub fn check(&self, server: &str, found: &PublicKey) -> Result<KeyCheck, Error> {
        match self.get(server)? {
            Some(known) if known == *found => Ok(KeyCheck::Same),
            Some(_) => Err(Error::new(
                ErrorKind::WrongKey,
                format!(
                    "{server} has another key than before ({} now): either it was set up anew or \
                     it is an impostor; if you know why, run narrows key --forget {server}",
                    key::text(found)
                ),
            )),
            None => self.add(server, found).map(|()| KeyCheck::New),
        }
    }

    /// Appends with one write, so that two processes that add servers at the same time do not disturb each other.
    fn add(&self, server: &str, found: &PublicKey) -> Result<(), Error> {
        let file_error = |e: std::io::Error| Error::file(&self.0.display().to_string(), &e);
        private_folder(&self.0).map_err(file_error)?;
        let before = self.text()?;
        let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
        let line = format!("{gap}{server} {}\n", key::text(found));
        // Links are followed: this folder is the user's configuration, which several machines may share.
        let mut options = private();
        let mut file = options.append(true).create(true).open(&self.0).map_err(file_error)?;
        #[cfg(unix)]
        {
            // Former versions made it readable for every user.
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            let _ = file.set_permissions(mode);
        }
        file.write_all(line.as_bytes()).map_err(file_error)
    }

    /// Removes a server's key; false for an unknown server.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn forget(&self, server: &str) -> Result<bool, Error> {
        let text = self.text()?;
        let is_of_host = |line: &str| {
            line.split('#').next().unwrap_or_default().split_whitespace().next() == Some(server)
        };
        if !text.lines().any(is_of_host) {
            return Ok(false);
        }
        let left: String =
            text.lines().filter(|l| !is_of_host(l)).flat_map(|l| [l, "\n"]).collect();
        replace(&self.0, &left).map(|()| true)
    }
}

/// The key of `host:port` in the text of such a file. A malformed line is an error: skipping it would forget a key.
///
/// # Errors
/// A line is not of the form `host:port KEY`.
pub fn known(text: &str, server: &str) -> Result<Option<PublicKey>, Error> {
    for (number, line) in lines(text) {
        let place = || format!("line {number}");
        let Some((name, rest)) = line.split_once(char::is_whitespace) else {
            return Err(
                Error::new(ErrorKind::Input, "a line has the form host:port KEY").at(&place())
            );
        };
        let known = key::read(rest.trim()).map_err(|e| e.at(&place()))?;
        if name == server {
            return Ok(Some(known));
        }
    }
    Ok(None)
}

/// Replaces a file's content atomically. Only its owner can read it.
///
/// # Errors
/// The file cannot be written.
pub fn replace(path: &Path, text: &str) -> Result<(), Error> {
    let file_error = |e: std::io::Error| Error::file(&path.display().to_string(), &e);
    private_folder(path).map_err(file_error)?;
    let aside = key::beside(path, std::process::id());
    let write = || {
        // A symbolic link of this name could lead to another user's file: create a new file.
        let _ = std::fs::remove_file(&aside);
        let mut file = private().write(true).create_new(true).open(&aside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&aside, path)
    };
    write().map_err(|e| {
        let _ = std::fs::remove_file(&aside);
        file_error(e)
    })
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
