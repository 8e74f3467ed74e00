//! `narrows completions` and `narrows man`, generated from the command line's definition.

use crate::args::{Cli, Completions, Man};
use crate::failure::Failure;
use crate::terminal::print;
use clap::{Command, CommandFactory as _};
use narrows_base::SpecError;

/// `narrows completions`.
pub fn completions(a: &Completions) -> Result<(), Failure> {
    let mut out = Vec::new();
    clap_complete::generate(a.shell, &mut Cli::command(), "narrows", &mut out);
    print(&String::from_utf8_lossy(&out))
}

/// The command and those below it without `help`, whose pages would repeat those of the commands.
fn without_help_commands(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help_commands)
}

/// `narrows man`.
pub fn man(a: &Man) -> Result<(), Failure> {
    let mut all = without_help_commands(Cli::command());
    // Gives each command its full name, `narrows-compare`.
    all.build();
    if let Some(folder) = &a.all {
        let written = clap_mangen::generate_to(all, folder);
        return written.map_err(|e| Failure::Outside(format!("--all {}: {e}", folder.display())));
    }
    let page = match &a.command {
        None => all,
        Some(name) => {
            let known: Vec<&str> = all.get_subcommands().map(clap::Command::get_name).collect();
            let found = all.find_subcommand(name).cloned();
            found.ok_or_else(|| SpecError::unknown("command", name, &known))?
        }
    };
    let mut out = Vec::new();
    let written = clap_mangen::Man::new(page).render(&mut out);
    written.map_err(|e| Failure::Outside(format!("cannot make the page: {e}")))?;
    print(&String::from_utf8_lossy(&out))
}
