//! The command line.

use crate::help::{COMPARE, EXAMPLES, LIST, RUN, SWEEP, compare};
use crate::watched::{PacedPage, Page};
use clap::{Args, Parser, Subcommand};
use narrows_lab::options::values::{PARTS, number, part};
use narrows_lab::options::{Jobs, RARE};
use narrows_lab::sweep::journal::SweepPart;
use std::path::PathBuf;

/// Compare and run transport protocols on any link.
#[derive(Parser)]
#[command(name = "narrows", version, about, after_help = EXAMPLES, max_term_width = 80)]
#[cfg_attr(not(feature = "full"), command(before_help = crate::small::HELP))]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Subcommand)]
pub enum Command {
    /// Compare protocols on a link and explain the differences
    #[command(after_help = COMPARE, after_long_help = compare())]
    Compare(Box<CompareArgs>),
    /// Run a scenario: any topology, any mix of flows
    #[command(after_help = RUN)]
    Run(RunArgs),
    /// Vary parameters over a grid: tables, heat maps, resumable
    #[command(after_help = SWEEP)]
    Sweep(Box<SweepArgs>),
    /// Search for the network on which a protocol performs worst
    #[command(after_help = crate::attack::HELP)]
    Attack(Box<crate::attack::AttackArgs>),
    /// Measure a congestion controller by the criteria of RFC 9743
    #[command(after_help = crate::scorecard::HELP)]
    Scorecard(crate::scorecard::ScorecardArgs),
    #[cfg(feature = "full")]
    #[command(flatten)]
    Full(crate::full::FullCommand),
    /// Convert records of a link's capacity to traces
    #[command(after_help = crate::trace::HELP)]
    Trace(crate::trace::TraceArgs),
    /// List protocols, controllers, queues, losses, sources and links
    #[command(after_help = LIST)]
    List(ListArgs),
    #[cfg(feature = "full")]
    /// Print completions of this command for a shell
    #[command(after_help = crate::help::COMPLETIONS)]
    Completions(Completions),
    #[cfg(feature = "full")]
    /// Print a manual page
    #[command(after_help = crate::help::MAN)]
    Man(Man),
}

#[cfg(feature = "full")]
#[derive(Args)]
pub struct Completions {
    /// Name of the shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[cfg(feature = "full")]
#[derive(Args)]
pub struct Man {
    /// Page of this command [default: the page of narrows itself]
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
    /// Write the pages of all commands into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub all: Option<PathBuf>,
}

#[derive(Args)]
pub struct CompareArgs {
    #[command(flatten)]
    pub question: narrows_lab::options::Compare,
    /// In addition to the simulation, run the kernel's TCP over emulated links in real time, with the same controllers
    /// and with Linux's own (Linux, root)
    #[cfg(feature = "full")]
    #[arg(long, hide_short_help = true, help_heading = RARE)]
    pub real: bool,
    /// Save this comparison as a scenario for `narrows run`
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "SCENARIO.toml")]
    pub save: Option<PathBuf>,
    #[command(flatten)]
    pub live: PacedPage,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl CompareArgs {
    /// Whether the kernel's TCP runs, too.
    pub fn real(&self) -> bool {
        #[cfg(feature = "full")]
        return self.real;
        #[cfg(not(feature = "full"))]
        return false;
    }
}

#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub run: narrows_lab::options::Run,
    #[command(flatten)]
    pub live: PacedPage,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Args)]
pub struct SweepArgs {
    #[command(flatten)]
    pub sweep: narrows_lab::options::Sweep,
    /// Run everything again, including runs that DIR has already
    #[arg(long, hide_short_help = true, help_heading = RARE)]
    pub fresh: bool,
    /// Run only part I of N, for machines that share a folder; run it without this option to write the tables
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "I/N", value_parser = part)]
    pub part: Option<SweepPart>,
    /// Print a SLURM array script of N tasks instead of running anything
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "N", conflicts_with = "part", value_parser = number(PARTS))]
    pub slurm: Option<usize>,
    #[command(flatten)]
    pub jobs: Jobs,
    /// Folder for report.html, sweep and points as .csv (in a full build .parquet, too), sweep.json, sweep.journal
    #[arg(long, value_name = "DIR", default_value = "narrows-out")]
    pub out: PathBuf,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub live: Page,
}

#[derive(Args)]
pub struct OutputArgs {
    #[command(flatten)]
    pub jobs: Jobs,
    /// Also write COLUMN.svg: this column of the time series, as cwnd or queue, in the width of a paper's column; may be
    /// repeated
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "COLUMN")]
    pub plot: Vec<String>,
    /// Folder for report.html, comparison.svg, summary.json, tables as CSV and Parquet
    #[arg(long, value_name = "DIR", default_value = "narrows-out")]
    pub out: PathBuf,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct ListArgs {
    /// Kind: protocols, controllers, recoveries, classifiers, queues, losses, traces, sources, links
    /// or measures
    #[arg(value_name = "KIND")]
    pub kind: Option<String>,
    /// Show this one in detail: source, parameters, validation
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Only the protocols of the five papers: Narrows' forms, and as printed (NAME-paper)
    #[arg(long, conflicts_with_all = ["kind", "name"])]
    pub papers: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::with_negative_values;
    use crate::help::by_need;
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

    /// `-h` and `--help` of every command fit into 80 columns, wherever they are printed.
    #[test]
    fn help_fits_eighty_columns() {
        fn check(mut command: clap::Command) -> usize {
            for text in [command.render_help(), command.render_long_help()] {
                for line in text.to_string().lines() {
                    assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
                }
            }
            1 + command.get_subcommands().cloned().map(check).sum::<usize>()
        }
        let all = crate::command();
        let mut built = all.clone();
        built.build();
        let checked = check(built);
        assert!(checked > 15 || cfg!(not(feature = "full")), "{checked} commands");
        let grouped = by_need(&all);
        for command in all.get_subcommands() {
            let start = format!("\n  {} ", command.get_name());
            assert_eq!(grouped.matches(&start).count(), 1, "{start}");
        }
        assert!(grouped.lines().all(|line| line.chars().count() <= 80), "{grouped}");
        Cli::command().debug_assert();
    }
}
