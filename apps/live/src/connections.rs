//! Real connections on the page, of rrtp or of the kernel's TCP: selects which are shown, and converts their statistics
//! to the columns of tracks.

use crate::explain::{Explainer, FlowSample, is_same};
use crate::feed::history::{LEVEL_ROWS, Merge};
use crate::feed::packets::PacketKind;
use crate::feed::{
    EventMark, FeedEvent, LiveRun, MAX_PACKET_FLOWS, TrackColumn, TrackKind, TrackSpec, Update,
};
use crate::simulation::{columns, of_controllers};
use narrows_report::variables;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Most connections that are shown at the same time.
pub const MAX_SHOWN: usize = 100;
/// Most tracks of connections. Those of ended connections stay until their place is needed.
const MAX_TRACKS: usize = 128;
/// Most new tracks of one sample: a server may get thousands of connections a second.
const MAX_NEW: usize = 4;
/// Most connections that wait for a track.
const MAX_WAITING: usize = 256;
/// Largest pacing rate that is drawn: before the first RTT sample a controller's rate is no limit.
const MAX_SHOWN_BPS: f64 = 100e9;
/// Most columns of a controller.
pub const MAX_WATCHED: usize = 24;
/// Samples without a connection after which it counts as ended. Its end is reported a little later than it disappears.
const MISSED: u8 = 2;
/// Assumed duration of a connection that began and ended between two samples, us.
const BETWEEN_US: i64 = 16_667;
/// Rows of each history level for tracks beyond the first [`MAX_PACKET_FLOWS`].
const FEWER_ROWS: usize = 256;

/// Numbers of an endpoint and of a connection there; neither is reused.
pub type ConnectionKey = (usize, u64);

/// A new connection.
#[derive(Clone, Debug)]
pub struct AnnouncedConnection {
    /// Endpoint and connection.
    pub key: ConnectionKey,
    /// Name on the page; numbered if absent.
    pub name: Option<String>,
    /// Title of the event, a few words.
    pub title: &'static str,
}

/// A connection's statistics at one moment; counters start at its beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionStatistics {
    /// Congestion window in packets; infinite if unlimited.
    pub cwnd: f64,
    /// Packets in flight.
    pub in_flight: u64,
    /// Sum of all RTT samples, s.
    pub rtt_sum_s: f64,
    /// Number of RTT samples.
    pub rtt_samples: u64,
    /// Smoothed round-trip time, s.
    pub srtt_s: f64,
    /// Pacing rate in bit/s, with headers; NaN if unlimited.
    pub pacing_bps: f64,
    /// Application bytes that arrived, in both directions.
    pub carried_bytes: u64,
    /// Bytes sent, without headers below the transport.
    pub sent_bytes: u64,
    /// Bytes received, without headers below the transport.
    pub received_bytes: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets that the sender declared lost.
    pub lost: u64,
    /// Retransmitted packets.
    pub retransmissions: u64,
    /// PTO or retransmission timeouts.
    pub timeouts: u64,
    /// Reactions to ECN marks, or marks.
    pub marks: u64,
}

/// Why a connection ended, with its last statistics.
#[derive(Clone, Debug)]
pub struct ConnectionEnd {
    /// Reason, one sentence.
    pub why: String,
    /// Last statistics.
    pub last: ConnectionStatistics,
}

/// A sample of a connection, with its controller's variables.
pub type ConnectionSample = (ConnectionKey, ConnectionStatistics, Vec<(&'static str, f64)>);

/// Columns of every connection: name, unit, meaning; those of its controller follow.
const COLUMNS: [(&str, &str, &str, Merge); 13] = [
    ("cwnd", "packets", "congestion window; none where it is not bounded", Merge::Mean),
    ("in_flight", "packets", "packets sent and neither acknowledged nor given up", Merge::Mean),
    ("rtt_s", "s", "mean of the round-trip times since the sample before", Merge::Mean),
    ("throughput_bps", "bit/s", "application data that arrived, in both directions", Merge::Mean),
    ("pacing_bps", "bit/s", "the controller's pacing rate, with IP and UDP headers", Merge::Mean),
    ("sent_bps", "bit/s", "payload of UDP or TCP sent", Merge::Mean),
    ("received_bps", "bit/s", "payload of UDP or TCP received", Merge::Mean),
    ("sent", "packets", "packets sent so far", Merge::Last),
    ("acked", "packets", "of these, acknowledged or given up", Merge::Last),
    ("lost", "packets", "packets that the sender found lost", Merge::Sum),
    ("retransmissions", "packets", "packets sent again", Merge::Sum),
    ("timeouts", "", "retransmission or probe timeouts", Merge::Sum),
    ("marks", "", "ECN marks, or reactions to them", Merge::Sum),
];

/// The connections of a run.
#[derive(Debug)]
pub struct ConnectionTracks {
    run: Arc<LiveRun>,
    protocol: String,
    make: fn() -> Explainer,
    waiting: VecDeque<AnnouncedConnection>,
    shown: BTreeMap<ConnectionKey, ShownConnection>,
    /// Number of tracks, and the tracks of ended connections, the oldest first.
    tracks: usize,
    free: VecDeque<usize>,
    /// Connections so far.
    number: u64,
}

#[derive(Debug)]
struct ShownConnection {
    opened: AnnouncedConnection,
    /// `None` until the first sample.
    track: Option<ConnectionTrack>,
    /// Consecutive samples without this connection.
    missed: u8,
}

#[derive(Debug)]
struct ConnectionTrack {
    place: usize,
    watched: Vec<&'static str>,
    explainer: Explainer,
    before: ConnectionStatistics,
    at_us: i64,
    /// Columns of the newest sample.
    row: Vec<f32>,
}

impl ConnectionTracks {
    /// For rrtp endpoints; `protocol` is the expected one.
    pub fn new(run: Arc<LiveRun>, protocol: &str) -> ConnectionTracks {
        ConnectionTracks {
            run,
            protocol: protocol.into(),
            make: || Explainer::of_endpoint(variables::listed),
            waiting: VecDeque::new(),
            shown: BTreeMap::new(),
            tracks: 0,
            free: VecDeque::new(),
            number: 0,
        }
    }

    /// For the kernel's TCP with this controller.
    pub fn of_tcp(run: Arc<LiveRun>, controller: &str) -> ConnectionTracks {
        let make = || Explainer::new(variables::listed);
        ConnectionTracks { make, ..ConnectionTracks::new(run, controller) }
    }

    /// Queues new connections, and shows as many as the limits permit.
    pub fn admit(&mut self, opened: Vec<AnnouncedConnection>) {
        self.waiting.extend(opened);
        // Keep the newest: many connections end soon.
        self.waiting.drain(..self.waiting.len().saturating_sub(MAX_WAITING));
        let room = MAX_NEW.min(MAX_SHOWN.saturating_sub(self.shown.len()));
        for opened in self.waiting.drain(..room.min(self.waiting.len())) {
            self.shown.insert(opened.key, ShownConnection { opened, track: None, missed: 0 });
        }
    }

    /// Connections of this endpoint that are to be sampled now.
    pub fn wanted(&self, endpoint: usize) -> Vec<u64> {
        let wanted = self.shown.range((endpoint, 0)..=(endpoint, u64::MAX));
        wanted.map(|(key, _)| key.1).collect()
    }

    /// Records samples and ends. A connection that is missing from two samples counts as ended. One that began and
    /// ended between two samples is shown with its last statistics.
    pub fn sample(
        &mut self,
        now_us: i64,
        seen: Vec<ConnectionSample>,
        ended: &BTreeMap<ConnectionKey, ConnectionEnd>,
    ) {
        self.waiting.retain(|opened| !ended.contains_key(&opened.key));
        for (key, figures, watched) in &seen {
            self.give_track(*key, now_us, figures, watched);
        }
        for (key, ended) in ended {
            self.give_whole_track(*key, now_us, &ended.last);
        }
        let here: BTreeSet<ConnectionKey> = seen.iter().map(|s| s.0).collect();
        for (key, shown) in &mut self.shown {
            shown.missed = if here.contains(key) { 0 } else { shown.missed.saturating_add(1) };
        }
        let gone: Vec<ConnectionKey> = self
            .shown
            .iter()
            .filter(|(key, shown)| ended.contains_key(*key) || shown.missed >= MISSED)
            .map(|(key, _)| *key)
            .collect();
        let run = self.run.clone();
        run.update(now_us, |update| {
            for (key, figures, watched) in seen {
                let Some(shown) = self.shown.get_mut(&key) else { continue };
                let Some(track) = &mut shown.track else { continue };
                track.sample(update, now_us, &figures, watched);
            }
            for key in gone {
                let Some(ShownConnection { track: Some(mut track), .. }) = self.shown.remove(&key)
                else {
                    continue;
                };
                self.free.push_back(track.place);
                let ended = ended.get(&key);
                if let Some(ended) = ended.filter(|_| !here.contains(&key)) {
                    track.sample(update, now_us, &ended.last, Vec::new());
                }
                let why = ended.map_or("Its endpoint has ended.".into(), |e| e.why.clone());
                update.event(about(now_us, track.place, "the connection is over", vec![why]));
            }
        });
    }

    /// Creates the track of a connection without a sample: all of its data falls between two samples.
    fn give_whole_track(&mut self, key: ConnectionKey, now_us: i64, last: &ConnectionStatistics) {
        if self.shown.get(&key).is_none_or(|shown| shown.track.is_some()) {
            return;
        }
        self.give_track(key, now_us, last, &[]);
        if let Some(track) = self.shown.get_mut(&key).and_then(|shown| shown.track.as_mut()) {
            track.before = ConnectionStatistics::default();
            track.at_us = now_us - BETWEEN_US;
        }
    }

    /// Creates a track at the first sample, with the columns that the controller has.
    fn give_track(
        &mut self,
        key: ConnectionKey,
        now_us: i64,
        figures: &ConnectionStatistics,
        watched: &[(&'static str, f64)],
    ) {
        let Some(shown) = self.shown.get(&key).filter(|s| s.track.is_none()) else { return };
        let AnnouncedConnection { name, title, .. } = shown.opened.clone();
        self.number += 1;
        let name = name.unwrap_or_else(|| format!("connection.{}", self.number));
        let mut names: Vec<&'static str> = watched.iter().map(|w| w.0).collect();
        names.extend(of_controllers(&self.protocol));
        let mut kept = BTreeSet::new();
        names.retain(|name| kept.insert(*name));
        names.truncate(MAX_WATCHED);
        let own = |&(name, unit, meaning, merge): &(&'static str, &'static str, &str, Merge)| {
            TrackColumn { name, unit, meaning: meaning.to_string(), merge }
        };
        let mut all: Vec<TrackColumn> = COLUMNS.iter().map(own).collect();
        all.extend(columns(&names.iter().map(|n| (*n, Merge::Mean)).collect::<Vec<_>>()));
        let mut spec = TrackSpec::new(TrackKind::Flow, &name, all);
        let few = self.tracks < MAX_PACKET_FLOWS;
        spec.rows = if few { LEVEL_ROWS } else { FEWER_ROWS };
        let added = (self.tracks < MAX_TRACKS).then(|| self.run.add(spec.clone())).flatten();
        let place = match added {
            Some(place) => {
                self.tracks += 1;
                place
            }
            None => {
                let Some(place) = self.free.pop_front() else { return };
                self.run.replace(place, spec);
                place
            }
        };
        let explainer = (self.make)();
        let before = *figures;
        let at_us = now_us;
        let row = Vec::new();
        let track = ConnectionTrack { place, watched: names, explainer, before, at_us, row };
        if let Some(shown) = self.shown.get_mut(&key) {
            shown.track = Some(track);
        }
        let why = vec!["From here on it is shown.".to_string()];
        self.run.update(now_us, |update| update.event(about(now_us, place, title, why)));
    }
}

impl ConnectionTrack {
    fn sample(
        &mut self,
        update: &mut Update<'_>,
        now_us: i64,
        now: &ConnectionStatistics,
        watched: Vec<(&'static str, f64)>,
    ) {
        let before = std::mem::replace(&mut self.before, *now);
        let seconds = (now_us - std::mem::replace(&mut self.at_us, now_us)) as f64 * 1e-6;
        let rate = |now: u64, before: u64| match seconds > 0.0 {
            true => now.saturating_sub(before) as f64 * 8.0 / seconds,
            false => f64::NAN,
        };
        let finite = |x: f64| if x < MAX_SHOWN_BPS { x } else { f64::NAN };
        let samples = now.rtt_samples.saturating_sub(before.rtt_samples);
        let sum = (now.rtt_sum_s - before.rtt_sum_s).max(0.0);
        let rtt_s = if samples == 0 { f64::NAN } else { sum / samples as f64 };
        let lost = now.lost.saturating_sub(before.lost);
        let timeouts = now.timeouts.saturating_sub(before.timeouts);
        let marks = now.marks.saturating_sub(before.marks);
        let again = now.retransmissions.saturating_sub(before.retransmissions);
        let cwnd = finite(now.cwnd);
        let acked = now.sent.saturating_sub(now.in_flight);
        let pacing_bps = finite(now.pacing_bps);
        let own = [
            cwnd,
            now.in_flight as f64,
            rtt_s,
            rate(now.carried_bytes, before.carried_bytes),
            pacing_bps,
            rate(now.sent_bytes, before.sent_bytes),
            rate(now.received_bytes, before.received_bytes),
            now.sent as f64,
            acked as f64,
            lost as f64,
            again as f64,
            timeouts as f64,
            marks as f64,
        ];
        // Usually the variables have the order of the first sample.
        let of = |(i, name): (usize, &&'static str)| {
            let found = watched.get(i).filter(|w| is_same(w.0, name));
            found.or_else(|| watched.iter().find(|w| w.0 == *name)).map_or(f64::NAN, |w| w.1)
        };
        self.row.clear();
        self.row.extend(own.map(|x| x as f32));
        self.row.extend(self.watched.iter().enumerate().map(of).map(|x| x as f32));
        update.row(self.place, &self.row);
        if lost > 0 {
            // The numbers of the lost packets are unknown; they are among the oldest in flight.
            update.packet(self.place, now_us, acked, PacketKind::Lost);
        }
        let sample = FlowSample {
            time_us: now_us,
            cwnd,
            pacing_bps,
            rtt_s: if rtt_s > 0.0 { rtt_s } else { now.srtt_s },
            timeouts,
            queue_drops: 0,
            link_losses: 0,
            declared_lost: lost,
            marks,
            watched,
        };
        for event in self.explainer.look(self.place, sample) {
            update.event(event);
        }
    }
}

fn about(time_us: i64, track: usize, title: &str, why: Vec<String>) -> FeedEvent {
    FeedEvent { time_us, track, mark: EventMark::Connection, title: title.into(), why }
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
