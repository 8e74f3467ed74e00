//! The journal of finished runs, an append-only file from which a sweep resumes.
//!
//! ```text
//! KEY RUN #CHECK      one line per run; a line with a wrong checksum is ignored
//! ```
//!
//! A line is written at once, so a killed sweep leaves at most one incomplete line, at the end. Programs that share a
//! sweep's runs each write a journal of their own, and read all of them.

use super::found::StoredResult;
use super::key::RunKey;
use narrows_base::random::mix;
use narrows_scenario::output_file;
use narrows_scenario::text_file::plain;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The journal's name in the output folder.
pub const NAME: &str = "sweep.journal";
/// Limit on a line's length; longer ones are ignored.
const MAX_LINE_BYTES: u64 = 1 << 24;
/// Interval at which the journal is forced to the disk. A killed process loses no finished run even without that.
const SYNC: Duration = Duration::from_secs(2);

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    /// `None` for [`Journal::nowhere`].
    file: Option<File>,
    synced: Instant,
}

/// One of several programs that share the runs of a sweep: number `number`, counted from 1, of `of`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SweepPart {
    /// Counted from 1.
    pub number: usize,
    /// Number of programs.
    pub of: usize,
}

impl SweepPart {
    /// Whether a run belongs to this part. Runs are assigned in turn, so that all parts have small and large ones.
    pub fn has(self, run: usize) -> bool {
        run % self.of == self.number - 1
    }
}

/// All runs in the file, and the file open for appending. `fresh` discards its contents.
///
/// # Errors
/// One line that names the file and the error.
pub fn open(
    folder: &Path,
    fresh: bool,
) -> Result<(BTreeMap<RunKey, StoredResult>, Journal), String> {
    open_own(folder, NAME, fresh)
}

/// The same for a program that shares the runs with others: it writes a journal of its own.
///
/// # Errors
/// As [`open`].
pub fn open_part(
    folder: &Path,
    part: SweepPart,
) -> Result<(BTreeMap<RunKey, StoredResult>, Journal), String> {
    open_own(folder, &format!("{NAME}.{}", part.number), false)
}

fn open_own(
    folder: &Path,
    own: &str,
    fresh: bool,
) -> Result<(BTreeMap<RunKey, StoredResult>, Journal), String> {
    let path = folder.join(own);
    let say = |e: std::io::Error| format!("cannot write {}: {}", path.display(), plain(&e));
    let mut runs = BTreeMap::new();
    let mut torn = false;
    for other in journals(folder).map_err(say)? {
        if fresh {
            std::fs::remove_file(&other).map_err(say)?;
            continue;
        }
        let (found, has_no_end) = read(&other).map_err(say)?;
        runs.extend(found);
        torn |= has_no_end && other == path;
    }
    let mut file = match fresh {
        true => output_file::create(&path),
        false => output_file::append(&path),
    }
    .map_err(say)?;
    if torn {
        file.write_all(b"\n").map_err(say)?;
    }
    Ok((runs, Journal { file: Some(file), synced: Instant::now() }))
}

/// The folder's journals: of one program alone, and of those that share a sweep.
fn journals(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let rest = name.to_str().and_then(|n| n.strip_prefix(NAME));
        let number =
            |rest: &str| rest.strip_prefix('.').is_some_and(|n| n.parse::<usize>().is_ok());
        // Reading a pipe would wait for a writer, and a link may lead elsewhere.
        if rest.is_some_and(|rest| rest.is_empty() || number(rest)) && entry.file_type()?.is_file()
        {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// The runs, and whether the last line is incomplete.
fn read(path: &Path) -> std::io::Result<(BTreeMap<RunKey, StoredResult>, bool)> {
    let mut reader = BufReader::new(File::open(path)?);
    let mut runs = BTreeMap::new();
    let mut line = Vec::new();
    let mut torn = false;
    loop {
        line.clear();
        if reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            return Ok((runs, torn));
        }
        torn = line.pop_if(|b| *b == b'\n').is_none();
        if let Some((key, found)) = std::str::from_utf8(&line).ok().and_then(entry) {
            runs.insert(key, found);
        }
    }
}

fn entry(line: &str) -> Option<(RunKey, StoredResult)> {
    let (body, check) = line.rsplit_once(" #")?;
    if u64::from_str_radix(check, 16).ok()? != sum(body) {
        return None;
    }
    let (key, run) = body.split_once(' ')?;
    Some((RunKey::parse(key)?, StoredResult::parse(run)?))
}

fn sum(text: &str) -> u64 {
    text.bytes().fold(text.len() as u64, |h, b| mix(h ^ u64::from(b)))
}

impl Journal {
    /// A journal that discards all runs.
    pub fn nowhere() -> Journal {
        Journal { file: None, synced: Instant::now() }
    }

    /// Adds a run.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn add(&mut self, key: RunKey, found: &StoredResult) -> Result<(), String> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let body = format!("{key} {}", found.line());
        let line = format!("{body} #{:x}\n", sum(&body));
        let mut done = file.write_all(line.as_bytes());
        if done.is_ok() && self.synced.elapsed() > SYNC {
            done = file.sync_data();
            self.synced = Instant::now();
        }
        done.map_err(|e| format!("cannot write {NAME}: {}", plain(&e)))
    }
}
