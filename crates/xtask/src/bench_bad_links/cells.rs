//! The cells: links, the flows that share them, changes during the run, and the goals.

mod ends;
mod links;
mod sharing;
mod steps;

use super::figure::GoalFigure;
use narrows_base::Duration;
use narrows_lab::Question;
use narrows_link::LinkChange;
use narrows_transport::Preset;

/// Condition on a figure.
#[derive(Clone, Debug)]
pub enum Goal {
    /// At least this value.
    AtLeast(GoalFigure, f64),
    /// At most this value.
    AtMost(GoalFigure, f64),
    /// Between these.
    Between(GoalFigure, f64, f64),
    /// At least this part of the best of these protocols' medians in the same cell.
    OfBest(GoalFigure, f64, &'static [&'static str]),
    /// At most this multiple of the least of these protocols' medians.
    OfLeast(GoalFigure, f64, &'static [&'static str]),
    /// Theta as close to 0.5 as with these protocols in the place of the one under test. The distance is taken run by
    /// run.
    AsEqual(&'static [&'static str]),
}

impl Goal {
    /// The figure that tables show.
    pub fn figure(&self) -> GoalFigure {
        match self {
            Goal::AtLeast(f, _)
            | Goal::AtMost(f, _)
            | Goal::Between(f, ..)
            | Goal::OfBest(f, ..)
            | Goal::OfLeast(f, ..) => *f,
            Goal::AsEqual(_) => GoalFigure::Theta,
        }
    }
    /// The figures that are needed to check it.
    pub fn figures(&self) -> Vec<GoalFigure> {
        match self {
            Goal::AsEqual(_) => vec![GoalFigure::Theta, GoalFigure::Inequality],
            other => vec![other.figure()],
        }
    }
    pub fn rivals(&self) -> &'static [&'static str] {
        match self {
            Goal::OfBest(_, _, rivals) | Goal::OfLeast(_, _, rivals) | Goal::AsEqual(rivals) => {
                rivals
            }
            _ => &[],
        }
    }
}

/// The last change of a run: its time, and the link after it.
#[derive(Clone, Copy, Debug)]
pub struct LastChange {
    pub at_s: f64,
    pub rate_bps: f64,
    pub base_rtt_s: f64,
}

/// Differences between a cell's `against` and the forms of `--against`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Neighbour {
    /// It uses the protocol under test.
    pub same: bool,
    /// Time at which it begins.
    pub start: Duration,
    /// An access link of its own.
    pub access: Option<&'static str>,
    /// Neighbour of the rivals, if it differs from that of the protocol under test.
    pub beside_rivals: Option<&'static str>,
}

/// A link under some conditions, and its goals.
#[derive(Clone, Debug)]
pub struct BadLinkCell {
    pub table: &'static str,
    pub name: String,
    pub question: Question,
    /// Hints for the protocol under test: parameters in parentheses.
    pub told: &'static str,
    /// Share of packets that the link loses.
    pub loss: f64,
    pub changes: Vec<(Duration, LinkChange)>,
    pub step: Option<LastChange>,
    pub neighbour: Neighbour,
    /// When the flows under test begin.
    pub start: Duration,
    pub goals: Vec<Goal>,
    /// Measured by `--quick`.
    pub quick: bool,
}

/// Protocols that a named link is compared with.
const RIVALS: &[&str] = &["rrtp+cubic", "rrtp+bbr", "rrtp+stpd"];
const CUBIC: &[&str] = &["rrtp+cubic"];
/// CUBIC with the initial window of today's kernels.
const CUBIC_10: &[&str] = &["rrtp+cubic(initial-window=10)"];

fn cell(table: &'static str, name: impl Into<String>, link: &str, goals: Vec<Goal>) -> BadLinkCell {
    let question = Question {
        link: link.into(),
        protocols: "rrtp".into(),
        duration: Duration::from_secs(20),
        packet: 1500,
        preset: Preset::Rfc,
        ..Question::default()
    };
    BadLinkCell {
        table,
        name: name.into(),
        question,
        told: "",
        loss: 0.0,
        changes: Vec::new(),
        step: None,
        neighbour: Neighbour::default(),
        start: Duration::ZERO,
        goals,
        quick: false,
    }
}

impl BadLinkCell {
    fn quick(mut self) -> BadLinkCell {
        self.quick = true;
        self
    }
    fn quick_if(mut self, quick: bool) -> BadLinkCell {
        self.quick = quick;
        self
    }
    fn seconds(mut self, seconds: u64) -> BadLinkCell {
        self.question.duration = Duration::from_secs(seconds);
        self
    }
    fn from(mut self, seconds: u64) -> BadLinkCell {
        self.question.warmup = Duration::from_secs(seconds);
        self
    }
    fn flows(mut self, flows: usize) -> BadLinkCell {
        self.question.flows = flows;
        self
    }
    fn against(mut self, who: String) -> BadLinkCell {
        self.question.against = Some(who);
        self
    }
    /// Beside flows of the protocol under test.
    fn beside_itself(mut self, flows: usize) -> BadLinkCell {
        // Another speaks in the end; only its number of flows counts.
        self.neighbour.same = true;
        self.against(format!("reno:{flows}"))
    }
    fn reverse(mut self, who: &str) -> BadLinkCell {
        self.question.reverse = Some(who.into());
        self
    }
    fn change(mut self, at_s: f64, change: LinkChange) -> BadLinkCell {
        self.changes.push((Duration::from_secs_f64(at_s), change));
        self
    }
    fn step(mut self, at_s: f64, rate_bps: f64, base_rtt_s: f64) -> BadLinkCell {
        self.step = Some(LastChange { at_s, rate_bps, base_rtt_s });
        self
    }
}

/// All of them.
///
/// # Errors
/// A specification that does not parse.
pub fn all() -> Result<Vec<BadLinkCell>, String> {
    let mut cells = links::losses();
    cells.extend(links::delays());
    cells.extend(links::named());
    cells.extend(links::queues());
    cells.extend(links::policers());
    cells.extend(steps::steps()?);
    cells.extend(sharing::sharing());
    cells.extend(sharing::several());
    cells.extend(sharing::late_comers());
    cells.extend(sharing::round_trips());
    cells.extend(ends::short()?);
    cells.extend(ends::return_paths());
    cells.extend(links::tiny());
    Ok(cells)
}
