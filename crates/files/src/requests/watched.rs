//! A stream that reports its traffic to its slot, and whose reads and writes fail when the slot is revoked.

use super::View;
use crate::stream::{Output, Stream};
use narrows_peers::error::Error;
use std::io::{self, Read, Write};

/// Wraps a stream so that its slot observes it.
pub fn watched(stream: Stream, slot: &View) -> Stream {
    let Stream { input, output } = stream;
    Stream {
        input: Box::new(Watched { inner: input, slot: slot.clone() }),
        output: Box::new(Watched { inner: output, slot: slot.clone() }),
    }
}

struct Watched<S> {
    inner: S,
    slot: View,
}

impl<S> Watched<S> {
    fn seen(&mut self, act: impl FnOnce(&mut S) -> io::Result<usize>) -> io::Result<usize> {
        if let Some(e) = self.slot.given_up() {
            return Err(e.into_io());
        }
        let done = act(&mut self.inner);
        match (&done, self.slot.given_up()) {
            (Ok(n), _) => self.slot.moved(*n as u64),
            (Err(_), Some(e)) => return Err(e.into_io()),
            _ => {}
        }
        done
    }
}

impl Read for Watched<Box<dyn Read + Send>> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.seen(|input| input.read(to))
    }
}

impl Write for Watched<Box<dyn Output>> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.seen(|output| output.write(bytes))
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
