//! Endpoints that a task of the application's tokio runtime drives.

use narrows_base::{Duration, Time};
use narrows_net::endpoint::{connection, new_key};
use narrows_net::{
    ApplicationProtocols, ConnectOptions, Connection, Driver, EarlyData, Endpoint, Error, Options,
    Token, TokenStore,
};
use narrows_transport::Protocol;
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::{Clients, ServerKey};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// A test that takes longer hangs.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

async fn soon<F: Future>(future: F) -> F::Output {
    timeout(PATIENCE, future).await.expect("it never ended")
}

fn config() -> ConnectionConfig {
    connection(Protocol::rrtp())
}

fn bind(options: Options) -> Result<Endpoint, Error> {
    Endpoint::bind("127.0.0.1:0".parse().unwrap(), options.driven_by(Driver::Tokio))
}

/// A client and a server in one runtime of one thread.
async fn pair() -> (Endpoint, Connection, Endpoint, Connection) {
    let key = new_key().unwrap();
    let expected = ServerKey::Is(*key.public());
    let server = bind(Options::server(key, Clients::Any, config())).unwrap();
    let client = bind(Options::client(new_key().unwrap(), config())).unwrap();
    let to = ConnectOptions::new(expected, config());
    let there = soon(client.connect(server.local_addr(), to)).await.unwrap();
    let here = soon(server.accept()).await.unwrap();
    (client, there, server, here)
}

/// Echoes every stream, until the connection is over.
async fn echo(connection: Connection) -> Error {
    loop {
        let (mut send, mut receive) = match connection.accept_bi().await {
            Ok(stream) => stream,
            Err(why) => return why,
        };
        let all = receive.receive_all(64 << 20).await.unwrap();
        send.send_all(&all).await.unwrap();
        send.finish().unwrap();
    }
}

async fn request(connection: &Connection, data: &[u8]) -> Vec<u8> {
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.send_all(data).await.unwrap();
    send.finish().unwrap();
    soon(receive.receive_all(64 << 20)).await.unwrap()
}

/// An answer leaves in the datagram that acknowledges the request, and data with its end: a request and its answer are
/// two datagrams, for a task and for the runtime's outermost future.
#[test]
fn small_request_and_its_answer_take_one_datagram_each() {
    const REQUESTS: u64 = 400;
    runtime().block_on(async {
        let (_client, there, _server, here) = pair().await;
        let echo = tokio::spawn(echo(here.clone()));
        request(&there, &[1; 1000]).await;
        let before = (there.stats().datagrams_sent, here.stats().datagrams_sent);
        for _ in 0..REQUESTS / 2 {
            assert_eq!(request(&there, &[2; 1000]).await, [2; 1000]);
        }
        let asking = there.clone();
        let task = tokio::spawn(async move {
            for _ in 0..REQUESTS / 2 {
                assert_eq!(request(&asking, &[3; 1000]).await, [3; 1000]);
            }
        });
        task.await.unwrap();
        let asked = there.stats().datagrams_sent - before.0;
        let answered = here.stats().datagrams_sent - before.1;
        // Additionally there are MTU probes, and PTO probes of a machine that is too busy.
        assert!(asked < REQUESTS * 11 / 10, "{asked} datagrams of the client");
        assert!(answered < REQUESTS * 11 / 10, "{answered} datagrams of the server");
        there.close(300, "thanks");
        assert!(matches!(soon(echo).await.unwrap(), Error::ClosedByPeer { code: 300, .. }));
    });
}

#[test]
fn streams_and_messages_pass_on_one_thread_or_several() {
    let several = Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap();
    for runtime in [runtime(), several] {
        runtime.block_on(async {
            let (_client, there, _server, here) = pair().await;
            tokio::spawn(echo(here.clone()));
            let sent: Vec<u8> = (0..4u32 << 20).map(|i| (i % 251) as u8).collect();
            assert!(request(&there, &sent).await == sent, "other bytes came back");
            there.send_message(b"a message", Duration::ZERO).unwrap();
            assert_eq!(soon(here.receive_message()).await.unwrap(), b"a message");
        });
    }
}

#[test]
fn without_a_runtime_there_is_no_task() {
    let why = bind(Options::client(new_key().unwrap(), config())).unwrap_err();
    assert_eq!(why, Error::NoRuntime);
    assert!(!why.to_string().contains('\n'));
}

/// By default, the runtime in which an endpoint is bound drives it, if there is one.
#[test]
fn endpoint_bound_in_a_runtime_is_its_task() {
    let bind = |driver: Option<Driver>| {
        let mut options = Options::client(new_key().unwrap(), config());
        options.driver = driver.unwrap_or(options.driver);
        Endpoint::bind("127.0.0.1:0".parse().unwrap(), options).unwrap()
    };
    let outside = bind(None);
    runtime().block_on(async {
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let thread = bind(Some(Driver::Thread));
        assert_eq!(tasks(), 0);
        let task = bind(None);
        assert_eq!(tasks(), 1);
        for endpoint in [&outside, &thread, &task] {
            endpoint.close(0, "");
            soon(endpoint.closed()).await;
        }
    });
}

/// As many waiting tasks are woken as there are messages; a woken task that is dropped leaves its message to the next.
#[test]
fn message_of_a_cancelled_receiver_goes_to_the_next() {
    runtime().block_on(async {
        let (_client, there, _server, here) = pair().await;
        for turn in 0..50_u8 {
            let first = here.clone();
            let second = here.clone();
            let (give_up, given_up) = tokio::sync::oneshot::channel::<()>();
            let gives_up = tokio::spawn(async move {
                tokio::select! {
                    biased;
                    _ = given_up => None,
                    message = first.receive_message() => Some(message.unwrap()),
                }
            });
            tokio::task::yield_now().await;
            let waits = tokio::spawn(async move { second.receive_message().await.unwrap() });
            tokio::task::yield_now().await;
            there.send_message(&[turn], Duration::ZERO).unwrap();
            if turn % 2 == 0 {
                // Until the message is there, and its receiver woken or about to be.
                while here.stats().bytes_taken < u64::from(turn) + 1 {
                    tokio::task::yield_now().await;
                }
            }
            let _ = give_up.send(());
            match soon(gives_up).await.unwrap() {
                None => assert_eq!(soon(waits).await.unwrap(), [turn]),
                Some(message) => {
                    assert_eq!(message, [turn]);
                    waits.abort();
                    let _ = waits.await;
                }
            }
        }
    });
}

/// If the only thread of a runtime shuts down or leaves an endpoint, its peer is informed, although that thread runs no
/// task meanwhile.
#[test]
fn endpoint_shut_down_in_its_runtime_closes_its_connections() {
    for how in [Endpoint::shut_down, Endpoint::leave] {
        let leaving = runtime();
        let staying = runtime();
        let key = new_key().unwrap();
        let expected = ServerKey::Is(*key.public());
        let (tell, addresses) = std::sync::mpsc::channel();
        let server = std::thread::spawn(move || {
            staying.block_on(async {
                let server = bind(Options::server(key, Clients::Any, config())).unwrap();
                tell.send(server.local_addr()).unwrap();
                let here = soon(server.accept()).await.unwrap();
                here.send_message(b"accepted", Duration::ZERO).unwrap();
                soon(here.closed()).await
            })
        });
        leaving.block_on(async {
            let client = bind(Options::client(new_key().unwrap(), config())).unwrap();
            let to = ConnectOptions::new(expected, config());
            let there = soon(client.connect(addresses.recv().unwrap(), to)).await.unwrap();
            soon(there.receive_message()).await.unwrap();
            how(&client, 401, "good night");
        });
        let why = server.join().unwrap();
        assert_eq!(why, Error::ClosedByPeer { code: 401, reason: "good night".into() });
    }
}

/// Closing can be awaited, and tasks that wait in a runtime that ends get an error.
#[test]
fn closed_endpoint_and_ended_runtime_are_over() {
    let runtime = runtime();
    let (client, there, _server, here) = runtime.block_on(async {
        let (client, there, server, here) = pair().await;
        client.close(402, "enough");
        soon(client.closed()).await;
        assert!(matches!(soon(here.closed()).await, Error::ClosedByPeer { code: 402, .. }));
        (client, there, server, here)
    });
    assert!(there.is_closed() && client.connections() == 0);
    drop(here);
    let left = runtime.block_on(async { bind(Options::client(new_key().unwrap(), config())) });
    drop(runtime);
    let accepted = narrows_net::block_on_for(PATIENCE, left.unwrap().accept());
    assert_eq!(accepted.expect("it never ended").unwrap_err(), Error::EndpointClosed);
}

/// Over sockets, client and server agree on an application protocol, or the client learns both lists.
#[test]
fn application_protocol_is_agreed_or_client_gets_both_lists() {
    let with = |names: &[&str]| {
        let applications = ApplicationProtocols::new(names).unwrap();
        ConnectionConfig { applications, ..config() }
    };
    runtime().block_on(async {
        let key = new_key().unwrap();
        let expected = ServerKey::Is(*key.public());
        let server = bind(Options::server(key, Clients::Any, with(&["chat/2", "chat/1"]))).unwrap();
        let client = bind(Options::client(new_key().unwrap(), config())).unwrap();
        let to = |names| ConnectOptions::new(expected, with(names));
        let agreed = soon(client.connect(server.local_addr(), to(&["chat/1", "chat/2"]))).await;
        assert_eq!(soon(agreed.unwrap().application()).await, Ok(Some("chat/2".into())));
        let here = soon(server.accept()).await.unwrap();
        assert_eq!(soon(here.application()).await, Ok(Some("chat/2".into())));
        let refused = soon(client.connect(server.local_addr(), to(&["mail"]))).await.unwrap();
        let why = soon(refused.closed()).await;
        let lists = "(the client offers: mail; the server speaks: chat/2, chat/1)";
        assert_eq!(why.to_string(), format!("no common application protocol {lists}"));
        assert!(matches!(why, Error::NoCommonProtocol { .. }));
    });
}

/// The client continues from another socket: both directions work at once, whichever end sends first, and the server
/// has the new address.
#[test]
fn connections_go_on_from_another_socket() {
    for driver in [Driver::Tokio, Driver::Thread] {
        runtime().block_on(async {
            let key = new_key().unwrap();
            let expected = ServerKey::Is(*key.public());
            let at: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
            let options = Options::server(key, Clients::Any, config()).driven_by(driver);
            let server = Endpoint::bind(at, options).unwrap();
            let options = Options::client(new_key().unwrap(), config()).driven_by(driver);
            let client = Endpoint::bind(at, options).unwrap();
            let to = ConnectOptions::new(expected, config());
            let there = soon(client.connect(server.local_addr(), to)).await.unwrap();
            let here = soon(server.accept()).await.unwrap();
            let echo = tokio::spawn(echo(here.clone()));
            for turn in 0..3 {
                assert_eq!(request(&there, &[turn; 3000]).await, [turn; 3000]);
                let before = client.local_addr();
                client.rebind(std::net::UdpSocket::bind(at).unwrap()).unwrap();
                assert_ne!(client.local_addr(), before);
                // The server sends first: without a packet from the client it would not have the new address.
                soon(async {
                    while here.remote() != Some(client.local_addr()) {
                        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                    }
                })
                .await;
                here.send_message(&[turn], Duration::ZERO).unwrap();
                assert_eq!(soon(there.receive_message()).await.unwrap(), [turn]);
            }
            assert_eq!(request(&there, &[9; 3000]).await, [9; 3000]);
            if let Ok(other) = std::net::UdpSocket::bind("[::1]:0") {
                assert!(matches!(client.rebind(other), Err(Error::Address { .. })));
            }
            there.close(0, "");
            soon(echo).await.unwrap();
        });
    }
}

/// Tokens that the application keeps, and those it returned.
#[derive(Clone, Debug, Default)]
struct KeptTokens(Arc<Mutex<Tokens>>);

#[derive(Debug, Default)]
struct Tokens {
    kept: Vec<(SocketAddr, Token)>,
    given: Vec<Token>,
}

impl TokenStore for KeptTokens {
    fn insert(&mut self, _: Time, server: SocketAddr, token: Token) {
        self.0.lock().unwrap().kept.push((server, token));
    }
    fn take(&mut self, _: Time, server: SocketAddr) -> Option<(Token, Duration)> {
        let tokens = &mut *self.0.lock().unwrap();
        let newest = tokens.kept.pop().filter(|(of, _)| *of == server)?.1;
        tokens.given.push(newest);
        Some((newest, Duration::ZERO))
    }
}

/// An application's own store gets every server's token and is asked for it at the next connection, also of another
/// endpoint with the same address.
#[test]
fn address_tokens_are_kept_where_the_application_says() {
    runtime().block_on(async {
        let key = new_key().unwrap();
        let expected = ServerKey::Is(*key.public());
        let server = bind(Options::server(key, Clients::Any, config())).unwrap();
        let kept = KeptTokens::default();
        for before in 0..3 {
            let options = Options::client(new_key().unwrap(), config());
            let client = bind(options.with_token_store(Box::new(kept.clone()))).unwrap();
            let to = ConnectOptions::new(expected, config());
            let there = soon(client.connect(server.local_addr(), to)).await.unwrap();
            let here = soon(server.accept()).await.unwrap();
            let echoing = tokio::spawn(echo(here));
            assert_eq!(soon(request(&there, b"hello")).await, b"hello");
            there.close(256, "");
            let _ = soon(echoing).await;
            let tokens = kept.0.lock().unwrap();
            assert_eq!((tokens.kept.len(), tokens.given.len()), (1, before));
            assert_eq!(tokens.kept[0].0, server.local_addr());
            assert!(!tokens.given.contains(&tokens.kept[0].1), "each is another");
        }
    });
}

/// A repeatable request leaves with the first packet to a known server that accepts early data; both applications can
/// query that. Another server gets it after the handshake, on the same stream.
#[test]
fn early_data_are_a_request_without_a_handshake() {
    runtime().block_on(async {
        for accepts in [true, false] {
            let key = new_key().unwrap();
            let expected = ServerKey::Is(*key.public());
            let options = Options::server(key, Clients::Any, config());
            let server = bind(options.accepting_early_data(accepts)).unwrap();
            let client = bind(Options::client(new_key().unwrap(), config())).unwrap();
            for (known, finished) in [(false, true), (true, true), (true, false)] {
                let data = EarlyData::new(*b"hello").unwrap();
                let data = if finished { data.finished() } else { data };
                let to = ConnectOptions::new(expected, config()).with_early_data(data);
                let answering = async {
                    let here = server.accept().await.unwrap();
                    let (mut send, mut receive) = here.accept_bi().await.unwrap();
                    let is_early = receive.is_early();
                    let request = receive.receive_all(100).await.unwrap();
                    send.send_last(&request).await.unwrap();
                    send.arrived().await.unwrap();
                    (is_early, request)
                };
                let asking = async {
                    let there = client.connect(server.local_addr(), to).await.unwrap();
                    let (mut send, mut receive) = there.early_stream().unwrap();
                    assert!(there.early_stream().is_none(), "once");
                    if !finished {
                        send.send_last(b" again").await.unwrap();
                    }
                    send.arrived().await.unwrap();
                    let answer = receive.receive_all(100).await.unwrap();
                    (there.early_data_accepted().unwrap(), answer, there)
                };
                let (here, there) = soon(async { tokio::join!(answering, asking) }).await;
                let request = if finished { &b"hello"[..] } else { b"hello again" };
                assert_eq!(here, (known && accepts, request.to_vec()));
                assert_eq!((there.0, &there.1[..]), (known && accepts, request));
                there.2.close(0, "");
            }
        }
    });
}
