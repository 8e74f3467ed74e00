//! Recordings of real connections as files: the datagrams of each end (`packets.pcapng`), each connection's
//! events (`connection-N.sqlog`), and series and report in the form of a simulation's.
//!
//! ```text
//!   endpoint's thread ── Tap ──╮                        ╭─> packets.pcapng
//!                              ├─> queue ─> writer ─────┼─> connection-N.sqlog
//!   sampler, every 10 ms ──────╯   (64 MB)              ╰─> Outcome ─> summary, series, report
//! ```
//!
//! A relay's recording has the datagrams on both sides and its two links, but no connections. That of an emulated link
//! ([`IpLinkRecord`]) has the packets that entered and left it.
//!
//! The endpoint's thread only copies. Records that do not fit into the queue are counted and
//! reported.

mod captures;
mod ip_link;
mod link;
mod local_addresses;
mod names;
mod observed_link;
mod order;
mod outcome;
mod qlog;
mod recording;
mod relay;
mod rows;
mod series;
mod single_run;
mod tap;
mod writer;

pub use ip_link::IpLinkRecord;
use narrows_net::Clock;
use narrows_net::relay::RelayTap;
use narrows_net::tap::Tap;
use narrows_scenario::text_file::plain;
pub use observed_link::ObservedLink;
pub use recording::{MAX_CONNECTIONS, Recording, RecordingDescription};
use relay::RelayWatch;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tap::{EndTap, Observers, WriterQueue};
use writer::RecordWriter;

/// Interval between samples of the connections.
const EVERY: Duration = Duration::from_millis(10);
/// Longest wait for the last events of a closed endpoint.
const PATIENCE: Duration = Duration::from_millis(1500);
/// A recording in progress.
#[derive(Debug)]
pub struct Recorder {
    folder: PathBuf,
    queue: Arc<WriterQueue>,
    observers: Observers,
    stop: Arc<AtomicBool>,
    threads: Mutex<Option<Threads>>,
    notes: Mutex<Vec<String>>,
}

#[derive(Debug)]
struct Threads {
    sampler: JoinHandle<()>,
    writer: JoinHandle<Result<RecordWriter, String>>,
}

impl Recorder {
    /// Begins a recording in `folder`, which is created if necessary. Connections' files of an earlier recording are
    /// removed, other files are overwritten.
    ///
    /// # Errors
    /// One line that names the file or folder that cannot be created.
    pub fn start(folder: &Path, about: RecordingDescription) -> Result<Recorder, String> {
        let cannot = |what: &Path, e: &std::io::Error| {
            format!("--record: cannot write {}: {}", what.display(), plain(e))
        };
        fs::create_dir_all(folder).map_err(|e| cannot(folder, &e))?;
        names::remove_old(folder).map_err(|e| cannot(folder, &e))?;
        let (queue, event) = WriterQueue::new();
        let writer = RecordWriter::new(folder, about).map_err(|e| format!("--record: {e}"))?;
        let observers = Observers::default();
        let stop = Arc::new(AtomicBool::new(false));
        let spawn = || std::thread::Builder::new().name("narrows-record".into());
        let system = |e: std::io::Error| format!("--record: the system has no thread left: {e}");
        let writes = {
            let queue = queue.clone();
            spawn().spawn(move || writer.run(&event, &queue)).map_err(system)?
        };
        let samples = {
            let queue = queue.clone();
            let observers = observers.clone();
            let stop = stop.clone();
            spawn().spawn(move || sample(&queue, &observers, &stop)).map_err(system)?
        };
        Ok(Recorder {
            folder: folder.to_path_buf(),
            queue,
            observers,
            stop,
            threads: Mutex::new(Some(Threads { sampler: samples, writer: writes })),
            notes: Mutex::new(Vec::new()),
        })
    }

    /// The tap that records an endpoint under this name.
    pub fn tap(&self, name: &'static str) -> Arc<dyn Tap> {
        Arc::new(EndTap::new(name, self.queue.clone(), self.observers.clone()))
    }

    /// The tap that records a relay.
    pub fn watch(&self) -> Arc<dyn RelayTap> {
        Arc::new(RelayWatch::new(self.queue.clone(), self.observers.clone()))
    }

    /// Records an emulated link between two ends of these names. Its times are by this clock.
    pub fn ip_link(&self, names: [&'static str; 2], clock: Clock) -> IpLinkRecord {
        IpLinkRecord::new(names, clock, self.queue.clone(), self.observers.clone())
    }

    /// Adds a note for readers of the report.
    pub fn note(&self, line: String) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    /// Ends the recording and writes the final files. To be called when the endpoints are closed. Returns `None` if the
    /// recording was ended before.
    ///
    /// # Errors
    /// One line that names the file and the error.
    pub fn finish(&self) -> Result<Option<Recording>, String> {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(threads) = threads else { return Ok(None) };
        let begun = Instant::now();
        // The last events of closing connections belong to the recording.
        while self.observers.any() && begun.elapsed() < PATIENCE {
            std::thread::sleep(EVERY);
        }
        self.stop.store(true, Ordering::Release);
        let panicked = || "--record: a thread ended before its time".to_string();
        threads.sampler.join().map_err(|_| panicked())?;
        self.queue.end();
        let writer = threads.writer.join().map_err(|_| panicked())??;
        let notes = std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner));
        writer.finish(&self.folder, notes, &self.queue).map(Some)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.queue.end();
    }
}

/// Samples the connections until `stop` is set.
fn sample(queue: &Arc<WriterQueue>, observers: &Observers, stop: &AtomicBool) {
    let mut due = Instant::now();
    loop {
        let last = stop.load(Ordering::Acquire);
        observers.sample(queue);
        if last {
            return;
        }
        let now = Instant::now();
        // Missed samples are skipped.
        due = if due + EVERY > now { due + EVERY } else { now + EVERY };
        std::thread::sleep(due - now);
    }
}
