//! The connection of `narrows speed --path`.

use super::SpeedArgs;
use crate::failure::Failure;
use crate::local_paths::CarriedBytes;
use crate::terminal::{STOP, note};
use narrows_base::Duration;
use narrows_net::block::{block_on_for, sleep_until};
use narrows_net::dial::DialledAddress;
use narrows_net::endpoint::new_key;
use narrows_net::{ConnectOptions, Error as NetError, Options};
use narrows_peers::path_choice::PathChoices;
use narrows_peers::paths::{BoundPaths, LocalPaths, OpenPaths};
use narrows_peers::{Error, ErrorKind};
use narrows_speed::{Amount, OpenConnection, Speed, SpeedResult};
use narrows_transport::endpoint::ServerKey;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Time between two looks at an interruption.
const LOOK: std::time::Duration = std::time::Duration::from_millis(50);

/// A connection over several paths, and where they leave.
pub struct OpenOverPaths {
    pub open: OpenConnection,
    pub names: OpenPaths,
}

/// The chosen paths; empty without `--path`.
///
/// # Errors
/// They are not possible, or the measurement has no connection of its own to another machine.
pub fn choices(a: &SpeedArgs) -> Result<PathChoices, Failure> {
    let is_one = a.server.is_some() && a.listen.is_none() && a.connections == 1;
    if !a.paths.paths.is_empty() && !is_one {
        let line = "--path is for one connection to a `narrows speed --serve`: give its HOST:PORT";
        return Err(Failure::Input(line.into()));
    }
    a.paths.named()
}

/// Opens a connection over these paths, of which the handshake takes the first that answers.
///
/// # Errors
/// No path leads to a server that answers.
pub fn open(
    speed: &Speed,
    choices: &PathChoices,
    servers: &[SocketAddr],
) -> Result<OpenOverPaths, Failure> {
    let mut patience = narrows_net::OPENING_TIMEOUT;
    if let Amount::Time(all) = speed.amount {
        patience = patience.min(all);
    }
    let paths = LocalPaths::new(choices, servers)?;
    let connect = async |mut bound: BoundPaths| {
        let config = bound.configured(speed.config());
        let options = Options::client(new_key().map_err(local)?, config.clone());
        let endpoint = bound.endpoint(options.tapped(speed.taps.client.clone())).map_err(local)?;
        let mut how = ConnectOptions::new(ServerKey::Any, config);
        how.suite = speed.suite;
        how.patience = patience;
        let begun = Instant::now();
        let dialled = endpoint.connect_any(&bound.servers, how, sleep_until).await;
        let dialled = dialled.map_err(|e| Error::new(ErrorKind::Unreachable, e.to_string()))?;
        let handshake = Duration::from_secs_f64(begun.elapsed().as_secs_f64());
        let DialledAddress { address, value: connection, .. } = dialled;
        Ok((bound, OpenConnection { endpoint, connection, address, handshake }))
    };
    let mut dialling = std::pin::pin!(paths.first(&connect, sleep_until));
    let (bound, open) = loop {
        if STOP.load(Ordering::SeqCst) {
            return Err(Failure::Interrupted);
        }
        if let Some(done) = block_on_for(LOOK, dialling.as_mut()) {
            break done?;
        }
    };
    let notes = bound.open(&open.connection, open.address);
    if !notes.is_empty() {
        note(&format!("narrows: connected to {}{notes}", open.address));
    }
    Ok(OpenOverPaths { open, names: bound.names })
}

fn local(e: NetError) -> Error {
    Error::new(ErrorKind::Local, e.to_string())
}

/// Bytes of each path in the direction of the data.
pub fn carried(a: &SpeedArgs, result: &SpeedResult, names: &OpenPaths) -> Vec<CarriedBytes> {
    let of_path = |path: &narrows_transport::connection::PathStats| {
        let bytes = if a.down { path.bytes_received } else { path.bytes_sent };
        Some(CarriedBytes { path: names.get(path.number)?.to_string(), bytes })
    };
    result.paths.iter().filter_map(of_path).collect()
}
