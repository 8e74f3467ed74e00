//! TOML files with the settings of the command's flags.

use narrows_files::error::shown;
use narrows_files::{Error, Kind, text_file};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// Settings of the receiving end.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReceiveFile {
    /// The sender's URL, if this end connects.
    pub sender: Option<String>,
    /// Address and port to listen on (`--listen`).
    pub listen: Option<String>,
    /// File of the keys that may connect (`--clients`).
    pub clients: Option<PathBuf>,
    /// Destination ports (`--to`), separated by commas.
    pub to: Option<String>,
    /// Allowed latency (`--latency`), such as `300ms`.
    pub latency: Option<String>,
}

/// Settings of the sending end.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct SendFile {
    /// The receiver's URL, if this end connects.
    pub receiver: Option<String>,
    /// Address and port to listen on (`--listen`).
    pub listen: Option<String>,
    /// File of the keys that may connect (`--clients`).
    pub clients: Option<PathBuf>,
    /// Local port of the media (`--from`).
    pub from: Option<String>,
    /// Ports and rates of the layers (`--layer`), separated by commas.
    pub layers: Option<String>,
    /// Allowed latency (`--latency`), such as `300ms`.
    pub latency: Option<String>,
    /// Minimum encoder rate (`--min-rate`).
    pub min_rate: Option<String>,
    /// Maximum encoder rate (`--max-rate`).
    pub max_rate: Option<String>,
}

/// A file of settings.
pub trait File: DeserializeOwned {}
impl File for ReceiveFile {}
impl File for SendFile {}

/// Loads a file of settings.
///
/// # Errors
/// It cannot be read, or is invalid; the error names the line.
pub fn load<T: File>(path: &Path) -> Result<T, Error> {
    let what = shown(&path.display().to_string());
    let text = text_file::read(path, text_file::SHORT).map_err(|e| Error::file(&what, &e))?;
    read(&text).map_err(|e| e.at(&what))
}

/// Parses the text of a file of settings.
///
/// # Errors
/// It is invalid; the error names the line.
pub fn read<T: File>(text: &str) -> Result<T, Error> {
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

    #[test]
    #[cfg(unix)]
    fn a_file_without_an_end_is_refused() {
        let e = load::<SendFile>(Path::new("/dev/zero")).unwrap_err();
        assert!(e.line.ends_with("is longer than 1 MB"), "{e}");
    }

    #[test]
    fn a_file_says_what_the_flags_say() {
        let send: SendFile = read("receiver = 'rrtp://host:1'\nmax-rate = '8Mbit/s'\n").unwrap();
        assert_eq!(send.receiver.as_deref(), Some("rrtp://host:1"));
        assert_eq!(send.max_rate.as_deref(), Some("8Mbit/s"));
        let receive: ReceiveFile = read("clients = 'friends'\nto = '127.0.0.1:5004'\n").unwrap();
        assert_eq!(receive.to.as_deref(), Some("127.0.0.1:5004"));
        let e = read::<SendFile>("latency = '1s'\nlatenzy = '2s'\n").unwrap_err();
        assert!(e.kind == Kind::Input && e.line.starts_with("line 2"), "{e}");
    }
}
