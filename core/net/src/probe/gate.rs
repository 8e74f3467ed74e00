//! Admission of probes: one per network at a time.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Most concurrent probes of a server.
const MAX_PROBES: usize = 8;

/// Whether the probe that holds a place is over. A probe whose client is silent ends by this call.
pub(super) type IsOver = Box<dyn Fn() -> bool + Send>;

/// The places of a server's probes.
#[derive(Clone, Debug, Default)]
pub struct ProbeGate {
    places: Arc<Mutex<GatePlaces>>,
}

#[derive(Default)]
struct GatePlaces {
    held: Vec<ProbePlace>,
    next: u64,
}

struct ProbePlace {
    number: u64,
    network: IpAddr,
    is_over: IsOver,
}

/// A place that is taken until it is dropped, or until a newcomer finds its probe over.
#[derive(Debug)]
pub(super) struct GatePermit {
    gate: ProbeGate,
    number: u64,
}

impl ProbeGate {
    /// Takes a place for a client. Probes of its network that are over give theirs up; if all places are taken, any.
    ///
    /// # Errors
    /// The reason for a refusal, as sent to the client.
    pub(super) fn enter(
        &self,
        client: IpAddr,
        is_over: IsOver,
    ) -> Result<GatePermit, &'static str> {
        let network = network(client);
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = places.held.len() >= MAX_PROBES;
        let is_in_the_way = |place: &ProbePlace| is_full || place.network == network;
        places.held.retain(|place| !(is_in_the_way(place) && (place.is_over)()));
        if places.held.iter().any(|place| place.network == network) {
            return Err(
                "busy: the server answers another probe of this address; try again in ten seconds",
            );
        }
        if places.held.len() >= MAX_PROBES {
            return Err(
                "busy: the server answers as many probes as it can; try again in ten seconds",
            );
        }
        let number = places.next;
        places.next += 1;
        places.held.push(ProbePlace { number, network, is_over });
        Ok(GatePermit { gate: self.clone(), number })
    }
}

impl Drop for GatePermit {
    fn drop(&mut self) {
        let mut places = self.gate.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.held.retain(|place| place.number != self.number);
    }
}

impl fmt::Debug for GatePlaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.held.iter().map(|place| place.network)).finish()
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
    use std::sync::atomic::{AtomicBool, Ordering};

    fn enter(gate: &ProbeGate, client: &str) -> Result<GatePermit, &'static str> {
        gate.enter(client.parse().unwrap(), Box::new(|| false))
    }

    #[test]
    fn an_address_has_one_place_and_all_have_a_few() {
        let gate = ProbeGate::default();
        let first = enter(&gate, "2001:db8:1::1").unwrap();
        assert!(enter(&gate, "2001:db8:1:9::2").is_err(), "the same network");
        let v4 = enter(&gate, "192.0.2.1").unwrap();
        assert!(enter(&gate, "::ffff:192.0.2.1").is_err(), "the same address");
        let others: Vec<GatePermit> =
            (2..8).map(|n| enter(&gate, &format!("192.0.2.{n}")).unwrap()).collect();
        assert!(enter(&gate, "192.0.2.9").is_err(), "{} places", others.len());
        drop(first);
        assert!(enter(&gate, "2001:db8:1::3").is_ok());
        drop(v4);
    }

    #[test]
    fn probe_that_is_over_gives_its_place_to_the_next() {
        let gate = ProbeGate::default();
        let over = Arc::new(AtomicBool::new(false));
        let is_over = over.clone();
        let first = gate
            .enter(IpAddr::from([192, 0, 2, 1]), Box::new(move || is_over.load(Ordering::SeqCst)));
        assert!(enter(&gate, "192.0.2.1").is_err());
        over.store(true, Ordering::SeqCst);
        let second = enter(&gate, "192.0.2.1").unwrap();
        // The end of the first does not free the place of the second.
        drop(first);
        assert!(enter(&gate, "192.0.2.1").is_err());
        drop(second);
        assert!(enter(&gate, "192.0.2.1").is_ok());
    }
}
