//! Listeners of the far side, at ports that `--allow-reverse` lists.

use super::listeners::NotTaken;
use super::{MAX_CONNECTIONS, PATIENCE, number};
use crate::connected_client::{ConnectedClient, refuse};
use crate::limits::OpeningRate;
use crate::listen::accept;
use crate::permissions::Permissions;
use crate::pipe;
use crate::places::{GivenPlaces, Place, PlaceLimits};
use crate::request::{Refusal, TunnelRequest};
use narrows_base::text::shown;
use narrows_net::{ReceiveStream, SendStream};
use narrows_wire::noise::PublicKey;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Attempts to bind an address that the same client's former connection still uses, and the pause between them.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Places for connections to one listener. Any host may connect, so one network gets at most half of them.
const PLACES: PlaceLimits = PlaceLimits { all: MAX_CONNECTIONS, of_network: MAX_CONNECTIONS / 2 };

/// Waits until changed permissions forbid this listener.
async fn forbidden(
    changes: &mut watch::Receiver<Arc<Permissions>>,
    at: SocketAddr,
    key: &PublicKey,
) {
    if changes.wait_for(|permissions| !permissions.reverse.permits(at, key)).await.is_err() {
        std::future::pending().await
    }
}

/// Listens for a client until it ends the stream, or its next connection takes over.
pub(crate) async fn listen(
    peer: &Arc<ConnectedClient>,
    request: &TunnelRequest,
    mut send: SendStream,
    mut receive: ReceiveStream,
) {
    let what = request.shown();
    let Ok(address) = request.host.parse::<IpAddr>() else {
        return refuse(&mut send, Refusal::BadRequest).await;
    };
    let at = SocketAddr::new(address, request.port);
    let mut changes = peer.shared.changes();
    let permissions = peer.shared.permissions();
    if !permissions.reverse.permits(at, &peer.key) {
        peer.log_refusal(&what, Refusal::NoReverse);
        return refuse(&mut send, Refusal::NoReverse).await;
    }
    let entry = match peer.shared.listeners.take(at, peer.key, &permissions) {
        Ok(entry) => entry,
        Err(why) => {
            let why = match why {
                NotTaken::OfOther => "another client has it",
                NotTaken::Share => {
                    "the other ports are left to other clients; --allow-reverse PORT=KEY gives a port to this one"
                }
            };
            peer.event(true, &format!("{what}: {why}"), Some(Refusal::TooMany));
            return refuse(&mut send, Refusal::TooMany).await;
        }
    };
    let (listener, number) = match (bind(at).await, number(send.id())) {
        (Ok(listener), Some(number)) => (listener, number),
        (bound, _) => {
            let why =
                bound.err().map_or_else(String::new, |e| format!(": {}", shown(&e.to_string())));
            peer.log_refusal(&format!("{what}{why}"), Refusal::Failed);
            return refuse(&mut send, Refusal::Failed).await;
        }
    };
    peer.log(false, &format!("{what} listens"));
    if send.send_all(&[0]).await.is_err() {
        return;
    }
    let serve = async {
        let places = Arc::<GivenPlaces>::default();
        let openings = OpeningRate::new(peer.client.limits().openings);
        loop {
            let (tcp, from) = accept(&listener).await;
            sleep(openings.delay(Instant::now(), peer.client.limits().openings)).await;
            if let Some(place) = places.take(from, PLACES) {
                let accepted = AcceptedConnection { tcp, from, at, number };
                tokio::spawn(accepted.carry(peer.clone(), place));
            }
        }
    };
    // The near side sends no further bytes on the stream.
    let mut over = [0];
    tokio::select! {
        () = serve => {}
        () = entry.replaced.notified() => {}
        _ = receive.receive(&mut over) => {}
        () = forbidden(&mut changes, at, &peer.key) => {
            peer.log(true, &format!("{what} ended, since --allow-reverse does not list it any more"));
        }
    }
}

async fn bind(at: SocketAddr) -> io::Result<TcpListener> {
    for _ in 1..ATTEMPTS {
        match TcpListener::bind(at).await {
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => sleep(PAUSE).await,
            bound => return bound,
        }
    }
    TcpListener::bind(at).await
}

/// A connection that a listener has accepted.
struct AcceptedConnection {
    tcp: TcpStream,
    from: IpAddr,
    /// Address and number of the listener.
    at: SocketAddr,
    number: u32,
}

impl AcceptedConnection {
    /// Carries it to the client until one of them ends it, or the place is given to another connection.
    async fn carry(self, peer: Arc<ConnectedClient>, place: Place) {
        let what = format!("reverse {}: a connection from {}", self.at, self.from);
        pipe::prepare(&self.tcp);
        if place.displaced > 0 {
            let line = format!("{what} takes the place of a silent or idle one");
            peer.log_stranger(true, &line, None);
        }
        let Some(_descriptor) = peer.client.reverse() else {
            return peer.log_stranger(true, &what, Some(Refusal::TooMany));
        };
        self.join(&peer, &place, &what).await;
    }

    async fn join(self, peer: &ConnectedClient, place: &Place, what: &str) {
        let mut changes = peer.shared.changes();
        let open = async {
            let (mut send, mut receive) = peer.connection.open_bi().await.ok()?;
            send.send_all(&self.number.to_be_bytes()).await.ok()?;
            let refusal = pipe::answer(&mut receive).await.ok()?;
            Some((send, receive, refusal))
        };
        let first = async {
            if matches!(self.tcp.peek(&mut [0]).await, Ok(1..)) {
                place.activity.sent();
            }
            std::future::pending().await
        };
        let opened = tokio::select! {
            opened = timeout(2 * PATIENCE, open) => opened,
            () = first => return,
            () = place.given_up() => return,
        };
        match opened {
            Ok(Some((send, receive, None))) => {
                if place.displaced == 0 {
                    peer.log_stranger(false, what, None);
                }
                let forbidden = async {
                    tokio::select! {
                        () = forbidden(&mut changes, self.at, &peer.key) => {}
                        () = place.given_up() => {}
                    }
                };
                let cap = &peer.client.cap;
                pipe::run_until(self.tcp, send, receive, cap, &place.activity, forbidden).await;
            }
            Ok(Some((.., Some(why)))) => {
                peer.log_stranger(true, &format!("{what}: the client's target: {why}"), None);
            }
            _ => peer.log_stranger(true, &format!("{what}: the client does not take it"), None),
        }
    }
}
