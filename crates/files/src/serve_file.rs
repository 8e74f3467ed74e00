//! The TOML file with the settings of the server's flags.

use serde::Deserialize;
use std::path::PathBuf;

/// Settings of a file server.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct ServeFile {
    /// Address and port to listen on (`--listen`).
    pub listen: Option<String>,
    /// File of the keys that may connect (`--clients`).
    pub clients: Option<PathBuf>,
    /// Whether clients may upload new files (`--allow-put`).
    pub allow_put: bool,
    /// Whether uploads may replace files (`--overwrite`).
    pub overwrite: bool,
    /// Maximum size of a file (`--max-size`).
    pub max_size: Option<String>,
    /// Maximum size of the folder (`--quota`).
    pub quota: Option<String>,
}
