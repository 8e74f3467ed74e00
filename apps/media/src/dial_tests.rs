use narrows_base::Duration;
use narrows_net::endpoint::{connection, new_key};
use narrows_net::{Endpoint, Options};
use narrows_peers::dial::{Dial, DialWords, Peer};
use narrows_peers::{ErrorKind, Identity};
use narrows_transport::Protocol;
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::Clients;
use std::net::UdpSocket;

fn config() -> ConnectionConfig {
    connection(Protocol::rrtp())
}

fn server() -> Endpoint {
    let options = Options::server(new_key().unwrap(), Clients::Any, config());
    Endpoint::bind("127.0.0.1:0".parse().unwrap(), options).unwrap()
}

fn dial(patience: Duration) -> Dial {
    let peer = Peer {
        host: "127.0.0.1".into(),
        port: 1,
        key: None,
        judge: Box::new(|_| Ok(())),
        identity: Identity::generate().unwrap(),
        config: config(),
        patience,
        tap: None,
        paths: Default::default(),
    };
    Dial::new(peer, DialWords { stranger: "unknown", other_protocol: None })
}

#[tokio::test]
async fn connection_is_made_to_the_address_after_a_silent_one() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = socket.local_addr().unwrap();
    let server = server();
    let at = server.local_addr();
    let dial = dial(Duration::from_secs(60));
    let made = dial.connect(&[silent, at], config()).await.unwrap();
    assert_eq!((made.address, made.connection.remote()), (at, Some(at)));
    assert_eq!(made.others, format!(" ({silent}: no connection so far)"));
    // The key of the first connection is that of all later ones, at whatever address.
    let other = self::server();
    let wrong = dial.connect(&[other.local_addr()], config()).await.err().unwrap();
    assert_eq!(wrong.kind, ErrorKind::WrongKey, "{wrong}");
}

#[tokio::test]
async fn address_that_answered_is_forgotten_with_the_name() {
    let dial = dial(Duration::from_secs(60));
    dial.fix_addresses().await.unwrap();
    let [only] = dial.fixed_addresses() else { panic!("one address") };
    dial.prefer(([192, 0, 2, 9], 1).into());
    assert_eq!(dial.addresses().await.unwrap(), [*only]);
}

#[tokio::test]
async fn failed_addresses_are_all_named_with_their_causes() {
    let dial = dial(Duration::from_millis(50));
    let silent = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
    let [a, b] = silent.each_ref().map(|socket| socket.local_addr().unwrap());
    let e = dial.connect(&[a, b], config()).await.err().unwrap();
    assert_eq!(e.kind, ErrorKind::Unreachable);
    assert!(e.line.ends_with(&format!("({a}: no answer, {b}: no answer)")), "{e}");
    let alone = dial.connect(&[a], config()).await.err().unwrap();
    assert!(alone.line.contains("is a server there"), "{alone}");
}
