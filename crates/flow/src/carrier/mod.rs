//! The carrier: packets whose numbers are never used again, when each may leave, what became of it,
//! and what the controller is told. What the packets carry is the cargo's affair, so that a
//! simulated stream and a real connection run the same machine.
//!
//! Loss detection, probes and repair are RFC 9002's, counted in packets: see `losses`.
//! Controllers are told as TCP's sender tells them: `on_ack`, then `on_loss`, then a repair's end
//! or begin, or a restart; fates come before. One `on_ack` is told for each packet that arrived,
//! however many a report answers (RFC 9002 appendix B.5), so that a controller that counts
//! acknowledgements grows alike with few reports; all of one report share its RTT and rate sample.
//! FlightSize at a loss is what was sent from the lost packet on, as TCP's is.
//!
//! Two kinds of packets stand *aside*: they are neither paced nor in flight, and controllers do
//! not learn of them. A *probe* (of the path's MTU) may be lost without meaning congestion; of a
//! packet that carries reports only, nobody asks what became of it. Numbers that are left out on purpose
//! (`skips`) stand aside, too.

mod delivery;
mod limiter;
mod losses;
mod pacing;
mod renewal;
mod reports;
mod skips;

use crate::endpoint::Counters;
use crate::rtt::{RtoConfig, RttEstimator};
use delivery::{Delivery, Stamp};
use limiter::Limiter;
use losses::Found;
use narrows_base::{Duration, Rate, Time};
use narrows_control::{Controller, HintSource, Profile, Sent, Spacing};
use skips::Skips;
use std::collections::VecDeque;

pub use pacing::Permission;
pub use reports::{Heard, MARKS};

/// Packets of unknown fate at most; beyond, the oldest count as lost, so that memory is bounded
/// when nothing comes back.
pub const MOST_PENDING: usize = 1 << 16;

/// What packets carry, to the carrier.
pub trait Cargo {
    /// What one packet carries, kept until the packet's fate is known.
    type Load: Default;
    /// Whether nothing waits, new or to be sent again.
    fn is_empty(&mut self) -> bool;
    /// Whether nothing in flight (`in_flight` packets) would have to be repaired.
    fn all_arrived(&self, in_flight: u64) -> bool;
    /// A packet with this load arrived.
    fn arrived(&mut self, load: &Self::Load);
    /// A packet with this load counts as lost, or is put forward by a probe: what is still wanted of
    /// it must leave again; whether anything is.
    fn lost(&mut self, load: &Self::Load) -> bool;
}

/// How a carrier behaves.
#[derive(Clone, PartialEq, Debug)]
pub struct CarrierConfig {
    /// How far a paced sender that was late may catch up at once.
    pub credit: Duration,
    /// How long the receiver keeps a report back at most.
    pub max_ack_delay: Duration,
    /// The timeout before the first round-trip time is known; the longest is 2 s.
    pub rto: RtoConfig,
    /// Bytes of a full packet on the wire at first.
    pub packet: u32,
    /// What the controller was told of the path when it was built, and who says so.
    pub told: (Profile, HintSource),
}

/// A window that is none.
const NO_WINDOW: f64 = 1e15;

/// The longest probe timeout: so soon after an outage something is heard.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(2);

fn estimator(rto: &RtoConfig) -> RttEstimator {
    RttEstimator::new(&RtoConfig { max: LONGEST_TIMEOUT, ..*rto })
}

/// How a packet stands to the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    /// In flight.
    Counted,
    /// Aside, its fate of interest to the cargo.
    Probe,
    /// Aside since it took another path than the one of now; its fate of interest to the cargo.
    Former,
    /// Aside, its fate of interest to nobody.
    Mute,
    /// No packet: the number was left out.
    Skipped,
}

impl Standing {
    /// Whether nobody asks what became of it.
    #[inline]
    fn is_mute(self) -> bool {
        matches!(self, Standing::Mute | Standing::Skipped)
    }
}

/// A packet whose fate is not told yet.
#[derive(Clone, Debug)]
struct Pending<L> {
    sent: Time,
    stamp: Stamp,
    load: L,
    bytes: u16,
    standing: Standing,
    arrived: bool,
    marked: bool,
    radio: bool,
    /// It arrived, and saw no long queue.
    short_queue: bool,
}

/// The sending machine under a cargo.
pub struct Carrier<C: Cargo> {
    cargo: C,
    controller: Box<dyn Controller>,
    rtt: RttEstimator,
    counters: Counters,
    credit: Duration,
    max_ack_delay: Duration,
    own_timer: bool,
    limit: Option<Rate>,
    limiter: Limiter,
    /// What the controller takes a byte for: its full packets' bytes per real full packet's.
    scale: f64,
    /// Bits of the controller's full packets, where known.
    full_bits: f64,
    /// Bytes of the largest packet so far, and of the smallest that the report being read shows
    /// arrived.
    largest: u16,
    smallest: u16,
    /// Smallest round-trip time of a packet of about that size.
    least_full: Duration,
    /// Next number.
    next: u64,
    /// Lowest number whose fate is not known; `pending` begins there.
    unresolved: u64,
    pending: VecDeque<Pending<C::Load>>,
    /// Of these, the ones aside.
    aside: u64,
    /// Packets that neither arrived nor count as lost; and as many that took another path.
    in_flight: u64,
    former: u64,
    /// The first number on the path of now, and when that began.
    path_start: u64,
    path_since: Time,
    /// One above the highest number that a report named.
    reported: u64,
    /// Numbers that are left out, where that is wanted; and how many directly below the next packet.
    skips: Option<Box<Skips>>,
    skipped_below: u64,
    /// How many numbers directly below the next packet stand aside, those included.
    aside_below: u64,
    arrived: u64,
    radio: u64,
    /// Packets that left behind one that saw no long queue: those lost, and all. And whether the last
    /// one that arrived was such a one.
    short_queue: (u64, u64),
    short_before: bool,
    marks: u32,
    window_limited: bool,
    /// One packet may leave whatever the window and the pacer say.
    force: bool,
    /// The last packet's due time and bits: the next is due when they are paced out.
    paced: Option<(Time, f64)>,
    /// When the packet that has permission was due.
    due: Time,
    /// Since the last packet the window was full: nobody was late.
    stalled: bool,
    timer: Time,
    backoffs: u32,
    /// When the clock was last seen to have leapt.
    leapt: Time,
    round: u64,
    round_end: u64,
    delivery: Delivery,
    /// The last round-trip time, and when the first was known.
    latest: Duration,
    first_rtt: Time,
    last_sent: Time,
    /// Next number when the window was last reduced, by losses and by marks.
    cut_at: u64,
    marks_cut_at: u64,
    repairing: bool,
    /// When the first of the packets lost without an arrival between them left.
    run: Option<Time>,
}

impl<C: Cargo> Carrier<C> {
    /// Before the first packet.
    pub fn new(config: &CarrierConfig, controller: Box<dyn Controller>, cargo: C) -> Carrier<C> {
        let mut limiter = Limiter::new(config.packet);
        let (mut told, source) = config.told;
        // A rate that is a controller's own parameter is told, too.
        let allowance = controller.allowance();
        told.rate = told.rate.or(allowance.rate.filter(|_| allowance.window >= NO_WINDOW));
        limiter.on_told(&told, source);
        Carrier {
            limiter,
            cargo,
            own_timer: controller.keeps_own_timer(),
            controller,
            rtt: estimator(&config.rto),
            counters: Counters::default(),
            credit: config.credit,
            max_ack_delay: config.max_ack_delay,
            limit: None,
            scale: 1.0,
            full_bits: 0.0,
            largest: 0,
            smallest: u16::MAX,
            least_full: Duration::MAX,
            next: 0,
            unresolved: 0,
            pending: VecDeque::new(),
            aside: 0,
            in_flight: 0,
            former: 0,
            path_start: 0,
            path_since: Time::ZERO,
            reported: 0,
            skips: None,
            skipped_below: 0,
            aside_below: 0,
            arrived: 0,
            radio: 0,
            short_queue: (0, 0),
            short_before: false,
            marks: 0,
            window_limited: false,
            force: false,
            paced: None,
            due: Time::ZERO,
            stalled: false,
            timer: Time::NEVER,
            backoffs: 0,
            leapt: Time::ZERO,
            round: 0,
            round_end: 0,
            delivery: Delivery::new(),
            latest: Duration::ZERO,
            first_rtt: Time::NEVER,
            last_sent: Time::ZERO,
            cut_at: 0,
            marks_cut_at: 0,
            repairing: false,
            run: None,
        }
    }

    /// From now on some numbers are left out, drawn from a secret. The cargo's packets must say so:
    /// [`skipped_below`](Carrier::skipped_below).
    pub fn skip_numbers(&mut self, secret: &[u8; 32]) {
        self.skips = Some(Box::new(Skips::new(secret)));
    }
    /// Leaves out one number of so many on average.
    #[cfg(test)]
    pub fn skip_often(&mut self, mean: f64) {
        self.skips.iter_mut().for_each(|s| s.set_mean(mean));
    }
    /// How many numbers directly below [`next_number`](Carrier::next_number) were left out.
    #[inline]
    pub fn skipped_below(&self) -> u64 {
        self.skipped_below
    }
    /// How many numbers directly below [`next_number`](Carrier::next_number) stand aside, or were left out.
    #[inline]
    pub fn aside_below(&self) -> u64 {
        self.aside_below
    }
    /// How many of `[from, to)` were left out.
    #[inline]
    fn skipped(&self, from: u64, to: u64) -> u64 {
        self.skips.as_ref().map_or(0, |s| s.count(from, to))
    }

    /// What it carries.
    #[inline]
    pub fn cargo(&self) -> &C {
        &self.cargo
    }
    /// What it carries, to be filled.
    #[inline]
    pub fn cargo_mut(&mut self) -> &mut C {
        &mut self.cargo
    }
    /// The controller, to be watched.
    pub fn controller(&self) -> &dyn Controller {
        &*self.controller
    }
    /// Counts since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }
    /// Bytes of the heap that its books of packets hold.
    pub fn memory(&self) -> usize {
        self.pending.capacity() * size_of::<Pending<C::Load>>()
            + self.skips.as_ref().map_or(0, |s| s.memory())
    }
    /// Packets sent that neither arrived nor count as lost (RFC 9002 bytes_in_flight).
    #[inline]
    pub fn flight(&self) -> u64 {
        self.in_flight
    }
    /// The highest rate at which packets left that arrived, bit/s on the wire: whatever their
    /// acknowledgements' times pretend.
    pub fn most_delivered(&self) -> Rate {
        self.limiter.most_delivered()
    }
    /// Packets known to have arrived.
    pub fn acknowledged(&self) -> u64 {
        self.arrived
    }
    /// Lost packets that the receiver took for the radio link's.
    pub fn radio_losses(&self) -> u64 {
        self.radio
    }
    /// Packets lost directly behind one that saw no long queue, and all packets behind such a one: a queue that
    /// overflows is long, so their ratio is what the path itself loses, however seldom the queue is short.
    /// The receiver's verdict is no part of it: Spike takes a queue that stays at a few milliseconds for
    /// congestion, since it never saw a longer one.
    pub fn losses_at_short_queue(&self) -> (u64, u64) {
        self.short_queue
    }
    /// Round-trip times.
    #[inline]
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }
    /// The next packet's number.
    #[inline]
    pub fn next_number(&self) -> u64 {
        self.next
    }
    /// The lowest number whose fate is not known: the ack of ack.
    #[inline]
    pub fn unresolved(&self) -> u64 {
        self.unresolved
    }
    /// The highest number that a report named.
    #[inline]
    pub fn highest_reported(&self) -> Option<u64> {
        self.reported.checked_sub(1)
    }
    /// Whether a packet that is counted is known to have arrived, over the path of now.
    #[inline]
    pub fn has_arrived(&self) -> bool {
        self.arrived > 0
    }
    /// The next packet leaves whatever the controller says.
    pub fn force(&mut self) {
        self.force = true;
    }
    /// Probe timeouts since something was heard.
    pub fn backoffs(&self) -> u32 {
        self.backoffs
    }
    /// Whether one packet may leave whatever the window and the pacer say.
    #[inline]
    pub fn is_forced(&self) -> bool {
        self.force
    }

    /// A round-trip time from elsewhere (the handshake): timers know it, and it is no sample of
    /// full packets. What asked for it would have left again after the longest timeout: more is a leap.
    pub fn know_rtt(&mut self, now: Time, rtt: Duration) {
        let rtt = rtt.min(LONGEST_TIMEOUT);
        self.rtt.observe(rtt);
        self.rtt.forget_min();
        self.limiter.on_rtt(now, rtt);
        self.latest = rtt;
        self.first_rtt = self.first_rtt.min(now);
    }
    /// The path is another one: its round-trip times are not known.
    pub fn forget_rtt(&mut self, rto: &RtoConfig) {
        self.rtt = estimator(rto);
        self.latest = Duration::ZERO;
        self.first_rtt = Time::NEVER;
        self.least_full = Duration::MAX;
        self.backoffs = 0;
        self.limiter.restart();
    }
    /// A full packet has so many bytes, while the controller was built for `told`: all that it
    /// says and hears of bytes is in proportion, so that its packets per second are right.
    pub fn scale_bytes(&mut self, full: u32, told: u32) {
        self.scale = f64::from(told.max(1)) / f64::from(full.max(1));
        self.full_bits = f64::from(told) * 8.0;
    }
    /// Whether bytes are told in proportion.
    pub fn is_scaled(&self) -> bool {
        self.scale != 1.0
    }
    /// Something was heard from the peer, if only that it lives: after an outage, what waits for
    /// an answer asks again at once.
    #[inline]
    pub fn on_sign_of_life(&mut self, now: Time) {
        self.notice_leap(now);
        if self.backoffs > 0 {
            self.backoffs = 0;
            self.arm(now);
        }
    }
    /// The path is another one, or better known.
    pub fn on_profile(&mut self, now: Time, profile: &Profile, source: HintSource) {
        self.limiter.on_told(profile, source);
        let rate = profile.rate.map(|r| Rate::from_bps_f64(r.as_bps() as f64 * self.scale));
        self.controller.on_profile(now, &Profile { rate, ..*profile });
    }
    /// What the opening told of the path.
    pub fn on_spacing(&mut self, spacing: &Spacing) {
        self.controller.on_spacing(&Spacing { bits: spacing.bits * self.scale, ..*spacing });
    }
    /// A packet of so many bytes on the wire leaves now; `again` if it repeats what was lost.
    #[inline]
    pub fn sent(&mut self, now: Time, bytes: u32, load: C::Load, again: bool) {
        let bytes = bytes.min(65_535);
        let stamp = self.delivery.sent(now, self.in_flight == 0);
        self.push(now, stamp, load, bytes, Standing::Counted);
        self.limiter.on_sent(now, bytes);
        self.largest = self.largest.max(bytes as u16);
        self.force = false;
        self.in_flight += 1;
        self.last_sent = now;
        self.counters.retransmissions += u64::from(again);
        if self.pending.len() > MOST_PENDING {
            self.forget_oldest(now);
        }
        if self.timer.is_never() {
            self.arm(now);
        }
        let last_waiting = self.cargo.is_empty();
        self.counters.sent += 1;
        let told = self.scaled(bytes);
        self.controller.on_sent(&Sent {
            now,
            bytes: told,
            outstanding: self.in_flight,
            retransmission: again,
            last_waiting,
        });
        let credit = self.credit_for(told);
        let earliest = Time::from_nanos(now.as_nanos().saturating_sub(credit.as_nanos()));
        self.paced = Some((self.due.max(earliest), f64::from(told) * 8.0));
        if self.skips.as_mut().is_some_and(|s| s.is_next_skipped(self.next, self.unresolved)) {
            self.push(now, stamp, C::Load::default(), 0, Standing::Skipped);
            self.aside += 1;
        }
    }

    /// A packet leaves that stands aside; `probe` if the cargo wants to know what became of it.
    pub fn sent_aside(&mut self, now: Time, bytes: u32, load: C::Load, probe: bool) {
        let standing = if probe { Standing::Probe } else { Standing::Mute };
        self.push(now, self.delivery.stamp(), load, bytes.min(65_535), standing);
        self.aside += 1;
        if self.pending.len() > MOST_PENDING {
            self.forget_oldest(now);
        }
        self.drop_mute();
    }

    #[inline]
    fn push(&mut self, now: Time, stamp: Stamp, load: C::Load, bytes: u32, standing: Standing) {
        self.next += 1;
        self.skipped_below = u64::from(standing == Standing::Skipped);
        self.aside_below = if standing == Standing::Counted { 0 } else { self.aside_below + 1 };
        self.pending.push_back(Pending {
            sent: now,
            stamp,
            load,
            bytes: bytes as u16,
            standing,
            arrived: false,
            marked: false,
            radio: false,
            short_queue: false,
        });
    }

    #[inline]
    fn scaled(&self, bytes: u32) -> u32 {
        if self.scale == 1.0 { bytes } else { (f64::from(bytes) * self.scale) as u32 }
    }

    #[cold]
    fn forget_oldest(&mut self, now: Time) {
        let mut found = Found::default();
        // More than one where a number was left out.
        while self.pending.len() > MOST_PENDING {
            self.resolve_front(now, true, &mut found);
        }
        self.tell_losses(now, &found);
    }

    /// When [`on_due`](Carrier::on_due) is wanted; a tick of the controller not before `earliest`.
    #[inline]
    pub fn next_due(&self, earliest: Time) -> Time {
        self.timer.min(self.controller.next_tick().max(earliest))
    }

    /// A due time has come: whether a probe's, so that something ought to leave.
    pub fn on_due(&mut self, now: Time) -> bool {
        self.notice_leap(now);
        let probe = now >= self.timer && self.on_timer(now);
        if now >= self.controller.next_tick() {
            self.controller.on_tick(now);
        }
        probe
    }
}

impl<C: Cargo> std::fmt::Debug for Carrier<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Carrier({}..{}, {} in flight)", self.unresolved, self.next, self.in_flight)
    }
}
