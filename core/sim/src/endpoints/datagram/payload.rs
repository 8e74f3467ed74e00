//! The payload of a simulated sender's packets, as seen by the [packet sender](narrows_recovery::packet_sender): a stream's bytes,
//! which are retransmitted, or media, which are not.

use super::frame_queue::FrameQueue;
use super::stream::{OutgoingStream, SentRange};
use super::waiting::WaitingWrites;
use crate::endpoints::interface::FramePart;
use crate::protocol::{DatagramConfig, StreamRecovery};
use narrows_base::{Duration, Time};
use narrows_recovery::packet_sender::PayloadSource;

/// The application's data.
#[derive(Debug)]
pub(super) enum SimulatedSource {
    Stream(OutgoingStream),
    Media(MediaPayload),
}

impl SimulatedSource {
    pub fn new(config: &DatagramConfig) -> SimulatedSource {
        let expiry = config.expiry;
        if config.reliable {
            SimulatedSource::Stream(match config.recovery {
                StreamRecovery::Rfc9002 => OutgoingStream::default(),
                StreamRecovery::Nack => OutgoingStream::on_request(),
            })
        } else {
            SimulatedSource::Media(MediaPayload {
                waiting: WaitingWrites::default(),
                frames: None,
                expiry,
                ping: false,
            })
        }
    }
    /// The application writes bytes.
    pub fn push(&mut self, now: Time, bytes: u64) {
        match self {
            SimulatedSource::Stream(s) => s.push(bytes),
            SimulatedSource::Media(m) => m.waiting.push(now, bytes),
        }
    }
    /// The application writes a part of a frame.
    pub fn push_frame(&mut self, now: Time, part: FramePart) {
        match self {
            SimulatedSource::Stream(s) => s.push(u64::from(part.bytes)),
            SimulatedSource::Media(m) => {
                m.frames.get_or_insert_default().push(now, &part, m.expiry)
            }
        }
    }
    /// Bytes that were never sent; `u64::MAX` without end.
    pub fn unsent(&self) -> u64 {
        match self {
            SimulatedSource::Stream(s) => s.unsent(),
            SimulatedSource::Media(m) => {
                m.waiting.bytes().saturating_add(m.frames.as_ref().map_or(0, |f| f.bytes()))
            }
        }
    }
    /// The application discards unsent data.
    pub fn stop(&mut self) {
        match self {
            SimulatedSource::Stream(s) => s.stop(),
            SimulatedSource::Media(m) => {
                m.waiting.clear();
                m.frames = None;
            }
        }
    }
    /// The receiver requests these bytes.
    pub fn requested(&mut self, from: u64, to: u64) {
        if let SimulatedSource::Stream(s) = self {
            s.requested(from, to);
        }
    }
    /// Takes at most `max` bytes for the next packet.
    #[inline]
    pub fn take(&mut self, now: Time, max: u32) -> Option<SentRange> {
        match self {
            SimulatedSource::Stream(s) => s.take(max),
            SimulatedSource::Media(m) => m.take(now, max),
        }
    }
    /// A PTO: if no data waits, or all of it has expired, an empty packet elicits a report.
    pub fn probe(&mut self) {
        if let SimulatedSource::Media(m) = self {
            m.ping = true;
        }
    }
    /// Number of writes that expired unsent.
    pub fn expired(&self) -> u64 {
        match self {
            SimulatedSource::Stream(_) => 0,
            SimulatedSource::Media(m) => {
                m.waiting.expired + m.frames.as_ref().map_or(0, |f| f.expired)
            }
        }
    }
}

impl PayloadSource for SimulatedSource {
    type Payload = SentRange;

    #[inline]
    fn is_empty(&mut self) -> bool {
        match self {
            SimulatedSource::Stream(s) => s.is_empty(),
            SimulatedSource::Media(m) => !m.ping && m.is_empty(),
        }
    }
    #[inline]
    fn all_arrived(&self, in_flight: u64) -> bool {
        match self {
            SimulatedSource::Stream(s) => s.all_arrived(),
            SimulatedSource::Media(_) => in_flight == 0,
        }
    }
    #[inline]
    fn arrived(&mut self, range: &SentRange) {
        if let SimulatedSource::Stream(s) = self {
            s.arrived(range.offset, range.length);
        }
    }
    #[inline]
    fn lost(&mut self, range: &SentRange) -> bool {
        match self {
            SimulatedSource::Stream(s) => s.lost(range.offset, range.length),
            SimulatedSource::Media(_) => false,
        }
    }
}

/// Writes that are sent once, as a connection's messages are.
#[derive(Debug)]
pub(super) struct MediaPayload {
    waiting: WaitingWrites,
    /// Parts of frames, allocated at the first one.
    frames: Option<Box<FrameQueue>>,
    expiry: Duration,
    /// An empty packet must be sent.
    ping: bool,
}

impl MediaPayload {
    #[inline]
    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.frames.as_ref().is_none_or(|f| f.is_empty())
    }
    fn take(&mut self, now: Time, max: u32) -> Option<SentRange> {
        if let Some(frames) = &mut self.frames
            && let Some((tag, length)) = frames.take(now, max)
        {
            self.ping = false;
            // Media's receiver ignores the offset; it carries the frame and layer.
            return Some(SentRange { offset: tag, length, ..SentRange::default() });
        }
        self.waiting.expire(now, self.expiry);
        let length = self.waiting.take(max);
        let ping = std::mem::take(&mut self.ping);
        (length > 0 || ping).then(|| SentRange { length, ..SentRange::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise a source that writes no more while data wait, and its transport, wait for each other.
    #[test]
    fn a_probe_leaves_even_if_all_that_waits_has_expired() {
        let at = Time::from_secs_f64;
        let mut source = SimulatedSource::Media(MediaPayload {
            waiting: WaitingWrites::default(),
            frames: None,
            expiry: Duration::ZERO,
            ping: false,
        });
        let playout = at(1.0);
        let expires = at(1.0);
        let part = FramePart { frame: 0, layer: 0, bytes: 100, playout, expires };
        let sent = |source: &mut SimulatedSource, s| source.take(at(s), 1000).map(|r| r.length);
        source.push_frame(at(0.0), part);
        source.probe();
        assert_eq!(sent(&mut source, 2.0), Some(0));
        source.push_frame(at(0.0), part);
        source.probe();
        assert_eq!(sent(&mut source, 0.5), Some(100));
        assert_eq!(sent(&mut source, 0.5), None, "the data were the probe");
    }
}
