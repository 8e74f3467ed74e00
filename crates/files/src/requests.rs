//! The requests of a server and the threads that answer them: bounded in total, and shared by network and by key, over
//! all transports.
//!
//! A request has a [`Slot`] from its stream's first byte. No thread waits for it until it is complete; then it waits
//! for its turn ([`Requests::run`]). A slot may be revoked in favour of another client's; its stream fails at the next
//! read or write.

mod source;
mod table;
mod watched;
mod workers;

pub use source::{Scope, Source};
pub use table::Limits;
pub use watched::watched;

use crate::error::{Error, Kind};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};
use table::{Stage, Table};
use workers::Workers;

/// Requests at the same time. A connection may have 128 streams.
pub const MAX_REQUESTS: Limits = Limits { key: 128, network: 512, all: 1024 };
/// Requests that are answered at the same time, each by a thread with a buffer.
pub const MAX_RUNNING: Limits = Limits { key: 16, network: 64, all: 192 };
/// One that moved nothing for so long gives way to somebody who waits.
pub const IDLE: Duration = Duration::from_secs(1);
/// A request must be complete within this time.
pub const READING: Duration = Duration::from_secs(10);
/// ... have its turn within this time,
pub const WAITING: Duration = Duration::from_secs(60);
/// ... and its answer may not stand still for longer, even if nobody waits.
pub const STANDSTILL: Duration = Duration::from_secs(120);

const LIVE: u8 = 0;
const GAVE_WAY: u8 = 1;
const LATE: u8 = 2;

/// What a request's thread and the table both see.
struct Mark {
    state: AtomicU8,
    moved: AtomicU64,
    waker: Mutex<Option<Waker>>,
}

impl Mark {
    fn give_way(&self, why: u8) {
        self.state.store(why, Ordering::Release);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Answers a request, or says why not.
type Job = Box<dyn FnOnce(Option<Error>) + Send>;

/// Tells those that wait without a thread; not under the table's lock.
fn refuse(jobs: Vec<Job>) {
    for job in jobs {
        job(Some(busy()));
    }
}

struct State {
    table: Table,
    marks: BTreeMap<u64, Arc<Mark>>,
    jobs: BTreeMap<u64, Job>,
}

/// All requests of a server.
pub struct Requests {
    begun: Instant,
    state: Mutex<State>,
    workers: Arc<Workers>,
}

impl Requests {
    /// Within these bounds: of all requests, and of those that are answered at the same time. One that
    /// moved nothing for `idle` gives way to others.
    pub fn new(held: Limits, running: Limits, idle: Duration) -> Arc<Requests> {
        let table = Table::new(held, running, idle.as_millis() as u64);
        let state = State { table, marks: BTreeMap::new(), jobs: BTreeMap::new() };
        let workers = Workers::new(running.all);
        Arc::new(Requests { begun: Instant::now(), state: Mutex::new(state), workers })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// A slot for a request that begins.
    ///
    /// # Errors
    /// There is none, and nobody gives way.
    pub fn admit(self: &Arc<Requests>, source: Source) -> Result<Slot, Error> {
        let mut state = self.lock();
        self.refresh(&mut state);
        let (id, gone) = state.table.admit(self.now(), source).ok_or_else(busy)?;
        let mut never = Vec::new();
        for other in gone {
            state.give_way(other, GAVE_WAY);
            never.extend(state.jobs.remove(&other));
        }
        let mark = Arc::new(Mark {
            state: AtomicU8::new(LIVE),
            moved: AtomicU64::new(0),
            waker: Mutex::new(None),
        });
        state.marks.insert(id, Arc::clone(&mark));
        drop(state);
        refuse(never);
        Ok(Slot { requests: Some(Arc::clone(self)), id, mark })
    }

    /// Answers a complete request, when it is its turn: at once, or when others are done. If its slot
    /// has to be given up before, the job is told so instead.
    pub fn run(
        self: &Arc<Requests>,
        slot: Slot,
        job: impl FnOnce(Result<Slot, Error>) + Send + 'static,
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

    /// Begins what may be begun.
    fn take_turns(&self, mut state: MutexGuard<'_, State>) {
        self.refresh(&mut state);
        let mut lost = Vec::new();
        loop {
            let now = self.now();
            match state.table.turn(now) {
                (Some(id), _) => {
                    state.table.run(now, id);
                    // Without a job its stream is gone: so is its place.
                    match state.jobs.remove(&id) {
                        Some(job) => lost.extend(self.workers.run(Box::new(move || job(None)))),
                        None => state.table.remove(id),
                    }
                }
                (None, Some(victim)) => state.give_way(victim, GAVE_WAY),
                (None, None) => break,
            }
        }
        // The system has no thread for these: their slots lock the table when they go.
        drop(state);
        drop(lost);
    }

    fn refresh(&self, state: &mut State) {
        let now = self.now();
        let State { table, marks, .. } = state;
        for (id, mark) in marks {
            table.moved(now, *id, mark.moved.load(Ordering::Relaxed));
        }
    }

    /// Ends what is late, and begins what may be begun; to be called a few times a second.
    pub fn tick(&self) {
        let mut state = self.lock();
        self.refresh(&mut state);
        let ms = |d: Duration| d.as_millis() as u64;
        let late = state.table.late(self.now(), ms(READING), ms(WAITING), ms(STANDSTILL));
        let mut never = Vec::new();
        for (id, stage) in late {
            state.give_way(id, if stage == Stage::Waiting { GAVE_WAY } else { LATE });
            never.extend(state.jobs.remove(&id));
        }
        self.take_turns(state);
        refuse(never);
    }

    /// Requests that hold a slot.
    pub fn len(&self) -> usize {
        self.lock().table.len()
    }

    /// Requests that are being answered.
    pub fn running(&self) -> usize {
        self.lock().table.running()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Threads that answer requests, or wait for some.
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

impl State {
    fn give_way(&mut self, id: u64, why: u8) {
        if let Some(mark) = self.marks.get(&id) {
            mark.give_way(why);
        }
    }
}

/// What a client is told for whom there is no slot.
pub fn busy() -> Error {
    Error::new(Kind::Busy, "the server is busy: try again later")
}

/// A request's place among those that a server holds; dropped, it is free.
pub struct Slot {
    requests: Option<Arc<Requests>>,
    id: u64,
    mark: Arc<Mark>,
}

impl Slot {
    /// One that nobody else wants: for a service without limits.
    pub fn unlimited() -> Slot {
        let (state, moved) = (AtomicU8::new(LIVE), AtomicU64::new(0));
        Slot {
            requests: None,
            id: 0,
            mark: Arc::new(Mark { state, moved, waker: Mutex::new(None) }),
        }
    }

    /// Why it has to be given up, if so.
    pub fn given_up(&self) -> Option<Error> {
        given_up(&self.mark)
    }

    /// Another view of it, for a transport that waits.
    pub fn view(&self) -> View {
        View(Arc::clone(&self.mark))
    }
}

fn given_up(mark: &Mark) -> Option<Error> {
    match mark.state.load(Ordering::Acquire) {
        LIVE => None,
        GAVE_WAY => {
            let line = "the server is busy and this request gave way to others: try again later";
            Some(Error::new(Kind::Busy, line))
        }
        _ => Some(Error::new(Kind::Busy, "the request took too long: nothing was moved for it")),
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // Who is to be woken may hold the stream that sees this slot.
        drop(self.mark.waker.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(requests) = &self.requests {
            requests.remove(self.id);
        }
    }
}

/// A slot as its stream sees it.
#[derive(Clone)]
pub struct View(Arc<Mark>);

impl View {
    /// Why it has to be given up, if so.
    pub fn given_up(&self) -> Option<Error> {
        given_up(&self.0)
    }

    /// The same, and whom to wake if that changes.
    pub fn poll(&self, waker: &Waker) -> Option<Error> {
        *self.0.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
        self.given_up()
    }

    /// It has to be given up: the server needs what its answer holds.
    pub(crate) fn give_way(&self) {
        self.0.give_way(GAVE_WAY);
    }

    /// Whether both are of the same slot.
    pub(crate) fn is_of(&self, other: &View) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Bytes that were moved in all.
    pub fn bytes(&self) -> u64 {
        self.0.moved.load(Ordering::Relaxed)
    }

    /// So many bytes were moved, or work as long as moving them was done.
    pub fn moved(&self, bytes: u64) {
        self.0.moved.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "requests/tests.rs"]
mod tests;
