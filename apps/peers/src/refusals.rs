//! Log lines about clients that were refused when their handshake ended.

use narrows_transport::endpoint::{AcceptFilter, ClientFilter, Decision, IncomingClient};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines at once; afterwards one in ten seconds.
const LINES: u32 = 20;

/// Writes a line to a log for each refused client, and few lines if there are many.
pub struct RefusalLog<F> {
    lines: RareLine,
    log: F,
}

impl<F: Fn(SocketAddr, &[u8; 32], &str) + Send + Sync + 'static> RefusalLog<F> {
    /// A filter that accepts all clients that the endpoint permits, and passes the address, the key and the reason of
    /// a refused one to `log`.
    pub fn filter(log: F) -> ClientFilter {
        ClientFilter::new(RefusalLog { lines: RareLine::new(LINES), log })
    }
}

impl<F: Fn(SocketAddr, &[u8; 32], &str) + Send + Sync> AcceptFilter for RefusalLog<F> {
    fn decide(&self, _: &IncomingClient<'_>) -> Decision {
        Decision::Accept
    }

    fn on_refused(&self, remote: SocketAddr, key: &[u8; 32], reason: &str) {
        match self.lines.count(Instant::now(), 1) {
            None => {}
            Some(1) => (self.log)(remote, key, reason),
            Some(count) => {
                (self.log)(remote, key, &format!("{reason} ({count} clients since the last line)"));
            }
        }
    }
}

/// Limits the log lines about one kind of event: after `burst` lines, one in each `period`.
#[derive(Debug)]
pub struct RareLine {
    burst: f64,
    period: Duration,
    state: Mutex<RareLineState>,
}

#[derive(Debug)]
struct RareLineState {
    lines: f64,
    at: Instant,
    omitted: u64,
}

impl Default for RareLine {
    fn default() -> RareLine {
        RareLine::new(1)
    }
}

impl RareLine {
    /// After `burst` lines, one in ten seconds.
    pub fn new(burst: u32) -> RareLine {
        let burst = f64::from(burst);
        let state = RareLineState { lines: burst, at: Instant::now(), omitted: 0 };
        RareLine { burst, period: Duration::from_secs(10), state: Mutex::new(state) }
    }

    /// Counts events. If a line is due, returns their number since the last line.
    pub fn count(&self, now: Instant, events: u64) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.omitted += events;
        let gone = now.saturating_duration_since(state.at).as_secs_f64();
        state.lines = (state.lines + gone / self.period.as_secs_f64()).min(self.burst);
        state.at = now;
        if events == 0 || state.lines < 1.0 {
            return None;
        }
        state.lines -= 1.0;
        Some(std::mem::take(&mut state.omitted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_lines_count_events_between_them() {
        let line = RareLine::new(2);
        let now = Instant::now();
        let counts: Vec<_> = (0..5).map(|_| line.count(now, 1)).collect();
        assert_eq!(counts, [Some(1), Some(1), None, None, None]);
        assert_eq!(line.count(now + Duration::from_secs(9), 1), None);
        assert_eq!(line.count(now + Duration::from_secs(11), 2), Some(6));
        assert_eq!(line.count(now + Duration::from_secs(12), 1), None);
    }

    #[test]
    fn refused_clients_leave_few_lines_with_their_count() {
        use std::sync::Arc;
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&lines);
        let log = RefusalLog {
            lines: RareLine::new(2),
            log: move |_: SocketAddr, _: &[u8; 32], why: &str| {
                kept.lock().unwrap().push(why.to_string());
            },
        };
        let client = "192.0.2.1:7".parse().unwrap();
        for _ in 0..1000 {
            log.on_refused(client, &[0; 32], "unlisted");
        }
        assert_eq!(lines.lock().unwrap()[..2], ["unlisted", "unlisted"]);
        assert!(lines.lock().unwrap().len() < 5);
    }
}
