//! `narrows kernel`: controllers drive the Linux kernel's TCP.

mod args;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod on_page;

pub use args::KernelArgs;

use crate::failure::Failure;
#[cfg(target_os = "linux")]
use args::KernelCommand;

pub const HELP: &str = "\
A small eBPF congestion control reports each acknowledgement to narrows, where
the controller of the simulation sets window and pacing rate. If its answers are
late (two round trips, and at least 20 ms), or narrows is killed, connections
continue as Reno. This needs Linux 6.4 or newer with BTF, and root.

Examples:
  narrows kernel run rrtp -- curl -O https://example.org/file
  narrows kernel run 'vegas(alpha=2)' -- iperf3 -c server
  narrows kernel run rrtp -- nginx -g 'daemon off;'   for a server
  narrows kernel run rrtp --live -- iperf3 -c server  with a page
  narrows kernel load stpd rrtp        as nw_stpd and nw_rrtp, until unloaded
  narrows kernel load --native stpd    inside the kernel, without a process
  iperf3 -c server -C nw_stpd              used by a program,
  ip route change default via 10.0.0.1 congctl nw_stpd       or for a route
  narrows kernel status
  narrows kernel unload nw_stpd";

/// `narrows kernel`.
#[cfg(target_os = "linux")]
pub fn kernel(a: &KernelArgs) -> Result<(), Failure> {
    match &a.command {
        KernelCommand::Run(a) => linux::run(a),
        KernelCommand::Load(a) => linux::load(a),
        KernelCommand::Status(a) => linux::status(a),
        KernelCommand::Unload(a) => linux::unload(a),
        KernelCommand::Agent(a) => linux::agent(a),
        KernelCommand::Guard(a) => linux::guard(a),
    }
}

/// `narrows kernel`.
#[cfg(not(target_os = "linux"))]
pub fn kernel(_: &KernelArgs) -> Result<(), Failure> {
    Err(Failure::Input("kernel: controllers drive the TCP of Linux only, by eBPF".into()))
}
