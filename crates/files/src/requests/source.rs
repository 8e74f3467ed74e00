//! The network and key under which a request is counted.

use narrows_transport::endpoint::share::Client;
use narrows_transport::endpoint::source::{Prefix, Source as Network};
use narrows_wire::noise::PublicKey;
use std::net::{IpAddr, Ipv4Addr};

/// Groups of requests that share a limit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Scope {
    /// All requests of a server.
    All,
    /// An IPv4 address, or an IPv6 /48, /56 or /64.
    Network(Prefix),
    /// A client's public key.
    Key(PublicKey),
}

/// Origin of a request, as far as it is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    client: Client,
    /// From the widest to the narrowest.
    scopes: Vec<Scope>,
}

impl Source {
    /// `listed`: the client's key is on the owner's list.
    pub fn new(address: Option<IpAddr>, key: Option<PublicKey>, listed: bool) -> Source {
        let source = Network::of(address.unwrap_or(Ipv4Addr::UNSPECIFIED.into()));
        let mut scopes = vec![Scope::All];
        scopes.extend(source.prefixes().map(Scope::Network));
        scopes.extend(key.map(Scope::Key));
        let client = Client { source, key: key.unwrap_or_default(), is_listed: listed };
        Source { client, scopes }
    }

    /// The form that [`gives_way`](narrows_transport::endpoint::share::gives_way) compares.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// From the widest to the narrowest.
    pub fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    /// The key of a listed client, and the network of any other, which may take a new key each time.
    pub fn narrowest(&self) -> Scope {
        let is_own = |scope: &&Scope| self.is_listed() || !matches!(scope, Scope::Key(_));
        self.scopes.iter().rfind(is_own).copied().unwrap_or(Scope::All)
    }

    /// Whether the client is on the owner's list, and so preferred.
    pub fn is_listed(&self) -> bool {
        self.client.is_listed
    }

    /// The widest scopes in which the two differ, and so compete.
    pub(super) fn rivals(&self, other: &Source) -> Option<(Scope, Scope)> {
        self.scopes.iter().zip(&other.scopes).find(|(a, b)| a != b).map(|(a, b)| (*a, *b))
    }
}
