//! The blocking API: waits for futures on the calling thread, without a runtime.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    /// One waker per thread, since a thread waits for one future at a time.
    static WAKER: RefCell<Waker> = RefCell::new(Arc::new(Unpark(std::thread::current())).into());
    /// The earliest time for which the thread's future waits in [`sleep_until`].
    static NEXT: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Waits for a time. Only within [`block_on`] and [`block_on_for`]: their thread wakes up by itself.
pub async fn sleep_until(time: Instant) {
    poll_fn(|_| {
        if Instant::now() >= time {
            return Poll::Ready(());
        }
        NEXT.set(Some(NEXT.get().map_or(time, |next| next.min(time))));
        Poll::Pending
    })
    .await;
}

/// Waits for a future. Must not be called on a thread of an asynchronous runtime.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = WAKER.with_borrow(Clone::clone);
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        NEXT.set(None);
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        match NEXT.get() {
            Some(next) => std::thread::park_timeout(next.saturating_duration_since(Instant::now())),
            None => std::thread::park(),
        }
    }
}

/// Waits for a future for at most `max`; `None` if it is not ready by then.
pub fn block_on_for<F: Future>(max: Duration, future: F) -> Option<F::Output> {
    let begin = Instant::now();
    let waker = WAKER.with_borrow(Clone::clone);
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        NEXT.set(None);
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Some(value);
        }
        let now = Instant::now();
        let left = max.checked_sub(now.duration_since(begin)).filter(|d| !d.is_zero())?;
        let next = NEXT.get().map_or(left, |next| next.saturating_duration_since(now));
        std::thread::park_timeout(left.min(next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_the_future_or_its_patience() {
        assert_eq!(block_on(async { 7 }), 7);
        let never = std::future::pending::<()>();
        assert_eq!(block_on_for(Duration::from_millis(5), never), None);
        let mut turns = 0;
        let other = std::future::poll_fn(|context| {
            turns += 1;
            let waker = context.waker().clone();
            std::thread::spawn(move || waker.wake());
            if turns == 3 { Poll::Ready(turns) } else { Poll::Pending }
        });
        assert_eq!(block_on(other), 3);
    }
}
