//! The datagrams between hosts.

use std::net::{IpAddr, SocketAddr};

/// Bytes of the headers of IPv4 and UDP.
const HEADERS_V4: u32 = 28;
/// Bytes of the headers of IPv6 and UDP.
const HEADERS_V6: u32 = 48;

/// The ECN field of an IP header (RFC 3168, RFC 9331).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECT(1): ECN-capable, for a low-latency queue.
    Ect1,
    /// ECT(0): ECN-capable.
    Ect0,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// From the two bits of the header; higher bits are ignored.
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// The two bits of the header.
    pub const fn bits(self) -> u8 {
        match self {
            Ecn::NotEct => 0,
            Ecn::Ect1 => 1,
            Ecn::Ect0 => 2,
            Ecn::Ce => 3,
        }
    }
}

/// A datagram, or with a segment size several of one size that a sender hands over at once (GSO).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// Sender's address, which must be one of its host.
    pub source: SocketAddr,
    /// Receiver's address.
    pub destination: SocketAddr,
    /// The ECN field. Queues may set CE.
    pub ecn: Ecn,
    /// The network cuts the payload into datagrams of this many bytes; the last may be shorter. Receivers always get
    /// `None`.
    pub segment_size: Option<usize>,
    /// Bytes on a link in addition to the payload's. 0 with a payload that is a whole IP packet, as of nodes of smoltcp.
    pub header_bytes: u32,
    /// Contents.
    pub payload: Vec<u8>,
}

impl Datagram {
    /// A UDP datagram that is not ECN-capable.
    pub fn udp(source: SocketAddr, destination: SocketAddr, payload: Vec<u8>) -> Datagram {
        let header_bytes = match destination.ip() {
            IpAddr::V4(_) => HEADERS_V4,
            IpAddr::V6(_) => HEADERS_V6,
        };
        let ecn = Ecn::NotEct;
        Datagram { source, destination, ecn, segment_size: None, header_bytes, payload }
    }

    /// The same with this ECN field.
    #[must_use]
    pub fn with_ecn(self, ecn: Ecn) -> Datagram {
        Datagram { ecn, ..self }
    }

    /// The same with this segment size, in bytes of payload.
    #[must_use]
    pub fn with_segment_size(self, segment_size: Option<usize>) -> Datagram {
        Datagram { segment_size, ..self }
    }

    /// The datagrams that travel: one, or the segments.
    pub(crate) fn segments(self) -> Vec<Datagram> {
        match self.segment_size.filter(|size| *size > 0 && *size < self.payload.len()) {
            None => vec![Datagram { segment_size: None, ..self }],
            Some(size) => {
                let empty = Datagram { payload: Vec::new(), segment_size: None, ..self };
                let parts = self.payload.chunks(size);
                parts.map(|part| Datagram { payload: part.to_vec(), ..empty.clone() }).collect()
            }
        }
    }
}
