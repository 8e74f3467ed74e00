//! Counters of a sender.

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Data packets sent, including the SYN and retransmissions.
    pub sent: u64,
    /// Of these, retransmissions.
    pub retransmissions: u64,
    /// Retransmission timeouts; for rrtp's endpoint, probe timeouts.
    pub timeouts: u64,
    /// Loss episodes detected without a timeout.
    pub episodes: u64,
    /// Packets declared lost: for TCP, retransmitted segments (the same as `retransmissions`); for
    /// rrtp's endpoint, all packets declared lost, rightly or not.
    pub lost: u64,
    /// Of these, packets that arrived after all (rrtp's endpoint only).
    pub spurious: u64,
    /// Reactions to ECN marks, at most one per window.
    pub marks: u64,
    /// Flights by a stored rate that met congestion (rrtp's endpoint only).
    pub retreats: u64,
    /// Writes that expired and were never sent (media only).
    pub expired: u64,
}

impl Counters {
    /// Adds the counts of another path.
    pub fn add(&mut self, other: &Counters) {
        self.sent += other.sent;
        self.retransmissions += other.retransmissions;
        self.timeouts += other.timeouts;
        self.episodes += other.episodes;
        self.lost += other.lost;
        self.spurious += other.spurious;
        self.marks += other.marks;
        self.retreats += other.retreats;
        self.expired += other.expired;
    }
}
