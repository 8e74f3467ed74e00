//! The figures that goals are set for, and how they are written.

/// A figure that goals are set for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Figure {
    /// Goodput over the largest possible goodput of the link, with its losses subtracted.
    Rate,
    /// Bytes offered to the link for each application byte delivered, times 1 - loss.
    Wire,
    /// Transmission time of the packets in the queue, mean over time, ms.
    Queue,
    /// Goodput, Mbit/s.
    Goodput,
    /// Mean round trip, ms.
    Rtt,
    /// Share of the offered packets that the bottleneck's queue dropped.
    Dropped,
    /// Packets sent again beyond those that were dropped or lost, over the packets sent.
    Spurious,
    /// Share of the return path's capacity that acknowledgements use.
    Acks,
    /// Share of the other flows in the departures.
    Theta,
    /// How far theta is from 0.5.
    Inequality,
    /// Goodput of the other flows, Mbit/s.
    Others,
    /// Jain's index of the flows' goodputs.
    Jain,
    /// Mean completion time of the transfers, ms.
    Completion,
    /// Seconds from the last change, or an outage's end, to the first packet that the link then serves.
    Resumed,
    /// Seconds from that packet to 0.8 of the capacity that the link then has, over 0.2 s.
    Recovered,
    /// Seconds from the last change until the queue stays below two base round trips.
    Drained,
}

impl Figure {
    /// As in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Figure::Rate => "rate",
            Figure::Wire => "wire",
            Figure::Queue => "queue ms",
            Figure::Goodput => "Mbit/s",
            Figure::Rtt => "RTT ms",
            Figure::Dropped => "dropped",
            Figure::Spurious => "spurious",
            Figure::Acks => "ACKs",
            Figure::Theta => "theta",
            Figure::Inequality => "inequality",
            Figure::Others => "others Mbit/s",
            Figure::Jain => "Jain",
            Figure::Completion => "completion ms",
            Figure::Resumed => "resumed s",
            Figure::Recovered => "recovered s",
            Figure::Drained => "drained s",
        }
    }

    /// With as many digits as it deserves.
    pub fn text(self, value: f64) -> String {
        match self {
            _ if !value.is_finite() => "never".into(),
            Figure::Queue | Figure::Rtt | Figure::Completion => format!("{value:.1}"),
            Figure::Dropped | Figure::Spurious | Figure::Acks => format!("{:.2}%", 100.0 * value),
            Figure::Goodput
            | Figure::Others
            | Figure::Resumed
            | Figure::Recovered
            | Figure::Drained => format!("{value:.2}"),
            _ => format!("{value:.3}"),
        }
    }
}
