//! Quantities: the measures of claims and panels, as data.
//!
//! A leaf is a measure of a group of flows (the names of `narrows compare --json`), a statistic of a column of a
//! recorded table, a stored measurement, or a model. Leaves combine by `over`, `minus` and `scale`. They are computed
//! for each seed; the claim chooses how seeds are combined ([`measured`](crate::measured)).

use crate::stat::Stat;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A leaf, or a combination of leaves.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantity {
    /// The run; the first if not named.
    pub run: Option<String>,
    /// For a run that varies: which of its values.
    pub value: Option<String>,
    /// The protocol, where a run has several.
    pub protocol: Option<String>,

    /// A measure of a group of flows.
    pub measure: Option<String>,
    /// The group; the first reported one if not named.
    pub group: Option<String>,

    /// A column of a table.
    pub column: Option<String>,
    /// The table: a flow's name (`main.0`) or a link's. Several are added up.
    #[serde(default)]
    pub table: NameList,
    /// Statistic of the column.
    pub stat: Option<Stat>,
    /// Start of the used samples, in seconds.
    pub from: Option<f64>,
    /// End of the used samples, in seconds.
    pub to: Option<f64>,
    /// Level for the statistics that need one.
    pub level: Option<f64>,
    /// Bins that take the place of samples.
    pub bin: Option<TimeBins>,
    /// A column of the first table that is used in the place of time, such as packets acknowledged: `from`, `to` and a
    /// panel's axis are its values.
    pub along: Option<String>,

    /// A file of measurements, from the experiment's folder: `column` of the rows named `row`.
    pub recorded: Option<String>,
    /// The name of its rows; `*` is a placeholder for the number of the run.
    pub row: Option<String>,

    /// A model, by its name in [`models::find`](crate::models::find).
    pub model: Option<String>,
    /// The model's arguments.
    #[serde(default)]
    pub with: BTreeMap<String, f64>,

    /// Multiplies the leaf.
    pub scale: Option<f64>,
    /// Divides by this quantity.
    pub over: Option<Box<Quantity>>,
    /// Subtracts this quantity.
    pub minus: Option<Box<Quantity>>,
}

impl Quantity {
    /// Whether every run counts as one or zero.
    pub fn counts_runs(&self) -> bool {
        let alone = self.scale.is_none() && self.over.is_none() && self.minus.is_none();
        self.measure.is_some() && self.stat.is_some() && alone
    }
}

/// Bins of so many seconds.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum TimeBins {
    /// Means of the samples.
    Mean(f64),
    /// Growth of a count, per second.
    Growth {
        /// Length of a bin.
        growth: f64,
    },
}

/// One name or several.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "OneOrMany")]
pub struct NameList(pub Vec<String>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}
impl From<OneOrMany> for NameList {
    fn from(x: OneOrMany) -> NameList {
        match x {
            OneOrMany::One(name) => NameList(vec![name]),
            OneOrMany::Many(names) => NameList(names),
        }
    }
}
