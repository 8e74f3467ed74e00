//! Endpoints on the page: the connections of a real socket, sampled 60 times a second. Only statistics are read: no
//! payload and no keys.

use crate::connections::{
    AnnouncedConnection, ConnectionEnd, ConnectionKey, ConnectionStatistics, ConnectionTracks,
    MAX_WATCHED,
};
use crate::feed::{LiveRun, RunPhase};
use narrows_base::Time;
use narrows_net::Clock;
use narrows_net::endpoint::Observer;
use narrows_net::socket::ReceivedDatagram;
use narrows_net::tap::{ConnectionOpened, Tap};
use narrows_transport::connection::{Closed, Stats, Transmit};
use narrows_transport::endpoint::Handle;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Sampling interval: 60 a second.
const UPDATE: Duration = Duration::from_micros(16_667);
/// Most openings, and most ends, that are recorded between two samples.
const MAX_NEWS: usize = 1024;

/// Shows the connections of endpoints as the flows of a run, until it is dropped.
#[derive(Debug)]
pub struct EndpointLive {
    shared: Arc<EndpointSamples>,
    thread: Option<JoinHandle<()>>,
}

/// State shared by the endpoints' threads and the sampler. An endpoint's thread holds each lock only for a push.
#[derive(Debug)]
struct EndpointSamples {
    run: Arc<LiveRun>,
    zero: OnceLock<Clock>,
    endpoints: Mutex<Endpoints>,
    news: Mutex<News>,
    stop: AtomicBool,
}

#[derive(Debug, Default)]
struct Endpoints {
    so_far: usize,
    open: Vec<(usize, Observer)>,
}

#[derive(Debug, Default)]
struct News {
    opened: Vec<AnnouncedConnection>,
    closed: BTreeMap<ConnectionKey, ConnectionEnd>,
}

impl EndpointLive {
    /// Connections become flows of `run`. `protocol` is the expected one: its controller's variables are columns from
    /// the beginning.
    ///
    /// # Errors
    /// The system provides no thread.
    pub fn start(run: Arc<LiveRun>, protocol: &str) -> std::io::Result<EndpointLive> {
        let shared = Arc::new(EndpointSamples {
            run: run.clone(),
            zero: OnceLock::new(),
            endpoints: Mutex::default(),
            news: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        let sampled = shared.clone();
        let connections = ConnectionTracks::new(run, protocol);
        let thread = std::thread::Builder::new()
            .name("narrows-live-end".into())
            .spawn(move || sampled.sample(connections))?;
        Ok(EndpointLive { shared, thread: Some(thread) })
    }

    /// A tap for one endpoint, or for several in sequence.
    pub fn tap(&self) -> Arc<dyn Tap> {
        Arc::new(EndpointTap { shared: self.shared.clone(), number: Mutex::new(0) })
    }

    /// Measures times from this clock's zero instead of the first endpoint's.
    pub fn by(&self, clock: Clock) {
        let _ = self.shared.zero.set(clock);
    }
}

impl Drop for EndpointLive {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.shared.run.end(RunPhase::Done);
    }
}

impl EndpointSamples {
    fn sample(&self, mut connections: ConnectionTracks) {
        while !self.stop.load(Ordering::Acquire) {
            std::thread::sleep(UPDATE);
            let News { opened, closed } = std::mem::take(&mut *lock(&self.news));
            connections.admit(opened);
            let Some(zero) = self.zero.get() else { continue };
            // Cloned, so that a new endpoint waits for no other endpoint's lock.
            let endpoints = lock(&self.endpoints).open.clone();
            let mut seen = Vec::new();
            let mut over = Vec::new();
            for (number, observer) in endpoints {
                let wanted: Vec<Handle> =
                    connections.wanted(number).into_iter().map(Handle).collect();
                let alive = observer.these(&wanted, |_, connection| {
                    let mut watched = Vec::with_capacity(MAX_WATCHED);
                    connection.watch(&mut |name, value| watched.push((name, value)));
                    let key = (number, connection.handle.0);
                    seen.push((key, figures(&connection.stats()), watched));
                });
                if !alive {
                    over.push(number);
                }
            }
            if !over.is_empty() {
                lock(&self.endpoints).open.retain(|(number, _)| !over.contains(number));
            }
            connections.sample(micros(zero.now()), seen, &closed);
        }
    }
}

/// The tap of one endpoint, or of several in sequence.
#[derive(Debug)]
struct EndpointTap {
    shared: Arc<EndpointSamples>,
    /// Number of the current endpoint.
    number: Mutex<usize>,
}

impl Tap for EndpointTap {
    fn bound(&self, observer: Observer) {
        let _ = self.shared.zero.set(observer.clock());
        let mut endpoints = lock(&self.shared.endpoints);
        endpoints.so_far += 1;
        let number = endpoints.so_far;
        endpoints.open.push((number, observer));
        drop(endpoints);
        *lock(&self.number) = number;
    }

    fn sent(&self, _: Time, _: &Transmit, _: &[u8]) {}
    fn received(&self, _: &ReceivedDatagram<'_>) {}

    fn opened(&self, _: Time, opened: &ConnectionOpened) {
        let key = (*lock(&self.number), opened.handle.0);
        let mut news = lock(&self.shared.news);
        if news.opened.len() < MAX_NEWS {
            // A server logs its clients' addresses, too.
            let name = (!opened.dialled).then(|| opened.remote.to_string());
            let title = if opened.dialled { "opened" } else { "opened by the peer" };
            news.opened.push(AnnouncedConnection { key, name, title });
        }
    }

    fn closed(&self, _: Time, handle: Handle, stats: Option<&Stats>, why: &Closed) {
        let key = (*lock(&self.number), handle.0);
        let mut news = lock(&self.shared.news);
        // Failed attempts are not shown.
        if let Some(stats) = stats
            && news.closed.len() < MAX_NEWS
        {
            news.closed.insert(key, ConnectionEnd { why: end_text(why), last: figures(stats) });
        }
    }
}

/// The reason of an end, without text from the peer.
fn end_text(why: &Closed) -> String {
    match why {
        Closed::Locally => "This end closed it.".into(),
        Closed::ByPeer { code, .. } => format!("The peer closed it, with code {code}."),
        Closed::Reset => "The peer no longer knew the connection: it was restarted.".into(),
        Closed::TimedOut => "Nothing came from the peer within the idle timeout.".into(),
        Closed::Fault { why, .. } => format!("The peer broke the protocol: {why}."),
        Closed::GaveWay => "It was idle, and gave way to another client.".into(),
        Closed::SmallPath { .. } => "Large packets do not pass between both ends.".into(),
        Closed::Panicked { controller, .. } => {
            format!("The controller failed: {}.", narrows_base::text::shown(controller))
        }
        _ => "It was not completed.".into(),
    }
}

fn micros(time: Time) -> i64 {
    i64::try_from(time.as_nanos() / 1000).unwrap_or(i64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn figures(s: &Stats) -> ConnectionStatistics {
    ConnectionStatistics {
        cwnd: s.window,
        in_flight: s.flight,
        rtt_sum_s: s.rtt_sum.as_secs_f64(),
        rtt_samples: s.rtt_samples,
        srtt_s: s.srtt.as_secs_f64(),
        pacing_bps: s.rate.map_or(f64::NAN, |r| r.as_bps() as f64),
        carried_bytes: s.bytes_arrived + s.bytes_taken,
        sent_bytes: s.bytes_sent,
        received_bytes: s.bytes_received,
        sent: s.counters.sent,
        lost: s.counters.lost,
        retransmissions: s.counters.retransmissions,
        timeouts: s.counters.timeouts,
        marks: s.counters.marks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No text of a peer reaches the page; other text is escaped.
    #[test]
    fn a_peers_words_are_not_shown() {
        let by_peer = Closed::ByPeer { code: 7, reason: "<script>secret".into() };
        assert_eq!(end_text(&by_peer), "The peer closed it, with code 7.");
        let panicked =
            Closed::Panicked { controller: "x\u{1b}[2J".into(), message: "secret".into() };
        let text = end_text(&panicked);
        assert!(!text.contains('\u{1b}') && !text.contains("secret"), "{text}");
        assert_eq!(end_text(&Closed::WrongKey { found: [7; 32] }), "It was not completed.");
    }
}
