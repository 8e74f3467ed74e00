//! Nodes made of [smoltcp](https://docs.rs/smoltcp)'s interface and sockets.
//!
//! Datagrams carry whole IP packets: TCP, UDP, ICMP. Both ends of a connection are such nodes. Address translators
//! change the addresses and ports of TCP and UDP. A TCP socket has no congestion control unless the application sets one,
//! with smoltcp's feature `socket-tcp-cubic` or `socket-tcp-reno`.
//!
//! ```
//! use narrows_testnet::smoltcp::{IpApplication, IpNode};
//! use narrows_testnet::{Network, run};
//! use smoltcp::iface::{Interface, SocketHandle, SocketSet};
//! use smoltcp::socket::tcp::{Socket, SocketBuffer};
//! use std::time::{Duration, Instant};
//!
//! /// Connects, sends or receives a byte, and closes.
//! struct Byte(Option<SocketHandle>, bool);
//!
//! impl IpApplication for Byte {
//!     fn turn(&mut self, _: Instant, interface: &mut Interface, sockets: &mut SocketSet<'static>) {
//!         let handle = *self.0.get_or_insert_with(|| {
//!             let buffer = || SocketBuffer::new(vec![0; 1 << 16]);
//!             let mut socket = Socket::new(buffer(), buffer());
//!             let server = "10.0.0.2".parse::<std::net::IpAddr>().unwrap();
//!             let _ = match interface.has_ip_addr(server) {
//!                 true => socket.listen(80),
//!                 false => socket.connect(interface.context(), (server, 80), 50_000).map_err(|_| unreachable!()),
//!             };
//!             sockets.add(socket)
//!         });
//!         let socket = sockets.get_mut::<Socket<'_>>(handle);
//!         if socket.can_recv() || (socket.can_send() && socket.send_slice(&[7]).is_ok()) {
//!             self.1 = true;
//!         }
//!     }
//!     fn done(&self) -> bool {
//!         self.1
//!     }
//! }
//!
//! let mut network = Network::new(1);
//! let addresses = ["10.0.0.1".parse()?, "10.0.0.2".parse()?];
//! let a = network.add_host(&addresses[..1])?;
//! let b = network.add_host(&addresses[1..])?;
//! network.add_link(a, b, "20Mbit/s,25ms,loss=1%")?;
//! let mut client = IpNode::new(&network, &addresses[..1], 1500, Byte(None, false))?;
//! let mut server = IpNode::new(&network, &addresses[1..], 1500, Byte(None, false))?;
//! let ended = run(&mut network, &mut [(a, &mut client), (b, &mut server)], Duration::from_secs(9));
//! assert!(ended.is_done());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::ip_packet;
use crate::{Datagram, Network, Node, SpecError};
use narrows_base::RandomKey;
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::time::{Duration as IpDuration, Instant as IpInstant};
use smoltcp::wire::{HardwareAddress, IpCidr};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// Bytes of a device's largest packet. Each host must accept 576 (RFC 791); the field for the length ends at 65,535.
const MTUS: RangeInclusive<usize> = 576..=65_535;
/// Time after which an interface is polled again that has something to send and did not send it.
const RETRY: IpDuration = IpDuration::from_millis(1);

/// The user of an interface's sockets.
pub trait IpApplication {
    /// Its turn: after arrivals and timers, before packets are sent.
    fn turn(&mut self, now: Instant, interface: &mut Interface, sockets: &mut SocketSet<'static>);
    /// Whether it has finished.
    fn done(&self) -> bool;
    /// A number that scripts check; see [`Node::variable`].
    fn variable(&self, name: &str) -> Option<f64> {
        let _ = name;
        None
    }
    /// An instruction of a script; see [`Node::command`].
    fn command(&mut self, text: &str) -> bool {
        let _ = text;
        false
    }
}

/// An interface with its sockets, and the application that uses them.
pub struct IpNode<A> {
    device: PacketDevice,
    start: Instant,
    polled: IpInstant,
    /// The interface. All destinations are on its link, so it needs no routes.
    pub interface: Interface,
    /// Sockets that the application adds and uses.
    pub sockets: SocketSet<'static>,
    /// The application above them.
    pub application: A,
}

impl<A: IpApplication> IpNode<A> {
    /// An interface with these addresses, which are its host's. The MTU is in bytes of an IP packet. smoltcp draws its
    /// random numbers from the network's seed and the first address.
    ///
    /// # Errors
    /// An address that is not unicast, more of them than smoltcp was built for (by default 2), or an MTU outside
    /// 576 to 65,535.
    pub fn new(
        network: &Network,
        addresses: &[IpAddr],
        mtu: usize,
        application: A,
    ) -> Result<IpNode<A>, SpecError> {
        if !MTUS.contains(&mtu) {
            return Err(SpecError::new(format!("MTU {mtu}: expected 576 to 65535 bytes")));
        }
        let mut device = PacketDevice { mtu, ..PacketDevice::default() };
        let key = RandomKey::from_seed(network.seed()).named("smoltcp");
        let name = addresses.first().map(ToString::to_string).unwrap_or_default();
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = key.named(&name).bits();
        let mut interface = Interface::new(config, &mut device, IpInstant::ZERO);
        for address in addresses {
            let cidr = IpCidr::new((*address).into(), 0);
            let mut is_added = false;
            if cidr.address().is_unicast() {
                interface.update_ip_addrs(|all| is_added = all.push(cidr).is_ok());
            }
            if !is_added {
                let text = format!("{address}: not unicast, or more addresses than smoltcp allows");
                return Err(SpecError::new(text));
            }
        }
        let start = network.start();
        let sockets = SocketSet::new(Vec::new());
        Ok(IpNode { device, start, polled: IpInstant::ZERO, interface, sockets, application })
    }
}

impl<A: IpApplication> Node for IpNode<A> {
    fn handle(&mut self, _now: Instant, datagram: Datagram) {
        let packet = ip_packet::of_datagram(&datagram).map(|packet| packet.into_owned());
        self.device.received.extend(packet);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        if self.device.sent.is_empty() {
            let micros = now.saturating_duration_since(self.start).as_micros();
            self.polled = IpInstant::from_micros(i64::try_from(micros).unwrap_or(i64::MAX));
            self.interface.poll(self.polled, &mut self.device, &mut self.sockets);
            self.application.turn(now, &mut self.interface, &mut self.sockets);
            self.interface.poll(self.polled, &mut self.device, &mut self.sockets);
        }
        self.device.sent.pop_front()
    }

    fn next_timeout(&mut self) -> Option<Instant> {
        let due = self.interface.poll_at(self.polled, &self.sockets)?;
        let due = if due > self.polled { due } else { self.polled + RETRY };
        self.start.checked_add(Duration::from_micros(due.total_micros().unsigned_abs()))
    }

    fn done(&self) -> bool {
        self.application.done()
    }

    fn variable(&self, name: &str) -> Option<f64> {
        self.application.variable(name)
    }

    fn command(&mut self, _now: Instant, text: &str) -> bool {
        self.application.command(text)
    }
}

/// Packets between an interface and the network.
#[derive(Debug, Default)]
struct PacketDevice {
    mtu: usize,
    received: VecDeque<Vec<u8>>,
    sent: VecDeque<Datagram>,
}

impl phy::Device for PacketDevice {
    type RxToken<'a> = Receiving;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _now: IpInstant) -> Option<(Receiving, Sending<'_>)> {
        let packet = self.received.pop_front()?;
        Some((Receiving(packet), Sending(&mut self.sent)))
    }

    fn transmit(&mut self, _now: IpInstant) -> Option<Sending<'_>> {
        Some(Sending(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities
    }
}

/// A packet that has arrived.
struct Receiving(Vec<u8>);

impl phy::RxToken for Receiving {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

/// Space for a packet to send.
struct Sending<'a>(&'a mut VecDeque<Datagram>);

impl phy::TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut packet = vec![0; len];
        let result = write(&mut packet);
        self.0.extend(ip_packet::to_datagram(packet));
        result
    }
}
