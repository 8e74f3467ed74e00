//! The command `narrows`, as a function that other programs call with parts of their own: see [`run`]. Thin: the work
//! is done by the libraries below it.

mod about;
mod args;
mod attack;
mod command_line;
mod daemon;
mod doctor;
mod failure;
mod help;
mod kernel;
mod link;
mod live;
mod log;
mod media;
mod metrics;
mod probe;
#[cfg(target_os = "linux")]
mod real;
mod record;
mod relay;
mod scorecard;
mod serve;
mod settings;
mod slurm;
mod speed;
mod sweep;
mod terminal;
mod trace;
mod transfer;
mod transport;
mod tunnel;
mod work;

use args::{Cli, Command};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use failure::Failure;
use narrows_base::SpecError;
use narrows_options::words;
pub use narrows_sim::Registry;
use std::process::ExitCode;

/// Runs the command with the arguments of this process. Parts of the registry are available in every subcommand,
/// scenario, sweep and report, and over sockets, in addition to the built-in ones.
///
/// Call it first: a part is refused, with one line and exit code 2, if its name is taken or the lists have
/// been read already.
pub fn run(registry: Registry) -> ExitCode {
    if let Err(e) = registry.install() {
        complain(&e.to_string());
        return ExitCode::from(2);
    }
    let cli = match Cli::try_parse_from(command_line::with_negative_values(std::env::args_os())) {
        Ok(cli) => cli,
        Err(e) => return refused(&e),
    };
    // Without a configuration folder, the user has no links of their own.
    if let Ok(folder) = narrows_files::key::config_folder() {
        narrows_scenario::user_links::set_file(folder.join(probe::LINKS_FILE));
    }
    let result = match cli.command {
        None => {
            // Without a command, print the short help; ignore a closed output.
            let _ = Cli::command().print_help();
            Ok(())
        }
        Some(Command::Compare(args)) => work::compare(&args),
        Some(Command::Run(args)) => work::run(&args),
        Some(Command::Sweep(args)) => sweep::sweep(&args),
        Some(Command::Attack(args)) => attack::attack(&args),
        Some(Command::Scorecard(args)) => scorecard::scorecard(&args),
        Some(Command::Link(args)) => link::link(&args),
        Some(Command::Relay(args)) => relay::relay(&args),
        Some(Command::Kernel(args)) => kernel::kernel(&args),
        Some(Command::Speed(args)) => speed::speed(&args),
        Some(Command::Probe(args)) => probe::probe(&args),
        Some(Command::Serve(args)) => serve::serve(&args),
        Some(Command::Tunnel(args)) => tunnel::tunnel(&args),
        Some(Command::Media(args)) => media::media(&args),
        Some(Command::Get(args)) => transfer::get(&args),
        Some(Command::Put(args)) => transfer::put(&args),
        Some(Command::Ls(args)) => transfer::ls(&args),
        Some(Command::Key(args)) => transfer::key(&args),
        Some(Command::Doctor(args)) => doctor::doctor(&args),
        Some(Command::Trace(args)) => trace::trace(args),
        Some(Command::List(args)) => work::list(&args),
        Some(Command::Completions(args)) => about::completions(&args),
        Some(Command::Man(args)) => about::man(&args),
    };
    let (line, code) = match result {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Command(code)) => return ExitCode::from(code),
        Err(Failure::Input(line)) => (line, 2),
        Err(Failure::Outside(line)) => (line, 1),
        Err(Failure::Stopped(line)) => (line, 130),
        Err(Failure::Interrupted) => ("interrupted before a run finished".into(), 130),
    };
    complain(&line);
    ExitCode::from(code)
}

/// Prints one line on the error stream; line breaks in it are removed.
fn complain(line: &str) {
    terminal::note(&format!("narrows: {}", words::one_line(line)));
}

/// Handles a result of clap that is not a command: help and version succeed, any other is an error of one line.
fn refused(e: &clap::Error) -> ExitCode {
    if matches!(e.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let _ = e.print();
        return ExitCode::SUCCESS;
    }
    // clap suggests no command for `help NAME`, so do it here.
    if let (Some(ContextValue::String(name)), None) =
        (e.get(ContextKind::InvalidSubcommand), e.get(ContextKind::SuggestedSubcommand))
    {
        let all = Cli::command();
        let known: Vec<&str> = all.get_subcommands().map(clap::Command::get_name).collect();
        complain(&SpecError::unknown("command", name, &known).to_string());
        return ExitCode::from(2);
    }
    complain(&words::refusal(e));
    ExitCode::from(2)
}
