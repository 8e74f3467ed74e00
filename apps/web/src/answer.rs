//! Reports of finished runs: the parts of `compare`'s page, and the width of their intervals.

use crate::question::{MAX_SEEDS, PageQuestion, untimed};
use crate::stored;
use narrows_lab::Outcome;
use narrows_lab::collect::collect;
use narrows_lab::execute::{Runs, drop_repetitions};
use narrows_report::html;
use serde_json::{Value, json};

/// Measures with intervals that decide on more seeds.
const DECISIVE: [&str; 2] = ["goodput_bps", "rtt_s_mean"];

/// The report; with `trials`, candidates of the recommendation are tried beside CUBIC, as `compare` does.
pub fn report(
    question: &PageQuestion,
    runs: &[Vec<Option<String>>],
    trials: bool,
) -> Result<Value, String> {
    let mut planned = question.plan()?;
    let read = |text: &Option<String>| match text {
        Some(text) => stored::run(text).map(Some).ok_or("a run is malformed"),
        None => Ok(None),
    };
    let of_protocol = |seeds: &Vec<Option<String>>| seeds.iter().map(read).collect();
    let mut runs: Runs = runs.iter().map(of_protocol).collect::<Result<_, _>>()?;
    if runs.len() != planned.plan.scenario.variants() {
        return Err("runs of other protocols".into());
    }
    let seeds = runs.iter().map(Vec::len).max().unwrap_or(0);
    planned.plan.scenario.seeds = u32::try_from(seeds).unwrap_or(MAX_SEEDS).min(MAX_SEEDS);
    if !planned.plan.draws() {
        drop_repetitions(&mut runs);
    }
    let control = untimed();
    let outcome = collect(&planned.plan, planned.about, &runs, trials.then_some(&control));
    let parts = html::parts(&outcome);
    Ok(json!({
        "answer": parts.answer,
        "comparison": parts.comparison,
        "traces": parts.traces,
        "repeat": parts.repeat,
        "data": parts.data,
        "seeds": seeds,
        "width": width(&outcome),
        "once": outcome.results.iter().all(|r| r.one_trajectory),
        "digests": outcome.results.iter().map(|r| format!("{:016x}", r.digest)).collect::<Vec<_>>(),
        "sent": outcome.results.iter().filter_map(|r| r.measure("sent_packets")).map(|e| e.mean).sum::<f64>(),
    }))
}

/// The widest interval of a decisive measure over its mean; `None` without intervals.
fn width(outcome: &Outcome) -> Option<f64> {
    let estimates = outcome.results.iter().flat_map(|r| DECISIVE.map(|name| r.measure(name)));
    let widths = estimates.flatten().filter(|e| e.mean > 0.0);
    widths.filter_map(|e| Some(e.half()? / e.mean)).reduce(f64::max)
}
