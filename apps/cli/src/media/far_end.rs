//! The other end of a media stream: a peer to connect to, or listed peers that connect to this end.

use crate::failure::Failure;
use crate::transfer::{client_key, known_servers, pin, server_key};
use crate::transport::address;
use narrows_files::{Scheme, Url};
use narrows_media::dial::Peer;
use narrows_peers::access::AllowList;
use narrows_peers::path_choice::PathChoices;
use narrows_peers::{Identity, error};
use narrows_transport::connection::ConnectionConfig;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The other end of a stream.
pub enum FarEnd {
    /// A peer that this end connects to.
    At(Box<Peer>),
    /// Listed peers that connect to this end.
    Comes {
        /// Listening address.
        at: SocketAddr,
        /// File of the keys that may connect.
        list: ClientList,
        /// This end's own key.
        identity: Identity,
    },
}

/// A file of keys that may connect.
pub struct ClientList(PathBuf);

impl ClientList {
    /// The keys of the file.
    ///
    /// # Errors
    /// It cannot be read, is invalid, or has no key.
    pub fn load(&self) -> Result<AllowList, Failure> {
        let clients = AllowList::load(&self.0).map_err(|e| e.at("--clients"))?;
        clients.not_empty()?;
        Ok(clients)
    }

    /// The keys that the file has now.
    ///
    /// # Errors
    /// As [`ClientList::load`].
    pub fn reload(&self) -> Result<AllowList, Failure> {
        Ok(AllowList::reload(&self.0).map_err(|e| e.at("--clients"))?)
    }
}

/// Words of a command for messages about the other end.
#[derive(Clone, Copy)]
pub struct FarEndWords {
    /// Name of the command, as "media send".
    pub command: &'static str,
    /// Noun for the peer, as "a receiver".
    pub peer: &'static str,
    /// Default listening address.
    pub listen: &'static str,
}

/// The peer with this URL.
///
/// # Errors
/// The URL is invalid, or this end's keys cannot be read.
pub fn connected(
    url: &str,
    words: FarEndWords,
    identity: Option<&Path>,
    config: ConnectionConfig,
    paths: PathChoices,
) -> Result<FarEnd, Failure> {
    let shown = error::shown(url);
    let url = Url::read(url)?;
    if url.scheme != Scheme::Rrtp || !url.path.is_root() || url.port == 0 {
        return Err(Failure::Input(format!(
            "'{shown}': {} of media is named as rrtp://[KEY@]HOST:PORT, without a path",
            words.peer
        )));
    }
    let identity = client_key(identity)?;
    let known = known_servers()?;
    let server = url.server();
    let key = match url.key {
        Some(key) => Some(key),
        None => known.get(&server)?,
    };
    Ok(FarEnd::At(Box::new(Peer {
        host: url.host.clone(),
        port: url.port,
        key,
        judge: Box::new(move |found| pin(&known, &server, found)),
        identity,
        config,
        patience: narrows_net::OPENING_TIMEOUT,
        tap: None,
        paths,
    })))
}

/// Listed peers that connect to `listen`.
///
/// # Errors
/// There is no list, it cannot be read, or `listen` is not a valid address.
pub fn coming(
    listen: Option<&String>,
    clients: Option<&PathBuf>,
    words: FarEndWords,
    identity: Option<&Path>,
) -> Result<FarEnd, Failure> {
    let FarEndWords { command, .. } = words;
    let Some(clients) = clients else {
        return Err(Failure::Input(format!(
            "{command}: --clients FILE is missing: the keys of permitted peers, one per line"
        )));
    };
    let list = ClientList(clients.clone());
    list.load()?;
    let at = address("--listen", listen.map_or(words.listen, String::as_str))?;
    Ok(FarEnd::Comes { at, list, identity: server_key(identity)? })
}
