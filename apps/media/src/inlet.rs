//! The receiving side of one connection, independent of the end that connected, and the sockets to which media are
//! released.

use crate::connection::{self, message, until};
use crate::hello::{HELLO, HelloReply, read_hello, status};
use crate::measures::Measures;
use crate::playing::{Looks, Observer};
use crate::shown::LayerStatistics;
use narrows_base::{Duration, Time};
use narrows_net::{Connection, ReceiveStream, SendStream};
use narrows_peers::{Error, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration as Wait;
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// Time that a sender has for its hello.
const ASKING: Wait = Wait::from_secs(30);
/// Interval of the status messages to the sender.
const STATUS_EVERY: Duration = Duration::from_secs(1);

/// An event for the user.
#[derive(Clone, PartialEq, Debug)]
pub enum InletEvent {
    /// A line for the log.
    Line {
        /// Whether it is a refusal or a failure.
        is_warning: bool,
        /// The sender that it concerns.
        sender: String,
        /// Text of the line.
        line: String,
    },
    /// A stream has ended. Contains its measures.
    Over(Box<Measures>),
}

/// Destinations of the media, and callbacks.
pub struct Outs {
    /// Destination of each layer, the base layer first.
    pub to: Vec<SocketAddr>,
    /// Minimum latency; a sender may request more.
    pub latency: Option<Duration>,
    /// Called with events.
    pub tell: Box<dyn Fn(&InletEvent) + Send + Sync>,
    /// Called with the state while a stream is received.
    pub observer: Option<Observer>,
}

/// Receives media from connections and passes them to local programs.
pub struct Inlet {
    /// One socket for each layer that is passed on.
    outs: Vec<UdpSocket>,
    latency: Option<Duration>,
    tell: Box<dyn Fn(&InletEvent) + Send + Sync>,
    observer: Option<Observer>,
    /// Number of streams so far.
    streams: AtomicU64,
}

/// A sender's hello, and the stream on which it came.
pub struct SenderHello {
    send: SendStream,
    receive: ReceiveStream,
    latency: Duration,
    layers: usize,
}

/// A socket connected to each destination of `--to`.
pub(crate) async fn outs_to(all: &[SocketAddr]) -> Result<Vec<UdpSocket>, Error> {
    let mut outs = Vec::new();
    for to in all {
        let any: IpAddr = match to {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let out = connection::bind("--to", (any, 0).into()).await?;
        let wrong = |e| Error::new(ErrorKind::Local, format!("--to {to}: {e}"));
        out.connect(to).await.map_err(wrong)?;
        outs.push(out);
    }
    Ok(outs)
}

impl Inlet {
    /// Opens the sockets to these destinations.
    ///
    /// # Errors
    /// The system cannot open them.
    pub async fn new(outs: Outs) -> Result<Inlet, Error> {
        let Outs { to, latency, tell, observer } = outs;
        let outs = outs_to(&to).await?;
        Ok(Inlet { outs, latency, tell, observer, streams: AtomicU64::new(0) })
    }

    /// Reports an event.
    pub fn event(&self, event: &InletEvent) {
        (self.tell)(event);
    }
    /// Reports a line about this sender.
    pub fn line(&self, is_warning: bool, sender: &str, line: &str) {
        let line = format!("{sender}: {line}");
        self.event(&InletEvent::Line { is_warning, sender: sender.into(), line });
    }

    /// Waits for the sender's hello; `None` if there is no valid one in time.
    pub async fn asked(&self, sender: &str, connection: &Connection) -> Option<SenderHello> {
        let said = timeout(ASKING, first_words(connection)).await.ok().flatten();
        if said.is_none() {
            self.line(true, sender, "said nothing that a sender of media says");
        }
        said
    }

    /// Receives the announced media until the connection ends.
    pub async fn stream(&self, sender: &str, connection: &Connection, said: SenderHello) {
        let SenderHello { mut send, receive, latency, layers } = said;
        let latency = self.latency.map_or(latency, |min| latency.max(min));
        let ms = latency.as_nanos() / 1_000_000;
        let what = match (layers, self.outs.len()) {
            (1, _) => "sends".into(),
            (layers, ports) if layers > ports => {
                format!("sends {layers} layers, of which {ports} have a port (--to) to go to")
            }
            (layers, _) => format!("sends {layers} layers"),
        };
        self.line(false, sender, &format!("{what}, with a latency of {ms} ms"));
        if send.send_all(&[HelloReply::Come.code()]).await.is_ok() {
            let mut stream = InletStream::new(self, connection, latency, layers);
            stream.run(send, receive).await;
            if let Some(measures) = stream.measures() {
                self.event(&InletEvent::Over(Box::new(measures)));
            }
        }
    }
}

impl SenderHello {
    /// Informs the sender that another sender is active.
    pub async fn busy(mut self) {
        let _ = self.send.send_last(&[HelloReply::Busy.code()]).await;
    }
}

/// Reads the sender's hello from its first stream.
async fn first_words(connection: &Connection) -> Option<SenderHello> {
    let (mut send, mut receive) = connection.accept_bi().await.ok()?;
    let mut words = [0; HELLO];
    let mut filled = 0;
    while let Some(into) = words.get_mut(filled..).filter(|into| !into.is_empty()) {
        filled += receive.receive(into).await.ok().filter(|n| *n > 0)?;
    }
    let Some(said) = read_hello(words) else {
        let _ = send.send_last(&[HelloReply::Bad.code()]).await;
        return None;
    };
    let (latency, layers) = said;
    Some(SenderHello { send, receive, latency, layers })
}

/// A stream that is being received.
struct InletStream<'a> {
    inlet: &'a Inlet,
    connection: &'a Connection,
    latency: Duration,
    layers: LayerStatistics,
    /// Present if there is an observer.
    looks: Option<Looks>,
    /// Arrival of the first media, and of the last.
    first: Option<Time>,
    last: Time,
}

impl<'a> InletStream<'a> {
    fn new(
        inlet: &'a Inlet,
        connection: &'a Connection,
        latency: Duration,
        layers: usize,
    ) -> InletStream<'a> {
        let layers = LayerStatistics::new(layers, latency);
        let number = inlet.streams.fetch_add(1, Ordering::Relaxed);
        let looks = inlet.observer.as_ref().map(|_| Looks::new(number, connection.now()));
        InletStream { inlet, connection, latency, layers, looks, first: None, last: Time::ZERO }
    }

    fn measures(&self) -> Option<Measures> {
        let first = self.first?;
        Some(Measures::of(&self.layers, self.latency, self.last.since(first)))
    }

    /// Runs until the connection is over or the sender ends its stream.
    async fn run(&mut self, mut send: SendStream, mut receive: ReceiveStream) {
        let mut next_status = self.connection.now() + STATUS_EVERY;
        let mut byte = [0];
        loop {
            let now = self.connection.now();
            self.act(now);
            if next_status <= now {
                next_status = now + STATUS_EVERY;
                self.layers.look(now);
                // A status is small and the stream's window stays nearly empty, so this does not block.
                if send.send_all(&status(&self.layers.received())).await.is_err() {
                    break;
                }
            }
            let wake = self.layers.next_timeout().min(next_status).min(self.look(now));
            tokio::select! {
                received = message(self.connection) => match received {
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
                // After its hello the sender sends no further data on this stream, so the stream has ended.
                _ = receive.receive(&mut byte) => break,
                () = until(self.connection, wake) => {}
            }
        }
        self.drain().await;
        let _ = send.finish();
    }

    /// Calls the observer if a look is due. Returns the time of the next look.
    fn look(&mut self, now: Time) -> Time {
        let (Some(looks), Some(tell)) = (&mut self.looks, &self.inlet.observer) else {
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
            // The message expires after the latency. A request that waits longer is renewed anyway.
            let _ = self.connection.send_message(&request, self.latency);
        }
    }

    fn release(&mut self, now: Time) {
        while let Some((layer, datagram)) = self.layers.release(now) {
            if let Some(out) = self.inlet.outs.get(layer) {
                // If the socket is full, or the player has not started yet, the datagram is lost.
                let _ = out.try_send(&datagram);
            }
        }
    }

    /// Releases the buffered datagrams at their times after the connection has ended.
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
