//! `narrows probe --path`: each path in turn.

use super::{ProbeArgs, failed, shown};
use crate::failure::Failure;
use crate::local_paths::PathArgs;
use crate::terminal::{print, print_json};
use narrows_net::LocalPath;
use narrows_net::probe::{ProbeError, ProbeOptions, Probed};
use serde_json::json;

/// The paths to be probed; none without `--path`.
///
/// # Errors
/// They are not possible, or have options that a probe lacks.
pub fn chosen(a: &ProbeArgs) -> Result<Vec<LocalPath>, Failure> {
    let chosen = PathArgs { paths: a.paths.clone() }.named()?.all;
    if chosen.iter().any(|path| path.is_standby || path.quota.is_some()) {
        let line = "--path: a probe uses each path without =standby and :quota";
        return Err(Failure::Input(line.into()));
    }
    Ok(chosen.into_iter().map(|path| path.local).collect())
}

/// Probes each path by `probe`, and prints the results, of silent ones the reason.
///
/// # Errors
/// No path could be probed; the user stopped it.
pub fn probe_each(
    a: &ProbeArgs,
    paths: &[LocalPath],
    options: &ProbeOptions,
    mut probe: impl FnMut(ProbeOptions) -> Result<Probed, ProbeError>,
) -> Result<(), Failure> {
    let mut text = String::new();
    let mut list = Vec::new();
    let mut links = Vec::new();
    let mut last = Ok(());
    for path in paths {
        let options = ProbeOptions { local: Some(path.clone()), ..options.clone() };
        match probe(options) {
            Ok(probed) => {
                let link = probed.estimate.link();
                let mut found = shown::json(&probed, &link);
                found["path"] = json!(path.to_string());
                list.push(found);
                text += &format!("{path}: {}\n", shown::text(&probed));
                links.push(format!("--path '{link}'"));
            }
            Err(ProbeError::Stopped) => return Err(failed(&ProbeError::Stopped, &a.server)),
            Err(e) => {
                list.push(json!({ "path": path.to_string(), "error": e.to_string() }));
                text += &format!("{path}: {e}\n\n");
                last = Err(failed(&e, &a.server));
            }
        }
    }
    if links.is_empty() {
        return last;
    }
    if a.json {
        return print_json(&json!({ "paths": list }));
    }
    print(&format!("{text}narrows compare {}\n", links.join(" ")))
}
