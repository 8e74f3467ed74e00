//! Readiness of the endpoint's socket for reading and writing, from the caller's runtime.

#[cfg(not(unix))]
pub use runtime::Readiness;
#[cfg(unix)]
pub use unix::Readiness;

/// Write readiness is registered only while the socket is full. Otherwise every datagram that leaves the system's
/// buffer would wake the task once more.
#[cfg(unix)]
mod unix {
    use crate::socket::Socket;
    use std::io;
    use std::os::fd::OwnedFd;
    use std::task::{Context, Poll};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    pub struct Readiness {
        readable: AsyncFd<OwnedFd>,
        writable: Option<AsyncFd<OwnedFd>>,
    }

    /// Registers a duplicate of the socket in the current runtime.
    fn watched(socket: &Socket, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
        let descriptor = OwnedFd::from(socket.io().try_clone()?);
        #[allow(deprecated, reason = "its successor is unsafe, for types whose descriptor changes")]
        AsyncFd::with_interest(descriptor, interest)
    }

    impl Readiness {
        pub fn new(socket: &Socket) -> io::Result<Readiness> {
            Ok(Readiness { readable: watched(socket, Interest::READABLE)?, writable: None })
        }
        /// Calls `receive` if the socket may be readable. `receive` returns `WouldBlock` when the socket is empty.
        pub fn receive(&self, receive: impl FnOnce() -> io::Result<()>) {
            let _ = self.readable.try_io(Interest::READABLE, |_| receive());
        }
        /// Calls `send`, which returns `WouldBlock` if the socket is full. Returns whether it is full.
        pub fn is_full(&mut self, socket: &Socket, send: impl FnOnce() -> io::Result<()>) -> bool {
            let Some(writable) = &self.writable else {
                let is_full = send().is_err();
                if is_full {
                    self.writable = watched(socket, Interest::WRITABLE).ok();
                }
                return is_full;
            };
            let is_full = writable.try_io(Interest::WRITABLE, |_| send()).is_err();
            if !is_full {
                self.writable = None;
            }
            is_full
        }
        pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<()> {
            self.readable.poll_read_ready(context).map(|_| ())
        }
        pub fn poll_writable(&self, context: &mut Context<'_>) -> Poll<()> {
            match &self.writable {
                Some(writable) => writable.poll_write_ready(context).map(|_| ()),
                None => Poll::Ready(()),
            }
        }
    }
}

#[cfg(not(unix))]
mod runtime {
    use crate::socket::Socket;
    use std::io;
    use std::task::{Context, Poll};
    use tokio::io::Interest;
    use tokio::net::UdpSocket;

    pub struct Readiness(UdpSocket);

    impl Readiness {
        pub fn new(socket: &Socket) -> io::Result<Readiness> {
            Ok(Readiness(UdpSocket::from_std(socket.io().try_clone()?)?))
        }
        /// Calls `receive` if the socket may be readable. `receive` returns `WouldBlock` when the socket is empty.
        pub fn receive(&self, receive: impl FnOnce() -> io::Result<()>) {
            let _ = self.0.try_io(Interest::READABLE, receive);
        }
        /// Calls `send`, which returns `WouldBlock` if the socket is full. Returns whether it is full.
        pub fn is_full(&mut self, _: &Socket, send: impl FnOnce() -> io::Result<()>) -> bool {
            self.0.try_io(Interest::WRITABLE, send).is_err()
        }
        pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<()> {
            self.0.poll_recv_ready(context).map(|_| ())
        }
        pub fn poll_writable(&self, context: &mut Context<'_>) -> Poll<()> {
            self.0.poll_send_ready(context).map(|_| ())
        }
    }
}
