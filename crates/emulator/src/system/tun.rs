//! A TUN device: the kernel's packets as a file.

use super::unsafe_calls::{attach_tun, set_tun_offload};
use crate::error::Error;
use crate::wire::frame::HEADER;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;

const DEVICE: &str = "/dev/net/tun";
/// A super-frame and its header.
pub const MAX_FRAME: usize = HEADER + 65_535;
const OFFLOAD_CHECKSUM: u32 = 1;
const OFFLOAD_TCP: u32 = 2 | 4 | 8;
const OFFLOAD_UDP: u32 = 0x20 | 0x40;

/// The device; it is gone when all who hold it are.
#[derive(Debug)]
pub struct Tun {
    file: File,
    /// Whether the kernel takes super-frames of UDP (Linux 6.2).
    pub udp_super_frames: bool,
}

impl Tun {
    /// Makes one in the calling thread's network namespace. The kernel hands over super-frames and
    /// unfinished checksums.
    ///
    /// # Errors
    /// No permission, no such device, or the name is taken.
    pub fn create(name: &str) -> Result<Tun, Error> {
        let open = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(DEVICE);
        let file = open.map_err(|e| match e.kind() {
            ErrorKind::NotFound => Error::new(format!(
                "this system has no TUN devices: {DEVICE} is missing (load the module `tun`, or give the \
                 container the device)"
            )),
            ErrorKind::PermissionDenied => {
                Error::new(format!("no permission to open {DEVICE}: run as root, or give the file mode 0666"))
            }
            _ => Error::system(format_args!("cannot open {DEVICE}"), &e),
        })?;
        let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        attach_tun(&file, name, flags).map_err(|e| match e.kind() {
            ErrorKind::PermissionDenied => {
                Error::new("no permission to make a TUN device: run as root (CAP_NET_ADMIN)")
            }
            ErrorKind::ResourceBusy => {
                Error::new(format!("the interface {name} is in use already"))
            }
            _ => Error::system(format_args!("cannot make the TUN device {name}"), &e),
        })?;
        let usual = OFFLOAD_CHECKSUM | OFFLOAD_TCP;
        let udp_super_frames = set_tun_offload(&file, usual | OFFLOAD_UDP).is_ok();
        if !udp_super_frames {
            let set = set_tun_offload(&file, usual);
            set.map_err(|e| Error::system(format_args!("cannot set {name}'s offload"), &e))?;
        }
        Ok(Tun { file, udp_super_frames })
    }

    /// The next frame that the kernel sends into the device; `None` if there is none now.
    ///
    /// # Errors
    /// The device is gone.
    pub fn read(&self, frame: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            return match (&self.file).read(frame) {
                Ok(0) => Ok(None),
                Ok(bytes) => Ok(Some(bytes)),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(None),
                // It is down: nothing comes until somebody takes it up.
                Err(e) if e.raw_os_error() == Some(libc::EIO) => Ok(None),
                Err(e) => Err(e),
            };
        }
    }

    /// Hands a frame to the kernel, as received by the device.
    ///
    /// # Errors
    /// The kernel does not take it.
    pub fn write(&self, frame: &[u8]) -> io::Result<()> {
        (&self.file).write(frame).map(drop)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
