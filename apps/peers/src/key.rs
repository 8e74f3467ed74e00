//! The identity of an endpoint: an X25519 key pair in a file, created at first use. Also the text form of public keys.

use crate::error::{Error, ErrorKind};
use crate::text_file::{self, private, private_folder};
use data_encoding::{BASE32_NOPAD, HEXLOWER_PERMISSIVE};
use narrows_wire::Suite;
use narrows_wire::noise::{PublicKey, StaticKey, is_low_order};
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// First line of a key file.
const HEADER: &str = "# The private key of a narrows server or client: keep it secret.";

/// An X25519 key pair.
#[derive(Clone)]
pub struct Identity {
    private: [u8; 32],
    public: PublicKey,
}

impl Identity {
    /// From 32 bytes of a cryptographic random source.
    ///
    /// # Errors
    /// The cryptographic library refuses the key, which does not occur.
    pub fn new(private: [u8; 32]) -> Result<Identity, Error> {
        let key =
            StaticKey::new(private).map_err(|e| Error::new(ErrorKind::Local, e.to_string()))?;
        Ok(Identity { private, public: *key.public() })
    }

    /// A new random key pair.
    ///
    /// # Errors
    /// The system provides no random bytes.
    pub fn generate() -> Result<Identity, Error> {
        let mut private = [0; 32];
        getrandom::fill(&mut private).map_err(|e| {
            Error::new(ErrorKind::Local, format!("the system gives no randomness: {e}"))
        })?;
        Identity::new(private)
    }

    /// Reads a key file. If it is missing, creates one with a new key, readable by its owner only.
    ///
    /// # Errors
    /// The file holds no key, other users may read it, or it cannot be created.
    pub fn load_or_make(path: &Path) -> Result<Identity, Error> {
        match text_file::read(path, text_file::SHORT) {
            Ok(text) => Identity::loaded(path, &text),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let made = Identity::generate()?;
                match made.keep(path) {
                    // Another process created it at the same moment: use that one.
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                        let text = text_file::read(path, text_file::SHORT)
                            .map_err(|e| Error::file(&path.display().to_string(), &e))?;
                        Identity::loaded(path, &text)
                    }
                    Err(e) => Err(Error::file(&path.display().to_string(), &e)
                        .and("--identity FILE names another place for the key")),
                    Ok(()) => Ok(made),
                }
            }
            Err(e) => Err(Error::file(&path.display().to_string(), &e)),
        }
    }

    fn loaded(path: &Path, text: &str) -> Result<Identity, Error> {
        let what = path.display();
        only_owner(path)?;
        let line = text.lines().map(str::trim).find(|l| !l.is_empty() && !l.starts_with('#'));
        let private = line.and_then(|l| l.strip_prefix("private ")).and_then(bytes);
        let private = private.ok_or_else(|| {
            let line =
                format!("{what}: is not a key file of narrows; move it away and a new one is made");
            Error::new(ErrorKind::Input, line)
        })?;
        Identity::new(private)
    }

    /// Writes the key file atomically, and never replaces another file.
    fn keep(&self, path: &Path) -> io::Result<()> {
        private_folder(path)?;
        let aside = beside(path, std::process::id());
        let private = BASE32_NOPAD.encode(&self.private).to_ascii_lowercase();
        let text = format!("{HEADER}\nprivate {private}\n# public {}\n", text(&self.public));
        let done = write_private(&aside, &text).and_then(|()| std::fs::hard_link(&aside, path));
        let _ = std::fs::remove_file(&aside);
        done
    }

    /// Identifies this endpoint to its peers.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }
    /// Private key for a handshake.
    pub fn private(&self) -> &[u8; 32] {
        &self.private
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", text(&self.public))
    }
}

/// A temporary name beside a file; `number` makes it unique.
pub(crate) fn beside(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{number}.new"));
    path.with_file_name(name)
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    // Never write through an existing link: its target could be another user's.
    let _ = std::fs::remove_file(path);
    let mut file = private().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(unix)]
fn only_owner(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    let about =
        std::fs::metadata(path).map_err(|e| Error::file(&path.display().to_string(), &e))?;
    if about.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    let what = path.display();
    let line = format!("{what}: others may read this private key; say chmod 600 {what}");
    Err(Error::new(ErrorKind::Denied, line))
}
#[cfg(not(unix))]
fn only_owner(_: &Path) -> Result<(), Error> {
    Ok(())
}

/// A public key as text: 52 lower-case letters and digits (base32, RFC 4648).
pub fn text(key: &PublicKey) -> String {
    BASE32_NOPAD.encode(key).to_ascii_lowercase()
}

fn bytes(text: &str) -> Option<[u8; 32]> {
    let bytes = match text.len() {
        52 => BASE32_NOPAD.decode(text.to_ascii_uppercase().as_bytes()).ok()?,
        64 => HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?,
        _ => return None,
    };
    bytes.try_into().ok()
}

/// A public key from text: base32 as [`text`] writes it, or 64 hexadecimal digits.
///
/// # Errors
/// The text has neither form, or the key has low order: then no private key is needed to claim it.
pub fn read(text: &str) -> Result<PublicKey, Error> {
    let bad = |why: String| Error::new(ErrorKind::Input, format!("not a key: {why}"));
    // Not quoted: a file that is named by mistake may hold secrets.
    let found = text.chars().count();
    let key = bytes(text).ok_or_else(|| {
        bad(format!("{found} characters, not the 52 letters and digits that `narrows key` prints"))
    })?;
    if is_low_order(&key) {
        return Err(bad(
            "a point of low order, which needs no private key; use one that `narrows key` prints"
                .into(),
        ));
    }
    Ok(key)
}

/// The faster cipher suite on this processor.
pub fn suite() -> Suite {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    let aes = std::arch::is_x86_feature_detected!("aes");
    #[cfg(target_arch = "aarch64")]
    let aes = std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    let aes = false;
    if aes { Suite::Aes256Gcm } else { Suite::ChaCha20Poly1305 }
}

/// The folder of the user's keys: on Linux `narrows` in `XDG_CONFIG_HOME`, else `~/.config/narrows`.
///
/// # Errors
/// The environment names no such folder, and the user has no home.
pub fn config_folder() -> Result<PathBuf, Error> {
    use etcetera::BaseStrategy;
    let given = std::env::var_os("XDG_CONFIG_HOME").filter(|_| cfg!(unix));
    let usual = || etcetera::choose_base_strategy().ok().map(|base| base.config_dir());
    config_folder_in(given.map(PathBuf::from), usual)
}

/// The folder in the given one, which suffices without a home, or in the usual one.
fn config_folder_in(
    given: Option<PathBuf>,
    usual: impl FnOnce() -> Option<PathBuf>,
) -> Result<PathBuf, Error> {
    // A relative path counts as none (XDG Base Directory Specification).
    let base = given.filter(|path| path.is_absolute()).or_else(usual).ok_or_else(|| {
        let line = "no folder for keys and known servers: this user has no home; set HOME or XDG_CONFIG_HOME";
        Error::new(ErrorKind::Local, line)
    })?;
    Ok(base.join("narrows"))
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
