//! Simplifies a case: removes impairments that it does not need, and rounds its figures.

use super::case::Case;
use super::trial::{Attack, Finding};
use crate::execute::RunControl;

/// A simpler case must keep this share of the badness above 1.
const KEEPS: f64 = 0.85;

/// Simplifies a case as long as it stays nearly as bad; returns the number of cases run.
///
/// # Errors
/// An error of the simulator.
pub fn simplify(
    a: &Attack,
    found: &mut Finding,
    seeds: (u64, u32),
    control: &RunControl<'_>,
) -> Result<usize, String> {
    let min = 1.0 + KEEPS * (found.badness - 1.0);
    let mut cases = 0;
    loop {
        let candidates = simpler(&found.case);
        let run = a.run_all(&candidates, seeds, control)?;
        cases += run.len();
        // The first that is bad enough: candidates are in order, the greatest simplification first.
        match run.into_iter().find(|f| f.badness >= min) {
            Some(better) => *found = better,
            None => return Ok(cases),
        }
    }
}

/// Simplifications by one step.
fn simpler(case: &Case) -> Vec<Case> {
    let plain = Case::plain();
    let without: [fn(&mut Case, &Case); 11] = [
        |c, _| c.event = None,
        |c, _| c.reverse = None,
        |c, _| c.against = None,
        |c, _| c.reorder = None,
        |c, _| c.jitter_s = None,
        |c, _| c.back = None,
        |c, _| c.loss = None,
        |c, _| c.flows = 1,
        |c, p| c.queue_bdp = p.queue_bdp,
        |c, p| c.delay_s = p.delay_s,
        |c, p| c.rate_bps = p.rate_bps,
    ];
    let changed = without.iter().map(|change| {
        let mut c = case.clone();
        change(&mut c, &plain);
        c
    });
    let uniform = case.loss.map(|(p, _)| Case { loss: Some((p, 1.0)), ..case.clone() });
    changed.chain(uniform).filter(|c| c != case).collect()
}
