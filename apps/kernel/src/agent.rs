//! The user-space side: reads records in batches, calls each connection's controller, and writes its limits.

use crate::Error;
use crate::bpf::system::real_time_priority;
use crate::bpf::{BpfPrograms, Loaded};
use crate::choice::Choice;
use crate::connection::{ConnectionFigures, KernelConnection, KernelLimits};
use crate::record::{Record, RecordKind, SLOT_BYTES, SLOTS, control, slot};
use crate::status::{ControlStatus, Statistics};
use narrows_base::{Duration, Time};
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

/// Interval between reads of the ring while records arrive. Records of one interval are one batch, without a wake-up.
const POLL: std::time::Duration = std::time::Duration::from_micros(200);
/// Longest sleep.
const MAX_SLEEP: std::time::Duration = std::time::Duration::from_secs(1);
/// Real-time priority, where permitted, since acknowledgements wait for the limits. Below that of emulated links.
const PRIORITY: i32 = 10;
/// Nice value if real-time priority is not permitted.
const NICE: i32 = -15;
const WAKE_RING: u64 = 1;
const WAKE_STOP: u64 = 2;

/// Observes an agent. The agent's thread calls it, so its methods must return at once.
pub trait AgentTap: Send + Sync + std::fmt::Debug {
    /// State of the connection with this number, at most 60 times a second and only while acknowledgements arrive, with
    /// its controller's variables.
    fn seen(&self, connection: u32, figures: &ConnectionFigures, watched: Vec<(&'static str, f64)>);
    /// The connection has closed.
    fn closed(&self, connection: u32);
}

/// Interval between observations of a connection.
const LOOK: Duration = Duration::from_nanos(16_000_000);

/// The user-space side of a registered congestion control, in its own thread. Dropping it stops the thread and removes
/// the congestion control from the kernel's list. Connections that use it continue as Reno.
#[derive(Debug)]
pub struct Agent {
    loaded: Arc<Loaded>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Agent {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread or a descriptor cannot be created.
    pub fn start(loaded: Loaded, choice: Choice) -> Result<Agent, Error> {
        Agent::watched(loaded, choice, None)
    }
    /// As [`start`](Agent::start), with an observer.
    ///
    /// # Errors
    /// As [`start`](Agent::start).
    pub fn watched(
        loaded: Loaded,
        choice: Choice,
        tap: Option<Arc<dyn AgentTap>>,
    ) -> Result<Agent, Error> {
        let failed = |e: std::io::Error| Error::System(format!("starting the agent: {e}"));
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(|e| failed(e.into()))?);
        let loaded = Arc::new(loaded);
        let wait = Wait::new(&loaded, &stop).map_err(|e| failed(e.into()))?;
        let mut turn = AgentTurn::new(loaded.clone(), choice, tap);
        let thread = std::thread::Builder::new()
            .name("narrows-kernel".into())
            .spawn(move || turn.run(&wait))
            .map_err(failed)?;
        Ok(Agent { loaded, stop, thread: Some(thread) })
    }
    /// Registers a controller under an unused name, and starts the agent.
    ///
    /// # Errors
    /// As [`BpfPrograms::register`] and [`Agent::start`].
    pub fn load(choice: Choice) -> Result<(String, Agent), Error> {
        static LOADED: AtomicU32 = AtomicU32::new(0);
        let number = LOADED.fetch_add(1, Ordering::Relaxed);
        let name = format!("nw{}_{number}", std::process::id());
        let loaded = BpfPrograms::prepare()?.register(&name)?;
        Ok((name, Agent::start(loaded, choice)?))
    }
    /// State of the congestion control and its connections.
    pub fn status(&self) -> ControlStatus {
        ControlStatus::read(&self.loaded.slots, &self.loaded.control)
    }
    /// The memory that it shares with the kernel.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// The descriptors on which the agent sleeps.
#[derive(Debug)]
struct Wait {
    epoll: OwnedFd,
}

impl Wait {
    fn new(loaded: &Loaded, stop: &OwnedFd) -> rustix::io::Result<Wait> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        // Edge-triggered: a ring that is still being read does not end every wait.
        let ring = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, &loaded.ring_fd, epoll::EventData::new_u64(WAKE_RING), ring)?;
        let plain = epoll::EventFlags::IN;
        epoll::add(&epoll, stop, epoll::EventData::new_u64(WAKE_STOP), plain)?;
        Ok(Wait { epoll })
    }
    /// Sleeps. Returns whether to stop.
    fn wait(&self, at_most: std::time::Duration) -> bool {
        let mut events = Vec::with_capacity(2);
        let seconds = i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX);
        let timeout = Timespec { tv_sec: seconds, tv_nsec: at_most.subsec_nanos().into() };
        let buffer = rustix::buffer::spare_capacity(&mut events);
        let _ = epoll::wait(&self.epoll, buffer, Some(&timeout));
        events.iter().any(|e| e.data.u64() == WAKE_STOP)
    }
}

/// Use of a slot.
#[derive(Debug)]
enum Tenant {
    Free,
    Connection(Box<KernelConnection>),
    /// Its controller failed: it gets no further limits, and continues as Reno.
    Failed(u32),
}

/// All connections, and the pending work.
struct AgentTurn {
    loaded: Arc<Loaded>,
    choice: Choice,
    tap: Option<Arc<dyn AgentTap>>,
    statistics: Statistics,
    /// Time 0 of the controllers means never, so theirs begins a second before.
    began: u64,
    tenants: Vec<Tenant>,
    ticks: BTreeSet<(Time, usize)>,
    armed: Vec<Time>,
    /// Slots with new records, each with the time of its newest record.
    touched: Vec<(usize, u64)>,
    times: Vec<u64>,
}

impl AgentTurn {
    fn new(loaded: Arc<Loaded>, choice: Choice, tap: Option<Arc<dyn AgentTap>>) -> AgentTurn {
        AgentTurn {
            statistics: Statistics::default(),
            loaded,
            choice,
            tap,
            began: monotonic_ns().saturating_sub(1_000_000_000),
            tenants: (0..SLOTS).map(|_| Tenant::Free).collect(),
            ticks: BTreeSet::new(),
            armed: vec![Time::NEVER; SLOTS],
            touched: Vec::new(),
            times: Vec::new(),
        }
    }

    fn time(&self, ns: u64) -> Time {
        Time::from_nanos(ns.saturating_sub(self.began))
    }

    fn run(&mut self, wait: &Wait) {
        // Sleeps end at the requested time rather than up to 50 µs later.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        if real_time_priority(PRIORITY).is_err() {
            let _ = rustix::process::nice(NICE);
        }
        loop {
            let records = self.read();
            self.answer(records);
            if wait.wait(if records > 0 { self.until_tick().min(POLL) } else { Self::ZERO }) {
                return;
            }
            if records > 0 {
                continue;
            }
            self.loaded.control.store_then_fence(control::ASLEEP, 1);
            let stop = self.loaded.ring.is_empty() && wait.wait(self.until_tick());
            self.loaded.control.store(control::ASLEEP, 0);
            if stop {
                return;
            }
        }
    }
    const ZERO: std::time::Duration = std::time::Duration::ZERO;

    fn until_tick(&self) -> std::time::Duration {
        let now = self.time(monotonic_ns());
        let left = |(at, _): &(Time, usize)| {
            let ns = at.as_nanos().saturating_sub(now.as_nanos());
            std::time::Duration::from_nanos(ns)
        };
        self.ticks.first().map_or(MAX_SLEEP, left).min(MAX_SLEEP)
    }

    fn read(&mut self) -> u64 {
        let loaded = self.loaded.clone();
        loaded.ring.drain(|record| self.take(record))
    }

    fn take(&mut self, r: &Record) {
        let now = self.time(r.time);
        let number = r.slot as usize;
        let Some(tenant) = self.tenants.get_mut(number) else { return };
        if r.kind == RecordKind::Closed {
            if let Some(tap) = &self.tap {
                tap.closed(r.connection);
            }
            *tenant = Tenant::Free;
            rearm(&mut self.ticks, &mut self.armed, number, Time::NEVER);
            return;
        }
        let known = match tenant {
            Tenant::Connection(c) => c.number() == r.connection,
            Tenant::Failed(failed) if *failed == r.connection => return,
            _ => false,
        };
        let choice = &self.choice;
        let done = catch_unwind(AssertUnwindSafe(|| {
            if !known {
                *tenant = Tenant::Connection(Box::new(KernelConnection::new(choice, r, now)));
            }
            if let Tenant::Connection(c) = tenant {
                c.on_record(r, now);
            }
        }));
        if done.is_err() {
            *tenant = Tenant::Failed(r.connection);
        }
        self.times.push(r.time);
        match self.touched.iter_mut().rev().take(8).find(|(slot, _)| *slot == number) {
            Some((_, newest)) => *newest = r.time.max(*newest),
            None => self.touched.push((number, r.time)),
        }
    }

    fn answer(&mut self, records: u64) {
        self.tick();
        for (number, newest) in std::mem::take(&mut self.touched) {
            self.write(number, Some(newest));
        }
        if records > 0 {
            let cpu_ns = nanoseconds(ClockId::ThreadCPUTime);
            self.statistics.batch(&self.times, monotonic_ns(), cpu_ns);
            self.statistics.store(&self.loaded.control);
            self.times.clear();
        }
    }

    /// Ticks that are due.
    fn tick(&mut self) {
        let now = self.time(monotonic_ns());
        while let Some((_, number)) = self.ticks.first().copied().filter(|(at, _)| *at <= now) {
            self.ticks.pop_first();
            self.armed[number] = Time::NEVER;
            let Tenant::Connection(c) = &mut self.tenants[number] else { continue };
            if catch_unwind(AssertUnwindSafe(|| c.tick(now))).is_err() {
                self.tenants[number] = Tenant::Failed(c.number());
            }
            self.write(number, None);
        }
    }

    /// Writes the limits of a connection's controller. `newest` is the time of the newest record that the controller
    /// received.
    fn write(&mut self, number: usize, newest: Option<u64>) {
        let Tenant::Connection(c) = &mut self.tenants[number] else { return };
        let Ok(answer) = catch_unwind(AssertUnwindSafe(|| c.answer())) else {
            self.tenants[number] = Tenant::Failed(c.number());
            return;
        };
        let KernelLimits { cwnd, rate, ssthresh, smooth } = answer;
        let at = number * SLOT_BYTES;
        let slots = &self.loaded.slots;
        slots.store_u32(at + slot::CWND, cwnd);
        slots.store(at + slot::RATE, rate);
        slots.store_u32(at + slot::SSTHRESH, ssthresh);
        slots.store_u32(at + slot::SMOOTH, smooth.into());
        slots.store_u32(at + slot::ANSWERED_CONNECTION, c.number());
        if let Some(newest) = newest {
            slots.store(at + slot::ANSWERED, newest);
        }
        // A tick that is already due is delayed a little, so that a controller with an immediate tick does not block
        // the agent.
        let now = self.time(monotonic_ns());
        let Tenant::Connection(c) = &mut self.tenants[number] else { return };
        if let Some(tap) = self.tap.as_ref().filter(|_| now >= c.looked + LOOK) {
            c.looked = now;
            let known = c.number();
            let look = || {
                let mut watched = Vec::new();
                c.watch(&mut |name, value| watched.push((name, value)));
                tap.seen(known, &c.figures(), watched);
            };
            if catch_unwind(AssertUnwindSafe(look)).is_err() {
                self.tenants[number] = Tenant::Failed(known);
                return;
            }
        }
        let Tenant::Connection(c) = &self.tenants[number] else { return };
        let next = c.next_tick();
        let next = if next.is_never() { next } else { next.max(now + MIN_TICK) };
        rearm(&mut self.ticks, &mut self.armed, number, next);
    }
}

/// Least time between ticks.
const MIN_TICK: Duration = Duration::from_nanos(50_000);

/// Changes a slot's tick.
fn rearm(ticks: &mut BTreeSet<(Time, usize)>, armed: &mut [Time], number: usize, next: Time) {
    if !armed[number].is_never() {
        ticks.remove(&(armed[number], number));
    }
    armed[number] = next;
    if !next.is_never() {
        ticks.insert((next, number));
    }
}
