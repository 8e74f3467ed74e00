//! Admission of probes: one per network at a time.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Most concurrent probes of a server.
const MAX_PROBES: usize = 8;

/// The places of a server's probes.
#[derive(Clone, Debug, Default)]
pub struct ProbeGate {
    places: Arc<Mutex<Vec<IpAddr>>>,
}

/// A place that is taken until it is dropped.
#[derive(Debug)]
pub(super) struct GatePermit {
    gate: ProbeGate,
    network: IpAddr,
}

impl ProbeGate {
    /// Takes a place for a client.
    ///
    /// # Errors
    /// The reason for a refusal, as sent to the client.
    pub(super) fn enter(&self, client: IpAddr) -> Result<GatePermit, &'static str> {
        let network = network(client);
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.contains(&network) {
            return Err(
                "busy: the server answers another probe of this address; try again in ten seconds",
            );
        }
        if places.len() >= MAX_PROBES {
            return Err(
                "busy: the server answers as many probes as it can; try again in ten seconds",
            );
        }
        places.push(network);
        Ok(GatePermit { gate: self.clone(), network })
    }
}

impl Drop for GatePermit {
    fn drop(&mut self) {
        let mut places = self.gate.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|n| *n != self.network);
    }
}

/// The IPv4 address, or the IPv6 /48 prefix.
fn network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() >> 80 << 80).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_place_and_all_have_a_few() {
        let gate = ProbeGate::default();
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let first = gate.enter(ip("2001:db8:1::1")).unwrap();
        assert!(gate.enter(ip("2001:db8:1:9::2")).is_err(), "the same network");
        let v4 = gate.enter(ip("192.0.2.1")).unwrap();
        assert!(gate.enter(ip("::ffff:192.0.2.1")).is_err(), "the same address");
        let others: Vec<GatePermit> =
            (2..8).map(|n| gate.enter(IpAddr::from([192, 0, 2, n])).unwrap()).collect();
        assert!(gate.enter(ip("192.0.2.9")).is_err(), "{} places", others.len());
        drop(first);
        assert!(gate.enter(ip("2001:db8:1::3")).is_ok());
        drop(v4);
    }
}
