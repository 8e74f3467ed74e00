//! The ECN field of outgoing packets.

/// ECN field of packets that routers may mark: ECT(0).
const ECT0: u8 = 2;
/// ECN field of a scalable sender (RFC 9331): ECT(1).
const ECT1: u8 = 1;

/// The choice of the ECN field.
#[derive(Debug)]
pub(super) struct EcnField {
    /// Whether the protocol's packets are ECN-capable.
    pub is_on: bool,
    /// The field of data packets set by the application, in place of the protocol's.
    pub by_application: Option<u8>,
}

impl EcnField {
    /// The field of a packet; `l4s`: whether the controller needs L4S marks.
    pub fn of(&self, is_data: bool, l4s: bool) -> u8 {
        match (is_data, self.by_application) {
            (false, _) => 0,
            (true, Some(field)) => field,
            (true, None) if l4s => ECT1,
            (true, None) if self.is_on => ECT0,
            (true, None) => 0,
        }
    }
}
