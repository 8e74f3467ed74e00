//! The command line.

use crate::help::{COMPLETIONS, EXAMPLES, LIST, MAN, RUN, SWEEP, compare};
use crate::values::{aim, flows, jobs, packet, preset, seed, seeds, source, time};
use clap::{Args, Parser, Subcommand};
use narrows_base::Duration;
use narrows_lab::recommendation::Aim;
use narrows_sim::SourceSpec;
use narrows_transport::Preset;
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
    /// What would each protocol give me on this link, and why?
    #[command(after_help = compare())]
    Compare(Compare),
    /// Run a scenario: any topology, any mix of flows
    #[command(after_help = RUN)]
    Run(Run),
    /// Vary any parameters over a grid: tables, heat maps, resumable
    #[command(after_help = SWEEP)]
    Sweep(Box<Sweep>),
    /// Search for the network on which a protocol does worst
    #[command(after_help = crate::attack::HELP)]
    Attack(Box<crate::attack::AttackArgs>),
    /// What RFC 9743 asks of a new congestion controller, measured
    #[command(after_help = crate::scorecard::HELP)]
    Scorecard(crate::scorecard::ScorecardArgs),
    /// Run any program over an emulated link (Linux)
    #[command(after_help = crate::link::HELP)]
    Link(Box<crate::link::LinkArgs>),
    /// A UDP link emulator: the same links, in real time
    #[command(after_help = crate::relay::HELP)]
    Relay(crate::relay::RelayArgs),
    /// Controllers drive the Linux kernel's TCP: any program's connections
    #[command(after_help = crate::kernel::HELP)]
    Kernel(crate::kernel::KernelArgs),
    /// Memory to memory over real sockets: how fast, at what cost
    #[command(after_help = crate::speed::HELP)]
    Speed(Box<crate::speed::SpeedArgs>),
    /// Serve a folder, by rrtp and TCP
    #[command(after_help = crate::serve::HELP)]
    Serve(Box<crate::serve::Serve>),
    /// Get a file or a folder: encrypted, resumable, whole or not at all
    #[command(after_help = crate::transfer::GET)]
    Get(Box<crate::transfer::Get>),
    /// Put a file or a folder where it is permitted
    #[command(after_help = crate::transfer::PUT)]
    Put(Box<crate::transfer::Put>),
    /// List a served folder
    Ls(Box<crate::transfer::Ls>),
    /// Print this client's or server's key; forget a server's
    Key(crate::transfer::Key),
    /// Show what there is: protocols, queues, losses, sources, links
    #[command(after_help = LIST)]
    List(List),
    /// Print a shell's completions of this command
    #[command(after_help = COMPLETIONS)]
    Completions(Completions),
    /// Print a manual page
    #[command(after_help = MAN)]
    Man(Man),
}

#[derive(Args)]
pub struct Completions {
    /// Which shell's
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[derive(Args)]
pub struct Man {
    /// Of this command; without it the page of narrows itself
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
}

#[derive(Args)]
pub struct Compare {
    /// RATE,DELAY[,key=value]* or a name from `narrows list links`
    #[arg(long, value_name = "SPEC|NAME", default_value = narrows_scenario::links::DEFAULT, allow_hyphen_values = true)]
    pub link: String,
    /// Protocols, as in 'vegas(alpha=1,beta=3),stpd', and families: tcp, media, all, family:rrtp
    /// [default: tcp,rrtp; for calls media; for live media,cubic,bbr,rrtp]
    #[arg(long, value_name = "LIST")]
    pub protocols: Option<String>,
    /// What is wanted: bulk, calls, live or web
    #[arg(long = "for", value_name = "AIM", default_value = "bulk", value_parser = aim)]
    pub aim: Aim,
    /// What each flow's application sends, as in 'transfer(size=1MB)': see `narrows list sources`
    /// [default: bulk; for web web]
    #[arg(long, value_name = "SOURCE", value_parser = source)]
    pub source: Option<SourceSpec>,
    /// Flows of each protocol
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = flows)]
    pub flows: usize,
    /// Competitors on the same link, M flows (default N)
    #[arg(long, value_name = "NAME[:M]")]
    pub against: Option<String>,
    /// Flows whose data go the other way, M flows (default N)
    #[arg(long, value_name = "NAME[:M]")]
    pub reverse: Option<String>,
    /// Simulated time [default: 60s; 20s with --real]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// Measure from here on
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time)]
    pub warmup: Duration,
    /// Draw the starts of all flows over this time [default: a base RTT; 0s with --preset ns2]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub stagger: Option<Duration>,
    /// Data packet's size on the wire; an ACK has 52 bytes, 40 in other presets than linux
    /// [default: 1000B; always 1500B with --real]
    #[arg(long, value_name = "SIZE", value_parser = packet)]
    pub packet: Option<u32>,
    /// Repeat every run with K seeds; means come with 95% intervals [default: 10; 3 with --real]
    #[arg(long, value_name = "K", value_parser = seeds)]
    pub seeds: Option<u32>,
    /// First seed
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = seed())]
    pub seed: u64,
    /// TCP's endpoint: linux (as Linux 6.1), rfc (as the RFCs) or ns2 (as ns-2.35, one to one)
    /// [default: linux]
    #[arg(long, value_name = "linux|rfc|ns2", value_parser = preset)]
    pub preset: Option<Preset>,
    /// Beside the simulation the kernel's TCP over emulated links, in real time, under the same controllers in the
    /// kernel and under Linux's own (Linux, root)
    #[arg(long)]
    pub real: bool,
    /// Save this comparison as a scenario for `narrows run`
    #[arg(long, value_name = "SCENARIO.toml")]
    pub save: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Args)]
pub struct Run {
    /// The scenario's file
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Seeds, instead of the scenario's number
    #[arg(long, value_name = "K", value_parser = seeds)]
    pub seeds: Option<u32>,
    /// First seed, instead of the scenario's
    #[arg(long, value_name = "S", value_parser = seed())]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Args)]
pub struct Sweep {
    /// The scenario's file; without it --link says what is varied
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: Option<PathBuf>,
    /// A bottleneck as in `narrows compare` [default: wireless]
    #[arg(long, value_name = "SPEC|NAME", conflicts_with = "scenario", allow_hyphen_values = true)]
    pub link: Option<String>,
    /// What varies: a,b,c or low..high:N or low..high:log:N; again for each dimension
    #[arg(long, value_name = "NAME=VALUES", allow_hyphen_values = true)]
    pub vary: Vec<String>,
    /// Repeat every point with K seeds; means come with 95% intervals
    #[arg(long, value_name = "K", default_value_t = 3, value_parser = seeds)]
    pub seeds: u32,
    /// First seed
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = seed())]
    pub seed: u64,
    /// What the table and the maps show [default: theta beside others, else utilisation]
    #[arg(long, value_name = "NAME")]
    pub measure: Option<String>,
    /// Of which group of flows [default: the first that has competitors, or the first]
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,
    /// Run everything again, also what DIR already has
    #[arg(long)]
    pub fresh: bool,
    /// With --link: protocols, as in compare [default: cubic]
    #[arg(long, value_name = "LIST", conflicts_with = "scenario")]
    pub protocols: Option<String>,
    /// With --link: flows of each protocol [default: 1]
    #[arg(long, value_name = "N", conflicts_with = "scenario", value_parser = flows)]
    pub flows: Option<usize>,
    /// With --link: competitors on the same link, M flows (default N)
    #[arg(long, value_name = "NAME[:M]", conflicts_with = "scenario")]
    pub against: Option<String>,
    /// With --link: flows whose data go the other way, M flows (default N)
    #[arg(long, value_name = "NAME[:M]", conflicts_with = "scenario")]
    pub reverse: Option<String>,
    /// With --link: simulated time [default: 60s]
    #[arg(long, value_name = "TIME", conflicts_with = "scenario", value_parser = time)]
    pub duration: Option<Duration>,
    /// With --link: measure from here on [default: 0s]
    #[arg(long, value_name = "TIME", conflicts_with = "scenario", value_parser = time)]
    pub warmup: Option<Duration>,
    /// With --link: draw the starts of all flows over this time [default: a base RTT]
    #[arg(long, value_name = "TIME", conflicts_with = "scenario", value_parser = time)]
    pub stagger: Option<Duration>,
    /// With --link: data packet's size on the wire [default: 1000B]
    #[arg(long, value_name = "SIZE", conflicts_with = "scenario", value_parser = packet)]
    pub packet: Option<u32>,
    /// With --link: endpoint, as in compare [default: linux]
    #[arg(long, value_name = "linux|rfc|ns2", conflicts_with = "scenario", value_parser = preset)]
    pub preset: Option<Preset>,
    /// Runs at the same time; by default one per core
    #[arg(long, value_name = "J", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Folder for report.html, sweep and points as .csv and .parquet, sweep.json, sweep.journal
    #[arg(long, value_name = "DIR", default_value = "narrows-out")]
    pub out: PathBuf,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Output {
    /// Runs at the same time; by default one per core
    #[arg(long, value_name = "J", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Folder for report.html, comparison.svg, summary.json, tables as CSV and Parquet
    #[arg(long, value_name = "DIR", default_value = "narrows-out")]
    pub out: PathBuf,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct List {
    /// protocols, controllers, recoveries, queues, losses, sources, links or measures
    #[arg(value_name = "KIND")]
    pub kind: Option<String>,
    /// One of them in detail: source, parameters, validation
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

    /// Of every option of every command: a negative value is never an option that nobody knows.
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

    /// What is laid out by hand is not wrapped well by a terminal of 80 columns.
    #[test]
    fn help_fits_eighty_columns() {
        let all = Cli::command();
        let named = |name| all.find_subcommand(name).unwrap();
        let texts = [
            "compare",
            "run",
            "sweep",
            "link",
            "relay",
            "kernel",
            "speed",
            "list",
            "completions",
            "man",
        ];
        for command in texts.map(named).into_iter().chain([&all]) {
            let text = command.get_after_help().unwrap().to_string();
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
            }
        }
        Cli::command().debug_assert();
    }
}
