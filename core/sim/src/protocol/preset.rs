//! The implementations that simulated endpoints imitate.

use narrows_base::Duration;
use narrows_congestion::Dialect;
use narrows_recovery::protocol::{DatagramConfig, Family, FeedbackConfig};
use narrows_recovery::rtt::RtoConfig;

/// Initial window of ns-2.35 in packets.
pub const NS2_INITIAL_WINDOW: f64 = 2.0;
/// Initial slow-start threshold in preset `ns2`, in packets: `window_`, which is usually set higher than a run reaches.
pub const NS2_INITIAL_SSTHRESH: f64 = 10_000.0;

/// The TCP implementation that the endpoints imitate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Preset {
    /// As the RFCs: initial window 4, minimum RTO 1 s, an ACK for every packet, headers inside
    /// the packet, timestamps.
    #[default]
    Rfc,
    /// As ns-2.35: initial window 2, minimum RTO 0.2 s in ticks of 10 ms, whole packets counted,
    /// one timed packet per round trip, the window halved rather than FlightSize.
    Ns2,
    /// As Linux 6.1: initial window 10, minimum RTO 0.2 s on top of the RTT, delayed ACKs after quick ones, RACK-TLP,
    /// PRR, F-RTO, 52 bytes of headers; controllers as there.
    Linux,
}

impl Preset {
    /// Its name in scenario files and on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Rfc => "rfc",
            Preset::Ns2 => "ns2",
            Preset::Linux => "linux",
        }
    }

    /// The name of the implementation, for output.
    pub fn describe(self) -> &'static str {
        match self {
            Preset::Rfc => "TCP as in the RFCs",
            Preset::Ns2 => "TCP as in ns-2.35",
            Preset::Linux => "TCP as in Linux 6.1",
        }
    }
}

/// The configuration of a protocol over the packet sender in this preset. Media of preset `ns2` report and pace as in the
/// papers: their receiver sides alone request reports, and no window is paced.
pub fn datagram_preset(preset: Preset, family: Family) -> DatagramConfig {
    let rfc = DatagramConfig::default();
    if preset != Preset::Ns2 {
        return rfc;
    }
    let is_media = family == Family::Media;
    let usual = rfc.feedback.ack_every;
    DatagramConfig {
        header_bytes: 0,
        report_bytes: 40,
        credit: Duration::ZERO,
        window_pacing: !is_media,
        feedback: FeedbackConfig { ack_every: if is_media { 0 } else { usual }, ..rfc.feedback },
        initial_window: NS2_INITIAL_WINDOW,
        initial_ssthresh: NS2_INITIAL_SSTHRESH,
        dialect: Dialect::Ns2,
        rto: RtoConfig::NS2,
        ..rfc
    }
}
