//! Reads TOML files with the settings of a command's flags.

use crate::error::{Error, ErrorKind, shown};
use crate::text_file;
use std::collections::BTreeMap;
use std::path::Path;
use toml::{Spanned, Value};

/// A key of the file with its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Line in the file, from 1.
    pub line: usize,
    /// Name of the flag, without its hyphens.
    pub key: String,
    /// Its values in order; one that is `true` has no text, and one that is `false` is left out.
    pub values: Vec<Option<String>>,
}

/// Reads the settings of a file.
///
/// # Errors
/// It cannot be read, or is invalid; the error names the line.
pub fn load(path: &Path) -> Result<Vec<Setting>, Error> {
    let what = shown(&path.display().to_string());
    let text = text_file::read(path, text_file::LIST).map_err(|e| Error::file(&what, &e))?;
    read(&text).map_err(|e| e.at(&what))
}

/// Reads such a file again, in a program that has read it before: it may be changing at this moment.
///
/// # Errors
/// As [`load`], or it has no setting.
pub fn reload(path: &Path) -> Result<Vec<Setting>, Error> {
    let what = shown(&path.display().to_string());
    let text =
        text_file::read_settled(path, text_file::LIST).map_err(|e| Error::file(&what, &e))?;
    let settings = read(&text).map_err(|e| e.at(&what))?;
    if settings.is_empty() {
        return Err(Error::new(ErrorKind::Input, "the file has no setting").at(&what));
    }
    Ok(settings)
}

fn read(text: &str) -> Result<Vec<Setting>, Error> {
    let line = |at: usize| 1 + text.bytes().take(at).filter(|b| *b == b'\n').count();
    let bad = |at: usize, why: &str| {
        Error::new(ErrorKind::Input, format!("line {}: {}", line(at), shown(why)))
    };
    let all: BTreeMap<Spanned<String>, Value> = toml::from_str(text).map_err(|e| {
        let why: Vec<&str> = e.message().lines().collect();
        bad(e.span().map_or(0, |span| span.start), &why.join(", "))
    })?;
    let mut settings = Vec::new();
    for (key, value) in all {
        let at = key.span().start;
        let values = if let Value::Array(values) = value { values } else { vec![value] };
        let text = |value| match value {
            Value::String(text) => Ok(Some(Some(text))),
            Value::Integer(_) | Value::Float(_) => Ok(Some(Some(value.to_string()))),
            Value::Boolean(is_on) => Ok(is_on.then_some(None)),
            _ => Err(bad(at, "a setting is a text, a number, true, false or a list of these")),
        };
        let values: Result<Vec<_>, Error> = values.into_iter().map(text).collect();
        let values = values?.into_iter().flatten().collect();
        settings.push(Setting { line: line(at), key: key.into_inner(), values });
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_file_without_an_end_is_refused() {
        let e = load(Path::new("/dev/zero")).unwrap_err();
        assert!(e.line.contains("is a pipe or a device"), "{e}");
    }

    #[test]
    fn values_are_read_as_a_command_line_has_them() {
        let all = read("tun = true\nlive = false\nsocks = 1080\nallow = ['a:1', 'b:2']\n").unwrap();
        let of = |key: &str| all.iter().find(|s| s.key == key).unwrap();
        let text = |text: &str| Some(text.to_string());
        assert_eq!(of("tun").values, [None]);
        assert_eq!(of("live").values, []);
        assert_eq!((of("socks").line, &of("socks").values[..]), (3, &[text("1080")][..]));
        assert_eq!(of("allow").values, [text("a:1"), text("b:2")]);
    }

    #[test]
    fn wrong_settings_give_one_line_with_its_place() {
        for (text, line) in [
            ("quota = 8 GB", "line 1"),
            ("a = 1\n[b]\nc = 2", "line 2"),
            ("\n\nallow = [[1]]", "line 3"),
            ("\nlisten = \"\u{1b}[2J\"", "line 2"),
            ("[[", "line 1"),
        ] {
            let e = read(text).unwrap_err();
            assert!(e.kind == ErrorKind::Input && e.line.starts_with(line), "{e}");
            assert!(!e.line.contains(['\n', '\u{1b}']), "{e}");
        }
    }
}
