//! Detects requests that make no progress. A server that only sends WAIT, or a byte from time to time, is never silent.
//! Nevertheless a request is abandoned if it moves less than [`MIN_PROGRESS`] while its two ends wait for each other
//! for [`MAX_STALL`](crate::stream::MAX_STALL): 133 bit/s.

use crate::follower::Follower;
use crate::frames::FileFrameReader;
use crate::message::FileRequest;
use crate::stream::{FileStream, MIN_PROGRESS, Output, Session};
use narrows_peers::error::{Error, ErrorKind};
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(super) type Input = Box<dyn Read + Send>;

/// Assumed rate of the server's disk: the limit is longer where the server has to hash a held prefix first.
const HASHED_BYTES_PER_S: u64 = 10_000_000;

/// A stream that fails when it makes no progress: its frames, its output, and the detector.
type Watched = (FileFrameReader<Input>, Box<dyn Output>, Stall);

/// Opens a stream with a stall detector.
pub(super) fn open(session: &dyn Session) -> Result<Watched, Error> {
    Ok(watch(session, session.open()?))
}

/// As [`open`], and sends a request. A repeatable request leaves with the connection's first packet where possible.
pub(super) fn ask(session: &dyn Session, request: &FileRequest) -> Result<Watched, Error> {
    let (frames, mut output, stall) = match request.is_repeatable() {
        true => watch(session, session.ask(&request.bytes())?),
        false => open(session)?,
    };
    stall.on_request(request);
    if !request.is_repeatable() {
        output.write_all(&request.bytes()).map_err(Error::stream)?;
        output.flush().map_err(Error::stream)?;
    }
    Ok((frames, output, stall))
}

fn watch(session: &dyn Session, FileStream { input, output }: FileStream) -> Watched {
    let stall = Stall::new(session.max_stall());
    let reading = stall.clone();
    let writing = stall.clone();
    let input = Box::new(StallReader { input, stall: reading, follower: Follower::default() });
    (FileFrameReader::new(input), Box::new(StallWriter { output, stall: writing }), stall)
}

/// The stall detector of one stream. Clones share their state.
#[derive(Clone)]
pub(super) struct Stall(Arc<Mutex<StallState>>);

struct StallState {
    limit: Duration,
    /// Time of the last progress, and the bytes moved since.
    since: Instant,
    bytes: u64,
    /// Time for which the reading and the writing half have waited since.
    waited: [Duration; 2],
    /// Whether a WAIT frame has arrived since.
    is_at_work: bool,
}

#[derive(Clone, Copy)]
enum IoDirection {
    Reading = 0,
    Writing = 1,
}

impl Stall {
    fn new(limit: Duration) -> Stall {
        let since = Instant::now();
        let waited = [Duration::ZERO; 2];
        Stall(Arc::new(Mutex::new(StallState {
            limit,
            since,
            bytes: 0,
            waited,
            is_at_work: false,
        })))
    }

    /// Extends the limit by the time that the server may need to hash a file before it answers.
    pub fn on_request(&self, request: &FileRequest) {
        let bytes = match request {
            FileRequest::Get { held: Some(held), .. } => held.bytes,
            FileRequest::Put { size, .. } => *size,
            _ => 0,
        };
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let more = Duration::from_secs(bytes / HASHED_BYTES_PER_S);
        state.limit = state.limit.saturating_add(more);
    }

    /// A WAIT frame arrived.
    fn on_wait(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_at_work = true;
    }

    /// One half waited for `took` and moved `bytes`.
    ///
    /// # Errors
    /// The stream made no progress for too long.
    fn moved(&self, half: IoDirection, took: Duration, bytes: u64) -> Result<(), Error> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.bytes = state.bytes.saturating_add(bytes);
        if state.bytes >= MIN_PROGRESS {
            state.since = Instant::now();
            state.bytes = 0;
            state.is_at_work = false;
            state.waited = [Duration::ZERO; 2];
            return Ok(());
        }
        // The other half may have made progress meanwhile.
        let took = took.min(state.since.elapsed());
        let limit = state.limit;
        let bytes = state.bytes;
        let is_at_work = state.is_at_work;
        let Some(waited) = state.waited.get_mut(half as usize) else { return Ok(()) };
        *waited = waited.saturating_add(took);
        if *waited < limit {
            return Ok(());
        }
        let seconds = limit.as_secs();
        let line = if is_at_work {
            format!("the server has reported work for {seconds} s without progress")
        } else {
            format!("the server has moved only {bytes} bytes in {seconds} s")
        };
        Err(Error::new(ErrorKind::Cut, line))
    }
}

struct StallReader {
    input: Input,
    stall: Stall,
    follower: Follower,
}

impl Read for StallReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let begun = Instant::now();
        let read = self.input.read(into)?;
        let mut moved = 0;
        let stall = &self.stall;
        self.follower.pass(into.get(..read).unwrap_or_default(), |kind, payload| match kind {
            0 => stall.on_wait(),
            _ => moved += payload.len() as u64,
        });
        stall.moved(IoDirection::Reading, begun.elapsed(), moved).map_err(Error::into_io)?;
        Ok(read)
    }
}

struct StallWriter {
    output: Box<dyn Output>,
    stall: Stall,
}

impl Write for StallWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let begun = Instant::now();
        let written = self.output.write(bytes)?;
        self.stall
            .moved(IoDirection::Writing, begun.elapsed(), written as u64)
            .map_err(Error::into_io)?;
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

impl Output for StallWriter {
    fn finish(&mut self) -> io::Result<()> {
        self.output.finish()
    }
    fn abort(&mut self, why: &Error) {
        self.output.abort(why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::HeldPrefix;
    use crate::stream::MAX_STALL;

    /// A stream that has not moved for an hour, and whose halves have not waited yet.
    fn old() -> Stall {
        let stall = Stall::new(MAX_STALL);
        let mut state = stall.0.lock().unwrap();
        let Some(since) = state.since.checked_sub(Duration::from_secs(3600)) else {
            panic!("the clock has just begun")
        };
        state.since = since;
        drop(state);
        stall
    }
    const MINUTE: Duration = Duration::from_secs(60);

    fn minutes(stall: &Stall, half: IoDirection, bytes: u64) -> usize {
        (0..100).take_while(|_| stall.moved(half, MINUTE, bytes).is_ok()).count()
    }

    #[test]
    fn rare_bytes_or_only_waits_are_given_up() {
        for (half, bytes) in
            [(IoDirection::Reading, 0), (IoDirection::Reading, 1), (IoDirection::Writing, 999)]
        {
            assert_eq!(minutes(&old(), half, bytes), 9);
        }
        let waiting = old();
        waiting.on_wait();
        let e = waiting.moved(IoDirection::Reading, MAX_STALL, 0).unwrap_err();
        assert!(e.kind == ErrorKind::Cut && e.line.contains("reported work for 600 s"), "{e}");
        let e = old().moved(IoDirection::Reading, MAX_STALL, 7).unwrap_err();
        assert!(e.line.contains("only 7 bytes in 600 s"), "{e}");
    }

    #[test]
    fn slow_progress_is_not_given_up() {
        assert_eq!(minutes(&old(), IoDirection::Reading, 10_000), 100);
        // A server that reads 12 GB to compute a checksum.
        for request in [
            FileRequest::Put { path: "f".into(), size: 12_000_000_000, mode: None },
            FileRequest::Get {
                modes: false,
                path: "f".into(),
                held: Some(HeldPrefix { bytes: 12_000_000_000, hash: [0; 32] }),
            },
        ] {
            let stall = old();
            stall.on_request(&request);
            assert_eq!(minutes(&stall, IoDirection::Reading, 0), 29);
        }
        // A sender receives nothing: progress of the other half counts, also during a wait.
        let upload = old();
        upload.moved(IoDirection::Writing, MINUTE, 20_000).unwrap();
        upload.moved(IoDirection::Reading, Duration::from_secs(3600), 4).unwrap();
    }
}
