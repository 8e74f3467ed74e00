//! The interface to a transport: byte streams in both directions.

use crate::error::Error;
use std::io::{self, Read, Write};
use std::time::Duration;

/// How long a client waits for a stream that moves next to nothing.
pub(crate) const MAX_STALL: Duration = Duration::from_secs(600);
/// Bytes, either way, by which a transfer comes forward.
pub(crate) const MIN_PROGRESS: u64 = 10_000;

/// A stream's sending half.
pub trait Output: Write + Send {
    /// Says that nothing follows; the peer reads everything written before, then the end.
    ///
    /// # Errors
    /// The transport's.
    fn finish(&mut self) -> io::Result<()>;
    /// Gives the stream up in the middle of what was being said; tells the peer why, if the transport
    /// can say it.
    fn abort(&mut self, why: &Error) {
        let _ = why;
    }
}

/// Both halves of a stream.
pub struct Stream {
    /// What the peer sends. Its end is authentic: a connection that was cut is an error.
    pub input: Box<dyn Read + Send>,
    /// What we send.
    pub output: Box<dyn Output>,
}

/// An authenticated, encrypted connection with a server, or a way to make one per stream.
pub trait Session: Send + Sync {
    /// A new stream.
    ///
    /// # Errors
    /// Unreachable, the wrong key, and what else goes wrong before a byte is sent.
    fn open(&self) -> Result<Stream, Error>;
    /// A new stream that begins with this request, which may be done twice: it may leave before the connection is
    /// there.
    ///
    /// # Errors
    /// As [`open`](Session::open), and what goes wrong while it is sent.
    fn ask(&self, request: &[u8]) -> Result<Stream, Error> {
        let mut stream = self.open()?;
        stream
            .output
            .write_all(request)
            .and_then(|()| stream.output.flush())
            .map_err(Error::stream)?;
        Ok(stream)
    }
    /// What it is, such as `tcp+cubic`.
    fn protocol(&self) -> String;
    /// For how long a stream may move next to nothing, although the server is not silent, before a client gives
    /// it up.
    fn max_stall(&self) -> Duration {
        MAX_STALL
    }
}
