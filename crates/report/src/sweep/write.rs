//! The output files of a sweep; each is written completely or not at all.

use super::{json, long, points, report};
use crate::output::whole;
use narrows_lab::sweep::Outcome;
use narrows_scenario::scenario_file;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Writes everything into `folder`, which exists, and says which files there are now.
///
/// # Errors
/// One line that names the file and what went wrong.
pub fn all(o: &Outcome<'_>, folder: &Path) -> Result<Vec<PathBuf>, String> {
    let about = [
        ("narrows.command", o.command_line.clone()),
        ("narrows.seed", o.sweep.seed.to_string()),
        ("narrows.version", crate::VERSION.to_string()),
        ("narrows.scenario", o.scenario.clone()),
    ];
    let mut files = Vec::new();
    for (name, columns) in [("sweep", long(o)), ("points", points(o))] {
        let csv = folder.join(format!("{name}.csv"));
        files.push(whole(&csv, |p| fs::write(p, columns.csv()))?);
        let parquet = folder.join(format!("{name}.parquet"));
        files.push(whole(&parquet, |p| {
            let file = File::create(p)?;
            columns.parquet(file, &about).map_err(|e| io::Error::other(e.to_string()))
        })?);
    }
    let mut text = serde_json::to_string_pretty(&json::outcome(o)).unwrap_or_default();
    text.push('\n');
    files.push(whole(&folder.join("sweep.json"), |p| fs::write(p, &text))?);
    files.push(whole(&folder.join("report.html"), |p| fs::write(p, report::html(o)))?);
    if o.sweep.points.len() == 1
        && let Ok(mut scenario) = o.sweep.grid.scenario(0)
    {
        (scenario.seed, scenario.seeds) = (o.sweep.seed, o.sweep.seeds);
        let text = scenario_file::text(&scenario);
        files.push(whole(&folder.join("scenario.toml"), |p| fs::write(p, &text))?);
    }
    Ok(files)
}
