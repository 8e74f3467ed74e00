//! The data that a browser lacks, as one JSON object. The browser selects a run and gets the changes since its last
//! frame. A browser that is too slow gets all stored data in its current resolution instead of the missed frames.

use super::packets::PacketKind;
use super::{
    EventMark, Feed, FeedEvent, FeedState, LiveRun, RunPhase, Track, TrackColumn, TrackKind,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// The selection of one browser, and its position in the data.
#[derive(Debug, Default)]
pub struct FeedCursor {
    wants: Wants,
    /// Version of the list of runs.
    listed: Option<u64>,
    /// The run, the number of the newest described track, and the version of the last frame.
    run: Option<u64>,
    described: u64,
    version: u64,
    /// For each track its number, and the number of samples sent.
    rows: BTreeMap<usize, (u64, u64)>,
    /// Number of the track with single packets, and the points sent.
    packets: (u64, (u64, u64)),
    events: u64,
    /// Sent changes of a sweep's points.
    board: Option<u64>,
}

/// Selection of a browser.
#[derive(Clone, Debug, Default)]
pub struct Wants {
    /// The run; the first if absent.
    pub run: Option<u64>,
    /// Flows with samples; all if absent. Links are always included.
    pub flows: Option<Vec<usize>>,
    /// The flow with single packets.
    pub packets: Option<usize>,
}

impl FeedCursor {
    /// Before the first frame.
    pub fn new(wants: Wants) -> FeedCursor {
        FeedCursor { wants, ..FeedCursor::default() }
    }

    /// The changes since the last frame; `None` without changes.
    pub fn frame(&mut self, feed: &Feed) -> Option<String> {
        let mut out = String::new();
        let version = feed.version();
        if self.listed != Some(version) {
            let runs: Vec<Value> = feed.runs().iter().map(|r| listed(r)).collect();
            let head = json!({ "title": feed.title, "runs": runs });
            let _ = write!(out, ",\"feed\":{head}");
            self.listed = Some(version);
        }
        if let Some(board) = feed.board.get() {
            let (changed, new) = board.since(self.board);
            self.board = Some(changed);
            if let Some(new) = new {
                let _ = write!(out, ",\"board\":{new}");
            }
        }
        if let Some(run) = self.run(feed) {
            let state = run.read();
            if self.run != Some(run.id) {
                self.run = Some(run.id);
                self.described = 0;
                self.version = 0;
                self.packets = (0, (0, 0));
                self.events = 0;
                self.rows.clear();
            }
            if state.version != self.version {
                self.version = state.version;
                self.state(&run, &state, &mut out);
            }
        }
        (!out.is_empty()).then(|| format!("{{{}}}", out.trim_start_matches(',')))
    }

    fn run(&self, feed: &Feed) -> Option<Arc<LiveRun>> {
        let runs = feed.runs();
        let find = |id| runs.iter().find(|r| r.id == id);
        // A run that begins later does not replace the one that is shown.
        self.wants.run.and_then(find).or(self.run.and_then(find)).or(runs.first()).cloned()
    }

    fn state(&mut self, run: &LiveRun, state: &FeedState, out: &mut String) {
        let _ = write!(out, ",\"run\":{},\"now\":{}", run.id, state.now_us);
        let _ = write!(out, ",\"phase\":{}", phase(&state.phase));
        if self.described != state.described {
            // New tracks may have any position.
            let all = state.tracks.iter().enumerate();
            let new = all.filter(|(_, t)| t.number > self.described).map(|(n, t)| described(n, t));
            let tracks: Vec<Value> = new.collect();
            self.described = state.described;
            let packets: Vec<usize> = state.packets.keys().copied().collect();
            let _ = write!(out, ",\"tracks\":{},\"packetFlows\":{}", json!(tracks), json!(packets));
        }
        out.push_str(",\"rows\":[");
        let before = out.len();
        for (n, track) in state.tracks.iter().enumerate() {
            let wanted = |flows: &Vec<usize>| flows.contains(&n);
            if track.kind == TrackKind::Flow && !self.wants.flows.as_ref().is_none_or(wanted) {
                continue;
            }
            let history = &track.history;
            let previous = self.rows.insert(n, (track.number, history.pushed()));
            let seen = previous.filter(|t| t.0 == track.number).map_or(0, |t| t.1);
            if history.pushed() == seen {
                continue;
            }
            let missing = history.missing(seen);
            let count = missing.unwrap_or(history.len());
            let comma = if out.len() > before { "," } else { "" };
            let all = u8::from(missing.is_none());
            let _ = write!(out, "{comma}{{\"track\":{n},\"all\":{all},\"t\":[");
            list(out, history.times(count), |out, t| integer(out, u64::try_from(t).unwrap_or(0)));
            out.push_str("],\"c\":[");
            for column in 0..track.columns.len() {
                out.push_str(if column == 0 { "[" } else { ",[" });
                list(out, history.column(column, count), number);
                out.push(']');
            }
            out.push_str("]}");
        }
        out.push(']');
        self.packets(state, out);
        self.events(state, out);
    }

    fn packets(&mut self, state: &FeedState, out: &mut String) {
        let Some(flow) = self.wants.packets else { return };
        let Some(packets) = state.packets.get(&flow) else { return };
        let number = state.tracks.get(flow).map_or(0, |t| t.number);
        let (last_track, seen) = self.packets;
        let seen = if last_track == number { seen } else { (0, 0) };
        if packets.pushed() == seen {
            return;
        }
        let _ = write!(out, ",\"packets\":{{\"track\":{flow},\"p\":[");
        list(out, packets.since(seen), |out, p| {
            let kind = match p.kind {
                PacketKind::Sent => 0,
                PacketKind::Acknowledged => 1,
                PacketKind::Retransmitted => 2,
                PacketKind::Dropped => 3,
                PacketKind::Lost => 4,
            };
            let _ = write!(out, "{},{},{kind}", p.time_us, p.number);
        });
        out.push_str("]}");
        self.packets = (number, packets.pushed());
    }

    fn events(&mut self, state: &FeedState, out: &mut String) {
        let new = usize::try_from(state.events_pushed - self.events).unwrap_or(usize::MAX);
        if new == 0 {
            return;
        }
        let skip = state.events.len().saturating_sub(new);
        // Without events of removed tracks.
        let kept = |(number, e): &&(u64, FeedEvent)| {
            *number == state.tracks.get(e.track).map_or(0, |t| t.number)
        };
        let new = state.events.iter().skip(skip).filter(kept);
        let events: Vec<Value> = new.map(|(_, e)| event(e)).collect();
        let _ = write!(out, ",\"events\":{}", json!(events));
        self.events = state.events_pushed;
    }
}

fn described(n: usize, t: &Track) -> Value {
    let column = |c: &TrackColumn| json!({ "name": c.name, "unit": c.unit, "meaning": c.meaning });
    let columns: Vec<Value> = t.columns.iter().map(column).collect();
    let kind = match t.kind {
        TrackKind::Flow => "flow",
        TrackKind::Link => "link",
        TrackKind::Media => "media",
    };
    json!({ "n": n, "kind": kind, "name": t.name, "simulated": t.simulated, "columns": columns })
}

fn event(e: &FeedEvent) -> Value {
    let mark = match e.mark {
        EventMark::Slower => "slower",
        EventMark::State => "state",
        EventMark::Timeout => "timeout",
        EventMark::Link => "link",
        EventMark::Connection => "connection",
        EventMark::Frames => "frames",
        EventMark::Layers => "layers",
    };
    json!({ "t": e.time_us, "track": e.track, "mark": mark, "title": e.title, "why": e.why })
}

fn listed(run: &LiveRun) -> Value {
    let about = &run.about;
    json!({
        "id": run.id, "name": about.name, "detail": about.detail, "real": about.real,
        "end": about.end_s, "phase": phase(&run.read().phase),
    })
}

fn phase(phase: &RunPhase) -> Value {
    match phase {
        RunPhase::Running => json!("running"),
        RunPhase::Done => json!("done"),
        RunPhase::Stopped(why) => json!(format!("stopped: {why}")),
    }
}

fn list<T>(out: &mut String, items: impl Iterator<Item = T>, one: impl Fn(&mut String, T)) {
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push(',');
        }
        one(out, item);
    }
}

/// Writes a number with as many digits as a screen shows. This is most of the server's CPU time, so it avoids the
/// standard library's exact decimals.
fn number(out: &mut String, x: f32) {
    if !x.is_finite() {
        return out.push_str("null");
    }
    let x = f64::from(x);
    let size = x.abs();
    let decimals = match size {
        _ if x.fract() == 0.0 || size >= 1e6 => 0,
        1000.0.. => 1,
        1.0.. => 3,
        _ => 6,
    };
    let scale = 10u64.pow(decimals);
    // Saturates beyond 2^63, which no displayed value reaches.
    let all = (size * scale as f64).round() as u64;
    if x < 0.0 && all > 0 {
        out.push('-');
    }
    integer(out, all / scale);
    let mut rest = all % scale;
    let mut left = scale;
    if rest > 0 {
        out.push('.');
    }
    while rest > 0 {
        left /= 10;
        out.push(char::from(b'0' + (rest / left) as u8));
        rest %= left;
    }
}

fn integer(out: &mut String, mut n: u64) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        if let Some(digit) = digits.get_mut(at) {
            *digit = b'0' + (n % 10) as u8;
        }
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend(digits.iter().skip(at).map(|d| char::from(*d)));
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
