//! Measured results, one line of JSON for each run, written as soon as the run ends.
//!
//! The file is in the target folder, outside of version control: a measurement that was killed continues from it. Each
//! line has the commit of the measured code.

use super::ask::{MeasureOptions, RepeatMode};
use crate::command::{output, target};
use crate::files::failed;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Identifies a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LedgerKey {
    /// Protocol or sender.
    pub protocol: String,
    pub link: String,
    pub seed: u64,
    pub seconds: f64,
}

/// By name with the unit at its end; non-numbers are left out.
pub type Figures = BTreeMap<String, f64>;

/// A line of the file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LedgerRow {
    pub commit: String,
    #[serde(flatten)]
    pub key: LedgerKey,
    /// 1, or 2 where the first one's relay was late.
    pub attempt: u32,
    /// The relay's mean lateness, s.
    pub late_mean_s: f64,
    pub figures: Figures,
    /// The machine's load over the minute before.
    pub load: f64,
}

impl LedgerRow {
    /// A figure by name; NaN if it is missing.
    pub fn figure(&self, name: &str) -> f64 {
        self.figures.get(name).copied().unwrap_or(f64::NAN)
    }
}

/// The open file.
pub struct Ledger {
    path: PathBuf,
    file: File,
    commit: String,
    old: Vec<LedgerRow>,
}

impl Ledger {
    /// `name` in the target folder. A new measurement puts the old file aside.
    pub fn open(name: &str, ask: &MeasureOptions) -> Result<Ledger, String> {
        let folder = target();
        std::fs::create_dir_all(&folder).map_err(failed(folder.as_ref()))?;
        Ledger::at(&Path::new(&folder).join(name), commit()?, ask)
    }

    fn at(path: &Path, commit: String, ask: &MeasureOptions) -> Result<Ledger, String> {
        let cannot = failed(path);
        if ask.mode == RepeatMode::New && path.exists() {
            std::fs::rename(path, path.with_extension("previous.jsonl")).map_err(&cannot)?;
        }
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(cannot(e)),
        };
        let mut file = OpenOptions::new().create(true).append(true).open(path).map_err(&cannot)?;
        if !text.is_empty() && !text.ends_with('\n') {
            // Killed in the middle of a line.
            file.write_all(b"\n").map_err(&cannot)?;
        }
        let lines = || text.lines().filter(|l| !l.trim().is_empty());
        let all: Vec<LedgerRow> = lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
        let broken = lines().count() - all.len();
        let known = all.len();
        let mut old: Vec<LedgerRow> = Vec::new();
        for row in all.into_iter().filter(|r| ask.any_commit || r.commit == commit) {
            join(&mut old, row);
        }
        if known > 0 || broken > 0 {
            eprintln!(
                "{}: {} rows are kept; {} of other commits or measured again, and {broken} broken, are not",
                path.display(),
                old.len(),
                known - old.len()
            );
        }
        Ok(Ledger { path: path.to_path_buf(), file, commit, old })
    }

    /// The valid rows of the file when it was opened.
    pub fn rows(&self) -> Vec<LedgerRow> {
        self.old.clone()
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a row.
    pub fn add(
        &mut self,
        key: &LedgerKey,
        attempt: u32,
        late_mean_s: f64,
        figures: &Figures,
    ) -> Result<LedgerRow, String> {
        let finite = |x: f64| if x.is_finite() { x } else { 0.0 };
        let row = LedgerRow {
            commit: self.commit.clone(),
            key: key.clone(),
            attempt,
            late_mean_s: finite(late_mean_s),
            figures: figures
                .iter()
                .filter(|f| f.1.is_finite())
                .map(|(k, v)| (k.clone(), *v))
                .collect(),
            load: finite(load()),
        };
        let line = serde_json::to_string(&row).map_err(|e| e.to_string())? + "\n";
        let written = self.file.write_all(line.as_bytes());
        written.map_err(failed(&self.path))?;
        Ok(row)
    }
}

/// Adds a row to earlier ones; a first attempt replaces the earlier rows of its run.
pub fn join(rows: &mut Vec<LedgerRow>, row: LedgerRow) {
    if row.attempt <= 1 {
        rows.retain(|r| r.key != row.key);
    }
    rows.push(row);
}

/// The commit of the measured code, with a mark if the code was changed since.
pub fn commit() -> Result<String, String> {
    let head = output("git", &["rev-parse", "--short=12", "HEAD"])?.trim().to_string();
    // Changes to the text about measurements do not change their results.
    let code = ["core", "papers", "apps", "Cargo.toml", "Cargo.lock", "tools"];
    let changes = output("git", &[&["diff", "HEAD", "--"][..], &code].concat())?;
    if changes.is_empty() {
        return Ok(head);
    }
    let mark = changes.bytes().fold(0u64, |h, b| narrows_base::random::mix(h ^ u64::from(b)));
    Ok(format!("{head}+{:08x}", mark >> 32))
}

/// The machine's load over the last minute.
pub fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|w| w.parse().ok()).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(words: &[&str]) -> MeasureOptions {
        let words: Vec<String> = words.iter().map(|w| (*w).to_string()).collect();
        MeasureOptions::read(&words, &[], &[]).unwrap()
    }

    fn key(seed: u64) -> LedgerKey {
        LedgerKey { protocol: "rrtp".into(), link: "i".into(), seed, seconds: 20.0 }
    }

    #[test]
    fn killed_measurement_resumes_with_rows_of_its_commit() {
        let folder = std::env::temp_dir().join(format!("narrows-ledger-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("sim-vs-real.jsonl");
        let figures: Figures =
            [("goodput_bps".to_string(), 1.25e6), ("rtt_s".to_string(), f64::NAN)].into();
        let mut first = Ledger::at(&path, "a".into(), &ask(&[])).unwrap();
        let row = first.add(&key(1), 1, 1e-4, &figures).unwrap();
        assert!(row.figure("goodput_bps") == 1.25e6 && row.figure("rtt_s").is_nan());
        first.add(&key(2), 1, 1e-4, &figures).unwrap();
        // Killed while it wrote.
        first.file.write_all(b"{\"commit\":\"a\",\"prot").unwrap();
        drop(first);

        let mut second = Ledger::at(&path, "a".into(), &ask(&["--resume"])).unwrap();
        assert_eq!(second.rows().len(), 2);
        second.add(&key(3), 1, 9e-4, &figures).unwrap();
        second.add(&key(3), 2, 1e-4, &figures).unwrap();
        // Measured again: the earlier row no longer counts.
        second.add(&key(2), 1, 2e-4, &figures).unwrap();
        drop(second);
        let rows = |commit: &str, words: &[&str]| {
            Ledger::at(&path, commit.into(), &ask(words)).unwrap().rows().len()
        };
        assert_eq!(rows("a", &["--resume"]), 4, "the broken line harms none after it");
        assert_eq!(rows("b", &["--resume"]), 0, "another commit's rows are not this one's");
        assert_eq!(rows("b", &["--again", "--any-commit"]), 4);
        assert_eq!(rows("a", &[]), 0, "a new measurement begins anew");
        assert!(folder.join("sim-vs-real.previous.jsonl").exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
