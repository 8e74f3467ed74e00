//! Shared parts of the tests: a service over pipes in memory, which break after a given number of bytes.

use crate::client::UploadTree;
use crate::service::{Permits, Service};
use crate::stream::{FileStream, Output, Session};
use crate::transfer_control::TransferControl;
use crate::{Error, ErrorKind};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

/// Bytes that a pipe buffers: few, so that both ends block.
const ROOM: usize = 10_000;

#[derive(Default)]
struct Pipe {
    state: Mutex<(VecDeque<u8>, bool)>,
    changed: Condvar,
    /// The reading end was dropped.
    deaf: AtomicBool,
}

/// The reading end. Dropping it makes the writer fail.
struct Reader(End);

impl Read for Reader {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.0.read(to)
    }
}
impl Drop for Reader {
    fn drop(&mut self) {
        self.0.pipe.deaf.store(true, Ordering::SeqCst);
        self.0.pipe.changed.notify_all();
    }
}

/// Bytes that a connection still carries; below zero it is cut.
pub type Budget = Arc<AtomicI64>;

struct End {
    pipe: Arc<Pipe>,
    budget: Budget,
    finished: bool,
}

fn cut() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

impl Read for End {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let mut state = self.pipe.state.lock().unwrap();
        loop {
            if self.budget.load(Ordering::SeqCst) < 0 {
                return Err(cut());
            }
            if !state.0.is_empty() || state.1 {
                break;
            }
            let wait = std::time::Duration::from_millis(5);
            state = self.pipe.changed.wait_timeout(state, wait).unwrap().0;
        }
        let n = state.0.len().min(to.len());
        for (to, from) in to.iter_mut().zip(state.0.drain(..n)) {
            *to = from;
        }
        self.pipe.changed.notify_all();
        Ok(n)
    }
}

impl Write for End {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.pipe.state.lock().unwrap();
        while state.0.len() >= ROOM {
            if self.budget.load(Ordering::SeqCst) < 0 || self.pipe.deaf.load(Ordering::SeqCst) {
                return Err(cut());
            }
            let wait = std::time::Duration::from_millis(5);
            state = self.pipe.changed.wait_timeout(state, wait).unwrap().0;
        }
        let n = bytes.len().min(ROOM - state.0.len());
        // The bytes before the cut still arrive.
        let left = self.budget.fetch_sub(n as i64, Ordering::SeqCst);
        if left < n as i64 {
            return Err(cut());
        }
        state.0.extend(&bytes[..n]);
        self.pipe.changed.notify_all();
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for End {
    fn finish(&mut self) -> io::Result<()> {
        self.finished = true;
        self.pipe.state.lock().unwrap().1 = true;
        self.pipe.changed.notify_all();
        Ok(())
    }
}

struct Writer(End);

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
impl Output for Writer {
    fn finish(&mut self) -> io::Result<()> {
        self.0.finish()
    }
}
impl Drop for Writer {
    fn drop(&mut self) {
        if !self.0.finished {
            self.0.budget.store(-1, Ordering::SeqCst);
        }
    }
}

/// Two connected streams that are cut after `budget` bytes, counted over both directions.
pub fn pair(budget: i64) -> (FileStream, FileStream) {
    let budget: Budget = Arc::new(AtomicI64::new(budget));
    let there = Arc::new(Pipe::default());
    let back = Arc::new(Pipe::default());
    let end = |pipe: &Arc<Pipe>| End {
        pipe: Arc::clone(pipe),
        budget: Arc::clone(&budget),
        finished: false,
    };
    let a =
        FileStream { input: Box::new(Reader(end(&back))), output: Box::new(Writer(end(&there))) };
    let b =
        FileStream { input: Box::new(Reader(end(&there))), output: Box::new(Writer(end(&back))) };
    (a, b)
}

/// A session with a service in the same process.
pub struct Memory {
    pub service: Arc<Service>,
    pub client: [u8; 32],
    pub budget: AtomicI64,
    pub threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Memory {
    pub fn new(root: &Path, permits: Permits) -> Memory {
        Memory {
            service: Arc::new(Service::new(root, permits, |_| ()).unwrap()),
            client: [1; 32],
            budget: AtomicI64::new(i64::MAX),
            threads: Mutex::default(),
        }
    }
    /// Waits until the server has handled everything.
    pub fn settle(&self) {
        for thread in self.threads.lock().unwrap().drain(..) {
            thread.join().unwrap();
        }
    }
}

struct Untuned;

impl crate::service::RequestChannel for Untuned {
    fn tune(&self, _: &crate::message::Tuning) -> crate::message::Tuning {
        crate::message::Tuning::default()
    }
}

impl Session for Memory {
    fn open(&self) -> Result<FileStream, Error> {
        let (client_end, server_end) = pair(self.budget.load(Ordering::SeqCst));
        let service = Arc::clone(&self.service);
        let client = self.client;
        let thread =
            std::thread::spawn(move || service.answer(&client, "memory", server_end, &Untuned));
        self.threads.lock().unwrap().push(thread);
        Ok(client_end)
    }
    fn protocol(&self) -> String {
        "memory".into()
    }
}

/// Pseudo-random bytes from a seed.
pub fn bytes(seed: u64, n: usize) -> Vec<u8> {
    let mut out = vec![0; n];
    blake3::Hasher::new().update(&seed.to_be_bytes()).finalize_xof().fill(&mut out);
    out
}

/// A pseudo-random number below `n`.
pub fn random_key(seed: u64, what: u64, n: u64) -> u64 {
    let hash = blake3::hash(&[seed.to_be_bytes(), what.to_be_bytes()].concat());
    u64::from_be_bytes(hash.as_bytes()[..8].try_into().unwrap()) % n
}

pub static NEVER: AtomicBool = AtomicBool::new(false);

pub fn control() -> TransferControl {
    TransferControl::new(&NEVER, None, |_| ())
}

/// A transfer that may replace local files.
pub fn replacing() -> TransferControl {
    control().replacing(crate::Replace::Always)
}

/// The contents of a folder, to put.
pub fn tree(path: &Path) -> UploadTree {
    UploadTree::contents(open(path))
}

pub fn open(path: &Path) -> Dir {
    Dir::open_ambient_dir(path, ambient_authority()).unwrap()
}

pub fn is_cut<T: std::fmt::Debug>(result: &Result<T, Error>) -> bool {
    result.as_ref().is_err_and(|e| e.kind == ErrorKind::Cut)
}
