//! Clients of a server that is busy, also in the middle of an answer: they repeat the request and resume.

use crate::bench_tests::{NEVER, bytes, control, open, random_key, tree};
use crate::client::{get, get_tree, list, put, put_tree};
use crate::path::CleanPath;
use crate::requests::RequestSlot;
use crate::rrtp::{Expect, RrtpSession, SessionOptions};
use crate::service::{Permits, Service};
use crate::stream::{FileStream, Output};
use crate::tcp::{self, TcpSession};
use crate::until::Until;
use narrows_net::endpoint::connection;
use narrows_net::{ConnectOptions, Connection, Endpoint, Options, ReceiveStream, SendStream};
use narrows_net::{Error as E, block_on};
use narrows_peers::error::{Error, ErrorKind};
use narrows_peers::key::Identity;
use narrows_transport::Protocol;
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::{Clients, EndpointLimits, ServerKey};
use narrows_wire::StaticKey;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn config() -> ConnectionConfig {
    let protocol = Protocol::with_controller("cubic").unwrap();
    crate::rrtp::for_files(connection(protocol)).unwrap()
}
fn server_options() -> Options {
    Options::server(StaticKey::new([3; 32]).unwrap(), Clients::Any, config())
}
fn session(to: SocketAddr, busy: fn(&str)) -> Result<RrtpSession, Error> {
    patient(to, crate::busy::PATIENCE, busy)
}
fn patient(to: SocketAddr, patience: Duration, busy: fn(&str)) -> Result<RrtpSession, Error> {
    let how = SessionOptions::new(Expect::Anybody, config(), &NEVER);
    let how = SessionOptions { patience, busy, ..how };
    let identity = Identity::new([4; 32]).unwrap();
    RrtpSession::connect(&to.ip().to_string(), to.port(), &identity, how)
}
fn path(text: &str) -> CleanPath {
    CleanPath::read(text).unwrap()
}

/// Half of a stream at a server that revokes the connection's slot after a number of bytes of all its streams.
struct Interrupted<S> {
    half: S,
    left: Arc<AtomicI64>,
    connection: Connection,
}

impl<S> Interrupted<S> {
    fn moved(&self, bytes: usize) -> io::Result<usize> {
        if self.left.fetch_sub(bytes as i64, Ordering::SeqCst) >= bytes as i64 {
            return Ok(bytes);
        }
        self.connection.close(8, "busy: another client has the place");
        Err(io::ErrorKind::ConnectionReset.into())
    }
}
impl Read for Interrupted<Box<dyn Read + Send>> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.half.read(to)?;
        self.moved(n)
    }
}
impl Write for Interrupted<Box<dyn Output>> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.half.write(&bytes[..bytes.len().min(1000)])?;
        self.moved(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.half.flush()
    }
}
impl Output for Interrupted<Box<dyn Output>> {
    fn finish(&mut self) -> io::Result<()> {
        self.half.finish()
    }
    fn abort(&mut self, why: &Error) {
        self.half.abort(why);
    }
}

struct Untuned;

impl crate::service::RequestChannel for Untuned {
    fn tune(&self, _: &crate::message::Tuning) -> crate::message::Tuning {
        crate::message::Tuning::default()
    }
}

/// A file service that revokes the slots of the first `connections`, each after `after` bytes; counts connections.
fn interrupting(root: &Path, connections: usize, after: i64) -> (SocketAddr, Arc<AtomicUsize>) {
    let permits = Permits { put: true, ..Permits::default() };
    let service = Arc::new(Service::new(root, permits, |_| ()).unwrap());
    let server = Endpoint::bind("127.0.0.1:0".parse().unwrap(), server_options()).unwrap();
    let address = server.local_addr();
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&accepted);
    std::thread::spawn(move || {
        while let Ok(connection) = block_on(server.accept()) {
            let is_interrupted = count.fetch_add(1, Ordering::SeqCst) < connections;
            let left = Arc::new(AtomicI64::new(if is_interrupted { after } else { i64::MAX }));
            let service = Arc::clone(&service);
            std::thread::spawn(move || {
                while let Ok((send, receive)) = block_on(connection.accept_bi()) {
                    let stream = interruptible(send, receive, &connection, &left);
                    let service = Arc::clone(&service);
                    std::thread::spawn(move || {
                        service.answer(&[1; 32], "a test", stream, &Untuned)
                    });
                }
            });
        }
    });
    (address, accepted)
}

fn interruptible(
    send: SendStream,
    receive: ReceiveStream,
    connection: &Connection,
    left: &Arc<AtomicI64>,
) -> FileStream {
    let until = Until::GivenUp(RequestSlot::unlimited().view());
    let FileStream { input, output } = crate::rrtp::stream(send, receive, until, None, [0; 32]);
    let left = Arc::clone(left);
    let connection = connection.clone();
    let input =
        Interrupted { half: input, left: Arc::clone(&left), connection: connection.clone() };
    let output = Interrupted { half: output, left, connection };
    FileStream { input: Box::new(input), output: Box::new(output) }
}

/// Creates files in a folder; returns their names and contents.
fn fill(dir: &Path, files: u64, max: u64) -> Vec<(String, Vec<u8>)> {
    (0..files)
        .map(|n| {
            let name = format!("f{n}");
            let content = bytes(n, random_key(n, 1, max) as usize);
            std::fs::write(dir.join(&name), &content).unwrap();
            (name, content)
        })
        .collect()
}
fn is_filled(dir: &Path, files: &[(String, Vec<u8>)]) {
    for (name, content) in files {
        assert_eq!(&std::fs::read(dir.join(name)).unwrap(), content, "{name}");
    }
}

/// A client whose slot is revoked in the middle of an answer connects again, and the file resumes where it stopped.
#[test]
fn a_transfer_that_loses_its_place_goes_on() {
    const PLACES: usize = 3;
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    let content = bytes(1, 3_000_000);
    std::fs::write(root.path().join("large"), &content).unwrap();
    let (server, accepted) = interrupting(root.path(), PLACES, 500_000);
    let session = session(server, |_| ()).unwrap();
    let dir = open(here.path());
    let done = session.while_busy(|| get(&session, &path("large"), &dir, "large", &control()));
    assert_eq!(std::fs::read(here.path().join("large")).unwrap(), content);
    assert_eq!(accepted.load(Ordering::SeqCst), PLACES + 1);
    // The last connection did not have to send everything.
    assert!(done.unwrap().held > 100_000);

    let (other, accepted) = interrupting(root.path(), PLACES, 500_000);
    let session = self::session(other, |_| ()).unwrap();
    let to = path("put");
    let done = session.while_busy(|| put(&session, &dir, Path::new("large"), &to, &control()));
    assert_eq!(std::fs::read(root.path().join("put")).unwrap(), content);
    assert_eq!(accepted.load(Ordering::SeqCst), PLACES + 1);
    assert!(done.unwrap().held > 100_000);
}

/// Folders, whose files use several streams, and listings resume likewise.
#[test]
fn folders_and_listings_that_lose_their_place_go_on() {
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("d")).unwrap();
    // The waits between attempts are parts of it.
    let few = Duration::from_secs(12);
    let files = fill(&root.path().join("d"), 150, 20_000);
    let (server, accepted) = interrupting(root.path(), 2, 300_000);
    let session = patient(server, few, |_| ()).unwrap();
    let done = session
        .while_busy(|| get_tree(&session, &path("d"), |_| Ok(open(here.path())), &control()))
        .unwrap();
    assert_eq!((done.files, accepted.load(Ordering::SeqCst)), (150, 3));
    assert!(done.unchanged > 0, "what was whole is not fetched again");
    is_filled(here.path(), &files);

    let (server, accepted) = interrupting(root.path(), 2, 300_000);
    let session = patient(server, few, |_| ()).unwrap();
    let done = session
        .while_busy(|| put_tree(&session, &tree(here.path()), &path("e"), &control()))
        .unwrap();
    assert_eq!((done.files, accepted.load(Ordering::SeqCst)), (150, 3));
    is_filled(&root.path().join("e"), &files);

    // Also before the request was read.
    for after in [0, 1000] {
        let (server, accepted) = interrupting(root.path(), 2, after);
        let session = patient(server, few, |_| ()).unwrap();
        assert_eq!(session.while_busy(|| list(&session, &path("d"))).unwrap().entries.len(), 150);
        assert_eq!(accepted.load(Ordering::SeqCst), 3);
    }
}

/// A server that is busy from the beginning sends none of the file: the user is informed, and the client gives up at
/// its deadline.
#[test]
fn transfer_without_progress_gives_up() {
    static TOLD: AtomicUsize = AtomicUsize::new(0);
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("large"), bytes(1, 3_000_000)).unwrap();
    let (server, _) = interrupting(root.path(), usize::MAX, 500);
    let session = patient(server, Duration::from_secs(6), |line| {
        assert!(line.contains("is busy: it is asked again for"), "{line}");
        TOLD.fetch_add(1, Ordering::SeqCst);
    })
    .unwrap();
    let dir = open(here.path());
    let e = session
        .while_busy(|| get(&session, &path("large"), &dir, "large", &control()))
        .unwrap_err();
    assert!(e.kind == ErrorKind::Busy && !here.path().join("large").exists(), "{e}");
    assert_eq!(TOLD.load(Ordering::SeqCst), 1);
}

/// A local error that looks like the server's is not retried.
#[test]
fn local_errors_are_not_retried() {
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("f"), bytes(1, 30_000)).unwrap();
    let (server, accepted) = interrupting(root.path(), 0, 0);
    let session = session(server, |line| panic!("{line}")).unwrap();
    let dir = open(here.path());
    let mut asked = 0;
    let e = session.while_busy::<()>(|| {
        asked += 1;
        get(&session, &path("f"), &dir, "f", &control())?;
        Err(Error::new(ErrorKind::Busy, "another transfer writes it"))
    });
    assert_eq!(
        (e.unwrap_err().kind, asked, accepted.load(Ordering::SeqCst)),
        (ErrorKind::Busy, 1, 1)
    );
}

/// A server answers START with BUSY: the user is informed during the attempt, which succeeds when a slot is free.
#[test]
fn the_user_learns_of_busy_while_the_attempt_goes_on() {
    static PLACE: Mutex<Option<(Endpoint, Connection)>> = Mutex::new(None);
    let mut options = server_options();
    options.limits = EndpointLimits::new(1);
    let server = Endpoint::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
    let options = Options::client(StaticKey::new([5; 32]).unwrap(), config());
    let client = Endpoint::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
    let to = ConnectOptions::new(ServerKey::Any, config());
    let first = block_on(client.connect(server.local_addr(), to)).unwrap();
    let at_server = block_on(server.accept()).unwrap();
    // It moves enough to keep its slot.
    let (mut send, _receive) = block_on(first.open_bi()).unwrap();
    block_on(send.send_all(&[7; 200_000])).unwrap();
    send.finish().unwrap();
    let (_send, mut receive) = block_on(at_server.accept_bi()).unwrap();
    while block_on(receive.receive(&mut [0; 10_000])).unwrap() > 0 {}
    *PLACE.lock().unwrap() = Some((client, first));
    let _there = session(server.local_addr(), |line| {
        assert!(line.contains("is busy: it is asked again for"), "{line}");
        let Some((client, _first)) = PLACE.lock().unwrap().take() else { panic!("told twice") };
        client.leave(0, "");
    })
    .unwrap();
    assert!(PLACE.lock().unwrap().is_none(), "the client was not told");
    let over = at_server.silence();
    assert!(matches!(over, Err(E::ClosedByPeer { code: 0, .. })), "{over:?}");
}

/// Over TCP: the server has no slot for another request until some of this key's have ended.
#[test]
fn a_tcp_server_that_is_busy_is_asked_again() {
    static HELD: Mutex<Vec<RequestSlot>> = Mutex::new(Vec::new());
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("f"), b"f").unwrap();
    let service = Service::new(root.path(), Permits::default(), |_| ()).unwrap();
    // No slot is revoked.
    let service = Arc::new(service.giving_way_after(Duration::from_secs(3600)));
    let identity = Identity::new([3; 32]).unwrap();
    let any = "127.0.0.1:0".parse().unwrap();
    let server = tcp::TcpServer::bind(any, identity, Arc::clone(&service)).unwrap();
    let to = server.address().unwrap();
    std::thread::spawn(move || server.run());
    let ours = Identity::new([4; 32]).unwrap();
    let source = service.source(Some(to.ip()), Some(*ours.public()));
    let held: Vec<RequestSlot> =
        std::iter::from_fn(|| service.requests().admit(source.clone()).ok()).take(128).collect();
    assert_eq!(held.len(), 128);
    *HELD.lock().unwrap() = held;
    let host = to.ip().to_string();
    let accept = Box::new(|_: &[u8; 32]| Ok(()));
    let session = TcpSession::new(&host, to.port(), ours, None, accept, &NEVER).unwrap();
    let session = session.telling(|line| {
        assert!(line.contains("is busy: it is asked again for"), "{line}");
        HELD.lock().unwrap().clear();
    });
    let listed = session.while_busy(|| list(&session, &CleanPath::root())).unwrap();
    assert_eq!(listed.entries.len(), 1);
    assert!(HELD.lock().unwrap().is_empty(), "it was not busy");
}
