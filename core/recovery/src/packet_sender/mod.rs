//! The packet sender: assigns packet numbers, which are never reused, decides when each packet may be sent, determines
//! its outcome, and calls the controller. A payload source supplies the contents, so that simulated streams and real
//! connections use the same sender.
//!
//! Its parts, each with its own fields: the packets (`ledger`), loss detection and the timer (`losses`), round-trip
//! times (`round_trip`), the pacer (`pacer`), the limit by acknowledged bytes (`limiter`), and the calls of the
//! controller (`feed`). The packet sender connects them: `permission`, `reports`, `loss_response`, `path_change`.
//!
//! Loss detection, probes and recovery follow RFC 9002, counted in packets: see `losses`. Controllers receive the same
//! events as from TCP's sender: packet outcomes, then `on_ack`, then `on_congestion_event` for losses and for the
//! recoveries that they begin or end. There is one `on_ack` per packet that arrived, however many packets a report
//! acknowledges (RFC 9002 appendix B.5): a controller that counts acknowledgements grows equally with fewer reports.
//! All of one report share its RTT and rate sample. As with TCP, FlightSize at a loss is the number of packets sent
//! from the lost packet on.
//!
//! Two kinds of packets are *not in flight*: they are not paced, and controllers do not see them. A *probe* (of the
//! path's MTU) may be lost without meaning congestion; packets that carry reports only (ACK-only) are not tracked.
//! Numbers that are skipped on purpose (`skips`) are not in flight either.

mod counters;
mod delivery;
mod feed;
mod forward_delay;
mod late;
mod ledger;
mod limiter;
mod loss_response;
mod losses;
mod pacer;
mod path_change;
mod permission;
mod reordering;
mod reports;
mod return_path;
mod round_trip;
mod sent_packet;
mod skips;
mod spurious;

use crate::handshake::LAST_REPEAT;
use crate::rtt::{RtoConfig, RttEstimator};
use feed::CcFeed;
use ledger::PacketLedger;
use limiter::Limiter;
use losses::LossDetector;
use narrows_base::{Duration, Rate, Time};
use narrows_congestion::{Controller, Dispersion, HintSource, PathHints, Sent};
use pacer::Pacer;
use return_path::ReturnPath;
use round_trip::{MAX_BACKOFF_TIMEOUT, RoundTrip};
use sent_packet::PacketClass;

pub use counters::Counters;
pub use feed::MARKS;
pub use forward_delay::ForwardTime;
pub use ledger::MAX_SENT_PACKETS;
pub use permission::Permission;
pub use reports::AckReport;

/// Supplies the payload of packets and receives the outcome of each.
pub trait PayloadSource {
    /// The payload of one packet, kept until the packet's outcome is known.
    type Payload: Default;
    /// Whether no data waits, neither new data nor retransmissions.
    fn is_empty(&mut self) -> bool;
    /// Whether all data of the `in_flight` packets in flight has arrived, so that a retransmission would be useless.
    fn all_arrived(&self, in_flight: u64) -> bool;
    /// A packet with this payload arrived.
    fn arrived(&mut self, payload: &Self::Payload);
    /// A packet with this payload was declared lost, or a probe repeats it: data that has not arrived must be sent
    /// again. Returns whether there is any.
    fn lost(&mut self, payload: &Self::Payload) -> bool;
}

/// The configuration of a packet sender.
#[derive(Clone, PartialEq, Debug)]
pub struct PacketSenderConfig {
    /// How much lateness a paced sender may make up for at once.
    pub credit: Duration,
    /// The longest time that the receiver delays a report.
    pub max_ack_delay: Duration,
    /// The timeout before the first round-trip time is known, at most 2 s, and the limit of its
    /// back-off.
    pub rto: RtoConfig,
    /// Initial size of a full packet on the wire, in bytes.
    pub packet: u32,
    /// Whether a window without a rate is paced (RFC 9002 section 7.7); otherwise packets leave as
    /// acknowledgements arrive.
    pub paces_windows: bool,
    /// The path hints that the controller was built with, and their source.
    pub hints: (PathHints, HintSource),
}

/// A controller's window of at least this many packets is no limit.
const UNLIMITED_WINDOW: f64 = 1e15;

/// Size on the wire of a probe that is sent earlier than RFC 9002's back-off permits.
pub const SHORT_PROBE_BYTES: u32 = 100;

/// The limits that the next packet ignores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Force {
    Nothing,
    /// The window. A recovery begins with one packet (RFC 9002 section 7.3.2). The pacer still applies: a queue of one
    /// or two packets would drop a packet sent directly behind the previous one.
    Window,
    /// Neither the window nor the pacer.
    All,
    /// The window and the pacer; the packet is small and carries no data.
    ShortProbe,
}

impl Force {
    fn overrules_pacer(self) -> bool {
        matches!(self, Force::All | Force::ShortProbe)
    }
}

/// A packet sender; `P` is what it keeps of a packet's payload until the outcome is known. The payload source is an
/// argument of the methods that need it.
pub struct PacketSender<P> {
    ledger: PacketLedger<P>,
    path: RoundTrip,
    return_path: Box<ReturnPath>,
    loss: LossDetector,
    pacer: Pacer,
    limiter: Limiter,
    feed: CcFeed,
    counters: Counters,
    /// The limits that do not apply to the next packet.
    force: Force,
    /// Probes that follow the next packet.
    further_probes: u8,
}

impl<P: Default> PacketSender<P> {
    /// A sender that has not sent anything yet.
    pub fn new(config: &PacketSenderConfig, controller: Box<dyn Controller>) -> PacketSender<P> {
        let mut limiter = Limiter::new(config.packet);
        let (mut hints, source) = config.hints;
        // A rate that is a parameter of the controller counts as a hint, too.
        let send_limits = controller.send_limits();
        hints.rate =
            hints.rate.or(send_limits.pacing_rate.filter(|_| send_limits.cwnd >= UNLIMITED_WINDOW));
        limiter.on_hints(&hints, source);
        PacketSender {
            ledger: PacketLedger::new(),
            path: RoundTrip::new(&config.rto),
            return_path: Box::new(ReturnPath::new()),
            loss: LossDetector::new(config.max_ack_delay),
            pacer: Pacer::new(config.credit, config.paces_windows),
            limiter,
            feed: CcFeed::new(controller),
            counters: Counters::default(),
            force: Force::Nothing,
            further_probes: 0,
        }
    }

    /// From now on some packet numbers are skipped, chosen by random bits that the peer cannot predict. The payload
    /// source's packets must report it: [`skipped_below`](PacketSender::skipped_below).
    pub fn skip_numbers(&mut self, draws: impl FnMut() -> u64 + Send + Sync + 'static) {
        self.ledger.skip_numbers(draws);
    }
    /// Skips one number in `mean` on average.
    #[cfg(any(test, feature = "inspect"))]
    pub fn skip_often(&mut self, mean: f64) {
        self.ledger.skip_often(mean);
    }
    /// How many numbers directly below [`next_number`](PacketSender::next_number) were skipped.
    #[inline]
    pub fn skipped_below(&self) -> u64 {
        self.ledger.skipped_below()
    }
    /// How many numbers directly below [`next_number`](PacketSender::next_number) are not in
    /// flight, or were skipped.
    #[inline]
    pub fn not_in_flight_below(&self) -> u64 {
        self.ledger.not_in_flight_below()
    }
    /// The controller, read-only.
    pub fn controller(&self) -> &dyn Controller {
        self.feed.controller()
    }
    /// Mutable access to the controller.
    pub fn controller_mut(&mut self) -> &mut dyn Controller {
        self.feed.controller_mut()
    }
    /// Counts since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }
    /// Heap memory of the packet records, in bytes.
    pub fn memory(&self) -> usize {
        self.ledger.memory()
    }
    /// Releases unused memory.
    pub fn release_memory(&mut self) {
        self.ledger.release_memory();
    }
    /// Packets sent that have neither arrived nor been declared lost (RFC 9002 bytes_in_flight).
    #[inline]
    pub fn packets_in_flight(&self) -> u64 {
        self.ledger.packets_in_flight()
    }
    /// Whether packet `number` is in flight: it was sent, and neither arrived nor was declared lost.
    pub fn is_in_flight(&self, number: u64) -> bool {
        let packet = self.ledger.get(number);
        packet.is_some_and(|p| !p.arrived && p.class == PacketClass::InFlight)
    }
    /// What the oldest packet in flight carries.
    pub fn oldest_in_flight(&self) -> Option<&P> {
        self.ledger.oldest_in_flight().map(|packet| &packet.payload)
    }
    /// Packets in flight from number `from` on, oldest first: number, time of departure, and payload.
    pub fn in_flight_from(&self, from: u64) -> impl Iterator<Item = (u64, Time, &P)> {
        self.ledger
            .missing_from(from)
            .map(|(number, packet)| (number, packet.sent, &packet.payload))
    }
    /// The highest rate at which packets that arrived were sent, on the wire. It does not depend on the times of their
    /// acknowledgements.
    pub fn max_delivered(&self) -> Rate {
        self.limiter.max_delivered()
    }
    /// Counted packets that arrived on the present path.
    pub fn acknowledged(&self) -> u64 {
        self.ledger.arrived()
    }
    /// Lost packets that the receiver attributes to the radio link.
    pub fn radio_losses(&self) -> u64 {
        self.feed.radio_losses()
    }
    /// Losses directly after a packet that met no long queue, and the number of all packets directly after such a one.
    /// A queue that overflows is long, so their ratio estimates the path's own loss rate, even if the queue is seldom
    /// short. The receiver's loss classifier is not used here: Spike takes a queue that stays at a few milliseconds for
    /// congestion, since it has never seen a longer one.
    pub fn losses_at_short_queue(&self) -> (u64, u64) {
        self.ledger.losses_at_short_queue()
    }
    /// The RTT estimator.
    #[inline]
    pub fn rtt(&self) -> &RttEstimator {
        self.path.estimator()
    }
    /// One-way delay of the packet that the newest report echoes, plus a constant. `None` before the first report.
    #[inline]
    pub fn forward_delay(&self) -> Option<Duration> {
        self.path.newest_forward_delay()
    }
    /// The report spacing to request from the receiver, and whether the next packet should carry
    /// the request.
    #[inline]
    pub fn report_spacing(&self) -> (Duration, bool) {
        self.return_path.wish(self.ledger.next_packet_number())
    }
    /// The next packet's number.
    #[inline]
    pub fn next_number(&self) -> u64 {
        self.ledger.next_packet_number()
    }
    /// The lowest number about which a report may have news: its outcome is unknown, or it was declared lost and may be
    /// late.
    #[inline]
    pub fn least_unacked(&self) -> u64 {
        self.ledger.lowest_wanted()
    }
    /// The highest number that a report covered.
    #[inline]
    pub fn highest_reported(&self) -> Option<u64> {
        self.ledger.reported().checked_sub(1)
    }
    /// Whether a counted packet is known to have arrived on the present path.
    #[inline]
    pub fn has_arrived(&self) -> bool {
        self.ledger.arrived() > 0
    }
    /// The next packet is sent regardless of the controller's limits.
    pub fn force(&mut self) {
        self.force = Force::All;
    }
    /// Number of consecutive PTOs since a packet was received.
    pub fn backoffs(&self) -> u32 {
        self.loss.pto_count()
    }
    /// Whether one packet may be sent regardless of window and pacer.
    #[inline]
    pub fn is_forced(&self) -> bool {
        self.force.overrules_pacer()
    }
    /// Makes the pending probe a short one.
    pub fn shorten_probe(&mut self) {
        if self.force == Force::All {
            self.force = Force::ShortProbe;
            self.further_probes = 0;
        }
    }
    /// Whether the next packet must have at most [`SHORT_PROBE_BYTES`] and carry no data: the path may be gone, and RFC
    /// 9002's back-off would not permit a probe yet.
    #[inline]
    pub fn is_short_probe(&self) -> bool {
        self.force == Force::ShortProbe
    }

    /// Sets the RTT measured by the handshake. Timers use it, but it is no sample of full packets. It is capped at the
    /// handshake's longest timeout: it would have retransmitted by then, so a longer one contains a leap of the clock.
    pub fn seed_rtt(&mut self, now: Time, rtt: Duration) {
        let rtt = rtt.min(LAST_REPEAT);
        self.path.know(now, rtt);
        self.limiter.on_rtt(now, rtt);
    }
    /// Sets an upper limit on the RTT, before any sample: no PTO expires before a report can arrive.
    pub fn limit_rtt(&mut self, max_rtt: Duration) {
        self.path.limit_rtt(max_rtt);
    }
    /// A full packet has `full` bytes, while the controller was built for `nominal`. Byte counts that the controller
    /// receives and returns are scaled by the ratio, so that its packets per second are right.
    pub fn scale_bytes(&mut self, now: Time, full: u32, nominal: u32) {
        self.feed.scale_bytes(now, full, nominal);
    }
    /// Whether byte counts are scaled for the controller.
    pub fn is_scaled(&self) -> bool {
        self.feed.scale() != 1.0
    }
    /// A packet was received from the peer, with or without a report. If probes were unanswered, the PTO's back-off
    /// ends and the timer is set anew.
    #[inline]
    pub fn on_peer_alive(&mut self, now: Time, source: &impl PayloadSource<Payload = P>) {
        self.loss.notice_leap(now);
        if self.loss.pto_count() > 0 {
            self.loss.reset_pto_count();
            self.arm(now, source);
        }
    }
    /// New path hints, from `source`.
    pub fn on_path_hints(&mut self, now: Time, hints: &PathHints, source: HintSource) {
        self.limiter.on_hints(hints, source);
        self.feed.on_path_hints(now, hints);
    }
    /// The handshake's packet-pair dispersion.
    pub fn on_dispersion(&mut self, now: Time, dispersion: &Dispersion) {
        self.feed.on_dispersion(now, dispersion);
    }
    /// A packet with `bytes` bytes on the wire is sent; `again` if it repeats lost data.
    #[inline]
    pub fn sent(
        &mut self,
        now: Time,
        source: &mut impl PayloadSource<Payload = P>,
        bytes: u32,
        payload: P,
        again: bool,
    ) {
        let bytes = bytes.min(65_535);
        let stamp = self.feed.stamp_sent(now, self.ledger.packets_in_flight() == 0);
        self.ledger.push(now, stamp, payload, bytes, PacketClass::InFlight);
        self.limiter.on_sent(now, bytes);
        self.path.on_sent(bytes as u16);
        self.loss.on_sent(now);
        match self.further_probes.checked_sub(1) {
            Some(further) => self.further_probes = further,
            None => self.force = Force::Nothing,
        }
        self.counters.retransmissions += u64::from(again);
        if self.ledger.is_full() {
            self.forget_oldest(now, source);
        }
        if self.loss.due().is_never() {
            self.arm(now, source);
        }
        let last_waiting = source.is_empty();
        self.counters.sent += 1;
        let scaled = self.feed.scaled(bytes);
        self.feed.on_sent(&Sent {
            now,
            bytes: scaled,
            outstanding: self.ledger.packets_in_flight(),
            retransmission: again,
            last_waiting,
        });
        self.pacer.on_sent(now, scaled, &self.feed, self.progress());
        if self.ledger.is_next_skipped() {
            self.ledger.push(now, stamp, P::default(), 0, PacketClass::Skipped);
        }
    }

    /// A packet is sent that is not in flight; `probe` if the payload source needs its outcome.
    pub fn sent_not_in_flight(
        &mut self,
        now: Time,
        source: &mut impl PayloadSource<Payload = P>,
        bytes: u32,
        payload: P,
        probe: bool,
    ) {
        let class = if probe { PacketClass::MtuProbe } else { PacketClass::AckOnly };
        self.ledger.push(now, self.feed.stamp(), payload, bytes.min(65_535), class);
        if self.ledger.is_full() {
            self.forget_oldest(now, source);
        }
        self.ledger.drop_untracked();
    }

    /// When to call [`on_timeout`](PacketSender::on_timeout). A tick of the controller comes no earlier than
    /// `earliest`.
    #[inline]
    pub fn next_timeout(&self, earliest: Time) -> Time {
        self.loss.due().min(self.feed.controller().next_tick().max(earliest))
    }

    /// A timer fired. Returns whether it was the PTO, so that a packet should be sent.
    pub fn on_timeout(&mut self, now: Time, source: &mut impl PayloadSource<Payload = P>) -> bool {
        self.loss.notice_leap(now);
        let probe = now >= self.loss.due() && self.on_timer(now, source);
        self.feed.on_timeout(now);
        probe
    }
}

impl<P: Default> std::fmt::Debug for PacketSender<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "PacketSender({}..{}, {} in flight)",
            self.least_unacked(),
            self.next_number(),
            self.packets_in_flight()
        )
    }
}
