//! A server's places over real sockets: floods, refusals, and a controller that panics.

use narrows_base::Duration;
use narrows_congestion::{Ack, Controller, SendLimits, Sent};
use narrows_net::endpoint::{connection, new_key};
use narrows_net::{ConnectOptions, Connection, Endpoint, Error, Options, block_on_for};
use narrows_transport::Protocol;
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::{Clients, EndpointLimits, ServerKey};
use std::future::Future;
use std::net::SocketAddr;

/// A test that takes longer hangs.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);
/// Places of the server.
const PLACES: usize = 24;

fn wait<F: Future>(future: F) -> F::Output {
    block_on_for(PATIENCE, future).expect("it never ended")
}

fn local() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn config() -> ConnectionConfig {
    connection(Protocol::with_controller("cubic").unwrap())
}

fn client() -> Endpoint {
    Endpoint::bind(local(), Options::client(new_key().unwrap(), config())).unwrap()
}

/// A server that echoes every stream, and keeps all connections.
fn echo() -> (Endpoint, SocketAddr, ConnectOptions) {
    let key = new_key().unwrap();
    let public = *key.public();
    let mut options = Options::server(key, Clients::Any, config());
    options.limits = EndpointLimits::new(PLACES);
    let server = Endpoint::bind(local(), options).unwrap();
    let address = server.local_addr();
    let accepting = server.clone();
    std::thread::spawn(move || {
        while let Ok(connection) = wait(accepting.accept()) {
            std::thread::spawn(move || {
                while let Ok((mut send, mut receive)) = wait(connection.accept_bi()) {
                    let Ok(all) = wait(receive.receive_all(1 << 22)) else { return };
                    if wait(send.send_all(&all)).is_err() {
                        return;
                    }
                    let _ = send.finish();
                }
            });
        }
    });
    (server, address, ConnectOptions::new(ServerKey::Is(public), config()))
}

/// Sends bytes in both directions.
fn exchange(connection: &Connection, bytes: usize) -> Result<(), Error> {
    wait(async {
        let (mut send, mut receive) = connection.open_bi().await?;
        send.send_all(&vec![7; bytes]).await?;
        send.finish()?;
        let back = receive.receive_all(bytes).await?;
        assert_eq!(back.len(), bytes);
        Ok(())
    })
}

/// Three times as many connections as places, from one address, each with a key of its own. Connections that move data
/// stay, a newcomer from the same address is served, and those that give way get an error.
#[test]
fn idle_connections_give_way_with_a_reason() {
    let (server, address, to) = echo();
    let honest = client();
    let talker = wait(honest.connect(address, to.clone())).unwrap();
    exchange(&talker, 100_000).unwrap();
    let mut idle = Vec::new();
    for n in 0..3 * PLACES {
        let endpoint = client();
        let connection = wait(endpoint.connect(address, to.clone())).unwrap();
        idle.push((endpoint, connection));
        assert!(server.connections() <= PLACES);
        if n % PLACES == 0 {
            exchange(&talker, 100_000).unwrap();
        }
    }
    let newcomer = client();
    let newcomer = wait(newcomer.connect(address, to)).unwrap();
    exchange(&newcomer, 100_000).unwrap();
    exchange(&talker, 100_000).unwrap();
    // The network has half of the places, and two of its connections move data.
    let gone = idle.len() - (PLACES / 2 - 2);
    for (_, connection) in idle.iter().take(gone) {
        assert_eq!(wait(connection.closed()), Error::Busy { address });
    }
}

/// 20 packets, then a panic.
#[derive(Clone)]
struct Faulty(u64);

impl Controller for Faulty {
    fn on_sent(&mut self, _: &Sent) {
        self.0 += 1;
        assert!(self.0 < 20, "a mistake");
    }
    fn on_ack(&mut self, _: &Ack) {}
    fn send_limits(&self) -> SendLimits {
        SendLimits::unpaced(10.0)
    }
}

#[test]
fn panicking_controller_ends_only_its_connection() {
    // Keep the panic off this test's output.
    std::panic::set_hook(Box::new(|_| {}));
    let (_server, address, to) = echo();
    let endpoint = client();
    let good = wait(endpoint.connect(address, to.clone())).unwrap();
    let like = Protocol::with_controller("cubic").unwrap();
    let make = |_: &_| -> Box<dyn Controller> { Box::new(Faulty(0)) };
    let protocol = Protocol::custom("mine(version=2)", like.config().clone(), make, None).unwrap();
    let mut faulty = to;
    faulty.connection = ConnectionConfig { protocol, ..config() };
    let bad = wait(endpoint.connect(address, faulty)).unwrap();
    let why = exchange(&bad, 1 << 20).unwrap_err();
    assert_eq!(why.to_string(), "the congestion controller mine(version=2) panicked: a mistake");
    assert_eq!(wait(bad.closed()), why);
    let _ = (bad.stats(), bad.learned());
    exchange(&good, 1 << 20).unwrap();
    assert_eq!(endpoint.connections(), 1);
    let _ = std::panic::take_hook();
}

/// A full server answers BUSY; otherwise the client would report "no answer".
#[test]
fn client_at_a_full_server_gets_busy() {
    let key = new_key().unwrap();
    let public = *key.public();
    let mut options = Options::server(key, Clients::Any, config());
    options.limits.handshake_rate = 0;
    let server = Endpoint::bind(local(), options).unwrap();
    let mut to = ConnectOptions::new(ServerKey::Is(public), config());
    to.patience = Duration::from_secs(5);
    let address = server.local_addr();
    let why = wait(client().connect(address, to)).unwrap_err();
    assert_eq!(why, Error::Busy { address });
    assert_eq!(why.to_string(), format!("{address} is busy: try again later"));
}
