//! A UDP socket that does not block, with segmentation offload, coalesced receiving and ECN.

use crate::clock::{self, Clock};
use crate::refusals::Refusals;
pub use crate::refusals::RefusedDatagram;
use crate::wildcard;
use narrows_base::Time;
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, UdpSockRef, UdpSocketState};
use socket2::{Protocol, SockRef, Socket as Raw, Type};
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};

/// The largest payload of a UDP datagram, and of one send that the system cuts into segments.
pub const MAX_DATAGRAM: usize = 65_507;

/// Bytes of one receive buffer: the limit of coalescing.
const BUFFER: usize = 65_535;

/// Requested size of the system's buffers, bytes: 100 ms at 1 Gbit/s. A smaller size is accepted.
const SYSTEM_BUFFER: usize = 12 << 20;

/// A bound socket.
#[derive(Debug)]
pub struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    errors: AtomicU64,
    refusals: Refusals,
}

/// Whether datagrams left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendResult {
    /// The system accepted the datagrams, or refused them permanently, which is counted and treated like a loss in the
    /// network.
    Gone,
    /// The socket's buffer is full: send again later.
    Full,
}

impl Socket {
    /// Binds to an address. An IPv6 wildcard also serves IPv4; without IPv6 it serves IPv4 alone.
    ///
    /// # Errors
    /// The address is in use or not local, or the system lacks such sockets.
    pub fn bind(address: SocketAddr) -> io::Result<Socket> {
        Socket::of(wildcard::bound(address, Type::DGRAM, Protocol::UDP)?.into())
    }

    /// Takes over a bound socket: makes it non-blocking and enlarges its buffers.
    ///
    /// # Errors
    /// It is not bound, or the system refuses a required option.
    pub fn of(io: UdpSocket) -> io::Result<Socket> {
        let raw = SockRef::from(&io);
        enlarge(&raw);
        raw.set_nonblocking(true)?;
        let state = UdpSocketState::new(UdpSockRef::from(&io))?;
        without_destination(&io);
        let local = io.local_addr()?;
        Ok(Socket { io, state, local, errors: AtomicU64::new(0), refusals: Refusals::default() })
    }

    /// Local address.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    pub(crate) fn io(&self) -> &UdpSocket {
        &self.io
    }

    /// Most datagrams that one [`send`](Socket::send) can carry.
    pub fn segments(&self) -> usize {
        self.state.max_gso_segments().max(1)
    }

    /// Most datagrams that the system joins for one receive (GRO).
    pub fn coalesced(&self) -> usize {
        self.state.gro_segments().max(1)
    }

    /// Bytes of the system's receive buffer; absent if the system does not say. Linux counts its own overhead, too.
    pub fn receive_buffer(&self) -> Option<usize> {
        SockRef::from(&self.io).recv_buffer_size().ok()
    }

    /// Failed sends and receives, including ICMP errors.
    pub fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// Sends `contents` as datagrams of `segment` bytes; the last may be shorter. `ecn` is the two ECN bits.
    pub fn send(&self, to: SocketAddr, contents: &[u8], segment: usize, ecn: u8) -> SendResult {
        let to = self.family(to);
        let cut = segment > 0 && segment < contents.len();
        let transmit = quinn_udp::Transmit {
            destination: to,
            ecn: EcnCodepoint::from_bits(ecn),
            contents,
            segment_size: cut.then_some(segment),
            src_ip: None,
        };
        match self.state.try_send(UdpSockRef::from(&self.io), &transmit) {
            Ok(()) => SendResult::Gone,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => SendResult::Full,
            Err(_) if cut => {
                // Most likely the interface lacks segmentation offload, and the library has noted it: send one by one.
                // Datagrams that do not fit are lost, only this time.
                for one in contents.chunks(segment) {
                    let single =
                        quinn_udp::Transmit { contents: one, segment_size: None, ..transmit };
                    if self.state.try_send(UdpSockRef::from(&self.io), &single).is_err() {
                        self.errors.fetch_add(1, Ordering::Relaxed);
                    }
                }
                SendResult::Gone
            }
            Err(_) => {
                // An ICMP error of an earlier datagram fails the next send, which is then not executed: try again.
                self.errors.fetch_add(1, Ordering::Relaxed);
                let again = self.state.try_send(UdpSockRef::from(&self.io), &transmit);
                match again {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => SendResult::Full,
                    _ => SendResult::Gone,
                }
            }
        }
    }

    /// Maps an IPv4 address for an IPv6 socket.
    fn family(&self, to: SocketAddr) -> SocketAddr {
        match (self.local, to) {
            (SocketAddr::V6(_), SocketAddr::V4(v4)) => {
                SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port())
            }
            _ => to,
        }
    }

    /// Enables or disables reports that no socket receives at an address. Only Linux has them. While they are enabled,
    /// the caller must [read](Socket::refused) them after each wait.
    pub fn watch_refusals(&self, is_wanted: bool) {
        self.refusals.watch(&self.io, is_wanted);
    }

    /// The refused datagrams, one for each report since the last call.
    pub fn refused(&self) -> Vec<RefusedDatagram> {
        let all = self.refusals.read(&self.io).into_iter();
        all.map(|refused| RefusedDatagram { to: plain(refused.to), ..refused }).collect()
    }

    /// Receives the available datagrams, at most a batch; returns the number of filled buffers of
    /// `batch`.
    pub fn receive(&self, batch: &mut ReceiveBatch) -> usize {
        batch.filled = 0;
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(&mut []));
        let mut count = 0;
        for (slice, buffer) in slices.iter_mut().zip(batch.buffers.chunks_exact_mut(BUFFER)) {
            *slice = IoSliceMut::new(buffer);
            count += 1;
        }
        let slices = &mut slices[..count];
        let metas = &mut batch.metas[..count];
        // Several tries: each pending ICMP error fails one receive.
        for _ in 0..4 {
            match self.state.recv(UdpSockRef::from(&self.io), slices, metas) {
                Ok(n) => {
                    batch.filled = n;
                    return n;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return 0,
                Err(_) => {
                    self.errors.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        0
    }
}

/// Requests large system buffers. A privileged process gets them on Linux; elsewhere the system reduces the request to
/// its limit or refuses it, and a smaller one follows.
fn enlarge(raw: &Raw) {
    #[cfg(target_os = "linux")]
    {
        use rustix::net::sockopt;
        let received = sockopt::set_socket_recv_buffer_size_force(raw, SYSTEM_BUFFER).is_ok();
        if received && sockopt::set_socket_send_buffer_size_force(raw, SYSTEM_BUFFER).is_ok() {
            return;
        }
    }
    let sizes = [SYSTEM_BUFFER, 1 << 20];
    let _ = sizes.iter().any(|bytes| raw.set_recv_buffer_size(*bytes).is_ok());
    let _ = sizes.iter().any(|bytes| raw.set_send_buffer_size(*bytes).is_ok());
}

/// Disables the reporting of destination addresses, which quinn-udp enables. With time stamps and coalescing, its 96
/// bytes for control messages are too small, and the ECN bits of coalesced datagrams would be lost.
fn without_destination(io: &UdpSocket) {
    #[cfg(target_os = "linux")]
    {
        use nix::sys::socket::{setsockopt, sockopt};
        let _ = setsockopt(io, sockopt::Ipv4PacketInfo, &false);
        let _ = setsockopt(io, sockopt::Ipv6RecvPacketInfo, &false);
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = io;
    }
}

/// Reusable buffers for [`Socket::receive`].
#[derive(Debug)]
pub struct ReceiveBatch {
    buffers: Vec<u8>,
    metas: Vec<RecvMeta>,
    filled: usize,
}

/// One datagram, borrowed from the batch that received it.
#[derive(Debug)]
pub struct ReceivedDatagram<'a> {
    /// The sender's address; an IPv4-mapped IPv6 address is converted to IPv4.
    pub from: SocketAddr,
    /// Receive time of the kernel, by the caller's clock.
    pub at: Time,
    /// The two ECN bits.
    pub ecn: u8,
    /// Its payload.
    pub bytes: &'a mut [u8],
}

impl ReceiveBatch {
    /// With 1 to 32 buffers of 64 KB each.
    pub fn new(buffers: usize) -> ReceiveBatch {
        let buffers = buffers.clamp(1, BATCH_SIZE);
        ReceiveBatch {
            buffers: vec![0; buffers * BUFFER],
            metas: vec![RecvMeta::default(); buffers],
            filled: 0,
        }
    }

    /// Calls `take` for every datagram of the last receive, in order. With `stamped`, arrival times
    /// are the kernel's; otherwise they are now.
    pub fn each(
        &mut self,
        clock: &Clock,
        stamped: bool,
        mut take: impl FnMut(ReceivedDatagram<'_>),
    ) {
        if self.filled == 0 {
            return;
        }
        let now = clock.now();
        let wall = if stamped { clock::wall() } else { Default::default() };
        let filled = self.metas.iter().zip(self.buffers.chunks_exact_mut(BUFFER));
        for (meta, buffer) in filled.take(self.filled) {
            let at = match meta.timestamp {
                Some(stamp) if stamped => {
                    let age = clock::age(wall, stamp).as_nanos();
                    Time::from_nanos(now.as_nanos().saturating_sub(age))
                }
                _ => now,
            };
            let from = plain(meta.addr);
            let ecn = meta.ecn.map_or(0, |e| e as u8);
            let Some(bytes) = buffer.get_mut(..meta.len) else { continue };
            if meta.len == 0 {
                take(ReceivedDatagram { from, at, ecn, bytes });
            }
            for bytes in bytes.chunks_mut(meta.stride.max(1)) {
                take(ReceivedDatagram { from, at, ecn, bytes });
            }
        }
        self.filled = 0;
    }
}

/// The IPv4 address of an IPv4-mapped one, so that a peer has one address only.
fn plain(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::new(v4.into(), v6.port()),
            None => address,
        },
        SocketAddr::V4(_) => address,
    }
}
