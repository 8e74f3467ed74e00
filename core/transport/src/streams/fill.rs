//! Fills packets with frames. Control frames come first, then streams by priority. Within a priority lost data come
//! before new data, and streams take turns.

use super::priority::PriorityQueue;
use super::queues::Queues;
use super::stream::Stream;
use super::{Frame, SentFrame, Streams};
use narrows_wire::FrameWriter;
use std::collections::VecDeque;

/// If a packet has less space than this for stream data, longer data wait for the next packet, unless this one is
/// empty.
const MIN_FRAME_BYTES: usize = 32;

/// Most streams whose bytes [`Streams::waiting`] counts.
const MAX_COUNTED: usize = 16;

/// Data that wait to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WaitingData {
    /// Bytes to retransmit.
    pub lost: u64,
    /// New bytes; `u64::MAX` if the application writes more than the send buffer takes.
    pub fresh: u64,
    /// Whether control frames wait.
    pub is_control: bool,
}

impl Streams {
    /// Whether [`fill`](Streams::fill) would write a frame.
    pub fn has_something(&mut self) -> bool {
        if self.all.window.is_pending()
            || self.theirs.iter().any(|t| t.is_pending())
            || (0..2).any(|direction_index| self.must_say_streams_blocked(direction_index))
        {
            return true;
        }
        let Streams { map, queues, credit, .. } = self;
        let Queues { control, again, fresh, .. } = queues;
        settle_control(control, |id| {
            let stream = map.get_mut(*id)?;
            stream.in_control = stream.must_control();
            stream.in_control.then_some(())
        }) || settle_front(again, |id| {
            let stream = map.get_mut(id)?;
            stream.in_again = stream.send.as_mut()?.next_retransmission().is_some();
            stream.in_again.then_some(())
        }) || (credit.room() > 0 || credit.must_say())
            && settle_front(fresh, |id| {
                let stream = map.get_mut(id)?;
                stream.in_fresh = stream.send.as_mut()?.next_new().is_some();
                stream.in_fresh.then_some(())
            })
    }

    /// The data that wait to be sent, of the first streams in turn. Streams below the highest priority are left out: they
    /// send only after these.
    pub fn waiting(&self) -> WaitingData {
        let is_control = !self.queues.control.is_empty() || self.all.window.is_pending();
        let mut waiting = WaitingData { is_control, ..WaitingData::default() };
        let half = |id| self.map.get(id).and_then(|stream| stream.send.as_ref());
        let Queues { again, fresh, .. } = &self.queues;
        // Without credit, only lost data can leave.
        let highest_fresh = fresh.highest().filter(|_| self.credit.room() > 0);
        let highest = again.highest().max(highest_fresh);
        for half in again.ids_of(highest).take(MAX_COUNTED).filter_map(half) {
            waiting.lost += half.lost_bytes();
        }
        for half in fresh.ids_of(highest).take(MAX_COUNTED).filter_map(half) {
            if half.is_endless() {
                waiting.fresh = u64::MAX;
                return waiting;
            }
            waiting.fresh += half.next_new().map_or(0, |(from, to)| to - from);
        }
        waiting.fresh = waiting.fresh.min(self.credit.room());
        waiting
    }

    /// Writes frames until the packet is full, and reports each to `wrote`. Control frames come first, then streams by
    /// priority. If stream data fill the packet, they are the last frame, without a length, and are not copied:
    /// [`bytes`](Streams::bytes) returns them.
    pub fn fill(&mut self, writer: &mut FrameWriter<'_>, wrote: &mut dyn FnMut(SentFrame)) {
        let mut said = 0;
        let _ = self.fill_all(writer, &mut |piece| {
            said += usize::from(!matches!(piece, SentFrame::Stream { .. } | SentFrame::Reset(_)));
            wrote(piece);
        });
        self.queues.said += said;
    }

    /// The bytes of the stream frame written last.
    #[inline]
    pub fn bytes(&self, piece: &SentFrame) -> &[u8] {
        let SentFrame::Stream { id, offset, length, .. } = *piece else { return &[] };
        let half = self.map.get(id).and_then(|stream| stream.send.as_ref());
        half.map_or(&[], |half| half.bytes(offset, offset + u64::from(length)))
    }

    /// `None` if the packet is full.
    fn fill_all(
        &mut self,
        writer: &mut FrameWriter<'_>,
        wrote: &mut dyn FnMut(SentFrame),
    ) -> Option<()> {
        let before = writer.len();
        self.fill_limits(writer, wrote)?;
        self.fill_control(writer, wrote)?;
        let mut has_credit = true;
        loop {
            let fresh = self.queues.fresh.highest().filter(|_| has_credit);
            let again = self.queues.again.highest();
            if again.is_some() && again >= fresh {
                self.fill_again(writer, wrote, before)?;
            } else if fresh.is_some() {
                has_credit = self.fill_fresh(writer, wrote, before)?;
            } else {
                break;
            }
        }
        // Only now it is known whether the connection's limit blocks the streams.
        if self.credit.must_say() && !self.queues.fresh.is_empty() {
            writer.frame(&Frame::Blocked { at: self.credit.most() }).ok()?;
            self.credit.said();
            wrote(SentFrame::Blocked);
        }
        Some(())
    }

    fn must_say_streams_blocked(&self, direction_index: usize) -> bool {
        self.wants_open[direction_index] && self.ours[direction_index].must_say()
    }

    fn fill_limits(
        &mut self,
        writer: &mut FrameWriter<'_>,
        wrote: &mut dyn FnMut(SentFrame),
    ) -> Option<()> {
        if self.all.window.is_pending() {
            let most = self.all.window.offer();
            writer.frame(&Frame::MaxData(most)).ok()?;
            self.all.window.on_advertised(most);
            wrote(SentFrame::MaxData);
        }
        for direction_index in 0..2 {
            let one_way = direction_index == 1;
            if self.theirs[direction_index].is_pending() {
                let most = self.theirs[direction_index].offer().min(super::stream::MAX_STREAMS);
                writer.frame(&Frame::MaxStreams { one_way, most }).ok()?;
                self.theirs[direction_index].on_advertised(most);
                wrote(SentFrame::MaxStreams(one_way));
            }
            if self.must_say_streams_blocked(direction_index) {
                let at = self.ours[direction_index].most();
                writer.frame(&Frame::StreamsBlocked { one_way, at }).ok()?;
                self.ours[direction_index].said();
                wrote(SentFrame::Blocked);
            }
        }
        Some(())
    }

    fn fill_control(
        &mut self,
        writer: &mut FrameWriter<'_>,
        wrote: &mut dyn FnMut(SentFrame),
    ) -> Option<()> {
        while let Some(&id) = self.queues.control.front() {
            if let Some(stream) = self.map.get_mut(id) {
                let full = control(stream, writer, wrote).is_none();
                stream.in_control = full;
                self.queues.touch(stream);
                if full {
                    return None;
                }
            }
            self.queues.control.pop_front();
        }
        Some(())
    }

    /// Retransmits the lost data of the first stream that has any. `None` if the packet is full.
    fn fill_again(
        &mut self,
        writer: &mut FrameWriter<'_>,
        wrote: &mut dyn FnMut(SentFrame),
        before: usize,
    ) -> Option<()> {
        let Streams { map, queues, .. } = self;
        let Some(stream) = queues.again.front().and_then(|id| map.get_mut(id)) else {
            queues.again.pop_front();
            return Some(());
        };
        let mut any = false;
        let mut full = false;
        while let Some((from, to)) = stream.send.as_mut().and_then(|s| s.next_retransmission()) {
            let Some(end) = put(stream, from, to, writer, wrote, before) else {
                full = true;
                break;
            };
            any = true;
            if let Some(half) = &mut stream.send {
                half.on_retransmitted(end);
            }
        }
        stream.in_again = full;
        queues.touch(stream);
        if full {
            if any {
                queues.again.sent(0);
            }
            return None;
        }
        queues.again.pop_front();
        Some(())
    }

    /// Writes new data of the first stream that has any, within the connection's limit. Returns whether the limit
    /// permits more. `None` if the packet is full.
    fn fill_fresh(
        &mut self,
        writer: &mut FrameWriter<'_>,
        wrote: &mut dyn FnMut(SentFrame),
        before: usize,
    ) -> Option<bool> {
        let Streams { map, queues, credit, held, .. } = self;
        let Some(stream) = queues.fresh.front().and_then(|id| map.get_mut(id)) else {
            queues.fresh.pop_front();
            return Some(true);
        };
        let mut sent = 0;
        let mut full = false;
        while let Some((from, to)) = stream.send.as_ref().and_then(|s| s.next_new()) {
            let to = to.min(from + credit.room());
            if from == to {
                // Without credit the stream keeps its place.
                queues.touch(stream);
                return Some(false);
            }
            let Some(end) = put(stream, from, to, writer, wrote, before) else {
                full = true;
                break;
            };
            sent += end - from;
            credit.spend(end - from);
            let Some(half) = &mut stream.send else { break };
            half.on_sent(end - from);
            if half.has_room_again(held) {
                queues.writable(stream);
            }
        }
        stream.in_fresh = full;
        // It may be blocked at its own limit now, or only its end remains.
        queues.touch(stream);
        if full {
            // If the packet was full before any of its data, the stream keeps its turn.
            if sent > 0 {
                queues.fresh.sent(sent);
            }
            return None;
        }
        queues.fresh.pop_front();
        Some(true)
    }
}

/// Drops outdated entries from the front. Returns whether a valid one remains.
fn settle_front(list: &mut PriorityQueue, mut valid: impl FnMut(u64) -> Option<()>) -> bool {
    while let Some(id) = list.front() {
        if valid(id).is_some() {
            return true;
        }
        list.pop_front();
    }
    false
}

/// The same for streams with control frames.
fn settle_control(list: &mut VecDeque<u64>, mut valid: impl FnMut(&u64) -> Option<()>) -> bool {
    while let Some(id) = list.front() {
        if valid(id).is_some() {
            return true;
        }
        list.pop_front();
    }
    false
}

fn control(
    stream: &mut Stream,
    writer: &mut FrameWriter<'_>,
    wrote: &mut dyn FnMut(SentFrame),
) -> Option<()> {
    let id = stream.id;
    if let Some(half) = &mut stream.receive {
        if half.must_stop()
            && let Some(code) = half.stop
        {
            writer.frame(&Frame::Stop { id, code }).ok()?;
            half.stop = None;
            wrote(SentFrame::Stop(id));
        }
        if half.must_grant() {
            let most = half.window.offer();
            writer.frame(&Frame::MaxStream { id, most }).ok()?;
            half.window.on_advertised(most);
            wrote(SentFrame::MaxStream(id));
        }
    }
    if let Some(half) = &mut stream.send {
        if let Some((code, size)) = half.must_reset() {
            writer.frame(&Frame::ResetStream { id, code, size }).ok()?;
            half.reset_left();
            wrote(SentFrame::Reset(id));
        }
        if half.must_say_blocked() {
            let at = half.credit.most();
            writer.frame(&Frame::StreamBlocked { id, at }).ok()?;
            half.credit.said();
            wrote(SentFrame::Blocked);
        }
    }
    Some(())
}

/// Writes a range as far as it fits, and returns the end offset. `before` is the packet's length when filling began.
#[inline]
fn put(
    stream: &Stream,
    from: u64,
    to: u64,
    writer: &mut FrameWriter<'_>,
    wrote: &mut dyn FnMut(SentFrame),
    before: usize,
) -> Option<u64> {
    let Some(half) = &stream.send else { return None };
    let id = stream.id;
    let room = writer.stream_room(id, from);
    let bytes = half.bytes(from, to);
    let crowded = room < bytes.len().min(MIN_FRAME_BYTES) && writer.len() > before;
    if crowded || room == 0 && !bytes.is_empty() {
        return None;
    }
    // The frame needs a length if other frames may follow.
    let length = narrows_wire::bytes::varint_len(bytes.len() as u64);
    let data = bytes.get(..room).unwrap_or(bytes);
    let end = from + data.len() as u64;
    let fin = half.ends_at(end);
    let done = if bytes.len() + length <= room {
        writer.frame(&Frame::Stream { id, offset: from, fin, data })
    } else {
        writer.last_stream_apart(id, from, fin, data.len())
    };
    if done.is_err() {
        return None;
    }
    wrote(SentFrame::Stream { id, offset: from, length: data.len() as u32, fin });
    Some(end)
}
