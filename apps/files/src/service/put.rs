//! PUT. Every client has its own partial file, so no upload damages another's.

use super::quota::NAME_BYTES;
use super::state::{AnsweredRequest, Caller, Service};
use crate::frames::{self, FileFrameReader, WaitSender, while_waiting};
use crate::message::{FileFrame, HeldPrefix};
use crate::mode::Mode;
use crate::partial_file::TargetFile;
use crate::path::{CleanPath, named};
use crate::source_file::UNASKED;
use crate::stream::Output;
use blake3::Hasher;
use narrows_peers::error::{Error, ErrorKind};
use std::io::Read;

type Input = Box<dyn Read + Send>;

/// A file as its upload announces it.
pub(super) struct AnnouncedFile {
    /// In bytes.
    pub size: u64,
    /// Its permissions, if the client sends them.
    pub mode: Option<Mode>,
}

/// Parameters of an upload, before its bytes arrive.
struct Begun {
    held: HeldPrefix,
    start: u64,
    size: u64,
}

pub(super) fn answer(
    service: &Service,
    caller: &Caller,
    path: &CleanPath,
    file: &AnnouncedFile,
    frames: &mut FileFrameReader<Input>,
    output: &mut dyn Output,
    event: &mut AnsweredRequest,
) -> Result<(), Error> {
    let AnnouncedFile { size, mode } = *file;
    let Some((folder, name)) = path.split() else {
        let line = "the root is a folder: add the file's name to the address";
        return Err(Error::new(ErrorKind::WrongType, line));
    };
    if let Some(max) = service.permits().max_size.filter(|max| size > *max) {
        let line = format!("{}: the server takes files of at most {max} bytes", named(path));
        return Err(Error::new(ErrorKind::TooLarge, line));
    }
    let dir = service.root.open_dir(folder.relative()).map_err(|e| {
        let e = Error::file(&named(&folder), &e);
        if e.kind == ErrorKind::NotFound { e.and("put into a folder that exists") } else { e }
    })?;
    let at = |e: Error| if folder.is_root() { e } else { e.at(&named(&folder)) };
    let replace = service.permits().overwrite;
    let place = TargetFile::owned(dir, name, &caller.key)?;
    let there = place.size().map_err(at)?;
    let taken = place.is_taken() && !replace;
    if taken && there != Some(size) {
        return Err(at(place.exists()).and("this server takes new names only"));
    }
    let running = service.uploads.begin(path, caller.key)?;
    let mut waiting = WaitSender::new();
    let mut hash = |file: &mut _, max: u64, what: &str| {
        service.hashing.beginning(file, max, what, &caller.source, &caller.slot, &mut || {
            waiting.tell(&mut *output)
        })
    };
    let mut found = if taken { None } else { place.partial(&mut hash).map_err(at)? };
    if found.is_none() && there.is_some() {
        found = place.whole(&mut hash).map_err(at)?;
    }
    let whole = found.as_ref().is_some_and(|f| f.whole);
    if taken && !whole {
        return Err(at(place.exists()).and("this server takes new names only"));
    }
    let held = found.as_ref().map_or(nothing(), |f| f.held);
    frames::send(output, &FileFrame::Holding { held, whole })?;
    let start = match frames.frame()? {
        FileFrame::Start(at) if at == 0 || (at == held.bytes && at <= size) => at,
        _ => return Err(Error::protocol("an upload that begins nowhere")),
    };
    let begun = Begun { held, start, size };
    if whole && (start > 0 || size == held.bytes && size == 0 || taken) {
        compare(&begun, &place, frames, event).map_err(at)?;
        // The name is free before the client learns of the end.
        drop(running);
        return frames::send(output, &FileFrame::Done);
    }
    // An existing partial file has been counted.
    let name = if found.as_ref().is_none_or(|f| f.whole) { NAME_BYTES } else { 0 };
    service.quota.check((size - start).saturating_add(name))?;
    service.quota.take(name)?;
    let part = place.part(found.filter(|_| start > 0)).map_err(at)?;
    running.hold(part)?;
    let mut waiting = WaitSender::new();
    let hash = loop {
        match frames.frame()? {
            FileFrame::Data(bytes) => {
                let n = bytes.len() as u64;
                running.with(|part| {
                    if part.bytes().saturating_add(n) > size {
                        return Err(Error::protocol("more bytes than the file has"));
                    }
                    service.quota.take(n)?;
                    part.append(bytes)
                })??;
                event.bytes += n;
                // A client that receives no WAIT for long gives up.
                waiting.tell(output)?;
            }
            FileFrame::End(hash) => break hash,
            _ => return Err(Error::protocol("an unexpected frame in an upload")),
        }
    };
    event.over = true;
    let part = running.take()?;
    if part.bytes() != size {
        return Err(Error::protocol("fewer bytes than the file has"));
    }
    let finish = move || part.finish(&hash, replace, mode);
    while_waiting(output, &caller.slot, finish)?.map_err(at)?;
    drop(running);
    frames::send(output, &FileFrame::Done)
}

/// A finished file exists: checks that the upload is the same, and writes no bytes.
fn compare(
    begun: &Begun,
    place: &TargetFile,
    frames: &mut FileFrameReader<Input>,
    event: &mut AnsweredRequest,
) -> Result<(), Error> {
    let Begun { held, start, size, .. } = *begun;
    if start > 0 && start != size {
        return Err(Error::protocol("an upload that adds to a finished file"));
    }
    if start == 0 && size > UNASKED {
        return Err(place.exists());
    }
    let mut received = start;
    let mut hasher = Hasher::new();
    let hash = loop {
        match frames.frame()? {
            FileFrame::Data(bytes) if received + bytes.len() as u64 <= size => {
                hasher.update(bytes);
                received += bytes.len() as u64;
            }
            FileFrame::End(hash) => break hash,
            _ => return Err(Error::protocol("an unexpected frame in an upload")),
        }
    };
    event.over = true;
    if received != size || (start == 0 && hasher.finalize() != blake3::Hash::from_bytes(hash)) {
        return Err(Error::protocol("an upload that ends in another file"));
    }
    if hash != held.hash {
        return Err(place.exists());
    }
    Ok(())
}

fn nothing() -> HeldPrefix {
    HeldPrefix { bytes: 0, hash: *blake3::hash(b"").as_bytes() }
}
