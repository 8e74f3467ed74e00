//! The feed: runs write into bounded memory, and browsers read from it at their own speed. A run never waits for a
//! browser.

pub mod frame;
pub mod history;
pub mod packets;

use self::history::{LEVEL_ROWS, Merge, SampleHistory};
use self::packets::{PacketKind, PacketPoint, PacketPoints};
use crate::board::Board;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Most runs; beyond it the oldest ended one is removed.
pub const MAX_RUNS: usize = 64;
/// Most events of a run; the newest are kept.
const MAX_EVENTS: usize = 2_000;
/// Most flows and links of a run.
pub const MAX_TRACKS: usize = 160;
/// Most flows of a run with single packets.
pub const MAX_PACKET_FLOWS: usize = 8;

/// All runs of a command.
#[derive(Debug)]
pub struct Feed {
    /// The command line, for the page's header.
    pub title: String,
    runs: Mutex<VecDeque<Arc<LiveRun>>>,
    board: OnceLock<Arc<Board>>,
    next: AtomicU64,
    version: AtomicU64,
}

impl Feed {
    /// Without runs.
    pub fn new(title: impl Into<String>) -> Arc<Feed> {
        Arc::new(Feed {
            title: title.into(),
            runs: Mutex::default(),
            board: OnceLock::new(),
            next: AtomicU64::new(0),
            version: AtomicU64::new(0),
        })
    }

    /// Adds a run; `None` if too many are still running.
    pub fn begin(self: &Arc<Feed>, about: RunDescription) -> Option<Arc<LiveRun>> {
        self.begin_at(about, usize::MAX)
    }

    /// Adds a run that the page lists behind those of lower places, in whatever order they begin.
    pub fn begin_at(self: &Arc<Feed>, about: RunDescription, place: usize) -> Option<Arc<LiveRun>> {
        let mut runs = lock(&self.runs);
        if runs.len() >= MAX_RUNS {
            let over = runs.iter().position(|r| r.read().phase != RunPhase::Running)?;
            runs.remove(over);
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let run =
            Arc::new(LiveRun { id, place, about, state: Mutex::default(), feed: self.clone() });
        runs.push_back(run.clone());
        self.changed();
        Some(run)
    }

    /// Sets the sweep; later calls are ignored.
    pub fn show(&self, board: Arc<Board>) {
        let _ = self.board.set(board);
    }

    /// The stored runs by place, those of one place oldest first.
    pub fn runs(&self) -> Vec<Arc<LiveRun>> {
        let mut all: Vec<Arc<LiveRun>> = lock(&self.runs).iter().cloned().collect();
        all.sort_by_key(|run| run.place);
        all
    }

    /// Changes with every run that begins or ends.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn changed(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }
}

/// Name and details of a run on the page.
#[derive(Clone, Debug)]
pub struct RunDescription {
    /// Unique among the runs of a feed.
    pub name: String,
    /// One line: the link, the seed, the file.
    pub detail: String,
    /// Whether it uses real sockets and clocks.
    pub real: bool,
    /// End time, s, if it is known.
    pub end_s: Option<f64>,
}

/// One simulation or one real transfer.
#[derive(Debug)]
pub struct LiveRun {
    /// Number in the feed.
    pub id: u64,
    place: usize,
    /// Description for the page.
    pub about: RunDescription,
    state: Mutex<FeedState>,
    feed: Arc<Feed>,
}

/// Progress of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum RunPhase {
    /// Still in progress.
    #[default]
    Running,
    /// Complete.
    Done,
    /// Ended early, with the reason.
    Stopped(String),
}

/// Data of a run.
#[derive(Debug, Default)]
pub struct FeedState {
    tracks: Vec<Track>,
    /// Number of tracks so far, replaced ones included.
    described: u64,
    packets: BTreeMap<usize, PacketPoints>,
    /// Each with the number of its track.
    events: VecDeque<(u64, FeedEvent)>,
    events_pushed: u64,
    now_us: i64,
    phase: RunPhase,
    /// Grows with every change.
    version: u64,
}

/// Subject of a track: a flow, a direction of a link, or media.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrackKind {
    /// A flow or connection.
    Flow,
    /// One direction of a link.
    Link,
    /// Media over a connection or to a multicast group.
    Media,
}

/// One variable over time, with its unit.
#[derive(Clone, PartialEq, Debug)]
pub struct TrackColumn {
    /// Name, as in series.parquet.
    pub name: &'static str,
    /// Unit; may be empty.
    pub unit: &'static str,
    /// Description in one line.
    pub meaning: String,
    /// How old samples are merged.
    pub merge: Merge,
}

/// A flow or a link over time.
#[derive(Debug)]
pub struct Track {
    /// Counts all tracks of the run, replaced ones included.
    number: u64,
    kind: TrackKind,
    /// Whether it is a simulation beside a real run.
    simulated: bool,
    name: String,
    columns: Vec<TrackColumn>,
    history: SampleHistory,
}

/// An event, with an explanation.
#[derive(Clone, PartialEq, Debug)]
pub struct FeedEvent {
    /// Time of the event, us.
    pub time_us: i64,
    /// Index of its track.
    pub track: usize,
    /// Kind of event, which selects its symbol.
    pub mark: EventMark,
    /// Title in one line.
    pub title: String,
    /// Explanation: one sentence each, the cause first.
    pub why: Vec<String>,
}

/// Kinds of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventMark {
    /// The window or the pacing rate fell.
    Slower,
    /// The controller's state changed.
    State,
    /// A retransmission timeout.
    Timeout,
    /// The link was changed.
    Link,
    /// A connection was opened or has ended.
    Connection,
    /// Frames, or packets of media, were late or dropped.
    Frames,
    /// Layers were added or dropped.
    Layers,
}

/// Description of a new track, and how much of it is stored.
#[derive(Clone, Debug)]
pub struct TrackSpec {
    /// Flow, link or media.
    pub kind: TrackKind,
    /// Name in the run.
    pub name: String,
    /// The columns of its samples.
    pub columns: Vec<TrackColumn>,
    /// Whether it is a simulation beside a real run, which is drawn dashed.
    pub simulated: bool,
    /// Unmerged samples that are stored; as many for each level of merged ones.
    pub rows: usize,
}

impl TrackSpec {
    /// With [`LEVEL_ROWS`] rows, and not simulated beside a real run.
    pub fn new(kind: TrackKind, name: &str, columns: Vec<TrackColumn>) -> TrackSpec {
        TrackSpec { kind, name: name.into(), columns, simulated: false, rows: LEVEL_ROWS }
    }
}

impl LiveRun {
    /// Locks the run's data for reading.
    pub fn read(&self) -> MutexGuard<'_, FeedState> {
        lock(&self.state)
    }

    /// Adds the data of one update at this time, under one lock.
    pub fn update(&self, time_us: i64, write: impl FnOnce(&mut Update<'_>)) {
        let mut state = lock(&self.state);
        state.now_us = state.now_us.max(time_us);
        state.version += 1;
        write(&mut Update { state: &mut state, time_us });
        state.packets.values_mut().for_each(PacketPoints::end_update);
    }

    /// Adds a track; `None` if there are too many.
    pub fn track(&self, kind: TrackKind, name: &str, columns: Vec<TrackColumn>) -> Option<usize> {
        self.add(TrackSpec::new(kind, name, columns))
    }

    /// As [`track`](LiveRun::track), with all properties.
    pub fn add(&self, spec: TrackSpec) -> Option<usize> {
        let mut state = lock(&self.state);
        let place = state.tracks.len();
        if place >= MAX_TRACKS {
            return None;
        }
        let track = state.new_track(spec);
        state.tracks.push(track);
        Some(place)
    }

    /// Replaces a track; samples, packets and events of the former one are deleted.
    pub fn replace(&self, place: usize, spec: TrackSpec) {
        let mut state = lock(&self.state);
        let track = state.new_track(spec);
        state.packets.remove(&place);
        if let Some(before) = state.tracks.get_mut(place) {
            *before = track;
        }
    }

    /// Marks the run as ended.
    pub fn end(&self, phase: RunPhase) {
        let mut state = lock(&self.state);
        state.phase = phase;
        state.version += 1;
        drop(state);
        self.feed.changed();
    }
}

impl FeedState {
    /// The stored events, the oldest first.
    #[cfg(test)]
    pub(crate) fn events(&self) -> impl Iterator<Item = &FeedEvent> {
        self.events.iter().map(|(_, event)| event)
    }

    fn new_track(&mut self, spec: TrackSpec) -> Track {
        let TrackSpec { kind, name, columns, simulated, rows } = spec;
        let merges = columns.iter().map(|c| c.merge).collect();
        self.described += 1;
        self.version += 1;
        let history = SampleHistory::with_rows(merges, rows);
        Track { number: self.described, kind, simulated, name, columns, history }
    }
}

/// One update of a run.
#[derive(Debug)]
pub struct Update<'a> {
    state: &'a mut FeedState,
    time_us: i64,
}

impl Update<'_> {
    /// Time of the update, us.
    pub fn time_us(&self) -> i64 {
        self.time_us
    }
    /// Adds a sample of a track: its columns in order.
    pub fn row(&mut self, track: usize, row: &[f32]) {
        let time_us = self.time_us;
        if let Some(track) = self.state.tracks.get_mut(track) {
            track.history.push(time_us, row);
        }
    }
    /// Adds a packet of a flow.
    pub fn packet(&mut self, track: usize, time_us: i64, number: u64, kind: PacketKind) {
        let packets = &mut self.state.packets;
        if packets.len() < MAX_PACKET_FLOWS || packets.contains_key(&track) {
            packets.entry(track).or_default().push(PacketPoint { time_us, number, kind });
        }
    }
    /// Adds an event.
    pub fn event(&mut self, event: FeedEvent) {
        if self.state.events.len() == MAX_EVENTS {
            self.state.events.pop_front();
        }
        let number = self.state.tracks.get(event.track).map_or(0, |t| t.number);
        self.state.events.push_back((number, event));
        self.state.events_pushed += 1;
    }
}

/// The data stays usable after a panic of another thread.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(name: &str) -> RunDescription {
        RunDescription { name: name.into(), detail: String::new(), real: false, end_s: None }
    }

    /// A sweep of thousands of runs keeps the newest ones, and never removes a running one.
    #[test]
    fn runs_that_are_over_give_way_to_new_ones() {
        let feed = Feed::new("test");
        let first = feed.begin(about("goes on")).unwrap();
        for i in 0..1000 {
            feed.begin(about(&i.to_string())).unwrap().end(RunPhase::Done);
        }
        let kept = feed.runs();
        assert_eq!(kept.len(), MAX_RUNS);
        assert_eq!((kept[0].id, kept[MAX_RUNS - 1].id), (first.id, 1000));
        let asked = Feed::new("test");
        for place in [2, 0, 1] {
            asked.begin_at(about(&place.to_string()), place).unwrap();
        }
        let names: Vec<String> = asked.runs().iter().map(|r| r.about.name.clone()).collect();
        assert_eq!(names, ["0", "1", "2"]);
        let busy = Feed::new("test");
        let all: Vec<_> = (0..MAX_RUNS).map(|_| busy.begin(about("")).unwrap()).collect();
        assert!(busy.begin(about("one more")).is_none());
        all[3].end(RunPhase::Stopped("interrupted".into()));
        assert!(busy.begin(about("one more")).is_some());
    }

    /// Events, tracks and flows with packets are bounded, too.
    #[test]
    fn a_run_that_tells_without_end_stays_bounded() {
        let feed = Feed::new("test");
        let run = feed.begin(about("run")).unwrap();
        let tracks = (0..1000).filter_map(|_| run.track(TrackKind::Flow, "f", Vec::new())).count();
        assert_eq!(tracks, MAX_TRACKS);
        run.update(1, |u| {
            for n in 0..10_000 {
                u.packet(n % 100, 1, 1, PacketKind::Lost);
                let title = n.to_string();
                let why = Vec::new();
                u.event(FeedEvent { time_us: 1, track: 0, mark: EventMark::State, title, why });
            }
        });
        let state = run.read();
        assert_eq!((state.events.len(), state.packets.len()), (MAX_EVENTS, MAX_PACKET_FLOWS));
        assert_eq!(state.events.back().unwrap().1.title, "9999", "the newest stay");
    }
}
