//! Heads of HTTP/1 messages, and the ends of their bodies (RFC 9112). Bodies pass unchanged; only their ends are found.

use http::{StatusCode, Uri};
use httparse::{EMPTY_HEADER, Header, Status};

/// Maximum size of a head, a trailer section or a chunk's size line in bytes; below, the maximum number of fields.
pub(super) const MAX_HEAD: usize = 64 << 10;
const MAX_FIELDS: usize = 128;
/// Hop-by-hop fields (RFC 9110 sections 7.6.1 and 11.7), in addition to those that the Connection field names.
const ONE_HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "upgrade",
];
/// Fields of framing and routing, which a Connection field may not remove.
const FRAMING: [&str; 3] = ["content-length", "host", "transfer-encoding"];

/// The head or body is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BadMessage;

impl From<httparse::Error> for BadMessage {
    fn from(_: httparse::Error) -> BadMessage {
        BadMessage
    }
}

/// The fields of a message, in their order and case.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct HeadFields(Vec<(String, Vec<u8>)>);

impl HeadFields {
    fn read(headers: &[Header<'_>]) -> HeadFields {
        HeadFields(headers.iter().map(|field| (field.name.into(), field.value.into())).collect())
    }

    pub fn add(&mut self, name: &str, value: &str) {
        self.0.push((name.into(), value.into()));
    }

    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(own, _)| !own.eq_ignore_ascii_case(name));
    }

    /// Replaces the fields of this name by one, at the place of the first.
    pub fn set(&mut self, name: &str, value: &str) {
        let place = self.0.iter().position(|(own, _)| own.eq_ignore_ascii_case(name));
        let own =
            place.and_then(|place| self.0.get(place)).map_or(name, |(own, _)| own).to_string();
        self.remove(name);
        let place = place.unwrap_or(self.0.len()).min(self.0.len());
        self.0.insert(place, (own, value.into()));
    }

    /// The elements of all fields of this name, which are lists, in lower case.
    pub fn elements(&self, name: &str) -> Vec<String> {
        let fields = self.0.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name));
        let texts = fields.map(|(_, value)| String::from_utf8_lossy(value).to_ascii_lowercase());
        let all: Vec<String> = texts.collect();
        let elements = all.iter().flat_map(|text| text.split(','));
        elements.map(|element| element.trim().to_string()).filter(|e| !e.is_empty()).collect()
    }

    /// Removes hop-by-hop fields. Returns the protocols to which the connection may be upgraded.
    pub fn strip(&mut self) -> Option<String> {
        let named = self.elements("connection");
        let upgrade = self.elements("upgrade").join(", ");
        let is_upgrade = named.iter().any(|name| name == "upgrade") && !upgrade.is_empty();
        let named = named.iter().map(String::as_str).filter(|name| !FRAMING.contains(name));
        named.chain(ONE_HOP).for_each(|name| self.remove(name));
        is_upgrade.then_some(upgrade)
    }

    /// The value of Content-Length, if it is there; several must be equal.
    fn length(&self) -> Result<Option<u64>, BadMessage> {
        let lengths = self.elements("content-length");
        let Some(first) = lengths.first() else { return Ok(None) };
        let is_number = first.bytes().all(|b| b.is_ascii_digit());
        if !is_number || lengths.iter().any(|other| other != first) {
            return Err(BadMessage);
        }
        first.parse().map(Some).map_err(|_| BadMessage)
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        for (name, value) in &self.0 {
            bytes.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        bytes.extend(b"\r\n");
    }
}

/// Method, target and fields of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct HttpRequestHead {
    pub method: String,
    /// The target as it was sent.
    pub target: String,
    /// Whether the version is 1.0.
    pub is_old: bool,
    pub fields: HeadFields,
}

impl HttpRequestHead {
    /// Reads a head: its length and content; `None` if more bytes are needed.
    pub fn read(bytes: &[u8]) -> Result<Option<(usize, HttpRequestHead)>, BadMessage> {
        let mut fields = [EMPTY_HEADER; MAX_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        let Status::Complete(length) = request.parse(bytes)? else { return Ok(None) };
        let head = HttpRequestHead {
            method: request.method.ok_or(BadMessage)?.into(),
            target: request.path.ok_or(BadMessage)?.into(),
            is_old: request.version == Some(0),
            fields: HeadFields::read(request.headers),
        };
        Ok(Some((length, head)))
    }

    /// The end of the body after this head.
    pub fn body(&self) -> Result<BodyEnd, BadMessage> {
        let codings = self.fields.elements("transfer-encoding");
        match (&codings[..], self.fields.length()?) {
            ([], length) => Ok(BodyEnd::Length(length.unwrap_or(0))),
            ([coding], None) if coding == "chunked" && !self.is_old => Ok(BodyEnd::ChunkSize),
            _ => Err(BadMessage),
        }
    }

    /// Whether the program keeps its connection for another request.
    pub fn is_persistent(&self) -> bool {
        let closes = |name: &str| self.fields.elements(name).iter().any(|word| word == "close");
        !self.is_old && !closes("connection") && !closes("proxy-connection")
    }

    /// Makes it the head for its server. Returns whether it asks for an upgrade, or `None` if the target is invalid.
    pub fn forward(&mut self) -> Option<bool> {
        let uri: Uri = self.target.parse().ok()?;
        let host = without_user(uri.authority()?.as_str()).to_string();
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let after = self.target.split_once("://").map_or("", |(_, after)| after);
        self.target = match path {
            // RFC 9112 section 3.2.4.
            "/" if self.method == "OPTIONS" && !after.contains('/') => "*".into(),
            path if path.starts_with(['/', '*']) => path.into(),
            path => format!("/{path}"),
        };
        let has_trailers = self.fields.elements("te").iter().any(|word| word == "trailers");
        let upgrade = self.fields.strip();
        self.fields.set("Host", &host);
        match &upgrade {
            Some(protocols) => {
                self.fields.add("connection", "upgrade");
                self.fields.add("upgrade", protocols);
            }
            None if has_trailers => {
                self.fields.add("connection", "close, te");
                self.fields.add("te", "trailers");
            }
            None => self.fields.add("connection", "close"),
        }
        Some(upgrade.is_some())
    }

    pub fn bytes(&self) -> Vec<u8> {
        let version = if self.is_old { "1.0" } else { "1.1" };
        let mut bytes = format!("{} {} HTTP/{version}\r\n", self.method, self.target).into_bytes();
        self.fields.write(&mut bytes);
        bytes
    }
}

/// Status and fields of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct AnswerHead {
    pub status: StatusCode,
    reason: String,
    pub fields: HeadFields,
}

impl AnswerHead {
    /// Reads a head: its length and content; `None` if more bytes are needed.
    pub fn read(bytes: &[u8]) -> Result<Option<(usize, AnswerHead)>, BadMessage> {
        let mut fields = [EMPTY_HEADER; MAX_FIELDS];
        let mut answer = httparse::Response::new(&mut fields);
        let Status::Complete(length) = answer.parse(bytes)? else { return Ok(None) };
        let status = answer.code.ok_or(BadMessage)?;
        let head = AnswerHead {
            status: StatusCode::from_u16(status).map_err(|_| BadMessage)?,
            reason: answer.reason.unwrap_or_default().into(),
            fields: HeadFields::read(answer.headers),
        };
        Ok(Some((length, head)))
    }

    /// The end of the body after this head, in the answer to a request with this method.
    pub fn body(&mut self, method: &str) -> Result<BodyEnd, BadMessage> {
        let codings = self.fields.elements("transfer-encoding");
        let is_empty = method == "HEAD"
            || self.status.is_informational()
            || [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&self.status);
        if is_empty {
            return Ok(BodyEnd::Length(0));
        }
        match codings.last() {
            Some(last) => {
                // RFC 9112 section 6.3: Transfer-Encoding overrides Content-Length.
                self.fields.remove("content-length");
                Ok(if last == "chunked" { BodyEnd::ChunkSize } else { BodyEnd::Connection })
            }
            None => Ok(self.fields.length()?.map_or(BodyEnd::Connection, BodyEnd::Length)),
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes =
            format!("HTTP/1.1 {} {}\r\n", self.status.as_u16(), self.reason).into_bytes();
        self.fields.write(&mut bytes);
        bytes
    }
}

/// The next part of a body, and so its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BodyEnd {
    /// This many bytes are left.
    Length(u64),
    /// It ends with the connection.
    Connection,
    /// A chunk's size line is next.
    ChunkSize,
    /// This many bytes of a chunk are left, and then its line end.
    Chunk(u64),
    /// The trailer section is next.
    Trailers,
}

/// Bytes at the beginning of a body's rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BodyPart {
    pub length: usize,
    /// Whether it is content, not chunked framing.
    pub is_content: bool,
}

impl BodyEnd {
    /// Whether no bytes are left.
    pub fn is_reached(&self) -> bool {
        *self == BodyEnd::Length(0)
    }

    /// The part at the beginning of these bytes; `None` if more bytes are needed.
    pub fn next(&mut self, bytes: &[u8]) -> Result<Option<BodyPart>, BadMessage> {
        let within = |left: u64| usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let framing = |length| BodyPart { length, is_content: false };
        let part = match *self {
            BodyEnd::Length(0) => None,
            BodyEnd::Length(left) => {
                let length = within(left);
                *self = BodyEnd::Length(left - length as u64);
                Some(BodyPart { length, is_content: true })
            }
            BodyEnd::Connection => Some(BodyPart { length: bytes.len(), is_content: true }),
            BodyEnd::ChunkSize => match httparse::parse_chunk_size(bytes) {
                Ok(Status::Complete((length, size))) => {
                    *self = if size == 0 { BodyEnd::Trailers } else { BodyEnd::Chunk(size) };
                    Some(framing(length))
                }
                Ok(Status::Partial) => None,
                Err(_) => return Err(BadMessage),
            },
            BodyEnd::Chunk(0) => match bytes {
                [b'\r', b'\n', ..] => {
                    *self = BodyEnd::ChunkSize;
                    Some(framing(2))
                }
                [] | [b'\r'] => None,
                _ => return Err(BadMessage),
            },
            BodyEnd::Chunk(left) => {
                let length = within(left);
                *self = BodyEnd::Chunk(left - length as u64);
                Some(BodyPart { length, is_content: true })
            }
            BodyEnd::Trailers => {
                match httparse::parse_headers(bytes, &mut [EMPTY_HEADER; MAX_FIELDS])? {
                    Status::Complete((length, _)) => {
                        *self = BodyEnd::Length(0);
                        Some(framing(length))
                    }
                    Status::Partial => None,
                }
            }
        };
        match part.filter(|part| part.length > 0) {
            None if bytes.len() >= MAX_HEAD && !self.is_reached() => Err(BadMessage),
            part => Ok(part),
        }
    }
}

/// Removes the user information before the host; it is not sent to the server.
pub(super) fn without_user(authority: &str) -> &str {
    authority.rsplit('@').next().unwrap_or(authority)
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
