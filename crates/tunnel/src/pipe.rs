//! Between a TCP connection and a stream: both ways, each with its own end, each waiting where the other side is full.
//!
//! A TCP connection that breaks resets its stream, and a stream that breaks resets its TCP connection: what was cut
//! off never looks whole.

use crate::request::{RESET, Refusal};
use narrows_net::{Error as NetError, ReceiveStream, SendStream};
use socket2::SockRef;
use std::io::ErrorKind;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

/// Bytes that are taken from a TCP connection at once. An idle connection holds no buffer.
const PIECE: usize = 32 << 10;

/// A stream goes before others as long as it sends little: so much at once, and so much a second in the long run. A
/// terminal or a request does not wait behind answers then, and these not behind an upload, of which others still get a
/// turn.
const KINDS: [Kind; 2] = [Kind { priority: FIRST, bytes: 4e3 }, Kind { priority: 1, bytes: 64e3 }];
/// The priority of a stream that has sent nothing yet.
pub const FIRST: i32 = 2;
/// Bytes a second.
const RATE: f64 = 16e3;

struct Kind {
    priority: i32,
    bytes: f64,
}

/// What a stream may send before others.
struct Precedence {
    /// Of each kind.
    left: [f64; 2],
    at: Instant,
    priority: i32,
}

impl Precedence {
    fn new(now: Instant) -> Precedence {
        Precedence { left: KINDS.map(|kind| kind.bytes), at: now, priority: 0 }
    }

    /// So many bytes are sent next: the stream's priority, if it changes.
    fn next(&mut self, now: Instant, bytes: usize) -> Option<i32> {
        let gone = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = now;
        let mut priority = 0;
        for (kind, left) in KINDS.iter().zip(&mut self.left) {
            let all = (*left + gone * RATE).min(kind.bytes);
            if all >= bytes as f64 {
                priority = priority.max(kind.priority);
            }
            *left = (all - bytes as f64).max(-kind.bytes);
        }
        let changes = std::mem::replace(&mut self.priority, priority) != priority;
        changes.then_some(priority)
    }
}

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

/// Moves bytes until both directions have ended.
pub async fn run(mut tcp: TcpStream, (mut send, mut receive): (SendStream, ReceiveStream)) -> End {
    let (read, write) = tcp.split();
    let up = upward(read, &mut send);
    let down = downward(write, &mut receive);
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
    let mut precedence = Precedence::new(Instant::now());
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
            if let Some(priority) = precedence.next(Instant::now(), piece.len()) {
                send.set_priority(priority)?;
            }
            send.send_all(&piece).await?;
            piece.clear();
        }
    }
}

async fn downward(mut tcp: WriteHalf<'_>, receive: &mut ReceiveStream) -> Result<(), End> {
    while let Some(piece) = receive.receive_chunk(PIECE).await? {
        tcp.write_all(&piece).await?;
    }
    Ok(tcp.shutdown().await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal beside answers and an upload: the one goes first for ever, the others for their first bytes only.
    #[test]
    fn who_sends_little_goes_first() {
        let begun = Instant::now();
        let (mut terminal, mut upload) = (Precedence::new(begun), Precedence::new(begun));
        let mut answers = Precedence::new(begun);
        assert_eq!(terminal.next(begun, 40), Some(2));
        assert_eq!(answers.next(begun, 400), Some(2));
        assert_eq!(answers.next(begun, 20_000), Some(1));
        assert_eq!(upload.next(begun, 32_000), Some(1));
        assert_eq!(upload.next(begun, 32_000), None);
        for tick in 1..1000u32 {
            let now = begun + Duration::from_millis(10) * tick;
            assert_eq!(terminal.next(now, 100), None);
            assert_eq!(upload.next(now, 32_000), (tick == 1).then_some(0), "{tick}");
        }
        // After a pause it has its first bytes again.
        assert_eq!(upload.next(begun + Duration::from_secs(60), 32_000), Some(1));
    }
}
