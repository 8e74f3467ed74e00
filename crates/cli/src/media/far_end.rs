//! The other end of media: one that is connected to, or those on a list that connect.

use crate::failure::Failure;
use crate::transfer::{client_key, known_servers, pin, server_key};
use crate::transport::address;
use narrows_base::Duration;
use narrows_files::access::AllowList;
use narrows_files::{Identity, Scheme, Url, error};
use narrows_media::dial::Peer;
use narrows_transport::connection::ConnectionConfig;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// An attempt to connect is given up after so long.
const PATIENCE: Duration = Duration::from_secs(10);

/// The other end.
pub enum FarEnd {
    /// This end connects to it.
    At(Box<Peer>),
    /// Those on the list connect to this end.
    Comes {
        /// Where it listens.
        at: SocketAddr,
        /// Who may come.
        clients: AllowList,
        /// This end's key.
        identity: Identity,
    },
}

/// Which of the two commands is asked: what it says of the other end.
#[derive(Clone, Copy)]
pub struct Words {
    /// The command.
    pub command: &'static str,
    /// Who is connected to, as "a receiver".
    pub peer: &'static str,
    /// What those do who come, as "send".
    pub come_to: &'static str,
    /// Where it listens if nothing is said.
    pub listen: &'static str,
}

/// The end with this URL.
///
/// # Errors
/// It is none; or this end's keys cannot be read.
pub fn connected(
    url: &str,
    words: Words,
    identity: Option<&Path>,
    config: ConnectionConfig,
) -> Result<FarEnd, Failure> {
    let (url, shown) = (Url::read(url)?, error::shown(url));
    if url.scheme != Scheme::Rrtp || !url.path.is_root() || url.port == 0 {
        return Err(Failure::Input(format!(
            "'{shown}': {} of media is named as rrtp://[KEY@]HOST:PORT, without a path",
            words.peer
        )));
    }
    let identity = client_key(identity)?;
    let (known, server) = (known_servers()?, url.server());
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
        patience: PATIENCE,
        tap: None,
    })))
}

/// Those on the list, who connect to `listen`.
///
/// # Errors
/// There is no list, or it cannot be read; `listen` is no address.
pub fn coming(
    listen: Option<&String>,
    clients: Option<&PathBuf>,
    words: Words,
    identity: Option<&Path>,
) -> Result<FarEnd, Failure> {
    let Words { command, come_to, .. } = words;
    let Some(clients) = clients else {
        return Err(Failure::Input(format!(
            "{command}: --clients FILE is missing: the keys of those who may {come_to}, one per line"
        )));
    };
    let clients = AllowList::load(clients).map_err(|e| e.at("--clients"))?;
    let at = address("--listen", listen.map_or(words.listen, String::as_str))?;
    Ok(FarEnd::Comes { at, clients, identity: server_key(identity)? })
}
