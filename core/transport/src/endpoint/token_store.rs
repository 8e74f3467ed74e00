//! A client's store of address tokens from servers.

use narrows_base::{Duration, Time};
use narrows_wire::Token;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Limit on servers with a token in memory.
const MAX_SERVERS: usize = 256;

/// Stores address tokens, the newest per server. To keep them after the process ends, an application implements this
/// trait ([`Connections::set_token_store`](super::Connections::set_token_store)).
///
/// A token proves to a server only that its client was at this address before. It is valid once, and from this address
/// only. A server can link a token to the client that got it.
pub trait TokenStore: Send + std::fmt::Debug {
    /// Stores a token that arrived at `now`, by the endpoint's clock.
    fn insert(&mut self, now: Time, server: SocketAddr, token: Token);
    /// Removes and returns the token for a server, with the time since it was stored. A server rejects early data if
    /// that age is wrong by more than ten seconds; the connection is then made without them.
    fn take(&mut self, now: Time, server: SocketAddr) -> Option<(Token, Duration)>;
}

/// A store in memory, for 256 servers; beyond that the oldest is dropped.
#[derive(Debug, Default)]
pub struct MemoryTokens {
    /// Tokens with their times of arrival.
    tokens: BTreeMap<SocketAddr, (Token, Time)>,
    /// The same servers, in the order of their first token.
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
    fn newest_token_per_server_is_used_once() {
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
