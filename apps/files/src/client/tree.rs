//! The common part of getting and putting whole folders: the list of files, and the assignment of files to threads.

use super::summary::Summary;
use crate::mode::Mode;
use crate::path::CleanPath;
use crate::transfer_control::TransferControl;
use narrows_peers::error::{Error, ErrorKind, shown};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Parallel streams, and the files and bytes that justify one more.
const AT_ONCE: usize = 4;
const FILES_EACH: usize = 48;
const BYTES_EACH: u64 = 1 << 20;
/// Most files and folders of one walk.
const MAX_WALK: usize = 1_000_000;

/// A file of a walk.
#[derive(Clone)]
pub(super) struct WalkedFile {
    /// Relative to the folder where the walk began.
    pub path: CleanPath,
    pub size: u64,
    /// Size of the server's file of that name, where it is known and there is one.
    pub there: Option<u64>,
}

/// A folder of a walk.
#[derive(Clone)]
pub(super) struct WalkedFolder {
    /// Relative to the folder where the walk began.
    pub path: CleanPath,
    /// Its permissions at the sending end, where they are known.
    pub mode: Option<Mode>,
}

/// Result of a walk: folders, each after its parent, and files.
#[derive(Default)]
pub(super) struct Walk {
    pub folders: Vec<WalkedFolder>,
    pub files: Vec<WalkedFile>,
    pub skipped: u64,
}

impl Walk {
    /// Adds a folder; its permissions are set later.
    pub fn push_folder(&mut self, path: CleanPath) {
        self.folders.push(WalkedFolder { path, mode: None });
    }

    /// Leaves out an entry of a folder; `line` has its name and the reason.
    pub fn leave_out(&mut self, control: &TransferControl, folder: &CleanPath, line: &str) {
        self.skipped = self.skipped.saturating_add(1);
        if folder.is_root() {
            control.leave_out(line);
        } else {
            control.leave_out(&format!("{}/{line}", display(folder)));
        }
    }
    pub fn check(&self) -> Result<(), Error> {
        if self.folders.len() + self.files.len() > MAX_WALK {
            let line = "more than 1000000 files and folders: get or put parts of it";
            return Err(Error::new(ErrorKind::TooLarge, line));
        }
        Ok(())
    }
}

/// State that several streams share: the files to come, and the results of the others.
pub(super) struct TreeWork {
    files: Mutex<VecDeque<WalkedFile>>,
    all: usize,
    streams: usize,
    result: Mutex<TreeOutcome>,
}

struct TreeOutcome {
    summary: Summary,
    failed: Option<Error>,
    /// The first error of a file that was left as it is, and the number of such files.
    left: Option<(Error, u64)>,
    /// Files that need a request of their own.
    again: Vec<WalkedFile>,
}

impl TreeWork {
    pub fn new(files: Vec<WalkedFile>, summary: Summary) -> TreeWork {
        let bytes = files.iter().fold(0_u64, |all, f| all.saturating_add(f.size));
        let by_bytes = usize::try_from(bytes / BYTES_EACH).unwrap_or(AT_ONCE);
        let streams = (files.len() / FILES_EACH).max(by_bytes).min(AT_ONCE - 1) + 1;
        let outcome = TreeOutcome { summary, failed: None, left: None, again: Vec::new() };
        let all = files.len();
        TreeWork { files: Mutex::new(files.into()), all, streams, result: Mutex::new(outcome) }
    }

    fn result(&self) -> MutexGuard<'_, TreeOutcome> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next file; `None` also after a failure.
    pub fn next(&self, control: &TransferControl) -> Option<WalkedFile> {
        if let Err(e) = control.check() {
            self.failed(e);
        }
        if self.is_over() {
            return None;
        }
        self.files.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    pub fn is_over(&self) -> bool {
        self.result().failed.is_some()
    }
    pub fn done(&self, summary: Summary) {
        self.result().summary.add(summary);
    }
    /// The first failure ends the transfer. [`ErrorKind::Exists`] only leaves out that file.
    pub fn failed(&self, e: Error) {
        let mut result = self.result();
        if e.kind == ErrorKind::Exists {
            let count = result.left.as_ref().map_or(0, |l| l.1) + 1;
            let first = result.left.take().map_or(e, |l| l.0);
            result.left = Some((first, count));
        } else {
            result.failed.get_or_insert(e);
        }
    }
    /// Transfers this file by a request of its own after the others.
    pub fn again(&self, file: WalkedFile) {
        self.result().again.push(file);
    }

    /// Runs `stream` on a few threads, then `one` for each remaining file.
    pub fn run(
        self,
        control: &TransferControl,
        stream: impl Fn(&TreeWork) -> Result<(), Error> + Sync,
        one: impl Fn(&WalkedFile) -> Result<Summary, Error> + Sync,
    ) -> Result<Summary, Error> {
        self.in_parallel(self.streams, || {
            if let Err(e) = stream(&self) {
                self.failed(e);
            }
        });
        let again = std::mem::take(&mut self.result().again);
        let count = again.len();
        *self.files.lock().unwrap_or_else(PoisonError::into_inner) = again.into();
        self.in_parallel(count.min(AT_ONCE), || {
            while let Some(file) = self.next(control) {
                match one(&file) {
                    Ok(summary) => self.done(summary),
                    Err(e) => self.failed(e),
                }
            }
        });
        let all = self.all;
        let TreeOutcome { summary, failed, left, .. } =
            self.result.into_inner().unwrap_or_else(PoisonError::into_inner);
        let whole = format!("{} of {all} files are whole", summary.files);
        match (failed, left) {
            (Some(e), _) => Err(e.and(&format!("{whole}, the same command goes on"))),
            (None, Some((e, 1))) => Err(e.and(&whole)),
            (None, Some((e, n))) => Err(e.and(&format!("and {} more; {whole}", n - 1))),
            (None, None) => Ok(summary),
        }
    }

    /// Runs `work` on this thread, and on further ones as far as the system provides them.
    fn in_parallel(&self, threads: usize, work: impl Fn() + Sync) {
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // With fewer threads the same work takes longer.
                let _ = std::thread::Builder::new().spawn_scoped(scope, &work);
            }
            work();
        });
    }
}

/// Leaves out a file that cannot be read, and names it with the reason.
pub(super) fn left_out(control: &TransferControl, path: &CleanPath, e: &Error) -> Summary {
    let what = display(path);
    // Errors of the disk begin with the path here or at the server.
    let why = e.line.split_once(&format!("{what}: ")).map_or(e.line.as_str(), |(_, why)| why);
    control.leave_out(&format!("{what}: {why}"));
    Summary { skipped: 1, ..Summary::default() }
}

pub(super) fn below(path: &CleanPath, relative: &CleanPath) -> Result<CleanPath, Error> {
    relative.names().try_fold(path.clone(), |path, name| path.join(name))
}

pub(super) fn display(path: &CleanPath) -> String {
    if path.is_root() { ".".into() } else { shown(&path.to_string()) }
}
