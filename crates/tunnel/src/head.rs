//! Reads what a program says first, of which the length is not known before.

use std::io::{Error, ErrorKind, Result as IoResult};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A program has so long to say it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads until `parse` finds something in `bytes`, and leaves there what comes behind it. `parse` returns the length of
/// what it found, or `None` if it needs more; it gets `most` bytes at most.
///
/// # Errors
/// The connection ended before, took too long, or said more than that. Inside, those of `parse`.
pub async fn read<T, E>(
    tcp: &mut TcpStream,
    bytes: &mut Vec<u8>,
    most: usize,
    parse: impl Fn(&[u8]) -> Result<Option<(usize, T)>, E>,
) -> IoResult<Result<T, E>> {
    let reading = async {
        loop {
            match parse(bytes) {
                Ok(Some((length, found))) => {
                    bytes.drain(..length.min(bytes.len()));
                    return Ok(Ok(found));
                }
                Err(e) => return Ok(Err(e)),
                Ok(None) if bytes.len() >= most => return Err(ErrorKind::InvalidData.into()),
                Ok(None) => {}
            }
            let room = (most - bytes.len()) as u64;
            if (&mut *tcp).take(room).read_buf(bytes).await? == 0 {
                return Err(Error::from(ErrorKind::UnexpectedEof));
            }
        }
    };
    timeout(PATIENCE, reading).await.unwrap_or(Err(ErrorKind::TimedOut.into()))
}
