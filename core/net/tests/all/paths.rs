//! Connections over several sockets: sockets that are replaced or added, and the status of paths.

use narrows_net::endpoint::{connection, new_key};
use narrows_net::{ConnectOptions, Connection, Endpoint, Options, block_on_for};
use narrows_transport::Protocol;
use narrows_transport::connection::{ConnectionConfig, PathStats, PathStatus};
use narrows_transport::endpoint::{Clients, ServerKey};
use std::future::Future;
use std::net::UdpSocket;

/// A test that takes longer hangs.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

fn wait<F: Future>(future: F) -> F::Output {
    block_on_for(PATIENCE, future).expect("it never ended")
}

fn socket() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").unwrap()
}

fn port(socket: &UdpSocket) -> u16 {
    socket.local_addr().unwrap().port()
}

/// A client with two sockets. Its connection may have three paths, and two are open.
struct Bonded {
    /// Keeps the endpoints.
    _ends: [Endpoint; 2],
    client: Connection,
    server: Connection,
}

impl Bonded {
    fn new() -> Bonded {
        let config = ConnectionConfig { paths: 3, ..connection(Protocol::rrtp()) };
        let key = new_key().unwrap();
        let public = *key.public();
        let options = Options::server(key, Clients::Any, config.clone());
        let accepting = Endpoint::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
        let options = Options::client(new_key().unwrap(), config.clone());
        let opening = Endpoint::with_sockets(vec![socket(), socket()], options).unwrap();
        let how = ConnectOptions::new(ServerKey::Is(public), config);
        let client = wait(opening.connect(accepting.local_addr(), how)).unwrap();
        let server = wait(accepting.accept()).unwrap();
        assert!(client.open_path(1));
        Bonded { _ends: [accepting, opening], client, server }
    }

    /// Waits until the server's paths are as wanted.
    fn until(&self, what: &str, is_reached: impl Fn(&[PathStats]) -> bool) {
        let end = std::time::Instant::now() + PATIENCE;
        loop {
            let paths = self.server.paths();
            if is_reached(&paths) {
                return;
            }
            assert!(std::time::Instant::now() < end, "{what}: {paths:?}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Sends bytes from the server.
    fn transfer(&self, count: usize) {
        let sent = vec![7; count];
        let server = self.server.clone();
        let sending = std::thread::spawn(move || {
            wait(async {
                let mut stream = server.open_uni().await.unwrap();
                stream.send_last(&sent).await.unwrap();
            });
        });
        let received = wait(async {
            let mut stream = self.client.accept_uni().await.unwrap();
            stream.receive_all(count).await.unwrap()
        });
        sending.join().unwrap();
        assert_eq!(received.len(), count);
    }
}

#[test]
fn replaced_socket_of_a_path_is_used_from_then_on() {
    let bonded = Bonded::new();
    bonded.until("second path", |paths| paths.len() == 2 && paths[1].is_usable);
    for path in [1, 0] {
        let next = socket();
        let expected = port(&next);
        assert!(bonded.client.rebind_path(path, next).unwrap());
        bonded.until("moved path", |paths| {
            paths[usize::from(path)].remote.port() == expected && paths.iter().all(|p| p.is_usable)
        });
        bonded.transfer(500_000);
    }
}

#[test]
fn socket_of_a_later_path_is_added() {
    let bonded = Bonded::new();
    bonded.until("second path", |paths| paths.len() == 2 && paths[1].is_usable);
    assert!(!bonded.client.rebind_path(3, socket()).unwrap(), "a path between is missing");
    let third = socket();
    let expected = port(&third);
    assert!(bonded.client.rebind_path(2, third).unwrap());
    assert!(bonded.client.open_path(2));
    bonded.until("third path", |paths| paths.len() == 3 && paths[2].is_usable);
    assert_eq!(bonded.server.paths()[2].remote.port(), expected);
    bonded.transfer(500_000);
}

#[test]
fn status_of_a_path_reaches_the_server() {
    let bonded = Bonded::new();
    bonded.until("second path", |paths| paths.len() == 2 && paths[1].is_usable);
    assert!(bonded.client.set_path_status(1, PathStatus::Standby));
    bonded.until("standby", |paths| paths[1].status == PathStatus::Standby);
    let before = bonded.server.paths()[1].bytes_sent;
    bonded.transfer(500_000);
    let sent = bonded.server.paths()[1].bytes_sent - before;
    assert!(sent < 50_000, "{sent} bytes on standby");
    assert!(bonded.client.set_path_status(0, PathStatus::Unusable));
    bonded.until("closed path", |paths| !paths[0].is_usable);
    bonded.transfer(500_000);
    assert!(!bonded.server.set_path_status(1, PathStatus::Available), "the client sets it");
}

#[test]
fn weak_reference_does_not_keep_the_connection() {
    let bonded = Bonded::new();
    let weak = bonded.client.downgrade();
    assert!(weak.upgrade().is_some());
    let Bonded { _ends: ends, client, server } = bonded;
    drop(client);
    assert!(weak.upgrade().is_none());
    drop((ends, server));
}
