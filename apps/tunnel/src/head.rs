//! Reads a program's first message, which has no fixed length.

use std::io::{Error, ErrorKind, Result as IoResult};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Time that a program has for its message.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads until `parse` returns a value, and leaves the bytes after it in `bytes`. `parse` returns the value and its
/// length, or `None` if it needs more bytes; it gets at most `max` bytes.
///
/// # Errors
/// The connection ended early, timed out, or exceeded `max` bytes. The inner result has the errors of `parse`.
pub async fn read<T, E>(
    tcp: &mut TcpStream,
    bytes: &mut Vec<u8>,
    max: usize,
    parse: impl Fn(&[u8]) -> Result<Option<(usize, T)>, E>,
) -> IoResult<Result<T, E>> {
    let reading = read_slowly(tcp, bytes, max, parse);
    timeout(PATIENCE, reading).await.unwrap_or(Err(ErrorKind::TimedOut.into()))
}

/// As [`read`], without a timeout.
///
/// # Errors
/// The source ended early or broke, or exceeded `max` bytes.
pub async fn read_slowly<T, E>(
    from: &mut (impl AsyncRead + Unpin),
    bytes: &mut Vec<u8>,
    max: usize,
    parse: impl Fn(&[u8]) -> Result<Option<(usize, T)>, E>,
) -> IoResult<Result<T, E>> {
    loop {
        match parse(bytes) {
            Ok(Some((length, found))) => {
                bytes.drain(..length.min(bytes.len()));
                return Ok(Ok(found));
            }
            Err(e) => return Ok(Err(e)),
            Ok(None) if bytes.len() >= max => return Err(ErrorKind::InvalidData.into()),
            Ok(None) => {}
        }
        let room = (max - bytes.len()) as u64;
        if (&mut *from).take(room).read_buf(bytes).await? == 0 {
            return Err(Error::from(ErrorKind::UnexpectedEof));
        }
    }
}
