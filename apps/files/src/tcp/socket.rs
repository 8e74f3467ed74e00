//! A TCP socket that notices the user's stop and a dead peer.

use crate::silence::Silence;
use crate::until::Until;
use narrows_peers::error::{Error, ErrorKind, shown};
use narrows_peers::rate_cap::RateCap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Time limit of connecting, and of the handshake.
pub const OPENING: Duration = Duration::from_secs(30);
/// Interval at which a blocking call checks its deadlines.
const LOOK: Duration = Duration::from_millis(250);

/// Time for which the peer's last bytes are read.
const LINGER: Duration = Duration::from_secs(2);

/// Both directions of one connection; clones are the same connection.
#[derive(Clone)]
pub(super) struct TcpSocket {
    tcp: Arc<TcpStream>,
    waits: Arc<Mutex<WaitLimits>>,
    silence: Silence,
}

/// Limits on the waits of both directions.
struct WaitLimits {
    until: Until,
    /// Absolute deadline of the handshake or the first request.
    deadline: Option<Instant>,
    /// Bounds the rate of sent bytes.
    cap: Option<Arc<RateCap>>,
}

impl TcpSocket {
    pub(super) fn new(tcp: TcpStream, until: Until, silence: Duration) -> io::Result<TcpSocket> {
        tcp.set_nodelay(true)?;
        tcp.set_read_timeout(Some(LOOK))?;
        tcp.set_write_timeout(Some(LOOK))?;
        let waits = Arc::new(Mutex::new(WaitLimits { until, deadline: None, cap: None }));
        Ok(TcpSocket { tcp: Arc::new(tcp), waits, silence: Silence::new(silence) })
    }

    fn waits(&self) -> MutexGuard<'_, WaitLimits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn due(&self, deadline: Option<Instant>) {
        self.waits().deadline = deadline;
    }

    /// Replaces the condition that ends waits.
    pub(super) fn until(&self, until: Until) {
        self.waits().until = until;
    }

    /// Bounds the rate of sent bytes from now on.
    pub(super) fn limit(&self, cap: Arc<RateCap>) {
        self.waits().cap = Some(cap);
    }

    /// The kernel's socket, as long as a half of the stream is open.
    pub(super) fn downgrade(&self) -> Weak<TcpStream> {
        Arc::downgrade(&self.tcp)
    }

    /// Shuts down both directions, also while threads wait in them.
    pub(super) fn hang_up(&self) {
        let _ = self.tcp.shutdown(Shutdown::Both);
    }

    /// Shuts down the sending direction.
    pub(super) fn shut(&self) -> io::Result<()> {
        self.tcp.shutdown(Shutdown::Write)
    }

    /// Reads and drops incoming bytes. Otherwise the kernel would answer them with a reset that destroys the last bytes
    /// sent.
    pub(super) fn linger(&mut self) {
        if self.shut().is_err() {
            return;
        }
        self.due(Some(Instant::now() + LINGER));
        let mut nothing = vec![0; 64 * 1024];
        while matches!(self.read(&mut nothing), Ok(n) if n > 0) {}
    }

    fn patient<T>(&self, mut attempt: impl FnMut(&TcpStream) -> io::Result<T>) -> io::Result<T> {
        let begun = Instant::now();
        loop {
            match attempt(&self.tcp) {
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::WouldBlock
                            | io::ErrorKind::TimedOut
                            | io::ErrorKind::Interrupted
                    ) => {}
                other => {
                    self.silence.moved();
                    return other;
                }
            }
            let waits = self.waits();
            if let Some(e) = waits.until.over() {
                return Err(e.into_io());
            }
            if waits.deadline.is_some_and(|d| Instant::now() >= d) {
                return Err(Error::new(ErrorKind::Cut, "no answer in time").into_io());
            }
            drop(waits);
            if let Some(e) = self.silence.over(begun) {
                return Err(e.into_io());
            }
        }
    }

    /// Sets the kernel's congestion control.
    #[cfg(target_os = "linux")]
    pub(super) fn set_congestion(&self, name: &str) -> Result<(), Error> {
        rustix::net::sockopt::set_tcp_congestion(&*self.tcp, name).map_err(|_| no_congestion(name))
    }
    #[cfg(not(target_os = "linux"))]
    pub(super) fn set_congestion(&self, name: &str) -> Result<(), Error> {
        Err(no_congestion(name))
    }

    /// Name of the kernel's congestion control.
    #[cfg(target_os = "linux")]
    pub(super) fn congestion(&self) -> String {
        rustix::net::sockopt::tcp_congestion(&*self.tcp).unwrap_or_default()
    }
    #[cfg(not(target_os = "linux"))]
    pub(super) fn congestion(&self) -> String {
        String::new()
    }
}

impl Read for TcpSocket {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.patient(|mut tcp| tcp.read(to))
    }
}

impl Write for TcpSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let cap = self.waits().cap.clone();
        let Some(cap) = cap else { return self.patient(|mut tcp| tcp.write(bytes)) };
        let piece = bytes.get(..cap.piece()).unwrap_or(bytes);
        cap.pass(piece.len(), || match self.waits().until.over() {
            Some(e) => Err(e.into_io()),
            None => Ok(()),
        })?;
        self.patient(|mut tcp| tcp.write(piece))
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Checks a name before it is passed to a kernel; the form is that of `tcp_allowed_congestion_control`.
pub(super) fn check_congestion_name(name: &str) -> Result<(), Error> {
    let fits = !name.is_empty()
        && name.len() < 16
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if fits { Ok(()) } else { Err(no_congestion(name)) }
}

fn no_congestion(name: &str) -> Error {
    let path = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
    let there = std::fs::read_to_string(path).unwrap_or_default();
    let known: Vec<&str> = there.split_whitespace().collect();
    let short: String = name.chars().take(40).collect();
    let line = if known.is_empty() {
        format!("tcp+{}: this system does not let its congestion control be chosen", shown(&short))
    } else {
        let e = narrows_base::SpecError::unknown("congestion control", &shown(&short), &known);
        format!("tcp+{}: {e} (of this kernel)", shown(&short))
    };
    Error::new(ErrorKind::Input, line)
}
