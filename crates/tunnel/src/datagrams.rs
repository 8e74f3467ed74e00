//! Datagrams of the near side's programs: each pair of a program and a target is a flow.

use crate::client::{FarConnection, NotOpened, Tunnel, answered};
use crate::flow::{Back, LocalProgram, UdpFlow, UdpFlows};
use crate::forward::Forward;
use crate::parts::MAX_DATAGRAM;
use crate::request::TunnelRequest;
use narrows_net::{ReceiveStream, SendStream};
use narrows_peers::{Error, ErrorKind};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Maximum number of flows per socket; a datagram of a further flow is dropped.
const MAX_FLOWS: usize = 256;
/// Datagrams that may wait while a flow is being opened or its task is busy.
const WAITING: usize = 64;

/// Binds a UDP socket; `flag` names the option in errors.
///
/// # Errors
/// The port is in use, or the address is not one of this machine's.
pub async fn listen(flag: &str, address: SocketAddr) -> Result<UdpSocket, Error> {
    UdpSocket::bind(address).await.map_err(|e| {
        let taken = e.kind() == std::io::ErrorKind::AddrInUse;
        let why =
            if taken { "another program listens there already".into() } else { e.to_string() };
        Error::new(ErrorKind::Local, format!("{flag} {address}: {why}"))
    })
}

/// The flows of one socket, by program and target.
pub struct SocketFlows {
    tunnel: Arc<Tunnel>,
    socket: Arc<UdpSocket>,
    flows: HashMap<(SocketAddr, TunnelRequest), Sender<Vec<u8>>>,
}

impl SocketFlows {
    /// Flows of this socket; there are none yet.
    pub fn new(tunnel: Arc<Tunnel>, socket: Arc<UdpSocket>) -> SocketFlows {
        SocketFlows { tunnel, socket, flows: HashMap::new() }
    }

    /// Handles a program's datagram for a target. Answers are sent to the program with `head` before each.
    pub fn sent(&mut self, from: SocketAddr, to: &TunnelRequest, datagram: &[u8], head: &[u8]) {
        let key = (from, to.clone());
        if let Some(flow) = self.flows.get(&key)
            && !flow.is_closed()
        {
            // If the queue is full, the datagram is lost, as on any link.
            let _ = flow.try_send(datagram.to_vec());
            return;
        }
        self.flows.retain(|_, flow| !flow.is_closed());
        if self.flows.len() >= MAX_FLOWS {
            return;
        }
        let (sender, waiting) = channel(WAITING);
        let back = LocalProgram { socket: self.socket.clone(), to: from, head: head.to_vec() };
        let (tunnel, request, first) = (self.tunnel.clone(), to.clone(), datagram.to_vec());
        self.flows.insert(key, sender);
        tokio::spawn(async move {
            if let Err(why) = carry(&tunnel, &request, &first, back, waiting).await {
                tunnel.tell(&format!("{}: {why}", request.shown()));
            }
        });
    }
}

/// Opens a flow with its first datagram, and sends the following ones until the flow is idle or closed.
async fn carry(
    tunnel: &Tunnel,
    request: &TunnelRequest,
    first: &[u8],
    back: LocalProgram,
    mut waiting: Receiver<Vec<u8>>,
) -> Result<(), NotOpened> {
    let length = u16::try_from(first.len()).unwrap_or(u16::MAX).to_be_bytes();
    let opening = [&length, first].concat();
    let back = Arc::new(Back::Program(back));
    let mut links = tunnel.links();
    let (link, (_send, mut receive, flow)) = loop {
        let link = links.next().await?;
        let opened = open(&link, request, &opening, &back).await;
        if !links.is_lost(&link, &opened) {
            break (link, opened?);
        }
    };
    let Some(flow) = flow else { return Ok(()) };
    // The flow ends when the far side ends the stream, or when the programs' socket is closed here.
    let mut over = [0];
    loop {
        let left = flow.left();
        if left.is_zero() {
            return Ok(());
        }
        tokio::select! {
            datagram = waiting.recv() => match datagram {
                Some(datagram) => flow.send(link.connection(), &datagram),
                None => return Ok(()),
            },
            _ = receive.receive(&mut over) => return Ok(()),
            () = tokio::time::sleep(left) => {}
        }
    }
}

type Opened = (SendStream, ReceiveStream, Option<UdpFlow<Back>>);

async fn open(
    link: &FarConnection,
    request: &TunnelRequest,
    opening: &[u8],
    back: &Arc<Back>,
) -> Result<Opened, NotOpened> {
    let (send, mut receive) = link.ask(request, opening).await?;
    let flow = UdpFlows::add_shared(&link.flows, send.id(), back.clone());
    answered(&mut receive).await?;
    Ok((send, receive, flow))
}

/// Forwards all datagrams of a port to its target.
pub async fn run(tunnel: Arc<Tunnel>, socket: UdpSocket, forward: Forward) {
    let request = TunnelRequest::udp(&forward.host, forward.port);
    let socket = Arc::new(socket);
    let mut programs = SocketFlows::new(tunnel, socket.clone());
    let mut datagram = vec![0; MAX_DATAGRAM];
    loop {
        // The error concerns an earlier datagram to a program that has ended.
        let Ok((length, from)) = socket.recv_from(&mut datagram).await else { continue };
        programs.sent(from, &request, datagram.get(..length).unwrap_or_default(), &[]);
    }
}
