//! `--live`: a local page that shows a command while it runs.

use crate::command_line::command_line;
use crate::failure::Failure;
use crate::terminal::{STOP, catch_interrupt, note};
use crate::transport::address;
use clap::Args;
use narrows_live::controls::{Controls, LinkControls};
use narrows_live::endpoint::EndpointLive;
use narrows_live::feed::{Feed, LiveRun, RunDescription};
use narrows_live::link::LinkLive;
use narrows_live::{BoundPage, LivePage};
use narrows_net::Clock;
use narrows_net::tap::{self, Tap};
use narrows_scenario::link_direction::LinkDirection;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Limits of the pace of a simulation, in simulated seconds per second.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.001..=10_000.0;

#[derive(Args, Clone, Debug, Default)]
pub struct LiveArgs {
    /// Open a page that shows the command while it runs, at ADDR or at a free port of this machine (docs/live.md); it
    /// stays open until Ctrl-C
    #[arg(long, value_name = "ADDR", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:0")]
    pub live: Option<String>,
}

#[derive(Args, Default)]
pub struct PacedLive {
    #[command(flatten)]
    pub page: LiveArgs,
    /// Run the simulations at this pace instead of at full speed: 1x is real time
    #[arg(long, value_name = "FACTOR", value_parser = speed, requires = "live")]
    pub live_speed: Option<f64>,
}

impl LiveArgs {
    /// The feed that runs write to, if `--live` is set.
    pub fn feed(&self) -> Option<Arc<Feed>> {
        self.live.as_ref().map(|_| Feed::new(command_line()))
    }

    /// Opens the page and prints its address. `controls` are the links that the page may change.
    pub fn open(
        &self,
        feed: Option<&Arc<Feed>>,
        controls: Option<Arc<dyn Controls>>,
    ) -> Result<Option<LivePage>, Failure> {
        match (self.bind()?, feed) {
            (Some(page), Some(feed)) => serve(page, feed, controls).map(Some),
            _ => Ok(None),
        }
    }

    /// Binds the page's address without serving it yet.
    pub fn bind(&self) -> Result<Option<BoundPage>, Failure> {
        let Some(text) = &self.live else { return Ok(None) };
        let at = address("--live", text)?;
        let page = BoundPage::bind(at).map_err(|e| {
            Failure::Input(format!(
                "--live: {at} cannot be opened: {e}; --live alone takes a free port"
            ))
        })?;
        if !at.ip().is_loopback() {
            note(
                "live: other hosts can reach this page, too; its address with the token gives access",
            );
        }
        Ok(Some(page))
    }
}

/// Serves a page and prints its address.
pub fn serve(
    page: BoundPage,
    feed: &Arc<Feed>,
    controls: Option<Arc<dyn Controls>>,
) -> Result<LivePage, Failure> {
    note(&format!("live: {}", page.url()));
    page.serve(feed.clone(), controls).map_err(|e| Failure::Outside(format!("--live: {e}")))
}

/// A link of two directions on a page, with its controls.
pub fn shown(
    feed: &Arc<Feed>,
    name: &str,
    detail: &str,
    [there, back]: [&LinkDirection; 2],
) -> Option<(Arc<LinkLive>, Arc<dyn Controls>)> {
    let about =
        RunDescription { name: name.into(), detail: detail.into(), real: true, end_s: None };
    Some(shown_as(&feed.begin(about)?, [there, back]))
}

/// A link as a part of this run, with its controls; the run's first tracks are the link's directions.
pub fn shown_as(
    run: &Arc<LiveRun>,
    [there, back]: [&LinkDirection; 2],
) -> (Arc<LinkLive>, Arc<dyn Controls>) {
    let live = LinkLive::new(run.clone(), [there.mean_bps(), back.mean_bps()]);
    let controls = LinkControls::new(live.clone(), run.clone(), [there.clone(), back.clone()]);
    (live, Arc::new(controls))
}

/// Shows the connections of an endpoint as the flows of this run.
pub fn connections(run: Arc<LiveRun>, protocol: &str) -> Result<EndpointLive, Failure> {
    EndpointLive::start(run, protocol)
        .map_err(|e| Failure::Outside(format!("--live: the system has no thread left: {e}")))
}

/// The connections of an endpoint on a page of their own.
pub struct ShownConnections {
    page: LivePage,
    run: Arc<LiveRun>,
    ends: EndpointLive,
}

impl ShownConnections {
    /// Opens a page, if `--live` is set. It does not show the command line, which may contain keys and file names.
    pub fn open(
        live: &LiveArgs,
        command: &str,
        protocol: &str,
    ) -> Result<Option<ShownConnections>, Failure> {
        if live.live.is_none() {
            return Ok(None);
        }
        let feed = Feed::new(format!("narrows {command}"));
        let name = command.to_string();
        let detail = format!("connections over {protocol}");
        let run = feed.begin(RunDescription { name, detail, real: true, end_s: None });
        let run = run.ok_or_else(|| Failure::Outside("--live: no room".into()))?;
        let Some(page) = live.open(Some(&feed), None)? else { return Ok(None) };
        let ends = connections(run.clone(), protocol)?;
        Ok(Some(ShownConnections { page, run, ends }))
    }

    /// The run on the page, for further tracks.
    pub fn run(&self) -> Arc<LiveRun> {
        self.run.clone()
    }

    /// Sets the clock of all times.
    pub fn by(&self, clock: Clock) {
        self.ends.by(clock);
    }

    /// Observer for the endpoint, combined with another one.
    pub fn beside(shown: Option<&Self>, other: Option<Arc<dyn Tap>>) -> Option<Arc<dyn Tap>> {
        tap::joined(other.into_iter().chain(shown.map(|shown| shown.ends.tap())))
    }

    /// Ends the run; the page stays open until Ctrl-C.
    pub fn finish(shown: Option<Self>) {
        let Some(ShownConnections { page, ends, .. }) = shown else { return };
        drop(ends);
        stay(Some(page));
    }
}

/// Keeps the page of a finished run open until Ctrl-C.
pub fn stay(live: Option<LivePage>) {
    let Some(live) = live else { return };
    catch_interrupt();
    if STOP.load(Ordering::SeqCst) {
        return;
    }
    note(&format!("live: {} stays open until Ctrl-C", live.url()));
    while !STOP.load(Ordering::SeqCst) {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

fn speed(text: &str) -> Result<f64, String> {
    let factor = text.strip_suffix('x').unwrap_or(text).parse::<f64>();
    factor.ok().filter(|f| SPEEDS.contains(f)).ok_or_else(|| {
        format!("'{text}' is no pace: 1x is real time, 0.1x a tenth of it; from 0.001x to 10000x")
    })
}
