//! Permissions of transferred files and folders, also between ends of different versions.

use crate::bench_tests::{Memory, control, open, replacing, tree};
use crate::client::{get, get_tree, put, put_tree};
use crate::frames;
use crate::message::{FileFrame, FileRequest, HeldPrefix};
use crate::path::CleanPath;
use crate::service::Permits;
use crate::stream::{FileStream, Session};
use narrows_peers::error::{Error, ErrorKind};
use std::fs::{Permissions, metadata, set_permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

fn path(text: &str) -> CleanPath {
    CleanPath::read(text).unwrap()
}
fn puts() -> Permits {
    Permits { put: true, overwrite: true, ..Permits::default() }
}
fn chmod(file: &Path, mode: u32) {
    set_permissions(file, Permissions::from_mode(mode)).unwrap();
}
fn mode(file: &Path) -> u32 {
    metadata(file).unwrap().permissions().mode() & 0o7777
}
fn file(at: &Path, content: &[u8], mode: u32) {
    std::fs::write(at, content).unwrap();
    chmod(at, mode);
}

const MODES: [u32; 6] = [0o600, 0o700, 0o640, 0o711, 0o400, 0o4755];

/// A folder with a private folder and files of these modes.
fn sources(at: &Path) {
    std::fs::create_dir(at.join("private")).unwrap();
    for mode in MODES {
        file(&at.join(format!("private/{mode:o}")), b"content", mode);
    }
    chmod(&at.join("private"), 0o700);
}

/// A copy permits its group and others no more than its source, and its owner the same.
fn is_kept(at: &Path) {
    assert_eq!(mode(&at.join("private")), 0o700);
    for source in MODES {
        let copy = mode(&at.join(format!("private/{source:o}")));
        assert_eq!(copy & 0o7000, 0);
        assert_eq!(copy & !source, 0, "{copy:o} of {source:o}");
        assert_eq!(copy & 0o700, source & 0o700, "{copy:o} of {source:o}");
    }
}

#[test]
fn private_files_and_scripts_keep_permissions_both_ways() {
    let here = tempfile::tempdir().unwrap();
    let there = tempfile::tempdir().unwrap();
    let back = tempfile::tempdir().unwrap();
    sources(here.path());
    let server = Memory::new(there.path(), puts());
    put_tree(&server, &tree(here.path()), &CleanPath::root(), &control()).unwrap();
    is_kept(there.path());
    let target = |_| Ok(open(back.path()));
    get_tree(&server, &CleanPath::root(), target, &control()).unwrap();
    is_kept(back.path());
    // Files that are asked for one by one.
    for mode_ in MODES {
        let from = format!("private/{mode_:o}");
        let to = path(&format!("one-{mode_:o}"));
        put(&server, &open(here.path()), Path::new(&from), &to, &control()).unwrap();
        assert_eq!(mode(&there.path().join(to.as_str())) & !mode_, 0);
        get(&server, &to, &open(back.path()), to.as_str(), &control()).unwrap();
        assert_eq!(mode(&back.path().join(to.as_str())) & !mode_, 0);
    }
}

#[test]
fn resumed_file_has_the_permissions_of_its_source() {
    let here = tempfile::tempdir().unwrap();
    let there = tempfile::tempdir().unwrap();
    file(&there.path().join("f"), b"0123456789", 0o600);
    file(&here.path().join(crate::path::part_name("f")), b"0123", 0o644);
    let server = Memory::new(there.path(), puts());
    let done = get(&server, &path("f"), &open(here.path()), "f", &control()).unwrap();
    assert_eq!(done.held, 4);
    assert_eq!(mode(&here.path().join("f")), 0o600);
}

#[test]
fn replaced_private_file_stays_private() {
    let here = tempfile::tempdir().unwrap();
    let there = tempfile::tempdir().unwrap();
    let server = Memory::new(there.path(), puts());
    file(&here.path().join("f"), b"new", 0o755);
    file(&there.path().join("f"), b"before", 0o600);
    put(&server, &open(here.path()), Path::new("f"), &path("f"), &control()).unwrap();
    assert_eq!(mode(&there.path().join("f")), 0o700);
    file(&there.path().join("f"), b"newer", 0o644);
    chmod(&here.path().join("f"), 0o600);
    get(&server, &path("f"), &open(here.path()), "f", &replacing()).unwrap();
    assert_eq!(mode(&here.path().join("f")), 0o600);
}

/// A server that knows no version but 2.
struct OldServer(Memory);

impl Session for OldServer {
    fn open(&self) -> Result<FileStream, Error> {
        let FileStream { input, output } = self.0.open()?;
        let refused = Error::new(ErrorKind::Version, "update the older one");
        let (kind, payload) = FileFrame::Error(refused).parts();
        let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
        let answer = [&[kind, a, b, c], &payload[..]].concat();
        let state = std::sync::Arc::new(std::sync::Mutex::new(None));
        let reading = std::sync::Arc::clone(&state);
        let input = Box::new(OldInput { input, refused: reading, answer, at: 0 });
        Ok(FileStream { input, output: Box::new(OldOutput { output, refused: state }) })
    }
    fn protocol(&self) -> String {
        self.0.protocol()
    }
}

/// Whether the stream's first request has a version that is too new; `None` before it.
type Refused = std::sync::Arc<std::sync::Mutex<Option<bool>>>;

struct OldInput {
    input: Box<dyn Read + Send>,
    refused: Refused,
    answer: Vec<u8>,
    at: usize,
}

impl Read for OldInput {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        if *self.refused.lock().unwrap() != Some(true) {
            return self.input.read(to);
        }
        let n = (&self.answer[self.at..]).read(to)?;
        self.at += n;
        Ok(n)
    }
}

struct OldOutput {
    output: Box<dyn crate::stream::Output>,
    refused: Refused,
}

impl Write for OldOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut refused = self.refused.lock().unwrap();
        // Each request is written at once.
        if *refused.get_or_insert(bytes[2] > 2) {
            Ok(bytes.len())
        } else {
            self.output.write(bytes)
        }
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.output.flush()
    }
}

impl crate::stream::Output for OldOutput {
    fn finish(&mut self) -> std::io::Result<()> {
        self.output.finish()
    }
}

#[test]
fn older_server_gets_and_sends_files_without_permissions() {
    let here = tempfile::tempdir().unwrap();
    let there = tempfile::tempdir().unwrap();
    let back = tempfile::tempdir().unwrap();
    std::fs::create_dir(here.path().join("d")).unwrap();
    file(&here.path().join("d/f"), b"content", 0o755);
    std::fs::write(here.path().join("usual"), "").unwrap();
    let usual = mode(&here.path().join("usual"));
    let server = OldServer(Memory::new(there.path(), puts()));
    put_tree(&server, &tree(here.path()), &path("t"), &control()).unwrap();
    put(&server, &open(here.path()), Path::new("d/f"), &path("f"), &control()).unwrap();
    let target = |mode: Option<_>| {
        assert_eq!(mode, None);
        Ok(open(back.path()))
    };
    let done = get_tree(&server, &path("t"), target, &control()).unwrap();
    assert_eq!((done.files, mode(&back.path().join("d/f"))), (2, usual));
    get(&server, &path("f"), &open(back.path()), "f", &control()).unwrap();
    assert_eq!(std::fs::read(back.path().join("f")).unwrap(), b"content");
}

#[test]
fn older_client_is_answered_without_permissions() {
    let there = tempfile::tempdir().unwrap();
    file(&there.path().join("f"), b"content", 0o600);
    let server = Memory::new(there.path(), puts());
    let answer = |request: FileRequest| {
        let FileStream { input, mut output } = server.open().unwrap();
        output.write_all(&request.bytes()).unwrap();
        output.finish().unwrap();
        let mut frames = frames::FileFrameReader::new(input);
        let mut last = Vec::new();
        while let Ok(frame) = frames.frame() {
            last.push(frame.parts());
        }
        last
    };
    let held: Option<HeldPrefix> = None;
    let old = answer(FileRequest::Get { path: "f".into(), held, modes: false });
    let new = answer(FileRequest::Get { path: "f".into(), held, modes: true });
    assert_eq!(old[0].1.len(), 16);
    assert_eq!(new[0].1[16..], 0o600_u16.to_be_bytes());
    assert_eq!(old[1..], new[1..]);
    let old = answer(FileRequest::List { path: String::new(), modes: false });
    let new = answer(FileRequest::List { path: String::new(), modes: true });
    assert_eq!((old[1].1.len(), new[1].1.len()), (9, 11));
}
