//! The blocking API: waits for futures on the calling thread, without a runtime.

use std::cell::RefCell;
use std::future::Future;
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
}

/// Waits for a future. Must not be called on a thread of an asynchronous runtime.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = WAKER.with_borrow(Clone::clone);
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        std::thread::park();
    }
}

/// Waits for a future for at most `most`; `None` if it is not ready by then.
pub fn block_on_for<F: Future>(most: Duration, future: F) -> Option<F::Output> {
    let begin = Instant::now();
    let waker = WAKER.with_borrow(Clone::clone);
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Some(value);
        }
        let left = most.checked_sub(begin.elapsed()).filter(|d| !d.is_zero())?;
        std::thread::park_timeout(left);
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
