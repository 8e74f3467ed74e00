//! Copies bytes between a TCP connection and a stream in both directions, with half-close and back-pressure.
//!
//! If a TCP connection breaks, its stream is reset, and vice versa, so that truncated data never looks complete.

use crate::places::HolderActivity;
use crate::request::{RESET, Refusal};
use narrows_net::{Error as NetError, ReceiveStream, SendStream};
use narrows_peers::rate_cap::RateCap;
use socket2::SockRef;
use std::io::ErrorKind;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

/// Maximum number of bytes read from a TCP connection at once. An idle connection holds no buffer.
const PIECE: usize = 32 << 10;

/// Priorities of streams that send little: token buckets with a burst in bytes and the rate [`RATE`]. A terminal or a
/// request then does not wait behind answers, and answers do not wait behind an upload. Other streams still get a
/// share.
const KINDS: [PriorityBucket; 2] =
    [PriorityBucket { priority: FIRST, bytes: 4e3 }, PriorityBucket { priority: 1, bytes: 64e3 }];
/// The priority of a stream that has not sent any bytes.
pub const FIRST: i32 = 2;
/// Rate of the token buckets in bytes per second.
const RATE: f64 = 16e3;

struct PriorityBucket {
    priority: i32,
    bytes: f64,
}

/// Token buckets of a stream's priority.
struct Precedence {
    /// Tokens of each kind, in bytes; may be negative.
    left: [f64; 2],
    at: Instant,
    priority: i32,
}

impl Precedence {
    fn new(now: Instant) -> Precedence {
        Precedence { left: KINDS.map(|kind| kind.bytes), at: now, priority: 0 }
    }

    /// Takes tokens for the next bytes. Returns the stream's priority if it changes.
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

/// Makes the TCP connection send without delay, and end with a reset when it is dropped.
pub fn prepare(tcp: &TcpStream) {
    // If the system refuses the options, delay and the kind of end are less good.
    let _ = tcp.set_nodelay(true);
    let _ = SockRef::from(tcp).set_linger(Some(Duration::ZERO));
}

/// How the two directions have ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PipeEnd {
    /// Both directions ended regularly.
    InOrder,
    /// The TCP connection or the stream broke.
    Broken,
}

impl From<NetError> for PipeEnd {
    fn from(_: NetError) -> PipeEnd {
        PipeEnd::Broken
    }
}
impl From<std::io::Error> for PipeEnd {
    fn from(_: std::io::Error) -> PipeEnd {
        PipeEnd::Broken
    }
}

/// Reads the far side's answer to a request: the reason of a refusal, or `None` if the request was accepted.
///
/// # Errors
/// The stream broke or ended before.
pub async fn answer(receive: &mut ReceiveStream) -> Result<Option<Refusal>, PipeEnd> {
    let mut answer = [0];
    match (receive.receive(&mut answer).await?, answer) {
        (1, [code]) => Ok(Refusal::from_code(code)),
        _ => Err(PipeEnd::Broken),
    }
}

/// Copies bytes until both directions have ended.
pub async fn run(tcp: TcpStream, send: SendStream, receive: ReceiveStream) -> PipeEnd {
    let activity = HolderActivity::default();
    run_until(tcp, send, receive, &RateCap::new(None), &activity, std::future::pending()).await
}

/// As [`run`]; `cap` bounds the rate, and when `forbidden` is ready, both are reset. Records the TCP peer's activity.
pub(crate) async fn run_until(
    mut tcp: TcpStream,
    mut send: SendStream,
    mut receive: ReceiveStream,
    cap: &RateCap,
    activity: &HolderActivity,
    forbidden: impl Future<Output = ()>,
) -> PipeEnd {
    let (read, write) = tcp.split();
    let both = async {
        let up = upward(read, &mut send, cap, activity);
        let down = downward(write, &mut receive, cap, activity);
        tokio::try_join!(up, down).map(drop)
    };
    let ended = tokio::select! {
        ended = both => ended,
        () = forbidden => Err(PipeEnd::Broken),
    };
    match ended {
        Ok(()) => {
            let _ = SockRef::from(&tcp).set_linger(None);
            PipeEnd::InOrder
        }
        Err(end) => {
            // One of them may have ended already.
            let _ = send.reset(RESET);
            let _ = receive.stop(RESET);
            end
        }
    }
}

/// Waits until these bytes may pass.
async fn pass(cap: &RateCap, bytes: usize) {
    let wait = cap.delay(Instant::now(), bytes);
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
}

async fn upward(
    tcp: ReadHalf<'_>,
    send: &mut SendStream,
    cap: &RateCap,
    activity: &HolderActivity,
) -> Result<(), PipeEnd> {
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
            activity.sent();
            if let Some(priority) = precedence.next(Instant::now(), piece.len()) {
                send.set_priority(priority)?;
            }
            for part in piece.chunks(cap.piece()) {
                pass(cap, part.len()).await;
                send.send_all(part).await?;
            }
            piece.clear();
        }
    }
}

async fn downward(
    mut tcp: WriteHalf<'_>,
    receive: &mut ReceiveStream,
    cap: &RateCap,
    activity: &HolderActivity,
) -> Result<(), PipeEnd> {
    while let Some(piece) = receive.receive_chunk(cap.piece().min(PIECE)).await? {
        pass(cap, piece.len()).await;
        tcp.write_all(&piece).await?;
        activity.used();
    }
    Ok(tcp.shutdown().await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal beside answers and an upload: the terminal keeps its priority, the others have it for their first
    /// bytes only.
    #[test]
    fn low_rate_flow_goes_first() {
        let begun = Instant::now();
        let mut terminal = Precedence::new(begun);
        let mut upload = Precedence::new(begun);
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
        // After a pause it has tokens for its first bytes again.
        assert_eq!(upload.next(begun + Duration::from_secs(60), 32_000), Some(1));
    }
}
