//! The figures that goals are set for, and how they are written.

/// A figure that goals are set for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GoalFigure {
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

impl GoalFigure {
    /// As in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            GoalFigure::Rate => "rate",
            GoalFigure::Wire => "wire",
            GoalFigure::Queue => "queue ms",
            GoalFigure::Goodput => "Mbit/s",
            GoalFigure::Rtt => "RTT ms",
            GoalFigure::Dropped => "dropped",
            GoalFigure::Spurious => "spurious",
            GoalFigure::Acks => "ACKs",
            GoalFigure::Theta => "theta",
            GoalFigure::Inequality => "inequality",
            GoalFigure::Others => "others Mbit/s",
            GoalFigure::Jain => "Jain",
            GoalFigure::Completion => "completion ms",
            GoalFigure::Resumed => "resumed s",
            GoalFigure::Recovered => "recovered s",
            GoalFigure::Drained => "drained s",
        }
    }

    /// With as many digits as it deserves.
    pub fn text(self, value: f64) -> String {
        match self {
            _ if !value.is_finite() => "never".into(),
            GoalFigure::Queue | GoalFigure::Rtt | GoalFigure::Completion => format!("{value:.1}"),
            GoalFigure::Dropped | GoalFigure::Spurious | GoalFigure::Acks => {
                format!("{:.2}%", 100.0 * value)
            }
            GoalFigure::Goodput
            | GoalFigure::Others
            | GoalFigure::Resumed
            | GoalFigure::Recovered
            | GoalFigure::Drained => format!("{value:.2}"),
            _ => format!("{value:.3}"),
        }
    }
}
