//! Parses the frames in the bytes of a stream that other code reads.

/// Bytes of a frame before its payload: kind and length.
const HEAD: usize = 4;

/// Position in the frame that is being read.
#[derive(Default)]
pub(crate) struct Follower {
    head: [u8; HEAD],
    known: usize,
    left: usize,
}

impl Follower {
    /// Parses the next bytes. `each` receives a frame's kind and a piece of its payload: an empty piece when the header
    /// is complete, then each piece as it arrives.
    pub fn pass(&mut self, mut bytes: &[u8], mut each: impl FnMut(u8, &[u8])) {
        while !bytes.is_empty() {
            if self.known < HEAD {
                let (now, rest) = bytes.split_at(bytes.len().min(HEAD - self.known));
                for byte in now {
                    if let Some(place) = self.head.get_mut(self.known) {
                        *place = *byte;
                    }
                    self.known += 1;
                }
                bytes = rest;
                if self.known == HEAD {
                    let [kind, a, b, c] = self.head;
                    self.left = u32::from_be_bytes([0, a, b, c]) as usize;
                    each(kind, &[]);
                }
            } else {
                let (now, rest) = bytes.split_at(bytes.len().min(self.left));
                each(self.head[0], now);
                self.left -= now.len();
                bytes = rest;
            }
            if self.known == HEAD && self.left == 0 {
                self.known = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames;
    use crate::message::FileFrame;
    use narrows_peers::error::{Error, ErrorKind};

    #[test]
    fn frames_are_told_however_the_stream_is_cut() {
        let mut stream = Vec::new();
        let busy = Error::new(ErrorKind::Busy, "later");
        for frame in [
            FileFrame::Wait,
            FileFrame::Data(b"12345"),
            FileFrame::Data(b""),
            FileFrame::Error(busy),
            FileFrame::Done,
        ] {
            frames::write(&mut stream, &frame).unwrap();
        }
        for cut in 1..stream.len() {
            let mut follower = Follower::default();
            let mut seen = Vec::new();
            for part in stream.chunks(cut) {
                follower.pass(part, |kind, payload| {
                    if payload.is_empty() {
                        seen.push((kind, 0));
                    } else if let Some(last) = seen.last_mut() {
                        assert_eq!(last.0, kind);
                        last.1 += payload.len();
                    }
                });
            }
            assert_eq!(seen, [(0, 0), (2, 5), (2, 0), (1, 9), (7, 0)], "cut at {cut}");
        }
    }
}
