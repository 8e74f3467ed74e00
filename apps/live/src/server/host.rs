//! The Host field of requests, against DNS rebinding: a page of another site whose name was made to resolve to this
//! machine sends its own name.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Splits a Host field into the name or address and the port. The port is absent if the field has none.
pub fn split(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    }
}

/// Whether this is an address or `localhost`, which no other site can have as its name.
pub fn is_address(name: &str) -> bool {
    let in_brackets = name.strip_prefix('[').and_then(|n| n.strip_suffix(']'));
    match in_brackets {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => name.eq_ignore_ascii_case("localhost") || name.parse::<Ipv4Addr>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_field_is_split_at_its_port() {
        assert_eq!(split("localhost:80"), ("localhost", Some("80")));
        assert_eq!(split("localhost"), ("localhost", None));
        assert_eq!(split("[::1]:80"), ("[::1]", Some("80")));
        assert_eq!(split("[::1]"), ("[::1]", None));
        for name in ["LOCALHOST", "192.0.2.7", "[2001:db8::1]"] {
            assert!(is_address(name), "{name}");
        }
        for name in ["", "example.org", "localhost.example.org", "::1", "[192.0.2.7]", "1.2.3"] {
            assert!(!is_address(name), "{name}");
        }
    }
}
