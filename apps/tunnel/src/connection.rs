//! Settings of the connections of both ends.

use crate::request::APPLICATION;
use narrows_base::Duration;
use narrows_net::ApplicationProtocols;
use narrows_peers::{Error, ErrorKind};
use narrows_transport::connection::{ConnectionConfig, MAX_PATHS};
use narrows_transport::streams::FlowControlLimits;

/// Idle timeout: a connection outlives an outage of ten minutes.
const IDLE_TIMEOUT: Duration = Duration::from_secs(11 * 60);
/// Receive windows in bytes: of all streams, and of one. Streams with slow readers leave room for others.
const WINDOW: u64 = 64 << 20;
const STREAM_WINDOW: u64 = 6 << 20;

/// Bytes that a stream sends before the next stream's turn; most answers are shorter. With a turn per packet,
/// concurrent answers would all end at the same time, and the link would idle for a round trip until the next requests.
const TURN_BYTES: u64 = 32 << 10;

/// Configuration of a tunnel's connections: long idle timeout, and the tunnel's application protocol in the handshake.
///
/// # Errors
/// The name of the application protocol is invalid.
pub fn for_tunnel(config: ConnectionConfig, streams: usize) -> Result<ConnectionConfig, Error> {
    let applications = ApplicationProtocols::new([APPLICATION])
        .map_err(|e| Error::new(ErrorKind::Local, e.to_string()))?;
    let both = u64::try_from(streams).unwrap_or(u64::MAX);
    let limits = FlowControlLimits { data: WINDOW, stream: STREAM_WINDOW, both, one_way: 0 };
    let idle_timeout = IDLE_TIMEOUT;
    let max_message = config.max_datagram;
    Ok(ConnectionConfig {
        applications,
        limits,
        idle_timeout,
        max_message,
        turn_bytes: TURN_BYTES,
        paths: MAX_PATHS,
        ..config
    })
}
