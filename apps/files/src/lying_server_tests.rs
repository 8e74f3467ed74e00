//! Misbehaving servers, for each of the client's commands. The command ends with one clear error or the correct result,
//! within its folder, and in bounded memory.

mod answers;
mod endless;
mod folders;

use crate::bench_tests::{bytes, control, open, pair};
use crate::client::{UploadTree, get, get_tree, list, make_folder, put, put_tree, tune};
use crate::frames::{self, FileFrameReader};
use crate::message::{DirectoryEntry, EntryKind, FileFrame, FileRequest, HeldPrefix, Tuning};
use crate::path::{CleanPath, part_name};
use crate::stream::{FileStream, Session};
use narrows_peers::error::{Error, ErrorKind};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The answer to a request.
enum Lie {
    /// These bytes, and the next request is answered too.
    Say(Vec<u8>),
    /// These bytes, then the end of the stream.
    SayAndEnd(Vec<u8>),
    /// The first bytes once, then the second as long as the client reads.
    Endless(Vec<u8>, Vec<u8>),
    /// The first bytes once, then the second every 2 ms.
    Trickle(Vec<u8>, Vec<u8>),
}
use Lie::{Endless, Say, SayAndEnd, Trickle};

/// Time for which almost no bytes may arrive: longer than a busy machine needs.
const MAX_STALL: Duration = Duration::from_secs(60);

/// A server that answers every request by a rule, and counts the bytes that were accepted.
struct Liar<F> {
    rule: Arc<F>,
    max_stall: Duration,
    said: Arc<AtomicU64>,
    /// Where the last upload began.
    started: Arc<AtomicU64>,
}

fn liar<F: Fn(&FileRequest) -> Lie>(rule: F) -> Liar<F> {
    let started = Arc::new(AtomicU64::new(u64::MAX));
    Liar { rule: Arc::new(rule), said: Arc::default(), started, max_stall: MAX_STALL }
}

impl<F> Liar<F> {
    /// Its clients give up after a short stall.
    fn given_up_soon(self) -> Liar<F> {
        Liar { max_stall: Duration::from_millis(300), ..self }
    }
    fn said(&self) -> u64 {
        self.said.load(Ordering::SeqCst)
    }
}

impl<F: Fn(&FileRequest) -> Lie + Send + Sync + 'static> Session for Liar<F> {
    fn open(&self) -> Result<FileStream, Error> {
        let (client_end, server_end) = pair(i64::MAX);
        let rule = Arc::clone(&self.rule);
        let said = Arc::clone(&self.said);
        let started = Arc::clone(&self.started);
        std::thread::spawn(move || {
            let FileStream { input, mut output } = server_end;
            let mut frames = FileFrameReader::new(input);
            let mut say = |bytes: &[u8]| {
                said.fetch_add(bytes.len() as u64, Ordering::SeqCst);
                output.write_all(bytes).is_ok()
            };
            while let Ok(Some(request)) = frames::request(frames.input()) {
                let answered = match rule(&request) {
                    Say(bytes) => say(&bytes),
                    SayAndEnd(bytes) => {
                        say(&bytes);
                        break;
                    }
                    Endless(once, again) => {
                        say(&once);
                        while say(&again) {}
                        break;
                    }
                    Trickle(once, again) => {
                        say(&once);
                        while say(&again) {
                            std::thread::sleep(Duration::from_millis(2));
                        }
                        break;
                    }
                };
                // The upload that follows, if one is sent without a query or after HOLDING.
                let goes_on = match request {
                    FileRequest::Put { size, .. } => {
                        if let Ok(FileFrame::Start(at)) = frames.frame() {
                            started.store(at, Ordering::SeqCst);
                        }
                        frames.skip(size).is_ok()
                    }
                    _ => true,
                };
                if !answered || !goes_on {
                    break;
                }
            }
            let _ = output.finish();
            let _ = std::io::copy(frames.input(), &mut std::io::sink());
        });
        Ok(client_end)
    }
    fn protocol(&self) -> String {
        "lies".into()
    }
    fn max_stall(&self) -> Duration {
        self.max_stall
    }
}

fn path(text: &str) -> CleanPath {
    CleanPath::read(text).unwrap()
}
fn framed(list: &[FileFrame<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    list.iter().for_each(|f| frames::write(&mut out, f).unwrap());
    out
}
fn hash(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}
fn entry(kind: EntryKind, size: u64, name: &str) -> DirectoryEntry {
    DirectoryEntry { kind, size, modified: i64::MIN, name: name.into() }
}
fn listing(entries: Vec<DirectoryEntry>) -> Vec<u8> {
    framed(&[
        FileFrame::Listed(entries),
        FileFrame::ListEnd { folder: true, hidden: 0, mode: None },
    ])
}
/// The answer to a GET of a complete file.
fn file(content: &[u8]) -> Vec<u8> {
    let size = content.len() as u64;
    framed(&[
        FileFrame::Begin { start: 0, size, mode: None },
        FileFrame::Data(content),
        FileFrame::End(hash(content)),
    ])
}
fn raw(kind: u8, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    [&[kind, a, b, c], payload].concat()
}

/// Checks that the error is one short line that a terminal can show.
fn clear(e: &Error) {
    assert!(!e.line.is_empty() && e.line.len() < 12_000, "{} bytes of error", e.line.len());
    assert!(!e.line.chars().any(narrows_base::text::is_hidden), "{:?}", e.line);
}
