//! System calls without a safe interface: the ioctls of TUN devices, the scheduler's policy, a namespace's number, what is done
//! between fork and exec.
#![allow(unsafe_code, reason = "each call has a comment that says why it is sound")]

use nix::sys::signal::SigSet;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Makes a file of `/dev/net/tun` the TUN device of this name: created, or joined. `%d` in it is a number that the
/// kernel chooses; the name is returned.
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

/// Which super-frames and unfinished checksums the holder of the device takes.
pub fn set_tun_offload(file: &File, offload: libc::c_uint) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes a number in place of a pointer and touches no memory of ours.
    let done =
        unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offload)) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Puts the calling thread under SCHED_FIFO: it runs when it has something to do, before all that is
/// not real-time.
pub fn real_time_priority(priority: libc::c_int) -> io::Result<()> {
    // SAFETY: all zeros is a valid `sched_param`.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: reads one `sched_param`, which lives through the call; 0 is the calling thread. Children
    // of the thread are not to inherit it.
    let done = unsafe {
        let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
        libc::sched_setscheduler(0, policy, &raw const parameters)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The number of the network namespace that a socket belongs to. Unlike inodes it is never given again while the
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

/// Lets the program receive all signals: what its parent blocks, it would inherit.
pub fn with_all_signals(command: &mut Command) {
    // SAFETY: between fork and exec only sigprocmask is called, which is async-signal-safe, and nothing is allocated.
    unsafe { command.pre_exec(|| SigSet::empty().thread_set_mask().map_err(io::Error::from)) };
}
