//! The interface of couplings: congestion avoidance of one path that depends on all paths.

use narrows_base::{Descriptor, Duration, WindowChange, list::Listed};

/// What a coupling reads of a path that carries data.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CoupledPath {
    /// Congestion window in packets, above 0.
    pub cwnd: f64,
    /// Smoothed RTT, above 0.
    pub srtt: Duration,
    /// The larger of the packets acknowledged between the last two losses and since the last one.
    pub loss_interval: f64,
}

impl CoupledPath {
    /// A window per RTT, in packets per second.
    pub(crate) fn rate(&self) -> f64 {
        self.cwnd / self.srtt.as_secs_f64()
    }
}

/// A listed coupling.
#[derive(Clone, Copy, Debug)]
pub struct CouplingEntry {
    /// Name, source and status.
    pub descriptor: &'static Descriptor,
    /// Whether a [`SharedBottleneck`](crate::SharedBottleneck) limits paths.
    pub detects: bool,
    /// The change of the window of the path with this index. The paths are those that carry data; their windows and
    /// RTTs are positive. `None` leaves it to the path's own controller.
    pub change: fn(&[CoupledPath], usize) -> Option<WindowChange>,
}

impl Listed for CouplingEntry {
    fn name(&self) -> &'static str {
        self.descriptor.name
    }
}
