//! The service over a real `rrtp` connection.

use crate::bench_tests::{NEVER, bytes, go, open};
use crate::client::{get, list, make_folder, put, tune};
use crate::error::Kind;
use crate::key::Identity;
use crate::message::Wishes;
use crate::rrtp::{Expect, Permit, RrtpSession, Server};
use crate::service::{Permits, Service};
use crate::{CleanPath, Error};
use narrows_base::Spec;
use narrows_drive::endpoint::connection;
use narrows_flow::connection::ConnectionConfig;
use narrows_flow::{Preset, Protocol};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

fn config() -> ConnectionConfig {
    connection(Protocol::read(&Spec::named("rrtp+cubic"), Preset::Rfc, 1500).unwrap())
}

fn serve(root: &Path, permits: Permits) -> SocketAddr {
    serve_with(root, permits, Permit::Own)
}

fn serve_with(root: &Path, permits: Permits, permit: Permit) -> SocketAddr {
    let service = Arc::new(Service::new(root, permits, |_| ()).unwrap());
    let identity = Identity::new([3; 32]).unwrap();
    let server =
        Server::bind("127.0.0.1:0".parse().unwrap(), &identity, service, config(), permit, None)
            .unwrap();
    let address = server.address();
    std::thread::spawn(move || server.run());
    address
}

fn session(to: SocketAddr, ours: u8, expect: Expect) -> Result<RrtpSession, Error> {
    let identity = Identity::new([ours; 32]).unwrap();
    RrtpSession::connect(&to.ip().to_string(), to.port(), &identity, expect, config(), None, &NEVER)
}

fn right() -> Expect {
    Expect::Key(*Identity::new([3; 32]).unwrap().public())
}

#[test]
fn files_go_both_ways_and_the_server_says_what_it_sends_with() {
    let (root, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let content = bytes(1, 3_000_000);
    std::fs::write(root.path().join("f"), &content).unwrap();
    let server = serve(root.path(), Permits { put: true, clients: None });
    let session = session(server, 4, right()).unwrap();
    let path = |p: &str| CleanPath::read(p).unwrap();
    get(&session, &path("f"), &open(here.path()), "f", &go()).unwrap();
    assert_eq!(std::fs::read(here.path().join("f")).unwrap(), content);
    put(&session, &open(here.path()), Path::new("f"), &path("g"), &go()).unwrap();
    assert_eq!(std::fs::read(root.path().join("g")).unwrap(), content);
    make_folder(&session, &path("d")).unwrap();
    assert_eq!(list(&session, &CleanPath::root()).unwrap().entries.len(), 3);
    let wishes = Wishes { rate_bps: Some(1_000_000), ..Wishes::default() };
    assert_eq!(tune(&session, wishes).unwrap().controller, "rrtp+cubic");
}

/// The client's choice reaches the server's sending, and its own end understands what comes: a
/// controller whose receiver half does most of the work carries a file.
#[test]
fn a_server_that_permits_it_sends_with_what_the_client_says() {
    for (label, sent_with) in
        [("tear-reliable", "tear-reliable"), ("rrtp+bbr", "rrtp+bbr"), ("rrtp+fixed", "rrtp+cubic")]
    {
        let (root, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let content = bytes(2, 300_000);
        std::fs::write(root.path().join("f"), &content).unwrap();
        let permits = Permits { put: false, clients: None };
        let server = serve_with(root.path(), permits, Permit::Listed);
        let identity = Identity::new([4; 32]).unwrap();
        let spec = Spec::named(label);
        let ours = connection(Protocol::read(&spec, Preset::Rfc, 1500).unwrap());
        let host = server.ip().to_string();
        let session =
            RrtpSession::connect(&host, server.port(), &identity, right(), ours, None, &NEVER)
                .unwrap();
        assert_eq!(tune(&session, Wishes::default()).unwrap().controller, sent_with);
        let path = CleanPath::read("f").unwrap();
        get(&session, &path, &open(here.path()), "f", &go()).unwrap();
        assert_eq!(std::fs::read(here.path().join("f")).unwrap(), content);
    }
}

#[test]
fn wrong_keys_and_strangers_are_told_apart() {
    let root = tempfile::tempdir().unwrap();
    let friend = crate::key::text(Identity::new([4; 32]).unwrap().public());
    let list_of = crate::access::AllowList::read(&friend).unwrap();
    let server = serve(root.path(), Permits { put: false, clients: Some(list_of) });
    list(&session(server, 4, right()).unwrap(), &CleanPath::root()).unwrap();
    let e = session(server, 4, Expect::Key([9; 32])).err().unwrap();
    assert_eq!(e.kind, Kind::WrongKey, "{e}");
    let known = session(server, 4, Expect::Anybody).unwrap();
    assert_eq!(known.peer_key(), Some(*Identity::new([3; 32]).unwrap().public()));
    let stranger = session(server, 5, right());
    let e = stranger.and_then(|s| list(&s, &CleanPath::root()).map(|_| ())).unwrap_err();
    let key = crate::key::text(Identity::new([5; 32]).unwrap().public());
    assert!(e.kind == Kind::Refused && e.line.contains(&key), "{e}");
}
