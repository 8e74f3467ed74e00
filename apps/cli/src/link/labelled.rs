//! Output of all commands except the last. Each line begins with the command's label.
//! The last command has the terminal.

use crate::failure::Failure;
use narrows_base::text::shown;
use std::io::{self, BufRead as _, BufReader, PipeReader, Read as _, Write};
use std::process::Command;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum bytes of a line. A longer line is split, and each part gets the label.
const MAX_LINE: u64 = 64 << 10;
/// Time for which pipes are read after all commands have ended. Another process may keep a pipe open.
const PATIENCE: Duration = Duration::from_secs(1);

/// Threads that copy the output of commands.
#[derive(Default)]
pub struct Labelled(Vec<JoinHandle<()>>);

impl Labelled {
    /// Redirects stdout and stderr of a command to a thread each. Call it before the command starts.
    pub fn command(&mut self, label: &str, command: &mut Command) -> Result<(), Failure> {
        let cannot = |e: io::Error| Failure::Outside(format!("cannot read from {label}: {e}"));
        let (out, to_out) = io::pipe().map_err(cannot)?;
        let (err, to_err) = io::pipe().map_err(cannot)?;
        command.stdout(to_out).stderr(to_err);
        let label = format!("{}: ", shown(label));
        let other = label.clone();
        let threads = &mut self.0;
        let mut start = |run: Box<dyn FnOnce() + Send>| -> io::Result<()> {
            threads.push(std::thread::Builder::new().spawn(run)?);
            Ok(())
        };
        start(Box::new(move || copy(out, &label, &mut io::stdout()))).map_err(cannot)?;
        start(Box::new(move || copy(err, &other, &mut io::stderr()))).map_err(cannot)
    }

    /// Waits until the last lines of the commands are copied, at most `PATIENCE`.
    pub fn finish(self) {
        let until = Instant::now() + PATIENCE;
        while self.0.iter().any(|thread| !thread.is_finished()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Copies line by line. Write errors are ignored, so a closed output does not stop the command.
fn copy(from: PipeReader, label: &str, to: &mut impl Write) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        line.extend(label.as_bytes());
        match from.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(1..) => {}
            _ => return,
        }
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        // A single call, so that lines of different commands do not mix.
        let _ = to.write_all(&line).and_then(|()| to.flush());
    }
}
