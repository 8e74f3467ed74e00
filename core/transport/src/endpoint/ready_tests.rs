//! The connections for which an application's call may send at once.

use super::ServerKey;
use super::stub::{CLIENT, StubNetwork};

/// Packets sent within the call must not leave separately from those of other connections, nor from those that leave
/// with the next acknowledgement.
#[test]
fn call_sends_only_for_lone_connection_without_flight() {
    let mut net = StubNetwork::pair(1);
    let first = net.connect(ServerKey::Any);
    let second = net.connect(ServerKey::Any);
    assert!(!net.at(CLIENT).is_one_ready(), "handshakes are the driver's");
    net.run_for(1.0);
    let client = net.at(CLIENT);
    assert!(!client.is_one_ready(), "no connection has data to send");
    client.connection(first).unwrap();
    assert!(client.is_one_ready());
    client.connection(first).unwrap().in_flight = 1;
    assert!(!client.is_one_ready());
    client.connection(first).unwrap().in_flight = 0;
    assert!(client.is_one_ready());
    client.connection(second).unwrap();
    assert!(!client.is_one_ready());
}
