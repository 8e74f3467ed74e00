//! The local side of putting folders and several files.

use super::list::ListingBudget;
use super::tree::{Walk, WalkedFile, WalkedFolder, display};
use crate::entry;
use crate::message::EntryKind;
use crate::mode::Mode;
use crate::path::CleanPath;
use crate::transfer_control::{ProgressEvent, TransferControl};
use cap_std::fs::Dir;
use narrows_peers::error::{Error, ErrorKind, shown};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

/// Local files and folders to put into one folder of the server.
pub struct UploadTree {
    /// The folder whose contents are put.
    contents: Option<Dir>,
    /// Files and folders by their names at the server.
    parts: BTreeMap<CleanPath, UploadPart>,
}

/// A file or folder of an [`UploadTree`].
pub struct UploadPart {
    /// An open folder, and the file's name in it; without a name the folder itself.
    pub dir: Dir,
    /// See `dir`.
    pub file: Option<String>,
}

/// A local folder that was walked, and its files among those of the walk.
pub(super) struct LocalFolder {
    pub number: usize,
    pub files: Range<usize>,
}

impl UploadTree {
    /// The contents of a folder.
    pub fn contents(dir: Dir) -> UploadTree {
        UploadTree { contents: Some(dir), parts: BTreeMap::new() }
    }

    /// Several files and folders; [`UploadTree::add`] adds them.
    pub fn empty() -> UploadTree {
        UploadTree { contents: None, parts: BTreeMap::new() }
    }

    /// Adds a file or folder under a name of its own.
    ///
    /// # Errors
    /// The name is invalid, or another part has it.
    pub fn add(&mut self, name: &str, part: UploadPart) -> Result<(), Error> {
        let path = CleanPath::root().join(name)?;
        if self.parts.contains_key(&path) {
            let line = format!("{}: two files or folders of this name", shown(name));
            return Err(Error::new(ErrorKind::BadPath, line));
        }
        self.parts.insert(path, part);
        Ok(())
    }

    /// The open folder and the path in it of a file or folder of the walk.
    pub(super) fn local(&self, path: &CleanPath) -> Result<LocalPath<'_>, Error> {
        if let Some(dir) = &self.contents {
            return Ok(LocalPath { dir, path: path.relative() });
        }
        let mut names = path.names();
        let first = CleanPath::root().join(names.next().unwrap_or_default())?;
        let gone = || Error::new(ErrorKind::NotFound, format!("{}: is not put", display(path)));
        let part = self.parts.get(&first).ok_or_else(gone)?;
        let below = match &part.file {
            Some(name) => name.into(),
            None => std::iter::once(".").chain(names).collect(),
        };
        Ok(LocalPath { dir: &part.dir, path: below })
    }

    /// Lists everything that is put; the folders are those of the walk, in its order.
    pub(super) fn walk(
        &self,
        room: &mut ListingBudget,
        control: &TransferControl,
    ) -> Result<(Walk, Vec<LocalFolder>), Error> {
        let mut walk = Walk::default();
        let mut folders = Vec::new();
        walk.folders.push(WalkedFolder { path: CleanPath::root(), mode: Some(Mode::ANY) });
        let mut next = 0;
        if self.contents.is_none() {
            for (name, part) in &self.parts {
                self.add_part(name, part, &mut walk, control)?;
            }
            folders.push(LocalFolder { number: 0, files: 0..walk.files.len() });
            next = 1;
        }
        while let Some(folder) = walk.folders.get(next) {
            control.check()?;
            let folder = folder.path.clone();
            let first = walk.files.len();
            let mode = self.look(&folder, &mut walk, room, control)?;
            if let Some(walked) = walk.folders.get_mut(next) {
                walked.mode = Some(mode);
            }
            folders.push(LocalFolder { number: next, files: first..walk.files.len() });
            next += 1;
        }
        Ok((walk, folders))
    }

    fn add_part(
        &self,
        name: &CleanPath,
        part: &UploadPart,
        walk: &mut Walk,
        control: &TransferControl,
    ) -> Result<(), Error> {
        let Some(file) = &part.file else {
            walk.push_folder(name.clone());
            return Ok(());
        };
        let about = part.dir.metadata(file).map_err(|e| Error::file(&display(name), &e))?;
        let size = about.len();
        control.tell(ProgressEvent::Expect(size));
        walk.files.push(WalkedFile { path: name.clone(), size, there: None });
        Ok(())
    }

    /// Adds the sorted entries of one local folder to the walk; returns its permissions.
    fn look(
        &self,
        folder: &CleanPath,
        walk: &mut Walk,
        room: &mut ListingBudget,
        control: &TransferControl,
    ) -> Result<Mode, Error> {
        let failed = |e: std::io::Error| Error::file(&display(folder), &e);
        let LocalPath { dir, path } = self.local(folder)?;
        let inside = dir.open_dir(path).map_err(failed)?;
        let mode = Mode::of(&inside.dir_metadata().map_err(failed)?);
        let mut entries = Vec::new();
        for found in inside.entries().map_err(failed)? {
            let found = found.map_err(failed)?;
            match entry::read(&inside, &found) {
                Ok(Some(found)) => {
                    // As much as `get` counts for it, so that it can be got, too.
                    room.take(found.name.len())?;
                    room.take(folder.as_str().len())?;
                    entries.push(found);
                }
                Ok(None) => {
                    let name = entry::written(&found.file_name());
                    let line = format!("{name}: a file of an unfinished transfer");
                    walk.leave_out(control, folder, &line);
                }
                Err(line) => walk.leave_out(control, folder, &line),
            }
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        for found in entries {
            let name = &found.name;
            match found.kind {
                EntryKind::File => {
                    let size = found.about.len();
                    control.tell(ProgressEvent::Expect(size));
                    walk.files.push(WalkedFile { path: folder.join(name)?, size, there: None });
                }
                EntryKind::Folder => walk.push_folder(folder.join(name)?),
                EntryKind::FolderLink | EntryKind::LeftOut => {
                    let line = format!("{}: a link to a folder", shown(name));
                    walk.leave_out(control, folder, &line);
                }
            }
        }
        walk.check()?;
        Ok(mode)
    }
}

/// A path in an open folder.
pub(super) struct LocalPath<'t> {
    pub dir: &'t Dir,
    pub path: PathBuf,
}
