//! Limits on the trains that one probe sends in each direction. The prober and the server count with the same type, so
//! that the server never refuses a train that the prober plans.

use crate::frames::MAX_PACKETS;
use narrows_base::Duration;

/// Bytes of each direction, the headers of IP and UDP included.
pub const MAX_BYTES: u64 = 24_000_000;

/// From the beginning of the handshake to the last report.
pub const MAX_TIME: Duration = Duration::from_millis(9_300);

/// The bytes that one direction of one probe has sent. Packets count when they are sent, not when they are planned: a
/// train may end early.
#[derive(Clone, Copy, Default, Debug)]
pub struct Budget {
    sent_packets: u64,
    sent_bytes: u64,
}

impl Budget {
    /// Bytes that may still be sent.
    pub fn left(&self) -> u64 {
        MAX_BYTES.saturating_sub(self.sent_bytes)
    }
    /// Packets that were sent.
    pub fn sent_packets(&self) -> u64 {
        self.sent_packets
    }
    /// Bytes that were sent.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Whether a train of `packets` packets of `bytes` each, `gap` apart, may be sent.
    ///
    /// # Errors
    /// Names the limit that the train exceeds.
    pub fn check(&self, packets: u32, bytes: u32, gap: Duration) -> Result<(), &'static str> {
        if packets > MAX_PACKETS {
            return Err("a train of a probe has at most 24000 packets");
        }
        if u64::from(packets) * u64::from(bytes) > self.left() {
            return Err("a probe gets at most 24 MB in each direction");
        }
        if gap.as_nanos() > MAX_TIME.as_nanos() / u64::from(packets.max(1)) {
            return Err("a train takes longer than a probe may");
        }
        Ok(())
    }

    /// Counts packets that were sent.
    pub fn count(&mut self, packets: usize, bytes: u32) {
        self.sent_packets += packets as u64;
        self.sent_bytes += packets as u64 * u64::from(bytes);
    }
}
