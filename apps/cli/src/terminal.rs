//! Output to the terminal: escaped text, line width, progress bar, Ctrl-C.

use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use narrows_base::text::{escaped_json, escaped_lines, shown};
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Minimum text width, used for narrower terminals, too.
const MIN_WIDTH: usize = 60;
/// Maximum text width; also used without a terminal.
const MAX_TEXT: usize = 96;

/// Number of columns: the variable COLUMNS, or that of the terminal if the standard output is one.
pub fn width() -> Option<usize> {
    let given = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let terminal = || {
        let size = io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
        size.map(|(width, _)| usize::from(width.0))
    };
    given.or_else(terminal).map(|columns: usize| columns.max(MIN_WIDTH))
}

/// Number of columns of the error stream, if that is a terminal; the variable COLUMNS may lower it.
#[cfg(feature = "full")]
pub fn error_width() -> Option<usize> {
    let (terminal, _) = terminal_size::terminal_size_of(io::stderr())?;
    let given = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let terminal = usize::from(terminal.0);
    Some(given.map_or(terminal, |columns| terminal.min(columns)))
}

/// Width of running text in columns.
pub fn text_width() -> usize {
    width().map_or(MAX_TEXT, |w| w.min(MAX_TEXT))
}

/// Prints to the standard output, with control characters escaped. A closed pipe is not an error.
pub fn print(text: &str) -> Result<(), Failure> {
    out(&escaped_lines(text))
}

/// Prints a JSON value to the standard output.
pub fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    out(&escaped_json(&(text + "\n")))
}

#[cfg(feature = "full")]
/// Prints a JSON value as one line.
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

/// Prints a line to the error stream; errors are ignored.
pub fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{}", shown(line));
}

/// Set by Ctrl-C. A second Ctrl-C ends the process at once.
pub static STOP: AtomicBool = AtomicBool::new(false);

/// Handles Ctrl-C by setting [`STOP`], so that finished work can be kept.
pub fn catch_interrupt() {
    let caught = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    });
    // If no handler can be installed, Ctrl-C ends the process as by default.
    drop(caught);
}

#[cfg(feature = "full")]
/// Whether both standard input and error stream are terminals, so that the user can answer.
pub fn is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

#[cfg(feature = "full")]
/// Asks the user a question; any answer other than yes means no. Only one question is asked at a time.
pub fn ask(question: &str) -> bool {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut answer = String::new();
    let asked = write!(io::stderr(), "narrows: {question} [y/N] ");
    asked.is_ok()
        && io::stdin().read_line(&mut answer).is_ok()
        && matches!(answer.trim(), "y" | "Y" | "yes" | "Yes")
}

/// Number of steps of the bar.
const STEPS: u64 = 1000;

/// Interval of progress lines if the error stream is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Progress on the error stream: a bar on a terminal, shown after a second; otherwise a line now and then.
pub struct TerminalBar {
    begun: Instant,
    what: String,
    bar: OnceLock<ProgressBar>,
    /// Time of the last line, or of the beginning.
    line: Mutex<Instant>,
}

impl TerminalBar {
    /// A bar for work with this description.
    pub fn new(what: String) -> TerminalBar {
        let begun = Instant::now();
        TerminalBar { begun, what, bar: OnceLock::new(), line: Mutex::new(begun) }
    }
    /// Sets the finished fraction.
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
    /// Sets the text in front of the bar, once it is shown.
    pub fn say(&self, what: impl FnOnce() -> String) {
        if let Some(bar) = self.bar.get() {
            bar.set_message(what());
        }
    }
    /// Removes the bar.
    pub fn finish(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

/// A line of progress: the finished share after this time, and from 1% on the remaining time at this pace.
fn progress_line(what: &str, fraction: f64, since: Duration) -> String {
    let done = format!("{what}: {:.0}% done", fraction * 100.0);
    if fraction < 0.01 {
        return done;
    }
    let left = since.as_secs_f64() * (1.0 - fraction) / fraction;
    format!("{done}, {left:.0} s left")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_much_is_done_and_left() {
        let line = |fraction| progress_line("170 runs", fraction, Duration::from_secs(10));
        assert_eq!(line(0.25), "170 runs: 25% done, 30 s left");
        assert_eq!(line(1.0), "170 runs: 100% done, 0 s left");
        assert_eq!(line(0.0), "170 runs: 0% done");
    }
}
