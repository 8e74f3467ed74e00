//! The programs that run over links, and all their descendants. They are found and ended even if their parents have
//! ended.

use crate::command::spawn;
use crate::error::Error;
use crate::system::namespace::Namespace;
use crate::system::processes::{self, Process};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, pidfd_send_signal,
    set_child_subreaper, waitpid,
};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Time from SIGTERM to SIGKILL.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time in which new descendants are searched for while they are being killed.
const KILLING: Duration = Duration::from_secs(10);
const ROUND: Duration = Duration::from_millis(2);

/// Commands and their descendants. Dropped, it ends those that still run: SIGTERM to each, after two seconds SIGKILL.
///
/// While a `Programs` lives, a process whose parent ends becomes a child of this process (`PR_SET_CHILD_SUBREAPER`).
/// Daemons and processes that a script leaves in the background are therefore found. Programs that other processes
/// started in a link's namespace (`nsenter`) are not touched.
#[derive(Debug)]
pub struct Programs {
    commands: Vec<(String, Child)>,
    /// Children that this process already had; they are left alone.
    others: BTreeSet<i32>,
}

impl Programs {
    /// An empty set. Children that this process has already are not included. While this lives, the process must not
    /// start others by other means.
    ///
    /// # Errors
    /// The system does not permit it.
    pub fn new() -> Result<Programs, Error> {
        let failed = |e| Error::system("cannot become the parent of orphans", &e);
        set_child_subreaper(Some(getpid())).map_err(|e| failed(e.into()))?;
        let own = getpid().as_raw_nonzero().get();
        let all = processes::parents().map_err(failed)?;
        let others = all.iter().filter(|p| p.parent == own).map(|p| p.id).collect();
        Ok(Programs { commands: Vec::new(), others })
    }

    /// Starts a command in a namespace. `files` are pairs: the command sees the second file in place of the first.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn start(
        &mut self,
        label: &str,
        command: &mut Command,
        namespace: &Namespace,
        files: &[(PathBuf, PathBuf)],
    ) -> Result<(), Error> {
        let child = spawn(command, namespace, files)?;
        self.commands.push((label.to_string(), child));
        Ok(())
    }

    /// The running commands, in the order of their start.
    pub fn commands(&self) -> impl ExactSizeIterator<Item = &Child> {
        self.commands.iter().map(|(_, child)| child)
    }

    /// Removes and returns the commands that have ended: label, status, and whether it was the last one started.
    pub fn ended(&mut self) -> Vec<(String, ExitStatus, bool)> {
        self.reap_orphans();
        let mut left = self.commands.len();
        let mut ended = Vec::new();
        self.commands.retain_mut(|(label, child)| {
            left -= 1;
            let Ok(Some(status)) = child.try_wait() else { return true };
            ended.push((std::mem::take(label), status, left == 0));
            false
        });
        ended
    }

    /// Reaps orphans that have ended; their status is not used.
    fn reap_orphans(&self) {
        let own = getpid().as_raw_nonzero().get();
        let is_command = |id: i32| self.commands().any(|c| i64::from(c.id()) == i64::from(id));
        let children = processes::parents().unwrap_or_default().into_iter();
        for child in children.filter(|p| p.parent == own && p.has_ended) {
            if !self.others.contains(&child.id) && !is_command(child.id) {
                let _ = waitpid(Pid::from_raw(child.id), WaitOptions::NOHANG);
            }
        }
    }

    /// All descendants that have not ended.
    fn alive(&self) -> Vec<Process> {
        let mut all = processes::parents().unwrap_or_default();
        all.retain(|p| !self.others.contains(&p.id));
        let mut family = BTreeSet::from([getpid().as_raw_nonzero().get()]);
        let mut alive = Vec::new();
        loop {
            let (found, rest): (Vec<_>, _) =
                all.into_iter().partition(|p| family.contains(&p.parent));
            if found.is_empty() {
                return alive;
            }
            family.extend(found.iter().map(|p| p.id));
            alive.extend(found.into_iter().filter(|p| !p.has_ended));
            all = rest;
        }
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        let begun = Instant::now();
        let mut reported = BTreeSet::new();
        let mut rounds_without_any = 0;
        // A single scan of all processes can miss one whose parent ends meanwhile.
        while rounds_without_any < 2 && begun.elapsed() < PATIENCE + KILLING {
            let alive = self.alive();
            rounds_without_any = if alive.is_empty() { rounds_without_any + 1 } else { 0 };
            for program in alive {
                if begun.elapsed() >= PATIENCE {
                    signal(&program, Signal::KILL);
                } else if reported.insert(program.id) {
                    signal(&program, Signal::TERM);
                }
            }
            self.ended();
            std::thread::sleep(ROUND);
        }
        self.reap_orphans();
    }
}

/// Signals a process, unless its id belongs to a new process by now.
fn signal(process: &Process, signal: Signal) {
    let Some(id) = Pid::from_raw(process.id) else { return };
    let Ok(open) = pidfd_open(id, PidfdFlags::empty()) else { return };
    if processes::process(process.id).is_some_and(|now| now.started == process.started) {
        let _ = pidfd_send_signal(open, signal);
    }
}
