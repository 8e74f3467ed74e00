//! `put` of one file.

use super::request::{ask, last_word, newest};
use super::stall::Input;
use super::summary::Summary;
use crate::frames::{self, FileFrameReader, WaitSender};
use crate::message::{FileFrame, FileRequest, HeldPrefix};
use crate::partial_file::{CHUNK, hash_front, read_some};
use crate::path::CleanPath;
use crate::source_file::SourceFile;
use crate::stream::{Output, Session};
use crate::transfer_control::{ProgressEvent, TransferControl};
use blake3::Hasher;
use cap_std::fs::Dir;
use narrows_peers::error::{Error, ErrorKind, shown};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::Duration;

/// Puts the file `from` of `dir` at `path`, resuming an earlier attempt.
///
/// # Errors
/// The server's, the connection's or the disk's.
pub fn put(
    session: &dyn Session,
    dir: &Dir,
    from: &Path,
    path: &CleanPath,
    control: &TransferControl,
) -> Result<Summary, Error> {
    let what = shown(&from.to_string_lossy());
    newest(|modes| put_file(session, SourceFile::open(dir, from, &what)?, path, modes, control))
}

/// Puts an open file, with its permissions or without.
pub(super) fn put_file(
    session: &dyn Session,
    mut file: SourceFile,
    path: &CleanPath,
    modes: bool,
    control: &TransferControl,
) -> Result<Summary, Error> {
    control.check()?;
    let what = file.what().to_string();
    let size = file.size();
    let mode = modes.then(|| file.mode());
    let request = FileRequest::Put { path: path.to_string(), size, mode };
    let (mut frames, mut output) = ask(session, &request)?;
    let (held, whole) = match frames.frame()? {
        FileFrame::Holding { held, whole } => (held, whole),
        _ => return Err(Error::protocol("an unexpected answer")),
    };
    let (start, mut hasher) = begin(&mut file, held, whole, &what, output.as_mut(), control)?;
    frames::send(output.as_mut(), &FileFrame::Start(start))?;
    control.tell(ProgressEvent::Begin(size));
    control.tell(ProgressEvent::Held(start));
    let mut done = Summary { files: 1, bytes: size, held: start, ..Summary::default() };
    // Whether the server already had this file complete.
    done.unchanged = u64::from(whole && start == size && held.bytes == size && size > 0);

    // The server may refuse before everything is sent (its disk is full, say), so another thread reads its answer.
    let answer = listen(frames)?;
    let sent = send(&mut file, &mut hasher, &what, output.as_mut(), &answer, control, &mut done);
    match sent {
        Ok(None) => {}
        Ok(Some(answered)) => {
            return match answered {
                Ok(()) => Err(Error::protocol("an answer before the end")),
                Err(e) => Err(part_kept(e)),
            };
        }
        Err(e) if e.kind == ErrorKind::Cut => {
            // The server's last answer gives the better reason.
            let e = match answer.recv_timeout(Duration::from_secs(3)) {
                Ok(Ok(())) => return Ok(done),
                Ok(Err(reported)) => reported,
                Err(_) => e,
            };
            return Err(part_kept(e));
        }
        Err(e) => return Err(part_kept(e)),
    }
    loop {
        match answer.recv_timeout(Duration::from_millis(200)) {
            Ok(Ok(())) => return Ok(done),
            Ok(Err(e)) => return Err(part_kept(e)),
            Err(RecvTimeoutError::Timeout) => control.check()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::new(ErrorKind::Local, "a thread ended without its work"));
            }
        }
    }
}

/// Adds that the upload can be resumed. The client cannot tell how much arrived.
fn part_kept(e: Error) -> Error {
    match e.kind {
        ErrorKind::Cut | ErrorKind::Interrupted => {
            e.and("the server keeps what it has, the same command goes on")
        }
        ErrorKind::Full => {
            e.and("the server keeps what it has: when there is space, the same command goes on")
        }
        _ => e,
    }
}

/// Where to begin: after the bytes that the server holds, if the local file begins with exactly those.
fn begin(
    file: &mut SourceFile,
    held: HeldPrefix,
    whole: bool,
    what: &str,
    output: &mut dyn Output,
    control: &TransferControl,
) -> Result<(u64, Hasher), Error> {
    let size = file.size();
    // A finished file at the server is of use only if it is this one.
    let useful = held.bytes > 0 && if whole { held.bytes == size } else { held.bytes <= size };
    if useful {
        let mut waiting = WaitSender::new();
        let (bytes, hasher) = hash_front(file, held.bytes, what, &mut |_| {
            control.check()?;
            waiting.tell(&mut *output)
        })?;
        if bytes == held.bytes && hasher.finalize() == blake3::Hash::from_bytes(held.hash) {
            return Ok((bytes, hasher));
        }
        file.rewind()?;
    }
    Ok((0, Hasher::new()))
}

/// The server's final answer.
type Answer = Result<(), Error>;

fn listen(mut frames: FileFrameReader<Input>) -> Result<Receiver<Answer>, Error> {
    let (tell, reported) = channel();
    let started = std::thread::Builder::new().spawn(move || {
        let answer = match frames.frame() {
            Ok(FileFrame::Done) => Ok(()),
            Ok(_) => Err(Error::protocol("an unexpected answer")),
            Err(e) => Err(e),
        };
        // The receiver is gone if the transfer ended otherwise.
        let _ = tell.send(answer);
    });
    started.map_err(|e| Error::no_thread(&e))?;
    Ok(reported)
}

/// Sends the rest of the file; stops when an answer comes before its end.
fn send(
    file: &mut SourceFile,
    hasher: &mut Hasher,
    what: &str,
    output: &mut dyn Output,
    answer: &Receiver<Answer>,
    control: &TransferControl,
    done: &mut Summary,
) -> Result<Option<Answer>, Error> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match answer.try_recv() {
            Ok(answered) => return Ok(Some(answered)),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => {}
        }
        let left = file.size().saturating_sub(done.held + done.moved);
        let max = usize::try_from(left).map_or(CHUNK, |n| n.min(CHUNK));
        let n = read_some(file, buffer.get_mut(..max).unwrap_or_default(), what)?;
        let bytes = buffer.get(..n).unwrap_or_default();
        if n == 0 {
            break;
        }
        control.pass(n)?;
        hasher.update(bytes);
        frames::write(output, &FileFrame::Data(bytes))?;
        done.moved += n as u64;
        control.tell(ProgressEvent::Moved(n as u64));
    }
    file.check(done.held + done.moved)?;
    frames::write(output, &FileFrame::End(*hasher.finalize().as_bytes()))?;
    last_word(output);
    Ok(None)
}
