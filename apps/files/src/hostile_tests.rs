//! Misbehaving clients, each beside a conforming one.

use crate::bench_tests::{Memory, NEVER, bytes, control, open, tree};
use crate::client::{get, get_tree, list, put, put_tree};
use crate::frames::{self, FileFrameReader};
use crate::message::{DirectoryEntry, EntryKind, FileFrame, FileRequest, HeldPrefix};
use crate::path::{CleanPath, is_upload, part_name, upload_name};
use crate::requests::MAX_RUNNING;
use crate::rrtp::{Expect, Permit, RrtpServer, RrtpSession, SessionOptions};
use crate::service::{Permits, Service};
use crate::stream::{FileStream, Session};
use crate::tcp::{self, TcpSession};
use narrows_net::endpoint::connection;
use narrows_peers::error::{Error, ErrorKind};
use narrows_peers::key::Identity;
use narrows_transport::Protocol;
use narrows_transport::connection::ConnectionConfig;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

fn path(text: &str) -> CleanPath {
    CleanPath::read(text).unwrap()
}
fn identity(key: u8) -> Identity {
    Identity::new([key; 32]).unwrap()
}
fn puts() -> Permits {
    Permits { put: true, ..Permits::default() }
}

/// One service over UDP and TCP.
fn serve(root: &Path, permits: Permits) -> (Arc<Service>, SocketAddr, SocketAddr) {
    let service = Arc::new(Service::new(root, permits, |_| ()).unwrap());
    let any = "127.0.0.1:0".parse().unwrap();
    let protocol = Protocol::with_controller("cubic").unwrap();
    let config = connection(protocol);
    let own = Permit::Own;
    let udp = RrtpServer::bind(any, &identity(3), Arc::clone(&service), config, own, None).unwrap();
    let tcp = tcp::TcpServer::bind(any, identity(3), Arc::clone(&service)).unwrap();
    let at = (udp.address(), tcp.address().unwrap());
    std::thread::spawn(move || udp.run());
    std::thread::spawn(move || tcp.run());
    (service, at.0, at.1)
}
fn over_udp(to: SocketAddr, key: u8) -> RrtpSession {
    over_udp_with(to, key, |_| ())
}
fn over_udp_with(to: SocketAddr, key: u8, set: impl Fn(&mut ConnectionConfig)) -> RrtpSession {
    let protocol = Protocol::with_controller("cubic").unwrap();
    let host = to.ip().to_string();
    let mut config = connection(protocol);
    set(&mut config);
    let expect = Expect::Key(*identity(3).public());
    let how = SessionOptions::new(expect, config, &NEVER);
    RrtpSession::connect(&host, to.port(), &identity(key), how).unwrap()
}
fn over_tcp(to: SocketAddr, key: u8) -> TcpSession {
    let accept = Box::new(|_: &[u8; 32]| Ok(()));
    TcpSession::new(&to.ip().to_string(), to.port(), identity(key), None, accept, &NEVER).unwrap()
}

/// Requests of one byte, each on a stream of its own: no thread waits for the rest. A client with another key behind
/// the same address is served over both transports.
#[test]
fn endless_requests_do_not_delay_other_clients() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("f"), b"f").unwrap();
    let (service, udp, tcp) = serve(root.path(), Permits::default());
    let hostile: Vec<RrtpSession> = (10..19).map(|key| over_udp(udp, key)).collect();
    let mut streams = Vec::new();
    for session in &hostile {
        for _ in 0..100 {
            let mut stream = session.open().unwrap();
            stream.output.write_all(b"N").unwrap();
            streams.push(stream);
        }
    }
    // By then most of them have arrived. On a slow machine the first reach their deadline before.
    let began = std::time::Instant::now();
    while service.requests().len() < 400 && began.elapsed() < std::time::Duration::from_secs(5) {
        std::thread::yield_now();
    }
    assert!(service.requests().threads() <= 1, "a request is read without a thread");
    // A new key has a smaller share than each of theirs: served at once.
    for key in [50, 51] {
        assert_eq!(list(&over_udp(udp, key), &CleanPath::root()).unwrap().entries.len(), 1);
        assert_eq!(list(&over_tcp(tcp, key), &CleanPath::root()).unwrap().entries.len(), 1);
    }
}

/// Large files that are requested and never read: threads are bounded, and a conforming client gets its turn.
#[test]
fn unread_answers_give_way_to_other_requests() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("large"), vec![7; 20_000_000]).unwrap();
    std::fs::write(root.path().join("small"), b"small").unwrap();
    let (service, udp, _) = serve(root.path(), Permits::default());
    let hostile: Vec<RrtpSession> = (10..18).map(|key| over_udp(udp, key)).collect();
    let mut streams = Vec::new();
    for session in &hostile {
        for _ in 0..20 {
            let mut stream = session.open().unwrap();
            let request = FileRequest::Get { path: "large".into(), held: None, modes: false };
            stream.output.write_all(&request.bytes()).unwrap();
            streams.push(stream);
        }
    }
    // On a slow machine the first requests give way before the last have arrived.
    let began = std::time::Instant::now();
    while service.requests().len() < 150 && began.elapsed() < std::time::Duration::from_secs(5) {
        std::thread::yield_now();
    }
    let here = tempfile::tempdir().unwrap();
    get(&over_udp(udp, 50), &path("small"), &open(here.path()), "small", &control()).unwrap();
    assert!(service.requests().running() <= MAX_RUNNING.network);
}

/// Any number of connections without a handshake, or without a request: a client that comes after them is served.
#[test]
fn idle_tcp_connections_leave_places_for_new_clients() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("f"), b"f").unwrap();
    let friend = narrows_peers::key::text(identity(50).public());
    let clients = Some(narrows_peers::access::AllowList::read(&friend).unwrap());
    let (_, _, tcp) = serve(root.path(), Permits { clients, ..Permits::default() });
    let idle: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(tcp).unwrap()).collect();
    let opened: Vec<FileStream> = (0..20).filter_map(|_| over_tcp(tcp, 9).open().ok()).collect();
    assert_eq!(list(&over_tcp(tcp, 50), &CleanPath::root()).unwrap().entries.len(), 1);
    // An unlisted client is refused before it sends a request.
    let mut stranger = over_tcp(tcp, 9).open().unwrap();
    let refusal = FileFrameReader::new(&mut stranger.input).frame().unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::Refused);
    drop((idle, opened));
}

fn begin_upload(memory: &Memory, name: &str, size: u64, some: &[u8]) -> FileStream {
    let FileStream { input, mut output } = memory.open().unwrap();
    output.write_all(&FileRequest::Put { path: name.into(), size, mode: None }.bytes()).unwrap();
    let mut frames = FileFrameReader::new(input);
    assert!(matches!(frames.frame().unwrap(), FileFrame::Holding { .. }));
    frames::send(output.as_mut(), &FileFrame::Start(0)).unwrap();
    frames::send(output.as_mut(), &FileFrame::Data(some)).unwrap();
    let input = std::mem::replace(frames.input(), Box::new(std::io::empty()));
    FileStream { input, output }
}

/// Another client's upload of the same name neither ends an upload nor changes its result.
#[test]
fn an_upload_is_not_disturbed_by_another_client() {
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    let mut memory = Memory::new(root.path(), puts());
    let content = bytes(1, 100_000);
    std::fs::write(here.path().join("f"), &content).unwrap();
    let mut mine = begin_upload(&memory, "f", 100_000, &content[..60_000]);
    let part = root.path().join(upload_name("f", &[1; 32]));
    while std::fs::metadata(&part).map_or(0, |m| m.len()) < 60_000 {
        std::thread::yield_now();
    }
    memory.client = [2; 32];
    let e = put(&memory, &open(here.path()), Path::new("f"), &path("f"), &control()).unwrap_err();
    assert!(e.kind == ErrorKind::Busy && e.line.contains("another client"), "{e}");
    frames::send(mine.output.as_mut(), &FileFrame::Data(&content[60_000..])).unwrap();
    frames::send(mine.output.as_mut(), &FileFrame::End(*blake3::hash(&content).as_bytes()))
        .unwrap();
    mine.output.finish().unwrap();
    assert!(matches!(FileFrameReader::new(mine.input).frame().unwrap(), FileFrame::Done));
    assert_eq!(std::fs::read(root.path().join("f")).unwrap(), content);
    // An existing file is not replaced, and an equal one is not sent.
    std::fs::write(here.path().join("g"), bytes(2, 100_000)).unwrap();
    let e = put(&memory, &open(here.path()), Path::new("g"), &path("f"), &control()).unwrap_err();
    assert_eq!(e.kind, ErrorKind::Exists);
    let same = put(&memory, &open(here.path()), Path::new("f"), &path("f"), &control()).unwrap();
    assert_eq!((same.moved, same.unchanged), (0, 1));
    assert_eq!(std::fs::read(root.path().join("f")).unwrap(), content);
}

/// Announced sizes reserve no space; bytes that arrive are counted.
#[test]
fn announced_size_reserves_no_space_and_quota_counts_arrivals() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("before"), vec![0; 50_000]).unwrap();
    let memory = Memory::new(root.path(), Permits { quota: Some(200_000), ..puts() });
    // Together the announced sizes exceed the quota by far; each alone would fit.
    let uploads: Vec<FileStream> =
        (0..10).map(|n| begin_upload(&memory, &format!("u{n}"), 140_000, b"some")).collect();
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("f"), bytes(1, 100_000)).unwrap();
    put(&memory, &open(here.path()), Path::new("f"), &path("honest"), &control()).unwrap();
    let e =
        put(&memory, &open(here.path()), Path::new("f"), &path("more"), &control()).unwrap_err();
    assert!(e.kind == ErrorKind::Full && e.line.contains("quota"), "{e}");
    drop(uploads);
    // A frame that announces a long payload and carries a short one.
    let mut frames = FileFrameReader::new(&[2_u8, 4, 0, 0, 1, 2, 3][..]);
    assert_eq!(frames.frame().unwrap_err().kind, ErrorKind::Cut);
}

/// Partial uploads that were not resumed for a week are removed; partial files of local transfers stay.
#[test]
fn old_partial_uploads_are_removed() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("d")).unwrap();
    let old = root.path().join("d").join(upload_name("f", b"key"));
    let new = root.path().join(upload_name("g", b"key"));
    let own = root.path().join(part_name("h"));
    for file in [&old, &new, &own] {
        std::fs::write(file, b"half").unwrap();
        assert_eq!(is_upload(file.file_name().unwrap().to_str().unwrap()), file != &own);
    }
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(8 * 24 * 3600);
    for file in [&old, &own] {
        let file = std::fs::File::options().write(true).open(file).unwrap();
        file.set_modified(long_ago).unwrap();
    }
    drop(Service::new(root.path(), puts(), |_| ()).unwrap());
    assert!(!old.exists() && new.exists() && own.exists());
}

/// After a failed request the next one on the stream is answered.
#[test]
fn a_stream_goes_on_behind_an_error() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("f"), b"f").unwrap();
    let memory = Memory::new(root.path(), puts());
    let FileStream { input, mut output } = memory.open().unwrap();
    let hash = *blake3::hash(b"new").as_bytes();
    for request in [
        FileRequest::Get { path: "none".into(), held: None, modes: false },
        FileRequest::Put { path: "f".into(), size: 3, mode: None },
    ] {
        output.write_all(&request.bytes()).unwrap();
    }
    for frame in [FileFrame::Start(0), FileFrame::Data(b"new"), FileFrame::End(hash)] {
        frames::write(output.as_mut(), &frame).unwrap();
    }
    let held = HeldPrefix { bytes: 1, hash: *blake3::hash(b"f").as_bytes() };
    output
        .write_all(&FileRequest::Get { path: "f".into(), held: Some(held), modes: false }.bytes())
        .unwrap();
    output.finish().unwrap();
    let mut frames = FileFrameReader::new(input);
    assert_eq!(frames.frame().unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(frames.frame().unwrap_err().kind, ErrorKind::Exists);
    assert!(matches!(frames.frame().unwrap(), FileFrame::Begin { start: 1, size: 1, mode: None }));
    assert!(matches!(frames.frame().unwrap(), FileFrame::End(_)));
}

/// A session that counts its streams: many small files need few.
struct CountedStreams(Memory, std::sync::atomic::AtomicUsize);

impl Session for CountedStreams {
    fn open(&self) -> Result<FileStream, Error> {
        self.1.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.0.open()
    }
    fn protocol(&self) -> String {
        self.0.protocol()
    }
}

#[test]
fn many_small_files_share_a_few_streams_both_ways() {
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    for n in 0..300 {
        std::fs::write(here.path().join(format!("f{n}")), bytes(n, 3000)).unwrap();
    }
    let session = CountedStreams(Memory::new(root.path(), puts()), 0.into());
    let streams = || session.1.swap(0, std::sync::atomic::Ordering::SeqCst);
    let done = put_tree(&session, &tree(here.path()), &path("d"), &control()).unwrap();
    assert_eq!((done.files, done.moved, done.unchanged), (300, 900_000, 0));
    assert!(streams() <= 5, "one for the folders, four for the files");
    let again = put_tree(&session, &tree(here.path()), &path("d"), &control()).unwrap();
    assert_eq!((again.files, again.moved, again.unchanged), (300, 0, 300));
    assert!(streams() <= 5);
    let back = tempfile::tempdir().unwrap();
    for moved in [900_000, 0] {
        let done = get_tree(&session, &path("d"), |_| Ok(open(back.path())), &control()).unwrap();
        assert_eq!((done.files, done.moved), (300, moved));
        assert!(streams() <= 5);
    }
    for n in 0..300 {
        assert_eq!(std::fs::read(back.path().join(format!("f{n}"))).unwrap(), bytes(n, 3000));
    }
    // A differing file is left out on either side, and the others are transferred.
    std::fs::write(here.path().join("f7"), bytes(9999, 3000)).unwrap();
    std::fs::write(here.path().join("new"), b"new").unwrap();
    let e = put_tree(&session, &tree(here.path()), &path("d"), &control()).unwrap_err();
    assert!(
        e.kind == ErrorKind::Exists && e.line.contains("f7") && e.line.contains("300 of 301"),
        "{e}"
    );
    let e = get_tree(&session, &path("d"), |_| Ok(open(here.path())), &control()).unwrap_err();
    assert!(e.kind == ErrorKind::Exists && e.line.contains("f7"), "{e}");
    assert_eq!(std::fs::read(here.path().join("f7")).unwrap(), bytes(9999, 3000));
}

/// Hidden files are not added to a folder that existed before. An interrupted transfer into a folder of its own resumes
/// with all files.
#[test]
fn hidden_files_come_only_into_a_folder_of_their_own() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("d/.ssh")).unwrap();
    for name in ["d/.ssh/authorized_keys", "d/.bashrc", "d/f"] {
        std::fs::write(root.path().join(name), bytes(1, 50_000)).unwrap();
    }
    let memory = Memory::new(root.path(), puts());
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("mine"), b"mine").unwrap();
    let done = get_tree(&memory, &path("d"), |_| Ok(open(home.path())), &control()).unwrap();
    assert_eq!((done.files, done.hidden), (1, 3));
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 2);
    let all = control().with_hidden(true);
    assert_eq!(get_tree(&memory, &path("d"), |_| Ok(open(home.path())), &all).unwrap().files, 3);
    let own = tempfile::tempdir().unwrap();
    memory.budget.store(60_000, std::sync::atomic::Ordering::SeqCst);
    assert!(get_tree(&memory, &path("d"), |_| Ok(open(own.path())), &control()).is_err());
    memory.budget.store(i64::MAX, std::sync::atomic::Ordering::SeqCst);
    let done = get_tree(&memory, &path("d"), |_| Ok(open(own.path())), &control()).unwrap();
    assert_eq!((done.files, done.hidden), (3, 0));
    let names = std::fs::read_dir(own.path()).unwrap().count();
    assert_eq!(names, 3, "nothing is left that says it was incomplete");
    // A server's entry with the name of the marker file is left out.
    let entry = DirectoryEntry {
        kind: EntryKind::File,
        size: 0,
        modified: 0,
        name: ".narrows-part".into(),
    };
    assert!(crate::path::check_name(&entry.name).is_err());
}

/// A file that appears under the name during the transfer is not replaced.
#[test]
fn a_file_that_appears_meanwhile_stays() {
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("f"), bytes(1, 300_000)).unwrap();
    let memory = Memory::new(root.path(), Permits::default());
    let target = here.path().join("f");
    let late = target.clone();
    let meddles = crate::TransferControl::new(&NEVER, None, move |step| {
        if matches!(step, crate::ProgressEvent::Moved(_)) {
            std::fs::write(&late, b"mine").unwrap();
        }
    });
    let e = get(&memory, &path("f"), &open(here.path()), "f", &meddles).unwrap_err();
    assert_eq!(e.kind, ErrorKind::Exists);
    assert_eq!(std::fs::read(&target).unwrap(), b"mine");
    assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 1);
    #[cfg(unix)]
    {
        // A dangling link is not replaced, either.
        std::fs::remove_file(&target).unwrap();
        std::os::unix::fs::symlink("/nowhere/at/all", &target).unwrap();
        let e = get(&memory, &path("f"), &open(here.path()), "f", &control()).unwrap_err();
        assert_eq!(e.kind, ErrorKind::Exists);
    }
}
