//! The requests of a server and the threads that answer them: bounded in total, and shared by network and by key, over
//! all transports.
//!
//! A request has a [`RequestSlot`] from its stream's first byte. No thread waits for it until it is complete; then it waits
//! for its turn ([`Requests::run`]). A slot may be revoked in favour of another client's; its stream fails at the next
//! read or write.

mod source;
mod table;
mod watched;
mod workers;

pub use source::{RequestScope, RequestSource};
pub use table::RequestLimits;
pub use watched::watched;

use narrows_peers::error::{Error, ErrorKind};
use narrows_wire::noise::PublicKey;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};
use table::{RequestStage, RequestTable};
use workers::Workers;

/// Most requests at the same time. A connection may have 128 streams.
pub const MAX_REQUESTS: RequestLimits = RequestLimits { key: 128, network: 512, all: 1024 };
/// Most requests that are answered at the same time, each by a thread with a buffer.
pub const MAX_RUNNING: RequestLimits = RequestLimits { key: 16, network: 64, all: 192 };
/// A request that moved no bytes for this time gives way to a waiting one.
pub const IDLE: Duration = Duration::from_secs(1);
/// A request must be complete within this time.
pub const READING: Duration = Duration::from_secs(10);
/// A complete request must have its turn within this time.
pub const WAITING: Duration = Duration::from_secs(60);
/// An answer that moves no bytes for this time is ended, even if no request waits.
pub const STANDSTILL: Duration = Duration::from_secs(120);

const LIVE: u8 = 0;
const GAVE_WAY: u8 = 1;
const LATE: u8 = 2;
const NOT_ADMITTED: u8 = 3;

/// State shared between a request's thread and the table.
struct RequestFlags {
    state: AtomicU8,
    moved: AtomicU64,
    waker: Mutex<Option<Waker>>,
}

impl RequestFlags {
    fn give_way(&self, why: u8) {
        self.state.store(why, Ordering::Release);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Answers a request, or refuses it with the error.
type Job = Box<dyn FnOnce(Option<Error>) + Send>;

/// Refuses requests that wait without a thread. Not to be called under the table's lock.
fn refuse(jobs: Vec<Job>, why: fn() -> Error) {
    for job in jobs {
        job(Some(why()));
    }
}

struct RequestsState {
    table: RequestTable,
    marks: BTreeMap<u64, Arc<RequestFlags>>,
    jobs: BTreeMap<u64, Job>,
}

/// All requests of a server.
pub struct Requests {
    begun: Instant,
    state: Mutex<RequestsState>,
    workers: Arc<Workers>,
}

impl Requests {
    /// `held` limits all requests, `running` those that are answered at the same time. A request that moved no bytes
    /// for `idle` gives way to others.
    pub fn new(held: RequestLimits, running: RequestLimits, idle: Duration) -> Arc<Requests> {
        let table = RequestTable::new(held, running, idle.as_millis() as u64);
        let state = RequestsState { table, marks: BTreeMap::new(), jobs: BTreeMap::new() };
        let workers = Workers::new(running.all);
        Arc::new(Requests { begun: Instant::now(), state: Mutex::new(state), workers })
    }

    fn lock(&self) -> MutexGuard<'_, RequestsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// A slot for a new request.
    ///
    /// # Errors
    /// All slots are taken, and no request gives way.
    pub fn admit(self: &Arc<Requests>, source: RequestSource) -> Result<RequestSlot, Error> {
        let mut state = self.lock();
        self.refresh(&mut state);
        let (id, gone) = state.table.admit(self.now(), source).ok_or_else(busy)?;
        let mut never = Vec::new();
        for other in gone {
            state.give_way(other, GAVE_WAY);
            never.extend(state.jobs.remove(&other));
        }
        let mark = Arc::new(RequestFlags {
            state: AtomicU8::new(LIVE),
            moved: AtomicU64::new(0),
            waker: Mutex::new(None),
        });
        state.marks.insert(id, Arc::clone(&mark));
        drop(state);
        refuse(never, busy);
        Ok(RequestSlot { requests: Some(Arc::clone(self)), id, mark })
    }

    /// Calls `job` when it is the request's turn: at once, or when others have ended. If the slot is revoked before,
    /// `job` gets the error instead.
    pub fn run(
        self: &Arc<Requests>,
        slot: RequestSlot,
        job: impl FnOnce(Result<RequestSlot, Error>) + Send + 'static,
    ) {
        let mut state = self.lock();
        if let Some(e) = slot.given_up() {
            drop(state);
            return job(Err(e));
        }
        let id = slot.id;
        state.table.wait(self.now(), id);
        let job = move |refused: Option<Error>| job(refused.map_or(Ok(slot), Err));
        state.jobs.insert(id, Box::new(job));
        self.take_turns(state);
    }

    /// Starts every request that has its turn.
    fn take_turns(&self, mut state: MutexGuard<'_, RequestsState>) {
        self.refresh(&mut state);
        let mut lost = Vec::new();
        loop {
            let now = self.now();
            match state.table.turn(now) {
                (Some(id), _) => {
                    state.table.run(now, id);
                    // Without a job the stream has gone: free its place.
                    match state.jobs.remove(&id) {
                        Some(job) => lost.extend(self.workers.run(Box::new(move || job(None)))),
                        None => state.table.remove(id),
                    }
                }
                (None, Some(victim)) => state.give_way(victim, GAVE_WAY),
                (None, None) => break,
            }
        }
        // The system has no thread for these. Dropped after the unlock, because their slots lock the table.
        drop(state);
        drop(lost);
    }

    fn refresh(&self, state: &mut RequestsState) {
        let now = self.now();
        let RequestsState { table, marks, .. } = state;
        for (id, mark) in marks {
            table.moved(now, *id, mark.moved.load(Ordering::Relaxed));
        }
    }

    /// Ends late requests and starts waiting ones; to be called a few times a second.
    pub fn tick(&self) {
        let mut state = self.lock();
        self.refresh(&mut state);
        let ms = |d: Duration| d.as_millis() as u64;
        let late = state.table.late(self.now(), ms(READING), ms(WAITING), ms(STANDSTILL));
        let mut never = Vec::new();
        for (id, stage) in late {
            state.give_way(id, if stage == RequestStage::Waiting { GAVE_WAY } else { LATE });
            never.extend(state.jobs.remove(&id));
        }
        self.take_turns(state);
        refuse(never, busy);
    }

    /// Ends the requests of clients that are not admitted any more.
    pub fn end_others(&self, is_admitted: impl Fn(&PublicKey) -> bool) {
        let mut state = self.lock();
        let mut never = Vec::new();
        for id in state.table.of_keys(|key| !is_admitted(key)) {
            state.give_way(id, NOT_ADMITTED);
            never.extend(state.jobs.remove(&id));
        }
        drop(state);
        refuse(never, not_admitted);
    }

    /// Requests that hold a slot.
    pub fn len(&self) -> usize {
        self.lock().table.len()
    }

    /// Requests that are being answered.
    pub fn running(&self) -> usize {
        self.lock().table.running()
    }

    /// Whether no request holds a slot.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Threads that answer requests, or are idle.
    pub fn threads(&self) -> usize {
        self.workers.threads()
    }

    fn remove(&self, id: u64) {
        let mut state = self.lock();
        state.table.remove(id);
        state.marks.remove(&id);
        self.take_turns(state);
    }
}

impl RequestsState {
    fn give_way(&mut self, id: u64, why: u8) {
        if let Some(mark) = self.marks.get(&id) {
            mark.give_way(why);
        }
    }
}

/// The error for a client when all slots are taken.
pub fn busy() -> Error {
    Error::new(ErrorKind::Busy, "the server is busy: try again later")
}

fn not_admitted() -> Error {
    Error::new(ErrorKind::Refused, "the server does not admit this client any more")
}

/// A request's slot. Dropping it frees it.
pub struct RequestSlot {
    requests: Option<Arc<Requests>>,
    id: u64,
    mark: Arc<RequestFlags>,
}

impl RequestSlot {
    /// A slot that is never revoked, for a service without limits.
    pub fn unlimited() -> RequestSlot {
        let state = AtomicU8::new(LIVE);
        let moved = AtomicU64::new(0);
        RequestSlot {
            requests: None,
            id: 0,
            mark: Arc::new(RequestFlags { state, moved, waker: Mutex::new(None) }),
        }
    }

    /// Why the slot was revoked; `None` as long as it was not.
    pub fn given_up(&self) -> Option<Error> {
        given_up(&self.mark)
    }

    /// A view of this slot, for a transport that waits.
    pub fn view(&self) -> SlotView {
        SlotView(Arc::clone(&self.mark))
    }
}

fn given_up(mark: &RequestFlags) -> Option<Error> {
    match mark.state.load(Ordering::Acquire) {
        LIVE => None,
        GAVE_WAY => {
            let line = "the server is busy and dropped this request: try again later";
            Some(Error::new(ErrorKind::Busy, line))
        }
        NOT_ADMITTED => Some(not_admitted()),
        _ => Some(Error::new(ErrorKind::Busy, "the request took too long without moving a byte")),
    }
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        // The waker's task may hold the stream of this slot.
        drop(self.mark.waker.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(requests) = &self.requests {
            requests.remove(self.id);
        }
    }
}

/// A slot as its stream sees it.
#[derive(Clone)]
pub struct SlotView(Arc<RequestFlags>);

impl SlotView {
    /// Why the slot was revoked; `None` as long as it was not.
    pub fn given_up(&self) -> Option<Error> {
        given_up(&self.0)
    }

    /// As [`SlotView::given_up`]; registers the waker for a change.
    pub fn poll(&self, waker: &Waker) -> Option<Error> {
        *self.0.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
        self.given_up()
    }

    /// Bytes moved for the request so far.
    pub fn bytes(&self) -> u64 {
        self.0.moved.load(Ordering::Relaxed)
    }

    /// Counts `bytes` as moved, or as work that takes as long.
    pub fn moved(&self, bytes: u64) {
        self.0.moved.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "requests/tests.rs"]
mod tests;
