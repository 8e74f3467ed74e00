//! The meanings of table columns, collected from all lists that define variables.

use narrows_base::Variable;
use narrows_congestion::CONTROLLERS;
use narrows_lab::measure::MEASURES;
use narrows_sim::COLUMNS;

/// Columns that the laboratory itself computes: of groups (`kind` is `group`), and of recordings.
pub const OWN: &[Variable] = &[
    Variable::new("time_s", "s", "time of the sample since the start"),
    Variable::new("theta", "fraction", "part of all data at the bottleneck that is the others'"),
    Variable::new("jain", "", "Jain's fairness index of the group's flows: 1 where all are equal"),
    Variable::new("goodput_bps", "bit/s", "application data that arrived in order"),
    Variable::new("sent_bps", "bit/s", "UDP payload sent"),
    Variable::new("received_bps", "bit/s", "UDP payload received"),
    Variable::new("pacing_bps", "bit/s", "the controller's pacing rate, with IP and UDP headers"),
    Variable::new("lost", "packets", "packets that the sender found lost"),
    Variable::new("offered_bps", "bit/s", "data that came to the link, with IP and UDP headers"),
    Variable::new("delivered_bps", "bit/s", "data that came out of the link, with these headers"),
    Variable::new("marks", "packets", "packets that the queue marked (ECN)"),
];

/// A column of a time series.
pub fn find(name: &str) -> Option<Variable> {
    let controllers = CONTROLLERS.iter().chain(CONTROLLERS.lent()).flat_map(|e| e.variables);
    OWN.iter().chain(COLUMNS).chain(controllers).find(|v| v.name == name).copied()
}

/// Unit and meaning of a column.
pub type Explained = Option<(&'static str, String)>;

/// Of a column of time series.
pub fn of_series(column: &str) -> Explained {
    find(column).map(|v| (v.unit, v.explained()))
}

/// Of a column of a table of measures: a measure, or its interval.
pub fn of_measures(column: &str) -> Explained {
    let measure = |name| MEASURES.iter().find(|m| m.name == name);
    if let Some(measure) = measure(column) {
        return Some((measure.unit, measure.doc.to_string()));
    }
    let measured = column.strip_suffix("_ci95")?;
    Some((measure(measured)?.unit, format!("half of the 95% interval of {measured}")))
}
