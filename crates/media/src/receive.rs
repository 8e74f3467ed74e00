//! The receiving end: lets senders on a list come, one at a time, and hands out what comes to a local UDP port.

use crate::connection::{self, for_media, message, until};
use crate::hello::{Answer, HELLO, read_hello, status};
use crate::measures::Measures;
use crate::playing::{Looks, Observer};
use crate::shown::Layers;
use narrows_base::text::shown;
use narrows_base::{Duration, Time};
use narrows_files::access::AllowList;
use narrows_files::{Error, Identity, Kind, key};
use narrows_net::tap::Tap;
use narrows_net::{Connection, Endpoint, Options, ReceiveStream, SendStream};
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::{Clients, EndpointLimits, Permit};
use narrows_wire::StaticKey;
use narrows_wire::noise::PublicKey;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as Wait;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// A sender has so long to say what it sends.
const ASKING: Wait = Wait::from_secs(10);
/// One that is refused has so long to go by itself.
const GOING: Wait = Wait::from_secs(2);
/// Connections at the same time.
const MAX_CONNECTIONS: usize = 64;
/// The code of connections that are closed for a newer one of the same sender, or since another sends.
const REPLACED: u64 = 257;
const REFUSED: u64 = 258;
/// Streams have so long to hand out what they hold: the longest latency, and a little.
const DRAINING: Wait = Wait::from_secs(32);
/// How often the sender is told what came.
const STATUS_EVERY: Duration = Duration::from_secs(1);

/// What is to be told to people.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// A line for the log; whether something broke, and whom it is about.
    Line {
        /// Whether something was refused or broke.
        is_warning: bool,
        /// Whom it is about.
        sender: String,
        /// What happened.
        line: String,
    },
    /// A stream is over.
    Over(Box<Measures>),
}

/// How a receiver is made.
pub struct ReceiveOptions {
    /// Its key.
    pub identity: Identity,
    /// Who may send.
    pub clients: AllowList,
    /// Where the media of each layer go, the base layer first.
    pub to: Vec<SocketAddr>,
    /// At least this latency, whatever a sender says.
    pub latency: Option<Duration>,
    /// How connections behave.
    pub config: ConnectionConfig,
    /// Which of the senders' protocols are answered with.
    pub permit: Permit,
    /// Told what happens.
    pub tell: Box<dyn Fn(&Event) + Send + Sync>,
    /// What observes the endpoint.
    pub tap: Option<Arc<dyn Tap>>,
    /// Told what is known while a stream comes.
    pub observer: Option<Observer>,
}

/// A listening receiver.
pub struct Server {
    endpoint: Endpoint,
    shared: Arc<Shared>,
}

struct Shared {
    /// One for each layer that is handed out.
    outs: Vec<UdpSocket>,
    latency: Option<Duration>,
    tell: Box<dyn Fn(&Event) + Send + Sync>,
    observer: Option<Observer>,
    /// Streams so far.
    streams: AtomicU64,
    /// Who sends.
    current: Mutex<Option<(PublicKey, Connection)>>,
}

impl Server {
    /// Listens; within a tokio runtime, which drives it.
    ///
    /// # Errors
    /// Nobody may come; or the address is not ours, taken, or not permitted.
    pub async fn bind(address: SocketAddr, options: ReceiveOptions) -> Result<Server, Error> {
        let ReceiveOptions { identity, clients, to, latency, config, permit, tell, tap, observer } =
            options;
        if clients.is_empty() {
            return Err(Error::new(Kind::Input, "--clients: no key is listed, so nobody may come"));
        }
        let mut outs = Vec::new();
        for to in to {
            let any: IpAddr = match to {
                SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            let out = connection::bind("--to", (any, 0).into()).await?;
            out.connect(to)
                .await
                .map_err(|e| Error::new(Kind::Local, format!("--to {to}: {e}")))?;
            outs.push(out);
        }
        let key = StaticKey::new(*identity.private())
            .map_err(|e| Error::new(Kind::Local, e.to_string()))?;
        let listed = Clients::Listed(clients.keys().copied().collect());
        let mut options = Options::server(key, listed, for_media(config)?).tapped(tap);
        options.permit = permit;
        options.limits = EndpointLimits::new(MAX_CONNECTIONS);
        let endpoint = Endpoint::bind(address, options)
            .map_err(|e| Error::new(Kind::Local, format!("--listen: {e}")))?;
        let (streams, current) = (AtomicU64::new(0), Mutex::default());
        let shared = Shared { outs, latency, tell, observer, streams, current };
        Ok(Server { endpoint, shared: Arc::new(shared) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// Receives until the endpoint is closed or `stop` is ready; the measures of streams that go on are told then, too.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let mut streams = JoinSet::new();
        let accept = async {
            while let Ok(connection) = self.endpoint.accept().await {
                while streams.try_join_next().is_some() {}
                streams.spawn(serve(self.shared.clone(), connection));
            }
        };
        tokio::select! {
            () = accept => {}
            () = stop => {}
        }
        self.endpoint.leave(connection::STOPPED, "the receiver was stopped");
        // They notice that their connections are over, and hand out what they hold.
        let all = async { while streams.join_next().await.is_some() {} };
        let _ = timeout(DRAINING, all).await;
    }
}

impl Shared {
    fn line(&self, is_warning: bool, sender: &str, line: &str) {
        let line = format!("{sender}: {line}");
        (self.tell)(&Event::Line { is_warning, sender: sender.into(), line });
    }

    /// Whether this sender may send: nobody does, or the same one did, which has connected again.
    fn take_place(&self, key: PublicKey, connection: &Connection) -> bool {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, before)) = current.as_ref().filter(|(_, before)| !before.is_closed()) {
            if *of != key {
                return false;
            }
            before.close(REPLACED, "the sender has connected again");
        }
        *current = Some((key, connection.clone()));
        true
    }
}

async fn serve(shared: Arc<Shared>, connection: Connection) {
    let Some(key) = connection.peer_key() else { return };
    let from = connection.remote().map_or("?".into(), |a| a.to_string());
    let short: String = key::text(&key).chars().take(12).collect();
    let sender = format!("{short} ({from})");
    let asked = timeout(ASKING, first_words(&connection)).await;
    let Some((mut send, receive, (latency, layers))) = asked.ok().flatten() else {
        shared.line(true, &sender, "said nothing that a sender of media says");
        // It reads the answer, and goes.
        let _ = timeout(GOING, connection.closed()).await;
        return connection.close(REFUSED, "no sender of media");
    };
    let latency = shared.latency.map_or(latency, |least| latency.max(least));
    if !shared.take_place(key, &connection) {
        shared.line(true, &sender, "refused, since another sends");
        let _ = send.send_last(&[Answer::Busy.code()]).await;
        return drop(timeout(GOING, connection.closed()).await);
    }
    let ms = latency.as_nanos() / 1_000_000;
    let what = match (layers, shared.outs.len()) {
        (1, _) => "sends".into(),
        (layers, ports) if layers > ports => {
            format!("sends {layers} layers, of which {ports} have a port (--to) to go to")
        }
        (layers, _) => format!("sends {layers} layers"),
    };
    shared.line(false, &sender, &format!("{what}, with a latency of {ms} ms"));
    if send.send_all(&[Answer::Come.code()]).await.is_ok() {
        let mut stream = Stream::new(&shared, &connection, latency, layers);
        stream.run(send, receive).await;
        if let Some(measures) = stream.measures() {
            (shared.tell)(&Event::Over(Box::new(measures)));
        }
    }
    let why = connection.closed().await;
    shared.line(false, &sender, &format!("gone: {}", shown(&why.to_string())));
}

/// What a sender says first, on its stream.
async fn first_words(
    connection: &Connection,
) -> Option<(SendStream, ReceiveStream, (Duration, usize))> {
    let (mut send, mut receive) = connection.accept_bi().await.ok()?;
    let (mut words, mut filled) = ([0; HELLO], 0);
    while let Some(into) = words.get_mut(filled..).filter(|into| !into.is_empty()) {
        filled += receive.receive(into).await.ok().filter(|n| *n > 0)?;
    }
    let Some(said) = read_hello(words) else {
        let _ = send.send_last(&[Answer::Bad.code()]).await;
        return None;
    };
    Some((send, receive, said))
}

/// A stream that comes.
struct Stream<'a> {
    shared: &'a Shared,
    connection: &'a Connection,
    latency: Duration,
    layers: Layers,
    /// If somebody observes it.
    looks: Option<Looks>,
    /// When the first media came, and the last.
    first: Option<Time>,
    last: Time,
}

impl<'a> Stream<'a> {
    fn new(
        shared: &'a Shared,
        connection: &'a Connection,
        latency: Duration,
        layers: usize,
    ) -> Stream<'a> {
        let layers = Layers::new(layers, latency);
        let number = shared.streams.fetch_add(1, Ordering::Relaxed);
        let looks = shared.observer.as_ref().map(|_| Looks::new(number, connection.now()));
        Stream { shared, connection, latency, layers, looks, first: None, last: Time::ZERO }
    }

    fn measures(&self) -> Option<Measures> {
        let first = self.first?;
        Some(Measures::of(&self.layers, self.latency, self.last.since(first)))
    }

    /// Until the connection is over, or the sender ends its stream.
    async fn run(&mut self, mut send: SendStream, mut receive: ReceiveStream) {
        let mut next_status = self.connection.now() + STATUS_EVERY;
        let mut byte = [0];
        loop {
            let now = self.connection.now();
            self.act(now);
            if next_status <= now {
                next_status = now + STATUS_EVERY;
                self.layers.look(now);
                // Few bytes into a window that nobody fills: it does not wait.
                if send.send_all(&status(&self.layers.received())).await.is_err() {
                    break;
                }
            }
            let wake = self.layers.next_timeout().min(next_status).min(self.look(now));
            tokio::select! {
                came = message(self.connection) => match came {
                    Ok((arrival, mut message)) => {
                        self.first.get_or_insert(arrival);
                        self.last = self.last.max(arrival);
                        if let Some(looks) = &mut self.looks {
                            looks.on_packet(arrival);
                        }
                        self.layers.on_message(arrival, &mut message);
                    }
                    Err(_) => break,
                },
                // The sender says nothing more on it.
                _ = receive.receive(&mut byte) => break,
                () = until(self.connection, wake) => {}
            }
        }
        self.drain().await;
        let _ = send.finish();
    }

    /// Tells the observer, if it is time; when the next look is due.
    fn look(&mut self, now: Time) -> Time {
        let (Some(looks), Some(tell)) = (&mut self.looks, &self.shared.observer) else {
            return Time::NEVER;
        };
        if looks.is_due(now) {
            let rtt = self.connection.stats().srtt;
            tell(&looks.look(now, &mut self.layers, self.latency, rtt));
        }
        looks.next()
    }

    fn act(&mut self, now: Time) {
        self.release(now);
        let rtt = self.connection.stats().srtt;
        while let Some(request) = self.layers.ask(now, rtt) {
            // Of no use once it could have been repeated twice; what waits longer is asked for again.
            let _ = self.connection.send_message(&request, self.latency);
        }
    }

    fn release(&mut self, now: Time) {
        while let Some((layer, datagram)) = self.layers.release(now) {
            if let Some(out) = self.shared.outs.get(layer) {
                // A full socket, or a player that is not there yet: the datagram is lost.
                let _ = out.try_send(&datagram);
            }
        }
    }

    /// What is held is handed out at its time, though nothing more comes.
    async fn drain(&mut self) {
        let end = self.connection.now() + self.latency + Duration::from_secs(1);
        loop {
            let now = self.connection.now();
            self.release(now);
            let due = self.layers.due();
            if due.is_never() || now >= end {
                return;
            }
            until(self.connection, due.min(end)).await;
        }
    }
}
