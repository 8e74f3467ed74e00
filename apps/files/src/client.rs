//! The client: lists, gets and puts over the streams of a session.

mod get;
mod get_tree;
mod list;
mod pipeline;
mod put;
mod put_tree;
mod stall;
mod tree;
mod upload_tree;

pub use get::get;
pub use get_tree::get_tree;
pub use list::{Listing, list};
pub use put::put;
pub use put_tree::put_tree;
pub use upload_tree::{UploadPart, UploadTree};

use crate::frames::FileFrameReader;
use crate::message::{FileFrame, FileRequest, Tuning};
use crate::path::CleanPath;
use crate::stream::{Output, Session};
use narrows_peers::error::{Error, ErrorKind};
use std::io::Read;

/// The result of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Files that are now complete under their names.
    pub files: u64,
    /// Those of `files` that were complete before.
    pub unchanged: u64,
    /// Sum of the sizes of `files`.
    pub bytes: u64,
    /// File bytes moved by this transfer.
    pub moved: u64,
    /// Bytes that did not have to be moved: present from an earlier attempt, or unchanged.
    pub held: u64,
    /// Entries that cannot be transferred: links to folders, names that are not UTF-8, devices.
    pub skipped: u64,
    /// Hidden files and folders that were left out because the target folder existed before.
    pub hidden: u64,
}

impl Summary {
    fn add(&mut self, other: Summary) {
        // A server may report any size.
        let sum = |all: &mut u64, one: u64| *all = all.saturating_add(one);
        sum(&mut self.files, other.files);
        sum(&mut self.unchanged, other.unchanged);
        sum(&mut self.bytes, other.bytes);
        sum(&mut self.moved, other.moved);
        sum(&mut self.held, other.held);
        sum(&mut self.skipped, other.skipped);
        sum(&mut self.hidden, other.hidden);
    }
}

type Input = Box<dyn Read + Send>;

/// Opens a stream and sends the request.
fn ask(
    session: &dyn Session,
    request: &FileRequest,
) -> Result<(FileFrameReader<Input>, Box<dyn Output>), Error> {
    let (frames, output, _) = stall::ask(session, request)?;
    Ok((frames, output))
}

/// Runs `work` with permissions, and again without them if the server is too old for these.
fn newest<T>(mut work: impl FnMut(bool) -> Result<T, Error>) -> Result<T, Error> {
    match work(true) {
        Err(e) if e.kind == ErrorKind::Version => work(false),
        done => done,
    }
}

/// Ends the sending half. A server that has read enough may have closed its half before; its answer is the result.
fn last_word(output: &mut dyn Output) {
    let _ = output.finish();
}

/// Creates a folder at the server, with its parents.
///
/// # Errors
/// The server's, or the connection's.
pub fn make_folder(session: &dyn Session, path: &CleanPath) -> Result<(), Error> {
    let request = FileRequest::MakeFolder { path: path.to_string(), mode: None };
    let (mut frames, mut output) = ask(session, &request)?;
    last_word(output.as_mut());
    match frames.frame()? {
        FileFrame::Done => Ok(()),
        _ => Err(Error::protocol("an unexpected answer")),
    }
}

/// Gives the server hints of the path and the controller that it should send with. Returns the server's controller and
/// its measurements of the path.
///
/// # Errors
/// The server's, or the connection's.
pub fn tune(session: &dyn Session, tuning: Tuning) -> Result<Tuning, Error> {
    let (mut frames, mut output) = ask(session, &FileRequest::Tune(tuning))?;
    last_word(output.as_mut());
    match frames.frame()? {
        FileFrame::Tuned(mut answer) => {
            answer.controller = narrows_peers::error::shown(&answer.controller);
            Ok(answer)
        }
        _ => Err(Error::protocol("an unexpected answer")),
    }
}

/// Adds to the error of an interrupted transfer that it can be resumed.
fn resumable(e: Error, kept: u64, place: &str) -> Error {
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
