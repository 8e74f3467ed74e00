//! A network interface of this machine; its packets are read and written by a program.

use crate::error::Error;
use crate::system::interface::{self, FoundRoute};
use crate::system::tun;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

/// A TUN device. The interface, its addresses and its routes disappear when this is dropped or the process is killed.
#[derive(Debug)]
pub struct PacketInterface {
    file: File,
    name: String,
}

impl PacketInterface {
    /// Creates a device in the calling thread's network namespace. It is down and has no address. The kernel replaces
    /// `%d` in its name by a number.
    ///
    /// # Errors
    /// No permission, no TUN support, or the name is taken.
    pub fn create(name: &str) -> Result<PacketInterface, Error> {
        // The kernel splits super-frames and completes checksums itself.
        let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_TUN_EXCL;
        let (file, name) = tun::open(name, flags)?;
        Ok(PacketInterface { file, name })
    }

    /// Name of the interface as the kernel chose it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next packet that the kernel sends into the interface. Does not block.
    ///
    /// # Errors
    /// `WouldBlock`: no packet is waiting.
    pub fn read(&self, packet: &mut [u8]) -> io::Result<usize> {
        (&self.file).read(packet)
    }

    /// Hands a packet to the kernel, which handles it as received from the interface.
    ///
    /// # Errors
    /// The kernel rejects it.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        (&self.file).write(packet).map(drop)
    }

    /// Sets the interface up with this MTU. The kernel sends no packets of its own into it.
    ///
    /// # Errors
    /// No permission.
    pub fn up(&self, mtu: u32) -> Result<(), Error> {
        interface::up_tun(&self.name, mtu)
    }

    /// Changes its MTU.
    ///
    /// # Errors
    /// No permission, or no such MTU.
    pub fn set_mtu(&self, mtu: u32) -> Result<(), Error> {
        interface::set_mtu(&self.name, mtu)
    }

    /// Adds an address, and a route to the address's network.
    ///
    /// # Errors
    /// No permission.
    pub fn add_address(&self, address: IpAddr, prefix: u8) -> Result<(), Error> {
        interface::add_address(&self.name, address, prefix)
    }

    /// Removes an address.
    ///
    /// # Errors
    /// The interface does not have this address.
    pub fn remove_address(&self, address: IpAddr, prefix: u8) -> Result<(), Error> {
        interface::remove_address(&self.name, address, prefix)
    }

    /// Routes a network through the interface.
    ///
    /// # Errors
    /// Such a route exists already.
    pub fn add_route(&self, to: IpAddr, prefix: u8) -> Result<(), Error> {
        interface::add_route(to, prefix, &self.name, None)
    }
}

impl AsFd for PacketInterface {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsRawFd for PacketInterface {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

/// Whether this machine has a more specific route to an address than a default route: the address is its own, a
/// neighbour's, or in a network with a route of its own.
///
/// # Errors
/// The kernel does not answer.
pub fn has_own_route(to: IpAddr) -> Result<bool, Error> {
    Ok(interface::find_route(to, true)?.is_some_and(|found| found.prefix > 0))
}

/// The current route to one address, kept beside routes that are added later; removed when this is dropped.
#[derive(Debug)]
pub struct KeptRoute {
    to: IpAddr,
    found: FoundRoute,
}

impl KeptRoute {
    /// Adds the route. `None` if a route to just this address exists already, or the address is unreachable.
    ///
    /// # Errors
    /// No permission.
    pub fn to(to: IpAddr) -> Result<Option<KeptRoute>, Error> {
        let all = if to.is_ipv4() { 32 } else { 128 };
        if interface::find_route(to, true)?.is_some_and(|found| found.prefix == all) {
            return Ok(None);
        }
        let Some(found) = interface::find_route(to, false)? else { return Ok(None) };
        interface::keep_route(to, &found, true)?;
        Ok(Some(KeptRoute { to, found }))
    }
}

impl Drop for KeptRoute {
    fn drop(&mut self) {
        // The route may have disappeared with its interface.
        let _ = interface::keep_route(self.to, &self.found, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::namespace::Namespace;
    use std::net::UdpSocket;

    #[test]
    fn packets_pass_and_everything_is_gone_afterwards() {
        let Ok(namespace) = Namespace::create("a") else {
            eprintln!("skipped: needs root");
            return;
        };
        let address = IpAddr::from([10, 99, 0, 1]);
        let other = IpAddr::from([10, 99, 0, 2]);
        namespace
            .enter(|| {
                let device = PacketInterface::create("ntun%d").unwrap();
                assert_eq!(device.name(), "ntun0");
                device.up(1400).unwrap();
                device.add_address(address, 24).unwrap();
                device.set_mtu(1300).unwrap();
                assert_eq!(has_own_route(other), Ok(true));
                assert_eq!(has_own_route([10, 98, 0, 1].into()), Ok(false));
                let socket = UdpSocket::bind((address, 0)).unwrap();
                socket.send_to(b"out", (other, 9)).unwrap();
                let mut packet = [0; 2000];
                assert_eq!(device.read(&mut packet).unwrap(), 20 + 8 + 3);
                assert_eq!(
                    (&packet[12..16], &packet[16..20]),
                    (&[10, 99, 0, 1][..], &[10, 99, 0, 2][..])
                );
                assert_eq!(device.read(&mut packet).unwrap_err().kind(), io::ErrorKind::WouldBlock);
                device.add_route([10, 98, 0, 0].into(), 16).unwrap();
                assert_eq!(has_own_route([10, 98, 0, 1].into()), Ok(true));
                device.remove_address(address, 24).unwrap();
                assert_eq!(has_own_route(other), Ok(false));
                drop(device);
                assert_eq!(has_own_route([10, 98, 0, 1].into()), Ok(false));
                assert_eq!(PacketInterface::create("ntun%d").unwrap().name(), "ntun0");
            })
            .unwrap();
    }

    #[test]
    fn the_way_to_an_address_is_kept_while_others_change() {
        let Ok(namespace) = Namespace::create("a") else {
            eprintln!("skipped: needs root");
            return;
        };
        namespace
            .enter(|| {
                let near = PacketInterface::create("near").unwrap();
                let far = PacketInterface::create("far").unwrap();
                near.up(1400).unwrap();
                far.up(1400).unwrap();
                near.add_address([10, 99, 0, 1].into(), 24).unwrap();
                interface::add_route([0, 0, 0, 0].into(), 0, "near", Some([10, 99, 0, 7].into()))
                    .unwrap();
                let server = IpAddr::from([203, 0, 113, 1]);
                let before = interface::find_route(server, false).unwrap().unwrap();
                let kept = KeptRoute::to(server).unwrap().unwrap();
                assert!(KeptRoute::to(server).unwrap().is_none(), "it has a route of its own now");
                far.add_route([0, 0, 0, 0].into(), 1).unwrap();
                far.add_route([128, 0, 0, 0].into(), 1).unwrap();
                let now = interface::find_route(server, false).unwrap().unwrap();
                assert_eq!((now.interface, now.gateway), (before.interface, before.gateway));
                assert_eq!(now.gateway, Some([10, 99, 0, 7].into()));
                drop(kept);
                let now = interface::find_route(server, false).unwrap().unwrap();
                assert!(now.interface != before.interface && now.gateway.is_none());
            })
            .unwrap();
    }
}
