//! One direction of an emulated link: a thread that takes the kernel's packets from one TUN device, carries them over
//! the link in virtual time, and hands them to the other.

use crate::stats::{LatenessLog, WayStats};
use crate::system::tun::{MAX_FRAME, Tun};
use crate::system::unsafe_calls::real_time_priority;
use crate::tap::{LinkSide, LinkTap, PassedPacket};
use crate::wire::frame::HEADER;
use crate::wire::join::Joiner;
use crate::wire::{checksum, ip, split};
use narrows_base::{Duration, Time};
use narrows_link::LinkChange;
use narrows_net::Clock;
use narrows_net::ip_packet::{self, IpPacket, too_big};
use narrows_net::relay::{Arriving, LossNumbers, Out, RelayDirection, damage};
use narrows_net::wait::{Waker, exact_timers, first_in_turn, wait, wait_readable};
use std::collections::VecDeque;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Frames read in a row before due packets are delivered.
const MAX_READS: usize = 64;
/// Wake-ups by packets within a millisecond. Above this rate the thread polls every [`NAP`], as network cards do with
/// interrupt moderation, because a wake-up costs more than a packet.
const MAX_WAKES: u32 = 12;
const NAP: Duration = Duration::from_micros(40);
/// Real-time priority: above programs, below the system's own real-time threads (50 for interrupts).
const PRIORITY: i32 = 20;

/// State shared between the thread and its observers.
#[derive(Debug)]
pub(crate) struct WayShared {
    pub stop: AtomicBool,
    pub waker: Waker,
    /// Whether the thread has real-time priority.
    pub real_time: AtomicBool,
    counts: Mutex<WayCounts>,
    /// Changes requested at run time that the thread has not taken yet.
    changes: Mutex<Vec<(Time, LinkChange)>>,
}

#[derive(Debug)]
struct WayCounts {
    stats: WayStats,
    late: LatenessLog,
    /// The most packets that waited since the last call of [`WayShared::take_max_waiting`].
    max_waiting: usize,
}

impl WayShared {
    pub fn new() -> std::io::Result<WayShared> {
        let counts =
            WayCounts { stats: WayStats::default(), late: LatenessLog::new(), max_waiting: 0 };
        Ok(WayShared {
            stop: AtomicBool::new(false),
            waker: Waker::new()?,
            real_time: AtomicBool::new(false),
            counts: Mutex::new(counts),
            changes: Mutex::default(),
        })
    }

    /// Schedules a change of the link at this time, or at once if that has passed.
    pub fn change(&self, at: Time, change: LinkChange) {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).push((at, change));
        self.waker.wake();
    }

    /// Counters since the start.
    pub fn stats(&self) -> WayStats {
        let counts = self.lock();
        let (lateness, windows) = counts.late.read();
        WayStats { lateness, windows, ..counts.stats.clone() }
    }

    /// The most packets that waited since the last call.
    pub fn take_max_waiting(&self) -> usize {
        let mut counts = self.lock();
        let waiting = counts.stats.waiting;
        std::mem::replace(&mut counts.max_waiting, waiting)
    }

    /// Ignores poisoning: the counters stay usable after a panic of another thread.
    fn lock(&self) -> MutexGuard<'_, WayCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// State of the thread.
pub(crate) struct WayThread {
    pub shared: Arc<WayShared>,
    pub clock: Clock,
    pub from: Arc<Tun>,
    pub to: Arc<Tun>,
    /// The end where packets enter.
    pub entry: LinkSide,
    pub direction: RelayDirection,
    pub numbers: LossNumbers,
    /// Scheduled changes, by time.
    pub changes: VecDeque<(Time, LinkChange)>,
    pub tap: Option<Arc<dyn LinkTap>>,
    pub wakes: Wakes,
}

/// Number of wake-ups by packets within the millisecond that began at `since`.
#[derive(Default)]
pub(crate) struct Wakes {
    since: Time,
    count: u32,
    /// The number in the millisecond before.
    before: u32,
}

impl Wakes {
    fn count(&mut self, now: Time) {
        let past = now.since(self.since);
        if past >= Duration::from_millis(1) {
            self.before = if past < Duration::from_millis(2) { self.count } else { 0 };
            self.since = now;
            self.count = 0;
        }
        self.count += 1;
    }

    fn are_many(&self, now: Time) -> bool {
        now.since(self.since) < Duration::from_millis(1) && self.count.max(self.before) >= MAX_WAKES
    }
}

impl WayThread {
    pub fn run(mut self) {
        exact_timers();
        if real_time_priority(PRIORITY).is_ok() {
            self.shared.real_time.store(true, Ordering::Release);
        } else {
            first_in_turn();
        }
        let mut frame = vec![0; MAX_FRAME];
        let mut room = Vec::with_capacity(MAX_FRAME);
        let mut joiner = Joiner::new(self.to.udp_super_frames);
        while !self.shared.stop.load(Ordering::Acquire) {
            // Taken before the device is emptied: every packet that came before this time is then on the link, so the
            // link can be advanced to it.
            let now = self.clock.now();
            let Some((emptied, any)) = self.take(&mut frame, &mut room) else { return };
            if any {
                self.wakes.count(now);
            }
            let until = if emptied { now } else { self.direction.latest().min(now) };
            self.hand_over(until, &mut joiner);
            if emptied {
                self.wait();
            }
        }
    }

    /// Moves waiting packets onto the link. Returns whether the device is empty now, and whether there was any packet.
    /// `None` if the device is gone.
    fn take(&mut self, frame: &mut [u8], room: &mut Vec<u8>) -> Option<(bool, bool)> {
        for n in 0..MAX_READS {
            let Some(length) = self.from.read(frame).ok()? else { return Some((true, n > 0)) };
            let at = self.clock.now();
            self.change_until(at);
            let bytes = frame.get(..length).unwrap_or_default();
            let flow = ip::flow(bytes.get(HEADER..).unwrap_or_default());
            let direction = &mut self.direction;
            let numbers = &mut self.numbers;
            let entry = self.entry;
            let tap = &self.tap;
            let from = &self.from;
            let whole = split::split(bytes, room, |bytes| {
                let packet = bytes.get(HEADER..).unwrap_or_default();
                tell(tap, at, entry, true, bytes);
                let size = u32::try_from(packet.len()).unwrap_or(u32::MAX);
                let random_key = numbers.next();
                let ecn = ip::ecn(packet);
                let accepted =
                    direction.accept(Arriving { at, flow, random_key, size, ecn, bytes });
                if let Some(error) = accepted.and_then(|mtu| too_large(bytes, mtu)) {
                    // If the kernel rejects it, the sender finds its packets lost.
                    let _ = from.write(&error);
                }
            });
            if !whole {
                self.shared.lock().stats.foreign += 1;
            }
        }
        Some((false, true))
    }

    /// Applies the due changes, each at its time.
    fn change_until(&mut self, now: Time) {
        let new = std::mem::take(
            &mut *self.shared.changes.lock().unwrap_or_else(PoisonError::into_inner),
        );
        if !new.is_empty() {
            self.changes.extend(new);
            self.changes.make_contiguous().sort_by_key(|(at, _)| *at);
        }
        while let Some((at, change)) = self.changes.pop_front() {
            if at > now {
                self.changes.push_front((at, change));
                return;
            }
            self.direction.change(at, &change);
        }
    }

    /// Writes the packets that are due.
    fn hand_over(&mut self, until: Time, joiner: &mut Joiner) {
        self.change_until(until);
        let to = &self.to;
        let clock = &self.clock;
        let tap = &self.tap;
        let exit = self.entry.other();
        let mut refused = 0;
        let mut write = |frame: &[u8]| refused += u64::from(to.write(frame).is_err());
        let mut counts = self.shared.lock();
        let counts = &mut *counts;
        let late = &mut counts.late;
        self.direction.deliver(until, |Out { bytes, ecn, due, corrupt, .. }| {
            if let Some(random_key) = corrupt {
                // The checksum must be that of the undamaged packet, so that the receiver's kernel detects the damage.
                checksum::complete(bytes);
                damage(bytes.get_mut(HEADER..).unwrap_or_default(), random_key);
            }
            let packet = bytes.get_mut(HEADER..).unwrap_or_default();
            if ecn == ip::CE && ip::ecn(packet) != ip::CE && corrupt.is_none() {
                ip_packet::mark(packet);
            }
            let now = clock.now();
            tell(tap, now, exit, false, bytes);
            late.record(now, due);
            joiner.push(bytes, &mut write);
        });
        joiner.flush(&mut write);
        counts.stats.refused += refused;
        counts.stats.packets = self.direction.stats;
        let (waiting, max) = self.direction.waiting(until);
        counts.stats.waiting = waiting;
        counts.max_waiting = counts.max_waiting.max(max);
    }

    fn wait(&self) {
        let change = self.changes.front().map_or(Time::NEVER, |(at, _)| *at);
        let due = self.direction.next_timeout().min(change);
        let now = self.clock.now();
        let waker = &self.shared.waker;
        let waited = if self.wakes.are_many(now) {
            wait(std::iter::empty(), waker, now, due.min(now + NAP))
        } else {
            wait_readable(self.from.as_fd(), waker, now, due)
        };
        // If the system refuses to wait, sleep rather than spin.
        if waited.is_err() {
            std::thread::sleep(std::time::Duration::from_nanos(
                Duration::from_millis(1).as_nanos(),
            ));
        }
    }
}

/// The ICMP error for the sender of a frame that exceeds the MTU, as a frame. Its source is the destination of the
/// packet. `None` for a packet that a router would fragment, and if no error may be sent.
fn too_large(frame: &[u8], mtu: u32) -> Option<Vec<u8>> {
    let mut whole = frame.to_vec();
    checksum::complete(&mut whole);
    let bytes = whole.get(HEADER..)?;
    let packet = IpPacket::read(bytes).filter(|packet| !packet.may_be_split)?;
    let error = too_big::answer(&packet, bytes, mtu as usize, packet.destination)?;
    Some([&[0; HEADER][..], &error].concat())
}

/// Reports a packet to the observer, if any, with completed checksums.
fn tell(tap: &Option<Arc<dyn LinkTap>>, at: Time, end: LinkSide, entered: bool, frame: &[u8]) {
    let Some(tap) = tap else { return };
    let mut whole = frame.to_vec();
    checksum::complete(&mut whole);
    let bytes = whole.get(HEADER..).unwrap_or_default();
    tap.passed(&PassedPacket { at, end, entered, bytes });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_packets_are_polled_in_batches_until_slow_again() {
        let at = |us: u64| Time::ZERO + Duration::from_micros(us);
        let mut wakes = Wakes::default();
        let mut come = |from: u64, to: u64, every: usize| {
            let mut now = at(0);
            for us in (from..to).step_by(every) {
                now = at(us);
                wakes.count(now);
            }
            wakes.are_many(now)
        };
        assert!(!come(10_000, 20_000, 240), "4,000 a second: 50 Mbit/s of full packets");
        assert!(come(20_000, 21_000, 10));
        assert!(come(21_000, 25_000, 40), "what batches bring still is a lot");
        assert!(!come(30_000, 40_000, 240));
        assert!(!wakes.are_many(at(50_000)), "nothing comes");
    }
}
