//! Flags of `narrows link`.

use crate::live::LiveArgs;
use crate::metrics::MetricsArgs;
use crate::record::RecordArgs;
use clap::Args;
use narrows_lab::options::RARE;
use narrows_lab::options::values::seed;
use std::path::PathBuf;

#[derive(Args)]
pub struct LinkArgs {
    /// Forward path, out or from A to B: RATE,DELAY[,key=value]* or a name from `narrows list links`
    #[arg(value_name = "SPEC|NAME", required_unless_present_any = ["clean", "scenario", "guard"], conflicts_with_all = ["clean", "scenario"])]
    pub link: Option<String>,
    /// Read flags and link (SPEC) from this TOML file; those on the command line take precedence
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Return path [default: the same rate, delay and queue without loss]
    #[arg(long, value_name = "SPEC|NAME", allow_hyphen_values = true)]
    pub back: Option<String>,
    /// Join two network namespaces of `ip netns`, until Ctrl-C
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "A:B", conflicts_with_all = ["command", "far", "scenario"])]
    pub between: Option<String>,
    /// A shell command for the far end, which is then a namespace of its own: isolated, no root needed
    #[arg(long, value_name = "COMMAND", requires = "command", conflicts_with = "scenario")]
    pub far: Option<String>,
    /// Emulate the topology of a scenario file: a namespace for each node
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "FILE", conflicts_with_all = ["command", "back"])]
    pub scenario: Option<PathBuf>,
    /// A shell command for a scenario's node; the links end with the last command given
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "NODE=COMMAND", requires = "scenario")]
    pub at: Vec<String>,
    /// Seed of the losses and of where a trace begins: the n-th packet always has the same outcome [default: 1]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "S", value_parser = seed())]
    pub seed: Option<u64>,
    /// Print a line on the error stream each second while a command runs
    #[arg(long)]
    pub progress: bool,
    #[command(flatten)]
    pub page: LiveArgs,
    #[command(flatten)]
    pub metrics: MetricsArgs,
    /// Print only errors
    #[arg(long, conflicts_with = "progress")]
    pub quiet: bool,
    /// At the end, print the counters as one JSON object
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub record: RecordArgs,
    /// Clean up after killed runs
    #[arg(long, hide_short_help = true, help_heading = RARE, conflicts_with_all = ["back", "between", "far", "command", "json", "live", "metrics", "progress"])]
    pub clean: bool,
    /// Clean up if the process that started this one is killed
    #[arg(long, hide = true, exclusive = true)]
    pub guard: bool,
    /// The command to run behind the link
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "clean")]
    pub command: Vec<String>,
}
