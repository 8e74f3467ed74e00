//! TOML files with the settings of the command's flags.

use serde::Deserialize;
use std::path::PathBuf;

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

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_peers::settings::read;

    #[test]
    fn a_file_says_what_the_flags_say() {
        let send: SendFile = read("receiver = 'rrtp://host:1'\nmax-rate = '8Mbit/s'\n").unwrap();
        assert_eq!(send.receiver.as_deref(), Some("rrtp://host:1"));
        assert_eq!(send.max_rate.as_deref(), Some("8Mbit/s"));
        let receive: ReceiveFile = read("clients = 'friends'\nto = '127.0.0.1:5004'\n").unwrap();
        assert_eq!(receive.to.as_deref(), Some("127.0.0.1:5004"));
    }
}
