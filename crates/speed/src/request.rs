//! The request of a `speed` client.

/// Its length on the wire.
pub const REQUEST: usize = 17;

/// Kind of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The client a stream.
    Up,
    /// The server a stream.
    Down,
    /// The client sends messages.
    Messages,
}

/// The first bytes of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    pub kind: Kind,
    /// How many; `u64::MAX` until it is ended.
    pub bytes: u64,
    /// Length of a message.
    pub length: u64,
}

impl Request {
    pub fn bytes(&self) -> [u8; REQUEST] {
        let mut out = [0; REQUEST];
        out[0] = self.kind as u8;
        out[1..9].copy_from_slice(&self.bytes.to_be_bytes());
        out[9..].copy_from_slice(&self.length.to_be_bytes());
        out
    }
    pub fn read(bytes: &[u8; REQUEST]) -> Option<Request> {
        let [kind, a, b, c, d, e, f, g, h, length @ ..] = *bytes;
        let kind = match kind {
            0 => Kind::Up,
            1 => Kind::Down,
            2 => Kind::Messages,
            _ => return None,
        };
        let bytes = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        Some(Request { kind, bytes, length: u64::from_be_bytes(length) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back_and_nonsense_does_not() {
        for kind in [Kind::Up, Kind::Down, Kind::Messages] {
            let request = Request { kind, bytes: 1 << 40, length: 7 };
            assert_eq!(Request::read(&request.bytes()), Some(request));
        }
        assert_eq!(Request::read(&[3; REQUEST]), None);
    }
}
