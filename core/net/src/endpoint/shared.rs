//! State shared by the driver, the application's calls, and the tasks that wait.

use super::buffers::TurnBuffers;
use super::observer::ObservedEndpoint;
use super::state::{AppConnection, ConnectionStage, WaitingTasks};
use crate::clock::Clock;
use crate::error::Error;
use crate::socket::Socket;
use crate::tap::{ConnectionOpened, Tap};
use crate::wait;
use narrows_base::{Duration, Time};
use narrows_transport::connection::{Closed, Connection as Machine, ConnectionEvent};
use narrows_transport::endpoint::{Endpoint as TransportEndpoint, Handle, ServerKey};
use narrows_transport::streams::StreamEvent;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::task::Waker;

/// The most bytes that are copied under the endpoint's lock at once: meanwhile the driver is blocked.
pub const MAX_LOCKED: usize = 64 << 10;

/// Time for which a connection without handles stays open until its finished streams have arrived.
const LINGER: Duration = Duration::from_secs(30);
/// Time for which a connection without handles or unfinished data stays open. An application that has read a stream's
/// end and leaves has not acknowledged it yet, because reports are delayed a little.
const PARTING: Duration = Duration::from_millis(50);
/// Time after which a closed endpoint ends even if peers have not acknowledged the close.
const LEAVING: Duration = Duration::from_secs(3);

/// States of the driver, for the application's calls.
const AWAKE: u8 = 0;
const ASLEEP: u8 = 1;
/// Awake, and the application has called since.
const CALLED: u8 = 2;

/// Ends the driver's sleep.
pub(super) enum DriverWaker {
    Thread(wait::Waker),
    #[cfg(feature = "runtime-tokio")]
    Task(Mutex<Option<Waker>>),
}

/// Takes over a socket that the caller has bound.
pub(super) fn bound(socket: UdpSocket) -> Result<Socket, Error> {
    let socket = Socket::of(socket).map_err(|e| Error::system(&e))?;
    if socket.local().port() == 0 {
        return Err(Error::Address { address: socket.local() });
    }
    Ok(socket)
}

/// The sockets of an endpoint.
#[derive(Clone)]
struct SocketSet {
    /// Of path 0.
    first: Arc<Socket>,
    /// Of further paths.
    further: Vec<Arc<Socket>>,
}

impl SocketSet {
    fn all(&self) -> impl Iterator<Item = &Arc<Socket>> {
        std::iter::once(&self.first).chain(&self.further)
    }
}

pub(super) struct EndpointShared {
    pub core: Mutex<Core>,
    /// Lock order: `turn` before `core`.
    turn: Mutex<TurnBuffers>,
    /// Copies of the turn's, for callers without the turn.
    sockets: RwLock<Arc<SocketSet>>,
    /// Number of socket replacements, and the errors of former sockets.
    rebound: AtomicU64,
    past_errors: AtomicU64,
    pub clock: Clock,
    /// A copy of the core's, for use without its lock.
    pub tap: Option<Arc<dyn Tap>>,
    waker: DriverWaker,
    /// `ASLEEP` is set while the driver holds the core, so that later callers see it.
    state: AtomicU8,
}

impl ObservedEndpoint for EndpointShared {
    fn each_open(&self, look: &mut dyn FnMut(Time, Handle, &Machine)) -> bool {
        let mut core = self.lock();
        if core.ended {
            return false;
        }
        let now = self.clock.now();
        core.each_open(|handle, machine| look(now, handle, machine));
        true
    }
    fn open_of(&self, handles: &[Handle], look: &mut dyn FnMut(Time, Handle, &Machine)) -> bool {
        let mut core = self.lock();
        if core.ended {
            return false;
        }
        let now = self.clock.now();
        core.open_of(handles, |handle, machine| look(now, handle, machine));
        true
    }
}

impl EndpointShared {
    pub fn new(
        core: Core,
        socket: Socket,
        further: Vec<Socket>,
        clock: Clock,
        waker: DriverWaker,
    ) -> EndpointShared {
        let tap = core.tap.clone();
        let state = AtomicU8::new(AWAKE);
        let socket = Arc::new(socket);
        let core = Mutex::new(core);
        let further: Vec<Arc<Socket>> = further.into_iter().map(Arc::new).collect();
        let turn = Mutex::new(TurnBuffers::new(socket.clone(), &further));
        let rebound = AtomicU64::new(0);
        let past_errors = AtomicU64::new(0);
        let sockets = RwLock::new(Arc::new(SocketSet { first: socket, further }));
        EndpointShared { core, turn, sockets, rebound, past_errors, clock, tap, waker, state }
    }

    /// The current sockets.
    fn sockets(&self) -> Arc<SocketSet> {
        self.sockets.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
    /// The current socket of path 0.
    pub fn socket(&self) -> Arc<Socket> {
        self.sockets().first.clone()
    }
    /// Failed sends and receives, of all sockets.
    pub fn errors(&self) -> u64 {
        let present: u64 = self.sockets().all().map(|socket| socket.errors()).sum();
        self.past_errors.load(Ordering::Relaxed) + present
    }
    /// Number of socket replacements.
    #[cfg(feature = "runtime-tokio")]
    pub fn rebound(&self) -> u64 {
        self.rebound.load(Ordering::Acquire)
    }
    /// Replaces the socket of a path, after a last receive from the old one; or adds the next one. Returns whether there
    /// is such a path.
    pub fn rebind(&self, path: usize, socket: Arc<Socket>) -> bool {
        let mut turn = self.turn();
        turn.receive();
        turn.run(self);
        let mut sockets = SocketSet::clone(&self.sockets());
        let SocketSet { first, further } = &mut sockets;
        let next = further.len() + 1;
        let place = match path.checked_sub(1) {
            None => Some(first),
            Some(index) => further.get_mut(index),
        };
        match place {
            Some(place) => {
                self.past_errors.fetch_add(place.errors(), Ordering::Relaxed);
                *place = socket.clone();
            }
            None if path == next => further.push(socket.clone()),
            None => return false,
        }
        turn.replace(path, socket);
        *self.sockets.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(sockets);
        self.rebound.fetch_add(1, Ordering::Release);
        drop(turn);
        // Wakes the driver, which may wait for the old socket.
        self.with(|core| core.on_local_address_change(path));
        true
    }

    /// Locks the core, to be held briefly. After a panic of another thread the core is usable enough to report the end.
    pub fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the state that a driver needs.
    pub fn turn(&self) -> MutexGuard<'_, TurnBuffers> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the core and notifies the driver.
    pub fn with<R>(&self, act: impl FnOnce(&mut Core) -> R) -> R {
        let result = act(&mut self.lock());
        self.kick();
        result
    }
    /// As [`with`](Self::with), with the current time.
    pub fn with_now<R>(&self, act: impl FnOnce(&mut Core, Time) -> R) -> R {
        let now = self.clock.now();
        self.with(|core| act(core, now))
    }

    /// Notifies the driver of an application's call, if it sleeps. Instead of waking a driver thread, which takes
    /// longer, this thread sends the first packets after a pause itself.
    pub fn kick(&self) {
        // An earlier caller since the driver awoke has woken it, or the driver will check.
        if self.state.load(Ordering::Acquire) == CALLED
            || self.state.swap(CALLED, Ordering::AcqRel) != ASLEEP
        {
            return;
        }
        match &self.waker {
            DriverWaker::Thread(waker) => {
                let turn = self.turn.try_lock();
                if !turn.is_ok_and(|mut turn| turn.run_in_call(self)) {
                    waker.wake();
                }
            }
            #[cfg(feature = "runtime-tokio")]
            DriverWaker::Task(waker) => {
                let waker = waker.lock().unwrap_or_else(PoisonError::into_inner);
                waker.iter().for_each(Waker::wake_by_ref);
            }
        }
    }

    /// Marks the driver as asleep. To be called with the core locked.
    pub fn will_sleep(&self) {
        self.state.store(ASLEEP, Ordering::Release);
    }

    /// Blocks the driver thread until `due`, a packet, a wake-up, or with `room` until the socket is writable.
    pub fn sleep(&self, due: Time, room: bool) {
        #[cfg_attr(not(feature = "runtime-tokio"), expect(irrefutable_let_patterns))]
        let DriverWaker::Thread(waker) = &self.waker else { return };
        let sockets = self.sockets();
        let first = wait::Interest { socket: &sockets.first, room };
        let further = sockets.further.iter();
        let further = further.map(|socket| wait::Interest { socket, room: false });
        let all = std::iter::once(first).chain(further);
        let now = self.clock.now();
        if wait::wait(all, waker, now, due).is_err() {
            // If the system refuses to wait, avoid spinning.
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        self.state.store(AWAKE, Ordering::Release);
    }
}

/// Used by a driving task only.
#[cfg(feature = "runtime-tokio")]
impl EndpointShared {
    /// Stores the waker of the driving task.
    pub fn set_driver(&self, waker: &Waker) {
        let DriverWaker::Task(driver) = &self.waker else { return };
        let mut driver = driver.lock().unwrap_or_else(PoisonError::into_inner);
        if !driver.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *driver = Some(waker.clone());
        }
    }
    pub fn is_asleep(&self) -> bool {
        self.state.load(Ordering::Acquire) == ASLEEP
    }
    /// Marks the driver as awake, with no call since.
    pub fn wake_up(&self) {
        self.state.store(AWAKE, Ordering::Release);
    }
    /// Whether the application has called since then.
    pub fn was_called(&self) -> bool {
        self.state.load(Ordering::Acquire) == CALLED
    }
}

/// The endpoint, and the tasks that wait for its events.
pub(super) struct Core {
    pub endpoint: TransportEndpoint,
    pub tap: Option<Arc<dyn Tap>>,
    states: BTreeMap<Handle, Box<AppConnection>>,
    /// Connections opened by peers and not yet accepted.
    pub incoming: VecDeque<Handle>,
    pub accepting: WaitingTasks,
    /// Whether no more connections are accepted.
    pub closed_to_peers: bool,
    /// The time of the driver's last turn.
    pub latest: Time,
    /// When the endpoint was closed, if it was.
    pub leaving: Option<Time>,
    /// Whether the driver has ended.
    pub ended: bool,
    /// Wakers to call once the core is unlocked.
    woken: Vec<Waker>,
    /// Connections without handles, with the latest time of their end.
    lingering: BTreeSet<(Time, Handle)>,
}

impl Core {
    pub fn new(endpoint: TransportEndpoint, tap: Option<Arc<dyn Tap>>) -> Core {
        Core {
            endpoint,
            tap,
            states: BTreeMap::new(),
            incoming: VecDeque::new(),
            accepting: WaitingTasks::default(),
            closed_to_peers: false,
            latest: Time::ZERO,
            leaving: None,
            ended: false,
            woken: Vec::new(),
            lingering: BTreeSet::new(),
        }
    }

    pub fn begin(&mut self, handle: Handle, state: AppConnection) {
        self.states.insert(handle, Box::new(state));
    }

    /// The state of a connection that is not over.
    pub fn state(&mut self, handle: Handle) -> Result<&mut AppConnection, Error> {
        self.parts(handle).map(|p| p.1)
    }

    /// The endpoint and the state of a connection that is not over.
    pub fn parts(
        &mut self,
        handle: Handle,
    ) -> Result<(&mut TransportEndpoint, &mut AppConnection), Error> {
        if self.ended {
            return Err(Error::EndpointClosed);
        }
        let state = self.states.get_mut(&handle).ok_or(Error::Closed)?;
        state.over().map_or(Ok((&mut self.endpoint, state)), Err)
    }

    /// The state of a connection, over or not.
    pub fn any_life(&mut self, handle: Handle) -> Option<&mut AppConnection> {
        self.states.get_mut(&handle).map(|state| &mut **state)
    }

    /// Time of the next event that needs the driver.
    pub fn next_timeout(&self) -> Time {
        let lingering = self.lingering.first().map_or(Time::NEVER, |l| l.0);
        // A closed endpoint is checked again even if no packet arrives.
        let leaving = self.leaving.map_or(Time::NEVER, |t| t + self.patience());
        self.endpoint.next_timeout().min(lingering).min(leaving)
    }

    /// How long a closed endpoint waits until its peers acknowledge the close.
    fn patience(&self) -> Duration {
        if self.lingering.is_empty() { LEAVING } else { LINGER }
    }

    /// Whether an endpoint closed at `since` has ended.
    pub fn has_left(&self, now: Time, since: Time) -> bool {
        self.endpoint.is_empty() || now >= since + self.patience()
    }

    /// Collects the wakers of tasks that the endpoint's events concern. They are called after the core is unlocked.
    pub fn dispatch(&mut self, now: Time) {
        while let Some(&(due, handle)) = self.lingering.first() {
            if due > now {
                break;
            }
            self.lingering.pop_first();
            self.endpoint.close(now, handle, 0, "");
        }
        while let Some((handle, event)) = self.endpoint.event() {
            self.on_event(now, handle, event);
        }
    }

    fn on_event(&mut self, now: Time, handle: Handle, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Connected(key) => {
                self.tell_opened(now, handle);
                let woken = &mut self.woken;
                if let Some(state) = self.states.get_mut(&handle) {
                    state.stage = ConnectionStage::Open;
                    state.key = Some(key);
                    state.stages.release(woken);
                    return;
                }
                if self.closed_to_peers || self.leaving.is_some() {
                    self.endpoint.close(now, handle, 0, "this end accepts no connections");
                    return;
                }
                let Some(remote) = self.endpoint.inspect(handle, |c| c.remote()) else { return };
                let mut state = AppConnection::new(remote, ServerKey::Any);
                state.stage = ConnectionStage::Open;
                state.key = Some(key);
                self.states.insert(handle, Box::new(state));
                self.incoming.push_back(handle);
                self.accepting.release(&mut self.woken);
            }
            ConnectionEvent::Stream(event) => self.on_stream(now, handle, event),
            ConnectionEvent::Message => {
                let received = self.endpoint.inspect(handle, |machine| machine.messages_received());
                if let Some(state) = self.states.get_mut(&handle) {
                    state.messages.release(received.unwrap_or(0), &mut self.woken);
                    state.polling.release(&mut self.woken);
                }
            }
            ConnectionEvent::ApplicationKnown => {
                if let Some(state) = self.states.get_mut(&handle) {
                    state.stages.release(&mut self.woken);
                }
            }
            ConnectionEvent::Moved(to) => {
                if let Some(state) = self.states.get_mut(&handle) {
                    state.remote = to;
                }
            }
            ConnectionEvent::Closed(why) => self.on_closed(now, handle, why),
        }
    }

    fn on_stream(&mut self, now: Time, handle: Handle, event: StreamEvent) {
        let Some(state) = self.states.get_mut(&handle) else { return };
        let woken = &mut self.woken;
        match event {
            StreamEvent::Opened => {
                self.endpoint.inspect(handle, |connection| {
                    while let Some(id) = connection.accept() {
                        // Bit 1 of an id: unidirectional.
                        let one_way = usize::from(id & 2 != 0);
                        state.opened_by_peer[one_way].push_back(id);
                        state.accepting[one_way].release(1, woken);
                    }
                });
            }
            StreamEvent::MayOpen => state.opening.release(woken),
            StreamEvent::Readable(id) => {
                state.streams.on_readable(id, woken);
            }
            StreamEvent::Writable(id) => {
                state.streams.on_writable(id, woken);
            }
            StreamEvent::Arrived(id) => {
                state.streams.on_arrived(id, woken);
                if state.abandoned && state.streams.have_all_arrived() {
                    self.endpoint.close(now, handle, 0, "");
                }
            }
        }
    }

    fn tell_opened(&mut self, now: Time, handle: Handle) {
        let Some(tap) = &self.tap else { return };
        let dialled = self.states.contains_key(&handle);
        let id = self.endpoint.id(handle);
        let peer = self.endpoint.inspect(handle, |machine| (machine.remote(), machine.peer_id()));
        if let (Some(id), Some((remote, peer_id))) = (id, peer) {
            tap.opened(now, &ConnectionOpened { handle, remote, dialled, id, peer_id });
        }
    }

    fn on_closed(&mut self, now: Time, handle: Handle, why: Closed) {
        if let Some(tap) = &self.tap {
            let stats = self.endpoint.inspect(handle, |c| c.stats());
            tap.closed(now, handle, stats.as_ref(), &why);
        }
        let Some(state) = self.states.get_mut(&handle) else { return };
        self.endpoint.inspect(handle, |connection| state.keep(connection));
        state.stage = ConnectionStage::Over(why);
        state.wake_all(&mut self.woken);
        let waits = self.incoming.len();
        self.incoming.retain(|h| *h != handle);
        if state.abandoned || self.incoming.len() < waits {
            if let Some(until) = state.until {
                self.lingering.remove(&(until, handle));
            }
            self.states.remove(&handle);
        }
    }

    /// The last handle of a connection was dropped: close it soon, or when its finished streams have arrived.
    pub fn abandon(&mut self, now: Time, handle: Handle) {
        let Some(state) = self.states.get_mut(&handle) else { return };
        if matches!(state.stage, ConnectionStage::Over(_)) {
            self.states.remove(&handle);
            return;
        }
        state.abandoned = true;
        match state.stage {
            ConnectionStage::Open => {
                let patience = if state.streams.have_all_arrived() { PARTING } else { LINGER };
                state.until = Some(now + patience);
                self.lingering.insert((now + patience, handle));
            }
            ConnectionStage::Opening | ConnectionStage::Over(_) => {
                self.endpoint.close(now, handle, 0, "")
            }
        }
    }

    /// Closes every connection.
    pub fn close_all(&mut self, now: Time, code: u64, reason: &str) {
        for handle in self.states.keys() {
            self.endpoint.close(now, *handle, code, reason);
        }
    }

    /// Announces this end's new address of a path to all peers.
    fn on_local_address_change(&mut self, path: usize) {
        for (handle, state) in &self.states {
            if state.stage == ConnectionStage::Open {
                let change = |machine: &mut Machine| machine.on_local_address_change(path as u8);
                self.endpoint.inspect(*handle, change);
            }
        }
    }

    /// Calls `look` for every open connection.
    pub fn each_open(&mut self, mut look: impl FnMut(Handle, &Machine)) {
        for (handle, state) in &self.states {
            if state.stage == ConnectionStage::Open {
                self.endpoint.inspect(*handle, |machine| look(*handle, machine));
            }
        }
    }

    /// As [`each_open`](Self::each_open), for those of these that are open.
    pub fn open_of(&mut self, handles: &[Handle], mut look: impl FnMut(Handle, &Machine)) {
        for handle in handles {
            if self.states.get(handle).is_some_and(|state| state.stage == ConnectionStage::Open) {
                self.endpoint.inspect(*handle, |machine| look(*handle, machine));
            }
        }
    }

    /// Number of connections that are not over.
    pub fn alive(&self) -> usize {
        self.states.values().filter(|l| !matches!(l.stage, ConnectionStage::Over(_))).count()
    }

    /// The driver has ended: wakes all tasks.
    pub fn end(&mut self) {
        self.ended = true;
        self.accepting.release(&mut self.woken);
        for state in self.states.values_mut() {
            state.wake_all(&mut self.woken);
        }
    }

    /// Moves out the wakers to call after the core is unlocked.
    pub fn woken(&mut self, into: &mut Vec<Waker>) {
        into.append(&mut self.woken);
    }
}
