//! Retries while a server is busy: for how long and how often, over either transport.

use crate::error_code;
use crate::follower::Follower;
use crate::stream::{FileStream, MIN_PROGRESS, Output};
use narrows_peers::error::{Error, ErrorKind};
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Retry deadline, as long as the wait for a server that does not answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(25);
/// The deadline over the wait before the second attempt. The wait doubles with each attempt, up to [`LAST_WAIT`].
const FIRST_WAIT: u32 = 125;
/// The deadline over the longest wait.
const LAST_WAIT: u32 = 12;
/// Number of times that progress may restart the retry deadline. Without it, a server that accepts everything and
/// stores nothing would receive the data forever.
const MAX_RENEWALS: u32 = 100;
/// Interval at which a wait checks whether the user has stopped the transfer.
const LOOK: Duration = Duration::from_millis(250);

/// The retry deadline of a session, and the waits between attempts.
pub(crate) struct Patience {
    whole: Duration,
    until: Instant,
    wait: Duration,
    is_told: bool,
    tell: fn(&str),
    /// Bytes moved since the deadline was set.
    moved: u64,
    renewals: u32,
}

impl Patience {
    /// The deadline is `whole` after `now`; `tell` receives the line for the user.
    pub fn new(now: Instant, whole: Duration, tell: fn(&str)) -> Patience {
        let until = now + whole;
        let wait = whole / FIRST_WAIT;
        Patience { whole, until, wait, is_told: false, tell, moved: 0, renewals: 0 }
    }

    /// Counts `bytes` moved before the server was busy. [`MIN_PROGRESS`] bytes restart the deadline.
    pub fn moved(&mut self, now: Instant, bytes: u64) {
        self.moved = self.moved.saturating_add(bytes);
        if self.moved >= MIN_PROGRESS && self.renewals < MAX_RENEWALS {
            *self = Patience {
                renewals: self.renewals + 1,
                ..Patience::new(now, self.whole, self.tell)
            };
        }
    }

    /// Time that an attempt may take that begins now.
    pub fn left(&self, now: Instant) -> Duration {
        self.until.saturating_duration_since(now)
    }

    /// Wait before the next attempt; `None` if the deadline would pass. The wait is 0.5 to 1.5 times a value that
    /// doubles (`random_key`: 0 to 1), so that clients that were refused together do not return together.
    fn next(&mut self, now: Instant, random_key: f64) -> Option<Duration> {
        let wait = self.wait.mul_f64(0.5 + random_key);
        self.wait = (self.wait * 2).min(self.whole / LAST_WAIT);
        (wait < self.left(now)).then_some(wait)
    }

    /// Reports to the user, once, why the attempt is repeated ("... is busy").
    pub fn tell(&mut self, what: &str) {
        if !std::mem::replace(&mut self.is_told, true) {
            let seconds = self.left(Instant::now()).as_secs_f64();
            (self.tell)(&format!("{what}: it is asked again for {seconds:.0} s"));
        }
    }

    /// Waits before the next attempt; false if the deadline would pass. `what` is for [`Patience::tell`].
    ///
    /// # Errors
    /// The user has stopped the transfer.
    pub fn pause(&mut self, what: &str, stop: &AtomicBool) -> Result<bool, Error> {
        let mut random_key = [0; 2];
        // Without random bytes the wait is the shortest, 0.5 of its value.
        let _ = getrandom::fill(&mut random_key);
        let random_key = f64::from(u16::from_be_bytes(random_key)) / f64::from(u16::MAX);
        let Some(mut left) = self.next(Instant::now(), random_key) else { return Ok(false) };
        self.tell(what);
        while !left.is_zero() {
            if stop.load(Ordering::SeqCst) {
                return Err(Error::interrupted());
            }
            let now = left.min(LOOK);
            std::thread::sleep(now);
            left -= now;
        }
        Ok(true)
    }
}

/// Signals of a server on a session's streams since the last call of `take`: local errors look the same to the caller.
/// Clones share their state.
#[derive(Clone, Default)]
pub(crate) struct ServerSignals(Arc<BusySignals>);

#[derive(Default)]
struct BusySignals {
    /// ERROR 11, or a stream reset with that code.
    is_busy: AtomicBool,
    /// Bytes of frames in either direction, without WAIT.
    moved: AtomicU64,
}

impl ServerSignals {
    /// Whether the server reported that it is busy, and the bytes moved; resets both.
    pub fn take(&self) -> (bool, u64) {
        let BusySignals { is_busy, moved } = &*self.0;
        (is_busy.swap(false, Ordering::SeqCst), moved.swap(0, Ordering::SeqCst))
    }

    /// Wraps a stream so that its signals are recorded.
    pub fn observe(&self, FileStream { input, output }: FileStream) -> FileStream {
        let follower = Follower::default();
        let code = Vec::new();
        let input = Box::new(ObservedInput { input, signals: self.clone(), follower, code });
        FileStream { input, output: Box::new(ObservedOutput { output, signals: self.clone() }) }
    }

    fn count(&self, bytes: u64) {
        self.0.moved.fetch_add(bytes, Ordering::SeqCst);
    }

    fn set_busy(&self) {
        self.0.is_busy.store(true, Ordering::SeqCst);
    }

    /// Records a reset by the server that means busy. Returns the error unchanged.
    fn ended(&self, e: io::Error) -> io::Error {
        let own_error = e.get_ref().and_then(|e| e.downcast_ref::<Error>());
        if own_error.is_some_and(|e| e.kind == ErrorKind::Busy) {
            self.set_busy();
        }
        e
    }
}

struct ObservedInput {
    input: Box<dyn Read + Send>,
    signals: ServerSignals,
    follower: Follower,
    /// The code of the ERROR that is being read, as far as it has arrived.
    code: Vec<u8>,
}

impl Read for ObservedInput {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let ObservedInput { input, signals, follower, code } = self;
        let read = input.read(into).map_err(|e| signals.ended(e))?;
        follower.pass(into.get(..read).unwrap_or_default(), |kind, payload| match kind {
            // A WAIT frame.
            0 => {}
            // An ERROR frame.
            1 if payload.is_empty() => code.clear(),
            1 => {
                code.extend(payload.iter().take(2 - code.len().min(2)));
                if *code == error_code::code(ErrorKind::Busy).to_be_bytes() {
                    signals.set_busy();
                }
            }
            _ => signals.count(payload.len() as u64),
        });
        Ok(read)
    }
}

struct ObservedOutput {
    output: Box<dyn Output>,
    signals: ServerSignals,
}

impl Write for ObservedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.output.write(bytes).map_err(|e| self.signals.ended(e))?;
        self.signals.count(written as u64);
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

impl Output for ObservedOutput {
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
    use crate::frames;
    use crate::message::FileFrame;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn attempts_become_rarer_and_end_with_the_patience() {
        for random_key in [0.0, 0.5, 1.0] {
            let began = Instant::now();
            let mut patience = Patience::new(began, PATIENCE, |_| ());
            let mut now = began;
            let mut waits = Vec::new();
            while let Some(wait) = patience.next(now, random_key) {
                waits.push(wait);
                now += wait;
            }
            assert!(now - began < PATIENCE && waits.len() >= 5, "{waits:?}");
            assert!(waits.is_sorted() && waits[0] <= PATIENCE / FIRST_WAIT * 2, "{waits:?}");
            assert!(waits.iter().all(|w| *w <= (PATIENCE / LAST_WAIT).mul_f64(1.5)), "{waits:?}");
            assert_eq!(patience.left(began + PATIENCE), Duration::ZERO);
        }
    }

    #[test]
    fn the_user_is_told_at_once_and_once() {
        static TOLD: AtomicUsize = AtomicUsize::new(0);
        let mut patience = Patience::new(Instant::now(), PATIENCE, |line| {
            let (_, seconds) = line.split_once("h:1 is busy: it is asked again for ").unwrap();
            // A busy machine is told after a part of the deadline.
            let seconds: u64 = seconds.strip_suffix(" s").unwrap().parse().unwrap();
            assert!((1..=25).contains(&seconds), "{line}");
            TOLD.fetch_add(1, Ordering::SeqCst);
        });
        for _ in 0..2 {
            assert!(patience.pause("h:1 is busy", &AtomicBool::new(false)).unwrap());
            assert_eq!(TOLD.load(Ordering::SeqCst), 1);
        }
        let stopped = patience.pause("h:1 is busy", &AtomicBool::new(true));
        assert_eq!(stopped.unwrap_err().kind, ErrorKind::Interrupted);
    }

    /// A transfer that made progress before it was interrupted has the full retry deadline again. Without progress, or
    /// after a hundred interruptions, it does not.
    #[test]
    fn progress_renews_the_retry_deadline_up_to_a_limit() {
        let began = Instant::now();
        let mut patience = Patience::new(began, PATIENCE, |_| ());
        let mut now = began;
        for _ in 0..MAX_RENEWALS {
            now += PATIENCE;
            patience.moved(now, MIN_PROGRESS / 2);
            assert_eq!(patience.left(now), Duration::ZERO);
            patience.moved(now, MIN_PROGRESS / 2);
            assert_eq!(patience.left(now), PATIENCE);
        }
        now += PATIENCE;
        patience.moved(now, 1 << 40);
        assert_eq!(patience.left(now), Duration::ZERO);
    }

    /// ERROR 11 means busy, at any position; other errors do not.
    #[test]
    fn servers_errors_are_distinguished_from_local_ones() {
        let error = |kind| FileFrame::Error(Error::new(kind, "text"));
        for (stream, is_busy, moved) in [
            (vec![FileFrame::Wait, FileFrame::Wait], false, 0),
            (vec![FileFrame::Wait, error(ErrorKind::Busy)], true, 0),
            (vec![error(ErrorKind::NotFound)], false, 0),
            (vec![FileFrame::Data(b"12345"), error(ErrorKind::Busy)], true, 5),
            (
                vec![error(ErrorKind::Busy), FileFrame::Data(b"123"), error(ErrorKind::NotFound)],
                true,
                3,
            ),
            (vec![FileFrame::Done], false, 0),
        ] {
            let mut bytes = Vec::new();
            stream.iter().for_each(|f| frames::write(&mut bytes, f).unwrap());
            for step in [1, 3, 100] {
                let signals = ServerSignals::default();
                let (client_end, FileStream { mut output, .. }) =
                    crate::bench_tests::pair(i64::MAX);
                let mut client_end = signals.observe(client_end);
                output.write_all(&bytes).unwrap();
                output.finish().unwrap();
                while client_end.input.read(&mut vec![0; step]).unwrap() > 0 {}
                client_end.output.write_all(b"four").unwrap();
                assert_eq!(signals.take(), (is_busy, moved + 4), "{stream:?}");
                assert_eq!(signals.take(), (false, 0));
            }
        }
    }
}
