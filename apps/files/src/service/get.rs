//! Answers GET.

use super::state::{Caller, Service};
use crate::frames::{self, WaitSender};
use crate::message::{FileFrame, HeldPrefix};
use crate::partial_file::{CHUNK, hash_front, read_some};
use crate::path::{CleanPath, named};
use crate::source_file::SourceFile;
use crate::stream::Output;
use blake3::Hasher;
use narrows_peers::error::{Error, ErrorKind};

/// The part of a file that a client requests.
pub(super) struct WantedPart {
    /// Bytes that are not sent again.
    pub held: Option<HeldPrefix>,
    /// Whether BEGIN has the permissions.
    pub modes: bool,
}

pub(super) fn answer(
    service: &Service,
    caller: &Caller,
    path: &CleanPath,
    wanted: &WantedPart,
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
    let mut file = SourceFile::open(&service.root, &path.relative(), &what)?;
    let size = file.size();
    let mode = wanted.modes.then(|| file.mode());
    let (start, mut hasher) = begin(service, caller, &mut file, wanted.held, &what, output)?;
    frames::write(output, &FileFrame::Begin { start, size, mode })?;
    if start == 0 && size > CHUNK as u64 {
        // Send BEGIN now: a client that does not want this file stops the stream.
        output.flush().map_err(Error::stream)?;
    }
    let room = usize::try_from(size - start).map_or(CHUNK, |n| n.min(CHUNK));
    let mut buffer = vec![0; room];
    let mut at = start;
    loop {
        let max = usize::try_from(size - at).map_or(room, |n| n.min(room));
        let n = read_some(&mut file, buffer.get_mut(..max).unwrap_or_default(), &what)?;
        let bytes = buffer.get(..n).unwrap_or_default();
        if n == 0 {
            break;
        }
        at += n as u64;
        hasher.update(bytes);
        frames::write(output, &FileFrame::Data(bytes))?;
        *sent += n as u64;
    }
    file.check(at)?;
    frames::send(output, &FileFrame::End(*hasher.finalize().as_bytes()))
}

/// Where to begin: after the bytes that the client holds, if the file begins with exactly those.
fn begin(
    service: &Service,
    caller: &Caller,
    file: &mut SourceFile,
    held: Option<HeldPrefix>,
    what: &str,
    output: &mut dyn Output,
) -> Result<(u64, Hasher), Error> {
    let size = file.size();
    if let Some(held) = held.filter(|h| h.bytes > 0 && h.bytes <= size) {
        let mut waiting = WaitSender::new();
        let mut tick = || waiting.tell(&mut *output);
        let (bytes, hasher) = match file.cacheable() {
            Some(file) => {
                let source = &caller.source;
                let slot = &caller.slot;
                service.hashing.beginning(file, held.bytes, what, source, slot, &mut tick)?
            }
            None => hash_front(file, held.bytes, what, &mut |_| tick())?,
        };
        if bytes == held.bytes && hasher.finalize() == blake3::Hash::from_bytes(held.hash) {
            return Ok((bytes, hasher));
        }
        file.rewind()?;
    }
    Ok((0, Hasher::new()))
}
