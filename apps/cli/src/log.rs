//! A server's log: timestamped lines on the error stream, for systemd's journal, or in a file of limited size. Clients
//! cannot fill it: lines per second are limited per network and in total, and further lines are only counted.

use crate::failure::Failure;
use clap::Args;
use narrows_base::SpecError;
use narrows_base::text::escaped_json;
use narrows_lab::options::RARE;
use narrows_peers::error::shown;
use serde_json::{Map, Value};
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
const OF_SOURCE: LineRate = LineRate { burst: 20.0, per_second: 2.0 };
const OF_ALL: LineRate = LineRate { burst: 200.0, per_second: 20.0 };
/// Limits for servers that accept only listed clients.
const OF_KNOWN: LineRate = LineRate { burst: 2000.0, per_second: 100.0 };
/// Maximum number of sources with counters of their own.
const MAX_SOURCES: usize = 1000;

/// The options of every command with a log.
#[derive(Args, Clone, Debug, Default)]
pub struct LogArgs {
    /// Write the log to this file; at 10 MB a new one is begun, five old ones are kept [default: the error stream]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Log only lines of this level and above: error, warn or info [default: info]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "LEVEL", value_parser = level)]
    pub log_level: Option<LogLevel>,
    /// Format of the log's lines: text, or json for an object in each line [default: text]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "FORMAT", value_parser = format)]
    pub log_format: Option<LogFormat>,
}

/// Level of a line, with its priority in systemd and syslog.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LogLevel {
    /// A fault of this machine: its disk, its memory, a thread.
    Error = 3,
    Warning = 4,
    Info = 6,
}

const LEVELS: [(&str, LogLevel); 3] =
    [("error", LogLevel::Error), ("warn", LogLevel::Warning), ("info", LogLevel::Info)];

/// Format of the lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    Text,
    Json,
}

const FORMATS: [(&str, LogFormat); 2] = [("text", LogFormat::Text), ("json", LogFormat::Json)];

fn level(text: &str) -> Result<LogLevel, SpecError> {
    named("log level", text, &LEVELS)
}

fn format(text: &str) -> Result<LogFormat, SpecError> {
    named("log format", text, &FORMATS)
}

fn named<T: Copy>(kind: &str, text: &str, all: &[(&str, T)]) -> Result<T, SpecError> {
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let found = all.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    found.ok_or_else(|| SpecError::unknown(kind, &shown(text), &names))
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

/// Limits of a [`Bucket`], in lines.
#[derive(Clone, Copy)]
struct LineRate {
    burst: f64,
    per_second: f64,
}

/// A token bucket of lines.
struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    fn take(&mut self, now: Instant, rate: LineRate) -> bool {
        let gone = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + gone * rate.per_second).min(rate.burst);
        self.at = now;
        let may = self.left >= 1.0;
        self.left -= f64::from(u8::from(may));
        may
    }
}

struct LogState {
    to: To,
    /// The last level that is written.
    level: LogLevel,
    format: LogFormat,
    all: Bucket,
    sources: BTreeMap<String, Bucket>,
    of_source: LineRate,
    of_all: LineRate,
    left_out: u64,
}

/// A server's log.
pub struct Log(Mutex<LogState>);

impl Log {
    /// A log as these options describe it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(options: &LogArgs) -> Result<Log, Failure> {
        Log::with(options, OF_SOURCE, OF_ALL)
    }

    /// A log with higher limits, for servers that accept only listed clients.
    ///
    /// # Errors
    /// As [`new`](Log::new).
    pub fn of_known(options: &LogArgs) -> Result<Log, Failure> {
        Log::with(options, OF_KNOWN, OF_KNOWN)
    }

    fn with(options: &LogArgs, of_source: LineRate, of_all: LineRate) -> Result<Log, Failure> {
        let to = match options.log.as_deref() {
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
        let all = Bucket { left: of_all.burst, at: Instant::now() };
        let sources = BTreeMap::new();
        let log = Log(Mutex::new(LogState {
            to,
            level: LogLevel::Info,
            format: LogFormat::Text,
            all,
            sources,
            of_source,
            of_all,
            left_out: 0,
        }));
        log.reconfigure(options);
        Ok(log)
    }

    /// Sets level and format; the place of the log stays.
    pub fn reconfigure(&self, options: &LogArgs) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.level = options.log_level.unwrap_or(LogLevel::Info);
        state.format = options.log_format.unwrap_or(LogFormat::Text);
    }

    /// Writes a line about a source, within the limits.
    pub fn line(&self, level: LogLevel, source: &str, text: &str) {
        self.event(level, source, text, Map::new());
    }

    /// As [`line`](Log::line), with fields for lines of JSON.
    pub fn event(&self, level: LogLevel, source: &str, text: &str, fields: Map<String, Value>) {
        self.line_at(Instant::now(), level, source, text, fields);
    }

    fn line_at(
        &self,
        now: Instant,
        level: LogLevel,
        source: &str,
        text: &str,
        fields: Map<String, Value>,
    ) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if level > state.level {
            return;
        }
        if !state.may(now, source) {
            state.left_out += 1;
            return;
        }
        let left_out = std::mem::take(&mut state.left_out);
        if left_out > 0 && LogLevel::Warning <= state.level {
            let line = format!("{left_out} lines were left out: too many at once");
            let fields = Map::from_iter([("left_out".into(), left_out.into())]);
            state.write(LogLevel::Warning, "log", &line, fields);
        }
        state.write(level, source, text, fields);
    }
}

impl LogState {
    fn write(&mut self, level: LogLevel, source: &str, text: &str, fields: Map<String, Value>) {
        let line = match self.format {
            // Escape control characters, though most texts are clean already.
            LogFormat::Text => match self.to {
                To::Journal => shown(text),
                _ => format!("{} {}", now(), shown(text)),
            },
            LogFormat::Json => {
                let word = LEVELS.iter().find(|(_, l)| *l == level).map_or("", |(word, _)| *word);
                let mut object = fields;
                for (key, value) in [
                    ("time", now().as_str()),
                    ("level", word),
                    ("source", source),
                    ("message", text),
                ] {
                    object.insert(key.into(), value.into());
                }
                escaped_json(&Value::Object(object).to_string()).into_owned()
            }
        };
        self.to.write(level, &line);
    }

    fn may(&mut self, now: Instant, source: &str) -> bool {
        let of_source = self.of_source;
        if self.sources.len() >= MAX_SOURCES && !self.sources.contains_key(source) {
            // A source with a full bucket needs no entry.
            self.sources.retain(|_, b| {
                let gone = now.saturating_duration_since(b.at).as_secs_f64();
                b.left + gone * of_source.per_second < of_source.burst
            });
        }
        if self.sources.len() < MAX_SOURCES || self.sources.contains_key(source) {
            let full = || Bucket { left: of_source.burst, at: now };
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
            To::Stderr => drop(writeln!(std::io::stderr(), "{text}")),
            To::File { file, path, bytes } => {
                let line = format!("{text}\n");
                if *bytes + line.len() as u64 > MAX_BYTES
                    && let Some(fresh) = rotate(path)
                {
                    *file = fresh;
                    *bytes = 0;
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

    fn to(path: &Path) -> LogArgs {
        LogArgs { log: Some(path.into()), ..LogArgs::default() }
    }

    fn lines(path: &Path) -> Vec<String> {
        std::fs::read_to_string(path).unwrap().lines().map(str::to_string).collect()
    }

    #[test]
    fn a_noisy_source_neither_fills_the_log_nor_silences_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = Log::new(&to(&path)).ok().unwrap();
        let begin = Instant::now();
        for ms in 0..4000_u64 {
            log.line_at(
                begin + Duration::from_millis(ms / 4),
                LogLevel::Info,
                "noisy",
                "again",
                Map::new(),
            );
        }
        log.line_at(
            begin + Duration::from_secs(1),
            LogLevel::Info,
            "quiet",
            "hello\u{1b}[2J\u{200b}",
            Map::new(),
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
    fn json_line_of_hostile_text_is_one_object() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let options = LogArgs { log_format: Some(LogFormat::Json), ..to(&path) };
        let log = Log::new(&options).ok().unwrap();
        let invalid = String::from_utf8_lossy(b"\xff\xfe");
        let text = format!("\"}}{{\n\r\0\u{1b}[2J\u{9b}\u{202e}\\ {invalid}");
        let fields = Map::from_iter([
            ("path".into(), text.as_str().into()),
            // No field replaces those of every line.
            ("level".into(), "info".into()),
        ]);
        log.event(LogLevel::Warning, &text, &text, fields);
        let lines = lines(&path);
        let [line] = lines.as_slice() else { panic!("{lines:?}") };
        assert!(!line.contains(narrows_base::text::is_hidden), "{line:?}");
        let found: Value = serde_json::from_str(line).unwrap();
        for key in ["message", "source", "path"] {
            assert_eq!(found[key], text.as_str());
        }
        assert_eq!(found["level"], "warn");
        assert_eq!(found["time"].as_str().unwrap().len(), "2026-01-02T03:04:05.678Z".len());
    }

    #[test]
    fn log_level_leaves_out_lines_below_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = Log::new(&to(&path)).ok().unwrap();
        let all = || {
            for (word, level) in LEVELS {
                log.line(level, "one", word);
            }
        };
        all();
        for level in [LogLevel::Warning, LogLevel::Error] {
            log.reconfigure(&LogArgs { log_level: Some(level), ..LogArgs::default() });
            all();
        }
        let words: Vec<String> =
            lines(&path).iter().map(|l| l.rsplit(' ').next().unwrap().to_string()).collect();
        assert_eq!(words, ["error", "warn", "info", "error", "warn", "error"]);
        assert_eq!(
            level("debug").unwrap_err().to_string(),
            "unknown log level 'debug'; expected one of: error, warn, info"
        );
    }

    #[test]
    fn a_file_begins_anew_and_few_old_ones_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let text = "x".repeat(1_000_000);
        let mut at = Instant::now();
        let log = Log::new(&to(&path)).ok().unwrap();
        for _ in 0..100 {
            at += Duration::from_secs(1);
            log.line_at(at, LogLevel::Info, "one", &text, Map::new());
        }
        let sizes: Vec<u64> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|e| e.unwrap().metadata().unwrap().len())
            .collect();
        assert_eq!(sizes.len(), 1 + KEPT as usize);
        assert!(sizes.iter().all(|s| *s <= MAX_BYTES), "{sizes:?}");
    }
}
