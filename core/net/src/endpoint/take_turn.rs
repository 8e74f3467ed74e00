//! Futures for items of which each goes to one task: messages, and streams opened by the peer.

use super::connection_ref::ConnectionRef;
use super::shared::Core;
use super::state::AppConnection;
use super::wait_queue::{Ticket, WaitQueue};
use crate::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Streams or messages that an application accepts.
#[derive(Clone, Copy, Debug)]
pub(super) enum ItemKind {
    Message,
    /// Bidirectional streams; `OneWay` are unidirectional ones.
    Both,
    OneWay,
}

impl ItemKind {
    fn queue(self, state: &mut AppConnection) -> &mut WaitQueue {
        match self {
            ItemKind::Message => &mut state.messages,
            ItemKind::Both => &mut state.accepting[0],
            ItemKind::OneWay => &mut state.accepting[1],
        }
    }
}

/// A future of the next item, which `take` removes from the core.
pub(super) struct TakeTurn<'a, T, F: FnMut(&mut Core) -> Option<T>> {
    hold: &'a ConnectionRef,
    kind: ItemKind,
    take: F,
    ticket: Ticket,
}

impl<'a, T, F: FnMut(&mut Core) -> Option<T>> TakeTurn<'a, T, F> {
    pub fn new(hold: &'a ConnectionRef, kind: ItemKind, take: F) -> TakeTurn<'a, T, F> {
        TakeTurn { hold, kind, take, ticket: Ticket::default() }
    }
}

impl<T, F: FnMut(&mut Core) -> Option<T> + Unpin> Future for TakeTurn<'_, T, F> {
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
impl<T, F: FnMut(&mut Core) -> Option<T>> Drop for TakeTurn<'_, T, F> {
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
