//! What a connection's configuration is in the peer's words: the parameters of the handshake.

use crate::connection::{ConnectionConfig, is_sayable};
use narrows_wire::Params;
use narrows_wire::bytes::VARINT_MAX;

/// The parameters for the peer, without ids and tokens.
pub(super) fn params(config: &ConnectionConfig) -> Params {
    let label = config.protocol.label();
    let most = |n: u64| n.min(VARINT_MAX);
    Params {
        idle_timeout_ms: most(config.idle_timeout.as_nanos() / 1_000_000),
        max_datagram: u64::from(config.max_datagram),
        max_data: most(config.limits.data),
        max_stream: most(config.limits.stream),
        max_streams_both: most(config.limits.both),
        max_streams_one: most(config.limits.one_way),
        max_message: u64::from(config.max_message),
        offered: None,
        reset_token: None,
        controller: if is_sayable(label) { label.to_string() } else { String::new() },
    }
}
