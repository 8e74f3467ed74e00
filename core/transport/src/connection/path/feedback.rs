//! The feedback of the controller's sender side, as it was sent last.

use crate::connection::report_frame::feedback_bytes;
use narrows_base::{Duration, Time};
use narrows_congestion::Feedback;
use narrows_wire::{Frame, FrameWriter};

/// The first packets of a connection carry the sender side's feedback, and then every `ADVISED_EVERY`-th, even if it
/// has not changed.
const FIRST_ADVISED: u64 = 10;
const ADVISED_EVERY: u64 = 16;

/// The last feedback sent, and its time.
#[derive(Debug)]
pub(super) struct SentFeedback {
    feedback: Feedback,
    at: Time,
}

impl Default for SentFeedback {
    fn default() -> SentFeedback {
        SentFeedback { feedback: Feedback::NONE, at: Time::ZERO }
    }
}

impl SentFeedback {
    /// The next feedback counts as changed.
    pub fn forget(&mut self) {
        self.feedback = Feedback::NONE;
    }
    /// Writes feedback into packet `number`, if it is due. Changed feedback is sent at most eight times per RTT. Some
    /// packets repeat it, because packets get lost.
    pub fn write(
        &mut self,
        now: Time,
        feedback: Feedback,
        (number, srtt): (u64, Duration),
        writer: &mut FrameWriter<'_>,
    ) {
        let old = now.since(self.at) >= srtt.mul_f64(0.125);
        let again = number < FIRST_ADVISED || number.is_multiple_of(ADVISED_EVERY);
        if again || old && feedback != self.feedback {
            let mut words = [0; 16];
            if writer.frame(&Frame::Feedback(feedback_bytes(&feedback, &mut words))).is_ok() {
                self.feedback = feedback;
                self.at = now;
            }
        }
    }
}
