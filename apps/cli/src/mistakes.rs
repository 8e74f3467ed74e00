//! Refused command lines with a known right form: options of other programs, keys of a link written as options, a word
//! without its option, and a missing or unknown command.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use narrows_base::SpecError;
use narrows_lab::options::words::quoted;
use narrows_scenario::keys;
use std::ffi::OsString;

/// Options that these commands do not have, with what to write instead.
struct ForeignOption {
    commands: &'static [&'static str],
    options: &'static [&'static str],
    instead: &'static str,
}

const FOREIGN: [ForeignOption; 7] = [
    ForeignOption {
        commands: &["get", "put", "ls"],
        options: &["-r", "-R", "-a", "--recursive", "--archive"],
        instead: "folders are transferred whole without it",
    },
    ForeignOption {
        commands: &["tunnel", "tunnel connect"],
        options: &["-D", "--dynamic"],
        instead: "a SOCKS proxy is narrows tunnel connect URL --socks 1080",
    },
    ForeignOption {
        commands: &["tunnel", "tunnel connect"],
        options: &["-L", "--local", "--forward"],
        instead: "a forwarded port is narrows tunnel connect URL --tcp 8080:intranet:80, or --udp 5353:resolver:53",
    },
    ForeignOption {
        commands: &["tunnel", "tunnel connect"],
        options: &["-R", "--remote"],
        instead: "a port of the server is narrows tunnel connect URL --reverse 8080:localhost:80",
    },
    ForeignOption {
        commands: &["tunnel", "tunnel connect"],
        options: &["-W"],
        instead: "standard input and output are connected by narrows tunnel connect URL --stdio HOST:PORT",
    },
    ForeignOption {
        commands: &["get", "put", "ls", "probe", "tunnel connect", "media send"],
        options: &["-p", "-P", "--port"],
        instead: "the port stands behind the host: HOST:PORT",
    },
    ForeignOption {
        commands: &["get"],
        options: &["-O", "--out", "--dir"],
        instead: "the local path is -o PATH",
    },
];

/// Options of servers elsewhere for the address to listen at.
const LISTEN: [&str; 6] = ["-p", "-P", "--port", "--bind", "--address", "--host"];

/// Names that other programs give to a link's rate and delay.
const RATE_NAMES: [&str; 3] = ["rate", "bandwidth", "bw"];
const DELAY_NAMES: [&str; 3] = ["delay", "latency", "rtt"];

/// The command that the words call.
struct CalledCommand<'a> {
    path: Vec<&'a str>,
    definition: &'a Command,
}

impl<'a> CalledCommand<'a> {
    fn find(all: &'a Command, words: &[OsString]) -> CalledCommand<'a> {
        let mut called = CalledCommand { path: Vec::new(), definition: all };
        for word in words.iter().skip(1).skip_while(|word| *word == "help") {
            let name = word.to_string_lossy();
            let Some(inner) = called.definition.find_subcommand(name.as_ref()) else { break };
            called.path.push(inner.get_name());
            called.definition = inner;
        }
        called
    }

    /// Whether it has an option of this name.
    fn has_option(&self, name: &str) -> bool {
        self.definition.get_arguments().any(|a| a.get_long() == Some(name))
    }

    /// Whether it has a positional argument with this property.
    fn has_argument(&self, is_it: impl Fn(&clap::Arg) -> bool) -> bool {
        self.definition.get_positionals().any(is_it)
    }

    fn without_command(&self, unknown: Option<&str>) -> SpecError {
        let names: Vec<&str> = self
            .definition
            .get_subcommands()
            .filter(|c| !c.is_hide_set())
            .map(Command::get_name)
            .collect();
        let e = match unknown {
            Some(name) => SpecError::unknown("command", name, &names),
            None => SpecError::new(format!("a command is missing, one of: {}", names.join(", "))),
        };
        if self.path.is_empty() { e } else { e.at(&self.path.join(" ")) }
    }

    fn unexpected_option(&self, option: &str) -> Option<String> {
        let path = self.path.join(" ");
        let foreign =
            |f: &&ForeignOption| f.commands.contains(&path.as_str()) && f.options.contains(&option);
        if let Some(foreign) = FOREIGN.iter().find(foreign) {
            return Some(foreign.instead.into());
        }
        if LISTEN.contains(&option) && self.has_option("listen") {
            return Some(
                "the address is --listen '[::]:PORT', or 127.0.0.1:PORT for this machine".into(),
            );
        }
        let before = if self.has_option("link") {
            "--link ".into()
        } else if self.has_argument(|a| a.get_id() == "link") {
            format!("narrows {path} ")
        } else {
            return None;
        };
        let key = option.strip_prefix("--")?;
        if RATE_NAMES.contains(&key) || DELAY_NAMES.contains(&key) {
            let half = if key == "rtt" { "; the delay is one way, half the RTT" } else { "" };
            return Some(format!("a link is RATE,DELAY: {before}20Mbit/s,25ms{half}"));
        }
        let form = keys::find(key)?.form.split('|').next()?;
        Some(format!("it is a key of the link: {before}20Mbit/s,25ms,{key}={form}"))
    }

    fn unexpected_word(&self, word: &str, words: &[OsString]) -> Option<String> {
        if self.has_argument(clap::Arg::is_last_set) {
            // Its first argument is the link or the controller.
            let first = self.path.len() + 2;
            let at = first + words.iter().skip(first).position(|w| w == word)?;
            let typed = |words: &[OsString]| {
                let words: Vec<String> =
                    words.iter().map(|w| quoted(&w.to_string_lossy())).collect();
                words.join(" ")
            };
            let before = typed(words.get(1..at)?);
            let after = typed(words.get(at..)?);
            return Some(format!("a program stands behind --: narrows {before} -- {after}"));
        }
        if self.has_option("link") {
            let is_rate = word.starts_with(|c: char| c.is_ascii_digit());
            let option = match is_rate || narrows_scenario::links::find(word).is_ok() {
                true => "--link",
                false if self.has_option("protocols") => "--protocols",
                false => return None,
            };
            return Some(format!("its option is missing: {option} {}", quoted(word)));
        }
        (self.path == ["get"]).then(|| format!("the local path is -o {}", quoted(word)))
    }
}

/// The line that explains the mistake in these words, if it is known.
pub fn explained(e: &clap::Error, all: &Command, words: &[OsString]) -> Option<String> {
    let called = CalledCommand::find(all, words);
    let text = |kind| match e.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let error = match e.kind() {
        ErrorKind::InvalidSubcommand => {
            called.without_command(text(ContextKind::InvalidSubcommand))
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            called.without_command(None)
        }
        ErrorKind::UnknownArgument => {
            let given = text(ContextKind::InvalidArg)?;
            let instead = match given.starts_with('-') {
                true => called.unexpected_option(given),
                false => called.unexpected_word(given, words),
            };
            SpecError::new(format!("unexpected argument '{given}': {}", instead?))
        }
        _ => return None,
    };
    Some(error.to_string())
}
