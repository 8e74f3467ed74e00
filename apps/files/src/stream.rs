//! The interface to a transport: byte streams in both directions.

use narrows_peers::error::Error;
use std::io::{self, Read, Write};
use std::time::Duration;

/// Time for which a client tolerates a stream without progress.
pub(crate) const MAX_STALL: Duration = Duration::from_secs(600);
/// Bytes, in either direction, that count as progress.
pub(crate) const MIN_PROGRESS: u64 = 10_000;

/// A stream's sending half.
pub trait Output: Write + Send {
    /// Ends the sending half; the peer reads everything written before, then the end.
    ///
    /// # Errors
    /// The transport's.
    fn finish(&mut self) -> io::Result<()>;
    /// Abandons the stream, perhaps within a frame; sends the peer the reason if the transport can.
    fn abort(&mut self, why: &Error) {
        let _ = why;
    }
}

/// Both halves of a stream.
pub struct FileStream {
    /// Bytes from the peer. Its end is authentic: a cut connection is an error.
    pub input: Box<dyn Read + Send>,
    /// Bytes to the peer.
    pub output: Box<dyn Output>,
}

/// An authenticated, encrypted connection with a server, or a factory of one per stream.
pub trait Session: Send + Sync {
    /// Opens a stream.
    ///
    /// # Errors
    /// The server is unreachable, has the wrong key, or another error before the first byte.
    fn open(&self) -> Result<FileStream, Error>;
    /// Opens a stream and sends this repeatable request, which may leave before the connection is established.
    ///
    /// # Errors
    /// As [`open`](Session::open), and errors of sending.
    fn ask(&self, request: &[u8]) -> Result<FileStream, Error> {
        let mut stream = self.open()?;
        stream
            .output
            .write_all(request)
            .and_then(|()| stream.output.flush())
            .map_err(Error::stream)?;
        Ok(stream)
    }
    /// The transport and its controller, such as `tcp+cubic`.
    fn protocol(&self) -> String;
    /// Time without progress after which a client abandons a stream, although the server is not silent.
    fn max_stall(&self) -> Duration {
        MAX_STALL
    }
}
