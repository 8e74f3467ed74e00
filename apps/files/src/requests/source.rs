//! The network and key under which a request is counted.

use narrows_transport::endpoint::share::CountedClient;
use narrows_transport::endpoint::source::{ClientNetwork as Network, Prefix};
use narrows_wire::noise::PublicKey;
use std::net::{IpAddr, Ipv4Addr};

/// Groups of requests that share a limit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RequestScope {
    /// All requests of a server.
    All,
    /// An IPv4 address, or an IPv6 /48, /56 or /64.
    Network(Prefix),
    /// A client's public key.
    Key(PublicKey),
}

/// Origin of a request, as far as it is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestSource {
    client: CountedClient,
    /// From the widest to the narrowest.
    scopes: Vec<RequestScope>,
}

impl RequestSource {
    /// `listed`: the client's key is on the owner's list.
    pub fn new(address: Option<IpAddr>, key: Option<PublicKey>, listed: bool) -> RequestSource {
        let source = Network::of(address.unwrap_or(Ipv4Addr::UNSPECIFIED.into()));
        let mut scopes = vec![RequestScope::All];
        scopes.extend(source.prefixes().map(RequestScope::Network));
        scopes.extend(key.map(RequestScope::Key));
        let client = CountedClient { source, key: key.unwrap_or_default(), is_listed: listed };
        RequestSource { client, scopes }
    }

    /// The form that [`gives_way`](narrows_transport::endpoint::share::gives_way) compares.
    pub(super) fn client(&self) -> &CountedClient {
        &self.client
    }

    /// From the widest to the narrowest.
    pub fn scopes(&self) -> &[RequestScope] {
        &self.scopes
    }

    /// The key of a listed client, and the network of any other, which may take a new key each time.
    pub fn narrowest(&self) -> RequestScope {
        let is_own =
            |scope: &&RequestScope| self.is_listed() || !matches!(scope, RequestScope::Key(_));
        self.scopes.iter().rfind(is_own).copied().unwrap_or(RequestScope::All)
    }

    /// Whether the client is on the owner's list, and so preferred.
    pub fn is_listed(&self) -> bool {
        self.client.is_listed
    }

    /// The widest scopes in which the two differ, and so compete.
    pub(super) fn rivals(&self, other: &RequestSource) -> Option<(RequestScope, RequestScope)> {
        self.scopes.iter().zip(&other.scopes).find(|(a, b)| a != b).map(|(a, b)| (*a, *b))
    }
}
