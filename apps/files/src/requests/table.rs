//! The requests of a server and their clients: which are admitted, which is served next, which gives way. Pure: times
//! are milliseconds passed in by the caller.
//!
//! If a limit is reached, a newcomer is refused only if no request within that limit gives way. A request gives way if
//! it moves no bytes, or if its client's share is larger than the newcomer's would be. A client on the owner's list
//! never gives way to one that is not.

use super::source::{RequestScope, RequestSource};
use narrows_base::Time;
use narrows_transport::endpoint::share::{Holder, gives_way};
use narrows_wire::noise::PublicKey;
use std::collections::BTreeMap;

/// Most requests within one scope.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// Of one public key.
    pub key: usize,
    /// Of one IPv4 address, or of one IPv6 /48, /56 or /64.
    pub network: usize,
    /// Of the whole server.
    pub all: usize,
}

impl RequestLimits {
    fn of(&self, scope: RequestScope) -> usize {
        match scope {
            RequestScope::All => self.all,
            RequestScope::Network(_) => self.network,
            RequestScope::Key(_) => self.key,
        }
    }
}

/// A request must move this many bytes between two updates to count as moving.
const MOVES: u64 = 1000;
/// Most requests that are ending at the same time so that others can begin.
const MAX_ENDING: usize = 16;
/// Progress of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestStage {
    /// The request is being read.
    Reading,
    /// The request is complete and waits for a thread.
    Waiting,
    /// The request is being answered.
    Running,
}

struct RequestEntry {
    source: RequestSource,
    stage: RequestStage,
    /// When the stage began.
    since: u64,
    /// Time of the last progress, and the bytes moved by then.
    moved_at: u64,
    moved: u64,
    /// The request was revoked and is ending.
    ending: bool,
}

/// Requests by scope.
#[derive(Default)]
struct RequestCounts(BTreeMap<RequestScope, usize>);

impl RequestCounts {
    fn of(&self, scope: RequestScope) -> usize {
        self.0.get(&scope).copied().unwrap_or(0)
    }
    fn add(&mut self, source: &RequestSource) {
        source.scopes().iter().for_each(|s| *self.0.entry(*s).or_default() += 1);
    }
    fn take(&mut self, source: &RequestSource) {
        for scope in source.scopes() {
            if let Some(n) = self.0.get_mut(scope) {
                *n -= 1;
                if *n == 0 {
                    self.0.remove(scope);
                }
            }
        }
    }
    /// The widest scope whose limit is reached.
    fn full(&self, source: &RequestSource, limits: &RequestLimits) -> Option<RequestScope> {
        source.scopes().iter().copied().find(|s| self.of(*s) >= limits.of(*s))
    }
    /// By how much the holder's count exceeds the newcomer's with one more request, in the widest scope where they
    /// differ; 0 if both have the same source.
    fn excess(&self, holder: &RequestSource, newcomer: &RequestSource) -> usize {
        holder.rivals(newcomer).map_or(0, |(h, n)| self.of(h).saturating_sub(self.of(n) + 1))
    }
}

/// All requests of a server.
pub struct RequestTable {
    held: RequestLimits,
    running: RequestLimits,
    entries: BTreeMap<u64, RequestEntry>,
    counts: RequestCounts,
    busy: RequestCounts,
    next: u64,
    /// Turns taken per scope since the queue was last empty.
    had: RequestCounts,
    /// A request that did not move for this time gives way, ms.
    idle: u64,
}

impl RequestTable {
    /// `held` limits all requests, `running` those that are answered at the same time. A request that moved no bytes
    /// for `idle` ms gives way.
    pub fn new(held: RequestLimits, running: RequestLimits, idle: u64) -> RequestTable {
        let counts = RequestCounts::default();
        let busy = RequestCounts::default();
        let had = RequestCounts::default();
        RequestTable { held, running, entries: BTreeMap::new(), counts, busy, had, next: 0, idle }
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Number of requests that are being answered.
    pub fn running(&self) -> usize {
        self.busy.of(RequestScope::All)
    }

    /// Admits a new request: its id, and the ids of the requests that are removed for it. `None` if no slot is free.
    pub fn admit(&mut self, now: u64, source: RequestSource) -> Option<(u64, Vec<u64>)> {
        let mut gone = Vec::new();
        while let Some(scope) = self.counts.full(&source, &self.held) {
            let victim = self.victim(now, scope, &source, &self.counts, |_| true)?;
            self.remove(victim);
            gone.push(victim);
        }
        let id = self.next;
        self.next += 1;
        self.counts.add(&source);
        let stage = RequestStage::Reading;
        let ending = false;
        let entry = RequestEntry { source, stage, since: now, moved_at: now, moved: 0, ending };
        self.entries.insert(id, entry);
        Some((id, gone))
    }

    /// The request in this scope that gives way to a newcomer ([`gives_way`]): an idle one, else one whose scope holds
    /// more than the newcomer's would, or an unlisted one if the newcomer is listed.
    fn victim(
        &self,
        now: u64,
        scope: RequestScope,
        newcomer: &RequestSource,
        counts: &RequestCounts,
        counted: impl Fn(&RequestEntry) -> bool,
    ) -> Option<u64> {
        let inside =
            |(_, e): &(&u64, &RequestEntry)| counted(e) && e.source.scopes().contains(&scope);
        let (idle, moving): (Vec<_>, Vec<_>) =
            self.entries.iter().filter(inside).partition(|(_, e)| self.is_idle(now, e));
        let holder = |(id, e): &(&u64, &RequestEntry)| Holder {
            client: *e.source.client(),
            moved: (0, e.moved),
            since: Time::from_nanos(e.since.saturating_mul(1_000_000)),
            is_new: false,
            place: **id,
        };
        let newcomers = newcomer.client();
        gives_way(idle.iter().map(holder).collect(), newcomers).or_else(|| {
            let above = |(_, e): &&(&u64, &RequestEntry)| {
                counts.excess(&e.source, newcomer) > 0
                    || newcomer.is_listed() && !e.source.is_listed()
            };
            gives_way(moving.iter().filter(above).map(holder).collect(), newcomers)
        })
    }

    fn is_idle(&self, now: u64, entry: &RequestEntry) -> bool {
        now.saturating_sub(entry.moved_at) >= self.idle
    }

    /// A request is complete and waits for its turn.
    pub fn wait(&mut self, now: u64, id: u64) {
        if let Some(e) = self.entries.get_mut(&id) {
            e.stage = RequestStage::Waiting;
            e.since = now;
        }
    }

    /// The next request in turn: among those with the fewest running and the fewest turns taken, the oldest.
    /// Second, the request that must end so that another can begin.
    pub fn turn(&mut self, now: u64) -> (Option<u64>, Option<u64>) {
        let of = |counts: &RequestCounts, source: &RequestSource| -> Vec<usize> {
            // The widest scope first: sites, then customers, then keys take turns.
            source.scopes().iter().map(|s| counts.of(*s)).collect()
        };
        let rank = |(id, e): (&u64, &RequestEntry)| {
            (!e.source.is_listed(), of(&self.busy, &e.source), of(&self.had, &e.source), *id)
        };
        let waiting = self.entries.iter().filter(|(_, e)| e.stage == RequestStage::Waiting);
        let mut waiting: Vec<_> = waiting.map(rank).collect();
        if waiting.is_empty() {
            self.had.0.clear();
        }
        waiting.sort_unstable();
        let ending = self.entries.values().filter(|e| e.ending).count();
        let max = waiting.len().min(MAX_ENDING);
        for (_, _, _, id) in &waiting {
            let Some(e) = self.entries.get(id) else { continue };
            let Some(scope) = self.busy.full(&e.source, &self.running) else {
                return (Some(*id), None);
            };
            // Moving requests end one at a time, because the thread of the last one is free a moment later. Idle ones
            // may notice later, because their thread may be blocked in the kernel.
            let runs = |e: &RequestEntry| {
                e.stage == RequestStage::Running
                    && !e.ending
                    && (ending == 0 || self.is_idle(now, e))
            };
            if ending < max
                && let Some(victim) = self.victim(now, scope, &e.source, &self.busy, runs)
            {
                if let Some(e) = self.entries.get_mut(&victim) {
                    e.ending = true;
                }
                return (None, Some(victim));
            }
        }
        (None, None)
    }

    /// A request is answered from now on.
    pub fn run(&mut self, now: u64, id: u64) {
        if let Some(e) = self.entries.get_mut(&id) {
            e.stage = RequestStage::Running;
            e.since = now;
            e.moved_at = now;
            self.busy.add(&e.source);
            self.had.add(&e.source);
        }
    }

    /// Sets the total of bytes moved for a request.
    pub fn moved(&mut self, now: u64, id: u64, bytes: u64) {
        if let Some(e) = self.entries.get_mut(&id)
            && bytes >= e.moved.saturating_add(MOVES)
        {
            e.moved = bytes;
            e.moved_at = now;
        }
    }

    /// Requests of clients whose keys fulfil the condition. A request without a known key is not among them.
    pub fn of_keys(&self, meant: impl Fn(&PublicKey) -> bool) -> Vec<u64> {
        let is_meant = |e: &RequestEntry| {
            e.source.scopes().iter().any(|s| matches!(s, RequestScope::Key(key) if meant(key)))
        };
        self.entries.iter().filter(|(_, e)| is_meant(e)).map(|(id, _)| *id).collect()
    }

    /// Removes a request that has ended or was revoked.
    pub fn remove(&mut self, id: u64) {
        if let Some(e) = self.entries.remove(&id) {
            self.counts.take(&e.source);
            if e.stage == RequestStage::Running {
                self.busy.take(&e.source);
            }
        }
    }

    /// Requests that are in their stage for too long, and answers that moved no bytes for `idle`; all times in ms.
    pub fn late(
        &self,
        now: u64,
        reading: u64,
        waiting: u64,
        idle: u64,
    ) -> Vec<(u64, RequestStage)> {
        let late = |e: &RequestEntry| match e.stage {
            RequestStage::Reading => now.saturating_sub(e.since) >= reading,
            RequestStage::Waiting => now.saturating_sub(e.since) >= waiting,
            RequestStage::Running => now.saturating_sub(e.moved_at) >= idle && !e.ending,
        };
        self.entries.iter().filter(|(_, e)| late(e)).map(|(id, e)| (*id, e.stage)).collect()
    }
}
