//! `narrows attack`: searches for the networks on which a controller performs worst.
//!
//! ```text
//!   draw cases ─> run each with three seeds ─> keep the worst, change them a little, run again ─> …
//!   ─> run the worst with new seeds (the worst of many is partly chance) ─> remove impairments that are
//!   not needed ─> a scenario file each
//! ```
//!
//! In simulation only: no packet leaves the machine. The same options, seed and budget give the same results with any
//! number of threads, because cases are drawn in batches of fixed size from one random stream.

mod case;
mod score;
mod simpler;
mod trial;

pub use case::{AttackChange, Case};
pub use score::Hunt;
pub use trial::{Attack, Finding};

use crate::compare::check_protocol;
use crate::execute::RunControl;
use narrows_base::RandomKey;
use narrows_scenario::Plan;
use narrows_sim::protocol::Preset;
use std::sync::atomic::Ordering;

/// Number of cases that are drawn and run together.
const BATCH: usize = 16;
/// Share of the budget for independent cases.
const EXPLORING: f64 = 0.4;
/// Number of the worst cases that are changed to find worse ones.
const PARENTS: usize = 6;
/// Seeds of a case during the search, and seeds of the reported ones, which are different.
const SEARCH_SEEDS: u32 = 3;
const CHECK_SEEDS: u32 = 10;
const CHECK_SEED: u64 = 1_000_003;

/// The results of a search.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Findings {
    /// The worst cases in their simplest form, worst first, measured with seeds that the search did not use.
    pub worst: Vec<Finding>,
    /// Number of cases run, including those of simplifying.
    pub cases: usize,
}

/// Searches, checks and simplifies.
///
/// # Errors
/// A protocol that does not exist or cannot run, in one line. An interruption is not an error: the cases found so far
/// are reported.
pub fn attack(a: &Attack, control: &RunControl<'_>) -> Result<Findings, String> {
    // An invalid protocol is refused before the first run.
    check_protocol(&a.protocol, Preset::Rfc).map_err(|e| e.to_string())?;
    if let Some(rival) = &a.rival {
        check_protocol(rival, Preset::Rfc).map_err(|e| e.at("--rival").to_string())?;
    }
    let scenario = a.scenario(&Case::plain(), a.seed, 1).map_err(|e| {
        let line = e.to_string();
        line.strip_prefix("--protocols: ").map_or(line.clone(), str::to_string)
    })?;
    Plan::new(scenario).map_err(|e| e.to_string())?;
    let mut random = RandomKey::from_seed(a.seed).named("attack").stream();
    let mut found: Vec<Finding> = Vec::new();
    let mut cases = 0;
    while cases < a.budget && !control.stop.load(Ordering::Relaxed) {
        let exploring = (cases as f64) < EXPLORING * a.budget as f64;
        let size = BATCH.min(a.budget - cases);
        let batch: Vec<Case> = (0..size)
            .map(|_| {
                let parents = found.len().min(PARENTS);
                if exploring || parents == 0 {
                    return Case::draw(&mut random);
                }
                let parent = (random.bits() % parents as u64) as usize;
                found[parent].case.changed(&mut random)
            })
            .collect();
        found.extend(a.run_all(&batch, (a.seed, SEARCH_SEEDS), control)?);
        cases += size;
        keep_worst(&mut found, 4 * PARENTS);
        (control.progress)(0.85 * cases as f64 / a.budget as f64);
    }
    // Two kinds may become the same when simplified, so a few more are tried than reported.
    let kinds = different(&found, a.report + 2);
    let mut worst = a.run_all(&kinds, (CHECK_SEED, CHECK_SEEDS), control)?;
    cases += kinds.len();
    for (i, found) in worst.iter_mut().enumerate() {
        cases += simpler::simplify(a, found, (CHECK_SEED, CHECK_SEEDS), control)?;
        (control.progress)(0.85 + 0.15 * (i + 1) as f64 / kinds.len().max(1) as f64);
    }
    keep_worst(&mut worst, usize::MAX);
    let mut known: Vec<Vec<&str>> = Vec::new();
    worst.retain(|f| {
        let new = !known.contains(&f.case.kind());
        known.push(f.case.kind());
        new
    });
    worst.truncate(a.report);
    Ok(Findings { worst, cases })
}

fn keep_worst(found: &mut Vec<Finding>, max: usize) {
    found.sort_by(|a, b| b.badness.total_cmp(&a.badness));
    found.truncate(max);
}

/// The worst case of each kind: cases with the same impairments are one finding.
fn different(found: &[Finding], max: usize) -> Vec<Case> {
    let mut kinds = Vec::new();
    let mut cases = Vec::new();
    for f in found {
        let kind = f.case.kind();
        if !kinds.contains(&kind) && cases.len() < max {
            kinds.push(kind);
            cases.push(f.case.clone());
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::Duration;

    fn question(protocol: &str, hunt: Hunt) -> Attack {
        Attack {
            protocol: protocol.into(),
            hunt,
            rival: None,
            budget: 16,
            seed: 1,
            duration: Duration::from_secs(4),
            report: 2,
        }
    }

    fn run(a: &Attack, jobs: usize) -> Findings {
        attack(a, &RunControl::quiet(jobs)).unwrap()
    }

    #[test]
    fn attack_result_is_independent_of_threads() {
        let a = question("vegas", Hunt::Goodput);
        let one = run(&a, 1);
        let three = run(&a, 3);
        assert_eq!(format!("{:?}", one.worst), format!("{:?}", three.worst));
        assert_eq!(one.cases, three.cases);
    }

    /// The search must find well-known weaknesses of these controllers.
    #[test]
    fn it_finds_known_weaknesses() {
        let found = run(&question("reno", Hunt::Goodput), 2);
        assert!(found.worst[0].badness > 4.0, "{:?}", found.worst);
        let found = run(&question("cubic", Hunt::Delay), 2);
        assert!(found.worst[0].badness > 2.0, "deep buffers: {:?}", found.worst);
    }

    #[test]
    fn a_wrong_protocol_is_refused_before_anything_runs() {
        let control = RunControl::quiet(1);
        let refused = |a: &Attack| attack(a, &control).unwrap_err();
        let e = refused(&question("vegsa", Hunt::Goodput));
        assert!(e.contains("vegas"), "{e}");
        let e = refused(&question("vegas,reno", Hunt::Goodput));
        assert_eq!(e, "'vegas,reno': one protocol is expected, not several");
        let rival = Some("cubik".into());
        let e = refused(&Attack { rival, ..question("vegas", Hunt::Goodput) });
        assert_eq!(e, "--rival: unknown protocol 'cubik'; did you mean 'cubic'?");
    }
}
