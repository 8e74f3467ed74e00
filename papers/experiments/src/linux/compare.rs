//! Runs of the simulator, and the limits within which they agree with the kernel's.

use super::reference::ReferenceLink;
use crate::sample::SimulationSample;
use crate::varied::plan;
use narrows_lab::outcome::Estimate;
use std::fmt::Write as _;
use std::path::Path;

/// The preset that follows the kernel.
pub const PRESET: &str = "linux";

/// Results of the comparison.
pub struct Compared {
    /// How many rows of each table agree, and which do not: a part of `docs/validation.md`.
    pub summary: String,
    /// All rows: `experiments/linux/results.md`.
    pub page: String,
}

impl Compared {
    /// Adds a table with its title and a line that says how many rows agree.
    pub(super) fn add(&mut self, title: &str, agreed: [usize; 2], missed: &[String], table: &str) {
        let [agreed, all] = agreed;
        let missed = match missed {
            [] => String::new(),
            missed => format!("; these differ: {}", missed.join(", ")),
        };
        let anchor = title.to_lowercase().replace(' ', "-");
        let _ = writeln!(
            self.summary,
            "- [{title}](../experiments/linux/results.md#{anchor}): {agreed} of {all} agree{missed}."
        );
        let _ = write!(self.page, "\n## {title}\n\n{agreed} of {all} agree{missed}. {table}");
    }
}

/// Results of one simulation, by the names of measures.
pub fn run(
    folder: &Path,
    link: &ReferenceLink,
    loss: &str,
    protocol: &str,
    others: &[(&str, &str)],
    seed: u64,
) -> Result<SimulationSample, String> {
    let rate = format!("{}kbit/s", link.rate_kbps);
    let delay = format!("{}ms", link.delay_ms);
    let queue = format!("{}p", link.queue_packets);
    // Goodput counts from the moment when the connection is open.
    let opening = format!("{}ms", 2.0 * link.delay_ms);
    let end = format!("{}ms", 2.0 * link.delay_ms + 1000.0 * link.seconds);
    let mut keys = vec![
        ("preset", PRESET),
        ("link.bottleneck.rate", rate.as_str()),
        ("link.bottleneck.delay", &delay),
        ("link.bottleneck.queue", &queue),
        ("link.bottleneck.loss", loss),
        ("flows.main.protocol", protocol),
    ];
    if others.is_empty() {
        keys.extend([("duration", end.as_str()), ("warmup", &opening)]);
    }
    keys.extend(others);
    let plan = plan(folder, "cell.toml", &keys)?;
    SimulationSample::take(&plan, 0, seed)
}

/// Whether two means agree within this share of the second or their joint 95% interval.
pub fn agree(ours: Estimate, theirs: Estimate, within: f64) -> bool {
    let joint = ours.half().unwrap_or(0.0).hypot(theirs.half().unwrap_or(0.0));
    let gap = (ours.mean - theirs.mean).abs();
    gap <= joint || gap <= within * theirs.mean
}

/// Mean of a series' samples from then on.
pub fn over_time(sample: &SimulationSample, table: &str, column: &str, from: f64) -> f64 {
    let found = sample.series.iter().find(|t| t.name == table);
    let Some((table, values)) = found.and_then(|t| Some((t, t.column(column)?))) else {
        return f64::NAN;
    };
    let values = table.time_s.iter().zip(values);
    mean(values.filter(|(at, x)| **at >= from && x.is_finite()).map(|(_, x)| *x))
}

pub fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), x| (sum + x, count + 1.0));
    sum / count
}

pub fn verdict(agrees: bool) -> &'static str {
    if agrees { "agrees" } else { "**differs**" }
}
