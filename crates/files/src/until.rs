//! Deadlines of a stream's reads and writes.

use crate::error::Error;
use crate::requests::View;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

/// What ends a wait.
#[derive(Clone)]
pub(crate) enum Until {
    /// The user stops the transfer.
    Stopped(&'static AtomicBool),
    /// The request's slot has to be given up.
    GivenUp(View),
}

impl Until {
    /// Why it is over, if it is.
    pub fn over(&self) -> Option<Error> {
        match self {
            Until::Stopped(stop) => stop.load(Ordering::SeqCst).then(Error::interrupted),
            Until::GivenUp(slot) => slot.given_up(),
        }
    }

    /// The same, and whom to wake when that changes; of a user's stop nobody tells.
    pub fn poll(&self, waker: &Waker) -> Option<Error> {
        match self {
            Until::Stopped(_) => self.over(),
            Until::GivenUp(slot) => slot.poll(waker),
        }
    }
}
