//! The command line.

use clap::{Args, Parser, Subcommand};
use narrows_base::{Duration, SpecError};
use narrows_lab::compare;
use narrows_lab::recommendation::Aim;
use narrows_scenario::{scenario_file, values};
use narrows_sim::SourceSpec;
use narrows_transport::Preset;
use std::ffi::OsString;
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
    #[command(after_help = compare_help())]
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
    /// A UDP link emulator: the same links, in real time
    #[command(after_help = crate::relay::HELP)]
    Relay(crate::relay::RelayArgs),
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
    /// Simulated time
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    pub duration: Duration,
    /// Measure from here on
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time)]
    pub warmup: Duration,
    /// Draw the starts of all flows over this time [default: a base RTT; 0s with --preset ns2]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub stagger: Option<Duration>,
    /// Data packet's size on the wire; an ACK has 40 bytes
    #[arg(long, value_name = "SIZE", default_value = "1000B", value_parser = packet)]
    pub packet: u32,
    /// Repeat every run with K seeds; means come with 95% intervals
    #[arg(long, value_name = "K", default_value_t = 10, value_parser = seeds)]
    pub seeds: u32,
    /// First seed
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = seed())]
    pub seed: u64,
    /// Endpoint: rfc (today's TCP) or ns2 (as ns-2.35, one to one)
    #[arg(long, value_name = "rfc|ns2", default_value = "rfc", value_parser = preset)]
    pub preset: Preset,
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
    /// With --link: endpoint [default: rfc]
    #[arg(long, value_name = "rfc|ns2", conflicts_with = "scenario", value_parser = preset)]
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

const EXAMPLES: &str = "\
Examples:
  narrows compare                                 the wireless default, all TCPs
  narrows compare --link 20Mbit/s,30ms,loss=0.1%  your link
  narrows compare --link geo --against reno:4     a satellite, beside four Renos
  narrows run scenario.toml                       any topology
  narrows sweep --vary loss=0.1%..10%:log:8       parameters over a grid
  narrows list protocols                          what there is

`narrows compare --help` explains how a link is written.";

fn compare_help() -> String {
    format!("{COMPARE_LINK}{}{COMPARE_EXAMPLES}", narrows_scenario::keys::help())
}

const COMPARE_LINK: &str = "\
A link is RATE,DELAY[,key=value]* or a name, which may be followed by keys that
replace its own. Delays are one-way. Units are required: 1.5Mbit/s 80ms 30p 45kB
1%; kB is 1000 bytes.
";

const COMPARE_EXAMPLES: &str = "
Examples:
  narrows compare --protocols 'reno,vegas(alpha=1,beta=3),stpd' --seeds 30
  narrows compare --protocols media,rrtp --against cubic
  narrows compare --for calls --against cubic
  narrows compare --link lte --source 'transfer(size=1MB)'
  narrows compare --link 1Mbit/s,10ms,queue=5p,access=15Mbit/s/0.5ms..2ms \\
      --flows 4 --stagger 5s
  narrows compare --link geo,loss=0.1% --duration 5min --save geo.toml --out geo";

const RUN: &str = "\
A scenario is a TOML file with [[link]] and [[flows]]; docs/scenarios.md
describes it, and `narrows compare --save scenario.toml` writes one to begin
with.

Examples:
  narrows run scenario.toml
  narrows run scenario.toml --seeds 20 --out result";

const SWEEP: &str = "\
Values are separated by commas; commas in parentheses do not split. 1..9:5 is
five values, equally spaced; 0.1Mbit/s..20Mbit/s:log:8 is eight, each larger by
the same factor. Several --vary make every combination, the first one varying
slowest.

With a scenario, NAME is link.NAME.KEY, link.NAME.reverse.KEY, flows.NAME.KEY, a
key at the top or a variable of the file; a parameter inside is
flows.NAME.protocol.alpha or link.NAME.aqm.PARAMETER. NAME=NAME=VALUES varies
several together. With --link, NAME is a key of the link (rate, delay, loss,
queue, aqm, …), protocol, flows, against, reverse, duration, warmup, stagger,
packet, preset, or a parameter as in protocol.alpha. A queue in bdp follows the
rate and the delay of its point.

The same command again runs only what DIR/sweep.journal does not have yet.

Examples:
  narrows sweep --vary loss=0%,0.1%..10%:log:7 --vary protocol=reno,cubic,stpd
  narrows sweep --link 10Mbit/s,20ms,queue=1bdp --against reno:4 \\
      --vary rate=1Mbit/s..100Mbit/s:log:8 --vary flows=1..32:log:6 \\
      --measure share
  narrows sweep --vary protocol=vegas --vary protocol.alpha=1,2,3 \\
      --vary delay=10ms..300ms:10
  narrows sweep scenarios/dsl-fairness.toml --vary n=1..100:log:8 \\
      --vary link.dsl.rate=0.1Mbit/s..20Mbit/s:log:8 --out surface";

const COMPLETIONS: &str = "\
Examples:
  narrows completions zsh > ~/.zfunc/_narrows            (a folder of $fpath)
  narrows completions fish > ~/.config/fish/completions/narrows.fish
  narrows completions bash > narrows.bash                (source it)";

const MAN: &str = "\
Examples:
  narrows man > ~/.local/share/man/man1/narrows.1
  narrows man compare | man -l -";

const LIST: &str = "\
Examples:
  narrows list                    everything, one line each
  narrows list links              named links
  narrows list protocols stpd     paper, parameters, validation
  narrows list losses --json";

/// The command's words, where a negative number behind an option is its value (`--duration=-5s`). For
/// clap `-5s` would be an option that nobody knows; whoever reads the value says what is wrong with it.
pub fn with_negative_values(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let is_option = |word: &OsString| {
        let text = word.to_string_lossy();
        text.len() > 2 && text.starts_with("--") && !text.contains('=')
    };
    let is_negative = |word: &OsString| {
        let text = word.to_string_lossy();
        let digits = text.strip_prefix('-').map(|t| t.trim_start_matches('.'));
        digits.is_some_and(|t| t.starts_with(|c: char| c.is_ascii_digit()))
    };
    let mut out: Vec<OsString> = Vec::new();
    let mut plain = false;
    for word in words {
        match out.last_mut() {
            Some(option) if !plain && is_option(option) && is_negative(&word) => {
                option.push("=");
                option.push(word);
            }
            _ => {
                plain |= word == "--";
                out.push(word);
            }
        }
    }
    out
}

/// Errors of Narrows as errors of clap.
fn told<T>(result: Result<T, SpecError>) -> Result<T, String> {
    result.map_err(|e| e.to_string())
}
pub fn time(text: &str) -> Result<Duration, String> {
    let d = told(narrows_base::units::duration(text))?;
    if d > values::MAX_DELAY { Err("that is longer than ten years".into()) } else { Ok(d) }
}
fn aim(text: &str) -> Result<Aim, String> {
    told(Aim::parse(text))
}
fn source(text: &str) -> Result<SourceSpec, String> {
    told(compare::source(text))
}
fn packet(text: &str) -> Result<u32, String> {
    told(scenario_file::packet(text))
}
fn preset(text: &str) -> Result<Preset, String> {
    told(scenario_file::preset(text))
}
pub fn seed() -> impl clap::builder::TypedValueParser<Value = u64> {
    // A TOML file holds no larger number.
    clap::value_parser!(u64).range(..=i64::MAX as u64)
}
fn seeds(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(n @ 1..=100_000) => Ok(n),
        _ => Err("a number from 1 to 100000 is expected".into()),
    }
}
pub fn jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=1024) => Ok(n),
        _ => Err("a number from 1 to 1024 is expected".into()),
    }
}
/// How many networks an attack tries.
pub fn cases(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|n| (16..=1_000_000).contains(n))
        .ok_or_else(|| format!("'{text}' is not a number of networks from 16 to 1000000"))
}

fn flows(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=1_000_000) => Ok(n),
        _ => Err("a number from 1 to 1000000 is expected".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn a_negative_number_behind_an_option_is_its_value() {
        let joined = |text: &str| {
            let words = with_negative_values(text.split(' ').map(OsString::from));
            words.iter().map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join("|")
        };
        assert_eq!(joined("n compare --duration -5s --json"), "n|compare|--duration=-5s|--json");
        assert_eq!(joined("n --seed -1"), "n|--seed=-1");
        assert_eq!(joined("n --loss -.5 --a=b -1"), "n|--loss=-.5|--a=b|-1");
        assert_eq!(joined("n --out -x -5 --json"), "n|--out|-x|-5|--json");
        assert_eq!(joined("n get -- --odd -5"), "n|get|--|--odd|-5", "names behind -- stay");
    }

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
        let texts = ["compare", "run", "sweep", "relay", "speed", "list", "completions", "man"];
        for command in texts.map(named).into_iter().chain([&all]) {
            let text = command.get_after_help().unwrap().to_string();
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
            }
        }
        Cli::command().debug_assert();
    }
}
