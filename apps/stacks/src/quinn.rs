//! quinn.

crate::quic::quic_stack!(quinn_proto, narrows_quinn, quinn);

const OWN: [&str; 3] = ["quinn-cubic", "quinn-reno", "quinn-bbr"];

fn own(name: &str) -> Factory {
    use quinn_proto::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
    match name {
        "quinn-reno" => Arc::new(NewRenoConfig::default()),
        "quinn-bbr" => Arc::new(BbrConfig::default()),
        _ => Arc::new(CubicConfig::default()),
    }
}

fn endpoint(server: Option<Arc<ServerConfig>>, random: [u8; 32]) -> Endpoint {
    let config = Arc::new(quinn_proto::EndpointConfig::default());
    Endpoint::new(config, server, true, Some(random))
}
