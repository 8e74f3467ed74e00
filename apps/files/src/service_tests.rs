//! Results and refusals of the service.

use crate::bench_tests::{Memory, bytes, control, open, pair, random_key, replacing, tree};
use crate::client::{get, get_tree, list, make_folder, put, put_tree};
use crate::message::{EntryKind, FileFrame, FileRequest, HeldPrefix};
use crate::path::{CleanPath, part_name, upload_name};
use crate::service::{AnsweredRequest, Permits, Service};
use crate::stream::{FileStream, Session};
use crate::{TransferControl, frames};
use narrows_peers::access::AllowList;
use narrows_peers::error::{Error, ErrorKind};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

fn path(text: &str) -> CleanPath {
    CleanPath::read(text).unwrap()
}
fn kind<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorKind {
    let e = result.unwrap_err();
    assert_eq!(e.line.lines().count(), 1, "{e}");
    e.kind
}
fn puts() -> Permits {
    Permits { put: true, overwrite: true, ..Permits::default() }
}

#[test]
#[cfg(unix)]
fn files_outside_the_root_are_neither_read_nor_written() {
    use std::os::unix::fs::symlink;
    let all = tempfile::tempdir().unwrap();
    let root = all.path().join("root");
    std::fs::create_dir_all(root.join("in")).unwrap();
    std::fs::create_dir(all.path().join("out")).unwrap();
    std::fs::write(all.path().join("out/secret"), "s").unwrap();
    std::fs::write(root.join("in/file"), "ok").unwrap();
    symlink("../out/secret", root.join("file-out")).unwrap();
    symlink("../out", root.join("folder-out")).unwrap();
    symlink(all.path().join("out"), root.join("absolute-out")).unwrap();
    symlink("in", root.join("folder-in")).unwrap();
    symlink("in/file", root.join("file-in")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    let memory = Memory::new(&root, puts());
    let here = tempfile::tempdir().unwrap();
    let dir = open(here.path());
    for bad in ["file-out", "folder-out/secret", "absolute-out/secret", "loop"] {
        let result = get(&memory, &path(bad), &dir, "x", &control());
        assert!(result.is_err(), "{bad}: {result:?}");
    }
    std::fs::write(here.path().join("mine"), "mine").unwrap();
    for bad in ["folder-out/new", "absolute-out/new", "folder-out/secret"] {
        assert!(put(&memory, &dir, Path::new("mine"), &path(bad), &control()).is_err(), "{bad}");
        assert!(make_folder(&memory, &path(&format!("{bad}/f"))).is_err(), "{bad}");
    }
    // A file of its name replaces a link; the link is not followed.
    put(&memory, &dir, Path::new("mine"), &path("file-out"), &control()).unwrap();
    assert_eq!(std::fs::read(root.join("file-out")).unwrap(), b"mine");
    assert_eq!(std::fs::read(all.path().join("out/secret")).unwrap(), b"s");
    assert_eq!(std::fs::read_dir(all.path().join("out")).unwrap().count(), 1);
    for raw in ["../out/secret", "in/../../out/secret", "/etc/../..", "in/\0"] {
        let e =
            raw_request(&memory, &FileRequest::Get { path: raw.into(), held: None, modes: false });
        assert!(matches!(e.kind, ErrorKind::BadPath | ErrorKind::NotFound), "{raw}: {e}");
    }
    // A link to a target below the root is served.
    get(&memory, &path("folder-in/file"), &dir, "a", &control()).unwrap();
    get(&memory, &path("file-in"), &dir, "b", &control()).unwrap();
    let listing = list(&memory, &CleanPath::root()).unwrap();
    let kinds: Vec<_> = listing.entries.iter().map(|e| (e.name.as_str(), e.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("file-in", EntryKind::File),
            ("file-out", EntryKind::File),
            ("folder-in", EntryKind::FolderLink),
            ("in", EntryKind::Folder)
        ]
    );
    assert_eq!(listing.hidden, 3);
}

/// Sends a request that our client would not send; returns the error.
fn raw_request(memory: &Memory, request: &FileRequest) -> Error {
    let FileStream { input, mut output } = memory.open().unwrap();
    output.write_all(&request.bytes()).unwrap();
    output.finish().unwrap();
    frames::FileFrameReader::new(input).frame().unwrap_err()
}

#[test]
#[cfg(unix)]
fn pipes_and_devices_are_refused_without_blocking() {
    let root = tempfile::tempdir().unwrap();
    let fifo = root.path().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let memory = Memory::new(root.path(), puts());
    let here = tempfile::tempdir().unwrap();
    let dir = open(here.path());
    assert_eq!(kind(get(&memory, &path("fifo"), &dir, "x", &control())), ErrorKind::WrongType);
    std::fs::write(here.path().join("x"), "x").unwrap();
    assert_eq!(
        kind(put(&memory, &dir, Path::new("x"), &path("fifo"), &control())),
        ErrorKind::WrongType
    );
    assert_eq!(list(&memory, &CleanPath::root()).unwrap().hidden, 1);
}

#[test]
fn missing_forbidden_or_special_files_are_named() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("d")).unwrap();
    std::fs::write(root.path().join("f"), "f").unwrap();
    let memory = Memory::new(root.path(), Permits::default());
    let here = tempfile::tempdir().unwrap();
    let dir = open(here.path());
    assert_eq!(kind(get(&memory, &path("none"), &dir, "x", &control())), ErrorKind::NotFound);
    assert_eq!(kind(get(&memory, &path("d"), &dir, "x", &control())), ErrorKind::WrongType);
    assert_eq!(kind(get(&memory, &path("f/x"), &dir, "x", &control())), ErrorKind::WrongType);
    assert_eq!(kind(list(&memory, &path("none"))), ErrorKind::NotFound);
    assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 0);
    std::fs::write(here.path().join("m"), "m").unwrap();
    assert_eq!(
        kind(put(&memory, &dir, Path::new("m"), &path("m"), &control())),
        ErrorKind::ReadOnly
    );
    assert_eq!(kind(make_folder(&memory, &path("new"))), ErrorKind::ReadOnly);
    assert_eq!(
        kind(put(&memory, &dir, Path::new("gone"), &path("m"), &control())),
        ErrorKind::NotFound
    );
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 2);
    let memory = Memory::new(root.path(), puts());
    assert_eq!(
        kind(put(&memory, &dir, Path::new("m"), &path("d"), &control())),
        ErrorKind::WrongType
    );
    assert_eq!(
        kind(put(&memory, &dir, Path::new("m"), &path("no/m"), &control())),
        ErrorKind::NotFound
    );
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 2);
}

#[test]
fn unlisted_clients_are_refused_with_their_key() {
    let root = tempfile::tempdir().unwrap();
    let list_of = AllowList::read(&narrows_peers::key::text(&[1; 32])).unwrap();
    let permits = || Permits { put: true, clients: Some(list_of.clone()), ..Permits::default() };
    let mut memory = Memory::new(root.path(), permits());
    list(&memory, &CleanPath::root()).unwrap();
    memory.client = [2; 32];
    let e = list(&memory, &CleanPath::root()).unwrap_err();
    assert_eq!(e.kind, ErrorKind::Refused);
    assert!(e.line.contains(&narrows_peers::key::text(&[2; 32])), "{e}");
    assert_eq!(kind(make_folder(&memory, &path("x"))), ErrorKind::Refused);
}

/// The client opens a stream and sends its request later.
#[test]
fn logged_time_begins_with_the_request() {
    let root = tempfile::tempdir().unwrap();
    let (sender, times) = std::sync::mpsc::channel();
    let log = move |event: &AnsweredRequest| sender.send(event.took).unwrap();
    let mut memory = Memory::new(root.path(), Permits::default());
    memory.service = Arc::new(Service::new(root.path(), Permits::default(), log).unwrap());
    let FileStream { input: _input, mut output } = memory.open().unwrap();
    let idle = Duration::from_secs(5);
    std::thread::sleep(idle);
    let request = FileRequest::Get { path: "none".into(), held: None, modes: false };
    output.write_all(&request.bytes()).unwrap();
    assert!(times.recv().unwrap() < idle);
    output.finish().unwrap();
    memory.settle();
}

#[test]
fn finished_file_is_skipped_and_changed_one_replaced() {
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    let memory = Memory::new(root.path(), puts());
    let dir = open(here.path());
    for content in [bytes(1, 300_000), bytes(2, 300_000), bytes(1, 100), Vec::new()] {
        std::fs::write(root.path().join("f"), &content).unwrap();
        let first = get(&memory, &path("f"), &dir, "f", &replacing()).unwrap();
        assert_eq!((first.moved, first.unchanged), (content.len() as u64, 0));
        let again = get(&memory, &path("f"), &dir, "f", &replacing()).unwrap();
        assert_eq!((again.moved, again.unchanged), (0, 1));
        assert_eq!(std::fs::read(here.path().join("f")).unwrap(), content);
        let first = put(&memory, &dir, Path::new("f"), &path("g"), &replacing()).unwrap();
        assert_eq!(first.moved, content.len() as u64);
        let again = put(&memory, &dir, Path::new("f"), &path("g"), &replacing()).unwrap();
        assert_eq!(again.moved, 0);
        assert_eq!(std::fs::read(root.path().join("g")).unwrap(), content);
    }
}

#[test]
fn whole_folders_pass_both_ways_with_all_entries() {
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    for d in ["a/b/c", "a/empty", "z"] {
        std::fs::create_dir_all(here.path().join(d)).unwrap();
    }
    let names = ["a/1", "a/b/2", "a/b/c/3", "z/ä ö%", "top"];
    for (i, name) in names.iter().enumerate() {
        std::fs::write(here.path().join(name), bytes(i as u64, 50_000 * i)).unwrap();
    }
    std::fs::write(here.path().join("a").join(part_name("x")), "half").unwrap();
    let memory = Memory::new(root.path(), puts());
    let done = put_tree(&memory, &tree(here.path()), &path("new/er"), &control()).unwrap();
    // Half of a file is left out, and counted.
    assert_eq!((done.files, done.bytes, done.skipped), (5, 500_000, 1));
    let back = tempfile::tempdir().unwrap();
    let done = get_tree(&memory, &path("new/er"), |_| Ok(open(back.path())), &control()).unwrap();
    assert_eq!((done.files, done.moved), (5, 500_000));
    for name in names {
        let a = here.path().join(name);
        let b = back.path().join(name);
        assert_eq!(std::fs::read(a).unwrap(), std::fs::read(b).unwrap(), "{name}");
    }
    assert!(back.path().join("a/empty").is_dir());
    assert_eq!(std::fs::read_dir(back.path().join("a")).unwrap().count(), 3);
    let again = get_tree(&memory, &path("new/er"), |_| Ok(open(back.path())), &control()).unwrap();
    assert_eq!((again.moved, again.unchanged), (0, 5));
    assert_eq!(
        kind(get_tree(&memory, &path("new/er/top"), |_| Ok(open(back.path())), &control())),
        ErrorKind::WrongType
    );
}

#[test]
fn newer_of_two_uploads_of_one_file_continues() {
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    let memory = Memory::new(root.path(), puts());
    let content = bytes(7, 100_000);
    std::fs::write(here.path().join("f"), &content).unwrap();
    // The older upload hangs: its client is gone, and its connection has not timed out.
    let FileStream { input, mut output } = memory.open().unwrap();
    let request = FileRequest::Put { path: "f".into(), size: 100_000, mode: None };
    output.write_all(&request.bytes()).unwrap();
    let mut old = frames::FileFrameReader::new(input);
    assert!(matches!(
        old.frame().unwrap(),
        FileFrame::Holding { held: HeldPrefix { bytes: 0, .. }, .. }
    ));
    frames::send(output.as_mut(), &FileFrame::Start(0)).unwrap();
    frames::send(output.as_mut(), &FileFrame::Data(&content[..50_000])).unwrap();
    while std::fs::metadata(root.path().join(upload_name("f", &[1; 32]))).map_or(0, |m| m.len())
        < 50_000
    {
        std::thread::yield_now();
    }
    let done = put(&memory, &open(here.path()), Path::new("f"), &path("f"), &control()).unwrap();
    assert_eq!((done.held, done.moved), (50_000, 50_000));
    // Its further frames change nothing more.
    let _ = frames::send(output.as_mut(), &FileFrame::Data(&content[..9]));
    assert_eq!(old.frame().unwrap_err().kind, ErrorKind::Superseded);
    assert_eq!(std::fs::read(root.path().join("f")).unwrap(), content);
}

#[test]
fn stopped_client_keeps_its_partial_file() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("f"), bytes(1, 600_000)).unwrap();
    let memory = Memory::new(root.path(), Permits::default());
    let stops = TransferControl::new(&STOP, None, |step| {
        if matches!(step, crate::ProgressEvent::Moved(_)) {
            STOP.store(true, std::sync::atomic::Ordering::SeqCst);
        }
    });
    let e = get(&memory, &path("f"), &open(here.path()), "f", &stops).unwrap_err();
    assert_eq!(e.kind, ErrorKind::Interrupted);
    assert!(!here.path().join("f").exists() && here.path().join(part_name("f")).exists());
    let done = get(&memory, &path("f"), &open(here.path()), "f", &control()).unwrap();
    assert!(done.held > 0 && done.held + done.moved == 600_000);
}

#[test]
fn whatever_a_client_sends_the_service_ends_and_stays_inside() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("f"), "f").unwrap();
    let memory = Memory::new(root.path(), puts());
    for seed in 0..300 {
        let FileStream { mut input, mut output } = memory.open().unwrap();
        let mut noise = match random_key(seed, 0, 4) {
            0 => Vec::new(),
            1 => FileRequest::Put { path: "p".into(), size: random_key(seed, 1, 100), mode: None }
                .bytes(),
            2 => FileRequest::Get { path: "f".into(), held: None, modes: false }.bytes(),
            _ => vec![b'N', b'F', 1],
        };
        noise.extend(bytes(seed, random_key(seed, 2, 300) as usize));
        // The service may have closed the stream by now.
        let _ = output.write_all(&noise);
        let _ = output.finish();
        let mut answer = Vec::new();
        let _ = input.by_ref().take(1 << 20).read_to_end(&mut answer);
    }
    memory.settle();
    assert!(!root.path().join("p").exists());
    assert_eq!(std::fs::read(root.path().join("f")).unwrap(), b"f");
}

/// A server that answers every request with these bytes.
struct Liar(Vec<u8>);

impl Session for Liar {
    fn open(&self) -> Result<FileStream, Error> {
        let (client_end, mut server_end) = pair(i64::MAX);
        let lies = self.0.clone();
        std::thread::spawn(move || {
            let _ = server_end.output.write_all(&lies);
            let _ = server_end.output.finish();
            let _ = std::io::copy(&mut server_end.input, &mut std::io::sink());
        });
        Ok(client_end)
    }
    fn protocol(&self) -> String {
        "lies".into()
    }
}

fn framed(list: &[FileFrame<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    list.iter().for_each(|f| frames::write(&mut out, f).unwrap());
    out
}

#[test]
fn misbehaving_server_leaves_no_file_under_final_name() {
    let begin = |size| FileFrame::Begin { start: 0, size, mode: None };
    let right = *blake3::hash(b"abc").as_bytes();
    for (i, lies) in [
        framed(&[begin(3), FileFrame::Data(b"abc"), FileFrame::End([0; 32])]),
        framed(&[begin(3), FileFrame::Data(b"abcd"), FileFrame::End(right)]),
        framed(&[begin(3), FileFrame::Data(b"ab"), FileFrame::End(right)]),
        framed(&[begin(3), FileFrame::Data(b"abc")]),
        framed(&[
            FileFrame::Begin { start: 2, size: 3, mode: None },
            FileFrame::Data(b"c"),
            FileFrame::End(right),
        ]),
        framed(&[FileFrame::Data(b"abc"), FileFrame::End(right)]),
        framed(&[FileFrame::Done]),
        vec![2, 0xff, 0xff, 0xff],
        Vec::new(),
    ]
    .into_iter()
    .chain((0..200).map(|seed| bytes(seed, random_key(seed, 0, 200) as usize)))
    .enumerate()
    {
        let here = tempfile::tempdir().unwrap();
        let result = get(&Liar(lies), &path("f"), &open(here.path()), "f", &control());
        assert!(result.is_err(), "lie {i}");
        assert!(!here.path().join("f").exists(), "lie {i}");
    }
}

#[test]
fn names_of_a_server_that_lead_elsewhere_are_left_out() {
    let here = tempfile::tempdir().unwrap();
    let entry = |name: &str| crate::message::DirectoryEntry {
        kind: EntryKind::File,
        size: 3,
        modified: 0,
        name: name.into(),
    };
    let names = ["../x", "a/b", "..", "", ".f.narrows-part", "\0"];
    let lies = framed(&[
        FileFrame::Listed(names.iter().map(|n| entry(n)).collect()),
        FileFrame::ListEnd { folder: true, hidden: 1, mode: None },
    ]);
    let done =
        get_tree(&Liar(lies), &CleanPath::root(), |_| Ok(open(here.path())), &control()).unwrap();
    assert_eq!((done.files, done.skipped), (0, 7));
    assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 0);
}

/// 300 kB in all, at 500 kB/s: less than 0.4 s if each transfer had the rate for itself.
#[test]
fn all_transfers_of_a_client_share_its_rate() {
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("f"), bytes(1, 150_000)).unwrap();
    std::fs::write(here.path().join("g"), bytes(2, 150_000)).unwrap();
    let rate = |bits_per_s| Some(narrows_base::Rate::from_bps(bits_per_s));
    let memory = Memory::new(root.path(), Permits { rate: rate(4_000_000), ..puts() });
    let memory = &memory;
    let dir = &open(here.path());
    let begun = std::time::Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| get(memory, &path("f"), dir, "f", &control()).unwrap());
        scope.spawn(|| put(memory, dir, Path::new("g"), &path("g"), &control()).unwrap());
    });
    assert!(begun.elapsed().as_millis() > 480, "{:?}", begun.elapsed());
    // At the former rate this would take four days.
    memory.service.set_permits(Permits { rate: rate(8000), ..puts() });
    memory.service.set_permits(Permits { rate: rate(80_000_000_000), ..puts() });
    std::fs::write(root.path().join("large"), bytes(3, 40_000_000)).unwrap();
    get(memory, &path("large"), dir, "large", &control()).unwrap();
}
