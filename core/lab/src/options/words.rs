//! Options as words of a command line: parsed without a command, quoted for a shell, with errors in one line.

use clap::error::{ContextKind, ContextValue};
use clap::{Args, Command};
use narrows_base::spec::nearest;

/// Parses pairs of name and value as the command parses `--NAME VALUE`; a pair without a name is the command's
/// argument.
///
/// # Errors
/// The line that the command prints.
pub fn read<T: Args>(pairs: &[(String, String)]) -> Result<T, String> {
    let words = pairs.iter().flat_map(|(name, value)| match name.as_str() {
        "" => vec!["--".to_string(), value.clone()],
        // In this form a value may begin with a minus sign.
        name => vec![format!("--{name}={value}")],
    });
    let command =
        T::augment_args(Command::new("narrows").no_binary_name(true).disable_help_flag(true));
    let matches = command.try_get_matches_from(words);
    matches.and_then(|m| T::from_arg_matches(&m)).map_err(|e| refusal(&e))
}

/// The command line that is equivalent to these pairs.
pub fn command_line(command: &str, pairs: &[(String, String)]) -> String {
    let mut words = vec!["narrows".to_string(), command.to_string()];
    for (name, value) in pairs {
        if name.is_empty() {
            words.push(quoted(value));
        } else if value.starts_with('-') {
            words.push(quoted(&format!("--{name}={value}")));
        } else {
            words.extend([format!("--{name}"), quoted(value)]);
        }
    }
    words.join(" ")
}

/// Quotes a word for a shell.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./,=%:+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Clap's error message in one line. An option is suggested only if it is near: clap would take `--loss` for `--flows`.
pub fn refusal(e: &clap::Error) -> String {
    let text = e.to_string();
    let body = text.split("\n\nUsage:").next().unwrap_or(&text);
    let is_far = match (e.get(ContextKind::InvalidArg), e.get(ContextKind::SuggestedArg)) {
        (Some(ContextValue::String(given)), Some(ContextValue::String(suggested))) => {
            nearest(given.trim_matches('-'), &[suggested.trim_matches('-')]).is_none()
        }
        _ => false,
    };
    let body = if is_far { body.split("\n\n  tip:").next().unwrap_or(body) } else { body };
    let body = body.split("\n\nFor more information").next().unwrap_or(body);
    let body = body.strip_prefix("error: ").unwrap_or(body);
    // Missing arguments are on lines of their own.
    let body = body.replace(":\n  ", ": ").replace("\n  <", ", <").replace("\n  --", ", --");
    one_line(&body.replace("\n\n  tip:", ";"))
}

/// Joins the text's lines.
pub fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Compare, Sweep};

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(a, b)| ((*a).to_string(), (*b).to_string())).collect()
    }

    #[test]
    fn wrong_options_give_one_line() {
        for (wrong, expected) in [
            (("duration", "-5s"), "invalid value '-5s' for '--duration <TIME>': "),
            (("seeds", "0"), "invalid value '0' for '--seeds <K>': a number from 1 to 100000 is"),
            (("duraton", "5s"), "unexpected argument '--duraton' found; a similar argument exists"),
        ] {
            let e = read::<Compare>(&pairs(&[wrong])).unwrap_err();
            assert!(e.starts_with(expected) && !e.contains('\n'), "{e}");
        }
        let e = read::<Compare>(&pairs(&[("flaws", "1%")])).unwrap_err();
        assert!(e.contains("'--flows'"), "{e}");
        let e = read::<Compare>(&pairs(&[("loss", "1%")])).unwrap_err();
        assert_eq!(e, "unexpected argument '--loss' found");
        let e = read::<Sweep>(&pairs(&[("link", "dsl"), ("", "-x.toml")])).unwrap_err();
        assert!(e.contains("cannot be used with"), "{e}");
    }

    #[test]
    fn a_command_line_can_be_typed_again() {
        let given =
            pairs(&[("link", "dsl"), ("protocols", "vegas(alpha=1)"), ("seed", "-1"), ("", "a b")]);
        let line = command_line("run", &given);
        assert_eq!(line, "narrows run --link dsl --protocols 'vegas(alpha=1)' --seed=-1 'a b'");
    }
}
