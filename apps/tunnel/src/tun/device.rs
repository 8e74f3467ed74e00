//! The TUN interface, driven by the runtime.

use narrows_peers::{Error, ErrorKind};
use std::net::IpAddr;

/// Name of the interface; the kernel chooses the number.
#[cfg(target_os = "linux")]
const NAME: &str = "ntun%d";

fn local(line: impl ToString) -> Error {
    Error::new(ErrorKind::Local, line.to_string())
}

/// An interface of this machine; it disappears when this is dropped.
pub(crate) struct Device(Inner);

#[cfg(target_os = "linux")]
type Inner = tokio::io::unix::AsyncFd<narrows_emulator::PacketInterface>;
#[cfg(not(target_os = "linux"))]
type Inner = std::convert::Infallible;

#[cfg(target_os = "linux")]
impl Device {
    /// Creates the interface. Call it within a tokio runtime.
    ///
    /// # Errors
    /// No permission, or no TUN support; the line names the remedy.
    pub fn create() -> Result<Device, Error> {
        let made = narrows_emulator::PacketInterface::create(NAME);
        let made = made.map_err(|e| Error::new(ErrorKind::Input, format!("--tun: {e}")))?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe; the interface owns its file and never changes it"
        )]
        let device = Inner::with_interest(made, tokio::io::Interest::READABLE);
        device.map(Device).map_err(local)
    }

    pub fn name(&self) -> &str {
        self.0.get_ref().name()
    }

    /// Waits for the next packet that the kernel sends, and returns its length.
    pub async fn read(&self, packet: &mut [u8]) -> std::io::Result<usize> {
        self.0.async_io(tokio::io::Interest::READABLE, |device| device.read(packet)).await
    }

    /// Hands a packet to the kernel; if the kernel rejects it, it is lost.
    pub fn write(&self, packet: &[u8]) {
        let _ = self.0.get_ref().write(packet);
    }

    pub fn up(&self, mtu: usize) -> Result<(), Error> {
        self.0.get_ref().up(mtu as u32).map_err(local)
    }

    pub fn set_mtu(&self, mtu: usize) -> Result<(), Error> {
        self.0.get_ref().set_mtu(mtu as u32).map_err(local)
    }

    pub fn add_address(&self, address: IpAddr, prefix: u8) -> Result<(), Error> {
        self.0.get_ref().add_address(address, prefix).map_err(local)
    }

    pub fn remove_address(&self, address: IpAddr, prefix: u8) -> Result<(), Error> {
        self.0.get_ref().remove_address(address, prefix).map_err(local)
    }

    pub fn add_route(&self, to: IpAddr, prefix: u8) -> Result<(), Error> {
        self.0.get_ref().add_route(to, prefix).map_err(local)
    }
}

#[cfg(target_os = "linux")]
pub(crate) use narrows_emulator::KeptRoute;

/// Whether this machine has a more specific route to an address than a default route.
#[cfg(target_os = "linux")]
pub(crate) fn has_own_route(to: IpAddr) -> Result<bool, Error> {
    narrows_emulator::has_own_route(to).map_err(local)
}

/// Keeps the current route to an address while the result is held.
#[cfg(target_os = "linux")]
pub(crate) fn keep_route(to: IpAddr) -> Result<Option<KeptRoute>, Error> {
    KeptRoute::to(to).map_err(local)
}

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::*;

/// On systems without TUN devices no interface can be created, so these functions are never called.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::*;

    impl Device {
        pub fn create() -> Result<Device, Error> {
            Err(Error::new(ErrorKind::Input, "--tun needs Linux (TUN devices)"))
        }
        pub fn name(&self) -> &str {
            match self.0 {}
        }
        pub async fn read(&self, _: &mut [u8]) -> std::io::Result<usize> {
            match self.0 {}
        }
        pub fn write(&self, _: &[u8]) {
            match self.0 {}
        }
        pub fn up(&self, _: usize) -> Result<(), Error> {
            match self.0 {}
        }
        pub fn set_mtu(&self, _: usize) -> Result<(), Error> {
            match self.0 {}
        }
        pub fn add_address(&self, _: IpAddr, _: u8) -> Result<(), Error> {
            match self.0 {}
        }
        pub fn remove_address(&self, _: IpAddr, _: u8) -> Result<(), Error> {
            match self.0 {}
        }
        pub fn add_route(&self, _: IpAddr, _: u8) -> Result<(), Error> {
            match self.0 {}
        }
    }

    pub(crate) enum KeptRoute {}

    pub(crate) fn has_own_route(_: IpAddr) -> Result<bool, Error> {
        Err(local("--tun needs Linux"))
    }

    pub(crate) fn keep_route(_: IpAddr) -> Result<Option<KeptRoute>, Error> {
        Err(local("--tun needs Linux"))
    }
}
