//! How the connections of both ends behave.

use crate::request::APPLICATION;
use narrows_base::Duration;
use narrows_files::{Error, Kind};
use narrows_net::ApplicationProtocols;
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::streams::Limits;

/// A connection outlives an outage of ten minutes.
const IDLE_TIMEOUT: Duration = Duration::from_secs(11 * 60);
/// What a connection may hold that its application has not read: all streams, and one of them. A few whose readers are
/// slow leave room for the others.
const WINDOW: u64 = 64 << 20;
const STREAM_WINDOW: u64 = 6 << 20;

/// Most answers are shorter. If several that wait take turns packet by packet, all are whole at last and at once, and so
/// are the requests that follow: then the link has nothing to do for a round trip.
const TURN_BYTES: u64 = 32 << 10;

/// A connection of a tunnel's end: it outlives outages, and says in its handshake what it is.
///
/// # Errors
/// If the name of the application protocol were none.
pub fn for_tunnel(config: ConnectionConfig, streams: usize) -> Result<ConnectionConfig, Error> {
    let applications = ApplicationProtocols::new([APPLICATION])
        .map_err(|e| Error::new(Kind::Local, e.to_string()))?;
    let both = u64::try_from(streams).unwrap_or(u64::MAX);
    let limits = Limits { data: WINDOW, stream: STREAM_WINDOW, both, one_way: 0 };
    let (idle_timeout, max_message) = (IDLE_TIMEOUT, config.max_datagram);
    Ok(ConnectionConfig {
        applications,
        limits,
        idle_timeout,
        max_message,
        turn_bytes: TURN_BYTES,
        ..config
    })
}
