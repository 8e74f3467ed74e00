//! The first look at a question that takes long: its first seconds with one seed.

use crate::question::{PageQuestion, untimed};
use crate::stored;
use narrows_lab::execute::execute_one;
use serde_json::{Value, json};

/// Simulated seconds at least, so that flows leave slow start on most links.
const LEAST_S: f64 = 0.5;
/// The second seed, since runs of the first one have series.
const SEED: usize = 1;

/// Seconds and runs, one of each protocol, of about so many packets; no seconds if the question has fewer than twice as
/// many.
///
/// # Errors
/// A question that cannot be simulated.
pub fn first_look(question: &PageQuestion, packets: f64) -> Result<Value, String> {
    let plan = question.plan()?.plan;
    let variants = plan.scenario.variants();
    let work = plan.work() * variants as f64;
    if work <= 2.0 * packets {
        return Ok(json!({ "first_s": null, "runs": [] }));
    }
    let first_s = (plan.scenario.duration.as_secs_f64() * packets / work).max(LEAST_S);
    let plan = PageQuestion { first_s: Some(first_s), ..question.clone() }.plan()?.plan;
    let run = |variant| execute_one(&plan, &untimed(), variant, SEED).map(|run| stored::text(&run));
    let runs = (0..variants).map(run).collect::<Result<Vec<String>, _>>()?;
    Ok(json!({ "first_s": first_s, "runs": runs }))
}
