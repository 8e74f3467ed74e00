//! The client: lists, gets and puts, one request per stream.

mod get;
mod get_tree;
mod list;
mod pipeline;
mod put;
mod put_tree;
mod stall;
mod tree;

pub use get::get;
pub use get_tree::get_tree;
pub use list::{Listing, list};
pub use put::put;
pub use put_tree::put_tree;

use crate::error::{Error, Kind};
use crate::frames::Frames;
use crate::message::{Frame, Request, Tuning};
use crate::path::CleanPath;
use crate::stream::{Output, Session};
use std::io::Read;

/// What a transfer came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Files that are now whole at their place.
    pub files: u64,
    /// Of these, the ones that were so before.
    pub unchanged: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Bytes that were moved now.
    pub moved: u64,
    /// Bytes that did not have to be moved: held from an earlier attempt, or unchanged.
    pub held: u64,
    /// What could not be taken along: links to folders, names that are not UTF-8, devices.
    pub skipped: u64,
    /// Hidden files and folders that were left out of a folder that was there before.
    pub hidden: u64,
}

impl Summary {
    fn add(&mut self, other: Summary) {
        // What a server says of its files may be anything.
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
    request: &Request,
) -> Result<(Frames<Input>, Box<dyn Output>), Error> {
    let (frames, output, _) = stall::ask(session, request)?;
    Ok((frames, output))
}

/// Ends what we send. A server that has heard enough may have stopped listening before: whether that
/// is well, its answer says.
fn last_word(output: &mut dyn Output) {
    let _ = output.finish();
}

/// Makes a folder at the server, with those above it.
///
/// # Errors
/// The server's, or the connection's.
pub fn make_folder(session: &dyn Session, path: &CleanPath) -> Result<(), Error> {
    let request = Request::MakeFolder { path: path.to_string() };
    let (mut frames, mut output) = ask(session, &request)?;
    last_word(output.as_mut());
    match frames.frame()? {
        Frame::Done => Ok(()),
        _ => Err(Error::protocol("an unexpected answer")),
    }
}

/// Tells the server what is known of the path, and how it should send; the answer is what it sends
/// with, and what it has learned.
///
/// # Errors
/// The server's, or the connection's.
pub fn tune(session: &dyn Session, tuning: Tuning) -> Result<Tuning, Error> {
    let (mut frames, mut output) = ask(session, &Request::Tune(tuning))?;
    last_word(output.as_mut());
    match frames.frame()? {
        Frame::Tuned(mut answer) => {
            answer.controller = crate::error::shown(&answer.controller);
            Ok(answer)
        }
        _ => Err(Error::protocol("an unexpected answer")),
    }
}

/// What to say of a transfer that broke off.
fn resumable(e: Error, kept: u64, place: &str) -> Error {
    match e.kind {
        Kind::Cut | Kind::Busy => {
            e.and(&format!("{kept} bytes are kept in {place}, the same command goes on"))
        }
        Kind::Interrupted if kept > 0 => {
            e.and(&format!("{kept} bytes are kept in {place}, the same command goes on"))
        }
        Kind::Full => e.and(&format!(
            "{kept} bytes are kept in {place}: free some space, and the same command goes on"
        )),
        _ => e,
    }
}
