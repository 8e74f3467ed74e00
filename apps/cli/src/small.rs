//! Errors of a build without the feature `full`: a missing command or option is named as such.

use clap::error::{ContextKind, ContextValue};

#[cfg(not(feature = "full"))]
pub const HELP: &str = "\
This build simulates. The commands for files, tunnels, media, emulated links and
the kernel's TCP are built with --features full.";

/// Commands that need the feature.
pub const COMMANDS: [&str; 15] = [
    "link",
    "relay",
    "kernel",
    "speed",
    "probe",
    "serve",
    "tunnel",
    "media",
    "get",
    "put",
    "ls",
    "key",
    "doctor",
    "completions",
    "man",
];
/// Options that need it, of commands that do not.
const OPTIONS: [&str; 3] = ["--live", "--live-speed", "--real"];

/// The error line, if the command line needs the feature.
pub fn missing(e: &clap::Error) -> Option<String> {
    let is_listed = |kind, list: &[&str]| match e.get(kind) {
        Some(ContextValue::String(name)) => list.iter().find(|l| *l == name).map(|l| l.to_string()),
        _ => None,
    };
    let name = is_listed(ContextKind::InvalidSubcommand, &COMMANDS)
        .or_else(|| is_listed(ContextKind::InvalidArg, &OPTIONS))?;
    Some(format!(
        "'{name}' is not in this build, which only simulates; build it with --features full"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::{CommandFactory as _, Parser as _};

    /// A list that names a command which does not exist, or misses one, would give a wrong hint.
    #[cfg(feature = "full")]
    #[test]
    fn the_list_names_the_commands_of_the_feature() {
        let all = Cli::command();
        let mut names: Vec<&str> = all.get_subcommands().map(clap::Command::get_name).collect();
        let simulate = ["compare", "run", "sweep", "attack", "scorecard", "trace", "list"];
        names.retain(|name| !simulate.contains(name));
        assert_eq!(names, COMMANDS);
        let compare = all.find_subcommand("compare").unwrap();
        for option in OPTIONS {
            let is_it = |a: &clap::Arg| a.get_long() == option.strip_prefix("--");
            assert!(compare.get_arguments().any(is_it), "{option}");
        }
    }

    #[test]
    fn a_missing_command_or_option_is_named() {
        let line = |words: &str| {
            let words = ["narrows"].into_iter().chain(words.split(' '));
            Cli::try_parse_from(words).err().and_then(|e| missing(&e))
        };
        assert_eq!(line("compare --lvie"), None);
        assert_eq!(line("gte"), None);
        #[cfg(not(feature = "full"))]
        for words in ["get rrtp://host/file", "compare --live", "compare --live=127.0.0.1:80"] {
            assert!(line(words).unwrap().contains("--features full"), "{words}");
        }
    }
}
