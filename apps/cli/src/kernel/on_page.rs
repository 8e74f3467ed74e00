//! `narrows kernel run --live`: the TCP connections that a controller drives, on a page.

use crate::failure::Failure;
use crate::live::LiveArgs;
use narrows_kernel::{AgentTap, ConnectionFigures};
use narrows_live::LivePage;
use narrows_live::connections::{
    AnnouncedConnection, ConnectionEnd, ConnectionStatistics, ConnectionTracks,
};
use narrows_live::feed::{Feed, LiveRun, RunDescription, RunPhase};
use narrows_net::Clock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Interval between two samples: 60 a second.
const UPDATE: Duration = Duration::from_micros(16_667);
/// Maximum number of connections with stored figures; a hundred of them are shown.
const MAX_KEPT: usize = 1024;

/// The page of a controller in the kernel's TCP.
pub struct KernelPage {
    _page: LivePage,
    run: Arc<LiveRun>,
    known: Arc<AgentFigures>,
}

/// Figures that the agent's thread stores for the page's thread.
#[derive(Debug, Default)]
pub struct AgentFigures {
    last: Mutex<BTreeMap<u32, Last>>,
    stop: AtomicBool,
}

#[derive(Clone, Debug)]
struct Last {
    new: bool,
    closed: bool,
    figures: ConnectionFigures,
    watched: Vec<(&'static str, f64)>,
}

impl AgentTap for AgentFigures {
    fn seen(
        &self,
        connection: u32,
        figures: &ConnectionFigures,
        watched: Vec<(&'static str, f64)>,
    ) {
        let mut last = self.lock();
        if let Some(known) = last.get_mut(&connection) {
            known.figures = *figures;
            known.watched = watched;
        } else if last.len() < MAX_KEPT {
            last.insert(connection, Last { new: true, closed: false, figures: *figures, watched });
        }
    }
    fn closed(&self, connection: u32) {
        if let Some(known) = self.lock().get_mut(&connection) {
            known.closed = true;
        }
    }
}

impl AgentFigures {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Last>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes the stored figures on, 60 times a second.
    fn show(&self, mut connections: ConnectionTracks) {
        let clock = Clock::new();
        while !self.stop.load(Ordering::Acquire) {
            std::thread::sleep(UPDATE);
            let mut opened = Vec::new();
            let mut seen = Vec::new();
            let mut closed = BTreeMap::new();
            self.lock().retain(|number, last| {
                let key = (0, u64::from(*number));
                if std::mem::take(&mut last.new) {
                    opened.push(AnnouncedConnection {
                        key,
                        name: None,
                        title: "acknowledgements come",
                    });
                }
                let figures = figures(&last.figures);
                if last.closed {
                    closed
                        .insert(key, ConnectionEnd { why: "It is closed.".into(), last: figures });
                } else {
                    seen.push((key, figures, last.watched.clone()));
                }
                !last.closed
            });
            connections.admit(opened);
            let now = i64::try_from(clock.now().as_nanos() / 1000).unwrap_or(i64::MAX);
            connections.sample(now, seen, &closed);
        }
    }
}

/// Figures for the page: segments count as packets; carried bytes are those of the delivered segments.
fn figures(f: &ConnectionFigures) -> ConnectionStatistics {
    let mss = u64::from(f.mss);
    ConnectionStatistics {
        cwnd: f.cwnd,
        in_flight: u64::from(f.in_flight),
        rtt_sum_s: f.rtt_sum.as_secs_f64(),
        rtt_samples: f.rtt_samples,
        srtt_s: f.srtt.as_secs_f64(),
        pacing_bps: f.pacing_bps.unwrap_or(f64::NAN),
        carried_bytes: f.delivered * mss,
        sent_bytes: f.sent * mss,
        received_bytes: 0,
        sent: f.sent,
        lost: f.lost,
        retransmissions: f.retransmitted,
        timeouts: f.timeouts,
        marks: f.marked,
    }
}

impl KernelPage {
    /// Opens a page, if `--live` is set, for the connections of this controller.
    pub fn open(live: &LiveArgs, controller: &str) -> Result<Option<KernelPage>, Failure> {
        if live.live.is_none() {
            return Ok(None);
        }
        // Arguments of the command are not shown, since they may contain secrets.
        let feed = Feed::new("narrows kernel run");
        let name = controller.to_string();
        let detail = "connections of the kernel's TCP".into();
        let run = feed.begin(RunDescription { name, detail, real: true, end_s: None });
        let run = run.ok_or_else(|| Failure::Outside("--live: no room".into()))?;
        let Some(page) = live.open(Some(&feed), None)? else { return Ok(None) };
        let connections = ConnectionTracks::of_tcp(run.clone(), controller);
        let known = Arc::new(AgentFigures::default());
        let shown = known.clone();
        std::thread::Builder::new()
            .name("narrows-live-tcp".into())
            .spawn(move || shown.show(connections))
            .map_err(|e| Failure::Outside(format!("--live: no thread is left: {e}")))?;
        Ok(Some(KernelPage { _page: page, run, known }))
    }

    /// Observer for the agent.
    pub fn tap(&self) -> Arc<dyn AgentTap> {
        self.known.clone()
    }
}

/// Closes the page when the command ends.
impl Drop for KernelPage {
    fn drop(&mut self) {
        self.known.stop.store(true, Ordering::Release);
        self.run.end(RunPhase::Done);
    }
}
