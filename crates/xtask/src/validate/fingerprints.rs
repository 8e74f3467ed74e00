//! What each experiment's pages were made from, so that `--check` runs again only what has changed.
//!
//! A fingerprint has two parts: what one seed of every scenario gives, which changes with the
//! simulator and with what is measured, and the files of the folder, pages included. A change in
//! how verdicts follow from what was measured is in neither; that is what the turns are for.

use narrows_papers::{experiment, run};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const FILE: &str = "experiments/fingerprints.json";
/// Every experiment is run by one in so many commits, also if nothing has changed.
const TURNS: u64 = 5;

/// The fingerprints on record, and whose turn it is.
pub struct Fingerprints {
    path: PathBuf,
    on_record: BTreeMap<String, Fingerprint>,
    turn: u64,
}

#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
struct Fingerprint {
    simulated: String,
    files: String,
}

impl Fingerprints {
    /// # Errors
    /// A file that cannot be read or is something else.
    pub fn read(root: &Path) -> Result<Fingerprints, String> {
        let path = root.join(FILE);
        let on_record = match std::fs::read_to_string(&path) {
            Ok(text) => {
                serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?
            }
            Err(_) => BTreeMap::new(),
        };
        Ok(Fingerprints { path, on_record, turn: turn(root) })
    }

    /// Whether an experiment is to be run at this commit whether it has changed or not.
    pub fn in_turn(&self, id: &str) -> bool {
        (number(blake3::hash(id.as_bytes()).as_bytes()) ^ self.turn).is_multiple_of(TURNS)
    }

    /// Whether neither the folder's files nor what it simulates differ from what is on record.
    ///
    /// # Errors
    /// An experiment that cannot be read or run.
    pub fn still(&self, folder: &Path, id: &str, jobs: usize) -> Result<bool, String> {
        let Some(on_record) = self.on_record.get(id) else { return Ok(false) };
        Ok(files(folder)? == on_record.files && simulated(folder, jobs)? == on_record.simulated)
    }

    /// Puts on record what an experiment is now, its pages written.
    ///
    /// # Errors
    /// An experiment that cannot be read or run.
    pub fn put(&mut self, folder: &Path, id: &str, jobs: usize) -> Result<(), String> {
        let now = Fingerprint { simulated: simulated(folder, jobs)?, files: files(folder)? };
        self.on_record.insert(id.to_string(), now);
        Ok(())
    }

    /// Writes what is on record of those experiments that there are.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&mut self, ids: &[String]) -> Result<(), String> {
        self.on_record.retain(|id, _| ids.contains(id));
        let text = serde_json::to_string_pretty(&self.on_record).map_err(|e| e.to_string())?;
        std::fs::write(&self.path, text + "\n").map_err(|e| format!("{}: {e}", self.path.display()))
    }
}

fn simulated(folder: &Path, jobs: usize) -> Result<String, String> {
    Ok(format!("{:016x}", run::fingerprint(&experiment::load(folder)?, jobs)?))
}

/// Names and contents of a folder's files.
fn files(folder: &Path) -> Result<String, String> {
    let say = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(say)? {
        paths.push(entry.map_err(say)?.path());
    }
    paths.sort();
    let mut all = blake3::Hasher::new();
    for path in paths.iter().filter(|p| p.is_file()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let content = std::fs::read(path).map_err(say)?;
        all.update(blake3::hash(name.as_bytes()).as_bytes());
        all.update(blake3::hash(&content).as_bytes());
    }
    Ok(all.finalize().to_hex()[..16].to_string())
}

/// A number that differs from commit to commit; 0 where there is no repository.
fn turn(root: &Path) -> u64 {
    let git = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root).output();
    git.map_or(0, |out| number(blake3::hash(&out.stdout).as_bytes()))
}

fn number(bytes: &[u8; 32]) -> u64 {
    bytes.iter().take(8).fold(0, |all, byte| all << 8 | u64::from(*byte))
}
