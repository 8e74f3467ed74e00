//! The meanings of table columns, collected from all lists that define variables.

use narrows_base::Variable;
use narrows_congestion::CONTROLLERS;
use narrows_lab::Outcome;
use narrows_lab::measure::MEASURES;
use narrows_lab::outcome::Interval;
use narrows_sim::COLUMNS;

/// Selects an end of an interval.
pub(crate) type IntervalEnd = fn(Interval) -> f64;

/// The ends of an interval, by their names in tables and in the data of pages.
pub(crate) const ENDS: [(&str, IntervalEnd); 2] = [("low", |e| e.low), ("high", |e| e.high)];

/// Columns that the laboratory itself computes: of groups (`kind` is `group`), and of recordings.
pub const OWN: &[Variable] = &[
    Variable::new("time_s", "s", "time of the sample since the start"),
    Variable::new("theta", "fraction", "share of the other flows in all data at the bottleneck"),
    Variable::new("jain", "", "Jain's fairness index of the group's flows: 1 where all are equal"),
    Variable::new("goodput_bps", "bit/s", "application data that arrived in order"),
    Variable::new("sent_bps", "bit/s", "UDP payload sent"),
    Variable::new("received_bps", "bit/s", "UDP payload received"),
    Variable::new("pacing_bps", "bit/s", "the controller's pacing rate, with IP and UDP headers"),
    Variable::new("lost", "packets", "packets that the sender found lost"),
    Variable::new("offered_bps", "bit/s", "data that came to the link, with IP and UDP headers"),
    Variable::new("delivered_bps", "bit/s", "data that came out of the link, with these headers"),
    Variable::new("marks", "packets", "packets that the queue marked (ECN)"),
    Variable::new("capacity_bps", "bit/s", "the link's rate; of a trace its mean"),
    Variable::new("sent", "packets", "highest number sent, and one"),
    Variable::new("queue_drops", "packets", "packets of the flow that a queue dropped"),
    Variable::new(
        "link_losses",
        "packets",
        "packets of the flow lost on a link after transmission",
    ),
    Variable::new("timeouts", "", "retransmission timeouts"),
];

/// A column of an outcome's time series.
pub fn find(outcome: &Outcome, name: &str) -> Option<Variable> {
    listed(name).or_else(|| outcome.variables.iter().find(|v| v.name == name).copied())
}

/// A column that a listed controller, the simulator or the laboratory has.
pub fn listed(name: &str) -> Option<Variable> {
    let controllers = CONTROLLERS.iter().flat_map(|e| e.variables);
    OWN.iter().chain(COLUMNS).chain(controllers).find(|v| v.name == name).copied()
}

/// Unit and meaning of a column.
pub type Explained = Option<(&'static str, String)>;

/// Of a column of an outcome's time series.
pub fn of_series(outcome: &Outcome) -> impl Fn(&str) -> Explained {
    |column| find(outcome, column).map(|v| (v.unit, v.explained()))
}

/// Of a column of a table of measures: a measure, or an end of its interval.
pub fn of_measures(column: &str) -> Explained {
    let measure = |name| MEASURES.iter().find(|m| m.name == name);
    if let Some(measure) = measure(column) {
        return Some((measure.unit, measure.doc.to_string()));
    }
    let (measured, end) = column.rsplit_once('_')?;
    let end = [("low", "lower"), ("high", "upper")].iter().find(|e| e.0 == end)?.1;
    Some((measure(measured)?.unit, format!("{end} end of the 95% interval of {measured}")))
}
