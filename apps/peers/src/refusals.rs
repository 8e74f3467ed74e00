//! Log lines about clients that were refused when their handshake ended.

use narrows_transport::endpoint::{AcceptFilter, ClientFilter, Decision, IncomingClient};
use std::net::SocketAddr;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines at once; afterwards one in ten seconds.
const LINES: u32 = 20;

/// Writes a line to a log for each refused client, and few lines if there are many.
pub struct RefusalLog {
    lines: RareLine,
    log: SyncSender<RefusedClient>,
}

struct RefusedClient {
    remote: SocketAddr,
    key: [u8; 32],
    reason: String,
}

impl RefusalLog {
    /// A filter that accepts all clients that the endpoint permits, and passes the address, the key and the reason of
    /// a refused one to `log`, on a thread of its own: a slow disk must not stop the endpoint.
    pub fn filter(log: impl Fn(SocketAddr, &[u8; 32], &str) + Send + 'static) -> ClientFilter {
        ClientFilter::new(RefusalLog::new(RareLine::new(LINES), log))
    }

    fn new(
        lines: RareLine,
        log: impl Fn(SocketAddr, &[u8; 32], &str) + Send + 'static,
    ) -> RefusalLog {
        let (sender, refused) = mpsc::sync_channel::<RefusedClient>(LINES as usize);
        // Without a thread there are no lines about refused clients.
        let _ = std::thread::Builder::new().name("narrows-refusals".into()).spawn(move || {
            for r in refused {
                log(r.remote, &r.key, &r.reason);
            }
        });
        RefusalLog { lines, log: sender }
    }
}

impl AcceptFilter for RefusalLog {
    fn decide(&self, _: &IncomingClient<'_>) -> Decision {
        Decision::Accept
    }

    fn on_refused(&self, remote: SocketAddr, key: &[u8; 32], reason: &str) {
        let Some(count) = self.lines.count(Instant::now(), 1) else { return };
        let reason = match count {
            1 => reason.to_string(),
            _ => format!("{reason} ({count} clients since the last line)"),
        };
        // If the log does not take its lines, a later line counts the clients of this one.
        if self.log.try_send(RefusedClient { remote, key: *key, reason }).is_err() {
            self.lines.put_back(count);
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

    /// Counts these events in the next line, since theirs was not written.
    pub fn put_back(&self, events: u64) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).omitted += events;
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
        let (sender, lines) = mpsc::channel();
        let log = RefusalLog::new(RareLine::new(2), move |_, _, why| {
            sender.send(why.to_string()).unwrap();
        });
        let client = "192.0.2.1:7".parse().unwrap();
        for _ in 0..1000 {
            log.on_refused(client, &[0; 32], "unlisted");
        }
        drop(log);
        let lines: Vec<String> = lines.iter().collect();
        assert_eq!(lines[..2], ["unlisted", "unlisted"]);
        assert!(lines.len() < 5);
    }

    /// The log waits until all refusals have returned; a later line counts those that it did not take.
    #[test]
    fn blocked_log_does_not_block_refusals() {
        let (unblock, blocked) = mpsc::channel::<()>();
        let (sender, lines) = mpsc::channel();
        let log = RefusalLog::new(RareLine::new(1000), move |_, _, why| {
            let _ = blocked.recv();
            sender.send(why.to_string()).unwrap();
        });
        let client = "192.0.2.1:7".parse().unwrap();
        for _ in 0..100 {
            log.on_refused(client, &[0; 32], "unlisted");
        }
        drop(unblock);
        let mut all = Vec::new();
        // Twice as many as wait, so that the log has taken those that waited.
        for _ in 0..2 * LINES {
            log.on_refused(client, &[0; 32], "unlisted");
            all.extend(lines.recv());
        }
        let has_count = |line: &String| line.contains("clients since the last line");
        assert!(all.iter().any(has_count), "{all:?}");
    }
}
