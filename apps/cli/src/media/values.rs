//! Parsers for flags of `narrows media`.

use crate::transport::rate;
use narrows_base::{Duration, Rate};
use narrows_lab::options::values::time;
use narrows_media::hello::LATENCIES;
use std::net::{Ipv4Addr, SocketAddr};

/// `PORT`, on loopback, or `ADDRESS:PORT`, for clap.
pub(super) fn port(text: &str) -> Result<SocketAddr, String> {
    let alone = text.parse().map(|port: u16| (Ipv4Addr::LOCALHOST, port).into()).ok();
    let address = alone.or_else(|| text.parse().ok());
    address
        .ok_or_else(|| "a port is expected, as 5004, or an address with one, as [::1]:5004".into())
}

/// Input of a layer.
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    /// Local address to which a program sends the layer's media.
    pub from: SocketAddr,
    /// Rate of the layer, without headers.
    pub rate: Rate,
}

/// `PORT:RATE` or `ADDRESS:PORT:RATE`, for clap.
pub(super) fn layer(text: &str) -> Result<Layer, String> {
    let Some((from, at)) = text.rsplit_once(':') else {
        return Err("a port and the layer's rate are expected, as 5000:500kbit/s".into());
    };
    let from = port(from)?;
    let rate = rate(at)?;
    if rate.as_bps() == 0 {
        return Err("a layer's rate is above 0".into());
    }
    Ok(Layer { from, rate })
}

/// A latency, for clap.
pub(super) fn latency(text: &str) -> Result<Duration, String> {
    let latency = time(text)?;
    let is_possible = LATENCIES.contains(&latency);
    is_possible.then_some(latency).ok_or_else(|| "a latency is from 10ms to 30s".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_is_a_port_and_a_rate() {
        let of = |text| layer(text).map(|layer| (layer.from.to_string(), layer.rate.as_bps()));
        assert_eq!(of("5000:500kbit/s"), Ok(("127.0.0.1:5000".into(), 500_000)));
        assert_eq!(of("[::1]:5000:2Mbit/s"), Ok(("[::1]:5000".into(), 2_000_000)));
        for text in ["5000", "5000:", "5000:0", ":1Mbit/s", "[::1]:2Mbit/s"] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
