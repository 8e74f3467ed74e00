//! The near side's connections, and streams on them.

use crate::connection::for_tunnel;
use crate::flow::{Back, UdpFlows};
use crate::hints;
use crate::learning::Lesson;
use crate::over_tcp;
use crate::pipe::answer;
use crate::request::{Refusal, TunnelRequest};
use futures_util::future::{Either, select};
use narrows_base::Duration;
use narrows_congestion::PathHints;
use narrows_net::dial::tcp;
use narrows_net::{Connection, Endpoint, ReceiveStream, SendStream};
use narrows_peers::dial::{Dial, DialWords, DialledPeer, Peer};
use narrows_peers::learned::LearnedPaths;
use narrows_peers::refusals::RareLine;
use narrows_peers::{Error, ErrorKind};
use narrows_transport::connection::ConnectionConfig;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration as Wait;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

/// Time that a program's connection waits for a connection to the server: enough for an attempt over TCP, which
/// begins after [`HEAD_START`].
const PATIENCE: Wait = Wait::from_secs(55);

/// Time after which an attempt over TCP begins beside that over UDP.
const HEAD_START: Wait = Wait::from_secs(5);

/// Minimum wait for the server to permit another stream. It does so a round trip after another one has ended; if none
/// ends, the client has as many streams as it may.
const CREDIT: Wait = Wait::from_secs(1);
/// The same in round trips: a lost packet takes a second one.
const CREDIT_ROUNDS: u32 = 3;

const WORDS: DialWords =
    DialWords { stranger: "the server does not know this client", other_protocol: None };

/// Options of a near side.
pub struct ClientOptions {
    /// The server, and the timeout of an attempt over UDP.
    pub peer: Peer,
    /// Hints for the far side about its sending path.
    pub receiving: PathHints,
    /// Another connection is tried after this time without a packet, if probes are unanswered.
    pub silence: Duration,
    /// Streams that the server may have open; 0 without reverse forwarding.
    pub incoming: usize,
    /// File of learned paths, and the name of this path in it.
    pub learned: Option<(Arc<LearnedPaths>, String)>,
    /// Called with log lines for the user.
    pub tell: Box<dyn Fn(&str) + Send + Sync>,
}

/// Reason why a stream could not be opened through the tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotOpened {
    /// The far side refused.
    Refused(Refusal),
    /// There is no connection to the far side, or it was lost.
    NoTunnel,
}

impl fmt::Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotOpened::Refused(refusal) => refusal.fmt(f),
            NotOpened::NoTunnel => f.write_str("there is no connection to the tunnel's server"),
        }
    }
}

/// A connection to the far side.
pub struct FarConnection {
    connection: Connection,
    endpoint: Endpoint,
    /// UDP flows on the connection, with the destinations of their datagrams.
    pub flows: Arc<UdpFlows<Back>>,
    pub(crate) carrier: Option<Carrier>,
    is_over_tcp: bool,
    server: IpAddr,
    lesson: Option<Lesson>,
}

/// Both halves of a stream.
pub type Stream = (SendStream, ReceiveStream);

/// Tasks that carry datagrams over TCP; they end when this is dropped.
pub(crate) type Carrier = JoinSet<std::io::Result<()>>;

/// Close code: the TCP connection below was lost.
pub(crate) const CARRIER_LOST: u64 = 258;

impl FarConnection {
    fn new(
        connection: Connection,
        endpoint: Endpoint,
        carrier: Option<Carrier>,
        server: IpAddr,
    ) -> FarConnection {
        let is_over_tcp = carrier.is_some();
        let flows = Arc::default();
        let lesson = None;
        FarConnection { connection, endpoint, flows, carrier, is_over_tcp, server, lesson }
    }

    /// The server's address, also if it is reached over TCP.
    pub fn server(&self) -> IpAddr {
        self.server
    }

    /// Whether its packets are carried over TCP.
    pub fn is_over_tcp(&self) -> bool {
        self.is_over_tcp
    }

    /// Call this about once a second to record the bytes delivered for `--learn`.
    pub(crate) fn measure(&self) {
        if let Some(lesson) = &self.lesson {
            lesson.measure();
        }
    }

    /// Stores the learned path, if `--learn` is set.
    pub(crate) fn keep_learned(&self) {
        if let Some(lesson) = &self.lesson {
            lesson.keep();
        }
    }

    /// Sends hints about the path to the far side, if there are any. Does not wait for the answer.
    async fn tell_path(&self, hints: &PathHints) {
        if *hints != PathHints::default()
            && let Ok((mut send, _)) = self.connection.open_bi().await
        {
            // If the connection is over, other calls detect it.
            let _ = send.send_last(&hints::bytes(hints)).await;
        }
    }

    /// The rrtp connection below.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Sends a request and `more` bytes after it, in the same packet if they fit. The first byte received is the
    /// [answer](Refusal::from_code).
    ///
    /// # Errors
    /// The stream cannot be opened.
    pub async fn ask(&self, request: &TunnelRequest, more: &[u8]) -> Result<Stream, NotOpened> {
        let mut asked = request.bytes().ok_or(NotOpened::Refused(Refusal::NoSuchName))?;
        asked.extend(more);
        self.say(&asked).await
    }

    /// Opens a stream that begins with these bytes.
    pub(crate) async fn say(&self, asked: &[u8]) -> Result<Stream, NotOpened> {
        let rtt = Wait::from_nanos(self.connection.stats().srtt.as_nanos());
        let wait = CREDIT.max(rtt * CREDIT_ROUNDS);
        let opened = timeout(wait, self.connection.open_bi()).await;
        let opened = opened.map_err(|_| NotOpened::Refused(Refusal::TooMany))?;
        let (mut send, receive) = opened.map_err(|_| NotOpened::NoTunnel)?;
        send.send_all(asked).await.map_err(|_| NotOpened::NoTunnel)?;
        Ok((send, receive))
    }
}

/// Waits for the far side's answer to a request.
///
/// # Errors
/// It refuses, or the connection is lost.
pub(crate) async fn answered(receive: &mut ReceiveStream) -> Result<(), NotOpened> {
    match answer(receive).await {
        Ok(None) => Ok(()),
        Ok(Some(refusal)) => Err(NotOpened::Refused(refusal)),
        Err(_) => Err(NotOpened::NoTunnel),
    }
}

async fn opened(link: &FarConnection, request: &TunnelRequest) -> Result<Stream, NotOpened> {
    let (send, mut receive) = link.ask(request, &[]).await?;
    answered(&mut receive).await?;
    Ok((send, receive))
}

/// The connections on which a program's request is tried: the current one and, if that turns out to be lost (for
/// example after a restart of the server), the next one.
pub(crate) struct FarConnections<'t> {
    tunnel: &'t Tunnel,
    deadline: Instant,
    lost: Option<Arc<FarConnection>>,
}

impl FarConnections<'_> {
    /// The current connection, unless it is known to be lost; otherwise waits for the next one.
    ///
    /// # Errors
    /// The deadline has passed.
    pub async fn next(&mut self) -> Result<Arc<FarConnection>, NotOpened> {
        let mut current = self.tunnel.current.subscribe();
        let is_new = |link: &Arc<FarConnection>| {
            self.lost.as_ref().is_none_or(|lost| !Arc::ptr_eq(lost, link))
        };
        let found = current.wait_for(|current| current.as_ref().is_some_and(is_new));
        let there = timeout_at(self.deadline, found).await.map_err(|_| NotOpened::NoTunnel)?;
        there.map_err(|_| NotOpened::NoTunnel)?.clone().ok_or(NotOpened::NoTunnel)
    }

    /// Whether the request failed because this connection is lost. If so, [`next`](FarConnections::next) skips it.
    pub fn is_lost<T>(&mut self, link: &Arc<FarConnection>, opened: &Result<T, NotOpened>) -> bool {
        let is_lost = matches!(opened, Err(NotOpened::NoTunnel)) && link.connection.is_closed();
        if is_lost {
            self.lost = Some(link.clone());
        }
        is_lost
    }
}

/// The near side of a tunnel.
pub struct Tunnel {
    receiving: PathHints,
    pub(crate) silence: Duration,
    incoming: usize,
    learned: Option<(Arc<LearnedPaths>, String)>,
    tell: Box<dyn Fn(&str) + Send + Sync>,
    /// Connections beyond the server's limit.
    beyond: RareLine,
    /// Silent connections that gave way to them.
    displaced: RareLine,
    pub(crate) dial: Dial,
    pub(crate) current: watch::Sender<Option<Arc<FarConnection>>>,
}

impl Tunnel {
    /// A tunnel without a connection; [`keep`](Tunnel::keep) connects.
    pub fn new(options: ClientOptions) -> Arc<Tunnel> {
        let ClientOptions { peer, receiving, silence, incoming, learned, tell } = options;
        let dial = Dial::new(peer, WORDS);
        let current = watch::Sender::new(None);
        Arc::new(Tunnel {
            dial,
            receiving,
            silence,
            incoming,
            learned,
            tell,
            beyond: RareLine::default(),
            displaced: RareLine::default(),
            current,
        })
    }

    /// Reports a line to the user.
    pub fn tell(&self, line: &str) {
        (self.tell)(line);
    }

    /// Reports a refused request to the user. Refusals beyond the server's limit are counted, with a line at times.
    pub(crate) fn tell_refused(&self, what: &str, why: NotOpened) {
        if why != NotOpened::Refused(Refusal::TooMany) {
            return self.tell(&format!("{what}: {why}"));
        }
        match self.beyond.count(std::time::Instant::now(), 1) {
            None => {}
            Some(1) => self.tell(&format!("{what}: {why}")),
            Some(count) => {
                self.tell(&format!("{what}: {why} ({count} refusals since the last line)"))
            }
        }
    }

    /// Reports, at times, that silent connections ended for new ones.
    pub(crate) fn tell_displaced(&self, what: &str) {
        if let Some(count) = self.displaced.count(std::time::Instant::now(), 1) {
            self.tell(&format!(
                "{what}: {count} silent connections ended for new ones, since the server permits no more"
            ));
        }
    }

    /// Opens a new connection and sends hints about the path.
    pub(crate) async fn connect(&self) -> Result<FarConnection, Error> {
        let mut link = self.connect_somehow().await?;
        if let Some((learned, place)) = &self.learned {
            let over = if link.is_over_tcp { " over TCP" } else { "" };
            let place = format!("{place}{over}");
            link.lesson = Some(Lesson::begin(&link.connection, learned.clone(), place));
        }
        link.tell_path(&self.receiving).await;
        Ok(link)
    }

    /// Connects over UDP or, if the server does not answer, over TCP. The attempt over TCP begins after [`HEAD_START`],
    /// or once that over UDP fails; the one that completes first wins. With paths that the user named there is none: it
    /// would leave over another.
    async fn connect_somehow(&self) -> Result<FarConnection, Error> {
        let addresses = self.dial.addresses().await?;
        let config = for_tunnel(self.dial.peer.config.clone(), self.incoming)?;
        if !self.dial.peer.paths.all.is_empty() {
            return self.connect_over_udp(&addresses, config).await;
        }
        let is_unanswered = |e: &Error| e.kind == ErrorKind::Unreachable;
        let unanswered = Notify::new();
        let over_udp = pin!(async {
            let made = self.connect_over_udp(&addresses, config.clone()).await;
            if made.as_ref().is_err_and(is_unanswered) {
                unanswered.notify_one();
            }
            made
        });
        let over_tcp = pin!(async {
            // Either result begins the attempt.
            let _ = timeout(HEAD_START, unanswered.notified()).await;
            self.connect_over_tcp(&addresses, config.clone()).await
        });
        match select(over_udp, over_tcp).await {
            Either::Left((Err(e), over_tcp)) if is_unanswered(&e) => over_tcp.await.ok_or(e),
            Either::Left((made, _)) => made,
            Either::Right((Some(link), _)) => Ok(link),
            Either::Right((None, over_udp)) => over_udp.await,
        }
    }

    async fn connect_over_udp(
        &self,
        addresses: &[SocketAddr],
        config: ConnectionConfig,
    ) -> Result<FarConnection, Error> {
        let dialled = self.dial.connect(addresses, config).await?;
        let DialledPeer { connection, endpoint, address, others } = dialled;
        self.tell(&format!("connected to {address}{others}"));
        Ok(FarConnection::new(connection, endpoint, None, address.ip()))
    }

    /// `None` if it fails: the reason is that of the attempt over UDP.
    async fn connect_over_tcp(
        &self,
        addresses: &[SocketAddr],
        config: ConnectionConfig,
    ) -> Option<FarConnection> {
        let over_tcp = over_tcp::connect(addresses).await.ok()?;
        let address = over_tcp.address;
        let others = over_tcp.others(tcp::brief);
        let (tcp, udp) = over_tcp.value;
        let beside = udp.local_addr().ok()?;
        let endpoint = self.dial.loopback_endpoint(&config).ok()?;
        udp.connect(endpoint.local_addr()).await.ok()?;
        let mut carrier = JoinSet::new();
        carrier.spawn(over_tcp::carry(tcp, udp));
        let dialled = self.dial.connect_any(&endpoint, &[beside], config).await.ok()?;
        self.dial.prefer(address);
        self.tell(&format!("connected to {address} over TCP, since UDP is not answered{others}"));
        Some(FarConnection::new(dialled.value, endpoint, Some(carrier), address.ip()))
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// There is none within a minute.
    pub async fn link(&self) -> Result<Arc<FarConnection>, NotOpened> {
        self.links().next().await
    }

    /// Opens a stream for a request and waits for the answer. Keep the connection for as long as the stream.
    ///
    /// # Errors
    /// The far side refuses, or there is no connection.
    pub async fn open(
        &self,
        request: &TunnelRequest,
    ) -> Result<(Arc<FarConnection>, Stream), NotOpened> {
        let mut links = self.links();
        loop {
            let link = links.next().await?;
            let opened = opened(&link, request).await;
            if !links.is_lost(&link, &opened) {
                return opened.map(|stream| (link, stream));
            }
        }
    }

    /// The successive connections on which a request can be tried.
    pub(crate) fn links(&self) -> FarConnections<'_> {
        FarConnections { tunnel: self, deadline: Instant::now() + PATIENCE, lost: None }
    }

    /// Stores the learned path and closes the connection.
    pub fn leave(&self) {
        if let Some(link) = self.current.send_replace(None) {
            link.keep_learned();
            link.endpoint.leave(0, "");
        }
    }
}
