//! Where a client keeps the address tokens that servers gave it.

use narrows_base::{Duration, Time};
use narrows_wire::Token;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Servers whose tokens are kept in memory at most.
const MAX_SERVERS: usize = 256;

/// Keeps address tokens, one for each server: the newest. An application that wants to keep them longer than its
/// process lives implements this ([`Connections::set_token_store`](super::Connections::set_token_store)).
///
/// A token shows a server only that its client was at this address before. It is used once, and of no use from
/// elsewhere. A server knows whom it gave it to.
pub trait TokenStore: Send + std::fmt::Debug {
    /// A server gave this now, by the endpoint's clock.
    fn insert(&mut self, now: Time, server: SocketAddr, token: Token);
    /// The token for a server, if there is one, and how long it has been kept; it is not given again. A server refuses
    /// early data with a token whose age is wrong by more than ten seconds, and nothing worse comes of that.
    fn take(&mut self, now: Time, server: SocketAddr) -> Option<(Token, Duration)>;
}

/// In memory, for 256 servers; more displace the oldest.
#[derive(Debug, Default)]
pub struct MemoryTokens {
    /// With the time of each.
    tokens: BTreeMap<SocketAddr, (Token, Time)>,
    /// The same servers, in the order in which they were first known.
    order: VecDeque<SocketAddr>,
}

impl TokenStore for MemoryTokens {
    fn insert(&mut self, now: Time, server: SocketAddr, token: Token) {
        if self.tokens.insert(server, (token, now)).is_none() {
            self.order.push_back(server);
        }
        if self.tokens.len() > MAX_SERVERS
            && let Some(oldest) = self.order.pop_front()
        {
            self.tokens.remove(&oldest);
        }
    }
    fn take(&mut self, now: Time, server: SocketAddr) -> Option<(Token, Duration)> {
        let (token, since) = self.tokens.remove(&server)?;
        self.order.retain(|known| *known != server);
        Some((token, now.since(since)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_token_of_each_server_is_given_once_and_servers_are_bounded() {
        let server = |n: u16| SocketAddr::from(([192, 0, 2, 1], n));
        let at = Time::from_secs_f64;
        let mut tokens = MemoryTokens::default();
        tokens.insert(at(1.0), server(1), Token([1; 36]));
        tokens.insert(at(2.0), server(1), Token([2; 36]));
        tokens.insert(at(3.0), server(2), Token([3; 36]));
        let age = Duration::from_secs(5);
        assert_eq!(tokens.take(at(7.0), server(1)), Some((Token([2; 36]), age)));
        assert_eq!(tokens.take(at(7.0), server(1)), None);
        for n in 1000..2000 {
            tokens.insert(at(8.0), server(n), Token([4; 36]));
            assert!(tokens.order.len() == tokens.tokens.len() && tokens.order.len() <= 256);
        }
        let mut taken = |n| tokens.take(at(8.0), server(n)).map(|(token, _)| token);
        assert_eq!((taken(2), taken(1743), taken(1744)), (None, None, Some(Token([4; 36]))));
    }
}
