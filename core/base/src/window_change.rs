//! How coupled paths change one path's congestion window.

/// Set by a coupling, applied by the controller of the path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WindowChange {
    /// Packets by which an acknowledged packet raises the window in congestion avoidance; OLIA's may be negative.
    pub increase: f64,
    /// Factor applied to the window at a loss, 0 to 1.
    pub decrease: f64,
}
