//! The handshake's parameters for a connection's configuration.

use crate::connection::ConnectionConfig;
use narrows_recovery::protocol::is_printable_label;
use narrows_wire::Params;
use narrows_wire::bytes::MAX_VARINT;

/// The longest protocol label in a START-ECHO, which must be at most three times as long as START. A longer label is
/// sent in CONTROLLER.
const MAX_LABEL: usize = 64;

/// The parameters for a client.
pub(super) fn server_params(config: &ConnectionConfig, reset_token: [u8; 16]) -> Params {
    let mut params = params(config);
    if params.controller.len() > MAX_LABEL {
        params.controller.clear();
    }
    // APPLICATION names the server's choice, in sealed packets.
    Params { reset_token: Some(reset_token), applications: Default::default(), ..params }
}

/// The parameters for the peer, without IDs and tokens.
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
        controller: if is_printable_label(label) { label.to_string() } else { String::new() },
        applications: config.applications.clone(),
        repair: config.repair(),
        // One path is the default, which needs no parameter.
        paths: if config.paths > 1 { u64::from(config.paths) } else { 0 },
    }
}
