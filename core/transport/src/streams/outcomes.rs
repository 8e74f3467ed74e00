//! Acknowledgement and loss of sent frames.

use super::{SentFrame, StreamEvent, Streams};

impl Streams {
    /// Handles the acknowledgement of a frame.
    #[inline]
    pub fn arrived(&mut self, piece: &SentFrame) {
        match *piece {
            SentFrame::Stream { id, offset, length, fin } => {
                self.data_arrived(id, offset, length, fin)
            }
            SentFrame::Reset(id) => {
                let stream = self.map.get_mut(id);
                if let Some(half) = stream.and_then(|s| s.send.as_mut()) {
                    half.reset_arrived();
                    self.settle(id);
                }
            }
            SentFrame::MaxData
            | SentFrame::MaxStream(_)
            | SentFrame::MaxStreams(_)
            | SentFrame::Stop(_)
            | SentFrame::Blocked => self.said_less(),
        }
    }

    /// Counts one control frame less of unknown outcome. A packet declared lost that arrives later has two outcomes.
    /// Then the count may miss a limit in flight, which BLOCKED repairs.
    fn said_less(&mut self) {
        self.queues.said = self.queues.said.saturating_sub(1);
    }

    pub(super) fn data_arrived(&mut self, id: u64, offset: u64, length: u32, fin: bool) {
        let Some(stream) = self.map.get_mut(id) else { return };
        let Some(half) = &mut stream.send else { return };
        let before = half.in_order();
        let buffered = half.buffered();
        let all = half.arrived(offset, length, fin);
        self.arrived += half.in_order() - before;
        self.held.change(buffered, half.buffered());
        self.held.arrived();
        if half.has_room_again(&self.held) {
            self.queues.writable(stream);
        }
        if all {
            self.queues.events.push_back(StreamEvent::Arrived(id));
            self.settle(id);
        } else {
            self.queues.touch(stream);
        }
    }

    /// Handles the loss of a frame. Returns whether a part of it must be retransmitted.
    pub fn lost(&mut self, piece: &SentFrame) -> bool {
        if !matches!(piece, SentFrame::Stream { .. } | SentFrame::Reset(_)) {
            self.said_less();
        }
        let (id, again) = match *piece {
            SentFrame::MaxData => {
                self.all.window.say_again();
                return true;
            }
            SentFrame::MaxStreams(one_way) => {
                self.theirs[usize::from(one_way)].say_again();
                return true;
            }
            SentFrame::Blocked => return self.blocked_lost(),
            SentFrame::Stream { id, offset, length, fin } => {
                let stream = self.map.get_mut(id);
                let half = stream.and_then(|s| s.send.as_mut());
                (id, half.is_some_and(|half| half.lost(offset, length, fin)))
            }
            SentFrame::Reset(id) => {
                let stream = self.map.get_mut(id);
                let half = stream.and_then(|s| s.send.as_mut());
                (id, half.is_some_and(|half| half.reset_lost()))
            }
            SentFrame::MaxStream(id) => {
                let stream = self.map.get_mut(id);
                let half = stream.and_then(|s| s.receive.as_mut());
                let again = half.is_some_and(|half| {
                    half.window.say_again();
                    half.must_grant()
                });
                (id, again)
            }
            SentFrame::Stop(id) => {
                let stream = self.map.get_mut(id);
                let half = stream.and_then(|s| s.receive.as_mut());
                (id, half.is_some_and(|half| half.stop_lost()))
            }
        };
        if again && let Some(stream) = self.map.get_mut(id) {
            self.queues.touch(stream);
        }
        again
    }

    /// BLOCKED must be repeated, because the peer's application may leave the rest of the window unread for long. The
    /// same holds for STREAMS_BLOCKED, but not for STREAM_BLOCKED: a reader waits only after reading half of a stream's
    /// window.
    fn blocked_lost(&mut self) -> bool {
        let mut again = !self.queues.fresh.is_empty() && self.credit.unsaid();
        for direction_index in 0..2 {
            again |= self.wants_open[direction_index] && self.ours[direction_index].unsaid();
        }
        again
    }
}
