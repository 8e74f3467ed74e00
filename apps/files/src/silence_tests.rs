//! Servers that keep a connection open and send no answer, and uploads in which the server has long no frame to send.

use crate::bench_tests::{Memory, NEVER, bytes, control, open};
use crate::client::{get, list, make_folder, put};
use crate::frames;
use crate::message::{FileFrame, FileRequest};
use crate::path::CleanPath;
use crate::rrtp::{Expect, RrtpSession, SessionOptions};
use crate::service::{Permits, Service};
use crate::stream::{FileStream, Session};
use crate::tcp::{TcpServer, TcpSession};
use crate::{ProgressEvent, TransferControl};
use narrows_base::Rate;
use narrows_net::endpoint::connection;
use narrows_net::{Endpoint, Options, block_on};
use narrows_peers::error::{Error, ErrorKind};
use narrows_peers::key::Identity;
use narrows_transport::Protocol;
use narrows_transport::endpoint::Clients;
use narrows_wire::StaticKey;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(400);

fn path(text: &str) -> CleanPath {
    CleanPath::read(text).unwrap()
}

fn is_silent(e: &Error) {
    assert!(e.kind == ErrorKind::Cut && e.line.contains("silent"), "{e}");
}

/// A server whose host acknowledges all packets, while its service sends no answer.
fn silent_server() -> SocketAddr {
    let protocol = Protocol::with_controller("cubic").unwrap();
    let key = StaticKey::new([3; 32]).unwrap();
    let options =
        Options::server(key, Clients::Any, crate::rrtp::for_files(connection(protocol)).unwrap());
    let server = Endpoint::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
    let address = server.local_addr();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        while let Ok(connection) = block_on(server.accept()) {
            kept.push(connection);
        }
    });
    address
}

/// The connection stays alive, so only the request's own deadline can end it.
#[test]
fn silent_live_server_is_given_up_over_rrtp() {
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("mine"), bytes(1, 3_000_000)).unwrap();
    let protocol = Protocol::with_controller("cubic").unwrap();
    let server = silent_server();
    let expect = Expect::Key(*Identity::new([3; 32]).unwrap().public());
    let how = SessionOptions {
        silence: SHORT,
        ..SessionOptions::new(expect, connection(protocol), &NEVER)
    };
    let identity = Identity::new([4; 32]).unwrap();
    let session =
        RrtpSession::connect(&server.ip().to_string(), server.port(), &identity, how).unwrap();
    let dir = open(here.path());
    is_silent(&get(&session, &path("f"), &dir, "f", &control()).unwrap_err());
    is_silent(&put(&session, &dir, Path::new("mine"), &path("f"), &control()).unwrap_err());
    is_silent(&list(&session, &path("d")).unwrap_err());
    is_silent(&make_folder(&session, &path("d")).unwrap_err());
    // The same with a server that does not even read.
    let mut stream = session.open().unwrap();
    let e = loop {
        if let Err(e) = stream.output.write_all(&[0; 100_000]) {
            break Error::stream(e);
        }
    };
    is_silent(&e);
    assert!(session.silence().is_some(), "the connection is there");
}

fn serve_tcp(root: &Path) -> SocketAddr {
    let permits = Permits { put: true, ..Permits::default() };
    let service = Arc::new(Service::new(root, permits, |_| ()).unwrap());
    let any = "127.0.0.1:0".parse().unwrap();
    let server = TcpServer::bind(any, Identity::new([3; 32]).unwrap(), service).unwrap();
    let address = server.address().unwrap();
    std::thread::spawn(move || server.run());
    address
}

fn over_tcp(to: SocketAddr, silence: Duration) -> TcpSession {
    let accept = Box::new(|_: &[u8; 32]| Ok(()));
    let identity = Identity::new([4; 32]).unwrap();
    let session = TcpSession::new(&to.ip().to_string(), to.port(), identity, None, accept, &NEVER);
    session.unwrap().silent_for(silence)
}

/// Forwards `max` bytes of the server's, then keeps the connection open and forwards no more.
fn stalls_after(server: SocketAddr, max: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for client in listener.incoming().flatten() {
            let up = TcpStream::connect(server).unwrap();
            let mut c = client.try_clone().unwrap();
            let mut u = up.try_clone().unwrap();
            std::thread::spawn(move || std::io::copy(&mut c, &mut u));
            let c = client.try_clone().unwrap();
            let u = up.try_clone().unwrap();
            std::thread::spawn(move || std::io::copy(&mut u.take(max), &mut &c));
            kept.push((client, up));
        }
    });
    address
}

/// In the handshake, before an answer, and in the middle of one.
#[test]
fn server_that_stops_midway_is_given_up_over_tcp() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("f"), bytes(1, 500_000)).unwrap();
    let server = serve_tcp(root.path());
    std::thread::scope(|scope| {
        // The greeting and message 2 are 5 + 2 + 96 bytes.
        for max in [0, 3, 60, 103, 110, 150, 300_000] {
            scope.spawn(move || {
                let here = tempfile::tempdir().unwrap();
                let session = over_tcp(stalls_after(server, max), SHORT);
                let e = get(&session, &path("f"), &open(here.path()), "f", &control()).unwrap_err();
                is_silent(&e);
                assert!(!here.path().join("f").exists());
            });
        }
    });
}

/// The server of a long upload sends only WAIT frames. That is no silence: traffic in either direction counts.
#[test]
fn upload_longer_than_the_silence_limit_succeeds() {
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("mine"), bytes(1, 450_000)).unwrap();
    let server = serve_tcp(root.path());
    let session = over_tcp(server, Duration::from_secs(5));
    let slow = TransferControl::new(&NEVER, Some(Rate::from_bps(600_000)), |_: ProgressEvent| ());
    put(&session, &open(here.path()), Path::new("mine"), &path("f"), &slow).unwrap();
    assert_eq!(std::fs::read(root.path().join("f")).unwrap(), bytes(1, 450_000));
}

#[test]
fn server_reports_progress_during_an_upload() {
    let root = tempfile::tempdir().unwrap();
    let memory = Memory::new(root.path(), Permits { put: true, ..Permits::default() });
    let FileStream { mut input, mut output } = memory.open().unwrap();
    output
        .write_all(&FileRequest::Put { path: "f".into(), size: 100, mode: None }.bytes())
        .unwrap();
    // The HOLDING frame.
    input.read_exact(&mut [0; 4 + 41]).unwrap();
    frames::send(output.as_mut(), &FileFrame::Start(0)).unwrap();
    for _ in 0..2 {
        frames::send(output.as_mut(), &FileFrame::Data(b"some")).unwrap();
        std::thread::sleep(frames::WAIT_EVERY + Duration::from_millis(100));
    }
    frames::send(output.as_mut(), &FileFrame::Data(b"more")).unwrap();
    let mut said = [9; 4];
    input.read_exact(&mut said).unwrap();
    assert_eq!(said, [0; 4], "WAIT has no length");
}
