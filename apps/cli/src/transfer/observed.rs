//! Observers of a transfer: recording and page.

use super::options::TransferOptions;
use crate::failure::Failure;
use crate::live::{LiveArgs, ShownConnections};
use crate::record::{OpenRecording, RecordArgs};
use narrows_files::{Scheme, Url};

/// A page of one transfer, if `--live` is set.
pub fn shown(
    live: &LiveArgs,
    command: &str,
    url: &Url,
    options: &TransferOptions,
) -> Result<Option<ShownConnections>, Failure> {
    if live.live.is_some() && url.scheme == Scheme::Tcp {
        let line = "--live is for rrtp: the kernel's TCP shows nothing; use an rrtp:// URL";
        return Err(Failure::Input(line.into()));
    }
    ShownConnections::open(live, command, options.protocol.as_deref().unwrap_or("rrtp"))
}

/// A recording of one transfer, if `--record` is set.
pub fn record(
    record: &RecordArgs,
    command: &'static str,
    url: &Url,
    options: &TransferOptions,
) -> Result<OpenRecording, Failure> {
    if record.is_wanted() && url.scheme == Scheme::Tcp {
        let line = "--record is for rrtp: the kernel's TCP shows nothing; use an rrtp:// URL";
        return Err(Failure::Input(line.into()));
    }
    let protocol = options.protocol.as_deref().unwrap_or("rrtp");
    record.start(command, protocol, format!("the path to {}", url.server()))
}
