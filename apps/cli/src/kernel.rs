//! `narrows kernel`: controllers drive the Linux kernel's TCP.

use crate::failure::Failure;
use crate::live::LiveArgs;
use clap::{Args, Subcommand};
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod on_page;

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

#[derive(Args)]
pub struct KernelArgs {
    #[command(subcommand)]
    pub command: KernelCommand,
}

#[derive(Subcommand)]
pub enum KernelCommand {
    /// Run a command with a controller for its TCP connections
    Run(KernelRun),
    /// Load controllers until they are unloaded
    Load(KernelLoad),
    /// Show the loaded controllers and their connections
    Status(KernelStatus),
    /// Unload controllers; open connections continue as Reno
    Unload(KernelUnload),
    #[command(hide = true)]
    Agent(KernelAgent),
    #[command(hide = true)]
    Guard(KernelGuard),
}

#[derive(Args)]
pub struct KernelRun {
    /// The controller, as in 'vegas(alpha=2)': see `narrows list controllers`
    #[arg(value_name = "NAME")]
    pub controller: String,
    /// Its name in the kernel [default: nw_NAME]
    #[arg(long = "as", value_name = "nw_X")]
    pub name: Option<String>,
    /// Run entirely inside the kernel: stpd only
    #[arg(long, conflicts_with = "live")]
    pub native: bool,
    #[command(flatten)]
    pub live: LiveArgs,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", required = true, last = true)]
    pub words: Vec<std::ffi::OsString>,
}

#[derive(Args)]
pub struct KernelLoad {
    /// Controllers, as in 'vegas(alpha=2)'
    #[arg(value_name = "NAME", required = true)]
    pub controllers: Vec<String>,
    /// Name in the kernel, for one controller [default: nw_NAME]
    #[arg(long = "as", value_name = "nw_X")]
    pub name: Option<String>,
    /// Run entirely inside the kernel, without a process: stpd only
    #[arg(long)]
    pub native: bool,
    /// Make it the system's default congestion control until it is unloaded or killed
    #[arg(long)]
    pub system: bool,
}

#[derive(Args)]
pub struct KernelStatus {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct KernelUnload {
    /// Names in the kernel, or controllers [default: all]
    #[arg(value_name = "nw_NAME")]
    pub names: Vec<String>,
}

#[derive(Args)]
pub struct KernelAgent {
    pub controller: String,
    pub name: String,
    #[arg(long)]
    pub system: bool,
}

#[derive(Args)]
pub struct KernelGuard {
    pub name: String,
}

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
