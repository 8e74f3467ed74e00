//! Between a TCP connection and a stream: both ways, each with its own end, each waiting where the other side is full.
//!
//! A TCP connection that breaks resets its stream, and a stream that breaks resets its TCP connection: what was cut
//! off never looks whole.

use crate::request::{RESET, Refusal};
use narrows_net::{Error as NetError, ReceiveStream, SendStream};
use socket2::SockRef;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

/// Bytes that are taken from a TCP connection at once. An idle connection holds no buffer.
const PIECE: usize = 32 << 10;

/// From now on the TCP connection ends with a reset, however it is dropped, and sends what it has at once.
pub fn prepare(tcp: &TcpStream) {
    // Without these options it works less well, and no worse.
    let _ = tcp.set_nodelay(true);
    let _ = SockRef::from(tcp).set_linger(Some(Duration::ZERO));
}

/// How both directions have ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Each with its end.
    InOrder,
    /// One of the two connections broke.
    Broken,
    /// The far side did not open what was asked for.
    Refused(Refusal),
}

impl From<NetError> for End {
    fn from(_: NetError) -> End {
        End::Broken
    }
}
impl From<std::io::Error> for End {
    fn from(_: std::io::Error) -> End {
        End::Broken
    }
}

/// The far side's answer to a request: why not, if not.
///
/// # Errors
/// The stream broke or ended before.
pub async fn answer(receive: &mut ReceiveStream) -> Result<Option<Refusal>, End> {
    let mut answer = [0];
    match (receive.receive(&mut answer).await?, answer) {
        (1, [code]) => Ok(Refusal::from_code(code)),
        _ => Err(End::Broken),
    }
}

/// Moves bytes until both directions have ended. At the near side the far side's answer may be outstanding.
pub async fn run(
    mut tcp: TcpStream,
    (mut send, mut receive): (SendStream, ReceiveStream),
    is_answered: bool,
) -> End {
    let (read, write) = tcp.split();
    let up = upward(read, &mut send);
    let down = downward(write, &mut receive, is_answered);
    match tokio::try_join!(up, down) {
        Ok(_) => {
            let _ = SockRef::from(&tcp).set_linger(None);
            End::InOrder
        }
        Err(end) => {
            // One of them may be over already.
            let _ = send.reset(RESET);
            let _ = receive.stop(RESET);
            end
        }
    }
}

async fn upward(tcp: ReadHalf<'_>, send: &mut SendStream) -> Result<(), End> {
    loop {
        tcp.readable().await?;
        let mut piece = Vec::with_capacity(PIECE);
        loop {
            match tcp.try_read_buf(&mut piece) {
                Ok(0) => return Ok(send.finish()?),
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) => return Err(e.into()),
            }
            send.send_all(&piece).await?;
            piece.clear();
        }
    }
}

async fn downward(
    mut tcp: WriteHalf<'_>,
    receive: &mut ReceiveStream,
    is_answered: bool,
) -> Result<(), End> {
    if !is_answered && let Some(refusal) = answer(receive).await? {
        return Err(End::Refused(refusal));
    }
    while let Some(piece) = receive.receive_chunk(PIECE).await? {
        tcp.write_all(&piece).await?;
    }
    Ok(tcp.shutdown().await?)
}
