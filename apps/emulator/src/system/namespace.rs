//! Network namespaces: named ones of `ip netns`, and nameless ones that live as long as a process holds them open.

use super::interface;
use super::rights::{SYS_ADMIN, failed};
use super::unsafe_calls::namespace_cookie;
use crate::error::Error;
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::os::unix::fs::MetadataExt as _;

/// Directory of the namespaces of `ip netns`.
const NAMED: &str = "/run/netns";
const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace, held open.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    /// Name in messages.
    label: String,
}

impl Namespace {
    /// The calling thread's namespace.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub fn current() -> Result<Namespace, Error> {
        let file =
            File::open(OWN).map_err(|e| Error::system(format_args!("cannot open {OWN}"), &e))?;
        Ok(Namespace { file, label: "the own namespace".into() })
    }

    /// A namespace of `ip netns`.
    ///
    /// # Errors
    /// No namespace has this name.
    pub fn named(name: &str) -> Result<Namespace, Error> {
        let plain = !name.is_empty() && !name.contains('/') && !name.starts_with('.');
        let file = if plain {
            File::open(format!("{NAMED}/{name}"))
        } else {
            Err(ErrorKind::NotFound.into())
        };
        let file = file.map_err(|e| match e.kind() {
            ErrorKind::NotFound => Error::new(format!(
                "there is no network namespace {name:?} (`ip netns` lists them, `ip netns add {name}` makes one)"
            )),
            _ => Error::system(format_args!("cannot open the network namespace {name}"), &e),
        })?;
        Ok(Namespace { file, label: name.to_string() })
    }

    /// A new namespace without a name, with its loopback interface up.
    ///
    /// # Errors
    /// No permission.
    pub fn create(label: &str) -> Result<Namespace, Error> {
        let make = || -> Result<Namespace, Error> {
            unshare(CloneFlags::CLONE_NEWNET)
                .map_err(|e| failed("cannot make a network namespace", &e.into(), SYS_ADMIN))?;
            interface::up("lo")?;
            Ok(Namespace { label: label.into(), ..Namespace::current()? })
        };
        on_a_thread(make)?
    }

    /// Calls `what` on a new thread within this namespace.
    ///
    /// # Errors
    /// No permission to enter it.
    pub fn enter<T: Send>(&self, what: impl FnOnce() -> T + Send) -> Result<T, Error> {
        on_a_thread(|| {
            setns(&self.file, CloneFlags::CLONE_NEWNET).map_err(|e| match e {
                nix::Error::EINVAL => Error::new(format!("{} is no network namespace", self.label)),
                e => failed(
                    format_args!("cannot enter the network namespace {}", self.label),
                    &e.into(),
                    SYS_ADMIN,
                ),
            })?;
            Ok(what())
        })?
    }

    /// Moves the calling thread into it.
    ///
    /// # Errors
    /// As [`enter`](Namespace::enter).
    pub fn join(&self) -> Result<(), Error> {
        setns(&self.file, CloneFlags::CLONE_NEWNET).map_err(|e| {
            Error::system(
                format_args!("cannot enter the network namespace {}", self.label),
                &e.into(),
            )
        })
    }

    /// Name in messages.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The namespace of a process; `None` if there is no such process.
    pub(crate) fn of_process(pid: i32) -> Option<Namespace> {
        let file = File::open(format!("/proc/{pid}/ns/net")).ok()?;
        Some(Namespace { file, label: format!("of process {pid}") })
    }

    /// Inode number: unique among the namespaces that exist now.
    pub fn inode(&self) -> u64 {
        self.file.metadata().map_or(0, |m| m.ino())
    }

    /// Cookie: unique since the system's start; zero where the kernel has no such number.
    pub(crate) fn cookie(&self) -> u64 {
        let cookie = || namespace_cookie(&UdpSocket::bind("127.0.0.1:0").ok()?).ok();
        self.enter(cookie).ok().flatten().unwrap_or(0)
    }
}

/// Runs `what` on a new thread, so that a change of namespace does not affect the calling thread.
fn on_a_thread<T: Send>(what: impl FnOnce() -> T + Send) -> Result<T, Error> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .spawn_scoped(scope, what)
            .map_err(|e| Error::system("the system has no thread left", &e))?;
        thread.join().map_err(|_| Error::new("a thread ended before its time"))
    })
}
