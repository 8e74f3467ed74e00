//! The share of one flow of a protocol beside one CUBIC flow, on the link of a comparison.

use crate::execute::{RunControl, execute};
use crate::measure::MEASURES;
use narrows_base::Spec;
use narrows_scenario::plan::Plan;
use narrows_scenario::scenario::{Flows, GroupProtocol};
use narrows_sim::SourceSpec;

/// Seeds of the trial.
const SEEDS: u32 = 3;

/// The goodput of a bulk flow of the protocol over an equal share, with one CUBIC flow beside it, in the mean of
/// [`SEEDS`] seeds; `None` if the trial was interrupted or the simulator refuses it.
pub fn measured(plan: &Plan, protocol: &str, control: &RunControl<'_>) -> Option<f64> {
    let mut scenario = plan.scenario.clone();
    scenario.seeds = scenario.seeds.min(SEEDS);
    scenario.protocols = vec![Spec::parse(protocol).ok()?];
    let main = scenario.flows.first_mut()?;
    main.count = 1;
    main.source = SourceSpec::bulk();
    let against = GroupProtocol::One(Spec::named("cubic"));
    let against = Flows { name: "against".into(), speaks: against, ..main.clone() };
    scenario.flows.insert(1, against);
    let plan = Plan::new(scenario).ok()?;
    let quiet = RunControl { progress: &|_| (), ..*control };
    let runs = execute(&plan, &quiet).ok()?;
    let share = MEASURES.iter().position(|m| m.name == "share")?;
    let shares: Vec<f64> =
        runs.iter().flatten().flatten().map(|r| r.groups[0].measures[share]).collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    mean.is_finite().then_some(2.0 * mean)
}
