//! Variants of rrtp's controller for measurements: a copy of its source without one mechanism, or with other constants.
//!
//! The variants of a command are compiled into one measuring build of xtask (feature `variants`); the controller of the
//! release has no switch.

use super::mechanisms::{MECHANISMS, Mechanism};
use narrows_base::RandomKey;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Constants of which the distance from 1 is scaled, because they mean something else on the other side of 1.
const AROUND_ONE: [&str; 4] = ["UP", "DOWN", "BACK_OFF", "BETA"];
/// Largest factor of `--scale`, and most draws.
const MOST: f64 = 100.0;
const MOST_DRAWS: u64 = 1000;

/// A variant: a name for tables, and changes of files of the controller. Each old text is in its file exactly once.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredVariant {
    pub label: String,
    edits: Vec<(String, String, String)>,
}

/// A constant of the controller.
struct Constant {
    name: String,
    kind: String,
    value: String,
}

impl Constant {
    fn line(&self, value: &str) -> String {
        format!("pub const {}: {} = {value};", self.name, self.kind)
    }

    /// The change that scales it; a whole number stays one and is at least 1.
    fn scaled(&self, factor: f64) -> Option<(String, String, String)> {
        let value: f64 = self.value.parse().ok()?;
        let scaled = if AROUND_ONE.contains(&self.name.as_str()) {
            (1.0 + factor * (value - 1.0)).max(0.01)
        } else {
            factor * value
        };
        let text = match self.kind.as_str() {
            "f64" => format!("{scaled:?}"),
            _ => format!("{}", scaled.round().max(1.0) as u64),
        };
        Some(("constants.rs".into(), self.line(&self.value), self.line(&text)))
    }
}

/// The folder of the controllers' sources.
fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/congestion/src")
}

/// The files of the controller, by name below its module, without tests. Their crate is narrows-congestion.
fn files() -> Result<Vec<(String, String)>, String> {
    let mut files = vec![("mod.rs".to_string(), source().join("rrtp.rs"))];
    let mut folders = vec![(String::new(), source().join("rrtp"))];
    while let Some((prefix, folder)) = folders.pop() {
        let wrong = |e: std::io::Error| format!("{}: {e}", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(wrong)? {
            let path = entry.map_err(wrong)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push((format!("{prefix}{name}/"), path));
            } else if name != "tests.rs" {
                files.push((format!("{prefix}{name}"), path));
            }
        }
    }
    files.sort();
    let read = |(name, path): (String, PathBuf)| {
        let text =
            std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let code = text.split_once("\n#[cfg(test)]").map_or(text.as_str(), |(code, _)| code);
        Ok((name, format!("{code}\n")))
    };
    files.into_iter().map(read).collect()
}

fn constants() -> Result<Vec<Constant>, String> {
    let files = files()?;
    let text = files.iter().find(|f| f.0 == "constants.rs").map_or("", |f| f.1.as_str());
    let constant = |line: &str| {
        let (name, rest) = line.strip_prefix("pub const ")?.split_once(": ")?;
        let (kind, value) = rest.strip_suffix(';')?.split_once(" = ")?;
        Some(Constant { name: name.into(), kind: kind.into(), value: value.into() })
    };
    Ok(text.lines().filter_map(constant).collect())
}

impl MeasuredVariant {
    /// The controller without a change, which must have its figures.
    pub fn unchanged() -> MeasuredVariant {
        MeasuredVariant { label: "unchanged".into(), edits: Vec::new() }
    }

    fn without(mechanisms: &[&Mechanism]) -> MeasuredVariant {
        let names: Vec<&str> = mechanisms.iter().map(|m| m.name).collect();
        let edits = mechanisms
            .iter()
            .flat_map(|m| m.edits)
            .map(|(file, old, new)| ((*file).to_string(), (*old).to_string(), (*new).to_string()));
        MeasuredVariant { label: format!("without {}", names.join("+")), edits: edits.collect() }
    }

    /// The variants of `--without A,B`, `--without A+B` (one variant without both) and `--without all`.
    ///
    /// # Errors
    /// An unknown mechanism; the message lists all.
    pub fn without_each(text: &str) -> Result<Vec<MeasuredVariant>, String> {
        if text == "all" {
            return Ok(MECHANISMS.iter().map(|m| MeasuredVariant::without(&[m])).collect());
        }
        let found = |name: &str| {
            let names = || MECHANISMS.iter().map(|m| m.name).collect::<Vec<_>>().join(", ");
            let m = MECHANISMS.iter().find(|m| m.name == name.trim());
            m.ok_or_else(|| format!("--without '{name}': all, or some of {}", names()))
        };
        let joint = |names: &str| -> Result<MeasuredVariant, String> {
            let mechanisms: Vec<&Mechanism> =
                names.split('+').map(found).collect::<Result<_, _>>()?;
            Ok(MeasuredVariant::without(&mechanisms))
        };
        text.split(',').map(joint).collect()
    }

    /// The variants of `--scale CONSTANT=F,F`, `--scale all=F,F` and `--scale random=R`: all constants at random within
    /// 1 ± R, `draws` times.
    ///
    /// # Errors
    /// An unknown constant, or a factor outside of 0 to 100.
    pub fn scaled(text: &str, draws: u64, seed: u64) -> Result<Vec<MeasuredVariant>, String> {
        let wrong =
            || format!("--scale '{text}': CONSTANT=F,F, all=F,F, or random=R with R below 1");
        let (name, factors) = text.split_once('=').ok_or_else(wrong)?;
        let factor = |f: &str| f.trim().parse().ok().filter(|f| *f > 0.0 && *f <= MOST);
        let factors: Option<Vec<f64>> = factors.split(',').map(factor).collect();
        let factors = factors.ok_or_else(wrong)?;
        let all = constants()?;
        if name == "random" {
            let [range] = factors[..] else { return Err(wrong()) };
            if range >= 1.0 || draws > MOST_DRAWS {
                return Err(wrong());
            }
            let draw = |i: u64| MeasuredVariant {
                label: format!("random {}", i + 1),
                edits: drawn(
                    &all,
                    range,
                    RandomKey::from_seed(seed).named("constants").numbered(i),
                ),
            };
            return Ok((0..draws).map(draw).collect());
        }
        let chosen: Vec<&Constant> =
            all.iter().filter(|c| name == "all" || c.name == name).collect();
        if chosen.is_empty() {
            let names: Vec<&str> = all.iter().map(|c| c.name.as_str()).collect();
            return Err(format!("--scale '{name}': all, random, or one of {}", names.join(", ")));
        }
        let mut variants = Vec::new();
        for constant in chosen {
            for factor in &factors {
                variants.push(MeasuredVariant {
                    label: format!("{} x {factor}", constant.name),
                    edits: constant.scaled(*factor).into_iter().collect(),
                });
            }
        }
        Ok(variants)
    }

    /// The source of this variant: its files, with the changes.
    fn written(&self, files: &[(String, String)]) -> Result<Vec<(String, String)>, String> {
        let mut files = files.to_vec();
        for (name, old, new) in &self.edits {
            let file = files.iter_mut().find(|f| f.0 == *name);
            let text = &mut file.ok_or_else(|| format!("{}: no file {name}", self.label))?.1;
            match text.matches(old.as_str()).count() {
                1 => *text = text.replacen(old.as_str(), new, 1),
                n => return Err(format!("{}: '{old}' is {n} times in {name}", self.label)),
            }
        }
        Ok(files)
    }
}

fn drawn(all: &[Constant], range: f64, key: RandomKey) -> Vec<(String, String, String)> {
    let one =
        |c: &Constant| c.scaled(1.0 + range * (2.0 * key.named(&c.name).stream().unit() - 1.0));
    all.iter().filter_map(one).collect()
}

/// Writes the sources of all variants and their list into a folder, and removes the sources that were there. A variant
/// has the name of its place in the list.
///
/// # Errors
/// A change that does not fit the source, or an error of the file system.
pub fn write(variants: &[MeasuredVariant], folder: &Path) -> Result<(), String> {
    let wrong = |e: std::io::Error| format!("{}: {e}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(wrong)?;
    }
    let files = files()?;
    let (mut modules, mut list) = (String::new(), String::new());
    for (i, variant) in variants.iter().enumerate() {
        let own = folder.join(format!("v{i}"));
        for (name, text) in variant.written(&files)? {
            let file = own.join(name);
            std::fs::create_dir_all(file.parent().unwrap_or(&own)).map_err(wrong)?;
            let text = text.replace("crate::", "narrows_congestion::");
            let text = text.replace("name: \"rrtp\",", &format!("name: \"rrtp-v{i}\","));
            std::fs::write(file, text).map_err(wrong)?;
        }
        let module = own.join("mod.rs");
        let _ =
            writeln!(modules, "#[allow(warnings, clippy::all)]\n#[path = {module:?}]\nmod v{i};");
        let _ = writeln!(list, "    ({:?}, &v{i}::DESCRIPTOR, v{i}::build),", variant.label);
    }
    let list = format!("{modules}\n/// All variants.\npub const LIST: &[Built] = &[\n{list}];\n");
    std::fs::write(folder.join("list.rs"), list).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of mechanisms must follow the controller's source.
    #[test]
    fn every_mechanism_can_be_removed_from_the_present_source() {
        let files = files().unwrap();
        for variant in MeasuredVariant::without_each("all").unwrap() {
            let written = variant.written(&files).unwrap();
            assert_ne!(written, files, "{}", variant.label);
        }
    }

    #[test]
    fn constants_are_scaled_in_their_own_line_only() {
        let files = files().unwrap();
        let of = |text: &str| MeasuredVariant::scaled(text, 2, 1).unwrap();
        assert_eq!(of("all=.5,2").len(), 2 * constants().unwrap().len());
        let written = of("UP=2")[0].written(&files).unwrap();
        let lines = |files: &[(String, String)]| -> Vec<String> {
            files.iter().flat_map(|f| f.1.lines()).map(String::from).collect()
        };
        let (before, after) = (lines(&files), lines(&written));
        let changed: Vec<_> = before.iter().zip(&after).filter(|(a, b)| a != b).collect();
        assert_eq!(changed.len(), 1);
        assert_eq!(changed[0].1, "pub const UP: f64 = 1.5;");
        let random = of("random=0.3");
        assert_eq!(random.len(), 2);
        assert_ne!(random[0].edits, random[1].edits);
        assert_eq!(random, of("random=0.3"), "a seed gives the same constants");
    }

    #[test]
    fn bad_requests_are_refused() {
        assert!(MeasuredVariant::without_each("x").unwrap_err().contains("wander"));
        for text in ["UP", "UP=0", "UP=x", "NOT=2", "random=1.5", "random=.1,.2", "UP=1e9"] {
            assert!(MeasuredVariant::scaled(text, 1, 1).is_err(), "{text}");
        }
    }
}
