//! Requests and the ends of their streams.

use super::stall::{self, Input};
use crate::frames::FileFrameReader;
use crate::message::FileRequest;
use crate::stream::{Output, Session};
use narrows_peers::error::{Error, ErrorKind};

/// Opens a stream and sends the request.
pub fn ask(
    session: &dyn Session,
    request: &FileRequest,
) -> Result<(FileFrameReader<Input>, Box<dyn Output>), Error> {
    let (frames, output, _) = stall::ask(session, request)?;
    Ok((frames, output))
}

/// Runs `work` with permissions, and again without them if the server is too old for these.
pub fn newest<T>(mut work: impl FnMut(bool) -> Result<T, Error>) -> Result<T, Error> {
    match work(true) {
        Err(e) if e.kind == ErrorKind::Version => work(false),
        done => done,
    }
}

/// Ends the sending half. A server that has read enough may have closed its half before; its answer is the result.
pub fn last_word(output: &mut dyn Output) {
    let _ = output.finish();
}

/// Adds to the error of an interrupted transfer that it can be resumed.
pub fn resumable(e: Error, kept: u64, place: &str) -> Error {
    match e.kind {
        ErrorKind::Cut | ErrorKind::Busy => {
            e.and(&format!("{kept} bytes are kept in {place}, the same command goes on"))
        }
        ErrorKind::Interrupted if kept > 0 => {
            e.and(&format!("{kept} bytes are kept in {place}, the same command goes on"))
        }
        ErrorKind::Full => e.and(&format!(
            "{kept} bytes are kept in {place}: free some space, and the same command goes on"
        )),
        _ => e,
    }
}
