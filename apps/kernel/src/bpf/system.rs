//! bpf(2), mmap(2), sched_setscheduler(2) and two socket options: the only unsafe code of the crate.

#![allow(unsafe_code, reason = "these system calls have no safe interface")]

use aya_obj::generated::{bpf_attr, bpf_cmd};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// No attribute set. The union's members are plain numbers.
pub fn attributes() -> bpf_attr {
    // SAFETY: every member is made of integers and arrays of them, for which zero is a value.
    unsafe { std::mem::zeroed() }
}

/// bpf(2).
///
/// The caller must keep the memory alive that the attributes point to. The kernel may write to it only if it is
/// mutable.
pub fn bpf(command: bpf_cmd, attributes: &bpf_attr) -> io::Result<i64> {
    // SAFETY: the size is that of the attributes. Pointers within them are those of this module's callers, all of which
    // pass slices that they hold over the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as libc::c_int,
            std::ptr::from_ref(attributes),
            size_of::<bpf_attr>(),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// bpf(2) where its result is a new descriptor.
pub fn bpf_fd(command: bpf_cmd, attributes: &bpf_attr) -> io::Result<OwnedFd> {
    let fd = bpf(command, attributes)?;
    // SAFETY: the kernel has just created this descriptor, and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Puts the calling thread under SCHED_FIFO: it runs when it has something to do, before all that is not real-time.
pub fn real_time_priority(priority: libc::c_int) -> io::Result<()> {
    // SAFETY: all zeros is a valid `sched_param`.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: reads one `sched_param`, which lives through the call; 0 is the calling thread. Its children are not
    // to inherit it.
    let done = unsafe {
        let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
        libc::sched_setscheduler(0, policy, &raw const parameters)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Bytes of `TCP_INFO` to request: up to the timeouts' count and duration.
pub const TCP_INFO_BYTES: usize = 248;

/// getsockopt(2) with `TCP_INFO`; fields that an older kernel lacks stay 0.
pub fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<[u8; TCP_INFO_BYTES]> {
    let mut bytes = [0; TCP_INFO_BYTES];
    let mut length = TCP_INFO_BYTES as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into an array of that size, which lives through the call.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(bytes) }
}

/// The number of a descriptor, as attributes carry it.
pub fn number(fd: &OwnedFd) -> u32 {
    fd.as_raw_fd().unsigned_abs()
}

/// Memory of a map, shared with the kernel.
#[derive(Debug)]
pub struct SharedMemory {
    start: *mut u8,
    length: usize,
    writable: bool,
}

// SAFETY: all accesses are atomic, or of bytes that the kernel does not write any more.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Maps `length` bytes of a map from `offset`.
    pub fn map(fd: &OwnedFd, offset: u64, length: usize, writable: bool) -> io::Result<Self> {
        let mut protection = ProtFlags::READ;
        protection.set(ProtFlags::WRITE, writable);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe {
            mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, fd.as_fd(), offset)
        }?;
        Ok(SharedMemory { start: start.cast(), length, writable })
    }

    fn at<T>(&self, offset: usize) -> *mut T {
        let end = offset.checked_add(size_of::<T>());
        assert!(end.is_some_and(|end| end <= self.length), "outside of the mapping");
        assert!(offset.is_multiple_of(align_of::<T>()), "not aligned");
        // SAFETY: within the mapping, as asserted.
        unsafe { self.start.add(offset).cast() }
    }
    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: mapped and aligned; shared memory is only accessed as atomics.
        unsafe { AtomicU64::from_ptr(self.at(offset)) }
    }
    fn half(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(self.at(offset)) }
    }

    /// Loads eight bytes.
    pub fn load(&self, offset: usize) -> u64 {
        self.word(offset).load(Ordering::Acquire)
    }
    /// Loads four bytes.
    pub fn load_u32(&self, offset: usize) -> u32 {
        self.half(offset).load(Ordering::Acquire)
    }
    /// Stores eight bytes, after all that was stored before.
    pub fn store(&self, offset: usize, value: u64) {
        assert!(self.writable, "read-only mapping");
        self.word(offset).store(value, Ordering::Release);
    }
    /// Stores four bytes.
    pub fn store_u32(&self, offset: usize, value: u32) {
        assert!(self.writable, "read-only mapping");
        self.half(offset).store(value, Ordering::Release);
    }
    /// Stores eight bytes, before any later load of the program.
    pub fn store_then_fence(&self, offset: usize, value: u64) {
        self.store(offset, value);
        std::sync::atomic::fence(Ordering::SeqCst);
    }
    /// Adds to eight bytes that only one thread writes.
    pub fn add(&self, offset: usize, value: u64) {
        self.store(offset, self.load(offset).wrapping_add(value));
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: mapped here with this length; no borrow of it outlives it. An error leaves it mapped.
        let _ = unsafe { munmap(self.start.cast(), self.length) };
    }
}
