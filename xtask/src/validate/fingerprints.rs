//! Inputs of each experiment's pages, so that `--check` runs only changed experiments.
//!
//! A fingerprint has two parts: the results of one seed of every scenario, which change with the simulator and the
//! measures, and the files of the folder, pages included. It misses changes that show only in other seeds, or in the
//! check of the claims. So each commit also selects further experiments, up to a number of simulated events, and runs
//! them wholly. Experiments with more events than that are run wholly only by `--check --all`, and one in four commits
//! takes their simulated fingerprint; the same holds for the comparisons with Linux and ns-2, which lack it.

use crate::files::{entries, failed, keep, kept, name};
use narrows_experiments::{experiment, run};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

const FILE: &str = "experiments/fingerprints.json";
/// Simulated events of the experiments that a commit selects: about half a minute of a processor.
const EVENTS_PER_TURN: u64 = 200_000_000;
/// Of so many commits, one takes the fingerprint of a large experiment.
const COMMITS: u64 = 4;

/// The recorded fingerprints, and the experiments that the present commit selects.
pub struct Fingerprints {
    path: PathBuf,
    on_record: BTreeMap<String, Fingerprint>,
    in_turn: BTreeSet<String>,
    commit: u64,
}

#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
struct Fingerprint {
    simulated: String,
    files: String,
    /// About how many events the whole experiment simulates.
    events: u64,
}

impl Fingerprints {
    /// # Errors
    /// The file cannot be read or has other content.
    pub fn read(root: &Path) -> Result<Fingerprints, String> {
        let path = root.join(FILE);
        let on_record: BTreeMap<String, Fingerprint> =
            if path.exists() { kept(&path)? } else { BTreeMap::new() };
        let events = on_record.iter().map(|(id, f)| (id.as_str(), f.events));
        let commit = commit(root);
        let in_turn = turn(events, commit);
        Ok(Fingerprints { path, on_record, in_turn, commit })
    }

    /// Whether an experiment is to be run at this commit whether it has changed or not.
    pub fn in_turn(&self, id: &str) -> bool {
        self.in_turn.contains(id)
    }

    /// Whether this commit is one of those that simulate a large experiment, or a comparison of this name.
    pub fn is_simulated(&self, id: &str) -> bool {
        is_one_of(id, self.commit)
    }

    /// Whether neither the folder's files nor its simulations differ from the record. The simulations of a large
    /// experiment are compared at some commits only.
    ///
    /// # Errors
    /// An experiment that cannot be read or run.
    pub fn still(&self, folder: &Path, id: &str, jobs: usize) -> Result<bool, String> {
        let Some(on_record) = self.on_record.get(id) else { return Ok(false) };
        let left_out = on_record.events > EVENTS_PER_TURN && !self.is_simulated(id);
        Ok(files(folder)? == on_record.files
            && (left_out || text(&simulated(folder, &[], jobs)?) == on_record.simulated))
    }

    /// Records the present state of an experiment, after its pages were written with `seeds` seeds for each claim.
    ///
    /// # Errors
    /// An experiment that cannot be read or run.
    pub fn put(
        &mut self,
        folder: &Path,
        id: &str,
        seeds: &[usize],
        jobs: usize,
    ) -> Result<(), String> {
        let now = simulated(folder, seeds, jobs)?;
        let now = Fingerprint { simulated: text(&now), files: files(folder)?, events: now.events };
        self.on_record.insert(id.to_string(), now);
        Ok(())
    }

    /// Writes the records of the existing experiments.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, ids: &[String]) -> Result<(), String> {
        self.on_record.retain(|id, _| ids.contains(id));
        keep(&self.path, &self.on_record)
    }
}

fn simulated(folder: &Path, seeds: &[usize], jobs: usize) -> Result<run::RunFingerprint, String> {
    run::fingerprint(&experiment::load(folder)?, seeds, jobs)
}

fn text(found: &run::RunFingerprint) -> String {
    format!("{:016x}", found.digest)
}

/// A number that differs by experiment and commit.
fn place(id: &str, commit: u64) -> u64 {
    number(blake3::hash(&[id.as_bytes(), &commit.to_be_bytes()].concat()).as_bytes())
}

fn is_one_of(id: &str, commit: u64) -> bool {
    place(id, commit).is_multiple_of(COMMITS)
}

/// The experiments of a commit: they are taken in an order that differs by commit, up to a number of events.
fn turn<'a>(events: impl Iterator<Item = (&'a str, u64)>, commit: u64) -> BTreeSet<String> {
    let mut all: Vec<(u64, &str, u64)> = events.map(|(id, n)| (place(id, commit), id, n)).collect();
    all.sort_unstable();
    let mut left = EVENTS_PER_TURN;
    let mut drawn = BTreeSet::new();
    for (_, id, events) in all {
        if events <= left {
            left -= events;
            drawn.insert(id.to_string());
        }
    }
    drawn
}

/// Names and contents of a folder's files.
fn files(folder: &Path) -> Result<String, String> {
    let mut all = blake3::Hasher::new();
    for path in entries(folder)?.iter().filter(|p| p.is_file()) {
        let content = std::fs::read(path).map_err(failed(path))?;
        all.update(blake3::hash(name(path).as_bytes()).as_bytes());
        all.update(blake3::hash(&content).as_bytes());
    }
    Ok(all.finalize().to_hex()[..16].to_string())
}

/// A number that differs from commit to commit; 0 without a repository.
fn commit(root: &Path) -> u64 {
    let git = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root).output();
    git.map_or(0, |out| number(blake3::hash(&out.stdout).as_bytes()))
}

fn number(bytes: &[u8; 32]) -> u64 {
    bytes.iter().take(8).fold(0, |all, byte| all << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: u64 = 1_000_000;
    const ALL: [(&str, u64); 5] =
        [("a", 9 * M), ("b", 75 * M), ("c", 125 * M), ("d", 195 * M), ("huge", 2000 * M)];

    /// Every experiment that fits into a turn is selected at some commit, regardless of its size.
    #[test]
    fn experiment_within_a_turns_budget_runs_in_its_turn() {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for commit in 0..100 {
            let drawn = turn(ALL.into_iter(), commit);
            let events = ALL.iter().filter(|a| drawn.contains(a.0)).map(|a| a.1).sum::<u64>();
            assert!(events <= EVENTS_PER_TURN, "{drawn:?}");
            drawn.into_iter().for_each(|id| *seen.entry(id).or_default() += 1);
        }
        assert!(ALL[..4].iter().all(|a| seen[a.0] >= 15), "{seen:?}");
        assert!(!seen.contains_key("huge"));
    }

    /// Each large experiment is compared at about one of four commits, and not all at the same ones.
    #[test]
    fn large_experiments_are_compared_at_one_commit_in_four() {
        let of = |id: &str| (0..400).filter(|n| is_one_of(id, *n)).collect::<Vec<u64>>();
        let ns2 = of("ns2");
        let huge = of("huge");
        assert!((60..140).contains(&ns2.len()) && (60..140).contains(&huge.len()));
        assert_ne!(ns2, huge);
    }

    #[test]
    fn another_commit_draws_others() {
        let of = |commit| turn(ALL.into_iter(), commit);
        assert_eq!(of(7), of(7));
        assert!((0..20).any(|commit| of(commit) != of(7)));
    }
}
