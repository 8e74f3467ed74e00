//! Puts whole folders: first lists both sides, then puts the files. Small files are sent without a query of the
//! server's state; of files that seem to be complete there, only the hash is sent.

use super::Summary;
use super::list::{ListingBudget, MAX_WALK_BYTES, read_listing};
use super::pipeline::Pipeline;
use super::put::put;
use super::tree::{TreeWork, Walk, WalkedFile, below, display};
use crate::entry;
use crate::frames;
use crate::message::{EntryKind, FileFrame, FileRequest, HeldPrefix};
use crate::partial_file::{CHUNK, hash_front, open_regular, read_some};
use crate::path::CleanPath;
use crate::service::UNASKED;
use crate::source_stamp::SourceStamp;
use crate::stream::{Output, Session};
use crate::transfer_control::{ProgressEvent, TransferControl};
use cap_std::fs::Dir;
use narrows_peers::error::{Error, ErrorKind, shown};
use std::collections::BTreeMap;

/// Puts everything below `dir` into the folder `path`; creates missing folders.
///
/// # Errors
/// The first that occurs; files that are complete by then stay. If the server has another file of a file's name, that
/// file is left out, and the error is returned after all other files.
pub fn put_tree(
    session: &dyn Session,
    dir: &Dir,
    path: &CleanPath,
    control: &TransferControl,
) -> Result<Summary, Error> {
    let mut walk = Walk { folders: vec![CleanPath::root()], ..Walk::default() };
    let mut next = 0;
    while let Some(folder) = walk.folders.get(next).cloned() {
        next += 1;
        control.check()?;
        look(dir, &folder, &mut walk, control)?;
        walk.check()?;
    }
    let there = make_folders(session, path, &walk.folders, control)?;
    let summary = Summary { skipped: walk.skipped, ..Summary::default() };
    TreeWork::new(walk.files, summary).run(
        control,
        |work| stream(session, dir, path, &there, work, control),
        |file| put(session, dir, &file.path.relative(), &below(path, &file.path)?, control),
    )
}

/// Adds the sorted entries of one local folder to the walk.
fn look(
    dir: &Dir,
    folder: &CleanPath,
    walk: &mut Walk,
    control: &TransferControl,
) -> Result<(), Error> {
    let failed = |e: std::io::Error| Error::file(&display(folder), &e);
    let inside = dir.open_dir(folder.relative()).map_err(failed)?;
    let mut entries = Vec::new();
    for found in inside.entries().map_err(failed)? {
        let found = found.map_err(failed)?;
        match entry::read(&inside, &found) {
            Ok(Some(found)) => entries.push(found),
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
                walk.files.push(WalkedFile { path: folder.join(name)?, size });
            }
            EntryKind::Folder => walk.folders.push(folder.join(name)?),
            EntryKind::FolderLink | EntryKind::LeftOut => {
                let line = format!("{}: a link to a folder", shown(name));
                walk.leave_out(control, folder, &line);
            }
        }
    }
    Ok(())
}

/// Sizes of the server's files, by path relative to the target folder.
type There = BTreeMap<CleanPath, u64>;

/// Creates the folders at the server and lists them.
fn make_folders(
    session: &dyn Session,
    path: &CleanPath,
    folders: &[CleanPath],
    control: &TransferControl,
) -> Result<There, Error> {
    let mut there = There::new();
    let mut room = ListingBudget::new(MAX_WALK_BYTES);
    let mut ahead = Pipeline::new(session);
    let mut rest = folders.iter();
    let mut more = true;
    loop {
        control.check()?;
        while more && ahead.has_room() {
            let Some(folder) = rest.next() else {
                more = false;
                break;
            };
            let at = below(path, folder)?.to_string();
            ahead.send(&FileRequest::MakeFolder { path: at.clone() }, 0, None, |_| Ok(()))?;
            ahead.send(&FileRequest::List { path: at }, 0, Some(folder), |_| Ok(()))?;
        }
        let Some((asked, frames)) = ahead.next()? else { break };
        let Some(folder) = asked else {
            match frames.frame()? {
                FileFrame::Done => continue,
                _ => return Err(Error::protocol("an unexpected answer")),
            }
        };
        for entry in read_listing(frames, &mut room)?.entries {
            if entry.kind == EntryKind::File {
                room.take(folder.as_str().len())?;
                there.insert(folder.join(&entry.name)?, entry.size);
            }
        }
    }
    ahead.close();
    Ok(there)
}

/// A small file that was sent, or a file that the server is claimed to have.
struct SentFile {
    file: WalkedFile,
    hash: [u8; 32],
    claimed: bool,
}

/// One stream's share of the files.
fn stream(
    session: &dyn Session,
    dir: &Dir,
    path: &CleanPath,
    there: &There,
    work: &TreeWork,
    control: &TransferControl,
) -> Result<(), Error> {
    let mut ahead: Pipeline<'_, SentFile> = Pipeline::new(session);
    loop {
        let mut sent = Ok(());
        while ahead.has_room() && sent.is_ok() {
            let Some(file) = work.next(control) else { break };
            let claimed = there.get(&file.path) == Some(&file.size);
            if !claimed && file.size > UNASKED {
                work.again(file);
            } else {
                sent = send(&mut ahead, work, dir, path, file, claimed, control);
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
        let answer = frames.frame().and_then(holding).and_then(|held| match frames.frame()? {
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

fn holding(frame: FileFrame<'_>) -> Result<(HeldPrefix, bool), Error> {
    match frame {
        FileFrame::Holding { held, whole } => Ok((held, whole)),
        _ => Err(Error::protocol("an unexpected answer")),
    }
}

/// Sends a small file, or claims that the server has this one.
fn send(
    ahead: &mut Pipeline<'_, SentFile>,
    work: &TreeWork,
    dir: &Dir,
    path: &CleanPath,
    mut file: WalkedFile,
    claimed: bool,
    control: &TransferControl,
) -> Result<(), Error> {
    let what = display(&file.path);
    let mut open = open_regular(dir, &file.path.relative(), &what)?;
    let before = SourceStamp::of(&open, &what)?;
    if before.size != file.size && (claimed || before.size > UNASKED) {
        // The size has changed since the walk: the file is put separately.
        work.again(file);
        return Ok(());
    }
    file.size = before.size;
    let mut content = Vec::new();
    let (read, hash) = if claimed {
        let (read, hasher) = hash_front(&mut open, file.size, &what, &mut |_| control.check())?;
        (read, hasher.finalize())
    } else {
        content.resize(file.size as usize, 0);
        let mut read = 0;
        loop {
            match read_some(&mut open, content.get_mut(read..).unwrap_or_default(), &what)? {
                0 => break,
                n => read += n,
            }
        }
        content.truncate(read);
        (read as u64, blake3::hash(&content))
    };
    before.check(&open, read, &what)?;
    let hash = *hash.as_bytes();
    let request = FileRequest::Put { path: below(path, &file.path)?.to_string(), size: file.size };
    let (start, size) = (if claimed { file.size } else { 0 }, file.size);
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
