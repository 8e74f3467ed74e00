//! What paths were like: kept, with the user's consent, to seed the next connection to the same
//! place. A small TOML file, one table per place: `host:port` of a server, or the network of a
//! server's client.

use crate::access::replace;
use crate::error::{Error, Kind};
use narrows_base::{Duration, Rate};
use narrows_control::Profile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// A path as it was measured.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Characteristics {
    /// Rate that the path sustained, bit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<f64>,
    /// Smallest round-trip time, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_s: Option<f64>,
    /// Share of packets lost otherwise than by congestion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// When, seconds since 1970. What a user wrote has none, and is believed for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<u64>,
}

impl Characteristics {
    fn is_sane(&self) -> bool {
        let fits = |x: Option<f64>, low: f64, high: f64| {
            x.is_none_or(|x| x.is_finite() && x >= low && x <= high)
        };
        fits(self.rate_bps, 1.0, 1e13) && fits(self.rtt_s, 0.0, 3600.0) && fits(self.loss, 0.0, 1.0)
    }

    fn is_fresh(&self, now: u64) -> bool {
        self.measured.is_none_or(|then| now.saturating_sub(then) < LASTS)
    }

    /// Whether a connection with this round-trip time may be on that path: a much shorter one
    /// certainly is not, and with a much longer one the rate of before is no guess.
    pub fn may_be(&self, rtt: Duration) -> bool {
        self.rtt_s.is_none_or(|then| {
            let now = rtt.as_secs_f64();
            now >= then / 2.0 && now <= then * 10.0
        })
    }

    /// For a controller.
    pub fn profile(&self) -> Profile {
        Profile {
            rate: self.rate_bps.map(Rate::from_bps_f64),
            rtt: self.rtt_s.map(Duration::from_secs_f64),
            loss: self.loss,
        }
    }
}

impl From<&Profile> for Characteristics {
    fn from(found: &Profile) -> Characteristics {
        Characteristics {
            rate_bps: found.rate.map(|r| r.as_bps() as f64),
            rtt_s: found.rtt.map(Duration::as_secs_f64),
            loss: found.loss,
            measured: None,
        }
    }
}

/// Bytes below which a transfer says little about the path.
pub const LEARN_LEAST: u64 = 1_000_000;
/// Places that are remembered; the file stays small.
const PLACES_MOST: usize = 1000;
/// What was measured longer ago says nothing, s: 30 days.
const LASTS: u64 = 30 * 24 * 3600;

/// The network that a client's address is taken to be in, since the address itself changes: the
/// first 24 bits of IPv4, the first 48 of IPv6.
pub fn network(client: IpAddr) -> String {
    match client.to_canonical() {
        IpAddr::V4(a) => format!("{}/24", Ipv4Addr::from_bits(a.to_bits() & (!0 << 8))),
        IpAddr::V6(a) => format!("{}/48", Ipv6Addr::from_bits(a.to_bits() & (!0 << 80))),
    }
}

/// The file. Within a process one at a time changes it; of two processes the later one wins.
#[derive(Debug)]
pub struct Learned {
    path: PathBuf,
    writing: Mutex<()>,
}

impl Learned {
    /// In this file, which need not exist.
    pub fn at(path: PathBuf) -> Learned {
        Learned { path, writing: Mutex::new(()) }
    }

    fn load(&self) -> Result<BTreeMap<String, Characteristics>, Error> {
        let what = self.path.display().to_string();
        let text = match std::fs::read_to_string(&self.path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            other => other.map_err(|e| Error::file(&what, &e))?,
        };
        read(&text).map_err(|e| e.at(&what).and("correct or remove it"))
    }

    /// What is known of the path to a place, if that is not too old.
    ///
    /// # Errors
    /// The file cannot be read, or is not what it should be.
    pub fn get(&self, place: &str) -> Result<Option<Characteristics>, Error> {
        Ok(self.load()?.remove(place).filter(|c| c.is_fresh(now())))
    }

    /// Keeps what was measured now, over what was known; the file changes at once or not at all.
    /// What is too old leaves it, and the oldest, if there are too many.
    ///
    /// # Errors
    /// As [`Learned::get`], or it cannot be written.
    pub fn keep(&self, place: &str, found: Characteristics) -> Result<(), Error> {
        self.keep_at(now(), place, found)
    }

    fn keep_at(&self, now: u64, place: &str, found: Characteristics) -> Result<(), Error> {
        if !found.is_sane() {
            return Err(Error::new(Kind::Local, format!("{place}: what was measured is no path")));
        }
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = self.load()?;
        all.retain(|_, c| c.is_fresh(now));
        all.insert(place.to_string(), Characteristics { measured: Some(now), ..found });
        while all.len() > PLACES_MOST {
            let others = all.iter().filter(|(name, _)| *name != place);
            // What a user wrote stays, unless there is nothing else.
            let oldest = others.min_by_key(|(_, c)| c.measured.unwrap_or(u64::MAX));
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else { break };
            all.remove(&oldest);
        }
        let text = toml::to_string(&all).map_err(|e| Error::new(Kind::Local, e.to_string()))?;
        replace(&self.path, &text)
    }

    /// The file's name, for people.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// The places in the text of such a file.
///
/// # Errors
/// It is none, or a value is out of range.
pub fn read(text: &str) -> Result<BTreeMap<String, Characteristics>, Error> {
    let bad = |why: &str| {
        let why = why.lines().next().unwrap_or_default();
        Error::new(Kind::Input, crate::error::shown(why))
    };
    let all: BTreeMap<String, Characteristics> =
        toml::from_str(text).map_err(|e| bad(&e.to_string()))?;
    match all.iter().find(|(_, c)| !c.is_sane()) {
        Some((place, _)) => Err(bad(&format!("{place}: a value is out of range"))),
        None => Ok(all),
    }
}

#[cfg(test)]
#[path = "learned_tests.rs"]
mod tests;
