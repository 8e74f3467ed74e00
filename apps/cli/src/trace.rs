//! `narrows trace`: converts records of a link's capacity to Mahimahi traces.

use crate::failure::Failure;
use crate::terminal::{note, print};
use clap::{Args, Subcommand};
use narrows_base::Duration;
use narrows_lab::options::values::time;
use narrows_link::trace::OPPORTUNITY_BYTES;
use narrows_scenario::text_file;
use narrows_scenario::trace_convert::{Form, convert};
use narrows_scenario::values::MAX_TRACE;
use std::path::PathBuf;

pub const HELP: &str = "\
trace= reads Mahimahi's format: each line is the millisecond of an opportunity
to send 1500 bytes, and the last line is the trace's length. `convert` reads:

  times                    an opportunity at each, counted from the first
  times and rates          a rate holds until the next line
  rates                    with --every, one per interval

in columns separated by white space, commas or semicolons. A header with names
and units suffices: time_ms,throughput_mbps. Comments begin with #.

Examples:
  narrows trace convert --time s --rate Mbit/s pensieve.log > link.trace
  narrows trace convert measured.csv > link.trace
  narrows trace convert --rate kbit/s --every 1s rates.txt > link.trace
  narrows trace convert --time ms packets.txt > link.trace
  narrows compare --link 12Mbit/s,30ms,trace=link.trace";

#[derive(Args)]
pub struct TraceArgs {
    #[command(subcommand)]
    pub command: TraceCommand,
}

#[derive(Subcommand)]
pub enum TraceCommand {
    /// Print a file's times or rates as a Mahimahi trace
    #[command(after_help = HELP)]
    Convert(Convert),
}

#[derive(Args)]
pub struct Convert {
    /// The file to convert
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Unit of the times: s, ms, us or ns [default: from the header]
    #[arg(long, value_name = "UNIT")]
    pub time: Option<String>,
    /// Unit of the rates: bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s ... [default: from the header]
    #[arg(long, value_name = "UNIT")]
    pub rate: Option<String>,
    /// The file has no times, only a rate for each such interval
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub every: Option<Duration>,
    /// The columns of times and rates, from 1 [default: from the header, or 1,2]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub columns: Option<Vec<usize>>,
}

/// `narrows trace`.
pub fn trace(a: TraceArgs) -> Result<(), Failure> {
    let TraceCommand::Convert(a) = a.command;
    let text = text_file::read(&a.file, MAX_TRACE, "record")?;
    if a.every == Some(Duration::ZERO) {
        return Err(Failure::Input("--every 0s: a time above 0 is expected".into()));
    }
    let form = Form { time: a.time, rate: a.rate, every: a.every, columns: a.columns };
    let millis = convert(&text, &form).map_err(|e| e.at(&a.file.display().to_string()))?;
    let mut out = String::new();
    for ms in &millis {
        out += &format!("{ms}\n");
    }
    let seconds = millis.last().copied().unwrap_or_default() as f64 * 1e-3;
    let rate = millis.len() as f64 * f64::from(OPPORTUNITY_BYTES) * 8e-6 / seconds;
    note(&format!("{} opportunities in {seconds:.3} s: {rate:.3} Mbit/s on average", millis.len()));
    print(&out)
}
