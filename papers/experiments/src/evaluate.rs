//! Evaluates a quantity in an experiment's runs: whether it exists there, and its value.

use crate::experiment::Experiment;
use crate::models;
use crate::quantity::{NameList, Quantity, TimeBins};
use crate::recorded;
use crate::sample::{SampleSelector, SimulationSample};
use crate::stat::{Stat, binned, grown};
use narrows_lab::measure;
use narrows_sim::SeriesTable;

impl Quantity {
    /// Checks that the quantity exists in this experiment.
    ///
    /// # Errors
    /// Names the missing or contradictory part.
    pub fn check(&self, e: &Experiment) -> Result<(), String> {
        let column = self.column.is_some() && self.recorded.is_none();
        let recorded = self.recorded.is_some();
        let model = self.model.is_some();
        let kinds = [self.measure.is_some(), column, recorded, model];
        if kinds.iter().filter(|k| **k).count() != 1 {
            return Err("a quantity has exactly one of measure, column, recorded, model".into());
        }
        if recorded {
            self.from_record(e)?;
        } else if let Some(name) = &self.model {
            models::find(name)
                .ok_or_else(|| format!("unknown model '{name}'"))?
                .check(&self.with)?;
        } else {
            self.check_run(e)?;
        }
        if self.measure.as_ref().is_some_and(|name| measure::find(name).is_none()) {
            return Err(format!(
                "unknown measure '{}'",
                self.measure.as_deref().unwrap_or_default()
            ));
        }
        if column && self.table.0.is_empty() {
            return Err("a column needs table = \"…\"".into());
        }
        if self.along.is_some() && (self.column.is_none() || self.bin.is_some()) {
            return Err("along = \"…\" goes with a column, without bins".into());
        }
        let share = |s: Stat| matches!(s, Stat::FractionAbove | Stat::FractionBelow);
        if self.measure.is_some() && !self.stat.is_none_or(share) {
            return Err("a measure's stat is fraction_above or fraction_below, over seeds".into());
        }
        if self.stat.is_some_and(Stat::needs_level) && self.level.is_none() {
            return Err(format!("{:?} needs level = …", self.stat));
        }
        for part in self.over.iter().chain(&self.minus) {
            part.check(e)?;
        }
        Ok(())
    }

    /// Recorded values, one for each run.
    ///
    /// # Errors
    /// Names the missing part.
    pub fn from_record(&self, e: &Experiment) -> Result<Vec<f64>, String> {
        let (Some(file), Some(row), Some(column)) = (&self.recorded, &self.row, &self.column)
        else {
            return Err("recorded needs row and column".into());
        };
        recorded::values(&e.folder.join(file), row, column)
    }

    fn check_run(&self, e: &Experiment) -> Result<(), String> {
        let at = e
            .find_run(self.run.as_deref())
            .ok_or_else(|| format!("no run is called {:?}", self.run))?;
        let run = &e.runs[at];
        if let Some(value) = &self.value
            && !run.plans.iter().any(|p| p.0 == *value)
        {
            return Err(format!("run '{}' has no value '{value}'", run.name));
        }
        let protocols = &run.plans[0].1.scenario.protocols;
        match &self.protocol {
            None if protocols.len() > 1 => {
                Err(format!("run '{}' has several protocols; name one", run.name))
            }
            Some(name) if !protocols.iter().any(|p| p.to_string() == *name) => {
                Err(format!("run '{}' has no protocol '{name}'", run.name))
            }
            _ => Ok(()),
        }
    }

    /// The simulation that has its leaf; `None` for a model and for recorded values.
    pub fn place(&self, e: &Experiment) -> Option<SampleSelector> {
        if self.model.is_some() || self.recorded.is_some() {
            return None;
        }
        let run = e.find_run(self.run.as_deref())?;
        let plans = &e.runs[run].plans;
        let value = self.value.as_ref().and_then(|v| plans.iter().position(|p| p.0 == *v));
        let protocols = &plans[0].1.scenario.protocols;
        let variant = self
            .protocol
            .as_ref()
            .map_or(Some(0), |name| protocols.iter().position(|p| p.to_string() == *name))?;
        Some(SampleSelector { run, value: value.unwrap_or(0), variant })
    }

    /// The leaf's value in one run; NaN if it is missing.
    pub fn leaf(&self, sample: &SimulationSample) -> f64 {
        if let Some(name) = &self.measure {
            let x = sample.measure(self.group.as_deref(), name);
            // A measure is one sample: over the seeds, the share of runs above or below a level.
            let counts = self.stat.is_some() && x.is_finite();
            return match self.stat.filter(|_| counts) {
                Some(stat) => stat.of(&[0.0], &[x], self.level.unwrap_or(0.0)),
                None => x,
            };
        }
        if let Some(stat) = self.stat.filter(|s| s.compares()) {
            return self.compared(stat, sample);
        }
        let Some((time, values)) = self.over_time(&sample.series) else { return f64::NAN };
        let position = match self.position(&sample.series) {
            Some(position) => position.unwrap_or(&time),
            None => return f64::NAN,
        };
        let from = self.from.unwrap_or(f64::NEG_INFINITY);
        let to = self.to.unwrap_or(f64::INFINITY);
        let inside = |t: &f64| *t >= from - 1e-9 && *t <= to + 1e-9;
        let first = position.iter().position(inside).unwrap_or(time.len());
        let after = position.iter().rposition(inside).map_or(first, |i| i + 1);
        let stat = self.stat.unwrap_or(Stat::Mean);
        stat.of(&time[first..after], &values[first..after], self.level.unwrap_or(0.0))
    }

    /// A statistic that compares the means of several tables.
    fn compared(&self, stat: Stat, sample: &SimulationSample) -> f64 {
        let alone = |table: &String| {
            let table = NameList(vec![table.clone()]);
            let stat = Some(Stat::Mean);
            Quantity { table, stat, ..self.clone() }.leaf(sample)
        };
        let means: Vec<f64> = self.table.0.iter().map(alone).collect();
        if means.iter().any(|m| m.is_nan()) {
            return f64::NAN;
        }
        let min = means.iter().copied().fold(f64::INFINITY, f64::min);
        match stat {
            Stat::Largest => means.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Stat::Smallest => min,
            _ => min / (means.iter().sum::<f64>() / means.len() as f64),
        }
    }

    /// Positions of its samples: `Some(None)` means time. `None` if there is no such column.
    fn position<'a>(&self, tables: &'a [SeriesTable]) -> Option<Option<&'a [f64]>> {
        let Some(name) = self.along.as_deref() else { return Some(None) };
        let first = self.table.0.first()?;
        let table = tables.iter().find(|t| t.name == *first)?;
        Some(Some(table.column(name)?))
    }

    /// Points of a panel's line: positions, which are times without `along`, and values.
    pub fn series(&self, tables: &[SeriesTable]) -> Option<(Vec<f64>, Vec<f64>)> {
        let (time, values) = self.over_time(tables)?;
        let position = self.position(tables)?.map_or(time, <[f64]>::to_vec);
        Some((position, values))
    }

    /// Times and values of its column, tables added up and bins taken.
    fn over_time(&self, tables: &[SeriesTable]) -> Option<(Vec<f64>, Vec<f64>)> {
        let name = self.column.as_deref()?;
        let mut time = Vec::new();
        let mut sum: Vec<f64> = Vec::new();
        for wanted in &self.table.0 {
            let table = tables.iter().find(|t| t.name == *wanted)?;
            let column = table.column(name)?;
            time.clone_from(&table.time_s);
            sum.resize(column.len(), 0.0);
            sum.iter_mut().zip(column).for_each(|(s, v)| *s += v);
        }
        Some(match self.bin {
            Some(TimeBins::Mean(width)) => binned(&time, &sum, width),
            Some(TimeBins::Growth { growth }) => grown(&time, &sum, growth),
            None => (time, sum),
        })
    }

    /// The model's value.
    pub fn modelled(&self) -> f64 {
        let model = self.model.as_deref().and_then(models::find);
        model.map_or(f64::NAN, |m| (m.of)(&self.with))
    }

    /// The leaf and the parts that it is combined with, depth first, itself first.
    pub fn leaves<'a>(&'a self, out: &mut Vec<&'a Quantity>) {
        out.push(self);
        for part in self.over.iter().chain(&self.minus) {
            part.leaves(out);
        }
    }

    /// Combines leaf values, given in the order of [`Quantity::leaves`].
    pub fn combine(&self, values: &mut impl Iterator<Item = f64>) -> f64 {
        let mut x = values.next().unwrap_or(f64::NAN) * self.scale.unwrap_or(1.0);
        if let Some(part) = &self.over {
            x /= part.combine(values);
        }
        if let Some(part) = &self.minus {
            x -= part.combine(values);
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn along_another_column_a_span_is_told_in_its_values() {
        let table = SeriesTable {
            kind: "flow",
            name: "a".into(),
            group: String::new(),
            time_s: vec![1.0, 2.0, 4.0, 5.0],
            columns: vec![
                ("acked", vec![0.0, 10.0, 30.0, 90.0]),
                ("cwnd", vec![1.0, 2.0, 3.0, 4.0]),
            ],
        };
        let sample = SimulationSample { series: vec![table], ..SimulationSample::default() };
        let mut q = Quantity {
            column: Some("acked".into()),
            table: NameList(vec!["a".into()]),
            along: Some("acked".into()),
            stat: Some(Stat::Rate),
            from: Some(10.0),
            to: Some(30.0),
            ..Quantity::default()
        };
        assert_eq!(q.leaf(&sample), 10.0, "20 in the 2 s between");
        q.column = Some("cwnd".into());
        q.stat = Some(Stat::Max);
        assert_eq!(q.leaf(&sample), 3.0);
        assert_eq!(q.series(&sample.series).unwrap().0, [0.0, 10.0, 30.0, 90.0]);
        q.along = Some("none".into());
        assert!(q.leaf(&sample).is_nan());
    }

    #[test]
    fn shares_and_extremes_compare_tables_over_the_span() {
        let table = |name: &str, v: f64| SeriesTable {
            kind: "flow",
            name: name.into(),
            group: String::new(),
            time_s: vec![1.0, 2.0, 3.0],
            columns: vec![("throughput_bps", vec![9.0, v, v])],
        };
        let sample = SimulationSample {
            series: vec![table("a", 1.0), table("b", 2.0)],
            ..SimulationSample::default()
        };
        let mut q = Quantity {
            column: Some("throughput_bps".into()),
            table: NameList(vec!["a".into(), "b".into()]),
            stat: Some(Stat::LeastShare),
            from: Some(2.0),
            ..Quantity::default()
        };
        assert!((q.leaf(&sample) - 1.0 / 1.5).abs() < 1e-12);
        q.stat = Some(Stat::Largest);
        assert_eq!(q.leaf(&sample), 2.0);
        q.stat = Some(Stat::Smallest);
        assert_eq!(q.leaf(&sample), 1.0);
        q.table.0.push("c".into());
        assert!(q.leaf(&sample).is_nan(), "a table that does not exist");
    }
}
