//! Checks that crates depend only on those listed for them in `docs/architecture.md`, directly or not, and that every
//! file of a crate that the page names exists.

use crate::files::{name, read, rust_files};
use crate::members;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const PAGE: &str = "docs/architecture.md";
const OURS: &str = "narrows-";

/// Holds the crates to the list.
pub fn check(root: &Path) -> Result<(), String> {
    let page = read(root.join(PAGE))?;
    let order = order(&page)?;
    let folders = members::folders(root)?;
    for path in &folders {
        let name = name(path);
        let (floor, below) =
            order.get(&name).ok_or_else(|| format!("{PAGE} does not list '{name}'"))?;
        let parent = path.parent().and_then(Path::file_name).unwrap_or_default();
        if !matches!(floor.as_str(), "" | ".") && parent != floor.as_str() {
            return Err(format!(
                "{PAGE} lists '{name}' in {floor}, but it is in {}",
                path.display()
            ));
        }
        let used = dependencies(&read(path.join("Cargo.toml"))?);
        if let Some(other) = used.difference(below).next() {
            return Err(format!("by {PAGE}, '{name}' does not stand on '{other}', which it uses"));
        }
    }
    let mut files = Vec::new();
    for path in &folders {
        files.extend(rust_files(&path.join("src"))?);
    }
    match named_files(&page).find(|name| !files.iter().any(|f| f.ends_with(name))) {
        Some(name) => Err(format!("{PAGE} names '{name}', which is no file of any crate")),
        None => Ok(()),
    }
}

/// The Rust files that a page names, each as it writes it: `packet.rs`, `link/src/loss.rs`.
fn named_files(page: &str) -> impl Iterator<Item = &str> {
    page.split('`').skip(1).step_by(2).filter(|name| {
        let is_path = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_./".contains(&b));
        is_path && name.ends_with(".rs") && !name.contains("NAME")
    })
}

/// Every crate of the page's list with its floor and all its dependencies, direct or not. A line is a name, a
/// description, and the dependencies: `on A, B`. A crate depends only on crates of the lines before it. A line like
/// `core/` names the folder of the crates that follow, so no crate depends on one of a floor above its own.
fn order(page: &str) -> Result<BTreeMap<String, (String, BTreeSet<String>)>, String> {
    let list = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next());
    let list = list.ok_or_else(|| format!("{PAGE} has no list of crates"))?;
    let mut order: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
    let mut floor = String::new();
    for line in list.lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        if let Some(folder) = name.strip_suffix('/') {
            floor = folder.to_string();
            continue;
        }
        let on = line.rsplit_once(" on ").map_or("", |(_, on)| on);
        let mut below = BTreeSet::new();
        for other in on.split(',').map(str::trim).filter(|o| !o.is_empty()) {
            let of_other = order.get(other).map(|(_, below)| below);
            let of_other = of_other
                .ok_or_else(|| format!("{PAGE}: '{name}' stands on '{other}', not named before"))?;
            below.extend(of_other.iter().cloned());
            below.insert(other.to_string());
        }
        order.insert(name.to_string(), (floor.clone(), below));
    }
    Ok(order)
}

/// The crates of this workspace among a manifest's dependencies; those for tests alone do not count.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut section = "";
    let mut found = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        } else if matches!(section, "[dependencies]" | "[build-dependencies]")
            && let Some(name) = line.strip_prefix(OURS)
        {
            found.extend(name.split(['.', ' ', '=']).next().map(str::to_string));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_crates_stand_as_the_page_says() {
        check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
    }

    const LIST: &str =
        "```text\nbase   units\nlink   queues   on base\nsim    events   on link\n```";

    #[test]
    fn a_crate_stands_on_all_that_is_below_it() {
        let order = order(LIST).unwrap();
        let sim: Vec<&str> = order["sim"].1.iter().map(String::as_str).collect();
        assert_eq!(sim, ["base", "link"]);
        assert!(order["base"].1.is_empty());
    }

    #[test]
    fn a_page_names_files_by_their_paths() {
        let page = "see `a/b.rs`, `queue/NAME.rs`, `a b.rs` and `c.rs`: `d`";
        assert_eq!(named_files(page).collect::<Vec<_>>(), ["a/b.rs", "c.rs"]);
    }

    #[test]
    fn crate_below_a_folder_line_is_on_its_floor() {
        let list = LIST.replace("sim ", "apps/\nsim ");
        let order = order(&list).unwrap();
        assert_eq!((order["base"].0.as_str(), order["sim"].0.as_str()), ("", "apps"));
    }

    #[test]
    fn a_list_that_turns_upwards_is_refused() {
        let e = self::order(&LIST.replace("units", "units   on sim")).unwrap_err();
        assert!(e.contains("'base' stands on 'sim'"), "{e}");
    }

    #[test]
    fn only_our_crates_and_no_test_dependencies_count() {
        let manifest = "[dependencies]\nnarrows-base.workspace = true\nserde = \"1\"\n\
                        narrows-link = { workspace = true }\n[dev-dependencies]\nnarrows-sim = \"0\"\n";
        let found: Vec<String> = dependencies(manifest).into_iter().collect();
        assert_eq!(found, ["base", "link"]);
    }
}
