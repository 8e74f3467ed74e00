//! The stored result of one run: measures of every group and, for the first seed, time series.

use crate::measure::{GroupInputs, MEASURES};
use crate::response::Response;
use narrows_base::Duration;
use narrows_scenario::plan::Plan;
use narrows_sim::{RunResult, SeriesTable};
use std::fmt::Write as _;

/// Samples of a trace.
pub const SAMPLES: u64 = 200;
/// Limit on the flows of a group that are summed for its trace; a larger group has no line.
pub const SUMMED: usize = 1000;

/// The stored result of one run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StoredResult {
    /// The simulator's digest.
    pub digest: u64,
    /// Per group of the scenario: values of [`MEASURES`].
    pub groups: Vec<Vec<f64>>,
    /// Time series, for the first seed.
    pub trace: Option<RunTrace>,
}

/// Samples at equal distances: per group its throughput in bit/s, then the queue and its largest length in packets at
/// the first group's bottleneck.
#[derive(Clone, Debug, PartialEq)]
pub struct RunTrace {
    /// Seconds between samples; the first one is at this time.
    pub step_s: f64,
    /// One line per group, then two for the queue; a line may be empty.
    pub lines: Vec<Vec<f64>>,
}

/// The interval at which a run of this length is sampled.
pub fn interval(duration: Duration) -> Duration {
    Duration::from_nanos((duration.as_nanos() / SAMPLES).max(10_000_000))
}

impl StoredResult {
    /// Extracts the stored result.
    pub fn keep(plan: &Plan, result: &RunResult, traced: bool) -> StoredResult {
        let groups = (0..result.groups.len())
            .map(|group| {
                let others = plan.others(group);
                let link = &result.links[plan.bottleneck(group)];
                let response = Response::of(plan, 0, result, group);
                let view =
                    GroupInputs { run: result, group, link, others: &others, response: &response };
                MEASURES.iter().map(|m| (m.of)(&view)).collect()
            })
            .collect();
        let trace = traced.then(|| RunTrace::of(plan, result));
        StoredResult { digest: result.digest, groups, trace }
    }

    /// As one line without spaces at its ends; all bits can be read back.
    pub fn line(&self) -> String {
        let mut out = format!("{:016x}", self.digest);
        for group in &self.groups {
            out.push(' ');
            join(&mut out, group);
        }
        if let Some(trace) = &self.trace {
            let _ = write!(out, " | {}", trace.step_s);
            for line in &trace.lines {
                out.push(' ');
                join(&mut out, line);
            }
        }
        out
    }

    /// Reads the output of [`StoredResult::line`]; `None` for another text.
    pub fn parse(text: &str) -> Option<StoredResult> {
        let (run, trace) = match text.split_once(" | ") {
            Some((run, trace)) => (run, Some(trace)),
            None => (text, None),
        };
        let mut words = run.split(' ');
        let digest = u64::from_str_radix(words.next()?, 16).ok()?;
        let groups = words.map(list).collect::<Option<Vec<_>>>()?;
        if groups.is_empty() || groups.iter().any(|g| g.len() != MEASURES.len()) {
            return None;
        }
        let trace = match trace {
            None => None,
            Some(text) => {
                let mut words = text.split(' ');
                let step_s = words.next()?.parse().ok().filter(|s: &f64| *s > 0.0)?;
                let lines = words.map(list).collect::<Option<Vec<_>>>()?;
                if lines.len() != groups.len() + 2 {
                    return None;
                }
                Some(RunTrace { step_s, lines })
            }
        };
        Some(StoredResult { digest, groups, trace })
    }
}

fn join(out: &mut String, values: &[f64]) {
    if values.is_empty() {
        out.push('-');
    }
    for (i, x) in values.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        let _ = write!(out, "{comma}{x}");
    }
}

fn list(text: &str) -> Option<Vec<f64>> {
    if text == "-" {
        return Some(Vec::new());
    }
    text.split(',').map(|x| x.parse().ok()).collect()
}

impl RunTrace {
    fn of(plan: &Plan, result: &RunResult) -> RunTrace {
        let flows = |name: &str| -> Vec<&SeriesTable> {
            result.series.iter().filter(|t| t.kind == "flow" && t.group == name).collect()
        };
        let mut lines: Vec<Vec<f64>> = Vec::new();
        for group in &result.groups {
            let tables = flows(&group.name);
            let mut sum: Vec<f64> = Vec::new();
            // A sum of some of a group's flows would be wrong; a short-lived flow has its own sample times.
            if tables.len() == group.flows.len() && tables.len() <= SUMMED {
                for column in tables.iter().filter_map(|t| t.column("throughput_bps")) {
                    sum.resize(sum.len().max(column.len()), 0.0);
                    sum.iter_mut().zip(column).for_each(|(s, x)| *s += finite(*x));
                }
            }
            lines.push(sum);
        }
        let name = plan.bottleneck_name(0);
        let link = result.series.iter().find(|t| t.kind == "link" && t.name == name);
        for column in ["queue", "queue_max"] {
            let values = link.and_then(|t| t.column(column)).unwrap_or_default();
            lines.push(values.to_vec());
        }
        for value in lines.iter_mut().flatten() {
            *value = short(*value);
        }
        RunTrace { step_s: interval(plan.scenario.duration).as_secs_f64(), lines }
    }
}

fn finite(x: f64) -> f64 {
    if x.is_finite() { x } else { 0.0 }
}

/// Four significant digits, which suffice for a chart.
fn short(x: f64) -> f64 {
    format!("{x:.3e}").parse().unwrap_or(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_back_to_the_last_bit() {
        let values = vec![0.1 + 0.2, f64::MIN_POSITIVE, 1e300, -0.0, 7.0];
        let mut group: Vec<f64> = values.into_iter().cycle().take(MEASURES.len()).collect();
        let trace = RunTrace { step_s: 0.5, lines: vec![vec![1.0, 2.5], vec![], vec![3.0]] };
        let mut found = StoredResult {
            digest: 0xFFFF_0000_1234_5678,
            groups: vec![group.clone()],
            trace: None,
        };
        assert_eq!(StoredResult::parse(&found.line()), Some(found.clone()));
        found.trace = Some(trace);
        assert_eq!(StoredResult::parse(&found.line()), Some(found.clone()));
        group[0] = f64::NAN;
        found.groups[0] = group;
        assert!(StoredResult::parse(&found.line()).unwrap().groups[0][0].is_nan());
        let line = found.line();
        for end in 0..line.len() {
            // An incomplete line must not panic; the journal's checksum detects it.
            let _ = StoredResult::parse(&line[..end]);
        }
        assert_eq!(StoredResult::parse("0 1,2"), None);
    }
}
