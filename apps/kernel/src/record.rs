//! The data that programs and user space exchange; `bpf/shared.h` has the same layout.

/// Connections that have a controller at once.
pub const SLOTS: usize = 4096;
/// Size of the ring.
pub const RING_BYTES: usize = 4 << 20;
/// Size of a slot.
pub const SLOT_BYTES: usize = 128;
/// Size of the state that all connections share.
pub const CONTROL_BYTES: usize = 4096;
/// Size of a record.
pub const RECORD_BYTES: usize = 112;

/// Offsets in a slot.
pub mod slot {
    /// Time of the newest record that the limits are based on.
    pub const ANSWERED: usize = 0;
    /// The connection that the limits are for.
    pub const ANSWERED_CONNECTION: usize = 8;
    /// Window in segments.
    pub const CWND: usize = 12;
    /// Bytes of payload per second; 0: not paced.
    pub const RATE: usize = 16;
    /// Slow-start threshold in segments; 0: not set.
    pub const SSTHRESH: usize = 24;
    /// Without a rate: whether to pace nevertheless.
    pub const SMOOTH: usize = 28;
    /// The connection that has the slot; 0: free.
    pub const CONNECTION: usize = 64;
    /// Source of the limits in force.
    pub const MODE: usize = 68;
    /// The window in force.
    pub const APPLIED_CWND: usize = 72;
    /// Smoothed RTT in microseconds.
    pub const SRTT_US: usize = 76;
    /// The kernel's pacing rate.
    pub const APPLIED_RATE: usize = 80;
    /// Segments delivered.
    pub const DELIVERED: usize = 88;
    /// How often it went on as Reno.
    pub const FALLBACKS: usize = 104;
    /// Bytes of payload of a full segment.
    pub const MSS: usize = 108;
}

/// Offsets in the shared state.
pub mod control {
    /// Whether the next record shall wake the reader.
    pub const ASLEEP: usize = 0;
    /// Whether a controller inside the kernel puts records, too: tests want them.
    #[cfg(test)]
    pub const LISTENS: usize = 8;
    /// Connections so far.
    pub const CONNECTIONS: usize = 64;
    /// Of these, those without a slot.
    pub const WITHOUT_SLOT: usize = 72;
    /// Records that found the ring full.
    pub const LOST_RECORDS: usize = 80;
    /// How often a connection went on as Reno.
    pub const FALLBACKS: usize = 88;
    /// Statistics of user space.
    pub const STATISTICS: usize = 128;
}

/// Source of a connection's limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LimitSource {
    /// No limits received yet.
    New,
    /// The controller in user space.
    Controlled,
    /// The program itself, as Reno.
    Fallback,
}

impl LimitSource {
    /// The value of a slot's field.
    pub fn from_u32(value: u32) -> LimitSource {
        match value {
            0 => LimitSource::New,
            1 => LimitSource::Controlled,
            _ => LimitSource::Fallback,
        }
    }
}

/// Event of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordKind {
    /// An acknowledgement.
    Ack,
    /// The retransmission timer has expired.
    Timeout,
    /// The connection is over.
    Closed,
}

/// State of the kernel's loss recovery (`TCP_CA_…`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CaState {
    /// The kernel's `TCP_CA_Open` or `TCP_CA_Disorder`.
    Open,
    /// A mark, or the host's own queue was full.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
}

/// Cumulative counts of the kernel, of which the controller gets the differences; packets, and numbers of recoveries.
#[derive(Clone, Copy, Debug)]
pub struct KernelCounts {
    pub delivered: u32,
    /// Delivered ones with a congestion mark.
    pub marked: u32,
    pub lost: u32,
    pub sent: u32,
    pub retransmitted: u32,
    pub episodes: u32,
    pub undos: u32,
}

/// Round-trip times in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct KernelRtt {
    pub srtt: u32,
    pub rttvar: u32,
    pub newest: Option<u32>,
}

/// The kernel's rate sample, in packets and microseconds.
#[derive(Clone, Copy, Debug)]
pub struct KernelSample {
    pub delivered: u32,
    pub interval: u32,
    pub prior_delivered: u32,
    pub app_limited: bool,
}

/// Packets in flight, by the kernel's names.
#[derive(Clone, Copy, Debug)]
pub struct KernelFlight {
    pub packets_out: u32,
    pub sacked_out: u32,
    pub in_flight: u32,
    pub prior_in_flight: u32,
}

/// A report of one event of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub time: u64,
    pub slot: u32,
    pub connection: u32,
    pub kind: RecordKind,
    pub state: CaState,
    pub cwnd_limited: bool,
    pub app_limited: bool,
    pub ipv6: bool,
    pub retransmits: u8,
    pub mss: u32,
    pub tcp_header: u32,
    pub cwnd: u32,
    pub newly_delivered: u32,
    pub rtt: KernelRtt,
    pub sample: KernelSample,
    pub flight: KernelFlight,
    pub counts: KernelCounts,
    /// Of a controller inside the kernel after this: segments, 8 binary places.
    pub window: u32,
}

impl Record {
    /// From its words of four bytes.
    pub fn read(word: impl Fn(usize) -> u32) -> Record {
        let [kind, state, flags, retransmits] = word(4).to_ne_bytes();
        let [low, high] = [word(0), word(1)].map(u64::from);
        Record {
            time: if cfg!(target_endian = "little") { high << 32 | low } else { low << 32 | high },
            slot: word(2),
            connection: word(3),
            kind: match kind {
                1 => RecordKind::Ack,
                2 => RecordKind::Timeout,
                _ => RecordKind::Closed,
            },
            state: match state {
                2 => CaState::Cwr,
                3 => CaState::Recovery,
                4 => CaState::Loss,
                _ => CaState::Open,
            },
            cwnd_limited: flags & 1 != 0,
            app_limited: flags & 2 != 0,
            ipv6: flags & 8 != 0,
            retransmits,
            mss: word(7),
            tcp_header: word(8),
            cwnd: word(9),
            rtt: KernelRtt {
                srtt: word(10),
                rttvar: word(11),
                newest: i32::try_from(word(12)).ok().and_then(|us| u32::try_from(us).ok()),
            },
            newly_delivered: word(13),
            sample: KernelSample {
                delivered: word(14),
                interval: word(15),
                prior_delivered: word(16),
                app_limited: flags & 4 != 0,
            },
            flight: KernelFlight {
                packets_out: word(17),
                sacked_out: word(18),
                in_flight: word(19),
                prior_in_flight: word(20),
            },
            counts: KernelCounts {
                delivered: word(21),
                marked: word(22),
                lost: word(23),
                sent: word(24),
                retransmitted: word(25),
                episodes: word(5),
                undos: word(6),
            },
            window: word(26),
        }
    }
}
