//! Comparison with ns-2: the reference measurements in `experiments/ns2/`, the simulator's results, and their
//! difference.
//!
//! Without random draws, goodput must agree within 2%. With random loss, means must agree within their joint 95%
//! interval or within 5%, and TCP's share beside TFRC within 0.05. The reference file must explain each difference
//! beyond that, and an explanation of an agreeing result is an error.

mod dumbbells;
mod lossy;
mod mix;
mod one_flow;
mod reference;

use super::varied;
use narrows_lab::outcome::Estimate;
use narrows_lab::stats::student_t975;
use narrows_scenario::plan::Plan;
use reference::{Reference, Why};
use std::fmt::Write as _;
use std::path::Path;

/// The part of the page about ns-2.
pub struct Section {
    /// The page's section.
    pub text: String,
    /// `figure.svg`: TCP's share beside TFRC.
    pub figure: String,
}

/// Runs everything and writes the section.
///
/// # Errors
/// A file that cannot be read, or a difference without an explanation.
pub fn section(folder: &Path, jobs: usize) -> Result<Section, String> {
    let path = folder.join("reference.json");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let reference: Reference =
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut page = Page { out: String::new(), why: reference.why.clone(), faults: Vec::new() };
    let _ = writeln!(page.out, "Simulator: {}. {}\n", reference.simulator, reference.how);
    page.one_flow(folder, &reference.n1, jobs)?;
    page.lossy(&lossy::N2, folder, &reference.n2, jobs)?;
    page.lossy(&lossy::N3, folder, &reference.n3, jobs)?;
    let figure = page.mix(folder, &reference.n4, jobs)?;
    page.dumbbells(&reference.dumbbells, jobs)?;
    let _ = writeln!(page.out, "### Ties\n\n{}\n", reference.ties);
    for w in &page.why {
        page.faults.push(format!(
            "{} {} {}: explained, but it agrees or is not there",
            w.table, w.variant, w.at
        ));
    }
    if page.faults.is_empty() {
        return Ok(Section { text: page.out, figure });
    }
    // The tables have more detail than the faults.
    Err(format!("{}\n{}", page.out, page.faults.join("\n")))
}

struct Page {
    out: String,
    /// Explanations not used yet.
    why: Vec<Why>,
    faults: Vec<String>,
}

impl Page {
    /// Checks a row; an explanation goes to `notes`.
    fn verdict(
        &mut self,
        agrees: bool,
        key: (&str, &str, &str),
        notes: &mut Vec<String>,
    ) -> String {
        if agrees {
            return "agrees".into();
        }
        let (table, variant, at) = key;
        let found = |w: &Why| w.table == table && w.variant == variant && w.at == at;
        match self.why.iter().position(found) {
            Some(i) => {
                let why = self.why.remove(i).why;
                let n = notes.iter().position(|n| *n == why).unwrap_or_else(|| {
                    notes.push(why);
                    notes.len() - 1
                });
                format!("differs ({})", n + 1)
            }
            None => {
                self.faults.push(format!("{table} {variant} {at}: differs without a reason"));
                "differs".into()
            }
        }
    }

    fn notes(&mut self, notes: &[String]) {
        for (i, why) in notes.iter().enumerate() {
            let _ = writeln!(self.out, "\n({}) {why}", i + 1);
        }
        self.out.push('\n');
    }
}

/// ns-2 counts packet 0, which stands for the SYN, as one packet of goodput: its share of the capacity in bit/s.
fn first_packet(seconds: f64, capacity: f64) -> f64 {
    8000.0 / seconds / capacity
}

/// The plan of a scenario in which these keys have these values.
pub(crate) fn plan(folder: &Path, file: &str, values: &[(&str, &str)]) -> Result<Plan, String> {
    let scenario = varied::scenario(folder, file, values)?;
    Plan::new(scenario).map_err(|e| format!("{}: {e}", folder.join(file).display()))
}

fn variant(plan: &Plan, protocol: &str) -> Result<usize, String> {
    let found = plan.scenario.protocols.iter().position(|p| p.to_string() == protocol);
    found.ok_or_else(|| format!("the scenario has no protocol '{protocol}'"))
}

fn share(x: Estimate) -> String {
    x.ci95.map_or_else(|| format!("{:.4}", x.mean), |half| format!("{:.4} ± {half:.4}", x.mean))
}

/// Half of the 95% interval of a mean over `seeds` seeds.
fn half(sd: f64, seeds: u32) -> f64 {
    student_t975(seeds.saturating_sub(1) as usize) * sd / f64::from(seeds).sqrt()
}
