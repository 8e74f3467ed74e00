//! Kinds of folder entries, for listings and walks: files, folders, and entries that cannot be transferred, with the
//! reason.

use crate::message::EntryKind;
use crate::path::{check_name, is_own, is_part};
use cap_std::fs::{Dir, DirEntry, Metadata};
use narrows_peers::error::shown;
use std::ffi::OsStr;

/// An entry that can be transferred, or a link to a folder.
pub struct FoundEntry {
    /// File name, without a path.
    pub name: String,
    /// Kind of the entry; a link to a file is a file.
    pub kind: EntryKind,
    /// Metadata; of a link, those of its target.
    pub about: Metadata,
}

/// Reads an entry of `dir`. `None` for a partial file that the service itself keeps there.
///
/// # Errors
/// The entry cannot be transferred: its name and the reason, for people.
pub fn read(dir: &Dir, entry: &DirEntry) -> Result<Option<FoundEntry>, String> {
    let name = entry.file_name();
    let left_out = |why: &str| Err(format!("{}: {why}", written(&name)));
    let Some(text) = name.to_str() else { return left_out("its name is not UTF-8") };
    if is_own(text) {
        return Ok(None);
    }
    if is_part(text) {
        return left_out("the name of a partial transfer");
    }
    if check_name(text).is_err() {
        return left_out("not a name that every system has");
    }
    let is_link = entry.file_type().is_ok_and(|t| t.is_symlink());
    // A link is treated as its target, if that is below the root.
    let about = match if is_link { dir.metadata(text) } else { entry.metadata() } {
        Ok(about) => about,
        Err(_) if is_link => return left_out("a link that leads nowhere, or out of the folder"),
        Err(_) => return left_out("its metadata cannot be read"),
    };
    let Some(kind) = kind(&about, is_link) else {
        return left_out("a socket, a pipe or a device");
    };
    if kind != EntryKind::FolderLink && !may_read(dir, text, kind) {
        return left_out("permission denied");
    }
    Ok(Some(FoundEntry { name: text.to_string(), kind, about }))
}

/// The kind of a file or folder; `None` for anything else.
pub fn kind(about: &Metadata, is_link: bool) -> Option<EntryKind> {
    match (about.is_dir(), about.is_file()) {
        (true, _) if is_link => Some(EntryKind::FolderLink),
        (true, _) => Some(EntryKind::Folder),
        (_, true) => Some(EntryKind::File),
        _ => None,
    }
}

#[cfg(unix)]
fn may_read(dir: &Dir, name: &str, kind: EntryKind) -> bool {
    use rustix::fs::{Access, AtFlags, accessat};
    let search = if kind == EntryKind::Folder { Access::EXEC_OK } else { Access::empty() };
    accessat(dir, name, Access::READ_OK | search, AtFlags::EACCESS)
        .map_or_else(|e| e != rustix::io::Errno::ACCESS, |()| true)
}
#[cfg(not(unix))]
fn may_read(_: &Dir, _: &str, _: EntryKind) -> bool {
    true
}

/// A name in which bytes that are no UTF-8 are escaped.
pub fn written(name: &OsStr) -> String {
    let mut out = String::new();
    for chunk in name.as_encoded_bytes().utf8_chunks() {
        out += &shown(chunk.valid());
        chunk.invalid().iter().for_each(|byte| out += &format!("\\x{byte:02x}"));
    }
    out
}
