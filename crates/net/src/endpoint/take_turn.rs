//! Futures for items of which each goes to one task: messages, and streams opened by the peer.

use super::connection_ref::ConnectionRef;
use super::shared::Core;
use super::state::ConnectionState;
use super::wait_queue::{Ticket, WaitQueue};
use crate::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Kinds of items.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Message,
    /// Bidirectional streams; `OneWay` are unidirectional ones.
    Both,
    OneWay,
}

impl Kind {
    fn queue(self, state: &mut ConnectionState) -> &mut WaitQueue {
        match self {
            Kind::Message => &mut state.messages,
            Kind::Both => &mut state.accepting[0],
            Kind::OneWay => &mut state.accepting[1],
        }
    }
}

/// A future of the next item, which `take` removes from the core.
pub(super) struct Turn<'a, T, F: FnMut(&mut Core) -> Option<T>> {
    hold: &'a ConnectionRef,
    kind: Kind,
    take: F,
    ticket: Ticket,
}

impl<'a, T, F: FnMut(&mut Core) -> Option<T>> Turn<'a, T, F> {
    pub fn new(hold: &'a ConnectionRef, kind: Kind, take: F) -> Turn<'a, T, F> {
        Turn { hold, kind, take, ticket: Ticket::default() }
    }
}

impl<T, F: FnMut(&mut Core) -> Option<T> + Unpin> Future for Turn<'_, T, F> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T, Error>> {
        let this = self.get_mut();
        let mut core = this.hold.shared().lock();
        let taken = (this.take)(&mut core);
        if let Some(taken) = taken {
            if let Some(state) = core.any_life(this.hold.handle) {
                this.ticket.leave(this.kind.queue(state));
            }
            return Poll::Ready(Ok(taken));
        }
        let state = core.state(this.hold.handle)?;
        this.kind.queue(state).wait(&mut this.ticket, context.waker());
        Poll::Pending
    }
}

/// A woken task that is dropped passes the item to the next task.
impl<T, F: FnMut(&mut Core) -> Option<T>> Drop for Turn<'_, T, F> {
    fn drop(&mut self) {
        if self.ticket.is_unused() {
            return;
        }
        let mut woken: Vec<Waker> = Vec::new();
        {
            let mut core = self.hold.shared().lock();
            let Some(state) = core.any_life(self.hold.handle) else { return };
            let queue = self.kind.queue(state);
            if self.ticket.leave(queue) {
                queue.release(1, &mut woken);
            }
        }
        woken.into_iter().for_each(Waker::wake);
    }
}
