//! Listens on TCP, one thread per connection, within bounds.

use crate::error::{Error, Kind};
use crate::key::Identity;
use crate::message::Wishes;
use crate::service::{Link, Service};
use crate::tcp::noise;
use crate::tcp::socket::Socket;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Connections at the same time.
const CONNECTIONS_MOST: usize = 512;

/// A listening socket.
pub struct Server {
    listener: TcpListener,
    identity: Identity,
    service: Arc<Service>,
}

impl Server {
    /// Listens here.
    ///
    /// # Errors
    /// The address is not ours, taken, or not permitted.
    pub fn bind(
        address: SocketAddr,
        identity: Identity,
        service: Arc<Service>,
    ) -> Result<Server, Error> {
        let listener = TcpListener::bind(address).map_err(|e| {
            let why = match e.kind() {
                std::io::ErrorKind::AddrInUse => {
                    "somebody listens there already; choose another port with --listen"
                }
                std::io::ErrorKind::AddrNotAvailable => "this machine does not have that address",
                std::io::ErrorKind::PermissionDenied => {
                    "permission denied; ports from 1024 on are free to all"
                }
                _ => "cannot listen there",
            };
            Error::new(Kind::Local, format!("--listen {address}: {why}"))
        })?;
        Ok(Server { listener, identity, service })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system's.
    pub fn address(&self) -> Result<SocketAddr, Error> {
        self.listener.local_addr().map_err(|e| Error::new(Kind::Local, e.to_string()))
    }

    /// Serves for ever.
    pub fn run(self) {
        let open = Arc::new(AtomicUsize::new(0));
        loop {
            let Ok((tcp, from)) = self.listener.accept() else {
                // Out of file descriptors, say: others will end.
                std::thread::sleep(Duration::from_millis(50));
                continue;
            };
            if open.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS_MOST {
                open.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            let place = Place(Arc::clone(&open));
            let (identity, service) = (self.identity.clone(), Arc::clone(&self.service));
            let started = std::thread::Builder::new().spawn(move || {
                let _place = place;
                one(tcp, from, &identity, &service);
            });
            // Without a thread the connection is closed and its place is free again.
            drop(started);
        }
    }
}

/// A connection's place among those that are open.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn one(tcp: TcpStream, from: SocketAddr, identity: &Identity, service: &Service) {
    let Ok(mut socket) = Socket::new(tcp, None) else { return };
    // Who does not even open gets no line in the log: anybody could fill it.
    if let Ok((stream, key)) = noise::server(socket.clone(), identity) {
        service.answer(&key, &from.to_string(), stream, &Kernel);
    }
    socket.linger();
}

/// The kernel's TCP can be told nothing.
struct Kernel;

impl Link for Kernel {
    fn tune(&self, _: &Wishes) -> Wishes {
        Wishes { controller: "tcp".into(), ..Wishes::default() }
    }
}
