//! Reads TOML files with the settings of a command's flags.

use crate::error::{Error, Kind, shown};
use crate::text_file;
use serde::de::DeserializeOwned;
use std::path::Path;

/// Loads a file of settings.
///
/// # Errors
/// It cannot be read, or is invalid; the error names the line.
pub fn load<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let what = shown(&path.display().to_string());
    let text = text_file::read(path, text_file::LIST).map_err(|e| Error::file(&what, &e))?;
    read(&text).map_err(|e| e.at(&what))
}

/// Parses the text of a file of settings.
///
/// # Errors
/// It is invalid; the error names the line.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    toml::from_str(text).map_err(|e| {
        let at = e.span().map_or(0, |span| span.start);
        let line = 1 + text.bytes().take(at).filter(|b| *b == b'\n').count();
        let why: Vec<&str> = e.message().lines().collect();
        Error::new(Kind::Input, format!("line {line}: {}", shown(&why.join(", "))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
    #[derive(Default)]
    struct TestFile {
        #[allow(dead_code, reason = "only read by serde")]
        listen: Option<String>,
        #[allow(dead_code, reason = "only read by serde")]
        allow_put: bool,
        #[allow(dead_code, reason = "only read by serde")]
        quota: Option<String>,
    }

    #[test]
    #[cfg(unix)]
    fn a_file_without_an_end_is_refused() {
        let e = load::<TestFile>(Path::new("/dev/zero")).unwrap_err();
        assert!(e.line.ends_with("is longer than 10 MB"), "{e}");
    }

    #[test]
    fn what_is_wrong_is_one_line_that_says_where() {
        for (text, line) in [
            ("listen = 'host:1'\nlisten-at = 2\n", "line 2"),
            ("quota = 8", "line 1"),
            ("\n\nallow-put = 70000", "line 3"),
            ("listen = \"\u{1b}[2J\"", "line 1"),
            ("[[", "line 1"),
        ] {
            let e = read::<TestFile>(text).unwrap_err();
            assert!(e.kind == Kind::Input && e.line.starts_with(line), "{e}");
            assert!(!e.line.contains(['\n', '\u{1b}']), "{e}");
        }
    }
}
