//! The receiver side of a controller, and the feedback that the two sides exchange.

use narrows_base::Time;

/// At most 16 bytes that only the two sides of one controller interpret; no packet format depends
/// on their content.
///
/// Numbers are sent as 32-bit floats with seven digits, which suffices for rates and times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Feedback {
    words: [u32; 4],
    used: u8,
}

impl Feedback {
    /// No feedback.
    pub const NONE: Feedback = Feedback { words: [0; 4], used: 0 };

    /// Feedback of up to four numbers; further ones are ignored. Values beyond a float's range
    /// become the largest float.
    pub fn of(numbers: &[f64]) -> Feedback {
        let mut feedback = Feedback::NONE;
        for (word, x) in feedback.words.iter_mut().zip(numbers) {
            let max = f64::from(f32::MAX);
            *word = (x.clamp(-max, max) as f32).to_bits();
            feedback.used += 1;
        }
        feedback
    }
    /// From the words of a packet.
    #[inline]
    pub fn from_words(words: &[u32]) -> Feedback {
        let mut feedback = Feedback::NONE;
        for (word, x) in feedback.words.iter_mut().zip(words) {
            *word = *x;
            feedback.used += 1;
        }
        feedback
    }
    /// The words for a packet.
    #[inline]
    pub fn words(&self) -> &[u32] {
        &self.words[..usize::from(self.used)]
    }
    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }
    /// Number `i`: finite and non-negative for any content of the packet; 0 if it is missing or invalid.
    pub fn number(&self, i: usize) -> f64 {
        let x = self.words().get(i).map_or(0.0, |w| f64::from(f32::from_bits(*w)));
        if x.is_finite() && x > 0.0 { x } else { 0.0 }
    }
}

/// A data packet arrived at the receiver. Duplicates are not reported; packets may be out of order.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When it arrived, by the receiver's clock.
    pub now: Time,
    /// Its sequence number; they start at 0 and are never reused.
    pub seq: u64,
    /// When it was sent, by the sender's clock: only differences are meaningful.
    pub sent: Time,
    /// Bytes on the wire.
    pub bytes: u32,
    /// Whether it has a CE mark.
    pub marked: bool,
    /// The sender side's feedback in this packet.
    pub feedback: Feedback,
}

impl Arrival {
    /// A packet without mark and feedback.
    pub const fn new(now: Time, seq: u64, sent: Time, bytes: u32) -> Arrival {
        Arrival { now, seq, sent, bytes, marked: false, feedback: Feedback::NONE }
    }
}

/// The receiver side of a controller.
///
/// After every arrival and tick it returns whether to send a report at once. The endpoint adds the ACK vector and the
/// echoed time. The endpoint also sends reports by rules of its own, with or without a receiver side.
///
/// One that counts bytes and reports every tenth packet:
///
/// ```
/// use narrows_base::Time;
/// use narrows_congestion::{Arrival, Feedback, ReceiverSide};
///
/// struct Counting {
///     bytes: u64,
/// }
///
/// impl ReceiverSide for Counting {
///     fn on_arrival(&mut self, arrival: &Arrival) -> bool {
///         self.bytes += u64::from(arrival.bytes);
///         arrival.seq % 10 == 9
///     }
///     fn feedback(&mut self, _now: Time) -> Feedback {
///         Feedback::of(&[self.bytes as f64])
///     }
/// }
/// ```
pub trait ReceiverSide: Send {
    /// A packet arrived. Returns whether to report now.
    fn on_arrival(&mut self, arrival: &Arrival) -> bool;
    /// The time given by [`next_tick`](ReceiverSide::next_tick) has been reached. Returns whether to report
    /// now.
    fn on_tick(&mut self, _now: Time) -> bool {
        false
    }
    /// When to call [`on_tick`](ReceiverSide::on_tick); [`Time::NEVER`] for never.
    fn next_tick(&self) -> Time {
        Time::NEVER
    }
    /// A report is being sent, for any reason: returns the feedback to the sender side.
    fn feedback(&mut self, now: Time) -> Feedback;
    /// As [`Controller::watch`](crate::Controller::watch); one list entry names the variables of
    /// both sides.
    fn watch(&self, _put: &mut dyn FnMut(&'static str, f64)) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_hostile_peer_become_zero() {
        let words = [f32::NAN, f32::INFINITY, -1.0].map(f32::to_bits);
        let feedback = Feedback::from_words(&words);
        for i in 0..9 {
            assert_eq!(feedback.number(i), 0.0);
        }
        assert_eq!(Feedback::of(&[1e300]).number(0), f64::from(f32::MAX));
        let feedback = Feedback::of(&[0.25, 1e6, 1.0, 2.0, 3.0]);
        assert_eq!((feedback.number(1), feedback.number(3), feedback.number(4)), (1e6, 2.0, 0.0));
        assert_eq!(Feedback::from_words(feedback.words()), feedback);
    }
}
