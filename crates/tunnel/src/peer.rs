//! One client's connection: handles the requests on its streams, as far as they are permitted.

use crate::dial;
use crate::flow::{self, Flows, Goal};
use crate::hints;
use crate::learning;
use crate::limits::Client;
use crate::pipe;
use crate::request::{HEAD, Kind, Refusal, Request};
use crate::shared::{Event, Shared};
use crate::tun;
use narrows_base::text::shown;
use narrows_congestion::{HintSource, PathHints};
use narrows_files::key;
use narrows_net::{Connection, ReceiveStream, SendStream};
use narrows_wire::noise::PublicKey;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// A connected client.
struct Peer {
    shared: Arc<Shared>,
    client: Arc<Client>,
    connection: Connection,
    key: PublicKey,
    /// The beginning of the key, for log lines.
    name: String,
    flows: Arc<Flows<Goal>>,
}

impl Peer {
    fn log(&self, is_warning: bool, what: &str) {
        let from = self.connection.remote().map_or("?".into(), |a| a.to_string());
        let line = format!("{} ({from}): {what}", self.name);
        (self.shared.log)(&Event { is_warning, client: self.name.clone(), line });
    }
}

/// Serves a client's connection until it is over.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    connection: Connection,
    client: Arc<Client>,
    key: PublicKey,
) {
    let name = key::text(&key).chars().take(12).collect();
    let lesson = shared.lesson(&connection, key);
    let flows = Arc::new(Flows::default());
    let (at, for_peer) = (connection.clone(), flows.clone());
    let peer = Arc::new(Peer { shared, client, connection: at, key, name, flows: for_peer });
    peer.log(false, "connected");
    // When the connection ends, all its streams are dropped, and their targets see resets.
    let mut streams = JoinSet::new();
    streams.spawn(flow::to_targets(connection.clone(), flows));
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

async fn stream(peer: Arc<Peer>, mut send: SendStream, mut receive: ReceiveStream) {
    let Some(_place) = peer.client.place() else {
        peer.log(true, &Refusal::TooMany.to_string());
        return refuse(&mut send, Refusal::TooMany).await;
    };
    let asked = timeout(peer.shared.limits.asking, request(&mut receive)).await;
    let request = match asked.unwrap_or(Err(Refusal::BadRequest)) {
        Ok(request) => request,
        Err(refusal) => return refuse(&mut send, refusal).await,
    };
    match request {
        Asked::Open(request) if request.kind == Kind::Tcp => {
            tcp(&peer, &request, send, receive).await
        }
        Asked::Open(request) => udp(&peer, &request, send, receive).await,
        Asked::Know(hints) => know(&peer, hints, send).await,
        Asked::Packets => packets(&peer, send, receive).await,
    }
}

/// Sends the reason; the request's stream is stopped when it is dropped.
async fn refuse(send: &mut SendStream, refusal: Refusal) {
    // If the client is gone, the answer is of no use.
    let _ = send.send_last(&[refusal.code()]).await;
}

/// A client's request on a stream.
enum Asked {
    Open(Request),
    /// Hints about the path to the client.
    Know(PathHints),
    /// Assignment of an address for sending and receiving packets.
    Packets,
}

async fn request(receive: &mut ReceiveStream) -> Result<Asked, Refusal> {
    let mut head = [0; HEAD];
    fill(receive, &mut head).await?;
    if head == tun::MARK {
        return Ok(Asked::Packets);
    }
    if head == hints::MARK {
        let mut told = [0; hints::LENGTH];
        fill(receive, &mut told).await?;
        return Ok(Asked::Know(hints::read(told)));
    }
    let mut host = vec![0; Request::host_length(head)?];
    fill(receive, &mut host).await?;
    Request::read(head, &host).map(Asked::Open)
}

/// Applies the client's hints about the path to it; the transport verifies them.
async fn know(peer: &Peer, hints: PathHints, mut send: SendStream) {
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
async fn resolve(peer: &Peer, request: &Request) -> Result<Vec<SocketAddr>, Refusal> {
    let Shared { targets, lookup, .. } = &*peer.shared;
    let host = (&*request.host, request.port);
    dial::resolve(targets, lookup, &peer.client.lookups, host).await
}

async fn tcp(peer: &Peer, request: &Request, mut send: SendStream, receive: ReceiveStream) {
    let what = request.shown();
    let opened = match resolve(peer, request).await {
        Ok(addresses) => dial::tcp(&addresses, || peer.client.attempt()).await,
        Err(refusal) => Err(refusal),
    };
    let tcp = match opened {
        Ok(tcp) => tcp,
        Err(refusal) => {
            peer.log(true, &format!("{what}: {refusal}"));
            return refuse(&mut send, refusal).await;
        }
    };
    pipe::prepare(&tcp);
    let at = tcp.peer_addr().map_or("?".into(), |address| address.to_string());
    peer.log(false, &format!("{what} opened to {at}"));
    if send.send_all(&[0]).await.is_ok() {
        pipe::run(tcp, (send, receive)).await;
    }
}

async fn udp(peer: &Peer, request: &Request, mut send: SendStream, mut receive: ReceiveStream) {
    let what = request.shown();
    let opened = match peer.client.flow() {
        Some(place) => open_flow(peer, request, &mut receive).await.map(|socket| (place, socket)),
        None => Err(Refusal::TooMany),
    };
    let (_place, socket) = match opened {
        Ok(opened) => opened,
        Err(refusal) => {
            peer.log(true, &format!("{what}: {refusal}"));
            return refuse(&mut send, refusal).await;
        }
    };
    let at = socket.peer_addr().map_or("?".into(), |address| address.to_string());
    peer.log(false, &format!("{what} opened to {at}"));
    let goal = Goal::Target(socket.clone());
    let Some(flow) = Flows::add(&peer.flows, send.id(), goal) else { return };
    if send.send_all(&[0]).await.is_err() {
        return;
    }
    // The near side sends no further bytes on the stream, and ends it with the flow.
    let mut over = [0];
    tokio::select! {
        () = flow::from_target(&peer.connection, &flow, &socket) => {}
        _ = receive.receive(&mut over) => {}
    }
}

/// Carries packets until the near side ends the stream, or another connection of the same client takes over.
async fn packets(peer: &Arc<Peer>, mut send: SendStream, mut receive: ReceiveStream) {
    let tun = peer.shared.tun.as_ref();
    let Some((tun, given)) = tun.and_then(|tun| Some((tun, tun.given(&peer.key)?))) else {
        peer.log(true, "packets: refused, for want of --tun");
        return refuse(&mut send, Refusal::NotAllowed).await;
    };
    let answer = [&[0][..], &given.bytes()].concat();
    peer.log(false, &format!("packets: given {}", given.shown()));
    let (warned, stream) = (peer.clone(), send.id());
    let over = async {
        let mut over = [0];
        // The client sends no further bytes on the stream, so this waits for its end.
        if send.send_all(&answer).await.is_ok() {
            let _ = receive.receive(&mut over).await;
        }
    };
    let warn = Box::new(move |line: &str| warned.log(true, line));
    let to = (&peer.connection, &peer.flows, stream);
    let (dropped, is_replaced) = tun.carry(given, to, warn, over).await;
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
    peer: &Peer,
    request: &Request,
    receive: &mut ReceiveStream,
) -> Result<Arc<UdpSocket>, Refusal> {
    let first = timeout(peer.shared.limits.asking, first_datagram(receive)).await;
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
