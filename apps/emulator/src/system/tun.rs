//! A TUN device: the kernel's packets as a file.

use super::rights::{NET_ADMIN, failed};
use super::unsafe_calls::{attach_tun, set_tun_offload};
use crate::error::Error;
use crate::wire::frame::HEADER;
use rustix::process::geteuid;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};

const DEVICE: &str = "/dev/net/tun";
const COUNTERS: &str = "/proc/thread-self/net/dev";
/// Position of the count of dropped packets among a device's counters in `/proc/net/dev`; those for sending come
/// second.
const SENT_DROPPED: usize = 11;
/// Maximum size of a super-frame with its header, in bytes.
pub const MAX_FRAME: usize = HEADER + 65_535;
const OFFLOAD_CHECKSUM: u32 = 1;
const OFFLOAD_TCP: u32 = 2 | 4 | 8;
const OFFLOAD_UDP: u32 = 0x20 | 0x40;

/// Opens a new device. Returns its file and its name.
///
/// # Errors
/// No permission, no TUN support, or the name is taken.
pub fn open(name: &str, flags: libc::c_int) -> Result<(File, String), Error> {
    let open = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(DEVICE);
    let file = open.map_err(|e| match e.kind() {
        ErrorKind::NotFound => Error::new(format!(
            "this system has no TUN devices: {DEVICE} is missing (load the module `tun`, or docker \
             run --device /dev/net/tun)"
        )),
        ErrorKind::PermissionDenied if geteuid().is_root() => Error::new(format!(
            "no permission to open {DEVICE}: docker run --device {DEVICE} gives it; `narrows relay` needs none"
        )),
        ErrorKind::PermissionDenied => {
            Error::new(format!("no permission to open {DEVICE}: run as root, or give the file mode 0666"))
        }
        _ => Error::system(format_args!("cannot open {DEVICE}"), &e),
    })?;
    let name = attach_tun(&file, name, flags).map_err(|e| match e.kind() {
        _ if e.raw_os_error() == Some(libc::ENOTTY) => {
            Error::new(format!("{DEVICE} is no TUN device: `mknod {DEVICE} c 10 200` makes one"))
        }
        ErrorKind::ResourceBusy => Error::new(format!(
            "there is an interface {name} already, which no running `narrows link` made (`ip link del {name}` \
             removes it)"
        )),
        _ => failed(format_args!("cannot make the TUN device {name}"), &e, NET_ADMIN),
    })?;
    Ok((file, name))
}

/// A TUN device. The interface disappears when the last holder is dropped.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
    /// `/proc/net/dev` of the device's namespace.
    counters: File,
    /// Whether the kernel accepts super-frames of UDP (Linux 6.2). It always accepts those of TCP.
    pub udp_super_frames: bool,
}

impl Tun {
    /// Creates a device in the calling thread's network namespace. The kernel hands over packets with incomplete
    /// checksums and, if `super_frames` is set, super-frames.
    ///
    /// # Errors
    /// No permission, no TUN support, or the name is taken.
    pub fn create(name: &str, super_frames: bool) -> Result<Tun, Error> {
        // Fail if a persistent device of this name exists.
        let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR | libc::IFF_TUN_EXCL;
        let (file, _) = open(name, flags)?;
        let (tcp, udp) = if super_frames { (OFFLOAD_TCP, OFFLOAD_UDP) } else { (0, 0) };
        let usual = OFFLOAD_CHECKSUM | tcp;
        let udp_super_frames = set_tun_offload(&file, usual | udp).is_ok();
        if !udp_super_frames {
            let set = set_tun_offload(&file, usual);
            set.map_err(|e| Error::system(format_args!("cannot set {name}'s offload"), &e))?;
        }
        let counters = File::open(COUNTERS)
            .map_err(|e| Error::system(format_args!("cannot open {COUNTERS}"), &e))?;
        Ok(Tun { file, name: name.to_string(), counters, udp_super_frames })
    }

    /// The next frame that the kernel sends into the device; `None` if no frame is waiting.
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
                // The interface is down: no frame arrives until it is set up again.
                Err(e) if e.raw_os_error() == Some(libc::EIO) => Ok(None),
                Err(e) => Err(e),
            };
        }
    }

    /// Frames that the kernel dropped because too many waited to be read.
    pub fn dropped(&self) -> u64 {
        let mut text = Vec::new();
        let mut room = [0; 4096];
        // A read at offset 0 makes the kernel generate the file anew.
        while let Ok(bytes) = self.counters.read_at(&mut room, text.len() as u64) {
            if bytes == 0 {
                break;
            }
            text.extend_from_slice(room.get(..bytes).unwrap_or_default());
        }
        dropped(&String::from_utf8_lossy(&text), &self.name).unwrap_or(0)
    }

    /// Hands a frame to the kernel, which handles it as received by the device.
    ///
    /// # Errors
    /// The kernel rejects it.
    pub fn write(&self, frame: &[u8]) -> io::Result<()> {
        (&self.file).write(frame).map(drop)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The number of packets sent through a device and dropped there, from the text of `/proc/net/dev`.
fn dropped(text: &str, name: &str) -> Option<u64> {
    let of = |line: &str| -> Option<u64> {
        let counters = line.trim_start().strip_prefix(name)?.strip_prefix(':')?;
        counters.split_whitespace().nth(SENT_DROPPED)?.parse().ok()
    };
    text.lines().find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::interface;
    use crate::system::namespace::Namespace;
    use std::net::UdpSocket;

    #[test]
    fn packets_dropped_by_the_kernel_before_reading_are_counted() {
        let Ok(namespace) = Namespace::create("a") else {
            eprintln!("skipped: needs root");
            return;
        };
        let (sent, read, dropped) = namespace
            .enter(|| {
                let tun = Tun::create("narrowstest", true).unwrap();
                interface::up_tun("narrowstest", 1500).unwrap();
                interface::add_address("narrowstest", [198, 18, 0, 1].into(), 29).unwrap();
                let socket = UdpSocket::bind("198.18.0.1:0").unwrap();
                let sent = u64::from(interface::QUEUE) + 500;
                for _ in 0..sent {
                    socket.send_to(&[1], "198.18.0.2:9").unwrap();
                }
                let mut frame = vec![0; MAX_FRAME];
                let read = std::iter::from_fn(|| tun.read(&mut frame).unwrap()).count() as u64;
                (sent, read, tun.dropped())
            })
            .unwrap();
        assert!(dropped > 0);
        assert_eq!(read + dropped, sent);
    }

    #[test]
    fn a_device_is_found_by_its_whole_name() {
        let text = "Inter-| Receive\n face |bytes\n narrows10a: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
                    narrows1a:1 2 3 4 5 6 7 8 9 10 11 99 13 14 15 16\n";
        assert_eq!(super::dropped(text, "narrows1a"), Some(99));
        assert_eq!(super::dropped(text, "narrows10a"), Some(12));
        assert_eq!(super::dropped(text, "narrows2a"), None);
    }
}
