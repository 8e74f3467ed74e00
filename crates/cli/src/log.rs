//! A server's log: timestamped lines on the error stream, for systemd's journal, or in a file of limited size. Clients
//! cannot fill it: lines per second are limited per network and in total, and further lines are only counted.

use crate::failure::Failure;
use narrows_peers::error::shown;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Size at which a new file is begun, in bytes; below, the number of old files that are kept.
const MAX_BYTES: u64 = 10_000_000;
const KEPT: u32 = 5;
/// Limits of lines, as a burst and a rate per second: for each source, and in total.
const OF_SOURCE: (f64, f64) = (20.0, 2.0);
const OF_ALL: (f64, f64) = (200.0, 20.0);
/// Limits for servers that accept only listed clients.
const OF_KNOWN: (f64, f64) = (2000.0, 100.0);
/// Maximum number of sources with counters of their own.
const MAX_SOURCES: usize = 1000;

/// Priority of a line, as systemd and syslog number it.
#[derive(Clone, Copy)]
pub enum LogLevel {
    Warning = 4,
    Info = 6,
}

enum To {
    Stderr,
    /// The error stream is the journal, which adds times and reads a priority.
    Journal,
    File {
        file: File,
        path: PathBuf,
        bytes: u64,
    },
}

/// A token bucket of lines.
struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    fn take(&mut self, now: Instant, (most, rate): (f64, f64)) -> bool {
        let gone = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left, self.at) = ((self.left + gone * rate).min(most), now);
        let may = self.left >= 1.0;
        self.left -= f64::from(u8::from(may));
        may
    }
}

struct LogState {
    to: To,
    all: Bucket,
    sources: BTreeMap<String, Bucket>,
    of_source: (f64, f64),
    of_all: (f64, f64),
    left_out: u64,
}

/// A server's log.
pub struct Log(Mutex<LogState>);

impl Log {
    /// A log in this file, or on the error stream.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(path: Option<&Path>) -> Result<Log, Failure> {
        Log::with(path, OF_SOURCE, OF_ALL)
    }

    /// A log with higher limits, for servers that accept only listed clients.
    ///
    /// # Errors
    /// As [`new`](Log::new).
    pub fn of_known(path: Option<&Path>) -> Result<Log, Failure> {
        Log::with(path, OF_KNOWN, OF_KNOWN)
    }

    fn with(
        path: Option<&Path>,
        of_source: (f64, f64),
        of_all: (f64, f64),
    ) -> Result<Log, Failure> {
        let to = match path {
            Some(path) => {
                let file = open(path).map_err(|e| {
                    let e = narrows_peers::Error::file(&shown(&path.display().to_string()), &e);
                    Failure::from(e.at("--log"))
                })?;
                let bytes = file.metadata().map_or(0, |m| m.len());
                To::File { file, path: path.to_path_buf(), bytes }
            }
            None if is_journal() => To::Journal,
            None => To::Stderr,
        };
        let all = Bucket { left: of_all.0, at: Instant::now() };
        let sources = BTreeMap::new();
        Ok(Log(Mutex::new(LogState { to, all, sources, of_source, of_all, left_out: 0 })))
    }

    /// Writes a line about a source, within the limits.
    pub fn line(&self, level: LogLevel, source: &str, text: &str) {
        self.line_at(Instant::now(), level, source, text);
    }

    fn line_at(&self, now: Instant, level: LogLevel, source: &str, text: &str) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.may(now, source) {
            state.left_out += 1;
            return;
        }
        let left_out = std::mem::take(&mut state.left_out);
        if left_out > 0 {
            state.to.write(
                LogLevel::Warning,
                &format!("{left_out} lines were left out: too many at once"),
            );
        }
        // Escape control characters, though most texts are clean already.
        state.to.write(level, &shown(text));
    }
}

impl LogState {
    fn may(&mut self, now: Instant, source: &str) -> bool {
        let of_source = self.of_source;
        if self.sources.len() >= MAX_SOURCES && !self.sources.contains_key(source) {
            // A source with a full bucket needs no entry.
            self.sources.retain(|_, b| {
                let gone = now.saturating_duration_since(b.at).as_secs_f64();
                b.left + gone * of_source.1 < of_source.0
            });
        }
        if self.sources.len() < MAX_SOURCES || self.sources.contains_key(source) {
            let full = || Bucket { left: of_source.0, at: now };
            let of = self.sources.entry(source.to_string()).or_insert_with(full);
            if !of.take(now, of_source) {
                return false;
            }
        }
        self.all.take(now, self.of_all)
    }
}

impl To {
    /// Writes a line. Errors are ignored, since there is no place to report them.
    fn write(&mut self, level: LogLevel, text: &str) {
        match self {
            To::Journal => drop(writeln!(std::io::stderr(), "<{}>{text}", level as u8)),
            To::Stderr => drop(writeln!(std::io::stderr(), "{} {text}", now())),
            To::File { file, path, bytes } => {
                let line = format!("{} {text}\n", now());
                if *bytes + line.len() as u64 > MAX_BYTES
                    && let Some(fresh) = rotate(path)
                {
                    (*file, *bytes) = (fresh, 0);
                }
                *bytes += line.len() as u64;
                drop(file.write_all(line.as_bytes()));
            }
        }
    }
}

/// Opens the file for appending and keeps its contents. `output_file` is not used, because it refuses links. The file
/// may be /dev/stdout, a pipe, or a link to a folder of logs.
fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// Renames `FILE` to `FILE.1`, that to `FILE.2`, and so on. Returns the new file, if possible.
fn rotate(path: &Path) -> Option<File> {
    let numbered = |n: u32| {
        let mut name = path.as_os_str().to_os_string();
        name.push(format!(".{n}"));
        PathBuf::from(name)
    };
    for n in (1..KEPT).rev() {
        // A file that does not exist yet cannot be renamed.
        let _ = std::fs::rename(numbered(n), numbered(n + 1));
    }
    std::fs::rename(path, numbered(1)).ok()?;
    OpenOptions::new().append(true).create_new(true).open(path).ok()
}

/// The time in UTC, in the format of RFC 3339.
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or_default();
    let minutes = crate::transfer::date(seconds).replace(' ', "T");
    format!("{minutes}:{:02}.{:03}Z", seconds % 60, since.subsec_millis())
}

/// Whether the error stream is systemd's journal: `JOURNAL_STREAM` contains its device and inode.
#[cfg(unix)]
fn is_journal() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(said) = std::env::var("JOURNAL_STREAM") else { return false };
    let Ok(about) = std::fs::metadata("/dev/stderr") else { return false };
    said == format!("{}:{}", about.dev(), about.ino())
}
#[cfg(not(unix))]
fn is_journal() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn lines(path: &Path) -> Vec<String> {
        std::fs::read_to_string(path).unwrap().lines().map(str::to_string).collect()
    }

    #[test]
    fn a_noisy_source_neither_fills_the_log_nor_silences_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = Log::new(Some(&path)).ok().unwrap();
        let begin = Instant::now();
        for ms in 0..4000_u64 {
            log.line_at(begin + Duration::from_millis(ms / 4), LogLevel::Info, "noisy", "again");
        }
        log.line_at(
            begin + Duration::from_secs(1),
            LogLevel::Info,
            "quiet",
            "hello\u{1b}[2J\u{200b}",
        );
        let lines = lines(&path);
        assert!(lines.len() < 30, "{}", lines.len());
        assert!(lines.iter().any(|l| l.contains("lines were left out")), "{lines:?}");
        let last = lines.last().unwrap();
        assert!(last.ends_with("hello\\u{1b}[2J\\u{200b}"), "{last}");
        // The timestamp of a line: 2026-01-02T03:04:05.678Z.
        let (time, _) = last.split_once(' ').unwrap();
        assert!(time.len() == 24 && time.ends_with('Z') && time.contains('T'), "{time}");
    }

    #[test]
    fn a_file_begins_anew_and_few_old_ones_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let text = "x".repeat(1_000_000);
        let mut at = Instant::now();
        let log = Log::new(Some(&path)).ok().unwrap();
        for _ in 0..100 {
            at += Duration::from_secs(1);
            log.line_at(at, LogLevel::Info, "one", &text);
        }
        let sizes: Vec<u64> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|e| e.unwrap().metadata().unwrap().len())
            .collect();
        assert_eq!(sizes.len(), 1 + KEPT as usize);
        assert!(sizes.iter().all(|s| *s <= MAX_BYTES), "{sizes:?}");
    }
}
