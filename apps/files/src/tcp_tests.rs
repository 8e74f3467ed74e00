//! The service over a real TCP connection.

use crate::bench_tests::{NEVER, bytes, control, open};
use crate::client::{get, list, put};
use crate::service::{Permits, Service};
use crate::tcp::{Accept, TcpServer, TcpSession};
use crate::{CleanPath, Error};
use narrows_base::Rate;
use narrows_peers::error::ErrorKind;
use narrows_peers::key::Identity;
use narrows_wire::Suite;
use narrows_wire::keyless::{self, WeakKey};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

fn serve(root: &Path) -> SocketAddr {
    let permits = Permits { put: true, overwrite: true, ..Permits::default() };
    let service = Arc::new(Service::new(root, permits, |_| ()).unwrap());
    let identity = Identity::new([3; 32]).unwrap();
    let server = TcpServer::bind("127.0.0.1:0".parse().unwrap(), identity, service).unwrap();
    let address = server.address().unwrap();
    std::thread::spawn(move || server.run());
    address
}
fn anybody() -> Accept {
    Box::new(|_| Ok(()))
}
fn session(to: SocketAddr, congestion: Option<&str>, accept: Accept) -> Result<TcpSession, Error> {
    let identity = Identity::new([4; 32]).unwrap();
    let host = to.ip().to_string();
    TcpSession::new(&host, to.port(), identity, congestion.map(str::to_string), accept, &NEVER)
}

#[test]
fn files_go_both_ways_across_many_changes_of_keys() {
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    // Sixty messages; in tests keys change every eight.
    let content = bytes(1, 4_000_000);
    std::fs::write(root.path().join("f"), &content).unwrap();
    let right: Accept = Box::new(|key| {
        assert_eq!(key, Identity::new([3; 32]).unwrap().public());
        Ok(())
    });
    let session = session(serve(root.path()), None, right).unwrap();
    let path = CleanPath::read("f").unwrap();
    get(&session, &path, &open(here.path()), "f", &control()).unwrap();
    assert_eq!(std::fs::read(here.path().join("f")).unwrap(), content);
    let path = CleanPath::read("g").unwrap();
    put(&session, &open(here.path()), Path::new("f"), &path, &control()).unwrap();
    assert_eq!(std::fs::read(root.path().join("g")).unwrap(), content);
}

/// Two connections of a client share the limit. Only what the limit forbids is asserted: a busy machine is slower.
#[test]
fn tcp_rate_limit_spans_all_connections_of_a_client() {
    const BYTES: usize = 200_000;
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("f"), bytes(1, BYTES)).unwrap();
    let service = Arc::new(Service::new(root.path(), Permits::default(), |_| ()).unwrap());
    let identity = Identity::new([3; 32]).unwrap();
    let server = TcpServer::bind("127.0.0.1:0".parse().unwrap(), identity, service).unwrap();
    let server = server.limited(Some(Rate::from_bps(4_000_000)));
    let address = server.address().unwrap();
    std::thread::spawn(move || server.run());
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let here = tempfile::tempdir().unwrap();
                let session = session(address, None, anybody()).unwrap();
                let path = CleanPath::read("f").unwrap();
                get(&session, &path, &open(here.path()), "f", &control()).unwrap();
            });
        }
    });
    // 0.1 s may be sent at once.
    let rate = 2.0 * 8.0 * BYTES as f64 / (begun.elapsed().as_secs_f64() + 0.1);
    assert!(rate <= 4_000_000.0 * 1.1, "{rate}");
}

#[test]
fn server_with_wrong_key_gets_no_request() {
    let root = tempfile::tempdir().unwrap();
    let wrong: Accept = Box::new(|_| Err(Error::new(ErrorKind::WrongKey, "another key")));
    let session = session(serve(root.path()), None, wrong).unwrap();
    let e = list(&session, &CleanPath::root()).unwrap_err();
    assert_eq!(e.kind, ErrorKind::WrongKey);
}

#[test]
fn missing_foreign_or_incompatible_server_is_named() {
    // Systems give this port to no socket that asks for any.
    let gone = ([127, 0, 0, 1], 9).into();
    let e = list(&session(gone, None, anybody()).unwrap(), &CleanPath::root()).unwrap_err();
    assert!(e.kind == ErrorKind::Unreachable && e.line.contains("no server listens"), "{e}");
    for (answer, kind, hint) in [
        (&b"HTTP/1.1 400"[..], ErrorKind::Unreachable, "no narrows server"),
        (b"", ErrorKind::Unreachable, "hung up"),
        (b"NRWT\x07", ErrorKind::Version, "version 7"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let (mut tcp, _) = listener.accept().unwrap();
            // Read everything, or the kernel resets the connection.
            let _ = tcp.read_exact(&mut [0; 6 + 2 + 32]);
            tcp.write_all(answer).unwrap();
        });
        let e = list(&session(at, None, anybody()).unwrap(), &CleanPath::root()).unwrap_err();
        assert!(e.kind == kind && e.line.contains(hint), "{e}");
        thread.join().unwrap();
    }
    let root = tempfile::tempdir().unwrap();
    let mut tcp = TcpStream::connect(serve(root.path())).unwrap();
    tcp.write_all(b"NRWT\x07\x01").unwrap();
    let mut answer = Vec::new();
    tcp.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"NRWT\x01");
}

#[test]
fn a_changed_or_missing_byte_is_noticed() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("f"), bytes(1, 100_000)).unwrap();
    let server = serve(root.path());
    // The n-th byte from the server is changed, or is the last one; behind the greeting.
    for (at, change) in [(40, true), (150, true), (400, true), (50_000, true), (60_000, false)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut up = TcpStream::connect(server).unwrap();
            let mut c = client.try_clone().unwrap();
            let mut u = up.try_clone().unwrap();
            std::thread::spawn(move || std::io::copy(&mut c, &mut u));
            let mut seen = 0;
            let mut some = [0; 4096];
            while let Ok(n @ 1..) = up.read(&mut some) {
                let here = (seen..seen + n).contains(&at).then(|| at - seen);
                if let Some(i) = here.filter(|_| change) {
                    some[i] ^= 1;
                }
                let end = here.filter(|_| !change).unwrap_or(n);
                if client.write_all(&some[..end]).is_err() || end < n {
                    break;
                }
                seen += n;
            }
            let _ = client.shutdown(std::net::Shutdown::Both);
        });
        let here = tempfile::tempdir().unwrap();
        let session = session(proxy, None, anybody()).unwrap();
        let path = CleanPath::read("f").unwrap();
        let e = get(&session, &path, &open(here.path()), "f", &control()).unwrap_err();
        assert_eq!(e.kind, ErrorKind::Cut, "byte {at}: {e}");
        assert!(!here.path().join("f").exists());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_kernels_congestion_control_is_chosen_or_named_as_missing() {
    let root = tempfile::tempdir().unwrap();
    let server = serve(root.path());
    // Every Linux kernel has it.
    let reno = session(server, Some("reno"), anybody()).unwrap();
    list(&reno, &CleanPath::root()).unwrap();
    let renno = session(server, Some("renno"), anybody()).unwrap();
    let e = list(&renno, &CleanPath::root()).unwrap_err();
    assert!(e.kind == ErrorKind::Input && e.line.contains("renno"), "{e}");
    assert!(session(server, Some("a b"), anybody()).is_err());
}

/// Opens a connection with a static or ephemeral key of zero. Returns the bytes after the server's part of the handshake.
fn keyless_client(to: SocketAddr, weak: WeakKey) -> Vec<u8> {
    let clear = [&b"NRWT"[..], &[1, Suite::Aes256Gcm.code()]].concat();
    let mut state = keyless::builder(Suite::Aes256Gcm, &clear, weak, [0; 32])
        .unwrap()
        .build_initiator()
        .unwrap();
    let mut tcp = TcpStream::connect(to).unwrap();
    let mut buffer = [0; 512];
    let mut message = |state: &mut snow::HandshakeState| {
        let length = state.write_message(&[], &mut buffer).unwrap();
        [&(length as u16).to_be_bytes()[..], &buffer[..length]].concat()
    };
    tcp.write_all(&[&clear[..], &message(&mut state)].concat()).unwrap();
    tcp.read_exact(&mut [0; 5]).unwrap();
    let mut head = [0; 2];
    if tcp.read_exact(&mut head).is_ok() {
        let mut answer = vec![0; usize::from(u16::from_be_bytes(head))];
        tcp.read_exact(&mut answer).unwrap();
        state.read_message(&answer, &mut [0; 512]).unwrap();
        tcp.write_all(&message(&mut state)).unwrap();
    }
    let mut rest = Vec::new();
    let _ = tcp.read_to_end(&mut rest);
    rest
}

#[test]
fn tcp_client_without_private_key_is_hung_up() {
    let root = tempfile::tempdir().unwrap();
    let server = serve(root.path());
    for weak in [WeakKey::Static, WeakKey::Ephemeral] {
        assert_eq!(keyless_client(server, weak), b"", "{weak:?}");
    }
}
