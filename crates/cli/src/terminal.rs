//! The progress bar and Ctrl-C.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Set by Ctrl-C; a second one ends the process at once.
pub static STOP: AtomicBool = AtomicBool::new(false);

/// Lets Ctrl-C keep what is finished.
pub fn catch_interrupt() {
    let caught = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    });
    // Without a handler Ctrl-C simply ends the process, as it does everywhere.
    drop(caught);
}

/// Steps of the bar.
const STEPS: u64 = 1000;

/// A bar on the error stream that appears after a second, if that is a terminal.
pub struct Bar {
    begun: Instant,
    what: String,
    bar: OnceLock<ProgressBar>,
}

impl Bar {
    /// For this work.
    pub fn new(what: String) -> Bar {
        Bar { begun: Instant::now(), what, bar: OnceLock::new() }
    }
    /// So much is done, as a fraction.
    pub fn tell(&self, fraction: f64) {
        if self.begun.elapsed() < Duration::from_secs(1) {
            return;
        }
        let bar = self.bar.get_or_init(|| {
            // indicatif hides it by itself where the error stream is no terminal.
            let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{msg} {bar:40} {percent:>3}% {eta} left");
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar.set_message(self.what.clone());
            bar
        });
        bar.set_position((fraction * STEPS as f64) as u64);
    }
    /// What it says in front, once it is shown.
    pub fn say(&self, what: impl FnOnce() -> String) {
        if let Some(bar) = self.bar.get() {
            bar.set_message(what());
        }
    }
    /// Takes it away.
    pub fn finish(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}
