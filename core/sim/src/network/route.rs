//! The route of a flow through the links.

/// No index.
pub(super) const NONE: u32 = u32::MAX;
/// Indices of a route's directions: data and ACKs.
pub(super) const FORWARD: usize = 0;
pub(super) const BACK: usize = 1;

/// The links of a flow's packets.
#[derive(Clone, Copy)]
pub(super) struct FlowRoute {
    /// First index in the list of hops, and number of hops: for data, and for ACKs ([`BACK`]). An array, because a
    /// branch on the direction would be unpredictable.
    pub ways: [(u32, u16); 2],
    pub group: u32,
    /// Index of its series, or `NONE`.
    pub series: u32,
}
