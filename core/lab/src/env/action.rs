//! The list of actions: the limits that a policy sets, once a step.

use crate::env::episode::Episode;
use narrows_base::{Rate, SpecError, math};
use narrows_congestion::SendLimits;

/// A number that a policy sets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Action {
    /// The name that users write.
    pub name: &'static str,
    /// Its unit; empty for a ratio.
    pub unit: &'static str,
    /// Its bounds; a finite value beyond one counts as it.
    pub low: f32,
    /// Its bounds; a finite value beyond one counts as it.
    pub high: f32,
    /// Meaning in one line.
    pub help: &'static str,
    kind: ActionKind,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum ActionKind {
    WindowChange,
    Window,
    RateChange,
    Rate,
    Gain,
}

/// All actions. A policy has one that sets the window, one that sets the pacing rate, or both.
pub static ACTIONS: [Action; 5] = [
    Action {
        name: "window_change",
        unit: "",
        low: -1.0,
        high: 1.0,
        help: "multiplies the window by 2 to this power",
        kind: ActionKind::WindowChange,
    },
    Action {
        name: "window",
        unit: "packets",
        low: 1.0,
        high: 1e6,
        help: "the window",
        kind: ActionKind::Window,
    },
    Action {
        name: "rate_change",
        unit: "",
        low: -1.0,
        high: 1.0,
        help: "multiplies the pacing rate by 2 to this power; it begins with the initial window per base RTT",
        kind: ActionKind::RateChange,
    },
    Action {
        name: "rate",
        unit: "Mbit/s",
        low: 0.0,
        high: 1e6,
        help: "the pacing rate",
        kind: ActionKind::Rate,
    },
    Action {
        name: "pacing_gain",
        unit: "",
        low: 0.25,
        high: 4.0,
        help: "the pacing rate as a multiple of window / smoothed RTT",
        kind: ActionKind::Gain,
    },
];

impl Action {
    /// The action of that name.
    ///
    /// # Errors
    /// An unknown name, with a suggestion.
    pub fn find(name: &str) -> Result<&'static Action, SpecError> {
        ACTIONS.iter().find(|a| a.name == name).ok_or_else(|| {
            let names: Vec<&str> = ACTIONS.iter().map(|a| a.name).collect();
            SpecError::unknown("action", name, &names)
        })
    }

    /// Whether it sets the window; otherwise it sets the pacing rate.
    pub fn sets_window(&self) -> bool {
        matches!(self.kind, ActionKind::Window | ActionKind::WindowChange)
    }

    /// Checks that a policy can have these together.
    ///
    /// # Errors
    /// The list is empty, or two actions set the same limit.
    pub fn check(actions: &[&Action]) -> Result<(), SpecError> {
        let windows = actions.iter().filter(|a| a.sets_window()).count();
        let wrong = match (windows, actions.len() - windows) {
            (0, 0) => "there is none",
            (2.., _) => "two set the window",
            (_, 2..) => "two set the pacing rate",
            (0, 1) if actions[0].kind == ActionKind::Gain => {
                "pacing_gain needs one that sets the window"
            }
            _ => return Ok(()),
        };
        Err(SpecError::new(format!(
            "actions: {wrong}; one may set the window (window_change, window), one the pacing rate (rate_change, rate, \
             pacing_gain)"
        )))
    }

    /// The limits of an episode's first round trip.
    pub(crate) fn begin(actions: &[&Action], episode: &Episode) -> SendLimits {
        let paces = actions.iter().any(|a| !a.sets_window());
        let windows = actions.iter().any(|a| a.sets_window());
        let window = if windows { episode.initial_window } else { episode.max_window };
        let rate = episode.initial_window * episode.packet_bits / episode.base_rtt_s;
        let rate = Rate::from_bps_f64(episode.clamp_bps(rate));
        SendLimits { cwnd: window, pacing_rate: paces.then_some(rate), ssthresh: None }
    }

    /// The limits after this action, within bounds computed from the link.
    pub(crate) fn apply(
        &self,
        value: f32,
        limits: &mut SendLimits,
        srtt_s: f64,
        episode: &Episode,
    ) {
        let value = f64::from(value.clamp(self.low, self.high));
        let bps = limits.pacing_rate.map_or(0.0, |r| r.as_bps() as f64);
        let bps = match self.kind {
            ActionKind::WindowChange | ActionKind::Window => {
                let window = match self.kind {
                    ActionKind::Window => value,
                    _ => limits.cwnd * math::pow(2.0, value),
                };
                limits.cwnd = window.clamp(1.0, episode.max_window);
                return;
            }
            ActionKind::RateChange => bps * math::pow(2.0, value),
            ActionKind::Rate => value * 1e6,
            ActionKind::Gain => {
                let rtt_s = if srtt_s > 0.0 { srtt_s } else { episode.base_rtt_s };
                value * limits.cwnd * episode.packet_bits / rtt_s
            }
        };
        limits.pacing_rate = Some(Rate::from_bps_f64(episode.clamp_bps(bps)));
    }
}
