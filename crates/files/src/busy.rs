//! A server that is busy is asked again: for how long, and how often, over either transport.

use crate::error::{Error, Kind};
use crate::follower::Follower;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// As long as a server that does not answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Before the second attempt; then twice as long each time.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LAST_WAIT: Duration = Duration::from_secs(2);
/// How often a wait looks whether the user has stopped it.
const LOOK: Duration = Duration::from_millis(250);

/// What is left of it.
pub(crate) struct Patience {
    until: Instant,
    wait: Duration,
    is_told: bool,
    tell: fn(&str),
}

impl Patience {
    /// From now on; `tell` gets the line for the user.
    pub fn new(now: Instant, tell: fn(&str)) -> Patience {
        Patience { until: now + PATIENCE, wait: FIRST_WAIT, is_told: false, tell }
    }

    /// How long an attempt may take that begins now.
    pub fn left(&self, now: Instant) -> Duration {
        self.until.saturating_duration_since(now)
    }

    /// How long to wait before the next attempt, if there may be one: between half of a time that doubles
    /// and three halves (`random_key`: 0 to 1), so that those who were turned away together do not come again
    /// together.
    fn next(&mut self, now: Instant, random_key: f64) -> Option<Duration> {
        let wait = self.wait.mul_f64(0.5 + random_key);
        self.wait = (self.wait * 2).min(LAST_WAIT);
        (wait < self.left(now)).then_some(wait)
    }

    /// Tells the user that this server is busy, at once, but only once.
    pub fn tell(&mut self, server: &str) {
        if !std::mem::replace(&mut self.is_told, true) {
            let seconds = self.left(Instant::now()).as_secs_f64();
            (self.tell)(&format!("{server} is busy: it is asked again for {seconds:.0} s"));
        }
    }

    /// Waits before the next attempt; false if there may be none.
    ///
    /// # Errors
    /// The user has stopped it.
    pub fn pause(&mut self, server: &str, stop: &AtomicBool) -> Result<bool, Error> {
        let mut random_key = [0; 2];
        // Without randomness this client comes again when others do.
        let _ = getrandom::fill(&mut random_key);
        let random_key = f64::from(u16::from_be_bytes(random_key)) / f64::from(u16::MAX);
        let Some(mut left) = self.next(Instant::now(), random_key) else { return Ok(false) };
        self.tell(server);
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

/// Whether a server has answered anything but that it is busy; clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Answered(Arc<AtomicBool>);

impl Answered {
    /// Whether it has.
    pub fn is_true(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// What is read from this stream counts.
    pub fn notice(&self, input: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        let (answered, follower) = (self.clone(), Follower::default());
        Box::new(Noticed { input, answered, follower, code: Vec::new() })
    }
}

/// A reader that notes what comes.
struct Noticed {
    input: Box<dyn Read + Send>,
    answered: Answered,
    follower: Follower,
    /// Of the ERROR that comes.
    code: Vec<u8>,
}

impl Read for Noticed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(into)?;
        let Noticed { answered, follower, code, .. } = self;
        if !answered.is_true() {
            follower.pass(into.get(..read).unwrap_or_default(), |kind, payload| {
                let is_answer = match kind {
                    // WAIT.
                    0 => false,
                    // ERROR.
                    1 if payload.is_empty() => {
                        code.clear();
                        false
                    }
                    1 => {
                        code.extend(payload.iter().take(2 - code.len().min(2)));
                        code.len() == 2 && *code != Kind::Busy.code().to_be_bytes()
                    }
                    _ => true,
                };
                if is_answer {
                    answered.0.store(true, Ordering::SeqCst);
                }
            });
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames;
    use crate::message::Frame;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn attempts_become_rarer_and_end_with_the_patience() {
        for random_key in [0.0, 0.5, 1.0] {
            let began = Instant::now();
            let (mut patience, mut now, mut waits) =
                (Patience::new(began, |_| ()), began, Vec::new());
            while let Some(wait) = patience.next(now, random_key) {
                waits.push(wait);
                now += wait;
            }
            assert!(now - began < PATIENCE && waits.len() >= 5, "{waits:?}");
            assert!(waits.is_sorted() && waits[0] <= FIRST_WAIT * 2, "{waits:?}");
            assert!(waits.iter().all(|w| *w <= LAST_WAIT.mul_f64(1.5)), "{waits:?}");
            assert_eq!(patience.left(began + PATIENCE), Duration::ZERO);
        }
    }

    #[test]
    fn the_user_is_told_at_once_and_once() {
        static TOLD: AtomicUsize = AtomicUsize::new(0);
        let mut patience = Patience::new(Instant::now(), |line| {
            assert!(line.contains("h:1 is busy") && line.contains("10 s"), "{line}");
            TOLD.fetch_add(1, Ordering::SeqCst);
        });
        for _ in 0..2 {
            assert!(patience.pause("h:1", &AtomicBool::new(false)).unwrap());
            assert_eq!(TOLD.load(Ordering::SeqCst), 1);
        }
        let stopped = patience.pause("h:1", &AtomicBool::new(true));
        assert_eq!(stopped.unwrap_err().kind, Kind::Interrupted);
    }

    /// WAIT and ERROR 11 are no answers; any other frame is, also behind them.
    #[test]
    fn what_is_not_busy_is_an_answer() {
        let error = |kind| Frame::Error(Error::new(kind, "text"));
        for (stream, is_answer) in [
            (vec![Frame::Wait, Frame::Wait], false),
            (vec![Frame::Wait, error(Kind::Busy)], false),
            (vec![error(Kind::NotFound)], true),
            (vec![error(Kind::Busy), Frame::Data(b"")], true),
            (vec![Frame::Done], true),
        ] {
            let mut bytes = Vec::new();
            stream.iter().for_each(|f| frames::write(&mut bytes, f).unwrap());
            for step in [1, 3, 100] {
                let (answered, bytes) = (Answered::default(), bytes.clone());
                let mut input = answered.notice(Box::new(std::io::Cursor::new(bytes)));
                while input.read(&mut vec![0; step]).unwrap() > 0 {}
                assert_eq!(answered.is_true(), is_answer, "{stream:?}");
            }
        }
    }
}
