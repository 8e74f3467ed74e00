//! Nodes made of quinn's state machines ([quinn-proto](https://docs.rs/quinn-proto)).
//!
//! TLS draws its keys from the system, so two runs differ in the bytes of packets. Their lengths, times and losses repeat
//! if the endpoints were made with seeds, and the certificate's signatures have one length, as those of Ed25519.

use std::net::IpAddr;

crate::quic::quic_node!(quinn_proto, "quinn-proto");

/// Datagrams that a connection hands over at once, as with GSO.
const BATCH: usize = 10;

fn receive(
    endpoint: &mut Endpoint,
    now: Instant,
    remote: SocketAddr,
    local: IpAddr,
    ecn: Option<EcnCodepoint>,
    bytes: BytesMut,
    buffer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, remote, Some(local), ecn, bytes, buffer)
}

fn smoothed_rtt(connection: &Connection) -> f64 {
    connection.rtt().as_secs_f64()
}

fn window(connection: &Connection) -> f64 {
    connection.congestion_state().window() as f64
}
