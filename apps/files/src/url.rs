//! Addresses of files: `rrtp://[KEY@]HOST[:PORT]/PATH` and `tcp://…`.

use crate::path::CleanPath;
use narrows_base::SpecError;
use narrows_peers::error::{Error, ErrorKind, shown};
use narrows_peers::key;
use narrows_wire::noise::PublicKey;
use std::fmt;

/// Default port of servers, TCP and UDP alike.
pub const PORT: u16 = 47470;

/// Transport of the files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    /// This library's protocol, over UDP.
    Rrtp,
    /// The kernel's TCP.
    Tcp,
}

impl Scheme {
    /// The scheme in an address.
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::Rrtp => "rrtp",
            Scheme::Tcp => "tcp",
        }
    }
}

/// A parsed address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Url {
    /// From the scheme.
    pub scheme: Scheme,
    /// The server's key, if the address has one.
    pub key: Option<PublicKey>,
    /// A name or an IP address; IPv6 without brackets.
    pub host: String,
    /// TCP or UDP port; [`PORT`] if the address has none.
    pub port: u16,
    /// Path of the file or folder at the server.
    pub path: CleanPath,
    /// Whether the path ends with `/`, so that it must be a folder.
    pub folder: bool,
}

const FORM: &str = "an address has the form rrtp://HOST:PORT/PATH or tcp://HOST:PORT/PATH";

fn bad(text: &str, why: &str) -> Error {
    let short: String = text.chars().take(120).collect();
    Error::new(ErrorKind::Input, format!("'{}': {why}", shown(&short)))
}

impl Url {
    /// Parses an address.
    ///
    /// # Errors
    /// The fault, and the correct form.
    pub fn read(text: &str) -> Result<Url, Error> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| bad(text, FORM))?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "rrtp" => Scheme::Rrtp,
            "tcp" => Scheme::Tcp,
            _ => {
                let e = SpecError::unknown("scheme", &shown(scheme), &["rrtp", "tcp"]);
                return Err(Error::new(ErrorKind::Input, format!("{e}; {FORM}")));
            }
        };
        let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (key, place) = match server.rsplit_once('@') {
            Some((key, place)) => (Some(key::read(key)?), place),
            None => (None, server),
        };
        let (host, port) = host_port(place).map_err(|why| bad(text, &why))?;
        let decoded = decoded(path).map_err(|why| bad(text, why))?;
        let path = CleanPath::read(&decoded).map_err(|e| Error::new(ErrorKind::Input, e.line))?;
        let folder = path.is_root() || decoded.ends_with('/');
        Ok(Url { scheme, key, host, port, path, folder })
    }

    /// `host:port`, the name under which the server's key is stored.
    pub fn server(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// Splits `host:port`, `[v6]:port`, `host`.
///
/// # Errors
/// The fault.
pub fn host_port(place: &str) -> Result<(String, u16), String> {
    let (host, port) = if let Some(rest) = place.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or("a ']' is missing behind the address")?;
        if host.parse::<std::net::Ipv6Addr>().is_err() {
            return Err("the text in [ ] is no IPv6 address".into());
        }
        match port.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if port.is_empty() => (host, None),
            None => return Err("':' and a port are expected behind ']'".into()),
        }
    } else {
        match place.split_once(':') {
            Some((_, rest)) if rest.contains(':') => {
                return Err("an IPv6 address stands in brackets, as in [::1]:47470".into());
            }
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        }
    };
    if host.is_empty() {
        return Err(format!("the host is missing; {FORM}"));
    }
    let taken = |c: char| c.is_alphanumeric() || "-._:%".contains(c);
    if !host.chars().all(taken) || host.len() > 255 {
        return Err("that is no host's name".into());
    }
    let port = match port {
        None => PORT,
        Some(p) => p.parse().map_err(|_| {
            format!("'{}' is no port: a number from 0 to 65535 is expected", shown(p))
        })?,
    };
    Ok((host.to_ascii_lowercase(), port))
}

/// Decodes `%20` and the like.
fn decoded(path: &str) -> Result<String, &'static str> {
    const WRONG: &str = "two hexadecimal digits follow '%'; '%' itself is written %25";
    let mut out = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(b) = bytes.next() {
        if b != b'%' {
            out.push(b);
            continue;
        }
        let digit = |d: Option<u8>| d.and_then(|d| char::from(d).to_digit(16)).ok_or(WRONG);
        let high = digit(bytes.next())?;
        let low = digit(bytes.next())?;
        out.push((high * 16 + low) as u8);
    }
    String::from_utf8(out).map_err(|_| "the path is not UTF-8")
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key.map(|k| key::text(&k) + "@").unwrap_or_default();
        write!(f, "{}://{key}{}", self.scheme.name(), self.server())?;
        for name in self.path.names() {
            write!(f, "/{}", name.replace('%', "%25"))?;
        }
        if self.folder { f.write_str("/") } else { Ok(()) }
    }
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
