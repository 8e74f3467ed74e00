//! The ports at which clients may let the far side listen.

use narrows_base::text::shown;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// `[ADDRESS:]PORT[-PORT]`: an address of the server, loopback if none is given, and its ports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ports {
    address: IpAddr,
    ports: RangeInclusive<u16>,
}

impl Ports {
    /// Whether clients may let the server listen there.
    pub fn permits(&self, at: SocketAddr) -> bool {
        self.address == at.ip() && self.ports.contains(&at.port())
    }
}

impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> Result<Ports, String> {
        let bad = |why: &str| {
            let shown = shown(text);
            format!(
                "'{shown}': {why}; [ADDRESS:]PORT or [ADDRESS:]PORT-PORT is expected, as in 8080 or 0.0.0.0:8000-8009"
            )
        };
        let (address, ports) = match text.rsplit_once(':') {
            None => (Ipv4Addr::LOCALHOST.into(), text),
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
                Ok(Ports { address, ports: first..=last })
            }
            (Some(_), Some(_)) => Err(bad("the first port is above the last")),
            _ => Err(bad("that is no port")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_permit_what_they_say_and_nothing_else() {
        let permits =
            |text: &str, at: &str| text.parse::<Ports>().unwrap().permits(at.parse().unwrap());
        assert!(permits("8080", "127.0.0.1:8080") && !permits("8080", "127.0.0.1:8081"));
        assert!(!permits("8080", "0.0.0.0:8080") && !permits("8080", "[::1]:8080"));
        assert!(permits("0.0.0.0:8000-8009", "0.0.0.0:8009"));
        assert!(!permits("0.0.0.0:8000-8009", "0.0.0.0:8010"));
        assert!(!permits("0.0.0.0:8000-8009", "127.0.0.1:8000"), "each address for itself");
        assert!(permits("[::]:443", "[::]:443"));
        for text in
            ["", "0", "*", "*:80", "80-", "90-80", "host:80", "::1:80", "1.2.3.4:x", "70000"]
        {
            let why = text.parse::<Ports>().unwrap_err();
            assert!(why.contains("8080") && !why.contains('\n'), "{why}");
        }
    }
}
