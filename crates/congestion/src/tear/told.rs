//! What every packet tells the receiver: word 0 the SRTT, word 1 the deviation, word 2 the last
//! RTT, all in seconds; word 3 is above zero where the application has nothing more to send.

use crate::Advice;

/// What the sender told in the last packet, made sane.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// Smoothed RTT and its deviation in seconds; 0 is unknown.
    pub srtt: f64,
    pub deviation: f64,
    /// The last RTT measured, in seconds; 0 is unknown.
    pub rtt: f64,
    /// The application had nothing more to send behind this packet.
    pub idle: bool,
}

impl Told {
    /// Longest believed: beyond, a peer writes nonsense.
    const MOST: f64 = 60.0;
    const LEAST: f64 = 1e-6;

    /// Reads a packet's advice.
    pub fn read(advice: &Advice) -> Told {
        let seconds = |i| match advice.number(i) {
            x if x > 0.0 => x.clamp(Told::LEAST, Told::MOST),
            _ => 0.0,
        };
        Told {
            srtt: seconds(0),
            deviation: seconds(1),
            rtt: seconds(2),
            idle: advice.number(3) > 0.0,
        }
    }
}
