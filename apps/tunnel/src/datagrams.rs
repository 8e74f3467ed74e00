//! Datagrams of the near side's programs: each pair of a program and a target is a flow.

use crate::client::{FarConnection, NotOpened, Tunnel, answered};
use crate::flow::{Back, LocalProgram, UdpFlow, UdpFlows};
use crate::forward::Forward;
use crate::parts::MAX_DATAGRAM;
use crate::places::{GivenPlaces, HolderActivity, NO_NETWORK, PlaceLimits};
use crate::request::TunnelRequest;
use narrows_net::{ReceiveStream, SendStream};
use narrows_peers::refusals::RareLine;
use narrows_peers::{Error, ErrorKind};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Maximum number of flows per socket: as many as a server permits streams by default. Its `--max-flows` counts, too.
const MAX_FLOWS: usize = 1024;
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
    places: Arc<GivenPlaces>,
    limits: PlaceLimits,
    displaced: RareLine,
}

impl SocketFlows {
    /// Flows of this socket; there are none yet.
    pub fn new(tunnel: Arc<Tunnel>, socket: Arc<UdpSocket>) -> SocketFlows {
        SocketFlows::with_limit(tunnel, socket, MAX_FLOWS)
    }

    fn with_limit(tunnel: Arc<Tunnel>, socket: Arc<UdpSocket>, max: usize) -> SocketFlows {
        SocketFlows {
            tunnel,
            socket,
            flows: HashMap::new(),
            places: Arc::default(),
            limits: PlaceLimits::new(max),
            displaced: RareLine::default(),
        }
    }

    /// Handles a program's datagram for a target. Answers are sent to the program with `head` before each. If all flows
    /// are taken, the longest idle one ends.
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
        let Some(place) = self.places.take(NO_NETWORK, self.limits) else { return };
        if let Some(count) = self.displaced.count(Instant::now(), place.displaced as u64) {
            let max = self.limits.all;
            self.tunnel.tell(&format!(
                "{}: {count} idle flows ended early for new ones, since {max} are open",
                to.shown()
            ));
        }
        let (sender, waiting) = channel(WAITING);
        let back = LocalProgram { socket: self.socket.clone(), to: from, head: head.to_vec() };
        let tunnel = self.tunnel.clone();
        let request = to.clone();
        let first = datagram.to_vec();
        self.flows.insert(key, sender);
        tokio::spawn(async move {
            let carried = tokio::select! {
                carried = carry(&tunnel, &request, &first, &place.activity, back, waiting) => carried,
                () = place.given_up() => Ok(()),
            };
            if let Err(why) = carried {
                tunnel.tell_refused(&request.shown(), why);
            }
        });
    }
}

/// Opens a flow with its first datagram, and sends the following ones until the flow is idle or closed.
async fn carry(
    tunnel: &Tunnel,
    request: &TunnelRequest,
    first: &[u8],
    activity: &Arc<HolderActivity>,
    back: LocalProgram,
    mut waiting: Receiver<Vec<u8>>,
) -> Result<(), NotOpened> {
    let length = u16::try_from(first.len()).unwrap_or(u16::MAX).to_be_bytes();
    let opening = [&length, first].concat();
    let back = Arc::new(Back::Program(back));
    let mut links = tunnel.links();
    let (link, (_send, mut receive, flow)) = loop {
        let link = links.next().await?;
        let opened = open(&link, request, &opening, activity, &back).await;
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
    activity: &Arc<HolderActivity>,
    back: &Arc<Back>,
) -> Result<Opened, NotOpened> {
    let (send, mut receive) = link.ask(request, opening).await?;
    let flow = UdpFlows::add_shared(&link.flows, send.id(), back.clone(), activity.clone());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::both_ends::{far, udp_target};
    use std::time::Duration;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn datagrams_of_new_programs_pass_beyond_the_limit_of_flows() {
        let target = udp_target().await;
        let far = far(&[&target.to_string()]);
        let (tunnel, log) = far.near();
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let mut flows = SocketFlows::with_limit(tunnel, socket, 2);
        let request = TunnelRequest::udp("127.0.0.1", target.port());
        for question in [b"1", b"2", b"3", b"4", b"5"] {
            let program = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let mut answer = [0; 9];
            // On a busy machine a datagram may expire.
            let n = loop {
                flows.sent(program.local_addr().unwrap(), &request, question, &[]);
                let received = program.recv(&mut answer);
                if let Ok(n) = tokio::time::timeout(Duration::from_secs(1), received).await {
                    break n.unwrap();
                }
            };
            assert_eq!((n, &answer[..1]), (2, &question[..]));
        }
        let log = log.lock().unwrap();
        let lines = log.iter().filter(|line| line.contains("idle flows ended early")).count();
        assert_eq!(lines, 1, "{log:?}");
    }
}
