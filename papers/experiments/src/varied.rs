//! Scenario files with some of their values replaced.

use narrows_scenario::plan::Plan;
use narrows_scenario::scenario::Scenario;
use narrows_scenario::scenario_file::Template;
use std::path::Path;

/// The scenario in `file` with these keys, named as in `narrows sweep --vary`, set to these values. Without a name in
/// the file, the scenario has no name.
///
/// # Errors
/// The file cannot be read, a key is unknown, or a value is invalid at its place.
pub fn scenario(folder: &Path, file: &str, values: &[(&str, &str)]) -> Result<Scenario, String> {
    crate::install()?;
    let path = folder.join(file);
    let say = |e: String| format!("{}: {e}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|e| say(e.to_string()))?;
    let template = Template::parse(&text, folder).map_err(|e| say(e.to_string()))?;
    let targets = values
        .iter()
        .map(|(key, value)| Ok((template.target(key)?, *value)))
        .collect::<Result<Vec<_>, _>>();
    let targets = targets.map_err(|e: narrows_base::SpecError| say(e.to_string()))?;
    let pairs: Vec<_> = targets.iter().map(|(target, value)| (target, *value)).collect();
    template.scenario(&pairs).map_err(|e| say(e.to_string()))
}

/// The plan of a scenario in which these keys have these values.
pub fn plan(folder: &Path, file: &str, values: &[(&str, &str)]) -> Result<Plan, String> {
    let scenario = scenario(folder, file, values)?;
    Plan::new(scenario).map_err(|e| format!("{}: {e}", folder.join(file).display()))
}
