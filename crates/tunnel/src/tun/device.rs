//! The interface, driven by the runtime.

use narrows_files::{Error, Kind};
use std::net::IpAddr;

/// Its name; the kernel chooses the number.
#[cfg(target_os = "linux")]
const NAME: &str = "ntun%d";

fn local(line: impl ToString) -> Error {
    Error::new(Kind::Local, line.to_string())
}

/// An interface of this machine; it is gone when this is dropped.
pub(crate) struct Device(Inner);

#[cfg(target_os = "linux")]
type Inner = tokio::io::unix::AsyncFd<narrows_emulator::PacketInterface>;
#[cfg(not(target_os = "linux"))]
type Inner = std::convert::Infallible;

#[cfg(target_os = "linux")]
impl Device {
    /// Makes it; within a runtime.
    ///
    /// # Errors
    /// No permission, or no such device: what the user can change.
    pub fn create() -> Result<Device, Error> {
        let made = narrows_emulator::PacketInterface::create(NAME);
        let made = made.map_err(|e| Error::new(Kind::Input, format!("--tun: {e}")))?;
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

    /// Hands a packet to the kernel; one that it does not take is lost.
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

/// Whether this machine reaches an address by another route than a default one.
#[cfg(target_os = "linux")]
pub(crate) fn has_own_route(to: IpAddr) -> Result<bool, Error> {
    narrows_emulator::has_own_route(to).map_err(local)
}

/// Keeps the way to an address as it is, while this is held.
#[cfg(target_os = "linux")]
pub(crate) fn keep_route(to: IpAddr) -> Result<Option<KeptRoute>, Error> {
    KeptRoute::to(to).map_err(local)
}

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::*;

/// There is no interface, so nothing of one can be called.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::*;

    impl Device {
        pub fn create() -> Result<Device, Error> {
            Err(Error::new(Kind::Input, "--tun needs Linux (TUN devices)"))
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
