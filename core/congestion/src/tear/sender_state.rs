//! The sender's state in every packet: word 0 is the SRTT, word 1 the deviation, word 2 the last RTT, all in seconds.
//! Word 3 is above zero if the application has no more data to send.

use crate::Feedback;

/// The sender's state of the last packet, limited to valid values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SenderState {
    /// Smoothed RTT and its deviation in seconds; 0 is unknown.
    pub srtt: f64,
    pub deviation: f64,
    /// The last RTT measured, in seconds; 0 is unknown.
    pub rtt: f64,
    /// The application had no more data after this packet.
    pub idle: bool,
}

impl SenderState {
    /// Largest valid RTT: higher values of a peer are capped.
    const MAX_RTT_S: f64 = 60.0;
    const MIN_RTT_S: f64 = 1e-6;

    /// Reads a packet's feedback.
    pub fn read(feedback: &Feedback) -> SenderState {
        let seconds = |i| match feedback.number(i) {
            x if x > 0.0 => x.clamp(SenderState::MIN_RTT_S, SenderState::MAX_RTT_S),
            _ => 0.0,
        };
        SenderState {
            srtt: seconds(0),
            deviation: seconds(1),
            rtt: seconds(2),
            idle: feedback.number(3) > 0.0,
        }
    }
}
