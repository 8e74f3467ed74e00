//! Answers GET.

use super::{Caller, Service, named};
use crate::frames::{self, WaitSender};
use crate::message::{FileFrame, HeldPrefix};
use crate::partial_file::{CHUNK, open_regular, read_some};
use crate::path::CleanPath;
use crate::source_stamp::SourceStamp;
use crate::stream::Output;
use blake3::Hasher;
use cap_std::fs::File;
use narrows_peers::error::{Error, ErrorKind};
use std::io::{Seek, SeekFrom};

pub(super) fn answer(
    service: &Service,
    caller: &Caller,
    path: &CleanPath,
    held: Option<HeldPrefix>,
    output: &mut dyn Output,
    sent: &mut u64,
) -> Result<(), Error> {
    let what = named(path);
    if path.is_root() {
        return Err(Error::new(
            ErrorKind::WrongType,
            "the root is a folder: end the address with '/'",
        ));
    }
    let mut file = open_regular(&service.root, &path.relative(), &what)?;
    let before = SourceStamp::of(&file, &what)?;
    let (start, mut hasher) = begin(service, caller, &mut file, before.size, held, &what, output)?;
    frames::write(output, &FileFrame::Begin { start, size: before.size })?;
    if start == 0 && before.size > CHUNK as u64 {
        // Send BEGIN now: a client that does not want this file stops the stream.
        output.flush().map_err(Error::stream)?;
    }
    let room = usize::try_from(before.size - start).map_or(CHUNK, |n| n.min(CHUNK));
    let mut buffer = vec![0; room];
    let mut at = start;
    loop {
        let most = usize::try_from(before.size - at).map_or(room, |n| n.min(room));
        let n = read_some(&mut file, buffer.get_mut(..most).unwrap_or_default(), &what)?;
        let bytes = buffer.get(..n).unwrap_or_default();
        if n == 0 {
            break;
        }
        at += n as u64;
        hasher.update(bytes);
        frames::write(output, &FileFrame::Data(bytes))?;
        *sent += n as u64;
    }
    before.check(&file, at, &what)?;
    frames::send(output, &FileFrame::End(*hasher.finalize().as_bytes()))
}

/// Where to begin: after the bytes that the client holds, if the file begins with exactly those.
fn begin(
    service: &Service,
    caller: &Caller,
    file: &mut File,
    size: u64,
    held: Option<HeldPrefix>,
    what: &str,
    output: &mut dyn Output,
) -> Result<(u64, Hasher), Error> {
    if let Some(held) = held.filter(|h| h.bytes > 0 && h.bytes <= size) {
        let mut waiting = WaitSender::new();
        let asker = (&caller.source, &caller.slot);
        let mut tick = || waiting.tell(&mut *output);
        let (bytes, hasher) =
            service.hashing.beginning(file, held.bytes, what, asker, &mut tick)?;
        if bytes == held.bytes && hasher.finalize() == blake3::Hash::from_bytes(held.hash) {
            return Ok((bytes, hasher));
        }
        file.seek(SeekFrom::Start(0)).map_err(|e| Error::file(what, &e))?;
    }
    Ok((0, Hasher::new()))
}
