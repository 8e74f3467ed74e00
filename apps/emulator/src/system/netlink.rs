//! Netlink: requests to the kernel as bytes, so that no installed program is needed.

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto,
    socket_with,
};
use std::io;
use std::os::fd::OwnedFd;

const REQUEST: u16 = 1;
const ACK: u16 = 4;
const ERROR: u16 = 2;
const NESTED: u16 = 0x8000;
const HEADER: usize = 16;
/// Create it; fail if it exists.
pub const CREATE: u16 = 0x400 | 0x200;

/// One request.
#[derive(Debug)]
pub struct NetlinkMessage {
    bytes: Vec<u8>,
    wants_ack: bool,
}

impl NetlinkMessage {
    /// A request of this type with an acknowledgement.
    pub fn new(kind: u16, flags: u16) -> NetlinkMessage {
        NetlinkMessage::of(kind, flags | ACK, true)
    }

    /// A request without an acknowledgement, such as the begin and end of a batch.
    pub fn unanswered(kind: u16) -> NetlinkMessage {
        NetlinkMessage::of(kind, 0, false)
    }

    /// A query: the reply is the requested object.
    pub fn question(kind: u16) -> NetlinkMessage {
        NetlinkMessage::of(kind, 0, false)
    }

    fn of(kind: u16, flags: u16, wants_ack: bool) -> NetlinkMessage {
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((flags | REQUEST).to_ne_bytes());
        bytes.extend([0; 8]);
        NetlinkMessage { bytes, wants_ack }
    }

    /// Adds a fixed part.
    #[must_use]
    pub fn fixed(mut self, bytes: &[u8]) -> NetlinkMessage {
        self.bytes.extend_from_slice(bytes);
        self.pad();
        self
    }

    /// Adds an attribute.
    #[must_use]
    pub fn attribute(mut self, kind: u16, value: &[u8]) -> NetlinkMessage {
        let length = u16::try_from(value.len() + 4).unwrap_or(u16::MAX);
        self.bytes.extend(length.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.fixed(value)
    }

    /// Adds an attribute that is a string.
    #[must_use]
    pub fn text(self, kind: u16, value: &str) -> NetlinkMessage {
        self.attribute(kind, format!("{value}\0").as_bytes())
    }

    /// Adds an attribute that is a number in network order, as nftables has them.
    #[must_use]
    pub fn number(self, kind: u16, value: u32) -> NetlinkMessage {
        self.attribute(kind, &value.to_be_bytes())
    }

    /// Adds an attribute of attributes.
    #[must_use]
    pub fn nested(
        mut self,
        kind: u16,
        inside: impl FnOnce(NetlinkMessage) -> NetlinkMessage,
    ) -> NetlinkMessage {
        let at = self.bytes.len();
        self.bytes.extend([0; 2]);
        self.bytes.extend((kind | NESTED).to_ne_bytes());
        let mut all = inside(self);
        let length = u16::try_from(all.bytes.len() - at).unwrap_or(u16::MAX);
        if let Some(place) = all.bytes.get_mut(at..at + 2) {
            place.copy_from_slice(&length.to_ne_bytes());
        }
        all
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        for (at, value) in [(0, length), (8, sequence)] {
            if let Some(place) = self.bytes.get_mut(at..at + 4) {
                place.copy_from_slice(&value.to_ne_bytes());
            }
        }
        self.bytes
    }
}

/// A socket to the kernel, of the namespace of the thread that opened it.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// A socket for interfaces, addresses and routes.
    ///
    /// # Errors
    /// The kernel does not support it.
    pub fn route() -> io::Result<Netlink> {
        Netlink::open(None)
    }

    /// A socket for nftables.
    ///
    /// # Errors
    /// The kernel does not support it.
    pub fn netfilter() -> io::Result<Netlink> {
        Netlink::open(Some(rustix::net::netlink::NETFILTER))
    }

    fn open(protocol: Option<Protocol>) -> io::Result<Netlink> {
        let family = AddressFamily::NETLINK;
        let kind = SocketType::RAW;
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, protocol)?;
        Ok(Netlink { socket, sequence: 0 })
    }

    /// Sends a request and waits for the kernel's acknowledgement.
    ///
    /// # Errors
    /// The kernel's error code.
    pub fn request(&mut self, message: NetlinkMessage) -> io::Result<()> {
        self.batch(vec![message])
    }

    /// Sends a query with a reply of one message, and returns the bytes after that message's header.
    ///
    /// # Errors
    /// The kernel's error code.
    pub fn ask(&mut self, question: NetlinkMessage) -> io::Result<Vec<u8>> {
        self.sequence += 1;
        let bytes = question.finish(self.sequence);
        sendto(&self.socket, &bytes, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut answer = [0; 16_384];
        let (length, _) = recv(&self.socket, &mut answer, RecvFlags::empty())?;
        let answer = answer.get(..length).unwrap_or_default();
        if let Some(error) = next_answer(&mut { answer }) {
            return Err(io::Error::from_raw_os_error(-error));
        }
        Ok(answer.get(HEADER..).unwrap_or_default().to_vec())
    }

    /// Sends a batch of requests that is applied completely or not at all.
    ///
    /// # Errors
    /// The kernel's first error code.
    pub fn batch(&mut self, messages: Vec<NetlinkMessage>) -> io::Result<()> {
        let mut bytes = Vec::new();
        let mut open = 0;
        for message in messages {
            self.sequence += 1;
            open += usize::from(message.wants_ack);
            bytes.extend(message.finish(self.sequence));
        }
        sendto(&self.socket, &bytes, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut answer = [0; 16_384];
        while open > 0 {
            let (length, _) = recv(&self.socket, &mut answer, RecvFlags::empty())?;
            let mut rest = answer.get(..length).unwrap_or_default();
            while let Some(error) = next_answer(&mut rest) {
                if error != 0 {
                    return Err(io::Error::from_raw_os_error(-error));
                }
                open = open.saturating_sub(1);
            }
        }
        Ok(())
    }
}

/// The attributes (type and value) of a message, which follow a fixed part of `fixed` bytes.
pub fn attributes(bytes: &[u8], fixed: usize) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes.get(fixed..).unwrap_or_default();
    std::iter::from_fn(move || {
        let [a, b, c, d] = *rest.first_chunk::<4>()?;
        let length = usize::from(u16::from_ne_bytes([a, b]));
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([c, d]) & !NESTED, value))
    })
}

/// The next error code (0: done) among the kernel's answers; `None` when there is no more.
fn next_answer(rest: &mut &[u8]) -> Option<i32> {
    loop {
        let header = rest.get(..HEADER)?;
        let length = header.first_chunk::<4>().map(|b| u32::from_ne_bytes(*b))? as usize;
        let kind = header.get(4..6).and_then(|b| Some(u16::from_ne_bytes(b.try_into().ok()?)))?;
        let code =
            rest.get(HEADER..HEADER + 4).and_then(|b| Some(i32::from_ne_bytes(b.try_into().ok()?)));
        *rest = rest.get(length.max(HEADER).next_multiple_of(4)..).unwrap_or_default();
        if kind == ERROR {
            return code;
        }
    }
}
