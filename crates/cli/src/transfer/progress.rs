//! How far a transfer is, on the error stream where that is a terminal.

use crate::terminal::note;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use narrows_base::Duration;
use narrows_files::ProgressEvent;
use narrows_files::learned::Delivered;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Entries that are left out of a folder and shown.
const MAX_LEFT_OUT: usize = 100;
/// A silence so long is told: the server says something every second, or is asked to after five.
const LONG: Duration = Duration::from_secs(8);

/// The bar, with the rate and the time left.
pub struct Progress {
    bar: ProgressBar,
    what: String,
    folder: bool,
    silent: AtomicBool,
    /// Lines about entries that are left out, as far as they are shown.
    left_out: Mutex<Vec<String>>,
    /// What was moved, for what is learned of the path.
    delivered: Mutex<(u64, Delivered)>,
}

impl Progress {
    /// For this file or folder. indicatif hides it where the error stream is no terminal.
    pub fn new(what: String, folder: bool) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        let template = "{msg} {bar:30} {percent:>3}% {decimal_bytes}/{decimal_total_bytes} \
                        {decimal_bytes_per_sec} {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what.clone());
        Progress {
            bar,
            what,
            folder,
            silent: AtomicBool::new(false),
            left_out: Mutex::default(),
            delivered: Mutex::default(),
        }
    }

    /// Nothing was moved: what an attempt before sent was not answered.
    pub fn begin(&self) {
        *self.delivered.lock().unwrap_or_else(PoisonError::into_inner) = Default::default();
        self.bar.set_position(0);
        if self.folder {
            self.bar.set_length(0);
        }
    }

    /// So many bytes were moved now.
    pub fn moved(&self, bytes: u64) {
        let mut all = self.delivered.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.0;
        // The time before the first byte is no part of the rate.
        if before == 0 {
            all.1.seen(Instant::now(), 0);
        }
        all.0 += bytes;
        let now = all.0;
        all.1.seen(Instant::now(), now);
    }

    /// What was moved so far.
    pub fn delivered(&self) -> Delivered {
        self.delivered.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// Does something while the bar is away.
    pub fn beside<T>(&self, work: impl FnOnce() -> T) -> T {
        self.bar.suspend(work)
    }

    /// A step of it.
    pub fn tell(&self, step: ProgressEvent) {
        match step {
            // A folder's size is known from the walk, a single file's from the file.
            ProgressEvent::Expect(bytes) if self.folder => self.bar.inc_length(bytes),
            ProgressEvent::Begin(bytes) if !self.folder => self.bar.set_length(bytes),
            ProgressEvent::Held(bytes) => {
                self.bar.inc(bytes);
                // What was here before says nothing about the rate.
                self.bar.reset_eta();
            }
            ProgressEvent::Moved(bytes) => self.bar.inc(bytes),
            // The others say nothing that the bar shows.
            _ => {}
        }
    }

    /// Nothing was heard for so long; after `most` the transfer ends. In the bar, or else in one line
    /// for each silence.
    pub fn silent(&self, so_far: Duration, most: Duration) {
        let now = so_far >= LONG;
        let before = self.silent.swap(now, Ordering::SeqCst);
        let (so_far, most) = (so_far.as_secs_f64(), most.as_secs_f64());
        if now {
            let line = format!("nothing heard for {so_far:.0} s, given up after {most:.0} s");
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

    /// An entry of a folder is left out: shown once each, up to a number.
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

    /// Takes it away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
