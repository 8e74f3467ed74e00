//! The requests of a server and their clients: which are admitted, which is served next, which gives way. Pure: times
//! are milliseconds passed in by the caller.
//!
//! If a limit is reached, a newcomer is refused only if no request within that limit gives way. A request gives way if
//! it moves nothing, or if its client's share is larger than the newcomer's would be; a client on the owner's list
//! never gives way to one that is not.

use super::source::{Scope, Source};
use narrows_base::Time;
use narrows_transport::endpoint::share::{Holder, gives_way};
use std::collections::BTreeMap;

/// Requests within one scope.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Of a key.
    pub key: usize,
    /// Of an IPv4 address, or an IPv6 /48.
    pub network: usize,
    /// In all.
    pub all: usize,
}

impl Limits {
    fn of(&self, scope: Scope) -> usize {
        match scope {
            Scope::All => self.all,
            Scope::Network(_) => self.network,
            Scope::Key(_) => self.key,
        }
    }
}

/// A request that moved less than this since it was looked at last did not move.
const MOVES: u64 = 1000;
/// Requests that are told to end at the same time so that others can begin, at most.
const MAX_ENDING: usize = 16;
/// How far a request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// It is being read.
    Reading,
    /// It is complete and waits for a thread.
    Waiting,
    /// It is being answered.
    Running,
}

struct RequestEntry {
    source: Source,
    stage: Stage,
    /// When the stage began.
    since: u64,
    /// When it moved last, and how much it had moved then.
    moved_at: u64,
    moved: u64,
    /// It was told to end.
    ending: bool,
}

/// Requests by scope.
#[derive(Default)]
struct Counts(BTreeMap<Scope, usize>);

impl Counts {
    fn of(&self, scope: Scope) -> usize {
        self.0.get(&scope).copied().unwrap_or(0)
    }
    fn add(&mut self, source: &Source) {
        source.scopes().iter().for_each(|s| *self.0.entry(*s).or_default() += 1);
    }
    fn take(&mut self, source: &Source) {
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
    fn full(&self, source: &Source, limits: &Limits) -> Option<Scope> {
        source.scopes().iter().copied().find(|s| self.of(*s) >= limits.of(*s))
    }
    /// How much more its part of the place holds than the other's would with one more; none where
    /// both are of the same source.
    fn excess(&self, holder: &Source, newcomer: &Source) -> usize {
        holder.rivals(newcomer).map_or(0, |(h, n)| self.of(h).saturating_sub(self.of(n) + 1))
    }
}

/// All requests of a server.
pub struct Table {
    held: Limits,
    running: Limits,
    entries: BTreeMap<u64, RequestEntry>,
    counts: Counts,
    busy: Counts,
    next: u64,
    /// Turns that were had since nobody waited.
    had: Counts,
    /// A request that did not move for so long gives way, ms.
    idle: u64,
}

impl Table {
    /// `held` bounds all requests, `running` those that are answered at the same time; one that moved
    /// nothing for `idle` ms gives way.
    pub fn new(held: Limits, running: Limits, idle: u64) -> Table {
        let (counts, busy, had) = (Counts::default(), Counts::default(), Counts::default());
        Table { held, running, entries: BTreeMap::new(), counts, busy, had, next: 0, idle }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many of them are being answered.
    pub fn running(&self) -> usize {
        self.busy.of(Scope::All)
    }

    /// A place for a request that begins, and who has to leave for it; `None` if there is no place.
    pub fn admit(&mut self, now: u64, source: Source) -> Option<(u64, Vec<u64>)> {
        let mut gone = Vec::new();
        while let Some(scope) = self.counts.full(&source, &self.held) {
            let victim = self.victim(now, scope, &source, &self.counts, |_| true)?;
            self.remove(victim);
            gone.push(victim);
        }
        let id = self.next;
        self.next += 1;
        self.counts.add(&source);
        let (stage, ending) = (Stage::Reading, false);
        let entry = RequestEntry { source, stage, since: now, moved_at: now, moved: 0, ending };
        self.entries.insert(id, entry);
        Some((id, gone))
    }

    /// Who gives way in this scope to a newcomer ([`gives_way`]): one that moves nothing; else one whose
    /// part of the place holds more than the newcomer's would, or that is not listed where the newcomer
    /// is.
    fn victim(
        &self,
        now: u64,
        scope: Scope,
        newcomer: &Source,
        counts: &Counts,
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
            (e.stage, e.since) = (Stage::Waiting, now);
        }
    }

    /// The request whose turn it is: of those with the fewest running, and the fewest turns before, the oldest; and who must end
    /// so that another can begin.
    pub fn turn(&mut self, now: u64) -> (Option<u64>, Option<u64>) {
        let of = |counts: &Counts, source: &Source| -> Vec<usize> {
            // The widest first: sites, then customers, then keys take turns.
            source.scopes().iter().map(|s| counts.of(*s)).collect()
        };
        let rank = |(id, e): (&u64, &RequestEntry)| {
            (!e.source.is_listed(), of(&self.busy, &e.source), of(&self.had, &e.source), *id)
        };
        let waiting = self.entries.iter().filter(|(_, e)| e.stage == Stage::Waiting);
        let mut waiting: Vec<_> = waiting.map(rank).collect();
        if waiting.is_empty() {
            self.had.0.clear();
        }
        waiting.sort_unstable();
        let ending = self.entries.values().filter(|e| e.ending).count();
        let most = waiting.len().min(MAX_ENDING);
        for (_, _, _, id) in &waiting {
            let Some(e) = self.entries.get(id) else { continue };
            let Some(scope) = self.busy.full(&e.source, &self.running) else {
                return (Some(*id), None);
            };
            // Of those that move, one after the other: the last one's thread is free a moment later. Who moves nothing
            // may take longer to notice: in a wait of the kernel's.
            let runs = |e: &RequestEntry| {
                e.stage == Stage::Running && !e.ending && (ending == 0 || self.is_idle(now, e))
            };
            if ending < most
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
            (e.stage, e.since, e.moved_at) = (Stage::Running, now, now);
            self.busy.add(&e.source);
            self.had.add(&e.source);
        }
    }

    /// So many bytes were moved for it in all.
    pub fn moved(&mut self, now: u64, id: u64, bytes: u64) {
        if let Some(e) = self.entries.get_mut(&id)
            && bytes >= e.moved.saturating_add(MOVES)
        {
            (e.moved, e.moved_at) = (bytes, now);
        }
    }

    /// It is over, or gave way.
    pub fn remove(&mut self, id: u64) {
        if let Some(e) = self.entries.remove(&id) {
            self.counts.take(&e.source);
            if e.stage == Stage::Running {
                self.busy.take(&e.source);
            }
        }
    }

    /// Requests that are too long in their stage, ms; answers that moved nothing for so long.
    pub fn late(&self, now: u64, reading: u64, waiting: u64, idle: u64) -> Vec<(u64, Stage)> {
        let late = |e: &RequestEntry| match e.stage {
            Stage::Reading => now.saturating_sub(e.since) >= reading,
            Stage::Waiting => now.saturating_sub(e.since) >= waiting,
            Stage::Running => now.saturating_sub(e.moved_at) >= idle && !e.ending,
        };
        self.entries.iter().filter(|(_, e)| late(e)).map(|(id, e)| (*id, e.stage)).collect()
    }
}
