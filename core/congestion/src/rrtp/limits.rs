//! The result of every policy.

/// The limits that a policy sets.
#[derive(Clone, Copy, Debug)]
pub struct PolicyLimits {
    /// Packets in flight.
    pub window: f64,
    /// Packets per second; `None` means no pacing.
    pub rate: Option<f64>,
}
