//! Progress of a transfer: one line on the error stream if that is a terminal.

use super::local::size;
use super::open::ServerSilence;
use crate::terminal::{error_width, note};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use narrows_base::Duration;
use narrows_files::ProgressEvent;
use narrows_peers::learned::Delivered;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Maximum number of skipped entries of a folder that are shown.
const MAX_LEFT_OUT: usize = 100;
/// Silence that is reported; the server normally sends every second, or is probed after five.
const LONG: Duration = Duration::from_secs(8);
/// Seconds over which the rate is measured: several round trips of a satellite, and frames of a slow link.
const RATE_WINDOW: f64 = 5.0;
/// Columns of the bar. It is left out where the line has no place for it.
const BAR: usize = 20;
/// Fewest columns that show a long name.
const MIN_NAME: usize = 4;

/// A line with the rate and the remaining time.
pub struct TransferProgress {
    bar: ProgressBar,
    what: String,
    folder: bool,
    silent: AtomicBool,
    /// Lines already shown about skipped entries.
    left_out: Mutex<Vec<String>>,
    counts: Mutex<TransferCounts>,
}

/// Bytes of one attempt.
#[derive(Default)]
struct TransferCounts {
    total: u64,
    /// At the target before.
    held: u64,
    /// Received, or written to the connection.
    moved: u64,
    /// `moved` over time, for `--learn`.
    delivered: Delivered,
    meter: RateMeter,
}

/// Received or acknowledged bytes over the last seconds.
#[derive(Default)]
struct RateMeter {
    samples: VecDeque<(Instant, u64)>,
    bytes: u64,
}

impl RateMeter {
    fn add(&mut self, now: Instant, bytes: u64) {
        // Retransmission buffers are counted at another instant than the bytes written.
        self.bytes = self.bytes.max(bytes);
        // The time before the first byte does not count for the rate.
        if self.samples.back().is_some_and(|(_, bytes)| *bytes == 0) {
            self.samples.clear();
        }
        let age = |then: Instant| now.saturating_duration_since(then).as_secs_f64();
        while self.samples.get(1).is_some_and(|(then, _)| age(*then) >= RATE_WINDOW) {
            self.samples.pop_front();
        }
        self.samples.push_back((now, self.bytes));
    }

    /// In Mbit/s; absent before there is an interval.
    fn rate(&self) -> Option<f64> {
        let (first, before) = self.samples.front()?;
        let (last, bytes) = self.samples.back()?;
        let seconds = last.saturating_duration_since(*first).as_secs_f64();
        (seconds > 0.0).then(|| (bytes - before) as f64 * 8e-6 / seconds)
    }
}

impl TransferCounts {
    fn tell(&mut self, step: ProgressEvent, folder: bool) {
        match step {
            // A folder's size is known from its listing, a single file's from the file.
            ProgressEvent::Expect(bytes) if folder => self.total = self.total.saturating_add(bytes),
            ProgressEvent::Begin(bytes) if !folder => self.total = bytes,
            ProgressEvent::Held(bytes) => self.held = self.held.saturating_add(bytes),
            ProgressEvent::Moved(bytes) => {
                // The time before the first byte does not count for the rate.
                if self.moved == 0 {
                    self.delivered.seen(Instant::now(), 0);
                }
                self.moved = self.moved.saturating_add(bytes);
                self.delivered.seen(Instant::now(), self.moved);
            }
            // The line does not show other steps.
            _ => {}
        }
    }

    /// The line, in at most `columns`.
    fn line(&self, what: &str, columns: usize) -> String {
        let done = self.held.saturating_add(self.meter.bytes);
        let fraction = if self.total == 0 { 0.0 } else { done as f64 / self.total as f64 };
        let percent = format!("{:.0}%", (fraction.min(1.0) * 100.0).floor());
        let left = self.total.saturating_sub(done);
        let state = match self.meter.rate() {
            _ if self.total > 0 && left == 0 => ", finishing".into(),
            None => String::new(),
            Some(mbit) if mbit > 0.0 => {
                format!(", {}, {} left", rate(mbit), time(left as f64 * 8e-6 / mbit))
            }
            Some(_) => format!(", {}", rate(0.0)),
        };
        if self.total == 0 {
            return named(what, &percent, columns);
        }
        let long = format!("{percent} of {}{state}", size(self.total));
        let room = columns.saturating_sub(long.len() + 1);
        if room < name_width(what).min(MIN_NAME) {
            return named(what, &format!("{percent}{state}"), columns);
        }
        if room < BAR + 1 + name_width(what).min(BAR) {
            return named(what, &long, columns);
        }
        let full = ((fraction.min(1.0) * BAR as f64) as usize).min(BAR);
        let bar = format!("{}{}", "█".repeat(full), "░".repeat(BAR - full));
        format!("{} {bar} {long}", shortened(what, room - BAR - 1))
    }
}

/// A rate, as in the line and in the result.
pub fn rate(mbit: f64) -> String {
    if mbit >= 1.0 { format!("{mbit:.1} Mbit/s") } else { format!("{mbit:.3} Mbit/s") }
}

fn time(seconds: f64) -> String {
    let seconds = seconds.ceil();
    if seconds < 100.0 {
        format!("{seconds} s")
    } else if seconds < 6000.0 {
        format!("{:.0} min", seconds / 60.0)
    } else if seconds < 360_000.0 {
        format!("{:.0} h", seconds / 3600.0)
    } else {
        format!("{:.0} days", seconds / 86_400.0)
    }
}

/// Columns of a text; characters beyond ASCII may be two wide.
fn width(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

fn name_width(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// The text, or its beginning and `…`, in at most `columns`.
fn shortened(text: &str, columns: usize) -> String {
    if name_width(text) <= columns {
        return text.into();
    }
    let mut room = columns.saturating_sub(width('…'));
    let fits = |c: &char| {
        let before = room;
        room = room.saturating_sub(width(*c));
        before >= width(*c)
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// A name and its state; without the name where there is no place for it.
fn named(what: &str, state: &str, columns: usize) -> String {
    match columns.saturating_sub(state.len() + 1) {
        room if room < name_width(what).min(MIN_NAME) => shortened(state, columns),
        room => format!("{} {state}", shortened(what, room)),
    }
}

impl TransferProgress {
    /// A line for this file or folder. indicatif hides it if the error stream is not a terminal.
    pub fn new(what: String, folder: bool) -> TransferProgress {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        TransferProgress {
            bar,
            what,
            folder,
            silent: AtomicBool::new(false),
            left_out: Mutex::default(),
            counts: Mutex::default(),
        }
    }

    fn counts(&self) -> MutexGuard<'_, TransferCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins again from zero: the previous attempt was not answered.
    pub fn begin(&self) {
        *self.counts() = TransferCounts::default();
    }

    /// Bytes moved so far, over time.
    pub fn delivered(&self) -> Delivered {
        self.counts().delivered.clone()
    }

    /// Runs `work` while the line is hidden.
    pub fn beside<T>(&self, work: impl FnOnce() -> T) -> T {
        self.bar.suspend(work)
    }

    /// Handles a step of the transfer.
    pub fn tell(&self, step: ProgressEvent) {
        self.counts().tell(step, self.folder);
    }

    /// Draws the line; to be called a few times a second. `unacknowledged` counts the bytes written that may not have
    /// arrived; `shares` are those of the paths.
    pub fn tick(
        &self,
        silence: Option<ServerSilence>,
        unacknowledged: impl FnOnce() -> u64,
        shares: &str,
    ) {
        let silence = silence.filter(|silence| silence.so_far >= LONG);
        self.report_silence(silence);
        let moved = self.counts().moved;
        let arrived = moved.saturating_sub(unacknowledged());
        let columns = error_width().unwrap_or(80).saturating_sub(1);
        let mut counts = self.counts();
        counts.meter.add(Instant::now(), arrived);
        let line = match silence {
            Some(silence) => named(&self.what, &silent(silence), columns),
            None if shares.is_empty() => counts.line(&self.what, columns),
            // Without a place for them, the line shows no shares.
            None => match columns.saturating_sub(shares.len() + 2) {
                room if room < 2 * BAR => counts.line(&self.what, columns),
                room => format!("{}, {shares}", counts.line(&self.what, room)),
            },
        };
        drop(counts);
        self.bar.set_message(line);
    }

    /// Without a terminal, each silence of the server is one line.
    fn report_silence(&self, silence: Option<ServerSilence>) {
        let before = self.silent.swap(silence.is_some(), Ordering::SeqCst);
        if !self.bar.is_hidden() {
            return;
        }
        match silence {
            Some(silence) if !before => {
                note(&format!("narrows: {}: {}", self.what, silent(silence)));
            }
            None if before => note(&format!("narrows: {}: it goes on", self.what)),
            _ => {}
        }
    }

    /// Reports a skipped entry of a folder, once each, up to a maximum number.
    pub fn leave_out(&self, line: &str) {
        let mut shown = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.len() > MAX_LEFT_OUT || shown.iter().any(|s| s == line) {
            return;
        }
        shown.push(line.to_string());
        let more = shown.len() > MAX_LEFT_OUT;
        let text = if more { "and more are left out".into() } else { format!("left out: {line}") };
        self.beside(|| note(&format!("narrows: {text}")));
    }

    /// Removes the line.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn silent(silence: ServerSilence) -> String {
    let so_far = silence.so_far.as_secs_f64();
    let limit = silence.limit.as_secs_f64();
    format!("silent for {so_far:.0} s, given up after {limit:.0} s")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transfer of 20 MB, of which 8 MB were held, that moves 1 MB/s for `seconds`.
    fn counts(seconds: u64) -> TransferCounts {
        let mut counts = TransferCounts::default();
        for bytes in [5_000_000, 15_000_000] {
            counts.tell(ProgressEvent::Expect(bytes), true);
        }
        counts.tell(ProgressEvent::Held(8_000_000), true);
        let begun = Instant::now();
        for half in 0..=2 * seconds {
            // Each file reports that nothing of it was held.
            counts.tell(ProgressEvent::Held(0), true);
            counts.tell(ProgressEvent::Moved(500_000), true);
            let at = begun + std::time::Duration::from_millis(500 * half);
            counts.meter.add(at, 500_000 * half);
        }
        counts
    }

    #[test]
    fn progress_of_folder_shows_rate_and_time_of_last_seconds() {
        assert_eq!(counts(2).line("photos", 40), "photos 50%, 8.0 Mbit/s, 10 s left");
        assert_eq!(
            counts(2).line("photos", 79),
            "photos ██████████░░░░░░░░░░ 50% of 20.0 MB, 8.0 Mbit/s, 10 s left"
        );
        assert_eq!(counts(12).line("photos", 40), "photos 100% of 20.0 MB, finishing");
        let mut slower = counts(2);
        let begun = slower.meter.samples.back().map(|(at, _)| *at).unwrap();
        for half in 1..=20 {
            let at = begun + std::time::Duration::from_millis(500 * half);
            slower.meter.add(at, 2_000_000 + 6_250 * half);
        }
        assert!(slower.line("photos", 40).ends_with(", 0.100 Mbit/s, 13 min left"));
        for second in 1..=6 {
            slower.meter.add(begun + std::time::Duration::from_secs(10 + second), 0);
        }
        assert!(slower.line("photos", 40).ends_with(", 0.000 Mbit/s"));
    }

    #[test]
    fn progress_before_first_byte_counts_for_no_rate() {
        let mut counts = TransferCounts { total: 2_000_000, ..TransferCounts::default() };
        assert_eq!(counts.line("f", 20), "f 0% of 2.0 MB");
        let begun = Instant::now();
        for (second, bytes) in [(0, 0), (9, 0), (10, 500_000), (11, 1_000_000)] {
            counts.meter.add(begun + std::time::Duration::from_secs(second), bytes);
        }
        assert_eq!(counts.line("f", 40), "f 50% of 2.0 MB, 4.0 Mbit/s, 2 s left");
    }

    #[test]
    fn progress_line_of_any_name_fits_any_width() {
        for name in ["f", &"a long name ".repeat(9), &"写真".repeat(40)] {
            for columns in 0..120 {
                for seconds in [0, 1, 11, 12] {
                    let line = counts(seconds).line(name, columns);
                    let bar = |c| c == '█' || c == '░';
                    let wide: usize = line.chars().map(|c| if bar(c) { 1 } else { width(c) }).sum();
                    assert!(wide <= columns.max(2), "{line:?} in {columns} columns");
                }
            }
        }
    }
}
