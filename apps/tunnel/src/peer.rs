//! One client's connection: handles the requests on its streams, as far as they are permitted.

use crate::connected_client::{ConnectedClient, refuse};
use crate::dial;
use crate::flow::{self, FlowTarget, UdpFlows};
use crate::hints;
use crate::learning;
use crate::limits::ClientUsage;
use crate::permissions::Permissions;
use crate::pipe;
use crate::places::HolderActivity;
use crate::request::{HEAD, Refusal, RequestKind, TunnelRequest};
use crate::reverse::far;
use crate::shared::TunnelShared;
use crate::tun;
use crate::tun::far::ClientFlow;
use narrows_base::text::shown;
use narrows_congestion::{HintSource, PathHints};
use narrows_net::{Connection, ReceiveStream, SendStream};
use narrows_peers::key;
use narrows_wire::noise::PublicKey;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Serves a client's connection until it is over.
pub(crate) async fn serve(
    shared: Arc<TunnelShared>,
    connection: Connection,
    client: Arc<ClientUsage>,
    key: PublicKey,
) {
    let name = key::text(&key).chars().take(12).collect();
    let lesson = shared.lesson(&connection, key);
    let flows = Arc::new(UdpFlows::default());
    let at = connection.clone();
    let for_peer = flows.clone();
    let peer =
        Arc::new(ConnectedClient { shared, client, connection: at, key, name, flows: for_peer });
    peer.log(false, "connected");
    // When the connection ends, all its streams are dropped, and their targets see resets.
    let mut streams = JoinSet::new();
    streams.spawn(flow::to_targets(connection.clone(), flows, peer.client.clone()));
    if let Some(lesson) = lesson.clone() {
        streams.spawn(async move {
            loop {
                sleep(learning::LOOK).await;
                lesson.measure();
            }
        });
    }
    while let Ok((send, receive)) = connection.accept_bi().await {
        while streams.try_join_next().is_some() {}
        // Further streams wait at the client, since the transport limits their number.
        sleep(peer.client.delay(Instant::now())).await;
        streams.spawn(stream(peer.clone(), send, receive));
    }
    let why = connection.closed().await;
    peer.log(false, &format!("gone: {}", shown(&why.to_string())));
    if let Some(lesson) = lesson {
        tokio::task::spawn_blocking(move || lesson.keep());
    }
}

async fn stream(peer: Arc<ConnectedClient>, mut send: SendStream, mut receive: ReceiveStream) {
    let Some(_place) = peer.client.place() else {
        peer.log_refusal("a stream", Refusal::TooMany);
        return refuse(&mut send, Refusal::TooMany).await;
    };
    let asked = timeout(peer.shared.permissions().limits.asking, request(&mut receive)).await;
    let request = match asked.unwrap_or(Err(Refusal::BadRequest)) {
        Ok(request) => request,
        Err(refusal) => return refuse(&mut send, refusal).await,
    };
    match request {
        StreamRequest::Open(request) => match request.kind {
            RequestKind::Tcp => tcp(&peer, &request, send, receive).await,
            RequestKind::Udp => udp(&peer, &request, send, receive).await,
            RequestKind::Listen => far::listen(&peer, &request, send, receive).await,
        },
        StreamRequest::Know(hints) => know(&peer, hints, send).await,
        StreamRequest::Packets => packets(&peer, send, receive).await,
    }
}

/// A client's request on a stream.
enum StreamRequest {
    Open(TunnelRequest),
    /// Hints about the path to the client.
    Know(PathHints),
    /// Assignment of an address for sending and receiving packets.
    Packets,
}

async fn request(receive: &mut ReceiveStream) -> Result<StreamRequest, Refusal> {
    let mut head = [0; HEAD];
    fill(receive, &mut head).await?;
    if head == tun::MARK {
        return Ok(StreamRequest::Packets);
    }
    if head == hints::MARK {
        let mut encoded = [0; hints::LENGTH];
        fill(receive, &mut encoded).await?;
        return Ok(StreamRequest::Know(hints::read(encoded)));
    }
    let mut host = vec![0; TunnelRequest::host_length(head)?];
    fill(receive, &mut host).await?;
    TunnelRequest::read(head, &host).map(StreamRequest::Open)
}

/// Applies the client's hints about the path to it; the transport verifies them.
async fn know(peer: &ConnectedClient, hints: PathHints, mut send: SendStream) {
    // If the connection is over, the hints are of no use.
    let _ = peer.connection.reconfigure(&hints, HintSource::Peer);
    let rate = hints.rate.map_or(0.0, |rate| rate.as_bps() as f64 * 1e-6);
    peer.log(false, &format!("says that the path to it carries {rate} Mbit/s (0: not said)"));
    let _ = send.send_last(&[0]).await;
}

async fn fill(receive: &mut ReceiveStream, mut into: &mut [u8]) -> Result<(), Refusal> {
    while !into.is_empty() {
        let n = receive.receive(into).await.map_err(|_| Refusal::BadRequest)?;
        into = into.get_mut(n..).filter(|_| n > 0).ok_or(Refusal::BadRequest)?;
    }
    Ok(())
}

/// The permitted addresses of a request.
async fn resolve(
    peer: &ConnectedClient,
    request: &TunnelRequest,
) -> Result<Vec<SocketAddr>, Refusal> {
    let permissions = peer.shared.permissions();
    let targets = &permissions.targets;
    let lookups = &peer.client.lookups;
    dial::resolve(targets, &peer.shared.lookup, lookups, &request.host, request.port).await
}

/// Waits until changed permissions forbid this open target.
async fn forbidden(
    changes: &mut watch::Receiver<Arc<Permissions>>,
    request: &TunnelRequest,
    at: io::Result<SocketAddr>,
) {
    while let (Ok(()), Ok(at)) = (changes.changed().await, &at) {
        let permissions = changes.borrow_and_update().clone();
        if !dial::still_permits(&permissions.targets, &request.host, *at) {
            return;
        }
    }
    std::future::pending().await
}

/// Line of the log for a target that is not permitted any more.
const FORBIDDEN: &str = "ended, since --allow does not permit it any more";

async fn tcp(
    peer: &ConnectedClient,
    request: &TunnelRequest,
    mut send: SendStream,
    receive: ReceiveStream,
) {
    let what = request.shown();
    let mut changes = peer.shared.changes();
    let opened = match resolve(peer, request).await {
        Ok(addresses) => dial::tcp(&addresses, || peer.client.attempt()).await,
        Err(refusal) => Err(refusal),
    };
    let tcp = match opened {
        Ok(tcp) => tcp,
        Err(refusal) => {
            peer.log_refusal(&what, refusal);
            return refuse(&mut send, refusal).await;
        }
    };
    pipe::prepare(&tcp);
    let at = tcp.peer_addr();
    peer.log(false, &format!("{what} opened to {}", shown_address(&at)));
    if send.send_all(&[0]).await.is_ok() {
        let forbidden = async {
            forbidden(&mut changes, request, at).await;
            peer.log(true, &format!("{what}: {FORBIDDEN}"));
        };
        let activity = HolderActivity::default();
        pipe::run_until(tcp, send, receive, &peer.client.cap, &activity, forbidden).await;
    }
}

async fn udp(
    peer: &ConnectedClient,
    request: &TunnelRequest,
    mut send: SendStream,
    mut receive: ReceiveStream,
) {
    let what = request.shown();
    let mut changes = peer.shared.changes();
    let opened = match peer.client.flow() {
        Some(place) => open_flow(peer, request, &mut receive).await.map(|socket| (place, socket)),
        None => Err(Refusal::TooMany),
    };
    let (place, socket) = match opened {
        Ok(opened) => opened,
        Err(refusal) => {
            peer.log_refusal(&what, refusal);
            return refuse(&mut send, refusal).await;
        }
    };
    if let Some(count) = peer.client.displaced.count(Instant::now(), place.displaced as u64) {
        let max = peer.client.limits().flows;
        let line =
            format!("udp: {count} idle flows ended early for new ones, since {max} are open");
        peer.log(true, &line);
    }
    let at = socket.peer_addr();
    peer.log(false, &format!("{what} opened to {}", shown_address(&at)));
    let goal = Arc::new(FlowTarget::Target(socket.clone()));
    let activity = place.activity.clone();
    let flow = UdpFlows::add_shared(&peer.flows, send.id(), goal, activity);
    let Some(flow) = flow else { return };
    if send.send_all(&[0]).await.is_err() {
        return;
    }
    // The near side sends no further bytes on the stream, and ends it with the flow.
    let mut over = [0];
    tokio::select! {
        () = flow::from_target(&peer.connection, &flow, &socket, &peer.client.cap) => {}
        _ = receive.receive(&mut over) => {}
        () = place.given_up() => {}
        () = forbidden(&mut changes, request, at) => {
            peer.log(true, &format!("{what}: {FORBIDDEN}"));
        }
    }
}

fn shown_address(at: &io::Result<SocketAddr>) -> String {
    at.as_ref().map_or("?".into(), SocketAddr::to_string)
}

/// Carries packets until the near side ends the stream, or another connection of the same client takes over.
async fn packets(peer: &Arc<ConnectedClient>, mut send: SendStream, mut receive: ReceiveStream) {
    let tun = peer.shared.tun.as_ref();
    let Some((tun, given)) = tun.and_then(|tun| Some((tun, tun.given(&peer.key)?))) else {
        peer.event(true, "packets: refused, for want of --tun", Some(Refusal::NotAllowed));
        return refuse(&mut send, Refusal::NotAllowed).await;
    };
    let answer = [&[0][..], &given.bytes()].concat();
    peer.log(false, &format!("packets: given {}", given.shown()));
    let warned = peer.clone();
    let stream = send.id();
    let over = async {
        let mut over = [0];
        // The client sends no further bytes on the stream, so this waits for its end.
        if send.send_all(&answer).await.is_ok() {
            let _ = receive.receive(&mut over).await;
        }
    };
    let warn = Box::new(move |line: &str| warned.log(true, line));
    let connection = &peer.connection;
    let flow = ClientFlow { connection, flows: &peer.flows, stream };
    let carried = tun.carry(given, flow, &peer.client, warn, over);
    let (dropped, is_replaced) = carried.await;
    if let Some(dropped) = dropped {
        peer.log(true, &dropped);
    }
    if is_replaced {
        peer.log(false, "packets: a newer connection of this client carries them");
        let _ = send.finish();
    }
}

/// A socket that is connected to the request's target; the first datagram has been sent.
async fn open_flow(
    peer: &ConnectedClient,
    request: &TunnelRequest,
    receive: &mut ReceiveStream,
) -> Result<Arc<UdpSocket>, Refusal> {
    let first = timeout(peer.shared.permissions().limits.asking, first_datagram(receive)).await;
    let first = first.unwrap_or(Err(Refusal::BadRequest))?;
    let addresses = resolve(peer, request).await?;
    let mut last = Refusal::Unreachable;
    for address in addresses {
        let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).await.map_err(|_| Refusal::Failed)?;
        match socket.connect(address).await {
            Ok(()) => {
                // The datagram may be lost here, too.
                let _ = socket.send(&first).await;
                return Ok(Arc::new(socket));
            }
            Err(e) => last = dial::cause(&e),
        }
    }
    Err(last)
}

async fn first_datagram(receive: &mut ReceiveStream) -> Result<Vec<u8>, Refusal> {
    let mut length = [0; 2];
    fill(receive, &mut length).await?;
    let mut datagram = vec![0; u16::from_be_bytes(length).into()];
    fill(receive, &mut datagram).await?;
    Ok(datagram)
}
