//! The commands of the feature `full`: over sockets, over emulated links and in the kernel.

use crate::failure::Failure;
use clap::Subcommand;

#[derive(Subcommand)]
pub enum FullCommand {
    /// Run any program over an emulated link (Linux)
    #[command(after_help = crate::link::HELP)]
    Link(Box<crate::link::LinkArgs>),
    /// Emulate a link between two UDP or TCP ports, without privileges
    #[command(after_help = crate::relay::HELP)]
    Relay(crate::relay::RelayArgs),
    /// Run controllers in the Linux kernel's TCP, for any program
    #[command(after_help = crate::kernel::HELP)]
    Kernel(crate::kernel::KernelArgs),
    /// Measure throughput and cost over real sockets, memory to memory
    #[command(after_help = crate::speed::HELP)]
    Speed(Box<crate::speed::SpeedArgs>),
    /// Measure the path to a server, as a link to compare and emulate
    #[command(after_help = crate::probe::HELP)]
    Probe(crate::probe::ProbeArgs),
    /// Serve a folder over rrtp and TCP
    #[command(after_help = crate::serve::HELP)]
    Serve(Box<crate::serve::ServeArgs>),
    /// Connect TCP and UDP programs over rrtp to permitted targets
    #[command(after_help = crate::tunnel::HELP)]
    Tunnel(crate::tunnel::TunnelArgs),
    /// Send live media to another machine, within a latency
    #[command(after_help = crate::media::HELP)]
    Media(crate::media::MediaArgs),
    /// Get a file or a folder: encrypted, resumable, whole or not at all
    #[command(after_help = crate::transfer::GET)]
    Get(Box<crate::transfer::Get>),
    /// Put files and folders on a server that permits it
    #[command(after_help = crate::transfer::PUT)]
    Put(Box<crate::transfer::Put>),
    /// List a served folder
    Ls(Box<crate::transfer::Ls>),
    /// Print this client's or server's key; forget a server's key
    Key(crate::transfer::KeyArgs),
    /// Check what this machine permits, and print how to mend it
    #[command(after_help = crate::doctor::HELP)]
    Doctor(crate::doctor::DoctorArgs),
}

/// Runs one of them.
pub fn run(command: &FullCommand) -> Result<(), Failure> {
    match command {
        FullCommand::Link(args) => crate::link::link(args),
        FullCommand::Relay(args) => crate::relay::relay(args),
        FullCommand::Kernel(args) => crate::kernel::kernel(args),
        FullCommand::Speed(args) => crate::speed::speed(args),
        FullCommand::Probe(args) => crate::probe::probe(args),
        FullCommand::Serve(args) => crate::serve::serve(args),
        FullCommand::Tunnel(args) => crate::tunnel::tunnel(args),
        FullCommand::Media(args) => crate::media::media(args),
        FullCommand::Get(args) => crate::transfer::get(args),
        FullCommand::Put(args) => crate::transfer::put(args),
        FullCommand::Ls(args) => crate::transfer::ls(args),
        FullCommand::Key(args) => crate::transfer::key(args),
        FullCommand::Doctor(args) => crate::doctor::doctor(args),
    }
}
