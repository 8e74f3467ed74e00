//! Puts whole folders: first lists both sides, then puts the files. Small files are sent without a query of the
//! server's state; of files that seem to be complete there, only the hash is sent.

use super::list::{ListingBudget, MAX_COMPARED_BYTES, MAX_WALK_BYTES, read_entries};
use super::pipeline::Pipeline;
use super::put::put_file;
use super::request::newest;
use super::summary::Summary;
use super::tree::{TreeWork, Walk, WalkedFile, below, display, left_out};
use super::upload_tree::{LocalFolder, LocalPath, UploadTree};
use crate::frames;
use crate::message::{EntryKind, FileFrame, FileRequest, HeldPrefix};
use crate::partial_file::{CHUNK, hash_front};
use crate::path::CleanPath;
use crate::source_file::SourceFile;
use crate::source_file::UNASKED;
use crate::stream::{Output, Session};
use crate::transfer_control::{ProgressEvent, TransferControl};
use narrows_peers::error::{Error, ErrorKind};
use std::io::Read as _;

/// Puts everything of `tree` into the folder `path`; creates missing folders.
///
/// # Errors
/// The first that occurs; files that are complete by then stay. If the server has another file of a file's name, that
/// file is left out, and the error is returned after all other files.
pub fn put_tree(
    session: &dyn Session,
    tree: &UploadTree,
    path: &CleanPath,
    control: &TransferControl,
) -> Result<Summary, Error> {
    let mut room = ListingBudget::new(MAX_WALK_BYTES);
    let (mut walk, folders) = tree.walk(&mut room, control)?;
    let modes = newest(|modes| {
        make_folders(session, path, &mut walk, &folders, modes, control).map(|()| modes)
    })?;
    let summary = Summary { skipped: walk.skipped, ..Summary::default() };
    let target = UploadTarget { session, tree, path, modes };
    TreeWork::new(walk.files, summary).run(
        control,
        |work| target.stream(work, control),
        |file| {
            let LocalPath { dir, path: from } = tree.local(&file.path)?;
            match SourceFile::open(dir, &from, &display(&file.path)) {
                Ok(open) => put_file(session, open, &below(path, &file.path)?, modes, control),
                Err(e) => Ok(left_out(control, &file.path, &e)),
            }
        },
    )
}

/// Creates the folders at the server, and finds out which files it has.
fn make_folders(
    session: &dyn Session,
    path: &CleanPath,
    walk: &mut Walk,
    folders: &[LocalFolder],
    modes: bool,
    control: &TransferControl,
) -> Result<(), Error> {
    let mut room = ListingBudget::new(MAX_COMPARED_BYTES);
    let mut ahead = Pipeline::new(session);
    let mut rest = folders.iter();
    let mut more = true;
    loop {
        control.check()?;
        while more && ahead.has_room() {
            let Some(local) = rest.next() else {
                more = false;
                break;
            };
            let Some(folder) = walk.folders.get(local.number) else { continue };
            let at = below(path, &folder.path)?.to_string();
            let mode = folder.mode.filter(|_| modes);
            let making = FileRequest::MakeFolder { path: at.clone(), mode };
            ahead.send(&making, 0, None, |_| Ok(()))?;
            let listing = FileRequest::List { path: at, modes: false };
            ahead.send(&listing, 0, Some(local), |_| Ok(()))?;
        }
        let Some((asked, frames)) = ahead.next()? else { break };
        let Some(local) = asked else {
            match frames.frame()? {
                FileFrame::Done => continue,
                _ => return Err(Error::protocol("an unexpected answer")),
            }
        };
        let files = walk.files.get_mut(local.files.clone()).unwrap_or_default();
        read_entries(frames, &mut room, |entry| {
            let at = files.binary_search_by(|f| f.path.name().cmp(&Some(entry.name.as_str())));
            if entry.kind == EntryKind::File
                && let Some(file) = at.ok().and_then(|at| files.get_mut(at))
            {
                file.there = Some(entry.size);
            }
        })?;
    }
    ahead.close();
    Ok(())
}

/// A small file that was sent, or a file that the server is claimed to have.
struct SentFile {
    file: WalkedFile,
    hash: [u8; 32],
    claimed: bool,
}

/// Where the files come from and go to.
struct UploadTarget<'t> {
    session: &'t dyn Session,
    tree: &'t UploadTree,
    path: &'t CleanPath,
    /// Whether the server takes permissions.
    modes: bool,
}

impl UploadTarget<'_> {
    /// One stream's share of the files.
    fn stream(&self, work: &TreeWork, control: &TransferControl) -> Result<(), Error> {
        let mut ahead: Pipeline<'_, SentFile> = Pipeline::new(self.session);
        loop {
            let mut sent = Ok(());
            while ahead.has_room() && sent.is_ok() {
                let Some(file) = work.next(control) else { break };
                // A file that says that it has no bytes has to be read to its end.
                let claimed = file.size > 0 && file.there == Some(file.size);
                if !claimed && file.size > UNASKED {
                    work.again(file);
                } else {
                    sent = self.send(&mut ahead, work, file, claimed, control);
                }
            }
            // If the server stopped reading, its answer has the reason.
            if let Err(e) = sent
                && e.kind != ErrorKind::Cut
            {
                return Err(e);
            }
            if work.is_over() {
                break;
            }
            let Some((sent, frames)) = ahead.next()? else { break };
            let answer =
                frames.frame().and_then(holding).and_then(|held| match frames.frame()? {
                    FileFrame::Done => Ok(held),
                    _ => Err(Error::protocol("an unexpected answer")),
                });
            let SentFile { file, hash, claimed } = sent;
            match answer {
                Ok((held, whole)) => {
                    let unchanged = whole && held.bytes == file.size && held.hash == hash;
                    let mut done = Summary { files: 1, bytes: file.size, ..Summary::default() };
                    done.unchanged = u64::from(unchanged);
                    if claimed {
                        done.held = file.size;
                        control.tell(ProgressEvent::Held(file.size));
                    } else {
                        done.moved = file.size;
                    }
                    work.done(done);
                }
                // The server's file is a different one: send this one.
                Err(e) if claimed && e.kind == ErrorKind::Exists => work.again(file),
                Err(e) if claimed && e.kind == ErrorKind::Protocol => {
                    work.again(file);
                    ahead.close().into_iter().for_each(|sent| work.again(sent.file));
                }
                Err(e) if e.kind == ErrorKind::Exists => work.failed(e),
                Err(e) => return Err(e),
            }
        }
        ahead.close();
        Ok(())
    }

    /// Sends a small file, or claims that the server has this one.
    fn send(
        &self,
        ahead: &mut Pipeline<'_, SentFile>,
        work: &TreeWork,
        mut file: WalkedFile,
        claimed: bool,
        control: &TransferControl,
    ) -> Result<(), Error> {
        let what = display(&file.path);
        let LocalPath { dir, path } = self.tree.local(&file.path)?;
        let mut open = match SourceFile::open(dir, &path, &what) {
            Ok(open) => open,
            Err(e) => {
                work.done(left_out(control, &file.path, &e));
                return Ok(());
            }
        };
        let size = open.size();
        if if claimed { size != file.size } else { size > UNASKED } {
            // The size has changed since the walk, or is not the one in the listing: the file is put separately.
            work.again(file);
            return Ok(());
        }
        file.size = size;
        let mut content = Vec::new();
        let hash = if claimed {
            let (read, hasher) = hash_front(&mut open, size, &what, &mut |_| control.check())?;
            open.check(read)?;
            hasher.finalize()
        } else {
            open.read_to_end(&mut content).map_err(|e| Error::file(&what, &e))?;
            blake3::hash(&content)
        };
        let hash = *hash.as_bytes();
        let to = below(self.path, &file.path)?;
        let mode = self.modes.then(|| open.mode());
        let request = FileRequest::Put { path: to.to_string(), size, mode };
        let start = if claimed { size } else { 0 };
        let sent = SentFile { file, hash, claimed };
        let moved = if claimed { 0 } else { size };
        ahead.send(&request, moved, sent, |output: &mut dyn Output| {
            frames::write(output, &FileFrame::Start(start))?;
            for bytes in content.chunks(CHUNK) {
                control.pass(bytes.len())?;
                frames::write(output, &FileFrame::Data(bytes))?;
                control.tell(ProgressEvent::Moved(bytes.len() as u64));
            }
            frames::write(output, &FileFrame::End(hash))
        })
    }
}

fn holding(frame: FileFrame<'_>) -> Result<(HeldPrefix, bool), Error> {
    match frame {
        FileFrame::Holding { held, whole } => Ok((held, whole)),
        _ => Err(Error::protocol("an unexpected answer")),
    }
}
