//! What paths were like: kept, with the user's consent, to seed the next connection to the same
//! server. A small TOML file, one table per `host:port`.

use crate::access::replace;
use crate::error::{Error, Kind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
}

impl Characteristics {
    fn is_sane(&self) -> bool {
        let fits = |x: Option<f64>, low: f64, high: f64| {
            x.is_none_or(|x| x.is_finite() && x >= low && x <= high)
        };
        fits(self.rate_bps, 1.0, 1e13) && fits(self.rtt_s, 0.0, 3600.0) && fits(self.loss, 0.0, 1.0)
    }
}

/// Servers that are remembered; the file stays small.
const SERVERS_MOST: usize = 1000;

/// The file.
#[derive(Clone, Debug)]
pub struct Learned(PathBuf);

impl Learned {
    /// In this file, which need not exist.
    pub fn at(path: PathBuf) -> Learned {
        Learned(path)
    }

    fn load(&self) -> Result<BTreeMap<String, Characteristics>, Error> {
        let what = self.0.display().to_string();
        let text = match std::fs::read_to_string(&self.0) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            other => other.map_err(|e| Error::file(&what, &e))?,
        };
        read(&text, &self.0)
    }

    /// What is known of the path to `host:port`.
    ///
    /// # Errors
    /// The file cannot be read, or is not what it should be.
    pub fn get(&self, server: &str) -> Result<Option<Characteristics>, Error> {
        Ok(self.load()?.remove(server))
    }

    /// Keeps what was measured, over what was known; the file changes at once or not at all.
    ///
    /// # Errors
    /// As [`Learned::get`], or it cannot be written.
    pub fn keep(&self, server: &str, found: Characteristics) -> Result<(), Error> {
        if !found.is_sane() {
            return Err(Error::new(Kind::Local, format!("{server}: what was measured is no path")));
        }
        let mut all = self.load()?;
        if all.len() >= SERVERS_MOST && !all.contains_key(server) {
            // Any one of them: what is lost is one slow start.
            all.pop_first();
        }
        all.insert(server.to_string(), found);
        let text = toml::to_string(&all).map_err(|e| Error::new(Kind::Local, e.to_string()))?;
        replace(&self.0, &text)
    }
}

fn read(text: &str, path: &Path) -> Result<BTreeMap<String, Characteristics>, Error> {
    let bad = |why: String| {
        let why = why.lines().next().unwrap_or_default().to_string();
        Error::new(Kind::Input, format!("{}: {why}; correct or remove it", path.display()))
    };
    let all: BTreeMap<String, Characteristics> =
        toml::from_str(text).map_err(|e| bad(e.to_string()))?;
    match all.iter().find(|(_, c)| !c.is_sane()) {
        Some((server, _)) => Err(bad(format!("{server}: a value is out of range"))),
        None => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learned_is_found_again_and_nonsense_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("paths.toml");
        let learned = Learned::at(path.clone());
        assert_eq!(learned.get("a:1").unwrap(), None);
        let a = Characteristics { rate_bps: Some(1.5e6), rtt_s: Some(0.08), loss: None };
        learned.keep("a:1", a).unwrap();
        learned.keep("[::1]:2", Characteristics::default()).unwrap();
        assert_eq!(learned.get("a:1").unwrap(), Some(a));
        assert!(learned.keep("a:1", Characteristics { loss: Some(2.0), ..a }).is_err());
        for text in ["x", "['a:1']\nloss = 7.0\n", "['a:1']\nspeed = 1\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(learned.get("a:1").unwrap_err().line.contains("paths.toml"));
        }
    }
}
