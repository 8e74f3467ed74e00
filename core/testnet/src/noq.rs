//! Nodes made of noq's state machines ([noq-proto](https://docs.rs/noq-proto)).
//!
//! TLS draws its keys from the system, so two runs differ in the bytes of packets. Their lengths, times and losses repeat
//! if the endpoints were made with seeds, and the certificate's signatures have one length, as those of Ed25519.

use std::net::IpAddr;
use std::num::NonZeroUsize;

crate::quic::quic_node!(noq_proto, "noq-proto");

/// Datagrams that a connection hands over at once, as with GSO.
const BATCH: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9);

fn receive(
    endpoint: &mut Endpoint,
    now: Instant,
    remote: SocketAddr,
    local: IpAddr,
    ecn: Option<EcnCodepoint>,
    bytes: BytesMut,
    buffer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    let path = noq_proto::FourTuple::new(remote, Some(local));
    endpoint.handle(now, path, ecn, bytes, buffer)
}

fn smoothed_rtt(connection: &Connection) -> f64 {
    connection.rtt(noq_proto::PathId::ZERO).unwrap_or_default().as_secs_f64()
}

fn window(connection: &Connection) -> f64 {
    connection.congestion_state(noq_proto::PathId::ZERO).map_or(0.0, |c| c.window() as f64)
}
