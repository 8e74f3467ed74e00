//! `narrows link`: any program over an emulated link, in real time.

mod args;
#[cfg(target_os = "linux")]
mod attend;
#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
mod labelled;
#[cfg(target_os = "linux")]
mod make;
#[cfg(target_os = "linux")]
mod on_page;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(target_os = "linux")]
mod recorded;
#[cfg(target_os = "linux")]
mod shown;

pub use args::LinkArgs;

use crate::failure::Failure;

pub const HELP: &str = "\
COMMAND runs in a network namespace that is connected to other networks only by
the link. Sent packets cross SPEC, received ones cross --back. Links have the
syntax of `narrows compare`. The kernel's own packets are queued, marked, lost
and delayed individually. Inside, the far end's address (printed at the start,
and in NARROWS_HOST) reaches the host, including servers on 127.0.0.1.
Root or pasta is needed, except with --far or --scenario.
If there are several commands, output lines of all except the last begin with a
label (far, or the node). Only the last command has the terminal.
The exit code is that of the command.

Examples:
  narrows link geo -- curl -O https://example.org/file
  narrows link 20Mbit/s,25ms --back 20Mbit/s,25ms,loss=1% -- bash
  narrows link 12Mbit/s,20ms,queue=60kB --far 'iperf3 -s' -- \\
      sh -c 'sleep 1; iperf3 -c $NARROWS_FAR'
  narrows link lte -- narrows link wifi -- bash       a path of two links
  narrows link 10Mbit/s,20ms --between red:blue       until Ctrl-C
  narrows link --scenario parking-lot.toml --at 'server=iperf3 -s' \\
      --at 'client=iperf3 -c server'
  narrows link --clean                                after a kill -9";

/// `narrows link`.
#[cfg(target_os = "linux")]
pub fn link(a: &LinkArgs) -> Result<(), Failure> {
    if a.guard { guard::guard() } else { make::link(a) }
}

/// `narrows link`.
#[cfg(not(target_os = "linux"))]
pub fn link(_: &LinkArgs) -> Result<(), Failure> {
    Err(Failure::Input("narrows link needs Linux (TUN devices, namespaces); `narrows relay` emulates a link for UDP".into()))
}
