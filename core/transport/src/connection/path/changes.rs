//! Counts of changes of path, to match NEW_PATH frames with them.

use narrows_base::{Duration, Time};
use narrows_wire::frame::{NEW_PATH, number_bytes};
use narrows_wire::{Frame, FrameWriter};

/// Shortest lifetime of a congestion state; `MIN_PTOS` is the same in PTOs.
const MIN_LIFE: Duration = Duration::from_secs(1);
const MIN_PTOS: u64 = 3;

/// Counts of changes, to match NEW_PATH frames with them.
#[derive(Debug, Default)]
pub struct PathChanges {
    /// Changes found by this end, and whether the last is not yet acknowledged.
    found: u64,
    must_say: bool,
    /// Changes announced by the peer.
    peers: u64,
    /// Whether the peer ever had another address, even if the congestion state was kept.
    has_moved: bool,
    /// Time of the last reset.
    last: Option<Time>,
}

impl PathChanges {
    /// This end found a change. NEW_PATH announces it.
    pub fn on_found(&mut self) {
        self.found += 1;
        self.must_say = true;
    }
    /// The peer's address changed.
    pub fn on_moved(&mut self) {
        self.has_moved = true;
    }
    /// Whether all packets had one address of the peer and, as far as the peer announced, one of this end.
    pub fn is_one_path(&self) -> bool {
        !self.has_moved && self.peers == 0
    }
    /// The peer announced `times` changes. Returns whether the last is new.
    pub fn on_announced(&mut self, times: u64) -> bool {
        let is_new = times > self.peers;
        self.peers = self.peers.max(times);
        is_new
    }
    /// Whether the congestion state may be reset. If so, the reset counts from now on.
    pub fn may_reset(&mut self, now: Time, probe_timeout: Duration) -> bool {
        let life = probe_timeout.saturating_mul(MIN_PTOS).max(MIN_LIFE);
        if self.last.is_some_and(|last| now < last + life) {
            return false;
        }
        self.last = Some(now);
        true
    }
    /// Writes NEW_PATH until a packet with it is acknowledged. `has_arrived`: whether a packet arrived on the new path.
    #[inline]
    pub fn write(&mut self, has_arrived: bool, writer: &mut FrameWriter<'_>) {
        self.must_say &= !has_arrived;
        if !self.must_say {
            return;
        }
        let mut bytes = [0; 8];
        let body = number_bytes(self.found, &mut bytes);
        let _ = writer.frame(&Frame::Extension { kind: NEW_PATH, body });
    }
}
