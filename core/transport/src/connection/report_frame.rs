//! Encoding of REPORT frames, which are `rrtp`'s ACKs. `packet_receiver` decides their content and timing.

use super::nonces::ReceivedNonces;
use narrows_base::Time;
use narrows_congestion::Feedback;
use narrows_recovery::packet_receiver::PacketReceiver;
use narrows_wire::frame::Frame;
use narrows_wire::report::{self, MAX_RUNS};
use narrows_wire::{FrameWriter, Report, ReportReason, prelude};

/// Writes a report if packets arrived and the report fits. Returns whether it did.
pub(super) fn write(
    receiver: &mut PacketReceiver<ReceivedNonces>,
    now: Time,
    writer: &mut FrameWriter<'_>,
) -> bool {
    let reason = match receiver.missing(MAX_RUNS) {
        0 if receiver.is_cumulative() => ReportReason::Cumulative,
        0 => ReportReason::Regular,
        1 => ReportReason::Missing,
        _ => ReportReason::Selective,
    };
    let Some(fields) = receiver.report(now, |_| MAX_RUNS) else { return false };
    let mut bytes = [0; 16 * MAX_RUNS + 4];
    let runs = report::runs(&mut bytes, receiver.runs(fields.highest));
    let arrived = runs.iter().map(|r| r.arrived).sum();
    let mut words = [0; 16];
    let frame = Frame::Report(Report {
        reason,
        highest: fields.highest,
        echo: (fields.echo.sent.as_nanos() / 1000 % u64::from(prelude::STAMPS)) as u32,
        delay: now.since(fields.echo.came).as_nanos() / 1000,
        marks: (fields.marks > 0).then_some(fields.marks),
        feedback: feedback_bytes(&fields.feedback, &mut words),
        nonce_sum: receiver.received().sum_below(fields.highest + 1, arrived),
        runs,
    });
    if writer.frame(&frame).is_err() {
        return false;
    }
    receiver.on_report_sent(now);
    true
}

/// Encodes feedback as big-endian words.
pub(super) fn feedback_bytes<'b>(feedback: &Feedback, bytes: &'b mut [u8; 16]) -> &'b [u8] {
    for (chunk, word) in bytes.chunks_exact_mut(4).zip(feedback.words()) {
        chunk.copy_from_slice(&word.to_be_bytes());
    }
    bytes.get(..4 * feedback.words().len()).unwrap_or_default()
}

/// Decodes feedback; trailing bytes that form no whole word are ignored.
pub(super) fn feedback_of(bytes: &[u8]) -> Feedback {
    let mut words = [0; 4];
    let mut used = 0;
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = chunk.iter().fold(0, |w, b| w << 8 | u32::from(*b));
        used += 1;
    }
    Feedback::from_words(words.get(..used).unwrap_or_default())
}

/// Extends the peer's 30-bit stamps to a clock in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerClock {
    newest_us: u64,
}

impl PeerClock {
    /// Send time of a packet by the peer's clock, from its stamp. Stamps wrap every 18 minutes.
    #[inline]
    pub fn sent(&mut self, stamp: u32) -> Time {
        let about = if self.newest_us == 0 { u64::from(stamp) } else { self.newest_us };
        let sent_us = prelude::nearest(stamp, about).max(1);
        self.newest_us = self.newest_us.max(sent_us);
        Time::from_nanos(sent_us.saturating_mul(1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Late packets get the right time, at the beginning and where stamps wrap.
    #[test]
    fn the_peers_clock_goes_on_where_stamps_begin_anew() {
        let mut clock = PeerClock::default();
        let us = |clock: &mut PeerClock, stamp| clock.sent(stamp).as_nanos() / 1000;
        let last = prelude::STAMPS - 1;
        assert_eq!(us(&mut clock, last - 10), u64::from(last) - 10);
        assert_eq!(us(&mut clock, 5), u64::from(last) + 6);
        assert_eq!(us(&mut clock, last), u64::from(last));
        assert_eq!(us(&mut clock, 7), u64::from(last) + 8);
    }
}
