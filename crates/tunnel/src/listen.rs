//! Listening TCP sockets, and limits on connections without a request.

use narrows_files::requests::{Limits, Requests, Slot, Source, View};
use narrows_files::{Error, Kind};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// Interval of checks for a free place; below, their number.
const LOOK: Duration = Duration::from_millis(10);
const LOOKS: usize = 100;

/// Listens for TCP connections; `flag` names the option in errors.
///
/// # Errors
/// The port is in use, or the address is not one of this machine's.
pub async fn tcp(flag: &str, address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|e| {
        let why = match e.kind() {
            std::io::ErrorKind::AddrInUse => "somebody listens there already",
            std::io::ErrorKind::AddrNotAvailable => "this machine does not have that address",
            std::io::ErrorKind::PermissionDenied => {
                "permission denied; ports from 1024 on are free to all"
            }
            _ => "cannot listen there",
        };
        Error::new(Kind::Local, format!("{flag} {address}: {why}"))
    })
}

/// The next connection of a listener.
pub async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((tcp, _)) => return tcp,
            // Probably no descriptor is free; wait until other connections end.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Connections without a request. They are limited as in the file service over TCP: in total and per network. If all
/// places are taken, the oldest connection of the network with the most connections is closed.
pub(crate) struct Openings(Arc<Requests>);

impl Openings {
    /// `all` places, of which three quarters may be used by one network.
    pub fn new(all: usize) -> Openings {
        let network = all * 3 / 4;
        let limits = Limits { key: network, network, all };
        Openings(Requests::new(limits, limits, Duration::ZERO))
    }

    /// Places for the local programs of a proxy's port; the number depends on the limit on open files.
    pub fn for_programs() -> Openings {
        Openings::new(crate::descriptors::openings())
    }

    /// A place for this connection; `None` if no place becomes free within a second.
    pub async fn admit(&self, tcp: &TcpStream) -> Option<Slot> {
        let from = tcp.peer_addr().ok()?.ip().to_canonical();
        for _ in 0..LOOKS {
            if let Ok(slot) = self.0.admit(Source::new(Some(from), None, false)) {
                return Some(slot);
            }
            sleep(LOOK).await;
        }
        None
    }
}

/// Waits until the place goes to another connection.
pub(crate) async fn gave_way(view: &View) {
    poll_fn(|cx| if view.poll(cx.waker()).is_some() { Poll::Ready(()) } else { Poll::Pending })
        .await;
}
