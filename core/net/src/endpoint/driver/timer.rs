//! A timer in the caller's runtime. On Linux it is a kernel timer (timerfd): the runtime's own have a resolution of a
//! millisecond, in which a pacer sends several packets. Elsewhere it is the runtime's.

use narrows_base::Time;
use std::io;
use std::task::{Context, Poll};

#[cfg(any(target_os = "linux", target_os = "android"))]
pub use kernel::Timer;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub use runtime::Timer;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod kernel {
    use super::{Context, Poll, Time, io};
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use std::os::fd::OwnedFd;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    pub struct Timer {
        fd: AsyncFd<OwnedFd>,
        /// When the timer fires.
        armed: Time,
    }

    impl Timer {
        pub fn new() -> io::Result<Timer> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            #[allow(
                deprecated,
                reason = "its successor is unsafe, for types whose descriptor changes"
            )]
            let fd = AsyncFd::with_interest(fd, Interest::READABLE)?;
            Ok(Timer { fd, armed: Time::NEVER })
        }

        /// Ready at `due`, or earlier if the timer was set for an earlier time: a deadline that moves later costs no
        /// system call until the earlier one passes.
        pub fn poll(&mut self, context: &mut Context<'_>, now: Time, due: Time) -> Poll<()> {
            if due <= now {
                return Poll::Ready(());
            }
            if !due.is_never() && (due < self.armed || self.armed <= now) {
                let wait = due.since(now).as_nanos();
                let it_value = Timespec {
                    tv_sec: (wait / 1_000_000_000) as _,
                    tv_nsec: (wait % 1_000_000_000) as _,
                };
                let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
                let spec = Itimerspec { it_interval, it_value };
                if timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &spec).is_ok() {
                    self.armed = due;
                }
            }
            match self.fd.poll_read_ready(context) {
                Poll::Ready(Ok(mut fired)) => {
                    // The timer is not read: setting it again makes it readable again.
                    fired.clear_ready();
                    self.armed = Time::NEVER;
                    Poll::Ready(())
                }
                Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
            }
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod runtime {
    use super::{Context, Poll, Time, io};
    use std::future::Future;
    use std::pin::Pin;
    use std::time::Duration;
    use tokio::time::{Sleep, sleep};

    pub struct Timer {
        sleep: Pin<Box<Sleep>>,
        armed: Time,
    }

    impl Timer {
        pub fn new() -> io::Result<Timer> {
            Ok(Timer { sleep: Box::pin(sleep(Duration::ZERO)), armed: Time::NEVER })
        }

        /// Ready at `due`, or earlier if the timer was set for an earlier time.
        pub fn poll(&mut self, context: &mut Context<'_>, now: Time, due: Time) -> Poll<()> {
            if due <= now {
                return Poll::Ready(());
            }
            if due.is_never() {
                return Poll::Pending;
            }
            if due < self.armed || self.armed <= now {
                let wait = Duration::from_nanos(due.since(now).as_nanos());
                self.sleep.as_mut().reset(tokio::time::Instant::now() + wait);
                self.armed = due;
            }
            let fired = self.sleep.as_mut().poll(context);
            if fired.is_ready() {
                self.armed = Time::NEVER;
            }
            fired
        }
    }
}
