//! TCP connections that end, stall or are modified within a Noise message, at any byte, in either direction: both ends
//! fail with one clear reason, and the next client is served.

use crate::bench_tests::{NEVER, bytes, control, open};
use crate::client::{get, list};
use crate::service::{Permits, Service};
use crate::tcp::{TcpServer, TcpSession};
use crate::{CleanPath, Error};
use narrows_peers::error::ErrorKind;
use narrows_peers::key::Identity;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;

/// The client's greeting, message 1 and message 3; the server's greeting and message 2.
const CLIENTS_OPENING: usize = 6 + 2 + 32 + 2 + 64;
/// LIST of the root, in a message.
const REQUEST: usize = 2 + 8 + 16;
const SERVERS_OPENING: usize = 5 + 2 + 96;

fn serve(root: &Path) -> (Arc<Service>, SocketAddr) {
    let service = Arc::new(Service::new(root, Permits::default(), |_| ()).unwrap());
    let identity = Identity::new([3; 32]).unwrap();
    let any = "127.0.0.1:0".parse().unwrap();
    let server = TcpServer::bind(any, identity, Arc::clone(&service)).unwrap();
    let address = server.address().unwrap();
    std::thread::spawn(move || server.run());
    (service, address)
}

fn session(to: SocketAddr) -> TcpSession {
    let accept = Box::new(|_: &[u8; 32]| Ok(()));
    let ours = Identity::new([4; 32]).unwrap();
    TcpSession::new(&to.ip().to_string(), to.port(), ours, None, accept, &NEVER).unwrap()
}

/// Modifications of one direction's bytes.
#[derive(Clone)]
enum Damage {
    Whole,
    /// One byte at a time, each in its own segment.
    Single,
    /// Forwards this many bytes, then ends the direction.
    Cut(usize),
    /// Forwards this many bytes, then these, then ends the direction.
    Then(usize, Vec<u8>),
}

fn pass(mut from: TcpStream, mut to: TcpStream, damage: &Damage) {
    let mut some = [0; 4096];
    let mut left = match damage {
        Damage::Cut(n) | Damage::Then(n, _) => *n,
        Damage::Whole | Damage::Single => usize::MAX,
    };
    while left > 0 {
        let max = if matches!(damage, Damage::Single) { 1 } else { some.len().min(left) };
        let Ok(n @ 1..) = from.read(&mut some[..max]) else { break };
        left -= n;
        if to.write_all(&some[..n]).is_err() {
            break;
        }
    }
    if let Damage::Then(_, lie) = damage {
        let _ = to.write_all(lie);
    }
    let _ = to.shutdown(Shutdown::Write);
    // Otherwise the kernel answers further bytes with a reset.
    while matches!(from.read(&mut some), Ok(1..)) {}
}

/// A proxy to the server that modifies the bytes of the client and of the server.
fn way(server: SocketAddr, clients: Damage, servers: Damage) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let up = TcpStream::connect(server).unwrap();
        for tcp in [&client, &up] {
            tcp.set_nodelay(true).unwrap();
        }
        let c = client.try_clone().unwrap();
        let u = up.try_clone().unwrap();
        std::thread::spawn(move || pass(c, u, &clients));
        pass(up, client, &servers);
    });
    address
}

fn served(service: &Service, server: SocketAddr) {
    assert_eq!(list(&session(server), &CleanPath::root()).unwrap().entries.len(), 1);
    // A cut connection leaves no request behind.
    while !service.requests().is_empty() {
        std::thread::yield_now();
    }
}

fn clear(e: &Error, what: &str) {
    assert!(
        matches!(e.kind, ErrorKind::Cut | ErrorKind::Unreachable | ErrorKind::Protocol),
        "{what}: {e}"
    );
    assert!(!e.line.is_empty() && e.line.lines().count() == 1, "{what}: {e}");
}

#[test]
fn opening_cut_at_any_byte_leaves_the_server_working() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("f"), bytes(1, 100)).unwrap();
    let (service, server) = serve(root.path());
    for n in 0..CLIENTS_OPENING + REQUEST {
        let way = way(server, Damage::Cut(n), Damage::Whole);
        let e = list(&session(way), &CleanPath::root()).unwrap_err();
        clear(&e, &format!("the client's byte {n}"));
    }
    served(&service, server);
    for n in 0..SERVERS_OPENING + 60 {
        let way = way(server, Damage::Whole, Damage::Cut(n));
        let e = list(&session(way), &CleanPath::root()).unwrap_err();
        clear(&e, &format!("the server's byte {n}"));
    }
    served(&service, server);
}

/// After a valid handshake: messages that are empty, shorter than a tag, announced and not sent, forged.
#[test]
fn partial_or_forged_messages_after_opening_close_the_connection() {
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("f"), bytes(1, 100)).unwrap();
    let (service, server) = serve(root.path());
    let lies = [vec![], vec![0], vec![0, 0], vec![0, 15], vec![0xff, 0xff], vec![0xff; 20]];
    let long: Vec<Vec<u8>> =
        [16, 65_535].map(|n: u16| [&n.to_be_bytes()[..], &bytes(2, n.into())].concat()).into();
    for lie in lies.into_iter().chain(long) {
        let clients = Damage::Then(CLIENTS_OPENING, lie.clone());
        let e =
            list(&session(way(server, clients, Damage::Whole)), &CleanPath::root()).unwrap_err();
        clear(&e, "a lie of the client's");
        let servers = Damage::Then(SERVERS_OPENING, lie.clone());
        let way = way(server, Damage::Whole, servers);
        let path = CleanPath::read("f").unwrap();
        let e = get(&session(way), &path, &open(here.path()), "f", &control()).unwrap_err();
        clear(&e, "a lie of the server's");
        assert!(!here.path().join("f").exists());
    }
    served(&service, server);
}

#[test]
fn request_arriving_byte_by_byte_is_served() {
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("f"), bytes(1, 3000)).unwrap();
    let (service, server) = serve(root.path());
    let way = way(server, Damage::Single, Damage::Single);
    let path = CleanPath::read("f").unwrap();
    get(&session(way), &path, &open(here.path()), "f", &control()).unwrap();
    assert_eq!(std::fs::read(here.path().join("f")).unwrap(), bytes(1, 3000));
    served(&service, server);
}
