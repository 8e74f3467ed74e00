//! Several requests on one stream, sent ahead of their answers, so that many small files take hardly longer than one
//! large file.

use super::stall::{self, Input, Stall};
use crate::frames::FileFrameReader;
use crate::message::FileRequest;
use crate::stream::{Output, Session};
use narrows_peers::error::Error;
use std::collections::VecDeque;

/// Most requests ahead of their answers. Together with their bytes they fit in any buffer of the path, so that sending
/// never blocks until an answer is read.
const MAX_AHEAD: usize = 64;
const MAX_REQUEST_BYTES: usize = 6 * 1024;
/// Most file bytes in flight on one stream; beyond it another stream is faster.
const MAX_FILE_BYTES: u64 = 2 << 20;

/// A request without an answer yet.
struct PendingRequest<T> {
    what: T,
    request: usize,
    file: u64,
}

/// A stream of requests, each with a value that its answer is matched with.
pub(super) struct Pipeline<'s, T> {
    session: &'s dyn Session,
    stream: Option<(FileFrameReader<Input>, Box<dyn Output>, Stall)>,
    sent: VecDeque<PendingRequest<T>>,
}

impl<'s, T> Pipeline<'s, T> {
    pub fn new(session: &'s dyn Session) -> Pipeline<'s, T> {
        Pipeline { session, stream: None, sent: VecDeque::new() }
    }

    /// Whether another request may be sent before the first answer was read.
    pub fn has_room(&self) -> bool {
        let mut requests = 0;
        let mut files = 0_u64;
        for sent in &self.sent {
            requests += sent.request;
            files = files.saturating_add(sent.file);
        }
        self.sent.len() < MAX_AHEAD && requests < MAX_REQUEST_BYTES && files < MAX_FILE_BYTES
    }

    /// Sends a request, followed by what `more` writes; `bytes` are the file's.
    ///
    /// # Errors
    /// The connection's.
    pub fn send(
        &mut self,
        request: &FileRequest,
        bytes: u64,
        what: T,
        more: impl FnOnce(&mut dyn Output) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.stream.is_none() {
            self.stream = Some(stall::open(self.session)?);
        }
        let Some((_, output, stall)) = &mut self.stream else { return Ok(()) };
        stall.on_request(request);
        let said = request.bytes();
        self.sent.push_back(PendingRequest { what, request: said.len(), file: bytes });
        output.write_all(&said).map_err(Error::stream)?;
        more(output.as_mut())
    }

    /// The oldest request without an answer, and the frames of its answer. Sends buffered requests first.
    ///
    /// # Errors
    /// The connection's.
    pub fn next(&mut self) -> Result<Option<(T, &mut FileFrameReader<Input>)>, Error> {
        let Some((frames, output, _)) = &mut self.stream else { return Ok(None) };
        let Some(sent) = self.sent.pop_front() else { return Ok(None) };
        output.flush().map_err(Error::stream)?;
        Ok(Some((sent.what, frames)))
    }

    /// Ends the stream; returns the requests that have no answer yet.
    pub fn close(&mut self) -> Vec<T> {
        if let Some((_, mut output, _)) = self.stream.take() {
            super::request::last_word(output.as_mut());
        }
        self.sent.drain(..).map(|sent| sent.what).collect()
    }
}
