//! `narrows speed --live`: the transfer's connections on a page, and the emulated link between them.

use super::args::{SEED, SpeedArgs};
use crate::failure::Failure;
use crate::live::{connections, shown_as, stay};
use crate::relay;
use crate::terminal::note;
use narrows_base::{Spec, Time};
use narrows_live::LivePage;
use narrows_live::endpoint::EndpointLive;
use narrows_live::feed::{LiveRun, RunDescription};
use narrows_live::link::LinkLive;
use narrows_live::simulation::beside;
use narrows_net::relay::{MissedDatagram, RelayObserver, RelayTap, RelayedDatagram};
use narrows_net::tap::Tap;
use narrows_scenario::link_direction::LinkDirection;
use narrows_sim::{NetworkSpec, SourceSpec};
use narrows_speed::{Amount, between};
use narrows_transport::Protocol;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of flows of a simulation beside the real transfer, which shares the processor; below, its maximum
/// rate.
const MAX_FLOWS: u16 = 8;
const MAX_BPS: f64 = 200e6;
/// Simulated duration in seconds of a transfer of a given size.
const LONGEST_S: f64 = 3600.0;

/// The page of a measurement.
pub struct SpeedPage {
    page: LivePage,
    ends: Arc<EndpointLive>,
    link: Option<Arc<LinkLive>>,
    run: Arc<LiveRun>,
    simulation: Option<NetworkSpec>,
    over: Arc<AtomicBool>,
}

impl SpeedPage {
    /// Opens a page, if `--live` is set. If the emulated link is in this process, the page may change it.
    pub fn open(
        a: &SpeedArgs,
        protocol: &Protocol,
        path: &str,
        link: Option<[&LinkDirection; 2]>,
    ) -> Result<Option<SpeedPage>, Failure> {
        let Some(feed) = a.live.feed() else { return Ok(None) };
        let name = protocol.label().to_string();
        let detail = path.to_string();
        let real = true;
        let end_s = match a.duration {
            Amount::Time(duration) => Some(duration.as_secs_f64()),
            Amount::Bytes(_) => None,
        };
        let about = RunDescription { name, detail, real, end_s };
        let run = feed.begin(about).ok_or_else(|| Failure::Outside("--live: no room".into()))?;
        let simulation = link.and_then(|link| simulated(a, link));
        let (link, controls) = link.map(|link| shown_as(&run, link)).unzip();
        let ends = Arc::new(connections(run.clone(), protocol.label())?);
        let page = a.live.open(Some(&feed), controls)?;
        let over = Arc::new(AtomicBool::new(false));
        Ok(page.map(|page| SpeedPage { page, ends, link, run, simulation, over }))
    }

    /// Observer for the sending endpoint, or for the one in this process.
    pub fn tap(&self) -> Arc<dyn Tap> {
        self.ends.tap()
    }

    /// Observer for the emulated link.
    pub fn watch(&self) -> Option<Arc<dyn RelayTap>> {
        let ends = self.ends.clone();
        let run = self.run.clone();
        let over = self.over.clone();
        let simulation = Mutex::new(self.simulation.clone());
        let between = |link| Between { link, ends, run, simulation, over };
        self.link.clone().map(|link| Arc::new(between(link)) as Arc<dyn RelayTap>)
    }

    /// Ends the run; the page stays open until Ctrl-C.
    pub fn finish(self) {
        let SpeedPage { page, ends, link, over, .. } = self;
        over.store(true, Ordering::Release);
        drop((ends, link));
        stay(Some(page));
    }
}

/// The same transfer in simulation, for display beside the real one; `None` if it would differ from it.
pub fn simulated(a: &SpeedArgs, [there, back]: [&LinkDirection; 2]) -> Option<NetworkSpec> {
    // Both the simulation and the transfer would be late.
    if there.mean_bps().max(back.mean_bps()) > MAX_BPS || a.connections > MAX_FLOWS {
        note("live: without a simulation beside it: that is for 8 connections and 200 Mbit/s");
        return None;
    }
    let protocol = a.protocol.parse::<Protocol>().ok()?;
    let (source, end) = match a.duration {
        Amount::Bytes(n) => (format!("transfer({n}B)"), Time::from_secs_f64(LONGEST_S)),
        Amount::Time(duration) => ("bulk".into(), Time::ZERO + duration),
    };
    let source = Spec::parse(&source).and_then(|s| SourceSpec::read(&s)).ok()?;
    let (forward, backward) = relay::configs(there, back, SEED);
    // The first direction is that of the data.
    let ways = if a.down { [backward, forward] } else { [forward, backward] };
    Some(between(protocol.into(), source, usize::from(a.connections), ways, end, SEED))
}

/// Sets the page's clock to the link's. Flows are observed at the ends, not here.
#[derive(Debug)]
struct Between {
    link: Arc<LinkLive>,
    ends: Arc<EndpointLive>,
    run: Arc<LiveRun>,
    simulation: Mutex<Option<NetworkSpec>>,
    over: Arc<AtomicBool>,
}

impl RelayTap for Between {
    fn bound(&self, observer: RelayObserver) {
        self.ends.by(observer.clock());
        self.link.watch(Arc::new(observer));
        let simulation = self.simulation.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(network) = simulation else { return };
        let run = self.run.clone();
        let over = self.over.clone();
        let play = move || {
            // An error here also occurs for the real link, which reports it.
            let _ = beside(&run, &network, &|| !over.load(Ordering::Acquire));
        };
        // If no thread is available, only the real transfer is shown.
        let _ = std::thread::Builder::new().name("narrows-live-sim".into()).spawn(play);
    }
    fn passed(&self, _: &RelayedDatagram<'_>) {}
    fn missed(&self, _: &MissedDatagram) {}
}
