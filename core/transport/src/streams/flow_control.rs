//! Flow control: limits on the bytes of a stream, on the bytes of all streams, and on the number of
//! streams (RFC 9000 section 4). All three are cumulative and never decrease.

use super::FlowControlLimits;
use narrows_wire::bytes::MAX_VARINT;

/// The limit that this end grants to the peer: `size` beyond the amount consumed here.
#[derive(Clone, Debug)]
pub(super) struct ReceiveWindow {
    size: u64,
    /// The last limit sent to the peer.
    granted: u64,
    /// The amount used by the peer: highest offset, or streams opened.
    came: u64,
    /// The amount consumed by the application: bytes read or dropped, streams closed.
    taken: u64,
    /// The peer reported that it is blocked at `granted`.
    waits: bool,
    /// A new limit is to be sent.
    pending: bool,
}

impl ReceiveWindow {
    pub fn new(size: u64) -> ReceiveWindow {
        let size = size.min(MAX_VARINT);
        ReceiveWindow { size, granted: size, came: 0, taken: 0, waits: false, pending: false }
    }
    #[inline]
    pub fn size(&self) -> u64 {
        self.size
    }
    #[inline]
    pub fn granted(&self) -> u64 {
        self.granted
    }
    #[inline]
    pub fn came(&self) -> u64 {
        self.came
    }
    #[inline]
    pub fn taken(&self) -> u64 {
        self.taken
    }
    /// How much the peer may still send.
    #[inline]
    pub fn room(&self) -> u64 {
        self.granted - self.came
    }
    /// Adds `more` arrivals, which must be at most [`room`](ReceiveWindow::room).
    #[inline]
    pub fn come(&mut self, more: u64) {
        self.came += more;
    }
    /// Adds `more` consumption. A new limit is sent once it exceeds the old one by half of the
    /// window. If the peer is blocked, it is sent at once, because other streams may hold the rest.
    #[inline]
    pub fn take(&mut self, more: u64) {
        self.taken += more;
        self.pending |= self.is_due();
    }
    fn is_due(&self) -> bool {
        let more = self.next() - self.granted;
        more > 0 && (self.waits || more >= self.size / 2)
    }
    fn next(&self) -> u64 {
        self.taken.saturating_add(self.size).min(MAX_VARINT).max(self.granted)
    }
    /// Widens the window to at least `size`.
    #[inline]
    pub fn grow(&mut self, size: u64) {
        self.size = self.size.max(size.min(MAX_VARINT));
        self.pending |= self.is_due();
    }
    /// Handles a report that the peer is blocked at this limit.
    pub fn waits_at(&mut self, at: u64) {
        // If it is lower, a greater limit is already in transit.
        self.waits = at >= self.granted;
        self.pending |= self.is_due();
    }
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.pending
    }
    /// Sends the limit again after a loss.
    pub fn say_again(&mut self) {
        self.pending = true;
    }
    /// The limit to send now.
    pub fn offer(&self) -> u64 {
        self.next()
    }
    /// Records a limit that was sent.
    pub fn on_advertised(&mut self, granted: u64) {
        self.granted = granted;
        self.waits = false;
        self.pending = false;
    }
}

/// Limits on all streams of the peer together.
#[derive(Debug)]
pub(super) struct Total {
    pub window: ReceiveWindow,
    /// Least window of a stream from which data are read.
    pub of_stream: u64,
    /// Bytes by which the window of all streams is larger.
    beyond_one: u64,
    /// Bytes read by the application.
    pub read: u64,
    /// Ranges of received data behind gaps.
    pub sent_frames: usize,
}

impl Total {
    pub fn new(limits: &FlowControlLimits) -> Total {
        let window = ReceiveWindow::new(limits.data);
        let beyond_one = limits.data.saturating_sub(limits.stream);
        Total { window, of_stream: limits.stream, beyond_one, read: 0, sent_frames: 0 }
    }
    /// Widens the window of a stream to at least `size`, and that of all streams by as much.
    pub fn grow(&mut self, size: u64) {
        if size > self.of_stream {
            self.of_stream = size;
            self.window.grow(size.saturating_add(self.beyond_one));
        }
    }
}

/// The limit that the peer grants to this end.
#[derive(Clone, Debug, Default)]
pub(super) struct Credit {
    most: u64,
    used: u64,
    /// The limit at which this end last reported that it is blocked.
    said: Option<u64>,
}

impl Credit {
    pub fn new(most: u64) -> Credit {
        Credit { most: most.min(MAX_VARINT), used: 0, said: None }
    }
    #[inline]
    pub fn used(&self) -> u64 {
        self.used
    }
    #[inline]
    pub fn most(&self) -> u64 {
        self.most
    }
    #[inline]
    pub fn room(&self) -> u64 {
        self.most - self.used
    }
    /// Consumes `n`, which must be at most [`room`](Credit::room).
    #[inline]
    pub fn spend(&mut self, n: u64) {
        self.used += n;
    }
    /// Takes a limit from the peer; limits never decrease. Returns whether it is higher.
    pub fn raise(&mut self, most: u64) -> bool {
        let most = most.min(MAX_VARINT);
        let more = most > self.most;
        self.most = self.most.max(most);
        more
    }
    /// Whether to report to the peer that this end is blocked.
    #[inline]
    pub fn must_say(&self) -> bool {
        self.used == self.most && self.said != Some(self.most)
    }
    pub fn said(&mut self) {
        self.said = Some(self.most);
    }
    /// Handles the loss of that report. Returns whether this end is still blocked there.
    pub fn unsaid(&mut self) -> bool {
        let still = self.said == Some(self.most) && self.used == self.most;
        if still {
            self.said = None;
        }
        still
    }
}
