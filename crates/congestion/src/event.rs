//! The events that a controller gets.

use crate::feedback::Feedback;
use crate::path_hints::PathHints;
use narrows_base::{Duration, Time};

/// A packet left.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When.
    pub now: Time,
    /// Bytes on the wire.
    pub bytes: u32,
    /// Segments outstanding, this one included.
    pub outstanding: u64,
    /// Whether it is a retransmission.
    pub retransmission: bool,
    /// Whether nothing more waits to be sent: the sender is data-limited (RFC 5348 section 8.2.1).
    pub last_waiting: bool,
}

/// An acknowledgement: one for every ACK packet, duplicates included.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it came.
    pub now: Time,
    /// Round-trip time of the very packet that triggered this ACK.
    pub rtt: Duration,
    /// Whether [`rtt`](Ack::rtt) can be trusted without timestamps: false if the cumulative
    /// advance covers a retransmitted segment (Karn). `rtt` itself comes from the echo and is
    /// right even then.
    pub rtt_unambiguous: bool,
    /// Smoothed RTT (RFC 6298); equals `rtt` before the first sample.
    pub srtt: Duration,
    /// Deviation of the RTT (RFC 6298 RTTVAR).
    pub rttvar: Duration,
    /// Smallest RTT of the connection so far.
    pub min_rtt: Duration,
    /// When the packet that triggered this ACK arrived, by the receiver's clock, where the
    /// receiver sends it (RFC 7323 TSval): only differences mean something.
    pub arrived: Option<Time>,
    /// How long that packet was on its way to the receiver, plus a constant that nobody knows, since the two clocks
    /// are two: only differences mean something. The constant is such that the first packet's report seems
    /// to have come back in no time. Unlike [`rtt`](Ack::rtt) it has no part in the queues of the way back. Where
    /// the receiver tells its clock (rrtp).
    pub forward_delay: Option<Duration>,
    /// Segments by which the cumulative acknowledgement advanced; 0 for a duplicate.
    pub newly_acked: u64,
    /// Segments by which this ACK may let a window grow (appropriate byte counting, RFC 3465): `newly_acked`, at
    /// most as many as the receiver acknowledges at once, so that an ACK that covers a repaired hole, or lost ACKs
    /// before it, bring no burst.
    pub counted: u64,
    /// Segments newly reported by SACK, not yet cumulatively acknowledged.
    pub newly_sacked: u64,
    /// Segments delivered by this ACK as far as the sender can tell: newly acked that were not
    /// SACKed before, plus newly SACKed; without SACK a duplicate counts 1 and a later advance
    /// is reduced by those.
    pub newly_delivered: u64,
    /// Whether it is a duplicate (RFC 5681 section 2).
    pub duplicate: bool,
    /// Packets sent from the one that triggered this ACK (excluded) until now.
    pub sent_since: u64,
    /// Segments in flight after this ACK: sent and not cumulatively acknowledged (FlightSize).
    pub flight: u64,
    /// Segments outstanding after this ACK as recovery counts them (pipe).
    pub outstanding: u64,
    /// Segments outstanding before this ACK.
    pub prior_outstanding: u64,
    /// Whether the window was the limit when this ACK came (RFC 7661): growth is earned.
    pub window_limited: bool,
    /// Whether recovery is under way (the ACK that ends the recovery included).
    pub in_recovery: bool,
    /// Round number: advances when the first packet sent in the previous round is acknowledged.
    pub round: u64,
    /// Whether this ACK starts a new round.
    pub round_start: bool,
    /// Packets marked by routers that this ACK newly reports (ECN echo).
    pub marks: u32,
    /// Delivery rate sample, where one could be taken.
    pub rate: Option<RateSample>,
    /// What the receiver side says, in the last `on_ack` for a report; [`Feedback::NONE`] otherwise.
    pub feedback: Feedback,
}

impl Ack {
    /// Whether a window grown by acknowledgements may grow by this one: it advances, nothing is
    /// being retransmitted, the window was what limited the sender, and it reports no mark (RFC 3168
    /// section 6.1.2).
    pub fn may_grow(&self) -> bool {
        self.newly_acked > 0 && !self.in_recovery && self.window_limited && self.marks == 0
    }
}

/// A delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// Segments delivered over the interval.
    pub delivered: u64,
    /// The interval.
    pub interval: Duration,
    /// Segments delivered in total when the acknowledged packet left.
    pub prior_delivered: u64,
    /// Segments delivered in total now.
    pub total_delivered: u64,
    /// Whether the application, not the network, limited the sample.
    pub app_limited: bool,
}

impl RateSample {
    /// Segments per second.
    pub fn per_second(&self) -> f64 {
        self.delivered as f64 / positive(self.interval)
    }
}

/// How a loss was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LossFoundBy {
    /// Duplicate acknowledgements or a partial acknowledgement.
    Duplicates,
    /// SACK blocks above it.
    Sack,
    /// A fine-grained timer checked at a duplicate (Vegas).
    Clock,
    /// The retransmission timer.
    Timeout,
}

/// Segments were found lost.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// When.
    pub now: Time,
    /// How many segments.
    pub segments: u64,
    /// When the (first) lost copy was sent.
    pub sent: Time,
    /// How often that segment had been sent.
    pub transmissions: u32,
    /// How it was found.
    pub found_by: LossFoundBy,
    /// Whether this loss begins a new loss episode.
    pub new_episode: bool,
    /// How many of the segments the receiver's loss differentiation attributes to the radio link instead
    /// of congestion; 0 without one.
    pub radio: u64,
}

/// Losses, and what they or routers' marks begin and end.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum CongestionEvent {
    /// Segments were found lost. What that begins, if anything, follows as an event of its own.
    Losses(Loss),
    /// Recovery begins: a new loss episode (Reno, NewReno, SACK), or a router's mark.
    RecoveryStart(RecoveryEvent),
    /// The recovery is over: everything sent before it began is acknowledged. After a mark it is over at once.
    RecoveryEnd(RecoveryEvent),
    /// Slow start begins again: after a retransmission timeout, or Tahoe's third duplicate.
    SlowStartRestart(SlowStartRestart),
    /// Packets that were told as lost arrived after all (rrtp only): directly after the acknowledgement that shows
    /// it. Where all of an episode did, the recovery's end came before if it was under way.
    SpuriousLosses(SpuriousLosses),
}

/// Packets that were told as lost arrived after all: they were only late.
#[derive(Clone, Copy, Debug)]
pub struct SpuriousLosses {
    /// When it was known.
    pub now: Time,
    /// How many packets.
    pub packets: u64,
    /// Whether no loss of the last loss episode is left: what the episode reduced was reduced for nothing, and is to be
    /// as it was before (RFC 4015; RFC 9438 section 4.9).
    pub undo: bool,
}

/// What a recovery is the answer to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RecoveryCause {
    /// Segments that were found lost.
    Loss,
    /// Routers marked packets (ECN): at most once per window, the last event of an acknowledgement; during
    /// another recovery only if that one left the window as it was. A controller that does not look at the
    /// cause handles it as a loss without a retransmission (RFC 3168 section 6.1.2).
    EcnCe,
}

/// A recovery begins or ends.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryEvent {
    /// When.
    pub now: Time,
    /// Why it began.
    pub cause: RecoveryCause,
    /// Segments in flight (FlightSize).
    pub flight: u64,
    /// Segments outstanding as recovery counts them.
    pub outstanding: u64,
    /// Smallest RTT of the connection.
    pub min_rtt: Duration,
    /// Smoothed RTT.
    pub srtt: Duration,
}

/// Something about the path.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum PathEvent {
    /// The path has changed, or more is known of it: values in the hints replace estimates; absent
    /// ones leave them.
    Hints(PathHints),
    /// Packet-pair dispersion of a connection's handshake: once, before the first packet leaves.
    Dispersion(Dispersion),
    /// Full packets have this many bytes on the wire from now on (path MTU discovery). Events, windows and rates
    /// still count segments of [`Environment::packet_bytes`](crate::Environment::packet_bytes): the sender
    /// converts. It is for controllers to which the number of packets matters.
    PacketBytes(u32),
}

/// Packet-pair dispersion: how far apart the answers to back-to-back handshake packets arrived, before
/// the first data packet.
#[derive(Clone, Copy, Debug)]
pub struct Dispersion {
    /// Round-trip time of a small packet.
    pub rtt: Duration,
    /// Bits, headers included, of those behind the first.
    pub bits: f64,
    /// From the first answer to the last.
    pub took: Duration,
}

/// Slow start begins again.
#[derive(Clone, Copy, Debug)]
pub struct SlowStartRestart {
    /// When.
    pub now: Time,
    /// Segments in flight before the restart (FlightSize).
    pub flight: u64,
    /// Whether the retransmission timer caused it; otherwise duplicates did (Tahoe).
    pub timeout: bool,
    /// Timeouts in a row for the same segment, this one included; 1 for the first.
    pub backoffs: u32,
    /// Smallest RTT of the connection.
    pub min_rtt: Duration,
    /// Smoothed RTT.
    pub srtt: Duration,
}

/// Whether one packet, whose number is never used again, arrived or was lost.
#[derive(Clone, Copy, Debug)]
pub struct PacketOutcome {
    /// When it was known.
    pub now: Time,
    /// The packet's number.
    pub seq: u64,
    /// When it left.
    pub sent: Time,
    /// Its bytes on the wire.
    pub bytes: u32,
    /// Whether it was lost: absent although the packet three numbers above it had arrived (RFC 9002 section
    /// 6.1.1), or any later one a while ago (6.1.2).
    pub lost: bool,
    /// Whether it arrived with a router's mark.
    pub marked: bool,
    /// Whether the receiver believes that the radio link lost it, not congestion.
    pub radio: bool,
}

/// The larger of a duration and one nanosecond, in seconds: a safe divisor.
pub fn positive(d: Duration) -> f64 {
    d.as_nanos().max(1) as f64 * 1e-9
}
