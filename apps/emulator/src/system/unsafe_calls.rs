//! System calls without a safe interface: ioctls of TUN devices, the scheduler's policy, a namespace's cookie, and
//! actions between fork and exec.
//! between fork and exec.
#![allow(unsafe_code, reason = "each call has a comment that says why it is sound")]

use nix::sys::signal::SigSet;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Attaches a file of `/dev/net/tun` to the TUN device of this name, which is created if it does not exist. The kernel
/// replaces `%d` by a number; the resulting name is returned.
pub fn attach_tun(file: &File, name: &str, flags: libc::c_int) -> io::Result<String> {
    // SAFETY: all zeros is a valid `ifreq`: it is made of numbers, and unions of them.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which lives through the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    let name = request.ifr_name.iter().take_while(|c| **c != 0).map(|c| *c as u8);
    Ok(String::from_utf8_lossy(&name.collect::<Vec<u8>>()).into_owned())
}

/// Sets which super-frames and incomplete checksums the holder of the device accepts.
pub fn set_tun_offload(file: &File, offload: libc::c_uint) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes a number in place of a pointer and accesses no memory of this process.
    let done =
        unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offload)) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Puts the calling thread under SCHED_FIFO: whenever it is ready, it runs before all threads that are not real-time.
pub fn real_time_priority(priority: libc::c_int) -> io::Result<()> {
    // SAFETY: all zeros is a valid `sched_param`.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: reads one `sched_param`, which lives through the call; 0 is the calling thread. The flag prevents that
    // children of the thread inherit the policy.
    let done = unsafe {
        let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
        libc::sched_setscheduler(0, policy, &raw const parameters)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The cookie of the network namespace that a socket belongs to. Unlike inode numbers it is never used again while the
/// system runs (Linux 5.14).
pub fn namespace_cookie(socket: &impl std::os::fd::AsRawFd) -> io::Result<u64> {
    let mut cookie = 0u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: writes at most `length` bytes to `cookie`, and the length written; both live through the call.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(cookie) }
}

/// Clears the program's signal mask, which it would otherwise inherit from this process.
pub fn with_all_signals(command: &mut Command) {
    // SAFETY: between fork and exec only sigprocmask is called, which is async-signal-safe; the closure allocates no
    // memory.
    unsafe { command.pre_exec(|| SigSet::empty().thread_set_mask().map_err(io::Error::from)) };
}
