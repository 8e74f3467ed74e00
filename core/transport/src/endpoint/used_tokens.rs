//! Used address tokens, to prevent their reuse. Memory is bounded: if it is full, the network with most used tokens
//! drops its oldest. Its tokens of that age or older then count as used. Their clients get a cookie, which costs them a
//! round trip.

use super::source::{ClientNetwork, Prefix};
use narrows_base::Time;
use narrows_wire::token::{MAX_TOKEN_LIFE, TokenName};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The used tokens of a network; never empty.
#[derive(Debug, Default)]
struct NetworkTokens {
    used: BTreeSet<TokenName>,
    /// Tokens issued at or before this time count as used.
    floor: Option<u64>,
}

impl NetworkTokens {
    /// Order in which networks drop tokens: most tokens first, then the oldest token.
    fn rank(&self) -> Rank {
        (Reverse(self.used.len()), self.used.first().map_or(u64::MAX, |name| name.issued))
    }
}

type Rank = (Reverse<usize>, u64);

/// Used tokens, by network.
#[derive(Debug)]
pub(super) struct UsedTokens {
    most: usize,
    in_all: usize,
    networks: BTreeMap<Prefix, NetworkTokens>,
    /// The same networks, in the order in which they drop tokens.
    ranks: BTreeSet<(Rank, Prefix)>,
    /// Tokens of any network issued at or before this time count as used.
    floor: Option<u64>,
}

impl UsedTokens {
    pub(super) fn new(most: usize) -> UsedTokens {
        UsedTokens {
            most,
            in_all: 0,
            networks: BTreeMap::new(),
            ranks: BTreeSet::new(),
            floor: None,
        }
    }

    /// Whether a token was used, or is too old to rule that out.
    pub(super) fn may_have(&self, from: ClientNetwork, token: &TokenName) -> bool {
        let is_below = |floor: Option<u64>| floor.is_some_and(|floor| token.issued <= floor);
        let network = self.networks.get(&from.widest());
        is_below(self.floor) || network.is_some_and(|n| is_below(n.floor) || n.used.contains(token))
    }

    /// Marks a token as used.
    pub(super) fn insert(&mut self, now: Time, from: ClientNetwork, token: &TokenName) {
        let oldest = now.as_nanos().saturating_sub(MAX_TOKEN_LIFE.as_nanos()) / 1_000_000;
        self.change(from.widest(), |network| {
            // Expired tokens need not be remembered.
            while network.used.first().is_some_and(|name| name.issued < oldest) {
                network.used.pop_first();
            }
            network.used.insert(*token);
        });
        while self.in_all > self.most {
            let Some(&(_, network)) = self.ranks.first() else { break };
            let mut forgotten = None;
            self.change(network, |network| {
                forgotten = network.used.pop_first().map(|name| name.issued);
                network.floor = network.floor.max(forgotten);
            });
            if !self.networks.contains_key(&network) {
                // Every network has only one token, so this was the oldest of all.
                self.floor = self.floor.max(forgotten);
            }
        }
    }

    fn change(&mut self, prefix: Prefix, act: impl FnOnce(&mut NetworkTokens)) {
        let mut network = self.networks.remove(&prefix).unwrap_or_default();
        self.ranks.remove(&(network.rank(), prefix));
        self.in_all -= network.used.len();
        act(&mut network);
        self.in_all += network.used.len();
        if !network.used.is_empty() {
            self.ranks.insert((network.rank(), prefix));
            self.networks.insert(prefix, network);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.in_all
    }

    /// Approximate bytes on the heap.
    pub(super) fn memory(&self) -> usize {
        // A B-tree node has eleven entries.
        const SET: usize = 11 * size_of::<TokenName>();
        const NETWORK: usize =
            size_of::<(Prefix, NetworkTokens)>() + size_of::<(Rank, Prefix)>() + SET;
        2 * self.in_all * size_of::<TokenName>() + self.networks.len() * NETWORK
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn network(n: u8) -> ClientNetwork {
        ClientNetwork::of(std::net::Ipv4Addr::new(192, 0, 2, n).into())
    }
    fn name(issued: u64, id: u8) -> TokenName {
        TokenName { issued, id: [id; 12] }
    }

    proptest! {
        /// For any sequence of uses, a used token never counts as unused while it is valid, and memory stays within its
        /// limit.
        #[test]
        fn no_token_is_used_twice(
            most in 1usize..12,
            uses in prop::collection::vec((0u8..5, 0u64..40, 0u8..3), 1..80),
        ) {
            let mut tokens = UsedTokens::new(most);
            let mut used = BTreeSet::new();
            for (n, issued, id) in uses {
                let token = name(issued, id);
                if used.contains(&(n, token)) {
                    prop_assert!(tokens.may_have(network(n), &token));
                } else if !tokens.may_have(network(n), &token) {
                    tokens.insert(Time::from_nanos(50_000_000), network(n), &token);
                    used.insert((n, token));
                }
                prop_assert!(tokens.in_all <= most && tokens.networks.len() <= tokens.in_all);
                prop_assert_eq!(tokens.ranks.len(), tokens.networks.len());
            }
            for (n, token) in &used {
                prop_assert!(tokens.may_have(network(*n), token));
            }
        }
    }

    #[test]
    fn a_network_that_uses_many_makes_only_its_own_old() {
        let mut tokens = UsedTokens::new(100);
        let now = Time::from_secs_f64(10.0);
        tokens.insert(now, network(1), &name(5, 0));
        for issued in 100..1000 {
            tokens.insert(now, network(2), &name(issued, 0));
        }
        assert!(
            !tokens.may_have(network(1), &name(6, 0)),
            "the neighbour's token is as good as ever"
        );
        assert!(
            tokens.may_have(network(2), &name(800, 1))
                && !tokens.may_have(network(2), &name(950, 1))
        );
    }

    #[test]
    fn tokens_that_are_too_old_leave_room() {
        let mut tokens = UsedTokens::new(10);
        tokens.insert(Time::from_secs_f64(1.0), network(1), &name(1000, 0));
        let later = Time::from_secs_f64(1.1) + MAX_TOKEN_LIFE;
        tokens.insert(later, network(1), &name(86_000_000, 0));
        assert_eq!((tokens.in_all, tokens.memory() > 0), (1, true));
    }
}
