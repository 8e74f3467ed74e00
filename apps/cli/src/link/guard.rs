//! Cleanup if `narrows link` is killed: the same program in a process group of its own, which is idle until then.

use crate::failure::Failure;
use narrows_emulator::clean;
use std::os::unix::process::{CommandExt as _, parent_id};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Process name of the guard, which `killall narrows` does not match.
const NAME: &str = "nw-link-guard";
/// Time in which a killed process has closed its files.
const PATIENCE: Duration = Duration::from_secs(5);

/// The guard of this process. Dropping it ends it without a cleanup.
pub struct LinkGuard {
    child: Child,
}

impl LinkGuard {
    /// Starts a guard. `None` if this program's file cannot be started again; the user can run `--clean` then.
    pub fn start() -> Option<LinkGuard> {
        let mut command = Command::new(std::env::current_exe().ok()?);
        // The kernel closes the pipe when this process ends for any reason, since no other process has its write end.
        command.args(["link", "--guard"]).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // A process group of its own, so that the terminal's signals do not reach it.
        command.process_group(0);
        Some(LinkGuard { child: command.spawn().ok()? })
    }
}

impl Drop for LinkGuard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Main function of the guard: waits for the end of the process that started it, and cleans up.
pub fn guard() -> Result<(), Failure> {
    let guarded = parent_id();
    let _ = std::fs::write("/proc/self/comm", NAME);
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    // The kernel may close the pipe first and release the locks last.
    let begun = Instant::now();
    while parent_id() == guarded && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
    }
    clean()?;
    Ok(())
}
