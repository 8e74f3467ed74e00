//! Path measurements that are stored, with the user's consent, as hints for the next connection to the same peer. A
//! small TOML file with a table per peer: `host:port` of a server, or the key and address of a server's client.

use crate::access::replace;
use crate::error::{Error, ErrorKind};
use crate::text_file;
use narrows_base::{Duration, Rate};
use narrows_congestion::PathHints;
use narrows_wire::noise::PublicKey;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Measurements of a path.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct MeasuredPath {
    /// The rate that the path sustained, its smallest round-trip time, and the share of packets lost without
    /// congestion.
    pub path: PathHints,
    /// Time of the measurement, seconds since 1970. Absent in entries that a user wrote; those never expire.
    pub measured: Option<u64>,
}

/// The form of a [`MeasuredPath`] in the file.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredPath {
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_bps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    loss: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<u64>,
}

impl StoredPath {
    fn is_sane(&self) -> bool {
        let fits = |x: Option<f64>, low: f64, high: f64| {
            x.is_none_or(|x| x.is_finite() && x >= low && x <= high)
        };
        fits(self.rate_bps, 1.0, 1e13) && fits(self.rtt_s, 0.0, 3600.0) && fits(self.loss, 0.0, 1.0)
    }
}

impl From<&MeasuredPath> for StoredPath {
    fn from(m: &MeasuredPath) -> StoredPath {
        StoredPath {
            rate_bps: m.path.rate.map(|r| r.as_bps() as f64),
            rtt_s: m.path.rtt.map(Duration::as_secs_f64),
            loss: m.path.loss,
            measured: m.measured,
        }
    }
}

impl From<StoredPath> for MeasuredPath {
    fn from(s: StoredPath) -> MeasuredPath {
        let path = PathHints {
            rate: s.rate_bps.map(Rate::from_bps_f64),
            rtt: s.rtt_s.map(Duration::from_secs_f64),
            loss: s.loss,
        };
        MeasuredPath { path, measured: s.measured }
    }
}

impl From<PathHints> for MeasuredPath {
    fn from(path: PathHints) -> MeasuredPath {
        MeasuredPath { path, measured: None }
    }
}

impl MeasuredPath {
    fn is_sane(&self) -> bool {
        StoredPath::from(self).is_sane()
    }

    fn is_fresh(&self, now: u64) -> bool {
        self.measured.is_none_or(|then| now.saturating_sub(then) < LASTS)
    }

    /// Whether a connection with this round-trip time may use that path. With less than half of the stored RTT it does
    /// not; with more than ten times it, the stored rate is no useful hint.
    pub fn may_be(&self, rtt: Duration) -> bool {
        self.path.rtt.is_none_or(|then| {
            let then = then.as_secs_f64();
            let now = rtt.as_secs_f64();
            now >= then / 2.0 && now <= then * 10.0
        })
    }

    /// A connection's measurements, with the rate limited to the rate of delivery; `None` if fewer than [`MIN_LEARN`]
    /// bytes were delivered. A peer's acknowledgements and hints may be false.
    pub fn verified(found: &PathHints, delivered: &Delivered) -> Option<MeasuredPath> {
        if !delivered.says_something() {
            return None;
        }
        let rate = found.rate?.min(Rate::from_bps_f64(delivered.rate_bps()));
        let verified = MeasuredPath::from(PathHints { rate: Some(rate), ..*found });
        verified.is_sane().then_some(verified)
    }
}

/// Bytes below which a transfer says little about the path.
pub const MIN_LEARN: u64 = 1_000_000;
/// Most peers in the file, to keep it small.
const MAX_PLACES: usize = 1000;
/// Most clients of one IP address among them, because a client can create any number of keys.
const MAX_OF_ADDRESS: usize = 16;
/// Seconds until a measurement expires: 30 days.
const LASTS: u64 = 30 * 24 * 3600;

/// Name of the path to a client. A client with another key, or from another address, is on another path.
pub fn client(key: &PublicKey, address: IpAddr) -> String {
    format!("{} {}", crate::key::text(key), address.to_canonical())
}

/// A rate counts as delivered if it lasted this long, s.
const SUSTAINED: f64 = 0.25;

/// Bytes delivered, and their highest rate.
#[derive(Clone, Default, Debug)]
pub struct Delivered {
    /// Time and delivered bytes, from the last sample before the current [`SUSTAINED`] interval on.
    seen: VecDeque<(Instant, u64)>,
    bytes: u64,
    best_bps: f64,
}

impl Delivered {
    /// Records the total of bytes delivered by now; to be called a few times a second.
    pub fn seen(&mut self, now: Instant, bytes: u64) {
        let ago = |then: Instant| now.saturating_duration_since(then).as_secs_f64();
        while self.seen.get(1).is_some_and(|(then, _)| ago(*then) >= SUSTAINED) {
            self.seen.pop_front();
        }
        if let Some((then, before)) = self.seen.front() {
            let bits = bytes.saturating_sub(*before) as f64 * 8.0;
            self.best_bps = self.best_bps.max(bits / ago(*then).max(SUSTAINED));
        }
        // Called more often, it keeps no more samples than it needs.
        if self.seen.back().is_none_or(|(then, _)| ago(*then) >= SUSTAINED / 8.0) {
            self.seen.push_back((now, bytes));
        }
        self.bytes = bytes;
    }

    /// Whether enough was delivered to describe the path.
    pub fn says_something(&self) -> bool {
        self.bytes >= MIN_LEARN
    }

    /// Highest rate that was delivered for a quarter of a second, bit/s.
    pub fn rate_bps(&self) -> f64 {
        self.best_bps
    }
}

/// The file. Within a process one thread at a time changes it; of two processes the later write wins.
#[derive(Debug)]
pub struct LearnedPaths {
    path: PathBuf,
    writing: Mutex<()>,
    /// The parsed content, with the file's time and size.
    read: Mutex<Option<(Stamp, Places)>>,
}

type Stamp = (SystemTime, u64);
type Places = BTreeMap<String, MeasuredPath>;

impl LearnedPaths {
    /// The file at this path, which need not exist.
    pub fn at(path: PathBuf) -> LearnedPaths {
        LearnedPaths { path, writing: Mutex::new(()), read: Mutex::new(None) }
    }

    fn load(&self) -> Result<BTreeMap<String, MeasuredPath>, Error> {
        // The file is parsed again only after it changed: a server looks up every client.
        let stamp =
            std::fs::metadata(&self.path).ok().and_then(|m| Some((m.modified().ok()?, m.len())));
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((then, all)) = read.as_ref().filter(|(then, _)| stamp == Some(*then)) {
            let settled = then.0.elapsed().is_ok_and(|age| age.as_secs() >= 2);
            if settled {
                return Ok(all.clone());
            }
        }
        let all = self.load_now()?;
        *read = stamp.map(|stamp| (stamp, all.clone()));
        Ok(all)
    }

    fn load_now(&self) -> Result<BTreeMap<String, MeasuredPath>, Error> {
        let what = self.path.display().to_string();
        let text = match text_file::read(&self.path, text_file::LIST) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            other => other.map_err(|e| Error::file(&what, &e))?,
        };
        read(&text).map_err(|e| e.at(&what).and("correct or remove it"))
    }

    /// Ends a connection: stores the found path. If nothing was found, an entry whose first flight `retreated` is
    /// removed (RFC 9959 section 3.5).
    ///
    /// # Errors
    /// As [`LearnedPaths::keep`].
    pub fn end(
        &self,
        place: &str,
        found: Option<MeasuredPath>,
        retreated: bool,
    ) -> Result<(), Error> {
        match found {
            Some(found) => self.keep(place, found),
            None if retreated => {
                let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
                let mut all = self.load()?;
                all.remove(place);
                self.write(&all)
            }
            None => Ok(()),
        }
    }

    /// The stored measurements of the path to a peer; `None` if absent or expired.
    ///
    /// # Errors
    /// The file cannot be read, or is malformed.
    pub fn get(&self, place: &str) -> Result<Option<MeasuredPath>, Error> {
        Ok(self.load()?.remove(place).filter(|c| c.is_fresh(now())))
    }

    /// Stores a measurement in place of the former one; the file changes atomically. Removes expired entries, and the
    /// oldest ones above the limits.
    ///
    /// # Errors
    /// As [`LearnedPaths::get`], or the file cannot be written.
    pub fn keep(&self, place: &str, found: MeasuredPath) -> Result<(), Error> {
        self.keep_at(now(), place, found)
    }

    fn keep_at(&self, now: u64, place: &str, found: MeasuredPath) -> Result<(), Error> {
        if !found.is_sane() {
            return Err(Error::new(
                ErrorKind::Local,
                format!("{place}: what was measured is no path"),
            ));
        }
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = self.load()?;
        all.retain(|_, c| c.is_fresh(now));
        all.insert(place.to_string(), MeasuredPath { measured: Some(now), ..found });
        loop {
            let same =
                |name: &String| address_of(name).is_some_and(|a| address_of(place) == Some(a));
            let crowded = all.keys().filter(|name| same(name)).count() > MAX_OF_ADDRESS;
            if !crowded && all.len() <= MAX_PLACES {
                break;
            }
            let others = all.iter().filter(|(name, _)| *name != place && (!crowded || same(name)));
            // Entries that a user wrote are removed last.
            let oldest = others.min_by_key(|(_, c)| c.measured.unwrap_or(u64::MAX));
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else { break };
            all.remove(&oldest);
        }
        self.write(&all)
    }

    fn write(&self, all: &Places) -> Result<(), Error> {
        let stored: BTreeMap<&String, StoredPath> =
            all.iter().map(|(name, path)| (name, path.into())).collect();
        let text =
            toml::to_string(&stored).map_err(|e| Error::new(ErrorKind::Local, e.to_string()))?;
        replace(&self.path, &text)
    }

    /// The file's path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The address in a client's name, as [`client`] writes it.
fn address_of(place: &str) -> Option<&str> {
    let (key, address) = place.split_once(' ')?;
    (crate::key::read(key).is_ok() && address.parse::<IpAddr>().is_ok()).then_some(address)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// Parses the text of such a file.
///
/// # Errors
/// It is malformed, or a value is out of range.
pub fn read(text: &str) -> Result<BTreeMap<String, MeasuredPath>, Error> {
    let bad = |why: &str| {
        let why = why.lines().next().unwrap_or_default();
        Error::new(ErrorKind::Input, crate::error::shown(why))
    };
    let all: BTreeMap<String, StoredPath> =
        toml::from_str(text).map_err(|e| bad(&e.to_string()))?;
    match all.iter().find(|(_, c)| !c.is_sane()) {
        Some((place, _)) => Err(bad(&format!("{place}: a value is out of range"))),
        None => Ok(all.into_iter().map(|(place, stored)| (place, stored.into())).collect()),
    }
}

#[cfg(test)]
#[path = "learned_tests.rs"]
mod tests;
