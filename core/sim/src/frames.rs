//! Measures the frames of a flow: how many were complete in time, with how many layers, and the length of freezes.

use crate::endpoints::FramePart;
use crate::result::FrameResult;
use narrows_base::{Duration, Time};
use narrows_congestion::layers::MAX_LAYERS;
use std::collections::VecDeque;

/// Frames are tracked this long after their play-out time; after that they count as lost.
const FOLLOWED: Duration = Duration::from_secs(60);
/// Limit on tracked parts of a stream: beyond it the oldest counts as lost, so that memory is bounded.
const MAX_PARTS: usize = 1 << 20;
/// A freeze is longer than this and a frame interval (W3C webrtc-stats, `freezeCount`).
const FREEZE: Duration = Duration::from_millis(150);

#[derive(Debug)]
struct MediaFrame {
    written: Time,
    playout: Time,
    /// When the base layer was complete; `NEVER` before.
    whole: Time,
    /// Bytes of each layer that have not arrived.
    left: [u32; MAX_LAYERS],
    /// Bit masks of layers: sent, and complete in time.
    sent: u8,
    in_time: u8,
}

/// Counts the frames of one flow.
#[derive(Debug)]
pub(crate) struct FrameMeter {
    interval: Duration,
    from: Time,
    /// Number of the first frame of `frames`.
    first: u64,
    frames: VecDeque<MediaFrame>,
    /// For a stream: the position at which each part ends, with frame, layer and bytes.
    ends: VecDeque<(u64, (u64, u8), u32)>,
    stream_bytes: u64,
    /// Layers of the previous frame, and when a frame was last shown.
    layers: Option<u32>,
    shown: Option<Time>,
    result: FrameResult,
    /// A list reused for all writes, to avoid allocations.
    parts: Vec<FramePart>,
}

/// Number of consecutive layers from the base upwards.
fn contiguous(mask: u8) -> u32 {
    mask.trailing_ones()
}

impl FrameMeter {
    /// Counts frames that are shown from `from` on.
    pub fn new(interval: Duration, layers: usize, from: Time) -> FrameMeter {
        FrameMeter {
            interval,
            from,
            first: 0,
            frames: VecDeque::new(),
            ends: VecDeque::new(),
            stream_bytes: 0,
            layers: None,
            shown: None,
            result: FrameResult { most_layers: layers, ..FrameResult::default() },
            parts: Vec::new(),
        }
    }
    /// An empty list for the source's parts.
    pub fn take_parts(&mut self) -> Vec<FramePart> {
        std::mem::take(&mut self.parts)
    }
    /// Returns that list.
    pub fn give_back(&mut self, mut parts: Vec<FramePart>) {
        parts.clear();
        self.parts = parts;
    }
    fn frame(&mut self, number: u64) -> Option<&mut MediaFrame> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.frames.get_mut(at)
    }

    /// The source has written a part.
    pub fn written(&mut self, now: Time, part: &FramePart) {
        while self.frames.front().is_some_and(|f| f.playout + FOLLOWED < now) {
            self.settle_first();
        }
        if part.layer == 0 {
            self.frames.push_back(MediaFrame {
                written: now,
                playout: part.playout,
                whole: Time::NEVER,
                left: [0; MAX_LAYERS],
                sent: 0,
                in_time: 0,
            });
        }
        if part.bytes == 0 {
            return;
        }
        let layer = usize::from(part.layer).min(MAX_LAYERS - 1);
        if let Some(frame) = self.frame(part.frame) {
            frame.left[layer] = part.bytes;
            frame.sent |= 1 << layer;
        }
        self.stream_bytes += u64::from(part.bytes);
        self.ends.push_back((self.stream_bytes, (part.frame, part.layer), part.bytes));
        if self.ends.len() > MAX_PARTS {
            self.ends.pop_front();
        }
    }

    /// `bytes` of a frame's layer have arrived.
    pub fn arrived(&mut self, now: Time, (number, layer): (u64, u8), bytes: u64) {
        // Positions in the stream are not needed for media.
        self.ends.clear();
        self.add(now, number, layer, bytes);
    }
    /// A stream has arrived in order up to this byte.
    pub fn in_order(&mut self, now: Time, to: u64) {
        while let Some(&(end, (number, layer), bytes)) = self.ends.front() {
            if end > to {
                break;
            }
            self.ends.pop_front();
            self.add(now, number, layer, u64::from(bytes));
        }
    }
    fn add(&mut self, now: Time, number: u64, layer: u8, bytes: u64) {
        let layer = usize::from(layer).min(MAX_LAYERS - 1);
        let Some(frame) = self.frame(number) else { return };
        let left = &mut frame.left[layer];
        if *left == 0 {
            return;
        }
        *left = left.saturating_sub(u32::try_from(bytes).unwrap_or(u32::MAX));
        if *left == 0 {
            frame.in_time |= u8::from(now <= frame.playout) << layer;
            if layer == 0 {
                frame.whole = now;
            }
        }
    }

    fn settle_first(&mut self) {
        let Some(frame) = self.frames.pop_front() else { return };
        self.first += 1;
        if frame.playout < self.from {
            return;
        }
        self.shown.get_or_insert(frame.playout);
        let r = &mut self.result;
        r.due += 1;
        let shown = contiguous(frame.in_time);
        r.layers += u64::from(shown);
        if shown == 0 {
            r.frozen += 1;
            r.late += u64::from(!frame.whole.is_never());
        }
        if !frame.whole.is_never() {
            r.delay.record(frame.whole.since(frame.written).as_nanos());
        }
        let layers = contiguous(frame.sent);
        if self.layers.is_some_and(|before| before != layers) {
            r.switches += 1;
        }
        self.layers = Some(layers);
        if shown > 0 {
            self.shown_at(frame.playout);
        }
    }
    /// A frame was shown, or the measured span ends.
    fn shown_at(&mut self, at: Time) {
        let max = (self.interval.saturating_mul(3)).max(self.interval + FREEZE);
        if self.shown.is_some_and(|before| at.since(before) > max) {
            self.result.stalls += 1;
        }
        self.shown = Some(at);
    }

    /// The result at the end of the span.
    pub fn result(&mut self, end: Time) -> Box<FrameResult> {
        while self.frames.front().is_some_and(|f| f.playout < end) {
            self.settle_first();
        }
        if self.result.due > 0 {
            self.shown_at(end);
        }
        self.result.span_s = self.result.due as f64 * self.interval.as_secs_f64();
        Box::new(std::mem::take(&mut self.result))
    }
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
