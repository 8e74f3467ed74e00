//! Gets whole folders: first lists them level by level, then gets the files.

use super::get::{Got, WantedFile, get_with, place};
use super::list::{ListingBudget, MAX_WALK_BYTES, read_listing};
use super::pipeline::Pipeline;
use super::request::newest;
use super::summary::Summary;
use super::tree::{TreeWork, Walk, WalkedFile, WalkedFolder, below, display, left_out};
use crate::frames::FileFrameReader;
use crate::message::{EntryKind, FileFrame, FileRequest};
use crate::mode::{Mode, make_folder};
use crate::path::{CleanPath, UNFINISHED_FOLDER};
use crate::stream::Session;
use crate::transfer_control::{ProgressEvent, TransferControl};
use cap_std::fs::{Dir, OpenOptions};
use narrows_peers::error::{Error, ErrorKind, shown};

/// A listed folder, and whether the server sends permissions.
struct TreeToGet {
    walk: Walk,
    modes: bool,
}

/// Gets everything below the folder `path` into the folder that `open` opens or makes with the permissions that it has at
/// the server. `open` is called only after the listing succeeded.
///
/// # Errors
/// The first that occurs; files that are complete by then stay. If another file has a file's name, that file is left
/// out, and the error is returned after all other files.
pub fn get_tree(
    session: &dyn Session,
    path: &CleanPath,
    open: impl FnOnce(Option<Mode>) -> Result<Dir, Error>,
    control: &TransferControl,
) -> Result<Summary, Error> {
    let TreeToGet { mut walk, modes } =
        newest(|modes| Ok(TreeToGet { walk: walk(session, path, modes, control)?, modes }))?;
    let dir = open(walk.folders.first().and_then(|root| root.mode))?;
    let mut summary = Summary { skipped: walk.skipped, ..Summary::default() };
    if !is_ours(&dir)? && !control.takes_hidden() {
        summary.hidden = leave_hidden(&dir, &mut walk, control);
    }
    for file in &walk.files {
        control.tell(ProgressEvent::Expect(file.size));
    }
    for WalkedFolder { path, mode } in &walk.folders {
        make_folder(&dir, path, *mode).map_err(|e| Error::file(&display(path), &e))?;
    }
    let inside = |file: &CleanPath| -> Result<(Dir, String), Error> {
        let (folder, name) = file.split().ok_or_else(|| Error::protocol("a file without name"))?;
        let dir =
            dir.open_dir(folder.relative()).map_err(|e| Error::file(&display(&folder), &e))?;
        Ok((dir, name.to_string()))
    };
    let done = TreeWork::new(walk.files, summary).run(
        control,
        |work| stream(session, path, modes, &inside, work, control),
        |file| {
            let (dir, name) = inside(&file.path)?;
            let from = below(path, &file.path)?;
            let one = get_with(session, &from, &dir, &name, modes, control);
            one.map_err(|e| named(e, &file.path))
        },
    )?;
    // The folder is complete: from now on it is an ordinary one.
    let _ = dir.remove_file(UNFINISHED_FOLDER);
    Ok(done)
}

/// Lists everything below `path`; paths in the result are relative to it.
fn walk(
    session: &dyn Session,
    path: &CleanPath,
    modes: bool,
    control: &TransferControl,
) -> Result<Walk, Error> {
    let mut walk = Walk::default();
    walk.push_folder(CleanPath::root());
    let mut ahead = Pipeline::new(session);
    let mut room = ListingBudget::new(MAX_WALK_BYTES);
    let mut next = 0;
    loop {
        control.check()?;
        while let Some(folder) = walk.folders.get(next).filter(|_| ahead.has_room()) {
            let at = below(path, &folder.path)?;
            let request = FileRequest::List { path: at.to_string(), modes };
            ahead.send(&request, 0, next, |_| Ok(()))?;
            next += 1;
        }
        let Some((number, frames)) = ahead.next()? else { break };
        let listing = read_listing(frames, &mut room)?;
        let Some(listed) = walk.folders.get_mut(number) else { break };
        listed.mode = listing.mode;
        let folder = listed.path.clone();
        if !listing.folder {
            let line = format!("/{path}: is a file; leave the last '/' away");
            return Err(Error::new(ErrorKind::WrongType, line));
        }
        let unnamed = listing.hidden.saturating_sub(listing.left_out.len() as u64);
        walk.skipped = walk.skipped.saturating_add(unnamed);
        listing.left_out.iter().for_each(|line| walk.leave_out(control, &folder, line));
        for entry in &listing.entries {
            // `read_listing` has counted the name; count its folder's path as well.
            room.take(folder.as_str().len())?;
            match entry.kind {
                EntryKind::File => {
                    let path = folder.join(&entry.name)?;
                    walk.files.push(WalkedFile { path, size: entry.size, there: None });
                }
                EntryKind::Folder => walk.push_folder(folder.join(&entry.name)?),
                EntryKind::FolderLink | EntryKind::LeftOut => {
                    let line = format!("{}: a link to a folder", shown(&entry.name));
                    walk.leave_out(control, &folder, &line);
                }
            }
        }
        walk.check()?;
    }
    ahead.close();
    Ok(walk)
}

/// Whether the folder was empty before this transfer or an earlier attempt of it.
fn is_ours(dir: &Dir) -> Result<bool, Error> {
    let failed = |e: std::io::Error| Error::file(".", &e);
    if dir.symlink_metadata(UNFINISHED_FOLDER).is_ok() {
        return Ok(true);
    }
    if dir.entries().map_err(failed)?.next().is_some() {
        return Ok(false);
    }
    let mut new = OpenOptions::new();
    dir.open_with(UNFINISHED_FOLDER, new.write(true).create_new(true)).map_err(failed)?;
    Ok(true)
}

/// Leaves out hidden files and folders that the target does not have yet: hidden files configure programs, so no server
/// may add them to an existing folder such as a home directory unless the user asks for it.
fn leave_hidden(dir: &Dir, walk: &mut Walk, control: &TransferControl) -> u64 {
    let is_left = |path: &CleanPath| {
        let is_left = path.names().any(|n| n.starts_with('.'))
            && dir.symlink_metadata(path.relative()).is_err();
        if is_left {
            control.leave_out(&format!("{}: hidden; --hidden takes it along", display(path)));
        }
        is_left
    };
    let before = walk.files.len() + walk.folders.len();
    walk.files.retain(|f| !is_left(&f.path));
    walk.folders.retain(|f| !is_left(&f.path));
    (before - walk.files.len() - walk.folders.len()) as u64
}

/// Adds a file's place to its error. The disk's errors, and those of existing files, begin with the file's name.
fn named(e: Error, file: &CleanPath) -> Error {
    match file.split() {
        Some((folder, name)) if e.line.starts_with(&format!("{}: ", shown(name))) => {
            if folder.is_root() { e } else { e.at(&display(&folder)) }
        }
        _ => e.at(&display(file)),
    }
}

/// Most bytes of an unwanted file that are read and dropped to reach the next answer on the stream.
const MAX_SKIPPED: u64 = 256 << 10;

/// Opens a file's local folder; returns it and the file's name in it.
type Inside<'i> = &'i (dyn Fn(&CleanPath) -> Result<(Dir, String), Error> + Sync);

/// One stream's share of the files.
fn stream(
    session: &dyn Session,
    path: &CleanPath,
    modes: bool,
    inside: Inside<'_>,
    work: &TreeWork,
    control: &TransferControl,
) -> Result<(), Error> {
    let mut ahead: Pipeline<'_, (WalkedFile, WantedFile)> = Pipeline::new(session);
    loop {
        while ahead.has_room() {
            let Some(file) = work.next(control) else { break };
            let (dir, name) = inside(&file.path)?;
            match place(&dir, &name).and_then(|p| WantedFile::sized(p, file.size, control)) {
                Ok(wanted) => {
                    let request = wanted.request(&below(path, &file.path)?, modes);
                    ahead.send(&request, file.size, (file, wanted), |_| Ok(()))?;
                }
                Err(e) => work.failed(named(e, &file.path)),
            }
        }
        if work.is_over() {
            break;
        }
        let Some(((file, wanted), frames)) = ahead.next()? else { break };
        match wanted.receive(frames, control) {
            Ok(Got::Done(done)) => work.done(done),
            Ok(Got::Refused(e)) => work.done(left_out(control, &file.path, &e)),
            Ok(Got::Differs(bytes)) if bytes <= MAX_SKIPPED => {
                skip(frames, bytes)?;
                work.again(file);
            }
            // Too many bytes to read and drop: the requests behind this one move to another stream.
            Ok(Got::Differs(_)) => {
                work.again(file);
                ahead.close().into_iter().for_each(|(file, _)| work.again(file));
            }
            // The answer was read to its end: the next answers can be read.
            Err(e) if e.kind == ErrorKind::Exists => work.failed(named(e, &file.path)),
            Err(e) => return Err(named(e, &file.path)),
        }
    }
    ahead.close();
    Ok(())
}

/// Reads and drops the rest of an unwanted file.
fn skip<R: std::io::Read>(frames: &mut FileFrameReader<R>, bytes: u64) -> Result<(), Error> {
    let mut left = bytes;
    loop {
        match frames.frame()? {
            FileFrame::End(_) => return Ok(()),
            FileFrame::Data(data) if data.len() as u64 <= left => left -= data.len() as u64,
            _ => return Err(Error::protocol("an unexpected frame in a file")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_once_with_its_folder() {
        let line = |path: &str, line: &str| {
            named(Error::new(ErrorKind::Full, line), &CleanPath::read(path).unwrap()).line
        };
        assert_eq!(line("f", "f: the disk is full"), "f: the disk is full");
        assert_eq!(line("a/f", "f: the disk is full"), "a: f: the disk is full");
        assert_eq!(line("a/f", "the connection was cut"), "a/f: the connection was cut");
    }
}
