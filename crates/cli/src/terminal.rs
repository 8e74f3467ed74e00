//! What reaches the terminal: text and notes, fit to be shown and to its width; the progress bar; Ctrl-C.

use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use narrows_base::text::{escaped_json, escaped_lines, shown};
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Narrower terminals are taken for this wide.
const MIN_WIDTH: usize = 60;
/// Text is not wider than this on any terminal, nor where there is none.
const MAX_TEXT: usize = 96;

/// Columns of the terminal that the standard output is; `None` for a pipe or a file.
pub fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0).max(MIN_WIDTH))
}

/// How wide running text is.
pub fn text_width() -> usize {
    width().map_or(MAX_TEXT, |w| w.min(MAX_TEXT))
}

/// To the standard output, with what strangers wrote made visible; a reader that has gone away is no
/// failure.
pub fn print(text: &str) -> Result<(), Failure> {
    out(&escaped_lines(text))
}

/// A JSON value to the standard output.
pub fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    out(&escaped_json(&(text + "\n")))
}

/// The same in one line.
pub fn print_json_line(value: &serde_json::Value) -> Result<(), Failure> {
    out(&escaped_json(&format!("{value}\n")))
}

fn out(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Outside(format!("cannot write to the standard output: {e}")))
        }
        _ => Ok(()),
    }
}

/// A line to the error stream, whether anybody reads it or not.
pub fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{}", shown(line));
}

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

/// Whether somebody can be asked.
pub fn is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question; what is not yes is no. One question at a time.
pub fn ask(question: &str) -> bool {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut answer = String::new();
    let asked = write!(io::stderr(), "narrows: {question} [y/N] ");
    asked.is_ok()
        && io::stdin().read_line(&mut answer).is_ok()
        && matches!(answer.trim(), "y" | "Y" | "yes" | "Yes")
}

/// Steps of the bar.
const STEPS: u64 = 1000;

/// Time between two lines of progress where the error stream is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Progress on the error stream: on a terminal a bar that appears after a second, else a line now and then.
pub struct Bar {
    begun: Instant,
    what: String,
    bar: OnceLock<ProgressBar>,
    /// When the last line was printed, or the work began.
    line: Mutex<Instant>,
}

impl Bar {
    /// For this work.
    pub fn new(what: String) -> Bar {
        let begun = Instant::now();
        Bar { begun, what, bar: OnceLock::new(), line: Mutex::new(begun) }
    }
    /// So much is done, as a fraction.
    pub fn tell(&self, fraction: f64) {
        if self.begun.elapsed() < Duration::from_secs(1) {
            return;
        }
        if !io::stderr().is_terminal() {
            return self.tell_in_lines(fraction);
        }
        let bar = self.bar.get_or_init(|| {
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
    fn tell_in_lines(&self, fraction: f64) {
        let mut last = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() < LINE_EVERY {
            return;
        }
        *last = Instant::now();
        note(&progress_line(&self.what, fraction, self.begun.elapsed()));
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

/// A line of progress: the share that is done after this time, and how long the rest takes at this pace.
fn progress_line(what: &str, fraction: f64, since: Duration) -> String {
    let left = since.as_secs_f64() * (1.0 - fraction) / fraction.max(1e-3);
    format!("{what}: {:.0}% done, {left:.0} s left", fraction * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_much_is_done_and_left() {
        let line = |fraction| progress_line("170 runs", fraction, Duration::from_secs(10));
        assert_eq!(line(0.25), "170 runs: 25% done, 30 s left");
        assert_eq!(line(1.0), "170 runs: 100% done, 0 s left");
    }
}
