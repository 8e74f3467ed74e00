//! Progress of a transfer, on the error stream if it is a terminal.

use crate::terminal::note;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use narrows_base::Duration;
use narrows_files::ProgressEvent;
use narrows_peers::learned::Delivered;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Maximum number of skipped entries of a folder that are shown.
const MAX_LEFT_OUT: usize = 100;
/// Silence that is reported; the server normally sends every second, or is probed after five.
const LONG: Duration = Duration::from_secs(8);

/// A bar with the rate and the remaining time.
pub struct TransferProgress {
    bar: ProgressBar,
    what: String,
    folder: bool,
    silent: AtomicBool,
    /// Lines already shown about skipped entries.
    left_out: Mutex<Vec<String>>,
    /// Bytes moved over time, for `--learn`.
    delivered: Mutex<(u64, Delivered)>,
}

impl TransferProgress {
    /// A bar for this file or folder. indicatif hides it if the error stream is not a terminal.
    pub fn new(what: String, folder: bool) -> TransferProgress {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        let template = "{msg} {bar:30} {percent:>3}% {decimal_bytes}/{decimal_total_bytes} \
                        {decimal_bytes_per_sec} {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what.clone());
        TransferProgress {
            bar,
            what,
            folder,
            silent: AtomicBool::new(false),
            left_out: Mutex::default(),
            delivered: Mutex::default(),
        }
    }

    /// Begins again from zero: the previous attempt was not answered.
    pub fn begin(&self) {
        *self.delivered.lock().unwrap_or_else(PoisonError::into_inner) = Default::default();
        self.bar.set_position(0);
        if self.folder {
            self.bar.set_length(0);
        }
    }

    /// Counts bytes that were moved.
    pub fn moved(&self, bytes: u64) {
        let mut all = self.delivered.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.0;
        // The time before the first byte does not count for the rate.
        if before == 0 {
            all.1.seen(Instant::now(), 0);
        }
        all.0 += bytes;
        let now = all.0;
        all.1.seen(Instant::now(), now);
    }

    /// Bytes moved so far, over time.
    pub fn delivered(&self) -> Delivered {
        self.delivered.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// Runs `work` while the bar is hidden.
    pub fn beside<T>(&self, work: impl FnOnce() -> T) -> T {
        self.bar.suspend(work)
    }

    /// Handles a step of the transfer.
    pub fn tell(&self, step: ProgressEvent) {
        match step {
            // A folder's size is known from its listing, a single file's from the file.
            ProgressEvent::Expect(bytes) if self.folder => self.bar.inc_length(bytes),
            ProgressEvent::Begin(bytes) if !self.folder => self.bar.set_length(bytes),
            ProgressEvent::Held(bytes) => {
                self.bar.inc(bytes);
                // Bytes that were here before do not count for the rate.
                self.bar.reset_eta();
            }
            ProgressEvent::Moved(bytes) => self.bar.inc(bytes),
            // The bar does not show other steps.
            _ => {}
        }
    }

    /// Reports silence of the server; after `most` the transfer ends. Shown in the bar, or else as one line for each
    /// silence.
    pub fn silent(&self, so_far: Duration, most: Duration) {
        let now = so_far >= LONG;
        let before = self.silent.swap(now, Ordering::SeqCst);
        let (so_far, most) = (so_far.as_secs_f64(), most.as_secs_f64());
        if now {
            let line = format!("silent for {so_far:.0} s, given up after {most:.0} s");
            if !self.bar.is_hidden() {
                self.bar.set_message(format!("{}: {line}", self.what));
            } else if !before {
                note(&format!("narrows: {}: {line}", self.what));
            }
        } else if before {
            self.bar.set_message(self.what.clone());
            if self.bar.is_hidden() {
                note(&format!("narrows: {}: it goes on", self.what));
            }
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

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
