//! Scenario files with some of their values replaced.

use narrows_scenario::scenario::Scenario;
use narrows_scenario::scenario_file::Template;
use std::path::Path;

/// The scenario in `file` in which these keys, named as `narrows sweep --vary` names them, have these
/// values. Without a name of its own it has none.
///
/// # Errors
/// A file that cannot be read, an unknown key, a value that its place cannot have.
pub fn scenario(folder: &Path, file: &str, values: &[(&str, &str)]) -> Result<Scenario, String> {
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
