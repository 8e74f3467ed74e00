//! Relays and emulated links on the page: both directions, and a relay's clients.

use crate::controls::ChangingLink;
use crate::feed::history::Merge;
use crate::feed::{LiveRun, RunPhase, TrackKind};
use crate::simulation::columns;
use narrows_base::{Duration, Time};
use narrows_link::LinkChange;
use narrows_net::relay::{
    DirectionStats, HEADERS, MissedDatagram, RelayObserver, RelaySide, RelaySnapshot, RelayTap,
    RelayedDatagram,
};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Sampling interval: 60 a second.
const UPDATE: std::time::Duration = std::time::Duration::from_micros(16_667);
/// Most clients that are shown.
const MAX_CLIENTS: usize = 100;

/// Columns of one direction of a link with real packets.
pub(crate) const LINK_COLUMNS: [(&str, Merge); 9] = [
    ("queue", Merge::Mean),
    ("queue_max", Merge::Max),
    ("capacity_bps", Merge::Last),
    ("throughput_bps", Merge::Mean),
    ("offered_bps", Merge::Mean),
    ("queue_delay_s", Merge::Mean),
    ("drops", Merge::Sum),
    ("losses", Merge::Sum),
    ("marks", Merge::Sum),
];
const FLOW_COLUMNS: [(&str, Merge); 4] = [
    ("offered_bps", Merge::Mean),
    ("throughput_bps", Merge::Mean),
    ("queue_drops", Merge::Sum),
    ("link_losses", Merge::Sum),
];

/// A running link that can be sampled and changed.
pub trait RunningLink: Send + Sync + fmt::Debug {
    /// Current counters and queues.
    fn look(&self) -> RelaySnapshot;
    /// Whether it has stopped.
    fn is_over(&self) -> bool;
    /// Time by the link's clock.
    fn now(&self) -> Time;
    /// Changes a direction, 0 forward or 1 reverse, at this time.
    fn change(&self, at: Time, direction: usize, change: LinkChange);
}

impl RunningLink for RelayObserver {
    fn look(&self) -> RelaySnapshot {
        RelayObserver::look(self)
    }
    fn is_over(&self) -> bool {
        RelayObserver::is_over(self)
    }
    fn now(&self) -> Time {
        self.clock().now()
    }
    fn change(&self, at: Time, direction: usize, change: LinkChange) {
        RelayObserver::change(self, at, direction, change);
    }
}

/// Shows a link on a page, and passes the page's changes to the link.
#[derive(Debug)]
pub struct LinkLive {
    run: Arc<LiveRun>,
    /// Tracks of the two directions: the run's first ones, as the page's controls expect.
    tracks: [Option<usize>; 2],
    link: OnceLock<Arc<dyn RunningLink>>,
    rates: Mutex<[f64; 2]>,
    clients: Mutex<BTreeMap<u32, ClientCounters>>,
}

/// Counters of one client since the last sample.
#[derive(Clone, Copy, Debug, Default)]
struct ClientCounters {
    track: Option<usize>,
    offered_bytes: u64,
    delivered_bytes: u64,
    dropped: u64,
    lost: u64,
}

impl LinkLive {
    /// Shown as `run`; `rates` are the link's forward and reverse rates in bit/s.
    pub fn new(run: Arc<LiveRun>, rates: [f64; 2]) -> Arc<LinkLive> {
        let link = OnceLock::new();
        let clients = Mutex::default();
        let track = |name| run.track(TrackKind::Link, name, columns(&LINK_COLUMNS));
        let tracks = ["there", "back"].map(track);
        Arc::new(LinkLive { run, tracks, link, rates: Mutex::new(rates), clients })
    }

    /// Samples the link on a thread of its own until it stops.
    pub fn watch(self: &Arc<LinkLive>, link: Arc<dyn RunningLink>) {
        let live = self.clone();
        let _ = live.link.set(link.clone());
        let sample = move || live.sample(&*link);
        // Without a thread the page stays empty, and the link works.
        let _ = std::thread::Builder::new().name("narrows-live-link".into()).spawn(sample);
    }

    fn sample(&self, link: &dyn RunningLink) {
        let mut before = link.look();
        while !link.is_over() {
            std::thread::sleep(UPDATE);
            let now = link.look();
            self.update(&now, &before);
            before = now;
        }
        self.run.end(RunPhase::Done);
    }

    fn update(&self, now: &RelaySnapshot, before: &RelaySnapshot) {
        let seconds = now.at.since(before.at).as_secs_f64().max(1e-9);
        let rates = *lock(&self.rates);
        // Hold the lock briefly: it is the only one that the relay's thread waits for.
        let mut clients: Vec<(u32, ClientCounters)> = {
            let mut clients = lock(&self.clients);
            let take = |c: &mut ClientCounters| {
                std::mem::replace(c, ClientCounters { track: c.track, ..ClientCounters::default() })
            };
            clients.iter_mut().map(|(n, c)| (*n, take(c))).collect()
        };
        for (number, client) in clients.iter_mut().filter(|(_, c)| c.track.is_none()) {
            client.track = self.run.track(
                TrackKind::Flow,
                &format!("client.{number}"),
                columns(&FLOW_COLUMNS),
            );
            self.count(*number, |c| c.track = client.track);
        }
        self.run.update(micros(now.at), |update| {
            let stats = [
                (&now.stats.forward, &before.stats.forward),
                (&now.stats.reverse, &before.stats.reverse),
            ];
            for (n, (now_stats, before_stats)) in stats.into_iter().enumerate() {
                let Some(track) = self.tracks.get(n).copied().flatten() else { continue };
                let at = |list: &[usize; 2]| list.get(n).copied().unwrap_or(0);
                let rate = rates.get(n).copied().unwrap_or(f64::NAN);
                update.row(
                    track,
                    &link_row(
                        now_stats,
                        before_stats,
                        at(&now.waiting),
                        at(&now.max),
                        rate,
                        seconds,
                    ),
                );
            }
            for (_, client) in clients {
                let Some(track) = client.track else { continue };
                let ClientCounters { offered_bytes, delivered_bytes, dropped, lost, .. } = client;
                let rate = |bytes: u64| bytes as f64 * 8.0 / seconds;
                let row = [rate(offered_bytes), rate(delivered_bytes), dropped as f64, lost as f64];
                update.row(track, &row.map(|x| x as f32));
            }
        });
    }

    /// Counts for a client, unless there are too many.
    fn count(&self, client: u32, count: impl FnOnce(&mut ClientCounters)) {
        let mut clients = lock(&self.clients);
        if clients.len() < MAX_CLIENTS || clients.contains_key(&client) {
            count(clients.entry(client).or_default());
        }
    }
}

/// A sample of one direction, in the order of [`LINK_COLUMNS`].
pub(crate) fn link_row(
    now: &DirectionStats,
    before: &DirectionStats,
    waiting: usize,
    max: usize,
    capacity_bps: f64,
    seconds: f64,
) -> [f32; 9] {
    let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 * 8.0 / seconds;
    let served = now.served_packets.saturating_sub(before.served_packets);
    let waited = (now.waited_s - before.waited_s) / served as f64;
    let row = [
        waiting as f64,
        max as f64,
        capacity_bps,
        rate(now.delivered_bytes, before.delivered_bytes),
        rate(now.offered_bytes, before.offered_bytes),
        if served == 0 { f64::NAN } else { waited },
        now.dropped.saturating_sub(before.dropped) as f64,
        now.lost.saturating_sub(before.lost) as f64,
        now.marked.saturating_sub(before.marked) as f64,
    ];
    row.map(|x| x as f32)
}

/// Called by the relay's thread.
#[derive(Debug)]
pub struct LiveLinkTap(pub Arc<LinkLive>);

impl RelayTap for LiveLinkTap {
    fn bound(&self, observer: RelayObserver) {
        self.0.watch(Arc::new(observer));
    }
    fn passed(&self, datagram: &RelayedDatagram<'_>) {
        let bytes = datagram.bytes.len() as u64 + u64::from(HEADERS);
        // Both directions of a client are counted together.
        self.0.count(datagram.client, |c| match (datagram.side, datagram.sent) {
            (RelaySide::Clients, false) | (RelaySide::Server, false) => c.offered_bytes += bytes,
            _ => c.delivered_bytes += bytes,
        });
    }
    fn missed(&self, datagram: &MissedDatagram) {
        self.0.count(datagram.client, |c| match datagram.dropped {
            true => c.dropped += 1,
            false => c.lost += 1,
        });
    }
}

impl ChangingLink for LinkLive {
    fn now(&self) -> Duration {
        self.link.get().map_or(Duration::ZERO, |link| link.now().since(Time::ZERO))
    }
    fn change(&self, at: Duration, direction: usize, change: LinkChange) {
        if let (LinkChange::Rate(rate), Some(place)) =
            (&change, lock(&self.rates).get_mut(direction))
        {
            *place = rate.as_bps() as f64;
        }
        if let Some(link) = self.link.get() {
            link.change(Time::ZERO + at, direction, change);
        }
    }
}

fn micros(time: Time) -> i64 {
    i64::try_from(time.as_nanos() / 1000).unwrap_or(i64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
