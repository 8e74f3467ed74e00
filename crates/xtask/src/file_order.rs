//! The files of a crate have an order: no cycle of files that use each other.
//!
//! In the crates of [`PARENTS`], a file may use items of the file above its folder (`queue/red.rs` the trait in
//! `queue.rs`): the two are one module. `lib.rs` and `main.rs` are above all: a file that they use must not use their
//! items.

mod source;

use crate::members;
use source::SourceNames;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Path of a module: `["queue", "red"]` for `queue/red.rs`, empty for `lib.rs`.
type Module = Vec<String>;

/// Re-exports of re-exports that are followed.
const MAX_DEPTH: u32 = 6;

/// Crates in which a file and the file above its folder may use each other. The others need no exception.
const PARENTS: [&str; 10] =
    ["cli", "congestion", "files", "lab", "link", "papers", "python", "report", "wire", "xtask"];

/// Looks at every crate.
pub fn check(root: &Path) -> Result<(), String> {
    let cannot = |e: std::io::Error| format!("crates: {e}");
    let mut found = String::new();
    for path in members::folders(root).map_err(cannot)? {
        let files = Files::read(&path.join("src")).map_err(cannot)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(circle) = circle(files.graph(PARENTS.contains(&&*name))) {
            let names: Vec<String> = circle.iter().map(|m| shown(m)).collect();
            found += &format!("\n  {}: {}", path.display(), names.join(" uses "));
        }
    }
    if found.is_empty() {
        Ok(())
    } else {
        Err(format!("files that use each other in a circle:{found}"))
    }
}

fn shown(module: &[String]) -> String {
    if module.is_empty() { "the root".into() } else { module.join("/") }
}

/// The files of a crate that are not for tests.
struct Files(BTreeMap<Module, SourceNames>);

impl Files {
    fn read(folder: &Path) -> std::io::Result<Files> {
        let mut files = BTreeMap::new();
        read_folder(folder, &[], &mut files)?;
        Ok(Files::without_tests(files))
    }

    fn without_tests(mut files: BTreeMap<Module, SourceNames>) -> Files {
        let below =
            |module: &Module, name: &String| [&module[..], std::slice::from_ref(name)].concat();
        let tests: Vec<Module> = files
            .iter()
            .flat_map(|(m, s)| s.tests.iter().map(move |name| below(m, name)))
            .collect();
        files.retain(|module, _| !tests.iter().any(|t| module.starts_with(t)));
        Files(files)
    }

    /// Which files each file uses. `is_one`: whether a file and the files of its folder are one.
    fn graph(&self, is_one: bool) -> BTreeMap<&Module, BTreeSet<&Module>> {
        let uses = |(module, source): (_, &SourceNames)| {
            let mut used = BTreeSet::new();
            // Mere re-exports are not uses.
            let imports =
                source.uses.iter().filter(|u| !u.public || source.words.contains(&u.name));
            for path in imports.map(|u| &u.path).chain(&source.paths) {
                let other = self.resolve(module, path, 0);
                let above =
                    |other: &Module| is_one && !other.is_empty() && module.starts_with(other);
                used.extend(other.filter(|other| *other != module && !above(other)));
            }
            (module, used)
        };
        self.0.iter().map(uses).collect()
    }

    /// The file that defines the target of a path in a module; `None` if it is in another crate.
    fn resolve(&self, module: &Module, path: &[String], depth: u32) -> Option<&Module> {
        let mut rest = path;
        let mut at = match rest.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("self" | "super") => module.clone(),
            Some(name) => {
                let child = [&module[..], &[name.to_string()]].concat();
                self.0.get(&child).map(|_| module.clone())?
            }
            None => return None,
        };
        while let Some(word) =
            rest.first().filter(|w| ["crate", "self", "super"].contains(&w.as_str()))
        {
            if word == "super" {
                at.pop();
            }
            rest = &rest[1..];
        }
        while let Some(name) = rest.first() {
            let child = [&at[..], std::slice::from_ref(name)].concat();
            if !self.0.contains_key(&child) {
                break;
            }
            (at, rest) = (child, &rest[1..]);
        }
        let (here, source) = self.0.get_key_value(&at)?;
        let passed_on = rest.first().filter(|_| depth < MAX_DEPTH).and_then(|name| {
            let import = source.uses.iter().find(|u| u.name == *name)?;
            self.resolve(here, &[&import.path[..], &rest[1..]].concat(), depth + 1)
        });
        Some(passed_on.unwrap_or(here))
    }
}

fn read_folder(
    folder: &Path,
    module: &[String],
    out: &mut BTreeMap<Module, SourceNames>,
) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let below = [module, std::slice::from_ref(&name)].concat();
        if path.is_dir() {
            // Programs of their own.
            if module.is_empty() && name == "bin" {
                continue;
            }
            read_folder(&path, &below, out)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            let is_root = module.is_empty() && ["lib", "main"].contains(&name.as_str());
            if name == "main" && is_root && folder.join("lib.rs").exists() {
                continue;
            }
            let own = if is_root || name == "mod" { module.to_vec() } else { below };
            out.insert(own, source::read(&std::fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

/// A cycle, with its first file repeated at the end; `None` if there is no cycle.
fn circle(mut graph: BTreeMap<&Module, BTreeSet<&Module>>) -> Option<Vec<Module>> {
    // Files without remaining uses are in no cycle.
    loop {
        let left: BTreeSet<&Module> = graph.keys().copied().collect();
        let before = graph.len();
        graph.retain(|_, used| {
            used.retain(|u| left.contains(u));
            !used.is_empty()
        });
        if graph.len() == before {
            break;
        }
    }
    let mut way: Vec<&Module> = vec![graph.keys().next()?];
    loop {
        let next = *graph.get(way.last()?)?.first()?;
        if let Some(at) = way.iter().position(|m| *m == next) {
            let circle = way[at..].iter().chain([&next]);
            return Some(circle.map(|m| (*m).clone()).collect());
        }
        way.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_files_use_each_other_in_no_circle() {
        check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
    }

    fn files(all: &[(&str, &str)]) -> Files {
        let module =
            |path: &str| path.split('/').filter(|p| !p.is_empty()).map(String::from).collect();
        Files::without_tests(
            all.iter().map(|(path, text)| (module(path), source::read(text))).collect(),
        )
    }

    fn circle_of(all: &[(&str, &str)]) -> Option<String> {
        circle_if(true, all)
    }
    fn circle_if(is_one: bool, all: &[(&str, &str)]) -> Option<String> {
        let files = files(all);
        circle(files.graph(is_one))
            .map(|c| c.iter().map(|m| shown(m)).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn two_files_that_use_each_other_are_a_circle() {
        let a = ("a", "use crate::b::B;");
        assert_eq!(
            circle_of(&[("", "mod a; mod b;"), a, ("b", "fn f() { super::a::g() }")]).unwrap(),
            "a b a"
        );
        assert_eq!(circle_of(&[("", "mod a; mod b;"), a, ("b", "use std::fmt;")]), None);
    }

    #[test]
    fn what_is_passed_on_is_where_it_was_defined() {
        let root = ("", "mod a; mod b; pub use b::B;");
        assert_eq!(circle_of(&[root, ("a", "use crate::B;"), ("b", "")]), None);
        assert_eq!(
            circle_of(&[root, ("a", "use crate::B;"), ("b", "use crate::a;")]).unwrap(),
            "a b a"
        );
    }

    #[test]
    fn a_file_and_its_folder_are_one_but_the_root_is_not() {
        let list = ("queue", "mod red; pub trait Queue {} const ALL: &[E] = &[red::ENTRY];");
        let red = ("queue/red", "use super::Queue;");
        assert_eq!(circle_of(&[("", "mod queue;"), list, red]), None);
        let strict = circle_if(false, &[("", "mod queue;"), list, red]);
        assert_eq!(strict.as_deref(), Some("queue queue/red queue"));
        let root = ("", "mod a; fn f() { a::g() } struct Failure;");
        assert_eq!(
            circle_of(&[root, ("a", "use crate::Failure;")]).unwrap(),
            "the root a the root"
        );
    }

    #[test]
    fn tests_may_use_anything() {
        let b = ("b", "use crate::a; #[cfg(test)] mod tests;");
        let tests = ("b/tests", "use crate::c;");
        assert_eq!(circle_of(&[("", ""), ("a", ""), b, tests, ("c", "use crate::b;")]), None);
    }
}
