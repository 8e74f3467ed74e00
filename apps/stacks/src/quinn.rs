//! quinn.

crate::quic::quic_stack!(quinn_proto, narrows_quinn, quinn);

const OWN: [&str; 3] = ["quinn-cubic", "quinn-reno", "quinn-bbr"];

fn own(name: &str) -> Option<Factory> {
    use quinn_proto::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
    match name {
        "quinn-cubic" => Some(Arc::new(CubicConfig::default())),
        "quinn-reno" => Some(Arc::new(NewRenoConfig::default())),
        "quinn-bbr" => Some(Arc::new(BbrConfig::default())),
        _ => None,
    }
}

fn endpoint(server: Option<Arc<ServerConfig>>, seed: u8) -> Endpoint {
    let config = Arc::new(quinn_proto::EndpointConfig::default());
    Endpoint::new(config, server, true, Some([seed; 32]))
}

fn path_stats(connection: &mut quinn_proto::Connection) -> (u64, u64) {
    let path = connection.stats().path;
    (path.lost_packets, path.sent_packets)
}
