//! The sender: sends every layer at its own rate, without feedback.

use crate::endpoints::datagram::frame_queue::FrameQueue;
use crate::endpoints::datagram::header::{self, DataHeader};
use crate::endpoints::interface::{SenderInput, SenderOutput};
use narrows_base::{Duration, Packet, Time, random};
use narrows_congestion::layers::MAX_LAYERS;
use narrows_congestion::{Controller, Feedback};
use narrows_recovery::packet_sender::Counters;

/// A sender without feedback.
pub struct MulticastSender {
    queue: FrameQueue,
    /// Has no effect; present for code that reads a sender's controller.
    controller: Box<dyn Controller>,
    flow: u32,
    payload: u32,
    header: u32,
    /// Bits on the wire per second at which packets are spaced.
    rate: f64,
    random_key: u64,
    next: [u64; MAX_LAYERS],
    sent: u64,
    due: Time,
    open: bool,
}

impl MulticastSender {
    /// `flow` is the flow number of its packets. Packets have at most `payload` application bytes and `header` more;
    /// they are spaced at `rate` bits on the wire per second.
    pub fn new(
        controller: Box<dyn Controller>,
        flow: u32,
        (payload, header): (u32, u32),
        rate: f64,
        random_key: u64,
    ) -> MulticastSender {
        MulticastSender {
            queue: FrameQueue::default(),
            controller,
            flow,
            payload: payload.max(1),
            header,
            rate: rate.max(1.0),
            random_key,
            next: [0; MAX_LAYERS],
            sent: 0,
            due: Time::ZERO,
            open: false,
        }
    }
    /// A controller that gets no events.
    pub fn controller(&self) -> &dyn Controller {
        self.controller.as_ref()
    }
    /// Mutable access to the controller.
    pub fn controller_mut(&mut self) -> &mut dyn Controller {
        self.controller.as_mut()
    }
    /// Counts since the start.
    pub fn counters(&self) -> Counters {
        Counters { sent: self.sent, expired: self.queue.expired, ..Counters::default() }
    }
    /// Always zero: there are no reports, so no packets count as in flight.
    pub fn flight(&self) -> u64 {
        0
    }
    /// Always zero: there are no acknowledgements.
    pub fn acknowledged(&self) -> u64 {
        0
    }
    /// Application bytes and bytes on the wire of a full packet.
    pub(crate) fn sizes(&self) -> (u32, u32) {
        (self.payload, self.payload + self.header)
    }
    /// Always zero, since it is unknown.
    pub fn srtt(&self) -> Duration {
        Duration::ZERO
    }
    /// Application bytes that have not been sent yet.
    pub fn unsent(&self) -> u64 {
        self.queue.bytes()
    }

    pub(crate) fn handle(&mut self, now: Time, input: SenderInput) {
        match input {
            SenderInput::Open => self.open = true,
            SenderInput::Frame(part) => self.queue.push(now, &part, Duration::ZERO),
            SenderInput::Stop => self.queue = FrameQueue::default(),
            // Bytes without a layer are ignored, and there are no reports.
            SenderInput::Data(_) | SenderInput::Packet(_) | SenderInput::Timeout => {}
        }
    }

    pub(crate) fn poll(&mut self, now: Time) -> SenderOutput {
        if !self.open || self.queue.is_empty() {
            return SenderOutput::Wait(Time::NEVER);
        }
        if now < self.due {
            return SenderOutput::Wait(self.due);
        }
        let Some((tag, bytes)) = self.queue.take(now, self.payload) else {
            return SenderOutput::Wait(Time::NEVER);
        };
        let layer = (tag as u8 as usize).min(MAX_LAYERS - 1);
        let size = bytes + self.header;
        let mut packet = Packet {
            seq: self.next[layer],
            stamp: now,
            random_key: random::mix(self.random_key.wrapping_add(self.sent)) as u32,
            flow: self.flow,
            size: size.min(65_535) as u16,
            ..Packet::default()
        };
        let data = DataHeader {
            payload: bytes as u16,
            least_unacked: 0,
            offset: tag,
            feedback: Feedback::NONE,
            spacing: Duration::ZERO,
        };
        header::write_data(&mut packet, &data);
        self.next[layer] += 1;
        self.sent += 1;
        let takes = Duration::from_secs_f64(f64::from(size) * 8.0 / self.rate);
        self.due = now + takes.max(Duration::from_nanos(1));
        SenderOutput::Send(packet)
    }
}

impl std::fmt::Debug for MulticastSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sender({} sent)", self.sent)
    }
}
