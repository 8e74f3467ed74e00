//! TOML files with the settings of a command's flags, for tunnels with many ports or targets.

use narrows_files::error::shown;
use narrows_files::{Error, Kind, text_file};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// Settings of the far side.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServeFile {
    /// Address and port to listen on (`--listen`).
    pub listen: Option<String>,
    /// File of the keys that may connect (`--clients`).
    pub clients: Option<PathBuf>,
    /// Permitted targets (`--allow`).
    pub allow: Vec<String>,
    /// Networks of clients' packets (`--tun`).
    pub tun: Vec<String>,
}

/// Settings of the near side.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct ConnectFile {
    /// The server's URL.
    pub server: Option<String>,
    /// Forwarded TCP ports (`--tcp`).
    pub tcp: Vec<String>,
    /// Forwarded UDP ports (`--udp`).
    pub udp: Vec<String>,
    /// Port of the SOCKS proxy (`--socks`).
    pub socks: Option<Port>,
    /// Port of the HTTP proxy (`--http-proxy`).
    pub http_proxy: Option<Port>,
    /// Whether to carry packets of an interface (`--tun`).
    pub tun: bool,
    /// Routes into the interface (`--route`).
    pub route: Vec<String>,
}

/// A local port, with or without an address.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Port {
    /// A port of loopback.
    Number(u16),
    /// `[ADDRESS:]PORT`, as on the command line.
    Text(String),
}

impl Port {
    /// The text as on the command line.
    pub fn text(&self) -> String {
        match self {
            Port::Number(number) => number.to_string(),
            Port::Text(text) => text.clone(),
        }
    }
}

/// A file of settings.
pub trait File: DeserializeOwned {}
impl File for ServeFile {}
impl File for ConnectFile {}

/// Loads a file of settings.
///
/// # Errors
/// It cannot be read, or is invalid; the error names the line.
pub fn load<T: File>(path: &Path) -> Result<T, Error> {
    let what = shown(&path.display().to_string());
    let text = text_file::read(path, text_file::LIST).map_err(|e| Error::file(&what, &e))?;
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
        let e = load::<ConnectFile>(Path::new("/dev/zero")).unwrap_err();
        assert!(e.line.ends_with("is longer than 10 MB"), "{e}");
    }

    #[test]
    fn a_file_says_what_the_flags_say() {
        let near: ConnectFile = read(
            "server = 'rrtp://host:1'\ntcp = ['8080:intranet:80',\n'81:b:81']\nsocks = 1080\nhttp-proxy = '[::1]:3128'\n",
        )
        .unwrap();
        assert_eq!(near.tcp, ["8080:intranet:80", "81:b:81"]);
        assert_eq!(
            (near.socks.unwrap().text(), near.http_proxy.unwrap().text()),
            ("1080".into(), "[::1]:3128".into())
        );
        let far: ServeFile = read("clients = 'friends'\nallow = ['*:443']\n").unwrap();
        assert_eq!((far.clients.unwrap(), far.allow), ("friends".into(), vec!["*:443".into()]));
    }

    #[test]
    fn what_is_wrong_is_one_line_that_says_where() {
        for (text, line) in [
            ("socks = 1080\nsock = 2\n", "line 2"),
            ("tcp = '8080:a:80'", "line 1"),
            ("\n\nsocks = 70000", "line 3"),
            ("server = \"\u{1b}[2J\"", "line 1"),
            ("[[", "line 1"),
        ] {
            let e = read::<ConnectFile>(text).unwrap_err();
            assert!(e.kind == Kind::Input && e.line.starts_with(line), "{e}");
            assert!(!e.line.contains(['\n', '\u{1b}']), "{e}");
        }
    }
}
