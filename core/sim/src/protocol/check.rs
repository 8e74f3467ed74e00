//! Checks a TCP configuration that a program filled in field by field.

use super::tcp_config::TcpConfig;
use narrows_base::FieldError;
use narrows_base::field::{at_most, whole};
use narrows_recovery::protocol::check::{MAX_TIMER, rto, sizes, window};

/// Checks the fields of a TCP endpoint.
pub(super) fn tcp(c: &TcpConfig) -> Result<(), FieldError> {
    sizes(c.packet_bytes, c.header_bytes, ("ack_bytes", c.ack_bytes))?;
    whole("ack_every", u64::from(c.ack_every), 1, u64::from(u32::MAX))?;
    whole("send_buffer", c.send_buffer, 1, u64::MAX)?;
    whole("receive_window", c.receive_window, 1, u64::MAX)?;
    at_most("delayed_ack", c.delayed_ack, MAX_TIMER)?;
    window(c.initial_window, c.initial_ssthresh)?;
    rto(&c.rto).map_err(|e| e.within("rto"))
}
