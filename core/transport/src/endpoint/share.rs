//! Selects the place to free when all places are taken: of the clients with most places, the one that moved the least
//! data.
//!
//! Used for connections and for half-open handshakes, and applicable to other resources that clients share. Clients are
//! counted by network: /48, then /56, then /64 (an IPv4 address is a network of its own). Within one network, the data
//! moved lately decide. Among equal ones, the number of places that a key holds decides, counting those that moved as
//! much. Keys come last because they are free: an attacker can use a new one for each connection. Another client at the
//! same address uses one key for all of its own.

use super::source::{ClientNetwork, Prefix};
use narrows_base::Time;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The client for which a place is counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CountedClient {
    /// Its network.
    pub source: ClientNetwork,
    /// Its static key; zeros while unknown.
    pub key: [u8; 32],
    /// Whether its key is on the server's list. Such clients give way only if no other can, and never to an unlisted
    /// key.
    pub is_listed: bool,
}

/// A candidate to give up its place. The caller excludes clients that keep theirs because they move data.
#[derive(Clone, Copy, Debug)]
pub struct Holder<T> {
    /// The client that holds the place.
    pub client: CountedClient,
    /// Bytes moved recently, and since the client connected.
    pub moved: (u64, u64),
    /// Whether it is new, so that its first request may be in transit. A new client counts as having moved
    /// [`NEW_MOVED`] bytes, or one more if it has moved as many. Of these two groups the larger gives way, the oldest
    /// first. Otherwise a client with many places and few bytes in each could displace every new client within its
    /// first round trip.
    pub is_new: bool,
    /// When it got the place.
    pub since: Time,
    /// The caller's identifier of the place.
    pub place: T,
}

/// Bytes that a new client is assumed to have moved.
pub const NEW_MOVED: u64 = 512;

impl<T> Holder<T> {
    /// The bytes that it counts as having moved.
    fn moved(&self) -> (u64, u64) {
        if !self.is_new {
            return self.moved;
        }
        let moved = NEW_MOVED + u64::from(self.moved.1 >= NEW_MOVED);
        (moved, moved)
    }
}

/// Sizes of the groups to which a client belongs: its /48, /56 and /64. The last is for the places of its key in that
/// /64 that moved as much lately.
type Counts = [usize; 4];

/// The place to free for `newcomer`, if any: of the network with most places, and within it of the smaller networks
/// with most places. Within one network the criteria are, in order: the least data moved lately, the key with most
/// places, the least data in all, the oldest. The new client is counted, too, so its own network gives way before
/// smaller ones.
pub fn gives_way<T: Copy>(holders: Vec<Holder<T>>, newcomer: &CountedClient) -> Option<T> {
    give_way(holders, newcomer, 1).pop()
}

/// The places to free for several such clients: at most `most`, in the order in which they give way.
pub fn give_way<T: Copy>(
    mut holders: Vec<Holder<T>>,
    newcomer: &CountedClient,
    most: usize,
) -> Vec<T> {
    if holders.iter().any(|h| !h.client.is_listed) {
        holders.retain(|h| !h.client.is_listed);
    } else if !newcomer.is_listed {
        return Vec::new();
    }
    let member = |h: &Holder<T>| (h.client.source, h.client.key, h.moved().0);
    holders.sort_unstable_by_key(member);
    let mut all: Vec<Member> = holders.iter().map(member).collect();
    let new = (newcomer.source, newcomer.key, 0);
    let at = all.partition_point(|m| *m < new);
    all.insert(at, new);
    let mut counts = counts(&all);
    counts.remove(at);
    // New clients, by the bytes that they count as having moved.
    let mut new = BTreeMap::<_, usize>::new();
    for holder in holders.iter().filter(|h| h.is_new) {
        *new.entry((holder.client.source, holder.moved().0)).or_default() += 1;
    }
    let mut ranked: Vec<_> = holders.iter().zip(counts).collect();
    let rank = |(holder, counts): &(&Holder<T>, Counts)| {
        let (recent, total) = holder.moved();
        let [networks @ .., key] = *counts;
        let company = new.get(&(holder.client.source, recent)).filter(|_| holder.is_new);
        // Older clients rank before the new ones if they moved less, otherwise after them.
        let turn = company.map_or((u8::from(recent < NEW_MOVED) * 2, 0), |count| (1, *count));
        (networks, turn, Reverse(recent), key, Reverse(total), Reverse(holder.since))
    };
    let kept = ranked.len().saturating_sub(most);
    if kept > 0 {
        ranked.select_nth_unstable_by_key(kept, rank);
        ranked.drain(..kept);
    }
    ranked.sort_by_key(rank);
    ranked.into_iter().map(|(holder, _)| holder.place).collect()
}

/// The criteria for counting: network, key, bytes moved lately.
type Member = (ClientNetwork, [u8; 32], u64);

/// Sizes of the groups of each of `members`, which are sorted.
fn counts(members: &[Member]) -> Vec<Counts> {
    let mut counts = vec![Counts::default(); members.len()];
    for level in 0..Counts::default().len() {
        let mut first = 0;
        for group in members.chunk_by(|a, b| group(a, level) == group(b, level)) {
            for count in counts.iter_mut().skip(first).take(group.len()) {
                if let Some(count) = count.get_mut(level) {
                    *count = group.len();
                }
            }
            first += group.len();
        }
    }
    counts
}

/// The group of a member at a level: a network, and at the last level a key and its bytes. An IPv4 address has no
/// smaller networks.
fn group(&(source, key, moved): &Member, level: usize) -> (Prefix, Option<([u8; 32], u64)>) {
    let prefix = source.prefixes().take(level + 1).last().unwrap_or(source.widest());
    (prefix, (level == 3).then_some((key, moved)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(address: &str, key: u8) -> CountedClient {
        let source = ClientNetwork::of(address.parse().unwrap());
        CountedClient { source, key: [key; 32], is_listed: false }
    }
    /// Clients with one place each, the oldest first; the place is the index.
    fn holders(clients: &[(&str, u8, u64)]) -> Vec<Holder<usize>> {
        let each = clients.iter().enumerate().map(|(place, (address, key, moved))| Holder {
            client: client(address, *key),
            moved: (*moved, *moved),
            is_new: false,
            since: Time::from_secs_f64(place as f64),
            place,
        });
        each.collect()
    }

    #[test]
    fn largest_network_gives_way_whatever_its_keys() {
        let held = [
            ("192.0.2.1", 1, 0),
            ("192.0.2.9", 2, 500),
            ("192.0.2.9", 3, 400),
            ("192.0.2.9", 4, 600),
            ("198.51.100.1", 1, 0),
        ];
        assert_eq!(gives_way(holders(&held), &client("203.0.113.1", 9)), Some(2));
        assert_eq!(give_way(holders(&held), &client("203.0.113.1", 9), 3), [3, 1, 2]);
        assert_eq!(give_way(holders(&held), &client("203.0.113.1", 9), 9).len(), 5);
        // The same for a new client of that network.
        assert_eq!(gives_way(holders(&held), &client("192.0.2.9", 9)), Some(2));
    }

    #[test]
    fn ipv6_counts_by_48_then_56_then_64() {
        // One /48 holds four places in two /56; one of these holds three, in two /64.
        let held = [
            ("2001:db8:2::1", 1, 0),
            ("2001:db8:1:100::1", 2, 0),
            ("2001:db8:1:1::1", 3, 0),
            ("2001:db8:1:2::1", 4, 9),
            ("2001:db8:1:2::2", 5, 8),
            ("192.0.2.1", 6, 0),
            ("192.0.2.1", 7, 0),
            ("192.0.2.1", 8, 0),
        ];
        assert_eq!(gives_way(holders(&held), &client("203.0.113.1", 9)), Some(4));
    }

    #[test]
    fn within_a_network_least_bytes_then_largest_key_go() {
        let held = [("192.0.2.1", 1, 0), ("192.0.2.1", 2, 9), ("192.0.2.1", 2, 7)];
        assert_eq!(gives_way(holders(&held), &client("192.0.2.1", 3)), Some(0));
        let held = [("192.0.2.1", 1, 0), ("192.0.2.1", 2, 0), ("192.0.2.1", 2, 0)];
        assert_eq!(gives_way(holders(&held), &client("192.0.2.1", 3)), Some(1));
        // Other places of a key, which move data, do not count.
        let held = [("192.0.2.1", 1, 0), ("192.0.2.1", 2, 7), ("192.0.2.1", 2, 0)];
        assert_eq!(gives_way(holders(&held), &client("192.0.2.1", 3)), Some(0));
        let held = [("192.0.2.1", 1, 5), ("192.0.2.1", 2, 4), ("192.0.2.1", 3, 4)];
        assert_eq!(gives_way(holders(&held), &client("192.0.2.1", 4)), Some(1));
    }

    #[test]
    fn newcomers_give_way_after_connections_with_few_bytes() {
        let mut held = holders(&[("192.0.2.1", 1, 511), ("192.0.2.1", 2, 0), ("192.0.2.1", 3, 0)]);
        held[2].is_new = true;
        assert_eq!(gives_way(held.clone(), &client("192.0.2.1", 4)), Some(1));
        held.remove(1);
        assert_eq!(gives_way(held.clone(), &client("192.0.2.1", 4)), Some(0));
        held[0].moved = (513, 513);
        assert_eq!(gives_way(held, &client("192.0.2.1", 4)), Some(2));
    }

    /// New clients that move a few bytes at once do not displace those that have not yet moved any.
    #[test]
    fn among_newcomers_the_larger_group_gives_way() {
        let mut held = holders(&[
            ("192.0.2.1", 1, 1000),
            ("192.0.2.1", 2, 0),
            ("192.0.2.1", 3, 2000),
            ("192.0.2.1", 4, 900),
        ]);
        held.iter_mut().for_each(|h| h.is_new = true);
        assert_eq!(give_way(held.clone(), &client("192.0.2.1", 5), 4), [1, 3, 2, 0]);
        held.pop();
        held.pop();
        assert_eq!(gives_way(held, &client("192.0.2.1", 5)), Some(1));
    }

    /// Otherwise an attacker with one address could displace every client with an idle connection.
    #[test]
    fn newcomer_of_the_largest_network_evicts_from_it() {
        let held = [("192.0.2.1", 1, 0), ("198.51.100.1", 2, 900), ("203.0.113.1", 3, 0)];
        assert_eq!(gives_way(holders(&held), &client("198.51.100.1", 4)), Some(1));
        assert_eq!(gives_way(holders(&held), &client("198.51.100.2", 4)), Some(0));
    }

    #[test]
    fn listed_keys_give_way_last_and_only_to_listed_ones() {
        let mut held = holders(&[("192.0.2.1", 1, 0), ("192.0.2.1", 2, 0), ("192.0.2.9", 3, 9)]);
        held[0].client.is_listed = true;
        held[1].client.is_listed = true;
        let mut newcomer = client("203.0.113.1", 9);
        assert_eq!(gives_way(held.clone(), &newcomer), Some(2));
        held.pop();
        assert_eq!(gives_way(held.clone(), &newcomer), None);
        newcomer.is_listed = true;
        assert_eq!(gives_way(held, &newcomer), Some(0));
        assert_eq!(gives_way(Vec::<Holder<u8>>::new(), &newcomer), None);
    }
}
