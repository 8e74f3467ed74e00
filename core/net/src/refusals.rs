//! ICMP reports that no socket receives at an address ("port unreachable"). Only Linux has them (`IP_RECVERR`, ip(7)).
//!
//! They are enabled only while an attempt to connect is pending. Each report makes one send or receive fail. Any
//! machine that guesses the addresses and ports can forge them, but not the payload that they quote.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum reports per call. While more are queued, the socket counts as readable.
#[cfg(target_os = "linux")]
const MAX_READ: usize = 64;

/// Bytes of the refused datagram's payload that are kept: enough for a handshake packet's nonce.
const QUOTED: usize = 64;

/// A datagram that was refused, as the report describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedDatagram {
    /// Its destination.
    pub to: SocketAddr,
    /// The first bytes of its payload, as far as the report quotes them.
    pub quoted: Vec<u8>,
}

/// Reports on the datagrams of one socket.
#[derive(Debug, Default)]
pub struct Refusals {
    is_watched: AtomicBool,
}

impl Refusals {
    /// Enables or disables the reports. On disabling, the system drops queued reports.
    pub fn watch(&self, io: &UdpSocket, is_wanted: bool) {
        if self.is_watched.swap(is_wanted, Ordering::AcqRel) == is_wanted {
            return;
        }
        #[cfg(target_os = "linux")]
        {
            use nix::sys::socket::{setsockopt, sockopt};
            // An IPv6 socket may also send to IPv4. If the system refuses an option, no reports arrive.
            let _ = setsockopt(io, sockopt::Ipv4RecvErr, &is_wanted);
            let _ = setsockopt(io, sockopt::Ipv6RecvErr, &is_wanted);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = io;
    }

    /// Reads the queued reports.
    pub fn read(&self, io: &UdpSocket) -> Vec<RefusedDatagram> {
        let mut all = Vec::new();
        #[cfg(target_os = "linux")]
        if self.is_watched.load(Ordering::Acquire) {
            for _ in 0..MAX_READ {
                let Some(refused) = read_one(io) else { break };
                all.extend(refused);
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = io;
        all
    }
}

/// Reads a report; `None` if the queue is empty. `Some(None)` is a report of another error.
#[cfg(target_os = "linux")]
fn read_one(io: &UdpSocket) -> Option<Option<RefusedDatagram>> {
    use nix::errno::Errno;
    use nix::sys::socket::{ControlMessageOwned as Cmsg, MsgFlags, SockaddrStorage, recvmsg};
    use std::os::fd::AsRawFd as _;
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let mut bytes = [0; QUOTED];
    let mut space = [0; 512];
    let mut parts = [std::io::IoSliceMut::new(&mut bytes)];
    let message = recvmsg::<SockaddrStorage>(io.as_raw_fd(), &mut parts, Some(&mut space), flags);
    let message = message.ok()?;
    let is_refusal = message.cmsgs().is_ok_and(|mut all| {
        all.any(|part| match part {
            Cmsg::Ipv4RecvErr(e, _) | Cmsg::Ipv6RecvErr(e, _) => {
                Errno::from_raw(e.ee_errno as i32) == Errno::ECONNREFUSED
            }
            _ => false,
        })
    });
    let length = message.bytes;
    let to = message.address.filter(|_| is_refusal).and_then(|to| {
        let four = to.as_sockaddr_in().map(|to| SocketAddr::V4((*to).into()));
        four.or_else(|| to.as_sockaddr_in6().map(|to| SocketAddr::V6((*to).into())))
    });
    let quoted = bytes.get(..length).unwrap_or_default().to_vec();
    Some(to.map(|to| RefusedDatagram { to, quoted }))
}
