//! Checks a configuration that a program filled in field by field. The parameters of a specification are within these
//! bounds already: the descriptors' ranges are narrower.

use super::config::{DatagramConfig, MAX_WINDOW, StreamRecovery};
use crate::rtt::RtoConfig;
use narrows_base::field::{at_most, number, probability, whole};
use narrows_base::{Duration, FieldError};

/// Largest packet: its size on the wire has 16 bits.
const MAX_PACKET: u64 = 65_535;
/// Limit on all timers of an endpoint.
pub const MAX_TIMER: Duration = Duration::from_secs(36_000);
/// Smallest limit on the RTO: below it there would be a storm of timeouts.
const MIN_MAX_RTO: Duration = Duration::from_millis(1);
/// Limit on the pacer's credit; beyond it packets would hardly be paced.
const MAX_CREDIT: Duration = Duration::from_secs(10);

/// Checks the bytes of a full packet, of its headers, and of an acknowledgement under the name of its field.
///
/// # Errors
/// A size that no packet has.
pub fn sizes(packet: u32, header: u32, answer: (&str, u32)) -> Result<(), FieldError> {
    let smallest = u64::from(header) + 1;
    if !(smallest..=MAX_PACKET).contains(&u64::from(packet)) {
        let why = format!(
            "{packet} B: a packet has {smallest} to {MAX_PACKET} bytes, {header} of them headers"
        );
        return Err(FieldError::new("packet_bytes", why));
    }
    whole(answer.0, u64::from(answer.1), 1, MAX_PACKET)
}

/// Checks the initial window and slow-start threshold in packets.
///
/// # Errors
/// A value out of range.
pub fn window(initial: f64, ssthresh: f64) -> Result<(), FieldError> {
    number("initial_window", initial, 1.0, MAX_WINDOW as f64)?;
    number("initial_ssthresh", ssthresh, 1.0, f64::INFINITY)
}

/// Checks the limits of a retransmission timeout.
///
/// # Errors
/// A value out of range.
pub fn rto(c: &RtoConfig) -> Result<(), FieldError> {
    let least = Duration::from_nanos(1);
    for (field, d, least) in [
        ("initial", c.initial, least),
        ("min", c.min, Duration::ZERO),
        ("granularity", c.granularity, least),
        ("max", c.max, MIN_MAX_RTO.max(c.min.min(MAX_TIMER))),
    ] {
        at_most(field, d, MAX_TIMER)?;
        if d < least {
            return Err(FieldError::new(field, format!("{d} is shorter than {least}")));
        }
    }
    Ok(())
}

/// Checks the fields of a datagram endpoint. `has_receiver_side`: whether the controller's receiver side can request
/// reports.
pub(super) fn datagram(c: &DatagramConfig, has_receiver_side: bool) -> Result<(), FieldError> {
    sizes(c.packet_bytes, c.header_bytes, ("report_bytes", c.report_bytes))?;
    at_most("credit", c.credit, MAX_CREDIT)?;
    if let Some(rtt) = c.hints.rtt {
        at_most("hints.rtt", rtt, MAX_TIMER)?;
    }
    if let Some(p) = c.hints.loss {
        probability("hints.loss", p)?;
    }
    if c.recovery == StreamRecovery::Nack && !c.reliable {
        return Err(FieldError::new("recovery", "media are not repaired: NACKs are a stream's"));
    }
    let least = u64::from(c.reliable || !has_receiver_side);
    whole("feedback.ack_every", u64::from(c.feedback.ack_every), least, u64::from(u32::MAX))?;
    at_most("feedback.max_ack_delay", c.feedback.max_ack_delay, MAX_TIMER)?;
    if c.feedback.classifier.name != "none" && c.feedback.classifier.build().is_none() {
        let why = format!("no rule is {:?}", c.feedback.classifier);
        return Err(FieldError::new("feedback.classifier", why));
    }
    window(c.initial_window, c.initial_ssthresh)?;
    rto(&c.rto).map_err(|e| e.within("rto"))
}
