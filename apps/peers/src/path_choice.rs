//! The local ends of a connection's paths, as the user chose them.

use narrows_base::SpecError;
use narrows_base::units::{self, Unit};
use narrows_net::LocalPath;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One local end: `eth0`, `192.0.2.1`, `wwan0=standby`, `wwan0:quota=2GB` or `wwan0=standby:quota=2GB`.
#[derive(Clone, Debug)]
pub struct PathChoice {
    /// Where the path leaves this machine.
    pub local: LocalPath,
    /// Whether it carries data only while no other path answers.
    pub is_standby: bool,
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
        PathChoice { local, is_standby: false, quota: None }
    }
}

impl PathChoice {
    /// Reads a local end with its options.
    ///
    /// # Errors
    /// As [`LocalPath::read`]; an option is unknown or is not valid.
    pub fn read(text: &str) -> Result<PathChoice, SpecError> {
        let (text, quota) = match text.rsplit_once(":quota=") {
            Some((text, size)) => (text, Some(quota(size)?)),
            None => (text, None),
        };
        let (text, is_standby) = match text.split_once('=') {
            None => (text, false),
            Some((text, "standby")) => (text, true),
            Some((_, option)) => {
                let option = narrows_base::text::shown(option);
                let line = format!("'{option}' is unknown here: =standby or :quota=2GB may follow");
                return Err(SpecError::new(line));
            }
        };
        Ok(PathChoice { is_standby, quota, ..LocalPath::read(text)?.into() })
    }
}

fn quota(size: &str) -> Result<Arc<PathQuota>, SpecError> {
    let bytes = units::number(size, Unit::Bytes)?;
    if bytes < 1.0 {
        return Err(SpecError::new(format!("quota '{size}': at least 1B is needed")));
    }
    // A float's cast saturates.
    Ok(Arc::new(PathQuota { limit: bytes as u64, used: AtomicU64::new(0) }))
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
    fn malformed_options_are_refused() {
        for text in [
            "127.0.0.1=3",
            "127.0.0.1=",
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
