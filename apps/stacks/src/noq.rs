//! noq.

crate::quic::quic_stack!(noq_proto, narrows_noq, noq);

const OWN: [&str; 3] = ["noq-cubic", "noq-reno", "noq-bbr3"];

fn own(name: &str) -> Option<Factory> {
    use noq_proto::congestion::{Bbr3Config, CubicConfig, NewRenoConfig};
    match name {
        "noq-cubic" => Some(Arc::new(CubicConfig::default())),
        "noq-reno" => Some(Arc::new(NewRenoConfig::default())),
        "noq-bbr3" => Some(Arc::new(Bbr3Config::default())),
        _ => None,
    }
}

fn endpoint(server: Option<Arc<ServerConfig>>, seed: u8) -> Endpoint {
    let mut config = noq_proto::EndpointConfig::default();
    config.rng_seed(Some([seed; 32]));
    Endpoint::new(Arc::new(config), server, true)
}

fn path_stats(connection: &mut noq_proto::Connection) -> (u64, u64) {
    let path = connection.path_stats(noq_proto::PathId::ZERO).unwrap_or_default();
    (path.lost_packets, path.sent_packets)
}
