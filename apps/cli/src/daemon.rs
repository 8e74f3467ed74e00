//! A command that runs until it is stopped, as a service: signals, and messages to systemd.

use crate::failure::Failure;
use crate::log::{Log, LogLevel};
use crate::terminal::catch_interrupt;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by SIGHUP.
static RELOAD: AtomicBool = AtomicBool::new(false);

/// Stops the command at Ctrl-C or SIGTERM. SIGHUP requests a [`reload`], unless it reports the end of the terminal. Call
/// it before any thread is started: each thread has a signal mask of its own.
pub fn catch_signals() {
    #[cfg(unix)]
    unix::catch();
    catch_interrupt();
}

#[cfg(unix)]
mod unix {
    use crate::daemon::RELOAD;
    use crate::terminal::STOP;
    use nix::sys::signal::{SigSet, Signal};
    use std::io::{IsTerminal as _, stdin};
    use std::sync::atomic::Ordering;

    pub fn catch() {
        let signals = SigSet::from_iter([Signal::SIGHUP, Signal::SIGTERM]);
        // If the system refuses, both signals end the process as by default.
        if signals.thread_block().is_err() {
            return;
        }
        let had_terminal = stdin().is_terminal();
        let wait = move || {
            while let Ok(signal) = signals.wait() {
                let is_hung_up = had_terminal && !stdin().is_terminal();
                if signal == Signal::SIGHUP && !is_hung_up {
                    RELOAD.store(true, Ordering::SeqCst);
                } else if STOP.swap(true, Ordering::SeqCst) {
                    std::process::exit(128 + signal as i32);
                }
            }
        };
        if std::thread::Builder::new().name("signals".into()).spawn(wait).is_err() {
            let _ = signals.thread_unblock();
        }
    }

    /// Sends a message to the socket of systemd, whose name begins with `@` if it is abstract.
    #[cfg(target_os = "linux")]
    pub fn notify(message: &str) -> std::io::Result<()> {
        use std::os::linux::net::SocketAddrExt as _;
        use std::os::unix::ffi::OsStrExt as _;
        use std::os::unix::net::{SocketAddr, UnixDatagram};
        let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return Ok(()) };
        let to = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(&name)?,
        };
        UnixDatagram::unbound()?.send_to_addr(message.as_bytes(), &to).map(drop)
    }

    /// Microseconds of the monotonic clock, which systemd compares with the time of its request.
    #[cfg(target_os = "linux")]
    pub fn monotonic_micros() -> i64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        now.tv_sec * 1_000_000 + now.tv_nsec / 1000
    }
}

/// Sends a message to systemd, if that started the command.
#[cfg(target_os = "linux")]
fn notify(message: &str) {
    // A failure changes nothing here.
    let _ = unix::notify(message);
}
#[cfg(not(target_os = "linux"))]
fn notify(_: &str) {}

/// The command is ready.
pub fn ready() {
    notify("READY=1");
}

/// The command ends.
pub fn stopping() {
    notify("STOPPING=1");
}

/// Calls `load` if SIGHUP has come, and logs the result. To be called a few times a second.
pub fn reload(log: &Log, load: impl FnOnce() -> Result<String, Failure>) {
    if !RELOAD.swap(false, Ordering::SeqCst) {
        return;
    }
    #[cfg(target_os = "linux")]
    notify(&format!("RELOADING=1\nMONOTONIC_USEC={}", unix::monotonic_micros()));
    match load() {
        Ok(line) => log.line(LogLevel::Info, "reload", &format!("reloaded: {line}")),
        Err(e) => {
            let why = e.line();
            log.line(
                LogLevel::Warning,
                "reload",
                &format!("not reloaded, all stays as it is: {why}"),
            );
        }
    }
    ready();
}

/// Answer to SIGHUP of a command without lists.
///
/// # Errors
/// Always.
pub fn nothing_to_reload<T>() -> Result<T, Failure> {
    Err(Failure::Input("this command reads no lists of clients or targets".into()))
}
