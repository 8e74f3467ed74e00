//! The request of a `speed` client.

/// Its length on the wire.
pub const REQUEST: usize = 17;

/// Which end sends, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MeasurementKind {
    /// The client a stream.
    Up,
    /// The server a stream.
    Down,
    /// The client sends messages.
    Messages,
}

/// The first bytes of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpeedRequest {
    pub kind: MeasurementKind,
    /// How many; `u64::MAX` until it is ended.
    pub bytes: u64,
    /// Length of a message.
    pub length: u64,
}

impl SpeedRequest {
    pub fn bytes(&self) -> [u8; REQUEST] {
        let mut out = [0; REQUEST];
        out[0] = self.kind as u8;
        out[1..9].copy_from_slice(&self.bytes.to_be_bytes());
        out[9..].copy_from_slice(&self.length.to_be_bytes());
        out
    }
    pub fn read(bytes: &[u8; REQUEST]) -> Option<SpeedRequest> {
        let [kind, a, b, c, d, e, f, g, h, length @ ..] = *bytes;
        let kind = match kind {
            0 => MeasurementKind::Up,
            1 => MeasurementKind::Down,
            2 => MeasurementKind::Messages,
            _ => return None,
        };
        let bytes = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        Some(SpeedRequest { kind, bytes, length: u64::from_be_bytes(length) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back_and_nonsense_does_not() {
        for kind in [MeasurementKind::Up, MeasurementKind::Down, MeasurementKind::Messages] {
            let request = SpeedRequest { kind, bytes: 1 << 40, length: 7 };
            assert_eq!(SpeedRequest::read(&request.bytes()), Some(request));
        }
        assert_eq!(SpeedRequest::read(&[3; REQUEST]), None);
    }
}
