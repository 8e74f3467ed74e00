//! Changes of a running link: commands of a page are checked, applied, and recorded as the changes of a scenario that
//! can be repeated in simulation.

use crate::feed::{EventMark, FeedEvent, LiveRun};
use narrows_base::{Duration, Spec};
use narrows_lab::Question;
use narrows_link::{LinkChange, LossSpec};
use narrows_scenario::link_direction::LinkDirection;
use narrows_scenario::scenario::Scheduled;
use narrows_scenario::{scenario_file, values};
use serde::Deserialize;
use serde_json::json;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Most recorded changes of a run; after them the link cannot be changed.
const MAX_RECORDED: usize = 10_000;
/// Limits of a page's settings, so that a typing error cannot make a link hold packets for years. Rates in bit/s.
const RATES: (f64, f64) = (1e3, 100e9);
const MAX_DELAY: Duration = Duration::from_secs(60);
const MAX_OUTAGE: Duration = Duration::from_secs(600);
/// Protocols in the saved scenario.
const PROTOCOLS: &str = "cubic,bbr,rrtp";
/// Names of a link's two directions in that scenario.
const NAMES: [&str; 2] = ["bottleneck", "bottleneck.back"];

/// A command of a page: the link's direction, the property, and its new value.
#[derive(Deserialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
pub struct PageCommand {
    /// 0 forward, 1 reverse.
    pub direction: usize,
    /// Property to set.
    pub set: Property,
    /// As in a link's specification: `5Mbit/s`, `80ms`, `1%`; for an outage its length.
    pub value: String,
}

/// Properties that a page can set.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Property {
    /// Transmission rate; not on a link that follows a trace.
    Rate,
    /// The propagation delay.
    Delay,
    /// The loss processes.
    Loss,
    /// An outage: every packet is lost for some time.
    Outage,
}

impl PageCommand {
    /// Parses a request's body.
    ///
    /// # Errors
    /// One line.
    pub fn read(bytes: &[u8]) -> Result<PageCommand, String> {
        serde_json::from_slice(bytes).map_err(|e| format!("the request is no order to a link: {e}"))
    }
}

/// Changes that a page may make.
pub trait Controls: Send + Sync + fmt::Debug {
    /// The version of the current settings, and the settings as JSON unless their version is `seen`.
    fn state(&self, seen: Option<u64>) -> (u64, Option<String>);
    /// Applies a command; returns a description of the change.
    ///
    /// # Errors
    /// One line with the fault and the permitted values.
    fn apply(&self, order: &PageCommand) -> Result<String, String>;
    /// A scenario file of the link with all changes so far.
    fn scenario(&self) -> String;
}

/// A running link that can be changed.
pub trait ChangingLink: Send + Sync + fmt::Debug {
    /// Time since the link's start.
    fn now(&self) -> Duration;
    /// Applies a change to a direction at this time, which may be in the future.
    fn change(&self, at: Duration, direction: usize, change: LinkChange);
}

/// The controls of a link of two directions.
#[derive(Debug)]
pub struct LinkControls {
    link: Arc<dyn ChangingLink>,
    run: Arc<LiveRun>,
    begun: [LinkDirection; 2],
    state: Mutex<ControlsState>,
}

#[derive(Debug)]
struct ControlsState {
    version: u64,
    /// Current settings, without outages.
    now: [LinkDirection; 2],
    /// End of each direction's last outage.
    out_until: [Duration; 2],
    changes: Vec<Scheduled>,
}

impl LinkControls {
    /// For a link with these initial settings, shown as `run`.
    pub fn new(
        link: Arc<dyn ChangingLink>,
        run: Arc<LiveRun>,
        begun: [LinkDirection; 2],
    ) -> LinkControls {
        let now = begun.clone();
        let state =
            ControlsState { version: 0, now, out_until: [Duration::ZERO; 2], changes: Vec::new() };
        LinkControls { link, run, begun, state: Mutex::new(state) }
    }

    /// The changes of a command, each with its delay from now.
    fn changes(
        order: &PageCommand,
        now: &LinkDirection,
    ) -> Result<Vec<(Duration, LinkChange)>, String> {
        let value = order.value.trim();
        let one = |change| Ok(vec![(Duration::ZERO, change)]);
        match order.set {
            Property::Rate if now.trace.is_some() => {
                Err("rate: this link follows a trace, whose rate cannot be set".into())
            }
            Property::Rate => {
                let rate = values::rate(value).map_err(|e| format!("rate: {e}"))?;
                if !(RATES.0..=RATES.1).contains(&(rate.as_bps() as f64)) {
                    return Err(format!("rate: {value} is not between 1kbit/s and 100Gbit/s"));
                }
                one(LinkChange::Rate(rate))
            }
            Property::Delay => {
                let delay = values::delay(value).map_err(|e| format!("delay: {e}"))?;
                if delay > MAX_DELAY {
                    return Err(format!("delay: {value} is longer than 60s"));
                }
                one(LinkChange::Delay(delay))
            }
            Property::Loss => {
                let loss = LossSpec::parse_all(value).map_err(|e| format!("loss: {e}"))?;
                one(LinkChange::Loss(loss))
            }
            Property::Outage => {
                let length = values::delay(value).map_err(|e| format!("outage: {e}"))?;
                if length > MAX_OUTAGE || length == Duration::ZERO {
                    return Err(format!("outage: {value} is not between 1ms and 10min"));
                }
                let all = LossSpec::parse_all("100%").map_err(|e| e.to_string())?;
                let after = LinkChange::Loss(now.loss.clone());
                Ok(vec![(Duration::ZERO, LinkChange::Loss(all)), (length, after)])
            }
        }
    }
}

impl Controls for LinkControls {
    fn state(&self, seen: Option<u64>) -> (u64, Option<String>) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if seen == Some(state.version) {
            return (state.version, None);
        }
        let direction = |n: usize| {
            let d = &state.now[n];
            let rate = d.trace.is_none().then(|| d.rate.as_bps());
            json!({
                "rate": rate, "delay": d.delay.as_secs_f64(), "loss": values::loss_text(&d.loss),
                "out": state.out_until[n].as_secs_f64(),
            })
        };
        let text = json!({
            "directions": [direction(0), direction(1)], "changes": state.changes.len(),
        });
        (state.version, Some(text.to_string()))
    }

    fn apply(&self, order: &PageCommand) -> Result<String, String> {
        let name = *NAMES.get(order.direction).ok_or("direction: 0 is forward, 1 is reverse")?;
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        let direction = &mut state.now[order.direction];
        let mut changes = LinkControls::changes(order, direction)?;
        if state.changes.len() + changes.len() > MAX_RECORDED {
            return Err(format!("{MAX_RECORDED} changes are recorded: save them and start again"));
        }
        let now = self.link.now();
        let which = if order.direction == 0 { "there" } else { "back" };
        let mut title = format!("{which}: {:?} {}", order.set, order.value.trim()).to_lowercase();
        match (&order.set, changes.first()) {
            (Property::Rate, Some((_, LinkChange::Rate(rate)))) => direction.rate = *rate,
            (Property::Delay, Some((_, LinkChange::Delay(delay)))) => direction.delay = *delay,
            (Property::Loss, Some((_, LinkChange::Loss(loss)))) => {
                direction.loss = loss.clone();
                // The outage continues; the new loss applies after it.
                if state.out_until[order.direction] > now {
                    let end = state.out_until[order.direction] - now;
                    changes = vec![(end, LinkChange::Loss(loss.clone()))];
                    title += " after the outage";
                }
            }
            (Property::Outage, _) => {
                if state.out_until[order.direction] > now {
                    return Err("outage: this direction is out already".into());
                }
                let length = changes.last().map_or(Duration::ZERO, |c| c.0);
                state.out_until[order.direction] = now + length;
            }
            _ => {}
        }
        for (after, change) in changes {
            let at = now + after;
            self.link.change(at, order.direction, change.clone());
            // A later command replaces the planned change of the same time.
            let planned = |c: &Scheduled| {
                c.at == at
                    && c.link == name
                    && matches!((&c.change, &change), (LinkChange::Loss(_), LinkChange::Loss(_)))
            };
            state.changes.retain(|c| !planned(c));
            state.changes.push(Scheduled { at, link: name.into(), change, line: 0 });
        }
        state.version += 1;
        let why = vec!["Changed on this page; it is recorded in the scenario.".to_string()];
        let time_us = i64::try_from(now.as_nanos() / 1000).unwrap_or(i64::MAX);
        let event = FeedEvent {
            time_us,
            track: order.direction,
            mark: EventMark::Link,
            title: title.clone(),
            why,
        };
        drop(guard);
        self.run.update(time_us, |u| u.event(event));
        Ok(title)
    }

    fn scenario(&self) -> String {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let last = state.changes.iter().map(|c| c.at).max().unwrap_or(Duration::ZERO);
        let mut changes = state.changes.clone();
        drop(state);
        changes.sort_by_key(|c| c.at);
        let shortest = Duration::from_secs(1);
        let question = Question {
            link: "10Mbit/s,10ms".into(),
            protocols: PROTOCOLS.into(),
            duration: last.max(self.link.now()).max(shortest),
            packet: 1500,
            seeds: 3,
            ..Question::default()
        };
        let Ok((mut scenario, _)) = question.scenario(Path::new("")) else { return String::new() };
        scenario.name = "live".into();
        if let Some(link) = scenario.links.first_mut() {
            let [forward, reverse] = self.begun.clone();
            link.forward = forward;
            link.reverse = reverse;
        }
        scenario.protocols = PROTOCOLS.split(',').map(Spec::named).collect();
        scenario.changes = changes;
        scenario_file::text(&scenario)
    }
}

#[cfg(test)]
#[path = "controls_tests.rs"]
mod tests;
