//! The server over `rrtp`: one thread accepts connections and reads requests; the threads of [`Requests`] answer them.
//!
//! [`Requests`]: crate::requests::Requests

use super::{static_key, stream};
use crate::frames;
use crate::message::{FileFrame, FileRequest, Tuning};
use crate::requests::{RequestSlot, RequestSource, SlotView};
use crate::service::{AnsweredRequest, Caller, Permits, RequestChannel, Service};
use crate::until::Until;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use narrows_congestion::{HintSource, PathHints};
use narrows_net::probe::{self, ProbeGate};
use narrows_net::tap::Tap;
use narrows_net::{Connection, Driver, Endpoint, Options, ReceiveStream, SendStream, block_on_for};
use narrows_peers::error::{Error, ErrorKind};
use narrows_peers::key::{self, Identity};
use narrows_peers::learned::{Delivered, LearnedPaths, MeasuredPath, client};
use narrows_peers::refusals::RefusalLog;
use narrows_transport::connection::{ConnectionConfig, MAX_PATHS};
pub use narrows_transport::endpoint::Permit;
use narrows_transport::endpoint::{Clients, EndpointLimits};
use narrows_wire::noise::PublicKey;
use std::cell::RefCell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Most connections of a server.
const MAX_CONNECTIONS: usize = 512;
/// Interval of checking deadlines and measuring deliveries.
const TICK: Duration = Duration::from_millis(250);

/// A listening endpoint.
pub struct RrtpServer {
    endpoint: Endpoint,
    service: Arc<Service>,
    label: String,
    own_key: PublicKey,
    learned: Option<Arc<LearnedPaths>>,
}

impl RrtpServer {
    /// Listens on `address`. Connections use `config`, but send with the controller that the client requested if
    /// `permit` accepts it; `tap` observes the endpoint.
    ///
    /// # Errors
    /// The address is not local, in use, or not permitted.
    pub fn bind(
        address: SocketAddr,
        identity: &Identity,
        service: Arc<Service>,
        config: ConnectionConfig,
        permit: Permit,
        tap: Option<Arc<dyn Tap>>,
    ) -> Result<RrtpServer, Error> {
        let own_key = *identity.public();
        let label = config.protocol.label().to_string();
        let clients = clients(&service.permits());
        let config = ConnectionConfig { paths: MAX_PATHS, ..super::for_files(config)? };
        let config =
            probe::answering(config).map_err(|e| Error::new(ErrorKind::Local, e.to_string()))?;
        let mut options = Options::server(static_key(identity)?, clients, config)
            .tapped(tap)
            // Early data may only be GET and LIST.
            .accepting_early_data(true)
            .driven_by(Driver::Thread);
        options.permit = permit;
        let reporter = Arc::clone(&service);
        options.filter = RefusalLog::filter(move |from, key, reason| {
            let line = format!("{reason}: {}", key::text(key));
            let e = Error::new(ErrorKind::Refused, line);
            reporter.tell(&AnsweredRequest::refused(&from.to_string(), e));
        });
        options.limits = EndpointLimits::new(MAX_CONNECTIONS);
        let endpoint = Endpoint::bind(address, options)
            .map_err(|e| Error::new(ErrorKind::Local, format!("--listen: {e}")))?;
        Ok(RrtpServer { endpoint, service, label, own_key, learned: None })
    }

    /// Stores measurements of the paths to clients, and uses them as hints for later connections.
    #[must_use]
    pub fn learning(self, learned: LearnedPaths) -> RrtpServer {
        RrtpServer { learned: Some(Arc::new(learned)), ..self }
    }

    /// Local address of the socket.
    pub fn address(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// A handle for other threads.
    pub fn control(&self) -> ServerControl {
        ServerControl { endpoint: self.endpoint.clone(), service: Arc::clone(&self.service) }
    }

    /// Serves until ended: this thread accepts and reads requests, others answer them.
    pub fn run(self) {
        let front =
            Rc::new(AcceptorState::new(self.service, self.label, self.own_key, self.learned));
        let mut tasks = FuturesUnordered::new();
        loop {
            let over = block_on_for(
                TICK,
                poll_fn(|context| {
                    while let Poll::Ready(accepted) = self.endpoint.poll_accept(context) {
                        let Ok(connection) = accepted else { return Poll::Ready(()) };
                        tasks.push(connected(Rc::clone(&front), connection).boxed_local());
                    }
                    loop {
                        tasks.extend(front.spawned.borrow_mut().drain(..));
                        if !matches!(tasks.poll_next_unpin(context), Poll::Ready(Some(()))) {
                            break;
                        }
                    }
                    Poll::Pending
                }),
            );
            if over.is_some() {
                return;
            }
            front.tick();
        }
    }
}

/// State shared by the tasks of the accepting thread.
struct AcceptorState {
    service: Arc<Service>,
    label: String,
    own_key: PublicKey,
    learned: Option<Arc<LearnedPaths>>,
    spawned: RefCell<Vec<LocalBoxFuture<'static, ()>>>,
    /// Connections whose deliveries are measured.
    measured: RefCell<Vec<Weak<MeasuredConnection>>>,
    probes: ProbeGate,
}

/// A connection and its delivery rate.
struct MeasuredConnection {
    connection: Connection,
    delivered: RefCell<Delivered>,
}

impl MeasuredConnection {
    fn measure(&self) {
        let arrived = self.connection.stats().bytes_arrived;
        self.delivered.borrow_mut().seen(Instant::now(), arrived);
    }
}

impl AcceptorState {
    fn new(
        service: Arc<Service>,
        label: String,
        own_key: PublicKey,
        learned: Option<Arc<LearnedPaths>>,
    ) -> AcceptorState {
        let spawned = RefCell::default();
        let measured = RefCell::default();
        let probes = ProbeGate::default();
        AcceptorState { service, label, own_key, learned, spawned, measured, probes }
    }

    fn tick(&self) {
        self.service.requests().tick();
        self.measured.borrow_mut().retain(|one| {
            let one = one.upgrade();
            one.map(|one| one.measure()).is_some()
        });
    }
}

/// Accepts the requests of one connection.
async fn connected(front: Rc<AcceptorState>, connection: Connection) {
    if probe::is_probe(&connection).await {
        return probe::answer(connection, &front.probes);
    }
    if probe::is_misused(&connection) {
        return connection.close(257, "that controller is for probes");
    }
    let (Some(key), Some(remote)) = (connection.peer_key(), connection.remote()) else { return };
    let place = client(&key, remote.ip());
    if let Some(learned) = &front.learned {
        remember(&connection, learned, &place);
    }
    let delivered = RefCell::default();
    let measured = Rc::new(MeasuredConnection { connection: connection.clone(), delivered });
    if front.learned.is_some() {
        measured.measure();
        front.measured.borrow_mut().push(Rc::downgrade(&measured));
    }
    while let Ok((send, receive)) = connection.accept_bi().await {
        // A client may migrate: each request counts for its current address.
        let from = connection.remote();
        let caller = From { key, from, connection: connection.clone() };
        let source = front.service.source(from.map(|a| a.ip()), Some(key));
        match front.service.requests().admit(source.clone()) {
            Ok(slot) => {
                let task = requested(Rc::clone(&front), caller, source, slot, send, receive);
                front.spawned.borrow_mut().push(task.boxed_local());
            }
            Err(e) => refuse(&front.service, &caller, send, e),
        }
    }
    if let Some(learned) = &front.learned {
        measured.measure();
        keep(&measured, Arc::clone(learned), &place);
    }
}

/// The client of a request.
struct From {
    key: PublicKey,
    from: Option<SocketAddr>,
    connection: Connection,
}

impl From {
    fn shown(&self) -> String {
        self.from.map_or("?".to_string(), |a| a.to_string())
    }
}

/// Sends an error on the stream of an unanswered request, as far as the stream accepts it.
fn refuse(service: &Service, caller: &From, mut send: SendStream, e: Error) {
    let mut said = Vec::new();
    let _ = frames::send(&mut said, &FileFrame::Error(e.clone()));
    let _ = poll_fn(|context| send.poll_send(context, &said)).now_or_never();
    let _ = send.finish();
    service.tell(&AnsweredRequest::refused(&caller.shown(), e));
}

/// Reads a request and queues it.
async fn requested(
    front: Rc<AcceptorState>,
    caller: From,
    source: RequestSource,
    slot: RequestSlot,
    send: SendStream,
    mut receive: ReceiveStream,
) {
    let request = match read_request(&mut receive, &slot.view()).await {
        Ok(Some(request)) => request,
        // The stream carries no request.
        Ok(None) => return,
        Err(e) if e.kind == ErrorKind::Cut => return,
        Err(e) => return refuse(&front.service, &caller, send, e),
    };
    let service = Arc::clone(&front.service);
    let label = front.label.clone();
    let own_key = front.own_key;
    let is_early = receive.is_early();
    front.service.requests().run(slot, move |slot| {
        let slot = match slot {
            Ok(slot) => slot,
            Err(e) => return refuse(&service, &caller, send, e),
        };
        let view = slot.view();
        let stream = stream(send, receive, Until::GivenUp(view.clone()), None, own_key);
        let from = caller.shown();
        let asked = Caller { key: caller.key, from, source, slot: view, is_early };
        let link = Remote { connection: caller.connection, label };
        service.converse(&asked, Some(request), stream, &link);
    });
}

/// Reads a request without a thread; `None` if the stream ends before its first byte.
async fn read_request(
    receive: &mut ReceiveStream,
    slot: &SlotView,
) -> Result<Option<FileRequest>, Error> {
    let mut head = [0; frames::REQUEST_HEAD];
    if !fill(receive, slot, &mut head).await? {
        return Ok(None);
    }
    let head = frames::request_head(head)?;
    let mut body = vec![0; head.length];
    if head.length > 0 && !fill(receive, slot, &mut body).await? {
        return Err(cut());
    }
    FileRequest::read(head, &body).map(Some)
}

fn cut() -> Error {
    Error::new(ErrorKind::Cut, "the connection was cut")
}

/// False if the stream ends before the first byte.
async fn fill(
    receive: &mut ReceiveStream,
    slot: &SlotView,
    into: &mut [u8],
) -> Result<bool, Error> {
    let mut at = 0;
    while let Some(rest) = into.get_mut(at..).filter(|rest| !rest.is_empty()) {
        let read = poll_fn(|context| match slot.poll(context.waker()) {
            Some(e) => Poll::Ready(Err(e)),
            None => receive.poll_receive(context, rest).map_err(|_| cut()),
        });
        match read.await? {
            0 if at == 0 => return Ok(false),
            0 => return Err(cut()),
            n => at += n,
        }
    }
    Ok(true)
}

/// Changes or ends a server from another thread.
pub struct ServerControl {
    endpoint: Endpoint,
    service: Arc<Service>,
}

impl ServerControl {
    /// Replaces permissions and limits, for all transports of the service. Connections and requests of clients that
    /// are no longer admitted end; others go on.
    pub fn set_permits(&self, permits: Permits) {
        self.service.set_permits(permits);
        self.endpoint.set_clients(clients(&self.service.permits()));
    }

    /// Closes all connections, so that no client waits in vain.
    pub fn end(&self) {
        self.endpoint.shut_down(256, "the server was stopped");
    }
}

fn clients(permits: &Permits) -> Clients {
    let list = permits.clients.as_ref();
    list.map_or(Clients::Any, |list| Clients::Listed(list.keys().copied().collect()))
}

/// Uses stored measurements as hints if the RTT fits.
pub(crate) fn remember(connection: &Connection, learned: &LearnedPaths, place: &str) {
    // A broken file was reported when the server started.
    let Ok(Some(known)) = learned.get(place) else { return };
    if known.may_be(connection.stats().srtt) {
        let _ = connection.reconfigure(&known.path, HintSource::Stored);
    }
}

/// Stores the measurements of an ended connection, as far as the delivered bytes confirm them.
fn keep(measured: &MeasuredConnection, learned: Arc<LearnedPaths>, place: &str) {
    let connection = &measured.connection;
    let delivered = measured.delivered.borrow();
    let found = MeasuredPath::verified(&connection.learned(), &delivered);
    let place = place.to_string();
    let retreated = connection.stats().counters.retreats > 0;
    // Another thread waits for the disk. If the disk fails, the next connection begins without hints.
    let _ = std::thread::Builder::new().spawn(move || learned.end(&place, found, retreated));
}

struct Remote {
    connection: Connection,
    label: String,
}

impl RequestChannel for Remote {
    fn tune(&self, tuning: &Tuning) -> Tuning {
        if tuning.path != PathHints::default() {
            // Fails only if the connection has ended.
            let _ = self.connection.reconfigure(&tuning.path, HintSource::Peer);
        }
        let controller = self.connection.protocol().unwrap_or_else(|_| self.label.clone());
        Tuning { path: self.connection.learned(), controller }
    }
}
