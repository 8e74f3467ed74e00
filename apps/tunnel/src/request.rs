//! The near side's request at the beginning of a stream, and the far side's answer.
//!
//! ```text
//! near: | kind (1) | port (2) | length (1) | host | and then the connection's bytes
//! far:  | answer (1) |                            and then the connection's bytes
//! ```
//!
//! Kinds: 1 a TCP connection, 2 a UDP flow, 5 a listener at the far side, see `reverse.rs`. A flow's request is followed by `| length (2) | datagram |`, its first
//! datagram; the others are messages, see `flow.rs`, and the flow lives as long as its stream. A host is a name or an
//! address as text. An answer other than 0 ends the stream. If a TCP connection ends with a reset, the stream is reset
//! and stopped with code 1.

use std::fmt;
use std::net::SocketAddr;

/// The application protocol in the handshake; other versions have other names.
pub const APPLICATION: &str = "narrows-tunnel/1";
/// Bytes of a request's head, before the host.
pub const HEAD: usize = 4;
/// Error code of a stream after a reset or a failure of its TCP connection.
pub const RESET: u64 = 1;

/// TCP, UDP, or a listener at the far side.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RequestKind {
    /// A TCP connection.
    Tcp,
    /// A UDP flow: datagrams to and from one address.
    Udp,
    /// A listening TCP port at the far side; the host is an address of it.
    Listen,
}

/// Kinds by their codes and names.
const KINDS: [(RequestKind, u8, &str); 3] = [
    (RequestKind::Tcp, 1, "tcp"),
    (RequestKind::Udp, 2, "udp"),
    (RequestKind::Listen, 5, "reverse"),
];

impl RequestKind {
    fn entry(self) -> (RequestKind, u8, &'static str) {
        KINDS.into_iter().find(|(kind, ..)| *kind == self).unwrap_or(KINDS[0])
    }
}

/// A request for a connection or a flow to a target.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TunnelRequest {
    /// TCP or UDP.
    pub kind: RequestKind,
    /// Name or address of the target, without brackets.
    pub host: String,
    /// Port of the target; never 0.
    pub port: u16,
}

impl TunnelRequest {
    /// A request for a TCP connection.
    pub fn tcp(host: &str, port: u16) -> TunnelRequest {
        TunnelRequest { kind: RequestKind::Tcp, host: host.into(), port }
    }

    /// A request for a UDP flow.
    pub fn udp(host: &str, port: u16) -> TunnelRequest {
        TunnelRequest { kind: RequestKind::Udp, ..TunnelRequest::tcp(host, port) }
    }

    /// A request for a listener at the far side.
    pub fn listen(at: SocketAddr) -> TunnelRequest {
        TunnelRequest {
            kind: RequestKind::Listen,
            ..TunnelRequest::tcp(&at.ip().to_string(), at.port())
        }
    }

    /// Encodes the request; `None` if the host has more than 255 bytes.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let length = u8::try_from(self.host.len()).ok()?;
        let mut bytes = vec![self.kind.entry().1];
        bytes.extend(self.port.to_be_bytes());
        bytes.push(length);
        bytes.extend(self.host.as_bytes());
        Some(bytes)
    }

    /// Length in bytes of the host that follows this head.
    ///
    /// # Errors
    /// The head is invalid.
    pub fn host_length(head: [u8; HEAD]) -> Result<usize, Refusal> {
        match head {
            [code, _, _, length] if length > 0 && KINDS.iter().any(|(_, own, _)| *own == code) => {
                Ok(length.into())
            }
            _ => Err(Refusal::BadRequest),
        }
    }

    /// Decodes a head and the host after it.
    ///
    /// # Errors
    /// The request is invalid.
    pub fn read(head: [u8; HEAD], host: &[u8]) -> Result<TunnelRequest, Refusal> {
        if TunnelRequest::host_length(head)? != host.len() || !host.iter().all(u8::is_ascii_graphic)
        {
            return Err(Refusal::BadRequest);
        }
        let [code, high, low, _] = head;
        let port = u16::from_be_bytes([high, low]);
        let host = std::str::from_utf8(host).map_err(|_| Refusal::BadRequest)?;
        if port == 0 {
            return Err(Refusal::BadRequest);
        }
        let kind = KINDS.iter().find(|(_, own, _)| *own == code).ok_or(Refusal::BadRequest)?.0;
        Ok(TunnelRequest { kind, host: host.into(), port })
    }

    /// Kind and target for display, such as `tcp example.org:443`.
    pub fn shown(&self) -> String {
        format!("{} {}", self.kind.entry().2, self.target())
    }

    /// `host:port` for display, with brackets around an IPv6 address.
    pub fn target(&self) -> String {
        let TunnelRequest { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

/// Reason of a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// No entry of `--allow` permits it.
    NotAllowed,
    /// It leads to an address that is neither public nor listed.
    NotPublic,
    /// The name does not exist.
    NoSuchName,
    /// The target refused the connection.
    Refused,
    /// The target did not answer.
    TimedOut,
    /// No route leads to the target.
    Unreachable,
    /// The client has reached a limit.
    TooMany,
    /// An error of the server's system.
    Failed,
    /// The request is invalid.
    BadRequest,
    /// No entry of `--allow-reverse` permits this listener.
    NoReverse,
}

impl Refusal {
    /// A word for counters.
    pub fn word(self) -> &'static str {
        match self {
            Refusal::NotAllowed => "not_allowed",
            Refusal::NotPublic => "not_public",
            Refusal::NoSuchName => "no_such_name",
            Refusal::Refused => "refused",
            Refusal::TimedOut => "timed_out",
            Refusal::Unreachable => "unreachable",
            Refusal::TooMany => "too_many",
            Refusal::Failed => "failed",
            Refusal::BadRequest => "bad_request",
            Refusal::NoReverse => "no_reverse",
        }
    }
}

const CODES: &[(Refusal, u8, &str)] = &[
    (Refusal::NotAllowed, 1, "the server's --allow does not list it"),
    (
        Refusal::NotPublic,
        2,
        "it has no public address, and the server's --allow does not list the one it has",
    ),
    (Refusal::NoSuchName, 3, "the server finds no such name"),
    (Refusal::Refused, 4, "connection refused"),
    (Refusal::TimedOut, 5, "no answer from there in time"),
    (Refusal::Unreachable, 6, "the server has no way there"),
    (Refusal::TooMany, 7, "this client has as much open as the server permits"),
    (Refusal::Failed, 8, "the server's system refuses"),
    (Refusal::BadRequest, 9, "the server cannot read the request"),
    (Refusal::NoReverse, 10, "the server's --allow-reverse does not list it"),
];

impl Refusal {
    /// Code of an answer.
    pub fn code(self) -> u8 {
        CODES.iter().find(|(refusal, ..)| *refusal == self).map_or(8, |(_, code, _)| *code)
    }
    /// Decodes an answer: `None` means success; an unknown code means [`Refusal::Failed`].
    pub fn from_code(code: u8) -> Option<Refusal> {
        let known = CODES.iter().find(|(_, known, _)| *known == code);
        (code != 0).then(|| known.map_or(Refusal::Failed, |(refusal, ..)| *refusal))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = CODES.iter().find(|(refusal, ..)| refusal == self);
        f.write_str(line.map_or("the server refuses", |(.., line)| line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn request_reads_back_as_written(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else { return Ok(()) };
            let Ok(length) = TunnelRequest::host_length(*head) else { return Ok(()) };
            if let Some(host) = rest.get(..length) && let Ok(request) = TunnelRequest::read(*head, host) {
                prop_assert_eq!(request.bytes().unwrap(), &bytes[..HEAD + length]);
                prop_assert!(request.target().chars().all(|c| c.is_ascii_graphic()));
            }
        }

        #[test]
        fn a_request_arrives(host in "[a-z0-9.:-]{1,255}", port in 1u16.., is_udp: bool) {
            let make = if is_udp { TunnelRequest::udp } else { TunnelRequest::tcp };
            let request = make(&host, port);
            let bytes = request.bytes().unwrap();
            let (head, rest) = bytes.split_first_chunk().unwrap();
            prop_assert_eq!(TunnelRequest::host_length(*head).unwrap(), rest.len());
            prop_assert_eq!(TunnelRequest::read(*head, rest).unwrap(), request);
        }
    }

    #[test]
    fn every_cause_has_a_code_of_its_own() {
        for (refusal, code, _) in CODES {
            assert_eq!((refusal.code(), Refusal::from_code(*code)), (*code, Some(*refusal)));
        }
        assert_eq!((Refusal::from_code(0), Refusal::from_code(200)), (None, Some(Refusal::Failed)));
    }
}
