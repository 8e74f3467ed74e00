//! Settings from a file (`--config`) beside flags.

use crate::failure::Failure;
use narrows_peers::settings;
use serde::de::DeserializeOwned;
use std::path::Path;

/// The settings of this file; the defaults without one.
///
/// # Errors
/// The file cannot be read, or is invalid.
pub fn from_file<T: Default + DeserializeOwned>(file: Option<&Path>) -> Result<T, Failure> {
    let load = |file| settings::load(file).map_err(|e| e.at("--config"));
    Ok(file.map_or(Ok(T::default()), load)?)
}

/// The flag's value, or else the file's.
///
/// # Errors
/// The file's value is invalid.
pub fn flag_or<T>(
    key: &str,
    flag: Option<T>,
    text: Option<&String>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Failure> {
    match (flag, text) {
        (None, Some(text)) => {
            let bad = |e: String| Failure::Input(format!("--config: {key}: {e}"));
            read(text).map(Some).map_err(bad)
        }
        (flag, _) => Ok(flag),
    }
}
