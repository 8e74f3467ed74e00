//! Translates a connection's configuration into the parameters of the handshake.

use crate::connection::ConnectionConfig;
use crate::protocol::is_sayable;
use narrows_wire::Params;
use narrows_wire::bytes::MAX_VARINT;

/// The longest name of a controller in a START-ECHO, which must not be more than three times as long as
/// a START. A client is told a longer one by CONTROLLER.
const MAX_LABEL: usize = 64;

/// The parameters for a client.
pub(super) fn server_params(config: &ConnectionConfig, reset_token: [u8; 16]) -> Params {
    let mut params = params(config);
    if params.controller.len() > MAX_LABEL {
        params.controller.clear();
    }
    // A client learns the one that was chosen, under keys that nobody else has.
    Params { reset_token: Some(reset_token), applications: Default::default(), ..params }
}

/// The parameters for the peer, without ids and tokens.
pub(super) fn params(config: &ConnectionConfig) -> Params {
    let label = config.protocol.announced();
    let most = |n: u64| n.min(MAX_VARINT);
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
        applications: config.applications.clone(),
        repair: config.repair(),
    }
}
