//! Listeners of the far side, at ports that `--allow-reverse` lists.

use super::{PATIENCE, number};
use crate::connected_client::{ConnectedClient, refuse};
use crate::listen::accept;
use crate::permissions::Permissions;
use crate::pipe;
use crate::request::{Refusal, TunnelRequest};
use narrows_base::text::shown;
use narrows_net::{ReceiveStream, SendStream};
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

fn permits(permissions: &Permissions, at: SocketAddr) -> bool {
    permissions.reverse.iter().any(|ports| ports.permits(at))
}

/// Waits until changed permissions forbid this listener.
async fn forbidden(changes: &mut watch::Receiver<Arc<Permissions>>, at: SocketAddr) {
    if changes.wait_for(|permissions| !permits(permissions, at)).await.is_err() {
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
    let (at, mut changes) = (SocketAddr::new(address, request.port), peer.shared.changes());
    if !permits(&peer.shared.permissions(), at) {
        peer.log_refusal(&what, Refusal::NoReverse);
        return refuse(&mut send, Refusal::NoReverse).await;
    }
    let Some(entry) = peer.shared.listeners.take(at, peer.key) else {
        peer.log(true, &format!("{what}: another client has it"));
        return refuse(&mut send, Refusal::TooMany).await;
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
        loop {
            let (tcp, from) = accept(&listener).await;
            sleep(peer.client.delay(Instant::now())).await;
            tokio::spawn(carry(peer.clone(), tcp, from, at, number));
        }
    };
    // The near side sends no further bytes on the stream.
    let mut over = [0];
    tokio::select! {
        () = serve => {}
        () = entry.replaced.notified() => {}
        _ = receive.receive(&mut over) => {}
        () = forbidden(&mut changes, at) => {
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

/// Carries one accepted connection to the client. It counts as one of the client's open connections.
async fn carry(
    peer: Arc<ConnectedClient>,
    tcp: TcpStream,
    from: IpAddr,
    at: SocketAddr,
    number: u32,
) {
    pipe::prepare(&tcp);
    let what = format!("reverse {at}: a connection from {from}");
    let Some(_place) = peer.client.place() else {
        return peer.log_refusal(&what, Refusal::TooMany);
    };
    let mut changes = peer.shared.changes();
    let open = async {
        let (mut send, mut receive) = peer.connection.open_bi().await.ok()?;
        send.send_all(&number.to_be_bytes()).await.ok()?;
        let refusal = pipe::answer(&mut receive).await.ok()?;
        Some((send, receive, refusal))
    };
    match timeout(2 * PATIENCE, open).await {
        Ok(Some((send, receive, None))) => {
            peer.log(false, &what);
            let forbidden = forbidden(&mut changes, at);
            pipe::run_until(tcp, (send, receive), &peer.client.cap, forbidden).await;
        }
        Ok(Some((.., Some(why)))) => peer.log(true, &format!("{what}: the client's target: {why}")),
        _ => peer.log(true, &format!("{what}: the client does not take it")),
    }
}
