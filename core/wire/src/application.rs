//! Names of application protocols, as the handshake carries them (ALPN, RFC 7301).

use crate::bytes::{BufferFull, ByteReader, Malformed, Sink};
use std::fmt;
use std::sync::Arc;

/// The most bytes of an encoded list, including a length byte for each name.
pub const MAX_LIST_BYTES: usize = 128;
/// The most bytes of a name.
pub const MAX_NAME_BYTES: usize = 64;

/// The application protocols that an endpoint supports, in order of preference.
///
/// ```
/// use narrows_wire::ApplicationProtocols;
///
/// let ours = ApplicationProtocols::new(["chat/2", "chat/1"])?;
/// let offered = ApplicationProtocols::new(["chat/1"])?;
/// assert_eq!(ours.agree(&offered), Ok(Some("chat/1")));
/// // An endpoint without protocols cannot connect to one with protocols.
/// assert!(ours.agree(&ApplicationProtocols::default()).is_err());
/// # Ok::<(), narrows_wire::ApplicationProtocolError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ApplicationProtocols(Arc<[Box<str>]>);

/// Why a list of application protocols is invalid.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ApplicationProtocolError {
    /// This name is empty, too long, or has characters other than printable ASCII without spaces
    /// and commas.
    Name(String),
    /// This name occurs twice.
    Twice(String),
    /// The encoded list is too long.
    TooLong {
        /// Its length in bytes, including a length byte for each name.
        bytes: usize,
    },
}

impl fmt::Display for ApplicationProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApplicationProtocolError::Name(name) => write!(
                f,
                "'{}' is no name of an application protocol: 1 to {MAX_NAME_BYTES} characters of \
                 printable ASCII, no space and no comma",
                name.escape_default()
            ),
            ApplicationProtocolError::Twice(name) => {
                write!(f, "the application protocol '{name}' is named twice")
            }
            ApplicationProtocolError::TooLong { bytes } => write!(
                f,
                "the application protocols' names take {bytes} bytes with one more for each: at most \
                 {MAX_LIST_BYTES} fit"
            ),
        }
    }
}

impl std::error::Error for ApplicationProtocolError {}

/// The two endpoints have no application protocol in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoCommonProtocol;

impl ApplicationProtocols {
    /// A list of these names.
    ///
    /// # Errors
    /// A name is invalid or occurs twice, or the list is too long for a handshake.
    pub fn new<S: AsRef<str>>(
        names: impl IntoIterator<Item = S>,
    ) -> Result<ApplicationProtocols, ApplicationProtocolError> {
        let mut list: Vec<Box<str>> = Vec::new();
        let mut bytes: usize = 0;
        for name in names {
            let name = name.as_ref();
            if !is_name(name.as_bytes()) {
                return Err(ApplicationProtocolError::Name(name.into()));
            }
            if list.iter().any(|known| &**known == name) {
                return Err(ApplicationProtocolError::Twice(name.into()));
            }
            bytes += 1 + name.len();
            list.push(name.into());
        }
        if bytes > MAX_LIST_BYTES {
            return Err(ApplicationProtocolError::TooLong { bytes });
        }
        Ok(ApplicationProtocols(list.into()))
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names, the preferred one first.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|name| &**name)
    }

    /// The server's choice among the protocols that a client offers, by the server's own preference; `None` if neither
    /// side names any.
    ///
    /// # Errors
    /// The lists have no protocol in common.
    pub fn agree(&self, offered: &ApplicationProtocols) -> Result<Option<&str>, NoCommonProtocol> {
        if self.is_empty() && offered.is_empty() {
            return Ok(None);
        }
        let common = self.iter().find(|name| offered.iter().any(|peer_name| peer_name == *name));
        common.map(Some).ok_or(NoCommonProtocol)
    }

    /// Writes each name with its length before it.
    pub(crate) fn write(&self, sink: &mut Sink<'_>) -> Result<(), BufferFull> {
        let bytes: usize = self.iter().map(|name| 1 + name.len()).sum();
        sink.byte(bytes as u8)?;
        for name in self.iter() {
            sink.byte(name.len() as u8)?;
            sink.put(name.as_bytes())?;
        }
        Ok(())
    }

    /// Reads a list as [`write`](Self::write) writes it; its length in bytes is that of the parameter.
    pub(crate) fn read(value: &[u8]) -> Result<ApplicationProtocols, Malformed> {
        let mut source = ByteReader::new(value);
        let mut names = Vec::new();
        while !source.is_empty() {
            let length = usize::from(source.byte()?);
            let name = std::str::from_utf8(source.take(length)?).map_err(|_| WRONG)?;
            names.push(name);
        }
        ApplicationProtocols::new(names).map_err(|_| WRONG)
    }
}

/// The names, separated by commas.
impl fmt::Display for ApplicationProtocols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        for (i, name) in self.iter().enumerate() {
            f.write_str(if i > 0 { ", " } else { "" })?;
            f.write_str(name)?;
        }
        Ok(())
    }
}

const WRONG: Malformed = Malformed::new("a malformed list of application protocols");

/// Whether these bytes are a valid name.
pub fn is_name(bytes: &[u8]) -> bool {
    let is_plain = |b: &u8| (0x21..0x7f).contains(b) && *b != b',';
    (1..=MAX_NAME_BYTES).contains(&bytes.len()) && bytes.iter().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> ApplicationProtocols {
        ApplicationProtocols::new(names).unwrap()
    }

    #[test]
    fn servers_preference_decides_if_both_name_protocols() {
        let server = list(&["b", "a"]);
        assert_eq!(server.agree(&list(&["a", "b", "c"])), Ok(Some("b")));
        assert_eq!(server.agree(&list(&["a"])), Ok(Some("a")));
        assert_eq!(server.agree(&list(&["c"])), Err(NoCommonProtocol));
        assert_eq!(server.agree(&list(&[])), Err(NoCommonProtocol));
        assert_eq!(list(&[]).agree(&list(&["a"])), Err(NoCommonProtocol));
        assert_eq!(list(&[]).agree(&list(&[])), Ok(None));
    }

    #[test]
    fn a_list_is_bounded_and_of_plain_names() {
        for name in ["", "two words", "a,b", "bell\u{7}", "ä", &"x".repeat(65)] {
            let refused = ApplicationProtocols::new([name]);
            assert_eq!(refused, Err(ApplicationProtocolError::Name(name.into())));
        }
        assert_eq!(
            ApplicationProtocols::new(["a", "a"]),
            Err(ApplicationProtocolError::Twice("a".into()))
        );
        let long = ["x".repeat(64), "y".repeat(63)];
        assert_eq!(
            ApplicationProtocols::new(long),
            Err(ApplicationProtocolError::TooLong { bytes: 129 })
        );
        assert!(ApplicationProtocols::new(["x".repeat(64), "y".repeat(62)]).is_ok());
    }

    #[test]
    fn peers_application_list_is_valid_or_refused() {
        assert_eq!(ApplicationProtocols::read(b"\x01a\x02bc"), Ok(list(&["a", "bc"])));
        assert_eq!(ApplicationProtocols::read(b""), Ok(list(&[])));
        let bad: [&[u8]; 5] = [b"\x02a", b"\x00", b"\x01 ", b"\x01a\x01a", b"\x01\xff"];
        for value in bad {
            assert!(ApplicationProtocols::read(value).is_err(), "{value:?}");
        }
    }
}
