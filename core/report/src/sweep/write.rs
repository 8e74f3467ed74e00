//! The output files of a sweep; each is written completely or not at all.

use super::{json, long, points, report};
use crate::output::RunFiles;
use crate::variables::of_measures;
use narrows_lab::sweep::SweepOutcome;
use narrows_scenario::scenario_file;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Writes all files into `folder` and returns their paths.
///
/// # Errors
/// One line that names the file and the error.
pub fn all(o: &SweepOutcome<'_>, folder: &Path) -> Result<Vec<PathBuf>, String> {
    let about = [
        ("narrows.command", o.command_line.clone()),
        ("narrows.seed", o.sweep.seed.to_string()),
        ("narrows.version", crate::VERSION.to_string()),
        ("narrows.scenario", o.scenario.clone()),
    ];
    let mut files = RunFiles::new(folder)?;
    for (name, columns) in [("sweep", long(o)), ("points", points(o))] {
        files.csv(name, &columns)?;
        files.parquet(name, &columns, &about, of_measures)?;
    }
    let mut text = serde_json::to_string_pretty(&json::outcome(o)).unwrap_or_default();
    text.push('\n');
    files.add("sweep.json", |f| f.write_all(text.as_bytes()))?;
    files.add("report.html", |f| f.write_all(report::html(o).as_bytes()))?;
    if o.sweep.points.len() == 1
        && let Some(mut scenario) = o.sweep.first.clone()
    {
        scenario.seed = o.sweep.seed;
        scenario.seeds = o.sweep.seeds;
        let text = scenario_file::text(&scenario);
        files.add("scenario.toml", |f| f.write_all(text.as_bytes()))?;
    }
    Ok(files.paths())
}
