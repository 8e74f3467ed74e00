//! The kernel's TCP without a runtime.

use super::{AttemptSchedule, DialFailure, DialledAddress, FailedAddress};
use crate::error::SystemError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Interval at which a wait checks whether the user has stopped it.
const LOOK: Duration = Duration::from_millis(100);

/// A pending connection.
struct Attempt {
    address: SocketAddr,
    socket: Socket,
    /// Time of its failure.
    until: Instant,
}

/// Connects to the first of these [ordered](super::ordered) addresses that answers. Each attempt fails after
/// `patience`. Blocks the thread until `is_stopped`.
///
/// # Errors
/// No address answers; or the final error [`io::ErrorKind::Interrupted`] if it was stopped.
pub fn connect(
    addresses: &[SocketAddr],
    patience: Duration,
    is_stopped: impl Fn() -> bool,
) -> Result<DialledAddress<TcpStream, io::Error>, DialFailure<io::Error>> {
    let mut schedule = AttemptSchedule::new(addresses);
    let mut running: Vec<Attempt> = Vec::new();
    let mut failed = Vec::new();
    loop {
        let now = Instant::now();
        if is_stopped() {
            return Err(DialFailure::Final(io::ErrorKind::Interrupted.into()));
        }
        let mut at = 0;
        while let Some(attempt) = running.get(at) {
            let cause = match finished(attempt, now) {
                None => {
                    at += 1;
                    continue;
                }
                Some(Ok(())) => None,
                Some(Err(e)) => Some(e),
            };
            let Attempt { address, socket, .. } = running.remove(at);
            match cause.map_or_else(|| socket.set_nonblocking(false), Err) {
                Ok(()) => {
                    let pending = running.iter().map(|attempt| attempt.address).collect();
                    return Ok(DialledAddress { address, value: socket.into(), failed, pending });
                }
                Err(cause) => {
                    failed.push(FailedAddress { address, cause });
                    schedule.hurry();
                }
            }
        }
        if let Some(address) = schedule.begin(Instant::now()) {
            match begun(address) {
                Ok(socket) => running.push(Attempt { address, socket, until: now + patience }),
                Err(cause) => {
                    failed.push(FailedAddress { address, cause });
                    schedule.hurry();
                }
            }
            continue;
        }
        let ends = running.iter().map(|attempt| attempt.until).chain(schedule.due());
        let Some(next) = ends.min() else { return Err(DialFailure::All(failed)) };
        wait(&running, next.saturating_duration_since(now).min(LOOK));
    }
}

/// Begins to connect.
fn begun(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&address.into()) {
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(socket),
        Err(e) if e.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => Ok(socket),
        begun => begun.map(|()| socket),
    }
}

/// The outcome of an attempt, if it is over.
fn finished(attempt: &Attempt, now: Instant) -> Option<io::Result<()>> {
    let mut socket = [PollFd::new(&attempt.socket, PollFlags::OUT)];
    match poll(&mut socket, Some(&Timespec::default())) {
        Ok(0) | Err(Errno::INTR) if now >= attempt.until => {
            Some(Err(io::ErrorKind::TimedOut.into()))
        }
        Ok(0) | Err(Errno::INTR) => None,
        Ok(_) => match attempt.socket.take_error() {
            Ok(None) => Some(Ok(())),
            Ok(Some(e)) | Err(e) => Some(Err(e)),
        },
        Err(e) => Some(Err(e.into())),
    }
}

/// Waits until an attempt may be over, for at most `max`.
fn wait(running: &[Attempt], max: Duration) {
    let mut sockets: Vec<PollFd<'_>> =
        running.iter().map(|attempt| PollFd::new(&attempt.socket, PollFlags::OUT)).collect();
    // Rounded up, so that the time has come afterwards.
    let max = max + Duration::from_micros(1);
    if let Ok(max) = Timespec::try_from(max) {
        // An error is that of the attempts, which are looked at next.
        let _ = poll(&mut sockets, Some(&max));
    }
}

/// The failure of a TCP connection in a few words, for a list of addresses.
pub fn brief(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::TimedOut => "no answer".into(),
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => "no route".into(),
        kind => SystemError::from(io::Error::from(kind)).to_string(),
    }
}
