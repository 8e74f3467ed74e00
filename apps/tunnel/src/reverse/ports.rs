//! The ports at which clients may let the far side listen.

use narrows_base::text::shown;
use narrows_peers::key;
use narrows_wire::noise::PublicKey;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// `[ADDRESS:]PORT[-PORT][=KEY]`: an address of the server, loopback if none is given, its ports, and the only client
/// that may use them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ports {
    address: IpAddr,
    ports: RangeInclusive<u16>,
    key: Option<PublicKey>,
}

/// All ports of `--allow-reverse`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ReversePorts {
    entries: Vec<Ports>,
    shared: usize,
}

impl ReversePorts {
    /// The ports of these entries.
    pub fn new(entries: Vec<Ports>) -> ReversePorts {
        let mut ports = ReversePorts { entries, shared: 0 };
        let entries = ports.entries.iter().enumerate();
        let count = entries.map(|(place, entry)| {
            let earlier = ports.entries.iter().take(place);
            let is_new = |at| !earlier.clone().any(|entry| entry.contains(at));
            let addresses = entry.ports.clone().map(|port| SocketAddr::new(entry.address, port));
            addresses.filter(|at| is_new(*at) && ports.is_shared(*at)).count()
        });
        ports.shared = count.sum();
        ports
    }

    /// Whether this client may let the server listen there. A port of an entry with a key is for such keys only.
    pub fn permits(&self, at: SocketAddr, key: &PublicKey) -> bool {
        self.of(at).any(|entry| entry.key.as_ref() == Some(key)) || self.is_shared(at)
    }

    /// Whether all clients may let the server listen there.
    pub(super) fn is_shared(&self, at: SocketAddr) -> bool {
        self.of(at).next().is_some() && self.of(at).all(|entry| entry.key.is_none())
    }

    /// Number of ports that are for all clients.
    pub(super) fn shared(&self) -> usize {
        self.shared
    }

    fn of(&self, at: SocketAddr) -> impl Iterator<Item = &Ports> {
        self.entries.iter().filter(move |entry| entry.contains(at))
    }
}

impl Ports {
    fn contains(&self, at: SocketAddr) -> bool {
        self.address == at.ip() && self.ports.contains(&at.port())
    }
}

impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> Result<Ports, String> {
        let bad = |why: &str| {
            let shown = shown(text);
            format!(
                "'{shown}': {why}; [ADDRESS:]PORT[-PORT][=KEY] is expected, as in 8080, 0.0.0.0:8000-8009 or 443=KEY"
            )
        };
        let (place, key) = match text.split_once('=') {
            None => (text, None),
            Some((place, key)) => {
                let key = key::read(key).map_err(|e| bad(&e.line))?;
                (place, Some(key))
            }
        };
        let (address, ports) = match place.rsplit_once(':') {
            None => (Ipv4Addr::LOCALHOST.into(), place),
            Some((address, ports)) => {
                let bare = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
                let address = match bare {
                    Some(six) => six.parse().map(IpAddr::V6).ok(),
                    None => address.parse().map(IpAddr::V4).ok(),
                };
                (address.ok_or_else(|| bad("that is no address of this machine"))?, ports)
            }
        };
        let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
        let port = |text: &str| text.parse().ok().filter(|port: &u16| *port > 0);
        match (port(first), port(last)) {
            (Some(first), Some(last)) if first <= last => {
                Ok(Ports { address, ports: first..=last, key })
            }
            (Some(_), Some(_)) => Err(bad("the first port is above the last")),
            _ => Err(bad("that is no port")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_peers::Identity;

    #[test]
    fn ports_permit_exactly_their_range() {
        let permits =
            |text: &str, at: &str| text.parse::<Ports>().unwrap().contains(at.parse().unwrap());
        assert!(permits("8080", "127.0.0.1:8080") && !permits("8080", "127.0.0.1:8081"));
        assert!(!permits("8080", "0.0.0.0:8080") && !permits("8080", "[::1]:8080"));
        assert!(permits("0.0.0.0:8000-8009", "0.0.0.0:8009"));
        assert!(!permits("0.0.0.0:8000-8009", "0.0.0.0:8010"));
        assert!(!permits("0.0.0.0:8000-8009", "127.0.0.1:8000"), "each address for itself");
        assert!(permits("[::]:443", "[::]:443"));
        for text in [
            "",
            "0",
            "*",
            "*:80",
            "80=",
            "80=x",
            "80-",
            "90-80",
            "host:80",
            "::1:80",
            "1.2.3.4:x",
            "70000",
        ] {
            let why = text.parse::<Ports>().unwrap_err();
            assert!(why.contains("8080") && !why.contains('\n'), "{why}");
        }
    }

    #[test]
    fn port_with_a_key_is_for_that_client_only() {
        let own = *Identity::generate().unwrap().public();
        let other = *Identity::generate().unwrap().public();
        let keyed = format!("8001={}", key::text(&own));
        let entries = ["8000-8003", "8002-8004", &keyed].map(|text| text.parse().unwrap());
        let ports = ReversePorts::new(entries.to_vec());
        let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        assert!(ports.permits(at(8001), &own) && !ports.permits(at(8001), &other));
        assert!(ports.permits(at(8000), &own) && ports.permits(at(8000), &other));
        assert!(!ports.permits(at(8005), &own));
        assert_eq!(ports.shared(), 4);
    }
}
