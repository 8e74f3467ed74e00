//! GET.

use super::named;
use crate::error::{Error, Kind};
use crate::frames::{self, Waiting};
use crate::hold::{CHUNK, hash_front, open_regular, read_some};
use crate::message::{Frame, Held};
use crate::path::CleanPath;
use crate::stream::Output;
use blake3::Hasher;
use cap_std::fs::{Dir, File};
use std::io::{Seek, SeekFrom};

pub(super) fn answer(
    root: &Dir,
    path: &CleanPath,
    held: Option<Held>,
    output: &mut dyn Output,
    sent: &mut u64,
) -> Result<(), Error> {
    let what = named(path);
    if path.is_root() {
        return Err(Error::new(Kind::WrongType, "the root is a folder: end the address with '/'"));
    }
    let mut file = open_regular(root, &path.relative(), &what)?;
    let before = Stamp::of(&file, &what)?;
    let (start, mut hasher) = begin(&mut file, before.size, held, &what, output)?;
    frames::send(output, &Frame::Begin { start, size: before.size })?;
    let mut buffer = vec![0; CHUNK];
    let mut at = start;
    loop {
        let n = read_some(&mut file, &mut buffer, &what)?;
        let bytes = buffer.get(..n).unwrap_or_default();
        if n == 0 {
            break;
        }
        at += n as u64;
        if at > before.size {
            break;
        }
        hasher.update(bytes);
        frames::write(output, &Frame::Data(bytes))?;
        *sent += n as u64;
    }
    if at != before.size || Stamp::of(&file, &what)? != before {
        return Err(Error::new(
            Kind::Changed,
            format!("{what}: was changed while it was sent; run the command again"),
        ));
    }
    frames::send(output, &Frame::End(*hasher.finalize().as_bytes()))
}

/// Where to begin: behind what the client holds, if the file begins with exactly that.
fn begin(
    file: &mut File,
    size: u64,
    held: Option<Held>,
    what: &str,
    output: &mut dyn Output,
) -> Result<(u64, Hasher), Error> {
    if let Some(held) = held.filter(|h| h.bytes > 0 && h.bytes <= size) {
        let mut waiting = Waiting::new();
        let (bytes, hasher) =
            hash_front(file, held.bytes, what, &mut |_| waiting.tell(&mut *output))?;
        if bytes == held.bytes && hasher.finalize() == blake3::Hash::from_bytes(held.hash) {
            return Ok((bytes, hasher));
        }
        file.seek(SeekFrom::Start(0)).map_err(|e| Error::file(what, &e))?;
    }
    Ok((0, Hasher::new()))
}

/// What changes when a file is written.
#[derive(PartialEq, Eq)]
struct Stamp {
    size: u64,
    modified: Option<std::time::SystemTime>,
}

impl Stamp {
    fn of(file: &File, what: &str) -> Result<Stamp, Error> {
        let about = file.metadata().map_err(|e| Error::file(what, &e))?;
        let modified = about.modified().ok().map(|t| t.into_std());
        Ok(Stamp { size: about.len(), modified })
    }
}
