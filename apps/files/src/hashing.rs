//! Hashes of the beginnings of served files. To verify a client's held prefix, the server must read the file; so hashes
//! are cached, and waiting clients take turns.

use crate::partial_file::{CHUNK, read_some};
use crate::requests::{RequestScope, RequestSource, SlotView};
use blake3::Hasher;
use cap_std::fs::{File, Metadata};
use narrows_peers::error::Error;
use std::collections::BTreeMap;
use std::io::{Seek, SeekFrom};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Files that are hashed at the same time.
const AT_ONCE: usize = 2;
/// Bytes hashed per turn while others wait; also the distance between cached states.
const SLICE: u64 = 16 << 20;
/// Most cached states of one file, and of all files; 2 kB each.
const MAX_STATES_OF_FILE: u64 = 64;
const MAX_STATES: usize = 1024;
/// A file that changed within this time may change again with the same time stamp.
const SETTLED: Duration = Duration::from_secs(2);

/// Identifies a file's content as long as it is not written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Unchanged {
    device: u64,
    inode: u64,
    size: u64,
    /// Modification time and change time, ns.
    times: [i128; 2],
}

/// Cached hash states per file, with the time of the last use.
#[derive(Default)]
struct HashCache {
    files: BTreeMap<Unchanged, (u64, BTreeMap<u64, Hasher>)>,
    states: usize,
    asked: u64,
}

impl HashCache {
    /// The longest cached prefix of at most `max` bytes.
    fn longest(&mut self, file: &Unchanged, max: u64) -> Option<(u64, Hasher)> {
        self.asked += 1;
        let (asked, states) = self.files.get_mut(file)?;
        *asked = self.asked;
        states.range(..=max).next_back().map(|(at, hasher)| (*at, hasher.clone()))
    }

    fn keep(&mut self, file: Unchanged, at: u64, hasher: &Hasher) {
        self.asked += 1;
        let states = &mut self.files.entry(file).or_insert_with(|| (0, BTreeMap::new()));
        states.0 = self.asked;
        self.states += usize::from(states.1.insert(at, hasher.clone()).is_none());
        // One more for the prefix that was requested, which need not end at a slice.
        while states.1.len() as u64 > MAX_STATES_OF_FILE + 1 {
            states.1.pop_last();
            self.states -= 1;
        }
        while self.states > MAX_STATES {
            let Some(oldest) = self.files.iter().min_by_key(|(_, f)| f.0).map(|(id, _)| *id) else {
                break;
            };
            self.states -= self.files.remove(&oldest).map_or(0, |f| f.1.len());
        }
    }
}

/// Running and waiting hash computations.
#[derive(Default)]
struct Turns {
    running: usize,
    waiting: BTreeMap<u64, Vec<RequestScope>>,
    next: u64,
    /// Turns taken per scope since the queue was last empty.
    had: BTreeMap<RequestScope, u64>,
}

impl Turns {
    /// The next in turn: the fewest turns taken, then the longest wait.
    fn first(&self) -> Option<u64> {
        let had = |scopes: &[RequestScope]| -> Vec<u64> {
            scopes.iter().map(|s| self.had.get(s).copied().unwrap_or(0)).collect()
        };
        self.waiting.iter().min_by_key(|(ticket, s)| (had(s), **ticket)).map(|(ticket, _)| *ticket)
    }
}

/// Cache and scheduler of a service's hashing.
pub struct Hashing {
    /// Hashes of files that changed within this time are not cached.
    settled: Duration,
    known: Mutex<HashCache>,
    turns: Mutex<Turns>,
    changed: Condvar,
}

impl Default for Hashing {
    fn default() -> Hashing {
        Hashing::caching_after(SETTLED)
    }
}

/// Holds a turn; dropping it ends the turn.
struct HashTurn<'h>(&'h Hashing);

impl Drop for HashTurn<'_> {
    fn drop(&mut self) {
        let mut turns = self.0.turns();
        turns.running -= 1;
        if turns.running == 0 && turns.waiting.is_empty() {
            turns.had.clear();
        }
        drop(turns);
        self.0.changed.notify_all();
    }
}

impl Hashing {
    /// Caches hashes of files that have not changed for this time.
    fn caching_after(settled: Duration) -> Hashing {
        let known = Mutex::default();
        let turns = Mutex::default();
        Hashing { settled, known, turns, changed: Condvar::new() }
    }
    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn known(&self) -> MutexGuard<'_, HashCache> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn; calls `tick` meanwhile.
    fn turn(
        &self,
        source: &RequestSource,
        tick: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<HashTurn<'_>, Error> {
        let mut turns = self.turns();
        let ticket = turns.next;
        turns.next += 1;
        turns.waiting.insert(ticket, source.scopes().to_vec());
        let mine = loop {
            if turns.running < AT_ONCE && turns.first() == Some(ticket) {
                break Ok(());
            }
            let wait = self.changed.wait_timeout(turns, Duration::from_millis(250));
            drop(wait.unwrap_or_else(PoisonError::into_inner));
            let ticked = tick();
            turns = self.turns();
            if ticked.is_err() {
                break ticked;
            }
        };
        turns.waiting.remove(&ticket);
        if mine.is_ok() {
            turns.running += 1;
            source.scopes().iter().for_each(|s| *turns.had.entry(*s).or_default() += 1);
        }
        drop(turns);
        // Another waiter may be first now.
        self.changed.notify_all();
        mine.map(|()| HashTurn(self))
    }

    /// Hashes a file's first `max` bytes, or the whole file if it is shorter. Afterwards the file's position is behind
    /// them.
    ///
    /// # Errors
    /// The disk's, the tick's, or the slot was revoked.
    pub fn beginning(
        &self,
        file: &mut File,
        max: u64,
        what: &str,
        source: &RequestSource,
        slot: &SlotView,
        tick: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<(u64, Hasher), Error> {
        let about = file.metadata().map_err(|e| Error::file(what, &e))?;
        let id = unchanged(&about, self.settled);
        let known = id.and_then(|id| self.known().longest(&id, max));
        let (mut at, mut hasher) = known.unwrap_or_default();
        file.seek(SeekFrom::Start(at)).map_err(|e| Error::file(what, &e))?;
        let slice = SLICE.max((about.len() / MAX_STATES_OF_FILE).next_multiple_of(1 << 20));
        let mut buffer = Vec::new();
        while at < max {
            // A single chunk is hashed without a turn.
            let small = max.min(about.len()).saturating_sub(at) <= CHUNK as u64;
            let turn = if small { None } else { Some(self.turn(source, tick)?) };
            let end = max.min((at / slice + 1) * slice);
            let before = at;
            while at < end {
                buffer.resize(CHUNK, 0);
                let want = usize::try_from(end - at).map_or(CHUNK, |n| n.min(CHUNK));
                let n = read_some(file, buffer.get_mut(..want).unwrap_or_default(), what)?;
                if n == 0 {
                    return Ok((at, hasher));
                }
                hasher.update(buffer.get(..n).unwrap_or_default());
                at += n as u64;
                slot.moved(n as u64);
                tick()?;
            }
            drop(turn);
            if let Some(e) = slot.given_up() {
                return Err(e);
            }
            let still = file.metadata().ok().and_then(|about| unchanged(&about, self.settled));
            if let Some(id) = id.filter(|id| at > before && still == Some(*id)) {
                self.known().keep(id, at, &hasher);
            }
        }
        Ok((at, hasher))
    }
}

#[cfg(unix)]
fn unchanged(about: &Metadata, settled: Duration) -> Option<Unchanged> {
    use cap_std::fs::MetadataExt as _;
    let ns = |s: i64, ns: i64| i128::from(s) * 1_000_000_000 + i128::from(ns);
    let times = [ns(about.mtime(), about.mtime_nsec()), ns(about.ctime(), about.ctime_nsec())];
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let settled = i128::try_from(now.checked_sub(settled)?.as_nanos()).ok()?;
    let device = cap_fs_ext::MetadataExt::dev(about);
    let inode = cap_fs_ext::MetadataExt::ino(about);
    (times[1] < settled).then_some(Unchanged { device, inode, size: about.len(), times })
}
/// Without a change time that users cannot set, hashes are not cached.
#[cfg(not(unix))]
fn unchanged(_: &Metadata, _: Duration) -> Option<Unchanged> {
    None
}

#[cfg(test)]
#[path = "hashing_tests.rs"]
mod tests;
