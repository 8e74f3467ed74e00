//! Tests of the command. They are one binary, since each binary would be linked separately.

mod addresses;
mod command;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod link;
#[cfg(unix)]
mod lists;
mod live;
mod media;
mod media_ffmpeg;
#[cfg(target_os = "linux")]
mod media_multicast;
#[cfg(target_os = "linux")]
mod multipath;
mod probe;
mod process;
mod proxy_clients;
mod relay;
#[cfg(unix)]
mod service;
// Linux has commands that other systems lack.
#[cfg(target_os = "linux")]
mod snapshots;
mod transfer;
#[cfg(unix)]
mod transfer_sources;
mod tunnel;
#[cfg(target_os = "linux")]
mod tunnel_tun;
