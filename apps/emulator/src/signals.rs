//! Signals as events: they end a link, or are passed on to its commands.

use crate::error::Error;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::process::Child;
use std::time::Duration;

/// `si_code` of a signal that the terminal sent to all its programs.
const FROM_KERNEL: i32 = 0x80;

/// A signal that was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceivedSignal {
    /// A command may have ended.
    Child,
    /// A request to stop.
    Stop {
        /// Number of the signal.
        signal: i32,
        /// The terminal has already sent the signal to the commands, too.
        everybody: bool,
    },
}

/// Receives the signals by a descriptor; they have no other effect on the process.
#[derive(Debug)]
pub struct SignalReceiver {
    descriptor: SignalFd,
}

impl SignalReceiver {
    /// From now on signals are kept for [`wait`](SignalReceiver::wait). Call it before any thread is started, so that no
    /// thread receives them. Programs that are started receive theirs as usual.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn take() -> Result<SignalReceiver, Error> {
        let mut set = SigSet::empty();
        for signal in
            [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGCHLD]
        {
            set.add(signal);
        }
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let taken = set.thread_block().and_then(|()| SignalFd::with_flags(&set, flags));
        let descriptor = taken.map_err(|e| Error::system("cannot receive signals", &e.into()))?;
        Ok(SignalReceiver { descriptor })
    }

    /// The next event, if one occurs within this time.
    pub fn wait(&self, patience: Duration) -> Option<ReceivedSignal> {
        let timeout = Timespec {
            tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(patience.subsec_nanos()),
        };
        let _ = poll(&mut [PollFd::new(&self.descriptor, PollFlags::IN)], Some(&timeout));
        let signal = self.descriptor.read_signal().ok()??;
        if signal.ssi_signo == Signal::SIGCHLD as u32 {
            return Some(ReceivedSignal::Child);
        }
        let signo = i32::try_from(signal.ssi_signo).unwrap_or_default();
        Some(ReceivedSignal::Stop { signal: signo, everybody: signal.ssi_code == FROM_KERNEL })
    }
}

/// Passes a signal on to a command.
pub fn forward(child: &Child, signal: i32) {
    if let (Ok(pid), Ok(signal)) = (i32::try_from(child.id()), Signal::try_from(signal)) {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}
