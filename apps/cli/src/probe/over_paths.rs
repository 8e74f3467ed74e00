//! `narrows probe --path`: each path in turn.

use super::one::{failure, with_bar};
use super::shown;
use crate::failure::Failure;
use crate::local_paths::{PathArg, PathArgs};
use crate::terminal::{print, print_json};
use narrows_net::LocalPath;
use narrows_net::probe::{ProbeError, ProbeOptions};
use serde_json::json;

/// The paths to be probed; none without `--path`.
///
/// # Errors
/// They are not possible, or have options that a probe lacks.
pub fn chosen(paths: &[PathArg]) -> Result<Vec<LocalPath>, Failure> {
    let chosen = PathArgs { paths: paths.to_vec() }.named()?.all;
    if chosen.iter().any(|path| path.is_standby || path.weight != 1.0 || path.quota.is_some()) {
        let line = "--path: a probe uses each path without =WEIGHT, =standby and :quota";
        return Err(Failure::Input(line.into()));
    }
    Ok(chosen.into_iter().map(|path| path.local).collect())
}

/// Probes each path, and prints the results, of silent ones the reason.
///
/// # Errors
/// No path could be probed; the user stopped it.
pub fn probe_each(
    is_json: bool,
    server: &str,
    paths: &[LocalPath],
    options: &ProbeOptions,
) -> Result<(), Failure> {
    let mut text = String::new();
    let mut list = Vec::new();
    let mut links = Vec::new();
    let mut last = Ok(());
    for path in paths {
        let options = ProbeOptions { local: Some(path.clone()), ..options.clone() };
        match with_bar(options) {
            Ok(probed) => {
                let link = probed.estimate.link();
                let mut found = shown::json(&probed, &link);
                found["path"] = json!(path.to_string());
                list.push(found);
                text += &format!("{path}: {}\n", shown::text(&probed));
                links.push(format!("--path '{link}'"));
            }
            Err(ProbeError::Stopped) => return Err(failure(&ProbeError::Stopped, server)),
            Err(e) => {
                list.push(json!({ "path": path.to_string(), "error": e.to_string() }));
                text += &format!("{path}: {e}\n\n");
                last = Err(failure(&e, server));
            }
        }
    }
    if links.is_empty() {
        return last;
    }
    if is_json {
        return print_json(&json!({ "paths": list }));
    }
    print(&format!("{text}narrows compare {}\n", links.join(" ")))
}
