//! `narrows probe`: measures the path to a server.

mod one;
mod over_paths;
mod shown;
mod tcp;

use crate::failure::Failure;
use crate::local_paths::PathArg;
use crate::terminal::{catch_interrupt, print, print_json};
use clap::Args;
use narrows_files::Url;
use narrows_net::endpoint::new_key;
use narrows_net::probe::{ProbeOptions, Probed};
use narrows_peers::dial::resolved;
use narrows_peers::{error, key};
use narrows_scenario::{output_file, user_links};
use narrows_transport::endpoint::ServerKey;
use one::{failure, with_bar};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct ProbeArgs {
    /// A `narrows serve`, `narrows speed --serve` or `narrows tunnel serve`: [rrtp://][KEY@]HOST:PORT
    #[arg(value_name = "HOST:PORT")]
    pub server: String,
    /// Let a queue overflow, once in each direction, to find its size and management
    #[arg(long, conflicts_with = "tcp")]
    pub fill: bool,
    /// Save the link under this name, for --link of every command
    #[arg(long, value_name = "NAME", conflicts_with_all = ["tcp", "paths"])]
    pub save: Option<String>,
    /// Then record both directions under light and heavy load, as FILE.there and FILE.back for trace=; 11 s more
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tcp", "paths"])]
    pub trace: Option<PathBuf>,
    /// This end's key, for a server that accepts only listed clients [default: a new one each time]
    #[arg(long, value_name = "FILE", conflicts_with = "tcp")]
    pub identity: Option<PathBuf>,
    /// HOST:PORT is any TCP server: measure only the round-trip time, by ten TCP handshakes
    #[arg(long)]
    pub tcp: bool,
    /// Probe from this interface or local address, or from `all` interfaces with a default route; several are probed
    /// in turn
    #[arg(long = "path", value_name = "IFACE|ADDRESS|all", conflicts_with = "tcp")]
    pub paths: Vec<PathArg>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

pub const HELP: &str = "\
Each direction is probed for a few seconds, ten in all: short trains at up to
1.2 times the measured rate, sparse small packets, then a steady load of 0.85 of
the rate. At most 24 MB are sent in each direction. --fill sends at 1.2 times
the rate until packets are dropped.

Examples:
  narrows probe example.org:4433                   rate, RTT, loss, jitter
  narrows probe example.org:4433 --fill --save home    also the buffer
  narrows compare --link home                      compare protocols on it
  narrows probe example.org:4433 --trace home      record and replay it
  narrows probe example.org:4433 --path all        each line of this machine
  narrows probe example.org:443 --tcp              any server: the RTT only";

/// `narrows probe`.
///
/// # Errors
/// The path could not be measured, or the link could not be saved.
pub fn probe(a: &ProbeArgs) -> Result<(), Failure> {
    if let Some(name) = &a.save {
        user_links::check_name(name).map_err(|e| Failure::from(e.at("--save")))?;
    }
    let files = a.trace.as_deref().map(trace_files).transpose()?;
    let paths = over_paths::chosen(&a.paths)?;
    let (servers, server_key) = server(&a.server)?;
    if a.tcp {
        return tcp::handshakes(&servers, a.json);
    }
    let key = match &a.identity {
        Some(path) => {
            let identity = narrows_peers::Identity::load_or_make(path)?;
            narrows_wire::StaticKey::new(*identity.private())
                .map_err(|e| Failure::Outside(e.to_string()))?
        }
        None => new_key().map_err(|e| Failure::Outside(e.to_string()))?,
    };
    catch_interrupt();
    let record = a.trace.is_some();
    let options = ProbeOptions { servers, server_key, local: None, key, fill: a.fill, record };
    if !paths.is_empty() {
        return over_paths::probe_each(a.json, &a.server, &paths, &options);
    }
    let probed = with_bar(options).map_err(|e| failure(&e, &a.server))?;
    let link = match (&files, &probed.recorded) {
        (Some(files), Some(recorded)) => {
            for (file, way) in files.iter().zip(recorded) {
                let written = output_file::create(file.as_ref())
                    .and_then(|mut file| file.write_all(way.text.as_bytes()));
                written.map_err(|e| Failure::Outside(format!("--trace: {file}: {e}")))?;
            }
            probed.estimate.link_with(files.each_ref().map(|file| Some(file.as_str())))
        }
        _ => probed.estimate.link(),
    };
    let saved = match &a.save {
        Some(name) => {
            let file = key::config_folder()?.join(narrows_scenario::user_links::FILE_NAME);
            user_links::save(&file, name, &link, shown::bounds(&probed).as_deref())
                .map_err(|e| Failure::Outside(e.at("--save").to_string()))
        }
        None => Ok(()),
    };
    // Print the result even if it cannot be saved.
    report(a, &probed, &link, saved.is_ok())?;
    saved
}

/// The files of both directions: absolute, and without characters that a link's text gives a meaning.
fn trace_files(name: &Path) -> Result<[String; 2], Failure> {
    let path = std::path::absolute(name).map_err(|e| Failure::Input(format!("--trace: {e}")))?;
    match path.to_str().filter(|path| !path.contains([',', '(', ')', '=', '\''])) {
        Some(path) => Ok(["there", "back"].map(|way| format!("{path}.{way}"))),
        None => Err(Failure::Input(
            "--trace: a path without commas, brackets, quotes and '=' is expected: a link names it"
                .into(),
        )),
    }
}

fn report(a: &ProbeArgs, probed: &Probed, link: &str, is_saved: bool) -> Result<(), Failure> {
    if a.json {
        return print_json(&shown::json(probed, link));
    }
    let next = match a.save.as_ref().filter(|_| is_saved) {
        Some(name) => {
            let bounds =
                shown::bounds(probed).map_or(String::new(), |bounds| format!(" ({bounds})"));
            format!("Kept as '{name}'{bounds}: narrows compare --link {name}\n")
        }
        None => format!("narrows compare --link '{link}'\n"),
    };
    print(&(shown::text(probed) + &next))
}

/// Addresses and key of a server.
fn server(text: &str) -> Result<(Vec<SocketAddr>, ServerKey), Failure> {
    let whole = if text.contains("://") { text.into() } else { format!("rrtp://{text}") };
    let url = Url::read(&whole)?;
    let bad = |why: &str| {
        let shown = error::shown(text);
        Failure::Input(format!("'{shown}': {why}; a server is HOST:PORT, as in example.org:4433"))
    };
    if url.port == 0 {
        return Err(bad("the port is 0"));
    }
    let addresses = resolved(&url.host, url.port)?;
    Ok((addresses, url.key.map_or(ServerKey::Any, ServerKey::Is)))
}
