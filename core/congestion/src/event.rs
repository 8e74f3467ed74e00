//! The events that a controller receives.

use crate::feedback::Feedback;
use crate::path_hints::PathHints;
use narrows_base::{Duration, Time, WindowChange};

/// A packet was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When.
    pub now: Time,
    /// Bytes on the wire.
    pub bytes: u32,
    /// Segments outstanding, including this one.
    pub outstanding: u64,
    /// Whether it is a retransmission.
    pub retransmission: bool,
    /// Whether no further data wait to be sent, so that the sender is data-limited (RFC 5348
    /// section 8.2.1).
    pub last_waiting: bool,
}

impl Sent {
    /// A packet with new data, of which more wait.
    pub const fn new(now: Time, bytes: u32, outstanding: u64) -> Sent {
        Sent { now, bytes, outstanding, retransmission: false, last_waiting: false }
    }
}

/// The sender's estimate of the round-trip time (RFC 6298).
#[derive(Clone, Copy, Debug)]
pub struct RttEstimate {
    /// Smoothed RTT; at the first sample equal to it.
    pub srtt: Duration,
    /// RTT variation.
    pub rttvar: Duration,
    /// Smallest RTT of the connection so far.
    pub min_rtt: Duration,
}

/// The cumulative part of an acknowledgement. Over rrtp each packet that arrived counts as an advance by one.
#[derive(Clone, Copy, Debug)]
pub struct CumulativeAck {
    /// Segments by which the cumulative acknowledgement advanced; 0 for a duplicate.
    pub newly_acked: u64,
    /// Segments newly reported by SACK and not yet cumulatively acknowledged.
    pub newly_sacked: u64,
    /// Whether it is a duplicate (RFC 5681 section 2).
    pub duplicate: bool,
    /// Whether [`Ack::rtt`] would be valid without timestamps: false if the cumulative advance covers a retransmitted
    /// segment (Karn). `rtt` itself comes from the echoed timestamp and is valid in any case.
    pub rtt_unambiguous: bool,
    /// Whether the path reorders so much that segments reported by SACK may let a window grow, too (Linux,
    /// `tcp_may_raise_cwnd`).
    pub selective_counts: bool,
}

impl CumulativeAck {
    /// An advance by so many segments; a duplicate if it is 0.
    #[inline]
    pub const fn of(newly_acked: u64) -> CumulativeAck {
        CumulativeAck {
            newly_acked,
            newly_sacked: 0,
            duplicate: newly_acked == 0,
            rtt_unambiguous: true,
            selective_counts: false,
        }
    }
}

/// An acknowledgement: one for every ACK packet, including duplicates.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it arrived.
    pub now: Time,
    /// Round-trip time of the packet that triggered this ACK.
    pub rtt: Duration,
    /// The sender's estimate of the round-trip time.
    pub estimate: RttEstimate,
    /// When the packet that triggered this ACK arrived, by the receiver's clock, if the receiver
    /// reports it (RFC 7323 TSval). Only differences are meaningful.
    pub arrived: Option<Time>,
    /// One-way delay of that packet, plus an unknown constant, because the two clocks differ; only differences are
    /// meaningful. The constant is chosen such that the first packet's report seems to return in no time. Unlike
    /// [`rtt`](Ack::rtt) it does not include queues on the return path. Present if the receiver reports its clock
    /// (rrtp).
    pub forward_delay: Option<Duration>,
    /// What it reports cumulatively and by SACK.
    pub cumulative: CumulativeAck,
    /// Segments by which this ACK may let a window grow (appropriate byte counting, RFC 3465). This is
    /// [`newly_acked`](CumulativeAck::newly_acked), but no more than the receiver acknowledges at once. So an ACK that covers a repaired hole, or follows lost ACKs,
    /// causes no burst.
    pub counted: u64,
    /// The sender's estimate of the segments delivered by this ACK: newly acknowledged ones that were not SACKed
    /// before, plus newly SACKed ones. Without SACK a duplicate counts 1, and a later advance is reduced by those.
    pub newly_delivered: u64,
    /// Packets sent after the one that triggered this ACK.
    pub sent_since: u64,
    /// Segments in flight after this ACK: sent and not cumulatively acknowledged (FlightSize).
    pub flight: u64,
    /// Segments outstanding after this ACK, as loss recovery counts them (pipe).
    pub outstanding: u64,
    /// Segments outstanding before this ACK.
    pub prior_outstanding: u64,
    /// Whether the window was the limit when this ACK arrived (RFC 7661), so that growth is
    /// justified.
    pub window_limited: bool,
    /// Whether recovery is in progress; also true for the ACK that ends it.
    pub in_recovery: bool,
    /// Round number: advances when the first packet sent in the previous round is acknowledged.
    pub round: u64,
    /// Whether this ACK starts a new round.
    pub round_start: bool,
    /// CE marks that this ACK newly reports.
    pub marks: u32,
    /// Delivery-rate sample, if one could be taken.
    pub rate: Option<RateSample>,
    /// Feedback of the receiver side, in the last `on_ack` of a report; otherwise
    /// [`Feedback::NONE`].
    pub feedback: Feedback,
}

impl Ack {
    /// The acknowledgement of the only packet in flight, by an application that sends less than it may.
    #[inline]
    pub const fn of_packet(now: Time, rtt: Duration, min_rtt: Duration) -> Ack {
        Ack {
            now,
            rtt,
            estimate: RttEstimate { srtt: rtt, rttvar: Duration::ZERO, min_rtt },
            arrived: None,
            forward_delay: None,
            cumulative: CumulativeAck::of(1),
            counted: 1,
            newly_delivered: 1,
            sent_since: 0,
            flight: 0,
            outstanding: 0,
            prior_outstanding: 1,
            window_limited: false,
            in_recovery: false,
            round: 0,
            round_start: false,
            marks: 0,
            rate: None,
            feedback: Feedback::NONE,
        }
    }

    /// The same without an advance.
    #[inline]
    #[must_use]
    pub const fn as_duplicate(self) -> Ack {
        let cumulative = CumulativeAck { newly_acked: 0, duplicate: true, ..self.cumulative };
        Ack { counted: 0, newly_delivered: 0, cumulative, ..self }
    }

    /// The call for packet `i` of a report of `packets`, counted from 0: those after it are still in flight.
    #[inline]
    #[must_use]
    pub const fn of_report(self, i: u64, packets: u64) -> Ack {
        let left = packets - 1 - i;
        Ack {
            flight: self.flight + left,
            outstanding: self.outstanding + left,
            prior_outstanding: self.prior_outstanding.saturating_sub(i),
            round_start: self.round_start && i == 0,
            marks: if i == 0 { self.marks } else { 0 },
            ..self
        }
    }

    /// Whether an ACK-clocked window may grow by this ACK. It must advance, outside of recovery, with the window as the
    /// limit and without a congestion mark (RFC 3168 section 6.1.2).
    pub fn may_grow(&self) -> bool {
        self.cumulative.newly_acked > 0
            && !self.in_recovery
            && self.window_limited
            && self.marks == 0
    }
}

/// A delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// Segments delivered over the interval.
    pub delivered: u64,
    /// Time over which the packets were delivered.
    pub interval: Duration,
    /// Segments delivered in total when the acknowledged packet was sent.
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

/// How a loss was detected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LossFoundBy {
    /// Duplicate acknowledgements or a partial acknowledgement.
    Duplicates,
    /// SACK blocks above it.
    Sack,
    /// A fine-grained timer that is checked at each duplicate (Vegas).
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
    /// Number of times that this segment had been sent.
    pub transmissions: u32,
    /// How it was detected.
    pub found_by: LossFoundBy,
    /// Whether this loss begins a new loss episode.
    pub new_episode: bool,
    /// Number of these segments that the receiver's loss classifier attributes to the radio link rather than to
    /// congestion; 0 without a classifier.
    pub radio: u64,
}

/// Losses, and the beginnings and ends of the sender's reactions to losses and ECN marks.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum CongestionEvent {
    /// Segments were found lost. A reaction, if any, follows as an event of its own.
    Losses(Loss),
    /// Recovery begins: for a new loss episode (Reno, NewReno, SACK), or for an ECN mark.
    RecoveryStart(RecoveryEvent),
    /// Recovery has ended: everything sent before it began is acknowledged. After an ECN mark it
    /// ends at once.
    RecoveryEnd(RecoveryEvent),
    /// Slow start restarts: after a retransmission timeout, or Tahoe's third duplicate.
    SlowStartRestart(SlowStartRestart),
    /// Packets that were reported as lost arrived after all (rrtp only). Follows directly after the acknowledgement
    /// that shows it. If the whole episode was spurious, the end of the recovery has been reported before, if it was in
    /// progress.
    SpuriousLosses(SpuriousLosses),
}

/// Packets that were reported as lost arrived after all: they were only late.
#[derive(Clone, Copy, Debug)]
pub struct SpuriousLosses {
    /// Time at which the loss was detected.
    pub now: Time,
    /// How many packets.
    pub packets: u64,
    /// Whether no loss of the last loss episode remains: the episode's reduction was unjustified and should be undone
    /// (RFC 4015; RFC 9438 section 4.9).
    pub undo: bool,
}

/// Event that starts a recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RecoveryCause {
    /// Segments that were found lost.
    Loss,
    /// ECN marks, at most once per window, as the last event of an acknowledgement; during another recovery only if
    /// that one left the window unchanged. A controller that ignores the cause handles it like a loss without a
    /// retransmission (RFC 3168 section 6.1.2).
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
    /// Segments outstanding, as loss recovery counts them.
    pub outstanding: u64,
    /// Smallest RTT of the connection.
    pub min_rtt: Duration,
    /// Smoothed RTT.
    pub srtt: Duration,
}

/// News about the path.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum PathEvent {
    /// Some properties of the path have changed or become known. Values in the hints replace estimates; absent ones
    /// leave them.
    Hints(PathHints),
    /// Packet-pair dispersion measured in a connection's handshake: at most once, usually before the first
    /// acknowledgement.
    Dispersion(Dispersion),
    /// The size of full packets on the wire in bytes has changed (path MTU discovery). Events, windows and rates still
    /// count segments of [`Environment::packet_bytes`](crate::Environment::packet_bytes), because the sender converts.
    /// For controllers that depend on the number of packets.
    PacketBytes(u32),
    /// The changes of the window that a coupling with other paths sets for the next acknowledgement (RFC 6356). Reno
    /// follows it, with `like=linux` excepted.
    Coupling(WindowChange),
}

/// Packet-pair dispersion: the spacing of the responses to back-to-back handshake packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Dispersion {
    /// Round-trip time of a small packet.
    pub rtt: Duration,
    /// Bits of the responses after the first, including headers.
    pub bits: f64,
    /// Time from the first response to the last.
    pub took: Duration,
}

/// The window is reset and slow start begins again, after a timeout or Tahoe's duplicate ACKs.
#[derive(Clone, Copy, Debug)]
pub struct SlowStartRestart {
    /// When.
    pub now: Time,
    /// Segments in flight before the restart (FlightSize).
    pub flight: u64,
    /// Whether the retransmission timer caused it; otherwise duplicates did (Tahoe).
    pub timeout: bool,
    /// Number of consecutive timeouts for the same segment, including this one; 1 for the first.
    pub backoffs: u32,
    /// Smallest RTT of the connection.
    pub min_rtt: Duration,
    /// Smoothed RTT.
    pub srtt: Duration,
}

/// The outcome of one packet. Its number is never reused.
#[derive(Clone, Copy, Debug)]
pub struct PacketOutcome {
    /// Time at which the outcome was detected.
    pub now: Time,
    /// The packet's number.
    pub seq: u64,
    /// When it was sent.
    pub sent: Time,
    /// Its bytes on the wire.
    pub bytes: u32,
    /// Whether it was lost: the packet three numbers above has arrived (RFC 9002 section 6.1.1), or any later one
    /// arrived some time ago (section 6.1.2).
    pub lost: bool,
    /// Whether it arrived with a CE mark.
    pub marked: bool,
    /// Whether the receiver attributes its loss to the radio link rather than to congestion.
    pub radio: bool,
}

impl PacketOutcome {
    /// A packet that arrived without a mark.
    pub const fn arrived(now: Time, seq: u64, sent: Time, bytes: u32) -> PacketOutcome {
        PacketOutcome { now, seq, sent, bytes, lost: false, marked: false, radio: false }
    }
}

/// The duration in seconds, but at least one nanosecond: a safe divisor.
pub fn positive(d: Duration) -> f64 {
    d.as_nanos().max(1) as f64 * 1e-9
}
