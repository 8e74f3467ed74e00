//! The registry of loaded congestion controls: a file for each, which its agent keeps locked while it runs.
//!
//! The lock, not the process's number, shows whether the agent runs. The kernel releases it with the process, and
//! unlike a number it is not reused.

use crate::Error;
pub use crate::bpf::object::unregister;
use crate::bpf::object::{foreign, is_registered};
use crate::status::ControlStatus;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where the files are.
const FOLDER: &str = "/run/narrows/kernel";
/// Default congestion control of new connections in this network namespace.
const SYSTEM: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// Longest wait for an agent to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// A loaded congestion control, as described by its file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Instance {
    /// Its name in the kernel.
    pub name: String,
    /// The controller, as the user wrote it.
    pub controller: String,
    /// The agent's process.
    pub pid: i32,
    /// Ids of its maps: slots, and shared state.
    pub map_ids: [u32; 2],
    /// Of one wholly inside the kernel, which needs no process: its number there.
    pub native: Option<u32>,
    /// The system's congestion control before, if this one has replaced it.
    pub system_before: Option<String>,
}

/// The own file, locked.
#[derive(Debug)]
pub struct Registration {
    file: File,
    instance: Instance,
    stays: bool,
}

/// State of the agent behind a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgentState {
    /// It lives. It may be stopped nevertheless.
    Living,
    /// It has been killed.
    Gone,
    /// No agent: the congestion control runs wholly inside the kernel.
    Needless,
}

impl Instance {
    fn path(&self) -> PathBuf {
        Path::new(FOLDER).join(&self.name)
    }
    fn text(&self) -> String {
        let [slots, control] = self.map_ids;
        let system = self.system_before.as_deref().unwrap_or("");
        let native = self.native.map_or(String::new(), |id| id.to_string());
        format!(
            "controller {}\npid {}\nmaps {slots} {control}\nnative {native}\nsystem {system}\n",
            self.controller, self.pid
        )
    }
    fn parse(name: &str, text: &str) -> Instance {
        let mut instance = Instance { name: name.to_string(), ..Instance::default() };
        for (key, value) in text.lines().filter_map(|l| l.split_once(' ')) {
            match key {
                "controller" => instance.controller = value.to_string(),
                "pid" => instance.pid = value.parse().unwrap_or(0),
                "maps" => {
                    let mut ids = value.split(' ').map(|id| id.parse().unwrap_or(0));
                    instance.map_ids = [ids.next().unwrap_or(0), ids.next().unwrap_or(0)];
                }
                "native" => instance.native = value.parse().ok(),
                "system" if !value.is_empty() => instance.system_before = Some(value.to_string()),
                _ => {}
            }
        }
        instance
    }

    /// Whether [`Instance::all`] lists every one: their files are readable by root alone.
    #[must_use]
    pub fn sees_all() -> bool {
        geteuid().is_root()
    }

    /// All instances, by name.
    pub fn all() -> Vec<Instance> {
        let files = std::fs::read_dir(FOLDER).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            files.map(|f| f.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names.iter().filter_map(|name| Instance::find(name)).collect()
    }
    /// The one of that name.
    pub fn find(name: &str) -> Option<Instance> {
        let text = std::fs::read_to_string(Path::new(FOLDER).join(name)).ok()?;
        Some(Instance::parse(name, &text))
    }
    /// Whether its agent lives.
    pub fn agent(&self) -> AgentState {
        if self.native.is_some() {
            return AgentState::Needless;
        }
        let Ok(file) = File::open(self.path()) else { return AgentState::Gone };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => AgentState::Gone,
            Err(_) => AgentState::Living,
        }
    }
    /// Its state.
    ///
    /// # Errors
    /// The maps no longer exist, or permission is missing.
    pub fn status(&self) -> Result<ControlStatus, Error> {
        let [slots, control] = foreign(self.map_ids)?;
        Ok(ControlStatus::read(&slots, &control))
    }

    /// Ends its agent, even a stopped one, and waits for its end. Removes the leftovers of a killed agent.
    ///
    /// # Errors
    /// Permission is missing, or the agent does not end.
    pub fn unload(&self) -> Result<(), Error> {
        let failed =
            |e: std::io::Error| Error::from_kernel(&format!("unloading {}", self.name), &e);
        let begun = Instant::now();
        let mut asked = None;
        while self.agent() == AgentState::Living {
            let pid = Pid::from_raw(self.pid)
                .ok_or_else(|| Error::System(format!("{}: no process", self.name)))?;
            if begun.elapsed() > PATIENCE {
                return Err(Error::System(format!(
                    "the agent of {} (process {}) does not end",
                    self.name, self.pid
                )));
            }
            // INT first; an agent that does not react is killed, and its leftovers are removed below.
            let signal = if begun.elapsed() < PATIENCE / 2 { Signal::INT } else { Signal::KILL };
            if asked != Some(signal) {
                kill_process(pid, signal).map_err(|e| failed(e.into()))?;
                let _ = kill_process(pid, Signal::CONT);
                asked = Some(signal);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.undo_system();
        if let Some(id) = self.native {
            match unregister(id) {
                // Another process has done it.
                Err(Error::System(_)) | Ok(()) => {}
                Err(e) => return Err(e),
            }
        }
        // The kernel removes it some time after the agent's last descriptor is closed.
        let ended = Instant::now();
        while is_registered(&self.name) && ended.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        match std::fs::remove_file(self.path()) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(failed(e)),
            _ => Ok(()),
        }
    }

    /// Restores the system's previous congestion control, if this one is still in use.
    fn undo_system(&self) {
        let Some(before) = &self.system_before else { return };
        if std::fs::read_to_string(SYSTEM).is_ok_and(|now| now.trim() == self.name) {
            let _ = std::fs::write(SYSTEM, before);
        }
    }

    /// Waits until the agent has ended in any way, and removes its leftovers. Runs in a separate process beside an
    /// agent that has changed the system's congestion control.
    ///
    /// # Errors
    /// The file does not exist.
    pub fn guard(name: &str) -> Result<(), Error> {
        let failed = |e: std::io::Error| Error::from_kernel(&format!("guarding {name}"), &e);
        let file = File::open(Path::new(FOLDER).join(name)).map_err(failed)?;
        flock(&file, FlockOperation::LockShared).map_err(|e| failed(e.into()))?;
        if let Some(left) = Instance::find(name) {
            left.undo_system();
            let _ = std::fs::remove_file(left.path());
        }
        Ok(())
    }
}

/// Creates the folder, writable by root alone. One that other users can write to is refused.
fn own_folder() -> std::io::Result<()> {
    let path = Path::new(FOLDER);
    std::fs::DirBuilder::new().recursive(true).mode(0o755).create(path)?;
    for folder in [Some(path), path.parent()].into_iter().flatten() {
        let found = std::fs::symlink_metadata(folder)?;
        if !found.is_dir() || found.uid() != geteuid().as_raw() || found.mode() & 0o022 != 0 {
            return Err(std::io::Error::other(format!(
                "{} is no directory that root alone can write to",
                folder.display()
            )));
        }
    }
    Ok(())
}

/// Leaves the terminal's session: neither Ctrl-C nor the terminal's end concern this process any more.
pub fn leave_session() {
    // It fails for the leader of a process group, which is outside the session already.
    let _ = rustix::process::setsid();
}

impl Registration {
    /// Writes and locks the own file.
    ///
    /// # Errors
    /// A living agent of that name; missing rights.
    pub fn new(instance: Instance) -> Result<Registration, Error> {
        let failed = |e: std::io::Error| Error::from_kernel(&format!("writing {FOLDER}"), &e);
        own_folder().map_err(failed)?;
        // Readable by root alone: a process that can open a file can hold a lock on it.
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(instance.path())
            .map_err(failed)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| Error::NameInUse(instance.name.clone()))?;
        // Leftovers of a killed agent.
        let mut left = String::new();
        file.read_to_string(&mut left).map_err(failed)?;
        Instance::parse(&instance.name, &left).undo_system();
        let mut registration = Registration { file, instance, stays: false };
        registration.write().map_err(failed)?;
        Ok(registration)
    }
    /// Leaves everything in place, for a congestion control that needs no process.
    pub fn leave(mut self) {
        self.stays = true;
    }

    fn write(&mut self) -> std::io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(self.instance.text().as_bytes())
    }

    /// Makes it the default congestion control of new connections until this value is dropped.
    ///
    /// # Errors
    /// Permission is missing.
    pub fn become_system(&mut self) -> Result<(), Error> {
        let failed = |e: std::io::Error| Error::from_kernel(&format!("writing {SYSTEM}"), &e);
        let before = std::fs::read_to_string(SYSTEM).map_err(failed)?;
        self.instance.system_before = Some(before.trim().to_string());
        // The previous value is saved first: if the process is killed in between, the setting is unchanged.
        self.write().map_err(failed)?;
        std::fs::write(SYSTEM, &self.instance.name).map_err(failed)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if self.stays {
            return;
        }
        self.instance.undo_system();
        if let Some(id) = self.instance.native {
            let _ = unregister(id);
        }
        let _ = std::fs::remove_file(self.instance.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_file_reads_back_its_contents() {
        let instance = Instance {
            name: "nw_vegas".into(),
            controller: "vegas(alpha=2, beta=4)".into(),
            pid: 17,
            map_ids: [3, 4],
            native: None,
            system_before: Some("bbr".into()),
        };
        assert_eq!(Instance::parse("nw_vegas", &instance.text()), instance);
        let plain = Instance { system_before: None, native: Some(5), ..instance };
        assert_eq!(Instance::parse("nw_vegas", &plain.text()), plain);
        assert_eq!(Instance::parse("x", "nonsense\npid \nmaps").pid, 0);
    }
}
