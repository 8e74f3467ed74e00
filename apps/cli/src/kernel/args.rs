//! Flags of `narrows kernel`.

use crate::live::LiveArgs;
use clap::{Args, Subcommand};

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
