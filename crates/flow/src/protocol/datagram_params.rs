//! Parameters of the datagram endpoint.

use super::Entry;
use crate::datagram::DatagramConfig;
use crate::tcp::Preset;
use narrows_base::card::Kind;
use narrows_base::units::Unit;
use narrows_base::{Duration, Param, Settings, SpecError};

/// Parameters of the datagram endpoint: every media protocol takes them beside its controller's
/// own.
pub const DATAGRAM_PARAMS: &[Param] = &[
    Param {
        name: "credit",
        help: "how far a paced sender that was late may catch up at once",
        kind: Kind::Number { unit: Unit::Seconds, min: 0.0, max: 10.0, default: 0.001 },
        origin: "RFC 5348 section 4.6; 0 in preset ns2",
    },
    Param {
        name: "expiry",
        help: "writes that waited longer are dropped, not sent; 0 keeps them",
        kind: Kind::Number { unit: Unit::Seconds, min: 0.0, max: 3600.0, default: 1.0 },
        origin: "late media are no use",
    },
    Param {
        name: "ecn",
        help: "packets are ECN-capable: routers mark instead of dropping (RFC 3168)",
        kind: Kind::Choice(&["off", "on"]),
        origin: "off, as most paths",
    },
];

/// A datagram endpoint's configuration from what the user gave.
pub(super) fn configure(
    entry: &Entry,
    preset: Preset,
    packet_bytes: u32,
    given: &Settings,
) -> Result<DatagramConfig, SpecError> {
    let mut c = DatagramConfig::preset(preset);
    c.packet_bytes = packet_bytes;
    if packet_bytes <= c.header_bytes || packet_bytes > 65_535 {
        return Err(SpecError::new(format!(
            "{}: packets of {packet_bytes} B: a packet is {} B to 65535 B, {} B of them headers",
            entry.name,
            c.header_bytes + 1,
            c.header_bytes
        )));
    }
    if given.given("credit") {
        c.credit = Duration::from_secs_f64(given.number("credit"));
    }
    c.expiry = Duration::from_secs_f64(given.number("expiry"));
    c.ecn = given.choice("ecn") == "on";
    Ok(c)
}
