//! The local ends of a connection's paths, as the user chose them.

use narrows_base::SpecError;
use narrows_base::units::{self, Unit};
use narrows_net::{Connection, LocalPath};
use narrows_transport::connection::{PathStatus, PathWeight};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One local end: `eth0`, `192.0.2.1`, `eth0=3`, `wwan0=standby`, `wwan0:quota=2GB` or `wwan0=standby:quota=2GB`.
#[derive(Clone, Debug)]
pub struct PathChoice {
    /// Where the path leaves this machine.
    pub local: LocalPath,
    /// Whether it carries data only while no other path answers.
    pub is_standby: bool,
    /// Its weight beside those of other paths, a positive number; of a connection's paths, the part of the highest.
    pub weight: f64,
    /// Most bytes that it carries, in both directions together.
    pub quota: Option<Arc<PathQuota>>,
}

/// Most bytes of a path, over all connections of this process.
#[derive(Debug)]
pub struct PathQuota {
    limit: u64,
    used: AtomicU64,
}

impl PathQuota {
    /// Adds UDP payload bytes that the path carried.
    pub fn add(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }
    /// Whether the path has carried all that it may.
    pub fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed) >= self.limit
    }
}

impl From<LocalPath> for PathChoice {
    fn from(local: LocalPath) -> PathChoice {
        PathChoice { local, is_standby: false, weight: 1.0, quota: None }
    }
}

impl PathChoice {
    /// Sets the status and the weight of the connection's path with this number. Returns whether the peer knows them.
    pub(crate) fn set(&self, connection: &Connection, number: u8) -> bool {
        if self.is_standby {
            return connection.set_path_status(number, PathStatus::Standby);
        }
        // A float's cast saturates.
        let percent = (100.0 * self.weight).round().clamp(1.0, 100.0) as u8;
        let weight = PathWeight::from_percent(percent).unwrap_or_default();
        weight == PathWeight::default() || connection.set_path_weight(number, weight)
    }

    /// Reads a local end with its options.
    ///
    /// # Errors
    /// As [`LocalPath::read`]; an option is unknown or is not valid.
    pub fn read(text: &str) -> Result<PathChoice, SpecError> {
        let (text, quota) = match text.rsplit_once(":quota=") {
            Some((text, size)) => (text, Some(quota(size)?)),
            None => (text, None),
        };
        let (text, option) = text.split_once('=').map_or((text, None), |(a, b)| (a, Some(b)));
        let is_standby = option == Some("standby");
        let weight = option.filter(|_| !is_standby).map_or(Ok(1.0), weight)?;
        Ok(PathChoice { is_standby, weight, quota, ..LocalPath::read(text)?.into() })
    }
}

fn weight(option: &str) -> Result<f64, SpecError> {
    let weight: Option<f64> = option.parse().ok();
    weight.filter(|weight| (0.01..=100.0).contains(weight)).ok_or_else(|| {
        let option = narrows_base::text::shown(option);
        SpecError::new(format!(
            "'{option}' is unknown here: =standby, a weight from =0.01 to =100, or :quota=2GB may follow"
        ))
    })
}

fn quota(size: &str) -> Result<Arc<PathQuota>, SpecError> {
    let bytes = units::number(size, Unit::Bytes)?;
    if bytes < 1.0 {
        return Err(SpecError::new(format!("quota '{size}': at least 1B is needed")));
    }
    // A float's cast saturates.
    Ok(Arc::new(PathQuota { limit: bytes as u64, used: AtomicU64::new(0) }))
}

/// Makes the weights parts of the highest.
pub(crate) fn normalize_weights(choices: &mut [PathChoice]) {
    let available = choices.iter().filter(|choice| !choice.is_standby);
    let most = available.map(|choice| choice.weight).fold(0.0, f64::max);
    choices.iter_mut().for_each(|choice| choice.weight /= most.max(choice.weight));
}

/// Local ends of one connection, at most [`MAX_PATHS`](narrows_transport::connection::MAX_PATHS); without any, the system
/// chooses.
#[derive(Clone, Default)]
pub struct PathChoices {
    /// The ends, in the order of attempts.
    pub all: Vec<PathChoice>,
    /// Gets a line about a path that changes during the connection.
    pub note: Option<fn(&str)>,
}

impl fmt::Debug for PathChoices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.all.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_follow_the_address() {
        let read = |text| PathChoice::read(text).unwrap();
        assert!(!read("127.0.0.1").is_standby && read("127.0.0.1").quota.is_none());
        assert!(read("::1=standby").is_standby);
        let both = read("::1=standby:quota=2kB");
        assert_eq!(both.local.to_string(), "::1");
        let quota = both.quota.unwrap();
        quota.add(1999);
        assert!(both.is_standby && !quota.is_used());
        quota.add(1);
        assert!(quota.is_used());
    }

    #[test]
    fn weights_are_parts_of_the_highest() {
        let choices = ["127.0.0.1=3", "127.0.0.2", "127.0.0.3=0.01", "127.0.0.4=standby"];
        let mut choices = choices.map(|text| PathChoice::read(text).unwrap());
        normalize_weights(&mut choices);
        let weights = choices.map(|choice| (300.0 * choice.weight).round() as u32);
        assert_eq!(weights, [300, 100, 1, 100]);
    }

    #[test]
    fn malformed_options_are_refused() {
        for text in [
            "127.0.0.1=",
            "127.0.0.1=0",
            "127.0.0.1=-1",
            "127.0.0.1=NaN",
            "127.0.0.1=inf",
            "127.0.0.1=1e3",
            "127.0.0.1=standby=standby",
            "127.0.0.1:quota=",
            "127.0.0.1:quota=0B",
            "127.0.0.1:quota=2",
            "127.0.0.1:quota=-2GB",
            "127.0.0.1:quota=2GB=standby",
            "=standby",
            ":quota=2GB",
        ] {
            assert!(PathChoice::read(text).is_err(), "{text}");
        }
    }
}
