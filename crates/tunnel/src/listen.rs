//! Listening sockets of TCP, and places for connections that have not said yet what they want.

use narrows_files::requests::{Limits, Requests, Slot, Source, View};
use narrows_files::{Error, Kind};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// Places that become free are looked for so often, and so many times.
const LOOK: Duration = Duration::from_millis(10);
const LOOKS: usize = 100;

/// Listens for TCP.
///
/// # Errors
/// The port is in use, or not ours.
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
            // Out of descriptors, say: others will end.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Connections that have not said yet what they want, bounded as those of the file service over TCP: in all and by
/// network. If all places are taken, the oldest of the network that holds most gives way.
pub(crate) struct Openings(Arc<Requests>);

impl Openings {
    /// So many in all, three quarters of them of one network.
    pub fn new(all: usize) -> Openings {
        let network = all * 3 / 4;
        let limits = Limits { key: network, network, all };
        Openings(Requests::new(limits, limits, Duration::ZERO))
    }

    /// For the local programs of a proxy's port; fewer where few files may be open.
    pub fn for_programs() -> Openings {
        Openings::new(crate::descriptors::openings())
    }

    /// A place for this connection; `None` if none becomes free within a second.
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
