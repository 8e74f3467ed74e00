//! The command line as words: as passed to clap, and quoted for a shell.

use crate::failure::Failure;
use clap::error::{ContextKind, ContextValue};
use narrows_lab::options::words::{quoted, refusal};
use std::ffi::OsString;

/// The words of a command line, with those of the file that it names.
#[derive(Debug)]
pub struct GivenWords {
    pub words: Vec<OsString>,
    /// The settings among them that are from the file.
    pub settings: Vec<FileSetting>,
}

/// A setting of a file, with its line.
#[derive(Debug)]
pub struct FileSetting {
    /// The argument, as clap's errors name it: `--rate <RATE>`.
    pub argument: String,
    /// Its option: `--rate`.
    pub option: String,
    /// Option, file and line: `--config: FILE: line 3`.
    pub place: String,
}

impl GivenWords {
    /// clap's error in one line, with the place of a setting of the file.
    pub fn refusal(&self, e: &clap::Error) -> String {
        let line = refusal(e);
        let found = match e.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(name)) => self.settings.iter().find(|s| s.argument == *name),
            _ => None,
        };
        found.map_or(line.clone(), |setting| format!("{}: {line}", setting.place))
    }

    /// A failure about an option, with the place of a setting of the file.
    pub fn located(&self, failure: Failure) -> Failure {
        let Failure::Input(line) = &failure else { return failure };
        let is_about = |s: &&FileSetting| {
            // Errors of a positional argument begin with its name: `the link: …`.
            let positional =
                || line.strip_prefix("the ")?.strip_prefix(s.option.trim_start_matches('-'));
            let rest = line.strip_prefix(&s.option).or_else(positional);
            rest.is_some_and(|rest| rest.starts_with([' ', ':', '=']))
        };
        match self.settings.iter().find(is_about) {
            Some(setting) => Failure::Input(format!("{}: {line}", setting.place)),
            None => failure,
        }
    }
}

/// The command's words, with a negative number after an option joined to it as its value (`--duration=-5s`). clap would
/// report `-5s` as an unknown option; the option's parser gives a better error.
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

/// The command as it can be typed in a shell.
pub fn command_line() -> String {
    let mut words = vec!["narrows".to_string()];
    words.extend(std::env::args_os().skip(1).map(|w| quoted(&w.to_string_lossy())));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
