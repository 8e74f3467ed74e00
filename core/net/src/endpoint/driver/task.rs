//! The task that drives an endpoint in the caller's tokio runtime. Received data wakes the waiting tasks on the same
//! thread. Everything that these tasks send until they wait again is sent together: data, the end of the stream, and
//! the report that acknowledges the request.

use super::Ending;
use super::readiness::Readiness;
use super::timer::Timer;
use crate::endpoint::shared::EndpointShared;
use crate::endpoint::turn::PendingWork;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

/// The endpoint's registration in the runtime.
pub struct RuntimeRegistration {
    socket: Readiness,
    /// Number of socket replacements when this socket was registered.
    rebound: u64,
    timer: Timer,
}

impl RuntimeRegistration {
    /// Registers in the current runtime.
    pub fn new(shared: &EndpointShared) -> io::Result<RuntimeRegistration> {
        let rebound = shared.rebound();
        let socket = Readiness::new(&shared.socket())?;
        Ok(RuntimeRegistration { socket, rebound, timer: Timer::new()? })
    }

    /// Registers the endpoint's new socket if it was replaced. If the system refuses, the next turn tries again.
    fn follow(&mut self, shared: &EndpointShared) {
        let rebound = shared.rebound();
        if rebound != self.rebound
            && let Ok(socket) = Readiness::new(&shared.socket())
        {
            self.socket = socket;
            self.rebound = rebound;
        }
    }

    /// Receives if the socket may be readable. A batch that is not full tells the runtime that the socket is empty,
    /// without another system call.
    fn receive(&self, shared: &EndpointShared) {
        self.socket.receive(|| {
            let more = shared.turn().receive();
            if more { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
        });
    }

    /// Sends; returns whether the socket is full.
    fn is_full(&mut self, shared: &EndpointShared) -> bool {
        let mut turn = shared.turn();
        turn.has_more()
            && self.socket.is_full(&shared.socket(), || match turn.flush(shared) {
                true => Ok(()),
                false => Err(io::ErrorKind::WouldBlock.into()),
            })
    }

    /// Ready when another turn is necessary.
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        shared: &EndpointShared,
        next: &PendingWork,
    ) -> Poll<()> {
        shared.set_driver(context.waker());
        let is_ready = !next.is_busy && !shared.is_asleep()
            || self.socket.poll_readable(context).is_ready()
            || next.is_full && self.socket.poll_writable(context).is_ready()
            || self.timer.poll(context, next.now, next.due).is_ready();
        if is_ready {
            shared.wake_up();
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

/// Runs until the endpoint is closed and its peers are informed. A runtime that shuts down drops this future, perhaps
/// before its first poll.
pub async fn run(ending: Ending, mut registered: RuntimeRegistration) {
    let shared = &*ending.0;
    loop {
        registered.follow(shared);
        registered.receive(shared);
        let woke = shared.turn().begin(shared);
        if woke {
            // Their data leaves together with the reports of the received packets.
            shared.wake_up();
            let_others_run().await;
            if !shared.was_called() {
                // A future in `block_on` runs only after this task has yielded.
                tokio::task::yield_now().await;
            }
        }
        let mut next = shared.turn().end(shared);
        next.is_full = registered.is_full(shared);
        if next.is_over {
            break;
        }
        if next.is_busy && !next.is_full {
            let_others_run().await;
        } else {
            poll_fn(|context| registered.poll(context, shared, &next)).await;
        }
    }
}

/// Lets every ready task run, and returns without polling the system.
async fn let_others_run() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
