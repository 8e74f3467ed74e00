//! The application's handle of a connection.

use super::connection_ref::ConnectionRef;
use super::receive_stream::ReceiveStream;
use super::send_stream::SendStream;
use super::shared::{Core, bound};
use super::take_turn::{ItemKind, TakeTurn};
use crate::error::Error;
use narrows_base::{Duration, Rate, Time};
use narrows_congestion::{HintSource, PathHints};
use narrows_transport::connection::{
    Connection as Machine, PathStats, PathStatus, PathWeight, ReceivedMessage, Stats,
};
use narrows_transport::endpoint::Facts;
use std::future::poll_fn;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

/// A connection. Clones refer to the same connection. After the last clone and the last of its streams are dropped, it
/// is closed as soon as all finished streams have arrived, but after 30 s at the latest.
///
/// Streams are reliable; messages expire and are not repeated:
///
/// ```no_run
/// use narrows_base::Duration;
///
/// # async fn sent(connection: narrows_net::Connection) -> Result<(), narrows_net::Error> {
/// let mut stream = connection.open_uni().await?;
/// stream.send_all(b"arrives").await?;
/// connection.send_message(b"arrives, or not", Duration::from_millis(100))?;
/// println!("RTT {}", connection.stats().srtt);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Connection {
    hold: Arc<ConnectionRef>,
}

/// A reference to a connection that does not keep it open.
#[derive(Clone, Debug)]
pub struct WeakConnection {
    hold: Weak<ConnectionRef>,
}

impl WeakConnection {
    /// The connection, unless its last handle was dropped.
    pub fn upgrade(&self) -> Option<Connection> {
        Some(Connection { hold: self.hold.upgrade()? })
    }
}

impl Connection {
    pub(super) fn new(hold: ConnectionRef) -> Connection {
        Connection { hold: Arc::new(hold) }
    }

    pub(super) fn hold(&self) -> &ConnectionRef {
        &self.hold
    }

    pub(super) fn hold_arc(&self) -> Arc<ConnectionRef> {
        self.hold.clone()
    }

    /// Opens a bidirectional stream; waits while the peer permits no more.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn open_bi(&self) -> Result<(SendStream, ReceiveStream), Error> {
        let id = poll_fn(|context| self.poll_open(context, false)).await?;
        Ok((SendStream::new(self.hold.clone(), id), ReceiveStream::new(self.hold.clone(), id)))
    }

    /// Opens a unidirectional stream; waits while the peer permits no more.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn open_uni(&self) -> Result<SendStream, Error> {
        let id = poll_fn(|context| self.poll_open(context, true)).await?;
        Ok(SendStream::new(self.hold.clone(), id))
    }

    fn poll_open(&self, context: &mut Context<'_>, one_way: bool) -> Poll<Result<u64, Error>> {
        let opened = self.hold.with(|machine, state| {
            let id = machine.open(one_way);
            match id {
                Some(id) if !one_way => state.streams.begin_reading(id),
                Some(_) => {}
                None => state.opening.add(context.waker()),
            }
            id
        })?;
        opened.map_or(Poll::Pending, |id| Poll::Ready(Ok(id)))
    }

    /// The next bidirectional stream opened by the peer.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn accept_bi(&self) -> Result<(SendStream, ReceiveStream), Error> {
        let id = self.accept(false).await?;
        Ok((SendStream::new(self.hold.clone(), id), ReceiveStream::new(self.hold.clone(), id)))
    }

    /// The next unidirectional stream opened by the peer.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn accept_uni(&self) -> Result<ReceiveStream, Error> {
        let id = self.accept(true).await?;
        Ok(ReceiveStream::new(self.hold.clone(), id))
    }

    fn accept(&self, one_way: bool) -> TakeTurn<'_, u64, impl FnMut(&mut Core) -> Option<u64>> {
        let handle = self.hold.handle;
        let kind = if one_way { ItemKind::OneWay } else { ItemKind::Both };
        let take = move |core: &mut Core| {
            // Data that arrived before the connection's end can still be read after it.
            let state = core.any_life(handle)?;
            let id = state.opened_by_peer[usize::from(one_way)].pop_front()?;
            state.streams.begin_reading(id);
            Some(id)
        };
        TakeTurn::new(&self.hold, kind, take)
    }

    /// Queues an unreliable message, which must fit into one packet. If it has not been sent after `expiry`, it is
    /// dropped; zero means never. Does not wait.
    ///
    /// # Errors
    /// [`MessageTooLong`](Error::MessageTooLong), [`MessageTooLongNow`](Error::MessageTooLongNow) (the path is then
    /// probed for larger packets: read [`max_message_len`](Connection::max_message_len) again after a round trip),
    /// [`MessagesFull`](Error::MessagesFull), or the connection is over.
    pub fn send_message(&self, message: &[u8], expiry: Duration) -> Result<(), Error> {
        let sent = if expiry == Duration::ZERO {
            // For a message that never expires, the time of the last turn is exact enough and saves a system call.
            self.hold.with_latest(|m, latest| m.send_message(latest, message, expiry))?
        } else {
            self.hold.with_now(|m, now| m.send_message(now, message, expiry))?
        };
        sent.map_err(Error::from)
    }

    /// Length in bytes of the longest message that can be sent now: limited by the peer and by the path's validated
    /// packet size. It changes with the path.
    ///
    /// # Errors
    /// The connection is over.
    pub fn max_message_len(&self) -> Result<usize, Error> {
        self.hold.look(|machine, _| machine.max_message_len())
    }

    /// Says how many bytes of messages the application keeps, to send them as earlier ones leave. With several paths, the
    /// choice of path counts them with the waiting ones: the more data wait, the more a slower path is worth.
    ///
    /// # Errors
    /// The connection is over.
    pub fn hold_back(&self, bytes: u64) -> Result<(), Error> {
        self.hold.look(|machine, _| machine.hold_back(bytes))
    }

    /// Number of messages that wait to be sent. At zero with no bytes in flight ([`Stats::flight`]), each message has
    /// arrived or is lost.
    ///
    /// # Errors
    /// The connection is over.
    pub fn messages_waiting(&self) -> Result<usize, Error> {
        self.hold.look(|machine, _| machine.messages_waiting())
    }

    /// Sets whether the newest of several waiting messages is sent first.
    ///
    /// # Errors
    /// The connection is over.
    pub fn newest_first(&self, on: bool) -> Result<(), Error> {
        self.hold.with(|m, _| m.newest_first(on))
    }

    /// Sets the ECN field of later packets with data, regardless of the protocol.
    ///
    /// # Errors
    /// The connection is over.
    pub fn set_ecn_field(&self, field: u8) -> Result<(), Error> {
        self.hold.with(|m, _| m.set_ecn_field(field))
    }

    /// The next received message.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn receive_message(&self) -> Result<Vec<u8>, Error> {
        let handle = self.hold.handle;
        TakeTurn::new(&self.hold, ItemKind::Message, move |core: &mut Core| {
            core.endpoint.with(handle, |machine| machine.receive_message())?.ok()?
        })
        .await
    }

    /// The polling form of [`receive_message`](Connection::receive_message).
    pub fn poll_message(&self, context: &mut Context<'_>) -> Poll<Result<Vec<u8>, Error>> {
        let message = self.hold.look(|machine, state| {
            let message = machine.receive_message();
            if message.is_none() {
                state.polling.add(context.waker());
            }
            message
        })?;
        message.map_or(Poll::Pending, |m| Poll::Ready(Ok(m)))
    }

    /// As [`poll_message`](Connection::poll_message), with the packet's ECN field and its arrival time on the clock of
    /// [`now`](Connection::now): the system's time stamp, if it has one.
    pub fn poll_whole_message(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<Result<ReceivedMessage, Error>> {
        let message = self.hold.look(|machine, state| {
            let message = machine.receive_whole_message();
            if message.is_none() {
                state.polling.add(context.waker());
            }
            message
        })?;
        message.map_or(Poll::Pending, |m| Poll::Ready(Ok(m)))
    }

    /// The time by the clock of this connection's endpoint.
    pub fn now(&self) -> Time {
        self.hold.shared().clock.now()
    }

    /// Statistics; after the connection's end, the last ones.
    pub fn stats(&self) -> Stats {
        let now = self.hold.look(|machine, state| {
            let stats = machine.stats();
            state.last.get_or_insert_default().stats = stats;
            stats
        });
        now.unwrap_or_else(|_| {
            let mut core = self.hold.shared().lock();
            core.any_life(self.hold.handle).map(|l| l.last_figures().stats).unwrap_or_default()
        })
    }

    /// The controller's variables, as for time series.
    pub fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        let mut all = Vec::new();
        let _ =
            self.hold.look(|machine, _| machine.watch(&mut |name, value| all.push((name, value))));
        all.into_iter().for_each(|(name, value)| put(name, value));
    }

    /// Sets hints about the path, for instance after it has changed.
    ///
    /// # Errors
    /// The connection is over.
    pub fn reconfigure(&self, hints: &PathHints, source: HintSource) -> Result<(), Error> {
        self.hold.with_now(|m, now| m.reconfigure(now, hints, source))
    }

    /// Limits the sending rate in addition to the controller.
    ///
    /// # Errors
    /// The connection is over.
    pub fn limit_rate(&self, max: Option<Rate>) -> Result<(), Error> {
        self.hold.with(|m, _| m.limit_rate(max))
    }

    /// Measurements of the path, as hints for the next connection to the same peer. Also available after the
    /// connection's end. Empty if an end's IP address ever changed.
    pub fn learned(&self) -> PathHints {
        self.hold.look(|m, _| m.learned()).unwrap_or_else(|_| {
            let mut core = self.hold.shared().lock();
            core.any_life(self.hold.handle).map(|l| l.last_figures().learned).unwrap_or_default()
        })
    }

    /// The time since the last authentic packet of the peer, and the idle timeout (zero for none).
    ///
    /// # Errors
    /// The connection is over.
    pub fn silence(&self) -> Result<(Duration, Duration), Error> {
        self.hold.with_now(|m, now| (now.since(m.last_received()), m.idle_timeout()))
    }

    /// The protocol of this end's sender. A server uses the one that the client announced if
    /// [`Options::permit`](super::Options::permit) allows it.
    ///
    /// # Errors
    /// The connection is over.
    pub fn protocol(&self) -> Result<String, Error> {
        self.hold.look(|m, _| m.protocol().to_string())
    }

    /// The protocol of the peer's sender, as announced: printable ASCII, empty if the peer announced none.
    ///
    /// # Errors
    /// The connection is over.
    pub fn peer_protocol(&self) -> Result<String, Error> {
        self.hold.look(|m, _| m.peer_protocol().to_string())
    }

    /// The agreed application protocol
    /// ([`ConnectionConfig::applications`](narrows_transport::connection::ConnectionConfig::applications)), if any. If
    /// the client offers several, this waits for the server's choice. If it offers one, the result is available at
    /// once, and the connection ends if the server refuses it.
    ///
    /// ```no_run
    /// # use narrows_net::{ApplicationProtocols, ConnectOptions, Endpoint, Error};
    /// # async fn chat(
    /// #     endpoint: Endpoint, server: std::net::SocketAddr, mut options: ConnectOptions,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// options.connection.applications = ApplicationProtocols::new(["chat/2", "chat/1"])?;
    /// let connection = endpoint.connect(server, options).await?;
    /// match connection.application().await {
    ///     Ok(chosen) => println!("we speak {chosen:?}"),
    ///     Err(Error::NoCommonProtocol { reason }) => println!("{reason}"),
    ///     Err(other) => return Err(other.into()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The connection is over.
    pub async fn application(&self) -> Result<Option<String>, Error> {
        poll_fn(|context| {
            let known = self.hold.look(|machine, state| {
                let known = machine.application().map(|name| name.map(String::from));
                if known.is_none() {
                    state.stages.add(context.waker());
                }
                known
            })?;
            known.map_or(Poll::Pending, |name| Poll::Ready(Ok(name)))
        })
        .await
    }

    /// The peer's static key; `None` if the connection ended before the key arrived.
    pub fn peer_key(&self) -> Option<[u8; 32]> {
        let mut core = self.hold.shared().lock();
        core.any_life(self.hold.handle).and_then(|l| l.key)
    }

    /// A client's network, key, whether the key is listed, and the bytes moved. For servers that share other resources
    /// among clients ([`share`](narrows_transport::endpoint::share)). `None` if this end opened the connection, or if
    /// it is over.
    pub fn facts(&self) -> Option<Facts> {
        let shared = self.hold.shared();
        let now = shared.clock.now();
        shared.lock().endpoint.facts(now, self.hold.handle)
    }

    /// Opens a further path, from the endpoint's socket with this number
    /// ([`with_sockets`](super::Endpoint::with_sockets)). Both ends must permit so many paths
    /// ([`ConnectionConfig::paths`](narrows_transport::connection::ConnectionConfig::paths)). Returns whether the path is
    /// tried: it carries data once it is validated, as [`paths`](Connection::paths) tells.
    pub fn open_path(&self, path: u8) -> bool {
        let handle = self.hold.handle;
        self.hold.shared().with_now(|core, now| {
            core.state(handle).is_ok() && core.endpoint.open_path(now, handle, path)
        })
    }

    /// Sets the status of a path for both directions, at the end that opened the connection. On standby it carries data
    /// only while no available path answers; [`PathStatus::Unusable`] closes it for good. A path that is not open yet
    /// begins so. Returns whether the path is within the agreed number and not closed.
    pub fn set_path_status(&self, path: u8, status: PathStatus) -> bool {
        let set = |machine: &mut Machine, now: Time| machine.set_path_status(now, path, status);
        self.hold.with_now(set).unwrap_or(false)
    }

    /// Sets the weight of an available path for both directions, at the end that opened the connection. The path carries at
    /// most its part of what the heaviest usable path carries. Returns as
    /// [`set_path_status`](Connection::set_path_status).
    pub fn set_path_weight(&self, path: u8, weight: PathWeight) -> bool {
        let set = |machine: &mut Machine, now: Time| machine.set_path_weight(now, path, weight);
        self.hold.with_now(set).unwrap_or(false)
    }

    /// Moves a path of the endpoint's connections to another socket, as after its interface was made anew, or adds the
    /// socket of the next path. Returns whether there is such a path.
    ///
    /// # Errors
    /// The socket is not bound.
    pub fn rebind_path(&self, path: u8, socket: UdpSocket) -> Result<bool, Error> {
        let socket = Arc::new(bound(socket)?);
        Ok(self.hold.shared().rebind(usize::from(path), socket))
    }

    /// A reference that does not keep the connection open.
    pub fn downgrade(&self) -> WeakConnection {
        WeakConnection { hold: Arc::downgrade(&self.hold) }
    }

    /// Statistics of each path that has begun; after the connection's end none.
    pub fn paths(&self) -> Vec<PathStats> {
        self.hold.look(|machine, _| machine.path_stats()).unwrap_or_default()
    }

    /// The peer's address.
    pub fn remote(&self) -> Option<SocketAddr> {
        let mut core = self.hold.shared().lock();
        core.any_life(self.hold.handle).map(|l| l.remote)
    }

    /// Closes the connection and drops undelivered data. Codes from 256 on belong to the
    /// application.
    pub fn close(&self, code: u64, reason: &str) {
        let handle = self.hold.handle;
        self.hold.shared().with_now(|core, now| {
            if core.state(handle).is_ok() {
                core.endpoint.close(now, handle, code, reason);
            }
        });
    }

    /// Waits for the connection's end, and returns the reason.
    pub async fn closed(&self) -> Error {
        poll_fn(|context| self.poll_closed(context)).await
    }

    /// The polling form of [`closed`](Connection::closed).
    pub fn poll_closed(&self, context: &mut Context<'_>) -> Poll<Error> {
        let mut core = self.hold.shared().lock();
        match core.state(self.hold.handle) {
            Ok(state) => {
                state.stages.add(context.waker());
                Poll::Pending
            }
            Err(why) => Poll::Ready(why),
        }
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.hold.shared().lock().state(self.hold.handle).is_err()
    }
}
