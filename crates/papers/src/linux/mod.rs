//! Comparison with the Linux kernel: results of its TCP in virtual time (`experiments/linux/reference.json`), results
//! of the simulator with presets `linux` and `rfc`, and their difference.
//!
//! Goodput must agree within 5% or the joint 95% interval of the means, completion times within 10% or their joint
//! interval, shares beside other flows within 0.05. Rows outside these limits are named.

mod cells;
mod reference;
mod shares;
mod transfers;

use crate::ns2::plan;
use crate::sample::Sample;
use narrows_lab::outcome::Estimate;
use reference::{Link, Reference};
use std::fmt::Write as _;
use std::path::Path;

/// The presets that are compared: the one that follows the kernel, and the RFCs' beside it.
const PRESETS: [&str; 2] = ["linux", "rfc"];

/// Runs everything and writes the section.
///
/// # Errors
/// A file that cannot be read, or a scenario that the simulator refuses.
pub fn section(folder: &Path, jobs: usize) -> Result<String, String> {
    let path = folder.join("reference.json");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let reference: Reference =
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut out = format!("{}.\n\n", reference.kernel);
    let _ = writeln!(
        out,
        "How it was measured: [experiments/linux](../experiments/linux/README.md). `sack` is Linux's Reno. Presets \
         `linux` and `rfc` run on the same links; only `linux` is meant to agree.\n"
    );
    cells::table(&mut out, folder, &reference, jobs)?;
    transfers::table(&mut out, folder, &reference, jobs)?;
    shares::table(&mut out, folder, &reference, jobs)?;
    Ok(out)
}

/// Results of one simulation, by the names of measures.
fn run(
    (folder, file): (&Path, &str),
    link: &Link,
    (preset, loss, protocol): (&str, &str, &str),
    others: &[(&str, &str)],
    seed: u64,
) -> Result<Sample, String> {
    let (rate, delay) = (format!("{}kbit/s", link.rate_kbps), format!("{}ms", link.delay_ms));
    let queue = format!("{}p", link.queue_packets);
    // Goodput counts from the moment when the connection is open.
    let opening = format!("{}ms", 2.0 * link.delay_ms);
    let end = format!("{}ms", 2.0 * link.delay_ms + 1000.0 * link.seconds);
    let mut keys = vec![
        ("preset", preset),
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
    let plan = plan(folder, file, &keys)?;
    Sample::take(&plan, 0, seed)
}

/// Whether two means agree within this share of the second or their joint 95% interval.
fn agree(ours: Estimate, theirs: Estimate, within: f64) -> bool {
    let joint = ours.ci95.unwrap_or(0.0).hypot(theirs.ci95.unwrap_or(0.0));
    let gap = (ours.mean - theirs.mean).abs();
    gap <= joint || gap <= within * theirs.mean
}

/// Mean of a series' samples from then on.
fn over_time(sample: &Sample, table: &str, column: &str, from: f64) -> f64 {
    let found = sample.series.iter().find(|t| t.name == table);
    let Some((table, values)) = found.and_then(|t| Some((t, t.column(column)?))) else {
        return f64::NAN;
    };
    let values = table.time_s.iter().zip(values);
    mean(values.filter(|(at, x)| **at >= from && x.is_finite()).map(|(_, x)| *x))
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), x| (sum + x, count + 1.0));
    sum / count
}

fn verdict(agrees: bool) -> &'static str {
    if agrees { "agrees" } else { "**differs**" }
}
