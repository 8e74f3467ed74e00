//! The client: lists, gets and puts over the streams of a session.

mod get;
mod get_tree;
mod list;
mod pipeline;
mod put;
mod put_tree;
mod request;
mod stall;
mod summary;
mod tree;
mod upload_tree;

pub use get::get;
pub use get_tree::get_tree;
pub use list::{Listing, list};
pub use put::put;
pub use put_tree::put_tree;
pub use summary::Summary;
pub use upload_tree::{UploadPart, UploadTree};

use crate::message::{FileFrame, FileRequest, Tuning};
use crate::path::CleanPath;
use crate::stream::Session;
use narrows_peers::error::Error;
use request::{ask, last_word};

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
