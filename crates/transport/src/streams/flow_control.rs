//! Flow control: limits on the bytes of a stream, on the bytes of all streams, and on the number of
//! streams (RFC 9000 section 4). All three are cumulative and never decrease.

use narrows_wire::bytes::MAX_VARINT;

/// What this end permits the peer: `size` beyond what was used up here.
#[derive(Clone, Debug)]
pub(super) struct Window {
    size: u64,
    /// What the peer was last told.
    granted: u64,
    /// What came of it: the highest offset, or streams opened.
    came: u64,
    /// What the application took: bytes read or dropped, streams that are over.
    taken: u64,
    /// The peer said that it waits at `granted`.
    waits: bool,
    /// The peer should be told anew.
    pending: bool,
}

impl Window {
    pub fn new(size: u64) -> Window {
        let size = size.min(MAX_VARINT);
        Window { size, granted: size, came: 0, taken: 0, waits: false, pending: false }
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
    /// `more` arrived, which must be at most [`send_buffer`](Window::send_buffer).
    #[inline]
    pub fn come(&mut self, more: u64) {
        self.came += more;
    }
    /// `more` was consumed. The peer is informed when that is half of the window, or at once if it
    /// is blocked, because other streams may hold the rest.
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
    /// The peer is blocked at this limit.
    pub fn waits_at(&mut self, at: u64) {
        // Below, a greater limit is on its way already.
        self.waits = at >= self.granted;
        self.pending |= self.is_due();
    }
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.pending
    }
    /// The last limit sent to the peer was lost.
    pub fn say_again(&mut self) {
        self.pending = true;
    }
    /// The limit to send now.
    pub fn offer(&self) -> u64 {
        self.next()
    }
    /// The limit was sent.
    pub fn on_advertised(&mut self, granted: u64) {
        self.granted = granted;
        self.waits = false;
        self.pending = false;
    }
}

/// All streams of the peer together.
#[derive(Debug)]
pub(super) struct Total {
    pub window: Window,
    /// Pieces that wait behind gaps.
    pub sent_frames: usize,
}

/// What the peer permits this end.
#[derive(Clone, Debug, Default)]
pub(super) struct Credit {
    most: u64,
    used: u64,
    /// The limit at which the peer was told that this end waits.
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
    /// Consumes `n`, which must be at most [`send_buffer`](Credit::send_buffer).
    #[inline]
    pub fn spend(&mut self, n: u64) {
        self.used += n;
    }
    /// The peer sent a limit; limits never decrease. Returns whether it is higher.
    pub fn raise(&mut self, most: u64) -> bool {
        let most = most.min(MAX_VARINT);
        let more = most > self.most;
        self.most = self.most.max(most);
        more
    }
    /// Whether to inform the peer that this end is blocked.
    #[inline]
    pub fn must_say(&self) -> bool {
        self.used == self.most && self.said != Some(self.most)
    }
    pub fn said(&mut self) {
        self.said = Some(self.most);
    }
    /// That information was lost. Returns whether it is still true.
    pub fn unsaid(&mut self) -> bool {
        let still = self.said == Some(self.most) && self.used == self.most;
        if still {
            self.said = None;
        }
        still
    }
}
