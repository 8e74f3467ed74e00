//! Who cleans up if `narrows link` is killed: the same program, in a process group of its own, which does nothing until
//! then.

use crate::failure::Failure;
use narrows_emulator::clean;
use std::os::unix::process::{CommandExt as _, parent_id};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What `killall narrows` does not match.
const NAME: &str = "nw-link-guard";
/// A process that is killed has let go of its files after so long.
const PATIENCE: Duration = Duration::from_secs(5);

/// The guard of this process; dropping it ends it, and nothing is cleaned.
pub struct Guard {
    child: Child,
}

impl Guard {
    /// `None` where this program's file cannot be started again: `--clean` is left then.
    pub fn start() -> Option<Guard> {
        let mut command = Command::new(std::env::current_exe().ok()?);
        // The kernel closes the pipe when this process ends, however it ends. Nobody else has its other end.
        command.args(["link", "--guard"]).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // What the terminal sends to all its programs is not for this one.
        command.process_group(0);
        Some(Guard { child: command.spawn().ok()? })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the guard does: waits for the end of the process that started it, and cleans up.
pub fn guard() -> Result<(), Failure> {
    let guarded = parent_id();
    let _ = std::fs::write("/proc/self/comm", NAME);
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    // The pipe may be the first file that the kernel closes, and the locks among the last.
    let begun = Instant::now();
    while parent_id() == guarded && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
    }
    clean()?;
    Ok(())
}
