//! The command `narrows`, as a function that other programs call with parts of their own: see [`run`]. Thin: the work
//! is done by the libraries below it.

#[cfg(feature = "full")]
mod about;
mod args;
mod attack;
mod command_line;
#[cfg(feature = "full")]
mod daemon;
#[cfg(feature = "full")]
mod doctor;
mod failure;
#[cfg(feature = "full")]
mod full;
mod help;
#[cfg(feature = "full")]
mod kernel;
#[cfg(feature = "full")]
mod link;
#[cfg(feature = "full")]
mod live;
#[cfg(feature = "full")]
mod local_paths;
#[cfg(feature = "full")]
mod log;
#[cfg(feature = "full")]
mod media;
#[cfg(feature = "full")]
mod metrics;
mod mistakes;
#[cfg(feature = "full")]
mod probe;
#[cfg(all(feature = "full", target_os = "linux"))]
mod real;
#[cfg(feature = "full")]
mod record;
#[cfg(feature = "full")]
mod relay;
mod scorecard;
#[cfg(feature = "full")]
mod serve;
#[cfg(feature = "full")]
mod settings;
mod slurm;
#[cfg(any(test, not(feature = "full")))]
mod small;
#[cfg(feature = "full")]
mod speed;
mod sweep;
mod terminal;
mod trace;
#[cfg(feature = "full")]
mod transfer;
#[cfg(feature = "full")]
mod transport;
#[cfg(feature = "full")]
mod tunnel;
#[cfg_attr(not(feature = "full"), path = "watched/none.rs")]
mod watched;
mod work;

use args::{Cli, Command};
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use command_line::GivenWords;
use failure::Failure;
use narrows_lab::options::words;
pub use narrows_sim::Registry;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command with the arguments of this process. Parts of the registry are available in every subcommand,
/// scenario, sweep and report, and over sockets, in addition to the built-in ones and the papers' printed forms.
///
/// Call it first: a part is refused, with one line and exit code 2, if its name is taken or the lists have
/// been read already.
pub fn run(registry: Registry) -> ExitCode {
    if let Err(e) = narrows_printed::add(registry).install() {
        complain(&e.to_string());
        return ExitCode::from(2);
    }
    let given = match given_words() {
        Ok(given) => given,
        Err(e) => return ended(Err(e)),
    };
    let cli = match parsed(&given.words) {
        Ok(cli) => cli,
        Err(e) => return refused(&e, &given),
    };
    // Without a configuration folder, the user has no links of their own.
    if let Ok(base) = etcetera::choose_base_strategy() {
        let folder = etcetera::BaseStrategy::config_dir(&base).join("narrows");
        narrows_scenario::user_links::set_file(
            folder.join(narrows_scenario::user_links::FILE_NAME),
        );
    }
    let result = match cli.command {
        None => {
            // Without a command, print the short help; ignore a closed output.
            let _ = command().print_help();
            Ok(())
        }
        Some(Command::Compare(args)) => work::compare(&args),
        Some(Command::Run(args)) => work::run(&args),
        Some(Command::Sweep(args)) => sweep::sweep(&args),
        Some(Command::Attack(args)) => attack::attack(&args),
        Some(Command::Scorecard(args)) => scorecard::scorecard(&args),
        #[cfg(feature = "full")]
        Some(Command::Full(command)) => full::run(&command),
        Some(Command::Trace(args)) => trace::trace(args),
        Some(Command::List(args)) => work::list(&args),
        #[cfg(feature = "full")]
        Some(Command::Completions(args)) => about::completions(&args),
        #[cfg(feature = "full")]
        Some(Command::Man(args)) => about::man(&args),
    };
    ended(result.map_err(|e| given.located(e)))
}

/// Prints the line of a failure, and returns its code.
fn ended(result: Result<(), Failure>) -> ExitCode {
    let (line, code) = match result {
        Ok(()) => return ExitCode::SUCCESS,
        #[cfg(feature = "full")]
        Err(Failure::Command(code)) => return ExitCode::from(code),
        Err(Failure::Input(line)) => (line, 2),
        Err(Failure::Outside(line)) => (line, 1),
        Err(Failure::Stopped(line)) => (line, 130),
        Err(Failure::Interrupted) => ("interrupted before a run finished".into(), 130),
    };
    complain(&line);
    ExitCode::from(code)
}

/// The command line's definition, with the commands by need in its help.
fn command() -> clap::Command {
    let all = Cli::command();
    let needs = help::by_need(&all);
    all.mut_subcommands(help::with_short).help_template(format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{needs}\nOptions:\n{{options}}{{after-help}}"
    ))
}

fn parsed(words: &[OsString]) -> Result<Cli, clap::Error> {
    command().try_get_matches_from(words).and_then(|found| Cli::from_arg_matches(&found))
}

/// The words of the command line, and of the file that it names.
fn given_words() -> Result<GivenWords, Failure> {
    let words = command_line::with_negative_values(std::env::args_os());
    #[cfg(feature = "full")]
    return settings::with_file(words, command);
    #[cfg(not(feature = "full"))]
    Ok(GivenWords { words, settings: Vec::new() })
}

/// Prints one line on the error stream; line breaks in it are removed.
fn complain(line: &str) {
    terminal::note(&format!("narrows: {}", words::one_line(line)));
}

/// Handles a result of clap that is not a command: help and version succeed, any other is an error of one line.
fn refused(e: &clap::Error, given: &GivenWords) -> ExitCode {
    if matches!(e.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let _ = e.print();
        return ExitCode::SUCCESS;
    }
    #[cfg(not(feature = "full"))]
    if let Some(line) = small::missing(e) {
        complain(&line);
        return ExitCode::from(2);
    }
    let explained = mistakes::explained(e, &Cli::command(), &given.words);
    complain(&explained.unwrap_or_else(|| given.refusal(e)));
    ExitCode::from(2)
}
