//! Where a client keeps the address tokens that servers gave it.

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
    /// A server gave this.
    fn insert(&mut self, server: SocketAddr, token: Token);
    /// The token for a server, if there is one; it is not given again.
    fn take(&mut self, server: SocketAddr) -> Option<Token>;
}

/// In memory, for 256 servers; more displace the oldest.
#[derive(Debug, Default)]
pub struct MemoryTokens {
    tokens: BTreeMap<SocketAddr, Token>,
    /// The same servers, in the order in which they were first known.
    order: VecDeque<SocketAddr>,
}

impl TokenStore for MemoryTokens {
    fn insert(&mut self, server: SocketAddr, token: Token) {
        if self.tokens.insert(server, token).is_none() {
            self.order.push_back(server);
        }
        if self.tokens.len() > MAX_SERVERS
            && let Some(oldest) = self.order.pop_front()
        {
            self.tokens.remove(&oldest);
        }
    }
    fn take(&mut self, server: SocketAddr) -> Option<Token> {
        let token = self.tokens.remove(&server)?;
        self.order.retain(|known| *known != server);
        Some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_token_of_each_server_is_given_once_and_servers_are_bounded() {
        let server = |n: u16| SocketAddr::from(([192, 0, 2, 1], n));
        let mut tokens = MemoryTokens::default();
        tokens.insert(server(1), Token([1; 36]));
        tokens.insert(server(1), Token([2; 36]));
        tokens.insert(server(2), Token([3; 36]));
        assert_eq!(tokens.take(server(1)), Some(Token([2; 36])));
        assert_eq!(tokens.take(server(1)), None);
        for n in 1000..2000 {
            tokens.insert(server(n), Token([4; 36]));
            assert!(tokens.order.len() == tokens.tokens.len() && tokens.order.len() <= 256);
        }
        assert_eq!((tokens.take(server(2)), tokens.take(server(1743))), (None, None));
        assert_eq!(tokens.take(server(1744)), Some(Token([4; 36])));
    }
}
