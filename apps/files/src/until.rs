//! Conditions that end a stream's blocking reads and writes.

use crate::requests::SlotView;
use narrows_peers::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

/// A condition that ends a wait.
#[derive(Clone)]
pub(crate) enum Until {
    /// The user stops the transfer.
    Stopped(&'static AtomicBool),
    /// The request's slot is revoked.
    GivenUp(SlotView),
    /// Only the end of the connection itself.
    HungUp,
}

impl Until {
    /// The error, once the condition holds.
    pub fn over(&self) -> Option<Error> {
        match self {
            Until::Stopped(stop) => stop.load(Ordering::SeqCst).then(Error::interrupted),
            Until::GivenUp(slot) => slot.given_up(),
            Until::HungUp => None,
        }
    }

    /// As [`Until::over`]; registers the waker for a revoked slot. A user's stop wakes no task.
    pub fn poll(&self, waker: &Waker) -> Option<Error> {
        match self {
            Until::Stopped(_) | Until::HungUp => self.over(),
            Until::GivenUp(slot) => slot.poll(waker),
        }
    }
}
