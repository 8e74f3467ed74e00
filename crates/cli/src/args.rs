//! The command line.

use crate::help::{COMPARE, COMPLETIONS, EXAMPLES, LIST, MAN, RUN, SWEEP, compare};
use crate::live::{LiveArgs, PacedLive};
use clap::{Args, Parser, Subcommand};
use narrows_lab::sweep::journal::Part;
use narrows_options::Jobs;
use narrows_options::values::{part, tasks};
use std::path::PathBuf;

/// Compare and run transport protocols on any link.
#[derive(Parser)]
#[command(name = "narrows", version, about, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Subcommand)]
pub enum Command {
    /// Compare protocols on a link and explain the differences
    #[command(after_help = COMPARE, after_long_help = compare())]
    Compare(Box<Compare>),
    /// Run a scenario: any topology, any mix of flows
    #[command(after_help = RUN)]
    Run(Run),
    /// Vary parameters over a grid: tables, heat maps, resumable
    #[command(after_help = SWEEP)]
    Sweep(Box<Sweep>),
    /// Search for the network on which a protocol performs worst
    #[command(after_help = crate::attack::HELP)]
    Attack(Box<crate::attack::AttackArgs>),
    /// Measure a congestion controller by the criteria of RFC 9743
    #[command(after_help = crate::scorecard::HELP)]
    Scorecard(crate::scorecard::ScorecardArgs),
    /// Run any program over an emulated link (Linux)
    #[command(after_help = crate::link::HELP)]
    Link(Box<crate::link::LinkArgs>),
    /// Emulate a UDP link: the simulator's links, in real time
    #[command(after_help = crate::relay::HELP)]
    Relay(crate::relay::RelayArgs),
    /// Run controllers in the Linux kernel's TCP, for any program's connections
    #[command(after_help = crate::kernel::HELP)]
    Kernel(crate::kernel::KernelArgs),
    /// Measure throughput and cost over real sockets, memory to memory
    #[command(after_help = crate::speed::HELP)]
    Speed(Box<crate::speed::SpeedArgs>),
    /// Measure the path to a server, as a link that can be compared and emulated
    #[command(after_help = crate::probe::HELP)]
    Probe(crate::probe::ProbeArgs),
    /// Serve a folder over rrtp and TCP
    #[command(after_help = crate::serve::HELP)]
    Serve(Box<crate::serve::Serve>),
    /// Connect any TCP or UDP program over rrtp, to targets that the far side permits
    #[command(after_help = crate::tunnel::HELP)]
    Tunnel(crate::tunnel::TunnelArgs),
    /// Send live media from a local UDP port to another machine's, within a latency
    #[command(after_help = crate::media::HELP)]
    Media(crate::media::MediaArgs),
    /// Get a file or a folder: encrypted, resumable, complete or not at all
    #[command(after_help = crate::transfer::GET)]
    Get(Box<crate::transfer::Get>),
    /// Put a file or a folder on a server that permits it
    #[command(after_help = crate::transfer::PUT)]
    Put(Box<crate::transfer::Put>),
    /// List a served folder
    Ls(Box<crate::transfer::Ls>),
    /// Print this client's or server's key; forget a server's key
    Key(crate::transfer::Key),
    /// Convert records of a link's capacity to traces
    #[command(after_help = crate::trace::HELP)]
    Trace(crate::trace::TraceArgs),
    /// List protocols, controllers, queues, loss models, sources and links
    #[command(after_help = LIST)]
    List(List),
    /// Print completions of this command for a shell
    #[command(after_help = COMPLETIONS)]
    Completions(Completions),
    /// Print a manual page
    #[command(after_help = MAN)]
    Man(Man),
}

#[derive(Args)]
pub struct Completions {
    /// Name of the shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[derive(Args)]
pub struct Man {
    /// Page of this command [default: the page of narrows itself]
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
}

#[derive(Args)]
pub struct Compare {
    #[command(flatten)]
    pub question: narrows_options::Compare,
    /// In addition to the simulation, run the kernel's TCP over emulated links in real time, with the same controllers
    /// and with Linux's own (Linux, root)
    #[arg(long, hide_short_help = true)]
    pub real: bool,
    /// Save this comparison as a scenario for `narrows run`
    #[arg(long, hide_short_help = true, value_name = "SCENARIO.toml")]
    pub save: Option<PathBuf>,
    #[command(flatten)]
    pub live: PacedLive,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Args)]
pub struct Run {
    #[command(flatten)]
    pub run: narrows_options::Run,
    #[command(flatten)]
    pub live: PacedLive,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Args)]
pub struct Sweep {
    #[command(flatten)]
    pub sweep: narrows_options::Sweep,
    /// Run everything again, including runs that DIR has already
    #[arg(long)]
    pub fresh: bool,
    /// Run only part I of N, for machines that share a folder; run it without this option to write the tables
    #[arg(long, value_name = "I/N", value_parser = part)]
    pub part: Option<Part>,
    /// Print a SLURM array script of N tasks instead of running anything
    #[arg(long, value_name = "N", conflicts_with = "part", value_parser = tasks)]
    pub slurm: Option<usize>,
    #[command(flatten)]
    pub jobs: Jobs,
    /// Folder for report.html, sweep and points as .csv and .parquet, sweep.json, sweep.journal
    #[arg(long, value_name = "DIR", default_value = "narrows-out")]
    pub out: PathBuf,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub live: LiveArgs,
}

#[derive(Args)]
pub struct Output {
    #[command(flatten)]
    pub jobs: Jobs,
    /// Folder for report.html, comparison.svg, summary.json, tables as CSV and Parquet
    #[arg(long, value_name = "DIR", default_value = "narrows-out")]
    pub out: PathBuf,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct List {
    /// Kind: protocols, controllers, recoveries, classifiers, queues, losses, traces, sources, links
    /// or measures
    #[arg(value_name = "KIND")]
    pub kind: Option<String>,
    /// Show this one in detail: source, parameters, validation
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::with_negative_values;
    use clap::CommandFactory as _;
    use std::ffi::OsString;

    /// For each option of each command, a negative value is not taken for an unknown option.
    #[test]
    fn no_option_takes_a_negative_value_for_an_option() {
        let mut tried = 0;
        for command in Cli::command().get_subcommands() {
            let takes = |a: &&clap::Arg| a.get_action().takes_values() && a.get_long().is_some();
            for option in command.get_arguments().filter(takes) {
                let long = format!("--{}", option.get_long().unwrap());
                let words = ["narrows", command.get_name(), &long, "-5s"].map(OsString::from);
                if let Err(e) = Cli::try_parse_from(with_negative_values(words.into_iter())) {
                    let kind = e.kind();
                    assert_ne!(kind, clap::error::ErrorKind::UnknownArgument, "{long}: {e}");
                }
                tried += 1;
            }
        }
        assert!(tried > 40, "{tried} options");
    }

    /// The help texts below the flags have fixed line breaks, so they must fit into 80 columns.
    #[test]
    fn help_fits_eighty_columns() {
        let all = Cli::command();
        for command in all.get_subcommands().chain([&all]) {
            let texts = [command.get_after_help(), command.get_after_long_help()];
            let text: String = texts.into_iter().flatten().map(|t| format!("{t}\n")).collect();
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
            }
        }
        Cli::command().debug_assert();
    }
}
