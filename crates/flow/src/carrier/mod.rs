//! The carrier: packets whose numbers are never used again, when each may leave, what became of it,
//! and what the controller is told. What the packets carry is the cargo's affair, so that a
//! simulated stream and a real connection run the same machine.

/// What packets carry, to the carrier.
pub trait Cargo {
    /// What one packet carries, kept until the packet's fate is known.
    type Load;
    /// Whether nothing waits, new or to be sent again.
    fn is_empty(&mut self) -> bool;
    /// Whether nothing in flight would have to be repaired.
    fn all_arrived(&self) -> bool;
    /// A packet with this load arrived.
    fn arrived(&mut self, load: &Self::Load);
    /// A packet with this load counts as lost, or is put forward by a probe: what is still wanted of
    /// it must leave again; whether anything is.
    fn lost(&mut self, load: &Self::Load) -> bool;
}
