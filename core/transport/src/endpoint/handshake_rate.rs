//! Limits the handshakes that a server begins per second: each costs several X25519 operations, and any client with an
//! address can request them.

use super::source::{ClientNetwork, Prefix};
use narrows_base::{Duration, Time};
use std::collections::BTreeMap;

const SECOND: Duration = Duration::from_secs(1);

/// Limit on events per second.
#[derive(Debug)]
pub(super) struct HandshakeRateLimit {
    since: Time,
    used: u32,
    most: u32,
}

impl HandshakeRateLimit {
    pub(super) fn new(most: u32) -> HandshakeRateLimit {
        HandshakeRateLimit { since: Time::ZERO, used: 0, most }
    }
    /// Whether one more is permitted. If so, it is counted.
    pub(super) fn permits(&mut self, now: Time) -> bool {
        if now.since(self.since) >= SECOND {
            self.since = now;
            self.used = 0;
        }
        let is_permitted = self.used < self.most;
        self.used += u32::from(is_permitted);
        is_permitted
    }
}

/// Limit on handshakes per second, in all and per network. The last quarter of each limit is reserved for networks (or
/// smaller networks within one) that began no handshake in this second. So a flood from some networks does not block
/// the rest.
#[derive(Debug)]
pub(super) struct HandshakeRate {
    since: Time,
    in_all: u32,
    /// Counts per network: at most one entry per handshake in this second, three for IPv6.
    used: BTreeMap<Prefix, u32>,
    most: u32,
    most_of_source: u32,
}

impl HandshakeRate {
    pub(super) fn new(most: u32, most_of_source: u32) -> HandshakeRate {
        HandshakeRate { since: Time::ZERO, in_all: 0, used: BTreeMap::new(), most, most_of_source }
    }

    /// Whether one more from this network is permitted. If so, it is counted.
    pub(super) fn permits(&mut self, now: Time, source: ClientNetwork) -> bool {
        if now.since(self.since) >= SECOND {
            self.since = now;
            self.in_all = 0;
            self.used.clear();
        }
        let mut used = self.in_all;
        let mut most = self.most;
        for prefix in source.prefixes() {
            let inner = self.used.get(&prefix).copied().unwrap_or(0);
            if used >= if inner == 0 { most } else { most - most / 4 } {
                return false;
            }
            used = inner;
            most = self.most_of_source;
        }
        if used >= most {
            return false;
        }
        self.in_all += 1;
        for prefix in source.prefixes() {
            *self.used.entry(prefix).or_default() += 1;
        }
        true
    }

    /// Number of networks.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.used.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> ClientNetwork {
        ClientNetwork::of(text.parse().unwrap())
    }

    #[test]
    fn a_flood_from_some_networks_leaves_others_their_turn() {
        let mut rate = HandshakeRate::new(80, 40);
        let now = Time::from_secs_f64(5.0);
        let mut of =
            |text: &str, tries: u32| (0..tries).filter(|_| rate.permits(now, source(text))).count();
        assert_eq!(of("192.0.2.1", 100), 40);
        assert_eq!(of("192.0.2.2", 100), 20, "three quarters of all");
        // New networks get the rest, one each.
        for n in 0..30 {
            assert_eq!(of(&format!("198.51.100.{n}"), 5), usize::from(n < 20));
        }
        assert_eq!(rate.len(), 22);
        // The next second starts from zero.
        let later = now + SECOND;
        assert!(rate.permits(later, source("192.0.2.1")));
        assert_eq!(rate.len(), 1);
    }

    #[test]
    fn prefix_48_is_one_network_with_turns_per_56() {
        let mut rate = HandshakeRate::new(1000, 40);
        let now = Time::from_secs_f64(5.0);
        let mut of =
            |text: &str, tries: u32| (0..tries).filter(|_| rate.permits(now, source(text))).count();
        assert_eq!(of("2001:db8:1:1::1", 100), 30);
        assert_eq!(of("2001:db8:1:2::1", 100), 0, "the same /56");
        assert_eq!(of("2001:db8:1:100::1", 100), 1);
        assert_eq!(of("2001:db8:2:100::1", 100), 30, "another /48");
    }
}
