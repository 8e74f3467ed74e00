#![doc = include_str!("../README.md")]
#![allow(unsafe_code, reason = "pointers of C; each block says why it is sound")]

use narrows_congestion::quic::{QuicAdapter, QuicControllers, QuicStack};
use narrows_testnet::{Datagram, Description, Ecn, NodeId};
use std::ffi::{CStr, c_char, c_int};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

const OK: c_int = 0;
const INVALID: c_int = -1;
const TOO_SMALL: c_int = -2;
const FAILED: c_int = -3;
const NEVER: u64 = u64::MAX;

/// Largest datagram, and largest batch of segments.
const MAX_DATAGRAM: usize = 65_535;
const MAX_BATCH: usize = 1 << 20;
/// IPv4 and UDP headers of a datagram without payload count as one segment; smaller segments would only cost memory.
const MIN_SEGMENT: usize = 16;

static STACK: QuicStack =
    QuicStack { name: "the C interface", has_packet_numbers: true, has_pacing_rate: true };

/// The caller's clock.
struct Clock {
    epoch: Instant,
    /// The largest time given so far.
    latest: u64,
}

impl Clock {
    #[allow(
        clippy::disallowed_methods,
        reason = "the origin of virtual time; any instant would do"
    )]
    fn starting() -> Clock {
        Clock { epoch: Instant::now(), latest: 0 }
    }
    /// A present time, which never decreases.
    fn now(&mut self, nanos: u64) -> Option<Instant> {
        self.latest = self.latest.max(nanos);
        self.past(self.latest)
    }
    fn past(&self, nanos: u64) -> Option<Instant> {
        self.epoch.checked_add(Duration::from_nanos(nanos))
    }
}

/// See `narrows.h`.
pub struct Controller {
    adapter: QuicAdapter,
    clock: Clock,
    has_failed: bool,
}

/// See `narrows.h`.
pub struct Network {
    description: Description,
    clock: Clock,
    /// A datagram that did not fit into the caller's buffer.
    kept: Option<(NodeId, Datagram)>,
    has_failed: bool,
}

/// See `narrows.h`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Address {
    /// IPv4: the first four bytes.
    pub ip: [u8; 16],
    /// 0 for IPv4.
    pub is_ipv6: u8,
    /// In the machine's order.
    pub port: u16,
}

impl From<Address> for SocketAddr {
    fn from(a: Address) -> SocketAddr {
        let [b0, b1, b2, b3, ..] = a.ip;
        let ip = match a.is_ipv6 {
            0 => IpAddr::V4(Ipv4Addr::new(b0, b1, b2, b3)),
            _ => IpAddr::V6(Ipv6Addr::from(a.ip)),
        };
        SocketAddr::new(ip, a.port)
    }
}

impl From<SocketAddr> for Address {
    fn from(a: SocketAddr) -> Address {
        let mut ip = [0; 16];
        match a.ip() {
            IpAddr::V4(v4) => ip[..4].copy_from_slice(&v4.octets()),
            IpAddr::V6(v6) => ip = v6.octets(),
        }
        Address { ip, is_ipv6: u8::from(a.is_ipv6()), port: a.port() }
    }
}

/// A text of C. `None` if it is NULL or not UTF-8.
///
/// # Safety
/// NULL, or a text that ends with a NUL and does not change meanwhile.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    // SAFETY: the caller's promise; NULL is excluded.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }).and_then(|t| t.to_str().ok())
}

/// Writes a message, cut to the buffer.
///
/// # Safety
/// `buffer` is NULL or has `size` writable bytes.
unsafe fn write_message(message: &str, buffer: *mut c_char, size: usize) {
    let Some(room) = size.checked_sub(1).filter(|_| !buffer.is_null()) else { return };
    let mut end = message.len().min(room);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    // SAFETY: `end` + 1 bytes are at most `size`, which the caller promises to be writable.
    unsafe {
        std::ptr::copy_nonoverlapping(message.as_ptr(), buffer.cast::<u8>(), end);
        buffer.add(end).write(0);
    }
}

/// Builds an object for C, or writes why not.
///
/// # Safety
/// As [`write_message`].
unsafe fn build<T>(
    buffer: *mut c_char,
    size: usize,
    build: impl FnOnce() -> Result<T, String>,
) -> *mut T {
    let built = catch_unwind(AssertUnwindSafe(build));
    match built.unwrap_or_else(|_| Err("a fault inside the library".into())) {
        Ok(object) => Box::into_raw(Box::new(object)),
        Err(why) => {
            // SAFETY: the caller's promise.
            unsafe { write_message(&why, buffer, size) };
            std::ptr::null_mut()
        }
    }
}

/// Calls a controller.
///
/// # Safety
/// `controller` is NULL or from `narrows_controller_new` and not freed, and no other thread uses it.
unsafe fn controller(
    controller: *mut Controller,
    call: impl FnOnce(&mut Controller) -> Option<()>,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some(controller) = (unsafe { controller.as_mut() }) else { return INVALID };
    if controller.has_failed {
        return FAILED;
    }
    match catch_unwind(AssertUnwindSafe(|| call(controller))) {
        Ok(Some(())) => OK,
        Ok(None) => INVALID,
        Err(_) => {
            controller.has_failed = true;
            FAILED
        }
    }
}

/// See `narrows.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_controller_new(
    specification: *const c_char,
    mtu: u16,
    seed: u64,
    now: u64,
    message: *mut c_char,
    message_size: usize,
) -> *mut Controller {
    // SAFETY: a text by the header.
    let specification = unsafe { text(specification) };
    // SAFETY: a buffer of that size by the header.
    unsafe {
        build(message, message_size, || {
            let specification = specification.ok_or("the specification is no text in UTF-8")?;
            if mtu == 0 {
                return Err("an mtu of 0: at least 1 byte is expected".into());
            }
            let controllers = QuicControllers::new(specification, &STACK);
            let controllers = controllers.map_err(|e| e.to_string())?.with_seed(seed);
            let mut clock = Clock::starting();
            let start = clock.now(now).ok_or("the time is too large for this system")?;
            let adapter = controllers.build(start, mtu);
            Ok(Controller { adapter, clock, has_failed: false })
        })
    }
}

/// See `narrows.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_controller_free(controller: *mut Controller) {
    if !controller.is_null() {
        // SAFETY: from `Box::into_raw` in `build`, and freed once by the header.
        drop(unsafe { Box::from_raw(controller) });
    }
}

/// See `narrows.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_controller_sent(
    object: *mut Controller,
    now: u64,
    number: u64,
    bytes: u64,
) -> c_int {
    let bytes = bytes.min(MAX_DATAGRAM as u64);
    // SAFETY: the header's promise.
    unsafe {
        controller(object, |c| {
            let now = c.clock.now(now)?;
            c.adapter.sent(now, bytes, Some(number));
            Some(())
        })
    }
}

/// See `narrows.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_controller_acked(
    object: *mut Controller,
    now: u64,
    number: u64,
    sent: u64,
    bytes: u64,
    smoothed_rtt: u64,
) -> c_int {
    let bytes = bytes.min(MAX_DATAGRAM as u64);
    // SAFETY: the header's promise.
    unsafe {
        controller(object, |c| {
            let now = c.clock.now(now)?;
            let sent = c.clock.past(sent.min(c.clock.latest))?;
            let smoothed = Duration::from_nanos(smoothed_rtt);
            c.adapter.acked(now, sent, bytes, Some(number), smoothed);
            Some(())
        })
    }
}

/// See `narrows.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_controller_acks_end(
    object: *mut Controller,
    now: u64,
    bytes_in_flight: u64,
    is_application_limited: c_int,
) -> c_int {
    // SAFETY: the header's promise.
    unsafe {
        controller(object, |c| {
            let now = c.clock.now(now)?;
            c.adapter.end_acks(now, bytes_in_flight, is_application_limited != 0);
            Some(())
        })
    }
}

/// See `narrows.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_controller_lost(object: *mut Controller, number: u64) -> c_int {
    // SAFETY: the header's promise.
    unsafe {
        controller(object, |c| {
            c.adapter.lost_packet(number);
            Some(())
        })
    }
}

/// See `narrows.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_controller_losses_end(
    object: *mut Controller,
    now: u64,
    newest_sent: u64,
    bytes: u64,
    is_persistent: c_int,
) -> c_int {
    // SAFETY: the header's promise.
    unsafe {
        controller(object, |c| {
            let now = c.clock.now(now)?;
            let sent = c.clock.past(newest_sent.min(c.clock.latest))?;
            c.adapter.losses(now, sent, bytes, is_persistent != 0);
            Some(())
        })
    }
}

/// See `narrows.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_controller_marked(
    object: *mut Controller,
    now: u64,
    newest_sent: u64,
) -> c_int {
    // SAFETY: the header's promise.
    unsafe {
        controller(object, |c| {
            let now = c.clock.now(now)?;
            let sent = c.clock.past(newest_sent.min(c.clock.latest))?;
            c.adapter.marked(now, sent);
            Some(())
        })
    }
}

/// See `narrows.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_controller_spurious(object: *mut Controller) -> c_int {
    // SAFETY: the header's promise.
    unsafe {
        controller(object, |c| {
            c.adapter.spurious();
            Some(())
        })
    }
}

/// See `narrows.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_controller_mtu(object: *mut Controller, mtu: u16) -> c_int {
    // SAFETY: the header's promise.
    unsafe { controller(object, |c| (mtu > 0).then(|| c.adapter.mtu_changed(mtu))) }
}

/// See `narrows.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_controller_window(controller: *const Controller) -> u64 {
    // SAFETY: the header's promise.
    unsafe { controller.as_ref() }.map_or(0, |c| c.adapter.window())
}

/// See `narrows.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_controller_pacing_rate(controller: *const Controller) -> u64 {
    // SAFETY: the header's promise.
    unsafe { controller.as_ref() }.and_then(|c| c.adapter.bytes_per_second()).unwrap_or(0)
}

/// See `narrows.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_network_new(
    description: *const c_char,
    seed: u64,
    message: *mut c_char,
    message_size: usize,
) -> *mut Network {
    // SAFETY: a text by the header.
    let description = unsafe { text(description) };
    // SAFETY: a buffer of that size by the header.
    unsafe {
        build(message, message_size, || {
            let text = description.ok_or("the description is no text in UTF-8")?;
            let description = Description::parse(text, seed).map_err(|e| e.to_string())?;
            let clock = Clock { epoch: description.network.start(), latest: 0 };
            Ok(Network { description, clock, kept: None, has_failed: false })
        })
    }
}

/// See `narrows.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_network_free(network: *mut Network) {
    if !network.is_null() {
        // SAFETY: from `Box::into_raw` in `build`, and freed once by the header.
        drop(unsafe { Box::from_raw(network) });
    }
}

/// See `narrows.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_network_node(network: *const Network, name: *const c_char) -> i64 {
    // SAFETY: the header's promise.
    let network = unsafe { network.as_ref() };
    // SAFETY: a text by the header.
    let name = unsafe { text(name) };
    let node = network.zip(name).and_then(|(n, name)| n.description.node(name).ok());
    node.and_then(|node| i64::try_from(node.index()).ok()).unwrap_or(i64::from(INVALID))
}

/// See `narrows.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "C has no slices")]
pub unsafe extern "C" fn narrows_network_accept(
    network: *mut Network,
    now: u64,
    node: i64,
    source: *const Address,
    destination: *const Address,
    ecn: u8,
    payload: *const u8,
    size: usize,
    segment_size: usize,
) -> c_int {
    let most = if segment_size == 0 { MAX_DATAGRAM } else { MAX_BATCH };
    let is_small = segment_size != 0 && !(MIN_SEGMENT..=MAX_DATAGRAM).contains(&segment_size);
    if size > most || is_small || ecn > 3 || (payload.is_null() && size > 0) {
        return INVALID;
    }
    // SAFETY: the header's promise.
    let Some(network) = (unsafe { network.as_mut() }) else { return INVALID };
    // SAFETY: NULL or addresses by the header; copied at once.
    let addresses = unsafe { (source.as_ref().copied(), destination.as_ref().copied()) };
    let (Some(source), Some(destination)) = addresses else { return INVALID };
    let payload = match size {
        0 => Vec::new(),
        // SAFETY: not NULL as checked above, with `size` readable bytes by the header.
        _ => unsafe { std::slice::from_raw_parts(payload, size) }.to_vec(),
    };
    if network.has_failed {
        return FAILED;
    }
    let node = usize::try_from(node).ok().and_then(|i| network.description.network.node(i));
    let (Some(node), Some(now)) = (node, network.clock.now(now)) else { return INVALID };
    let datagram = Datagram::udp(source.into(), destination.into(), payload)
        .with_ecn(Ecn::from_bits(ecn))
        .with_segment_size((segment_size > 0).then_some(segment_size));
    let sent = catch_unwind(AssertUnwindSafe(|| {
        network.description.network.send(now, node, datagram);
    }));
    network.has_failed = sent.is_err();
    if sent.is_ok() { OK } else { FAILED }
}

/// See `narrows.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_network_next_timeout(network: *const Network) -> u64 {
    // SAFETY: the header's promise.
    let Some(network) = (unsafe { network.as_ref() }) else { return NEVER };
    if network.kept.is_some() {
        return network.clock.latest;
    }
    let next = network.description.network.next_timeout();
    let since = next.map(|at| at.saturating_duration_since(network.clock.epoch).as_nanos());
    since.map_or(NEVER, |nanos| u64::try_from(nanos).unwrap_or(NEVER))
}

/// See `narrows.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "C has no slices")]
pub unsafe extern "C" fn narrows_network_poll(
    network: *mut Network,
    now: u64,
    node: *mut i64,
    source: *mut Address,
    destination: *mut Address,
    ecn: *mut u8,
    payload: *mut u8,
    capacity: usize,
    size: *mut usize,
) -> c_int {
    let is_null = node.is_null()
        || source.is_null()
        || destination.is_null()
        || ecn.is_null()
        || size.is_null()
        || (payload.is_null() && capacity > 0);
    // SAFETY: the header's promise.
    let Some(network) = (unsafe { network.as_mut() }).filter(|_| !is_null) else { return INVALID };
    if network.has_failed {
        return FAILED;
    }
    let Some(now) = network.clock.now(now) else { return INVALID };
    let arrived = match network.kept.take() {
        Some(kept) => Ok(Some(kept)),
        None => catch_unwind(AssertUnwindSafe(|| network.description.network.poll(now))),
    };
    let Ok(arrived) = arrived else {
        network.has_failed = true;
        return FAILED;
    };
    let Some((host, datagram)) = arrived else { return 0 };
    let length = datagram.payload.len();
    // SAFETY: not NULL as checked above, and writable by the header.
    unsafe { size.write(length) };
    if length > capacity {
        network.kept = Some((host, datagram));
        return TOO_SMALL;
    }
    // SAFETY: not NULL as checked above, writable by the header, `capacity` bytes of them at `payload`. A datagram without
    // payload copies nothing.
    unsafe {
        node.write(i64::try_from(host.index()).unwrap_or(i64::MAX));
        source.write(datagram.source.into());
        destination.write(datagram.destination.into());
        ecn.write(datagram.ecn.bits());
        if length > 0 {
            std::ptr::copy_nonoverlapping(datagram.payload.as_ptr(), payload, length);
        }
    }
    1
}
