//! How far a transfer is, on the error stream where that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use narrows_files::Step;

/// The bar, with the rate and the time left.
pub struct Progress {
    bar: ProgressBar,
    folder: bool,
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
        bar.set_message(what);
        Progress { bar, folder }
    }

    /// A step of it.
    pub fn tell(&self, step: Step) {
        match step {
            // A folder's size is known from the walk, a single file's from the file.
            Step::Expect(bytes) if self.folder => self.bar.inc_length(bytes),
            Step::Begin(bytes) if !self.folder => self.bar.set_length(bytes),
            Step::Expect(_) | Step::Begin(_) => {}
            Step::Held(bytes) => {
                self.bar.inc(bytes);
                // What was here before says nothing about the rate.
                self.bar.reset_eta();
            }
            Step::Moved(bytes) => self.bar.inc(bytes),
        }
    }

    /// Takes it away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
