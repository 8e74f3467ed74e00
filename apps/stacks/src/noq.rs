//! noq.

crate::quic::quic_stack!(noq_proto, narrows_noq, noq);

const OWN: [&str; 3] = ["noq-cubic", "noq-reno", "noq-bbr3"];

fn own(name: &str) -> Factory {
    use noq_proto::congestion::{Bbr3Config, CubicConfig, NewRenoConfig};
    match name {
        "noq-reno" => Arc::new(NewRenoConfig::default()),
        "noq-bbr3" => Arc::new(Bbr3Config::default()),
        _ => Arc::new(CubicConfig::default()),
    }
}

fn endpoint(server: Option<Arc<ServerConfig>>, random: [u8; 32]) -> Endpoint {
    let mut config = noq_proto::EndpointConfig::default();
    config.rng_seed(Some(random));
    Endpoint::new(Arc::new(config), server, true)
}
