//! The service over a real `rrtp` connection.

use crate::bench_tests::{NEVER, bytes, control, open};
use crate::client::{get, list, make_folder, put, tune};
use crate::message::{FileRequest, Tuning};
use crate::rrtp::{Expect, Permit, RrtpServer, RrtpSession, SessionOptions};
use crate::service::{Permits, Service};
use crate::stream::{FileStream, Session as _};
use crate::{CleanPath, Error};
use narrows_base::{Duration, Rate, Spec};
use narrows_congestion::PathHints;
use narrows_net::endpoint::connection;
use narrows_net::{ConnectOptions, Endpoint, Options, block_on};
use narrows_peers::error::ErrorKind;
use narrows_peers::key::Identity;
use narrows_peers::learned::{LearnedPaths, MeasuredPath};
use narrows_peers::tokens::SavedTokens;
use narrows_transport::Protocol;
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::{Clients, ServerKey};
use narrows_wire::StaticKey;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

fn config() -> ConnectionConfig {
    connection(Protocol::with_controller("cubic").unwrap())
}

fn serve(root: &Path, permits: Permits) -> SocketAddr {
    serve_with(root, permits, Permit::Own)
}

fn serve_with(root: &Path, permits: Permits, permit: Permit) -> SocketAddr {
    let service = Arc::new(Service::new(root, permits, |_| ()).unwrap());
    let identity = Identity::new([3; 32]).unwrap();
    let server = RrtpServer::bind(
        "127.0.0.1:0".parse().unwrap(),
        &identity,
        service,
        config(),
        permit,
        None,
    )
    .unwrap();
    let address = server.address();
    std::thread::spawn(move || server.run());
    address
}

fn session(to: SocketAddr, own_secret: u8, expect: Expect) -> Result<RrtpSession, Error> {
    let identity = Identity::new([own_secret; 32]).unwrap();
    let how = SessionOptions::new(expect, config(), &NEVER);
    RrtpSession::connect(&to.ip().to_string(), to.port(), &identity, how)
}

fn right() -> Expect {
    Expect::Key(*Identity::new([3; 32]).unwrap().public())
}

#[test]
fn files_pass_both_ways_and_server_names_its_protocol() {
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    let content = bytes(1, 3_000_000);
    std::fs::write(root.path().join("f"), &content).unwrap();
    let server = serve(root.path(), Permits { put: true, overwrite: true, ..Permits::default() });
    let session = session(server, 4, right()).unwrap();
    let path = |p: &str| CleanPath::read(p).unwrap();
    get(&session, &path("f"), &open(here.path()), "f", &control()).unwrap();
    assert_eq!(std::fs::read(here.path().join("f")).unwrap(), content);
    put(&session, &open(here.path()), Path::new("f"), &path("g"), &control()).unwrap();
    assert_eq!(std::fs::read(root.path().join("g")).unwrap(), content);
    make_folder(&session, &path("d")).unwrap();
    assert_eq!(list(&session, &CleanPath::root()).unwrap().entries.len(), 3);
    let tuning = Tuning {
        path: PathHints { rate: Some(Rate::from_bps(1_000_000)), ..PathHints::default() },
        ..Tuning::default()
    };
    assert_eq!(tune(&session, tuning).unwrap().controller, "rrtp+cubic");
}

/// The client's choice of controller changes the server's sender, and its own receiver side matches: a controller whose
/// receiver side does most of the work transfers a file.
#[test]
fn permitting_server_sends_with_the_clients_protocol() {
    let any = Permit::Any(narrows_base::Rate::from_bps(100_000_000));
    for (permit, label, sent_with) in [
        (any, "tear-reliable", "tear-reliable"),
        (Permit::Listed, "rrtp+bbr", "rrtp+bbr"),
        (Permit::Listed, "tear-reliable", "rrtp+cubic"),
        (Permit::Listed, "rrtp+fixed", "rrtp+cubic"),
    ] {
        let root = tempfile::tempdir().unwrap();
        let here = tempfile::tempdir().unwrap();
        let content = bytes(2, 300_000);
        std::fs::write(root.path().join("f"), &content).unwrap();
        let permits = Permits::default();
        let server = serve_with(root.path(), permits, permit);
        let identity = Identity::new([4; 32]).unwrap();
        let spec = Spec::named(label);
        let configuration = connection(Protocol::read(&spec, 1500).unwrap());
        let host = server.ip().to_string();
        let session = RrtpSession::connect(
            &host,
            server.port(),
            &identity,
            SessionOptions::new(right(), configuration, &NEVER),
        )
        .unwrap();
        assert_eq!(tune(&session, Tuning::default()).unwrap().controller, sent_with);
        let path = CleanPath::read("f").unwrap();
        get(&session, &path, &open(here.path()), "f", &control()).unwrap();
        assert_eq!(std::fs::read(here.path().join("f")).unwrap(), content);
    }
}

/// Each session leaves a token for the next one, which may be in another process.
#[test]
fn address_tokens_outlast_a_session() {
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    let server = serve(root.path(), Permits::default());
    let identity = Identity::new([4; 32]).unwrap();
    let file = here.path().join("tokens");
    let mut before = String::new();
    for _ in 0..3 {
        let tokens = SavedTokens::at(file.clone());
        let how = SessionOptions { tokens, ..SessionOptions::new(right(), config(), &NEVER) };
        let session =
            RrtpSession::connect(&server.ip().to_string(), server.port(), &identity, how).unwrap();
        list(&session, &CleanPath::root()).unwrap();
        drop(session);
        let now = std::fs::read_to_string(&file).unwrap();
        assert!(now.starts_with(&server.to_string()) && now.lines().count() == 1, "{now}");
        assert_ne!(now, before, "the last one was used");
        before = now;
    }
}

/// A session that begins with its first request: at a known server the request is in the first packet, and the answer
/// comes once whatever the server accepts early. Requests that change something are not sent as early data, and not
/// executed if they arrive so.
#[test]
fn a_known_server_is_asked_with_the_first_packet() {
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("f"), b"small").unwrap();
    let server = serve(root.path(), Permits { put: true, ..Permits::default() });
    let identity = Identity::new([4; 32]).unwrap();
    let file = here.path().join("tokens");
    let session = || {
        let tokens = SavedTokens::at(file.clone());
        let how = SessionOptions { tokens, ..SessionOptions::new(right(), config(), &NEVER) };
        RrtpSession::with_first_request(&server.ip().to_string(), server.port(), &identity, how)
    };
    for is_known in [false, true, true] {
        let session = session();
        assert!(session.peer_key().is_none(), "nothing is sent before there is a request");
        get(&session, &CleanPath::read("f").unwrap(), &open(here.path()), "f", &control()).unwrap();
        assert_eq!(std::fs::read(here.path().join("f")).unwrap(), b"small");
        assert_eq!(session.went_early(), Some(is_known));
        assert_eq!(session.peer_protocol().as_deref(), Some("rrtp+cubic"));
        std::fs::remove_file(here.path().join("f")).unwrap();
    }
    let making = FileRequest::MakeFolder { path: "made".into(), mode: None };
    let patient = session();
    make_folder(&patient, &CleanPath::read("made").unwrap()).unwrap();
    assert_eq!((patient.went_early(), root.path().join("made").exists()), (Some(false), true));
    drop(patient);
    std::fs::remove_dir(root.path().join("made")).unwrap();
    let hasty = session();
    let FileStream { input, .. } = hasty.ask(&making.bytes()).unwrap();
    let e = crate::frames::FileFrameReader::new(input).frame().unwrap_err();
    assert!(e.kind == ErrorKind::Protocol && e.line.contains("early"), "{e}");
    assert_eq!((hasty.went_early(), root.path().join("made").exists()), (Some(true), false));
}

#[test]
fn wrong_keys_and_strangers_are_told_apart() {
    let root = tempfile::tempdir().unwrap();
    let friend = narrows_peers::key::text(Identity::new([4; 32]).unwrap().public());
    let list_of = narrows_peers::access::AllowList::read(&friend).unwrap();
    let server = serve(root.path(), Permits { clients: Some(list_of), ..Permits::default() });
    list(&session(server, 4, right()).unwrap(), &CleanPath::root()).unwrap();
    let e = session(server, 4, Expect::Key([9; 32])).err().unwrap();
    assert_eq!(e.kind, ErrorKind::WrongKey, "{e}");
    let known = session(server, 4, Expect::Anybody).unwrap();
    assert_eq!(known.peer_key(), Some(*Identity::new([3; 32]).unwrap().public()));
    let stranger = session(server, 5, right());
    let e = stranger.and_then(|s| list(&s, &CleanPath::root()).map(|_| ())).unwrap_err();
    let key = narrows_peers::key::text(Identity::new([5; 32]).unwrap().public());
    assert!(e.kind == ErrorKind::Refused && e.line.contains(&key), "{e}");
}

#[test]
fn learning_server_stores_the_path_to_a_client() {
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("clients.toml");
    std::fs::write(root.path().join("large"), bytes(3, 3_000_000)).unwrap();
    std::fs::write(root.path().join("small"), b"says nothing").unwrap();
    let service = Arc::new(Service::new(root.path(), Permits::default(), |_| ()).unwrap());
    let identity = Identity::new([3; 32]).unwrap();
    let any = "127.0.0.1:0".parse().unwrap();
    let server = RrtpServer::bind(any, &identity, service, config(), Permit::Own, None).unwrap();
    let server = server.learning(LearnedPaths::at(file.clone()));
    let address = server.address();
    std::thread::spawn(move || server.run());
    let get = |name: &str| {
        let session = session(address, 4, right()).unwrap();
        get(&session, &CleanPath::read(name).unwrap(), &open(here.path()), name, &control())
            .unwrap();
    };
    get("small");
    get("large");
    // The file is written when the server has noticed that the client is gone.
    while !file.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let all = narrows_peers::learned::read(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let client =
        narrows_peers::learned::client(Identity::new([4; 32]).unwrap().public(), address.ip());
    assert_eq!(all.keys().collect::<Vec<_>>(), [&client]);
    // 3 MB and their frames, at any speed: at most their bits in a quarter of a second.
    let rate = all[&client].path.rate.unwrap().as_bps() as f64;
    assert!(rate > 0.0 && rate <= 97e6 && all[&client].measured.is_some(), "{rate}");
}

#[test]
fn stored_path_seeds_only_connections_on_that_path() {
    let here = tempfile::tempdir().unwrap();
    let rates_with = |rtt_s: Option<f64>| {
        let learned = LearnedPaths::at(here.path().join("clients.toml"));
        let rate = Some(Rate::from_bps(40_000_000));
        let rtt = rtt_s.map(Duration::from_secs_f64);
        let path = MeasuredPath::from(PathHints { rate, rtt, loss: None });
        learned.keep("this client", path).unwrap();
        let key = StaticKey::new([3; 32]).unwrap();
        let protocol = Protocol::rrtp();
        let config = connection(protocol);
        let options = Options::server(key.clone(), Clients::Any, config.clone());
        let server = Endpoint::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
        let options = Options::client(StaticKey::new([4; 32]).unwrap(), config.clone());
        let client = Endpoint::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
        let to = ConnectOptions::new(ServerKey::Is(*key.public()), config);
        let _there = block_on(client.connect(server.local_addr(), to)).unwrap();
        let here = block_on(server.accept()).unwrap();
        let before = here.stats();
        crate::rrtp::remember(&here, &learned, "this client");
        (before.rate, here.stats().rate)
    };
    // The RTT of loopback varies, but no handshake takes 0 s or 4 s.
    for other in [0.0, 9.0] {
        let (before, after) = rates_with(Some(other));
        assert_eq!(before, after, "{other} s is another path");
    }
    let (before, after) = rates_with(None);
    println!("{before:?} {after:?}");
    assert!(before != after);
}
