//! Options of every transfer, and the keys of both ends.

use crate::failure::Failure;
use crate::local_paths::PathArgs;
use crate::transport::Hints;
use clap::Args;
use narrows_lab::options::RARE;
use narrows_peers::access::KnownServers;
use narrows_peers::{Identity, key};
use std::path::{Path, PathBuf};

#[derive(Args, Clone, Debug)]
pub struct TransferOptions {
    /// rrtp, rrtp+bbr, rrtp+cubic, …; for tcp:// tcp or tcp+NAME, the kernels' congestion control
    #[arg(long, value_name = "NAME")]
    pub protocol: Option<String>,
    #[command(flatten)]
    pub hints: Hints,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Store the measured path, and begin with it the next time (rrtp)
    #[arg(long, hide_short_help = true, help_heading = RARE)]
    pub learn: bool,
    /// This client's key [default: client.key in the folder that `narrows key` names]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    /// Print the result as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// The server's key pair, which is made at first use.
///
/// # Errors
/// It can be neither read nor made.
pub fn server_key(file: Option<&Path>) -> Result<Identity, Failure> {
    own_key(file, "server.key")
}

/// The client's key pair, which is made at first use.
///
/// # Errors
/// It can be neither read nor made.
pub fn client_key(file: Option<&Path>) -> Result<Identity, Failure> {
    own_key(file, "client.key")
}

pub fn own_key(file: Option<&Path>, name: &str) -> Result<Identity, Failure> {
    let path = match file {
        Some(path) => path.to_path_buf(),
        None => key::config_folder()?.join(name),
    };
    Ok(Identity::load_or_make(&path)?)
}

/// The pinned keys of servers.
///
/// # Errors
/// The user has no home directory.
pub fn known_servers() -> Result<KnownServers, Failure> {
    Ok(KnownServers::at(key::config_folder()?.join("known_servers")))
}
