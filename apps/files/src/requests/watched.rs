//! A stream that reports its traffic to its slot and keeps to its client's rate. Its reads and writes fail when the slot
//! is revoked.

use super::SlotView;
use crate::stream::{FileStream, Output};
use narrows_peers::error::Error;
use narrows_peers::rate_cap::RateCap;
use std::io::{self, Read, Write};
use std::sync::Arc;

/// Wraps a stream so that its slot observes it, and `cap` bounds the rate of both directions together.
pub fn watched(stream: FileStream, slot: &SlotView, cap: &Arc<RateCap>) -> FileStream {
    let FileStream { input, output } = stream;
    FileStream {
        input: Box::new(Watched { inner: input, slot: slot.clone(), cap: cap.clone() }),
        output: Box::new(Watched { inner: output, slot: slot.clone(), cap: cap.clone() }),
    }
}

struct Watched<S> {
    inner: S,
    slot: SlotView,
    cap: Arc<RateCap>,
}

impl<S> Watched<S> {
    fn seen(&mut self, act: impl FnOnce(&mut S) -> io::Result<usize>) -> io::Result<usize> {
        self.check()?;
        let done = act(&mut self.inner);
        match (&done, self.slot.given_up()) {
            (Ok(n), _) => self.slot.moved(*n as u64),
            (Err(_), Some(e)) => return Err(e.into_io()),
            _ => {}
        }
        done
    }

    fn check(&self) -> io::Result<()> {
        self.slot.given_up().map_or(Ok(()), |e| Err(e.into_io()))
    }
}

impl Read for Watched<Box<dyn Read + Send>> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let max = to.len().min(self.cap.piece());
        let n = self.seen(|input| input.read(to.get_mut(..max).unwrap_or_default()))?;
        self.cap.pass(n, || self.check())?;
        Ok(n)
    }
}

impl Write for Watched<Box<dyn Output>> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = bytes.get(..self.cap.piece()).unwrap_or(bytes);
        self.cap.pass(piece.len(), || self.check())?;
        self.seen(|output| output.write(piece))
    }
    fn flush(&mut self) -> io::Result<()> {
        self.seen(|output| output.flush().map(|()| 0)).map(|_| ())
    }
}

impl Output for Watched<Box<dyn Output>> {
    fn finish(&mut self) -> io::Result<()> {
        self.inner.finish()
    }
    fn abort(&mut self, why: &Error) {
        self.inner.abort(why);
    }
}
