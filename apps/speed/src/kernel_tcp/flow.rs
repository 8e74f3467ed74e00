//! One connection: its sender and receiver, and the arrivals with their times.

use narrows_base::Time;
use narrows_emulator::Namespace;
use narrows_kernel::TcpInfo;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{set_tcp_congestion, socket_error};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long a call that waits may not notice the end.
const PATIENCE: Duration = Duration::from_millis(50);
const CHUNK: usize = 65536;

/// Group, congestion control and times of a flow.
#[derive(Debug)]
pub(super) struct FlowPlan {
    pub group: usize,
    pub congestion: String,
    pub start: Time,
    pub stop: Time,
    /// All times count from here.
    pub begin: Instant,
    pub measure_from: Time,
    pub end: Time,
}

/// A connection that sends without end.
#[derive(Debug)]
pub(super) struct KernelTcpFlow {
    plan: FlowPlan,
    to: SocketAddr,
    listener: TcpListener,
    /// Made in the sender's namespace, not connected yet.
    socket: Mutex<Option<OwnedFd>>,
    near: OnceLock<TcpStream>,
    /// Bytes by the time of their arrival, within the measured span.
    arrived: Mutex<Vec<(Time, u64)>>,
    failed: Mutex<Option<String>>,
}

impl KernelTcpFlow {
    /// A flow that listens at `address` in the namespace `to`, with its sender in `from`.
    pub fn new(
        plan: FlowPlan,
        from: &Namespace,
        to: &Namespace,
        address: IpAddr,
    ) -> Result<KernelTcpFlow, String> {
        let text = |e: std::io::Error| format!("the kernel's TCP: {e}");
        let within = |e: narrows_emulator::Error| e.to_string();
        let make = || -> std::io::Result<TcpListener> {
            let listener = TcpListener::bind((address, 0))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = to.enter(make).map_err(within)?.map_err(text)?;
        let to = listener.local_addr().map_err(text)?;
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let make = || socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP));
        let socket = from.enter(make).map_err(within)?.map_err(|e| text(e.into()))?;
        let congestion = &plan.congestion;
        set_tcp_congestion(&socket, congestion)
            .map_err(|e| format!("the kernel's TCP: congestion control '{congestion}': {e}"))?;
        let socket = Mutex::new(Some(socket));
        let near = OnceLock::new();
        let arrived = Mutex::default();
        let failed = Mutex::default();
        Ok(KernelTcpFlow { plan, to, listener, socket, near, arrived, failed })
    }

    pub fn group(&self) -> usize {
        self.plan.group
    }
    pub fn start(&self) -> Time {
        self.plan.start
    }
    /// Arrivals in the measured span.
    pub fn arrived(&self) -> Vec<(Time, u64)> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    /// The kernel's `TCP_INFO`, once the socket is connected.
    pub fn info(&self) -> Option<TcpInfo> {
        self.near.get().and_then(|near| TcpInfo::of(near).ok())
    }
    /// The first error of either end.
    pub fn check(&self) -> Result<(), String> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        failed.map_or(Ok(()), |why| Err(format!("the kernel's TCP: {why}")))
    }

    fn now(&self) -> Time {
        Time::from_secs_f64(Instant::now().saturating_duration_since(self.plan.begin).as_secs_f64())
    }
    fn fail(&self, e: &std::io::Error) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(e.to_string());
    }

    /// Connects at its time and sends until it is over.
    pub fn send(&self, over: &AtomicBool) {
        let start = self.plan.begin + Duration::from_nanos(self.plan.start.as_nanos());
        std::thread::sleep(start.saturating_duration_since(Instant::now()));
        match self.connect(over) {
            Ok(Some(mut near)) => {
                let data = vec![0x6e; CHUNK];
                while !over.load(Ordering::Acquire) && self.now() < self.plan.stop {
                    match near.write(&data) {
                        // At the end, the peer closes first.
                        Err(e) if !is_wait(&e) && !over.load(Ordering::Acquire) => {
                            return self.fail(&e);
                        }
                        _ => {}
                    }
                }
            }
            Ok(None) => {}
            Err(e) => self.fail(&e),
        }
    }

    /// `None` if the run was over before the other end accepted.
    fn connect(&self, over: &AtomicBool) -> std::io::Result<Option<TcpStream>> {
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(socket) = socket else { return Ok(None) };
        match connect(&socket, &self.to) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
            Err(e) => return Err(e.into()),
        }
        let timeout = Timespec { tv_sec: 0, tv_nsec: PATIENCE.as_nanos() as _ };
        while poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(&timeout))? == 0 {
            if over.load(Ordering::Acquire) {
                return Ok(None);
            }
        }
        socket_error(&socket)??;
        let near = TcpStream::from(socket);
        near.set_nonblocking(false)?;
        near.set_write_timeout(Some(PATIENCE))?;
        let _ = self.near.set(near.try_clone()?);
        Ok(Some(near))
    }

    /// Accepts and reads until it is over.
    pub fn receive(&self, over: &AtomicBool) {
        let mut far = loop {
            match self.listener.accept() {
                Ok((far, _)) => break far,
                Err(e) if is_wait(&e) => {}
                Err(e) => return self.fail(&e),
            }
            if over.load(Ordering::Acquire) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let set = far.set_nonblocking(false).and_then(|()| far.set_read_timeout(Some(PATIENCE)));
        if let Err(e) = set {
            return self.fail(&e);
        }
        let mut buffer = vec![0; 4 * CHUNK];
        while !over.load(Ordering::Acquire) {
            match far.read(&mut buffer) {
                Ok(0) => return,
                Ok(n) => {
                    let now = self.now();
                    if now >= self.plan.measure_from && now < self.plan.end {
                        let mut arrived =
                            self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
                        arrived.push((now, n as u64));
                    }
                }
                Err(e) if is_wait(&e) || over.load(Ordering::Acquire) => {}
                Err(e) => return self.fail(&e),
            }
        }
    }
}

fn is_wait(e: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(e.kind(), WouldBlock | TimedOut | Interrupted)
}
