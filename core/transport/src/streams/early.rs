//! A stream with early data, which the handshake carried before the connection existed.

use super::Streams;
use super::send_buffer::SendBuffers;

impl Streams {
    /// Opens the first bidirectional stream with these data, and its end if `fin`. If the peer already accepted them,
    /// they are not sent. Otherwise they are sent like newly written data. `None` if the peer permits no stream.
    pub fn open_early(&mut self, data: &[u8], fin: bool, is_taken: bool) -> Option<u64> {
        let id = self.open(false)?;
        // The buffer is large enough for them.
        let room = SendBuffers::new(data.len());
        let wrote = self.sending(id, |half| {
            half.write(data, &room)?;
            if fin { half.finish() } else { Ok(()) }
        });
        debug_assert!(wrote.is_ok(), "a stream that was just opened takes data");
        let bytes = data.len() as u64;
        let half = self.map.get_mut(id).and_then(|stream| stream.send.as_mut());
        if let Some(half) = half.filter(|_| is_taken)
            // If the server accepted more than its limits permit, it gets the data again.
            && half.credit.room() >= bytes
            && self.credit.room() >= bytes
        {
            half.on_sent(bytes);
            self.credit.spend(bytes);
            self.data_arrived(id, 0, data.len() as u32, fin);
        }
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use crate::streams::{FlowControlLimits, SentFrame, Side, StreamEvent, Streams};
    use narrows_wire::{FrameWriter, Prelude};

    fn client(permitted: u64) -> Streams {
        let limits = FlowControlLimits { data: 1000, stream: 1000, both: 4, one_way: 4 };
        let mut streams = Streams::new(Side::Client, limits, 100);
        streams.peer_permits(FlowControlLimits { data: permitted, stream: permitted, ..limits });
        streams
    }
    /// The frames of the next packet.
    fn leaving(streams: &mut Streams) -> Vec<SentFrame> {
        let mut buffer = [0; 1200];
        let mut pieces = Vec::new();
        let mut writer = FrameWriter::new(&mut buffer, Prelude { stamp: 0, distance: 0 }).unwrap();
        streams.fill(&mut writer, &mut |piece| pieces.push(piece));
        pieces
    }

    /// Accepted data are not sent again, and later data follow them.
    #[test]
    fn data_that_were_taken_are_not_sent() {
        let mut streams = client(1000);
        assert_eq!(streams.open_early(&[7; 300], false, true), Some(0));
        assert!(leaving(&mut streams).is_empty() && streams.all_arrived());
        assert_eq!(streams.carried().0, 300);
        assert_eq!(streams.write(0, b"more"), Ok(4));
        assert_eq!(
            leaving(&mut streams),
            [SentFrame::Stream { id: 0, offset: 300, length: 4, fin: false }]
        );
        let mut streams = client(1000);
        streams.open_early(b"all", true, true).unwrap();
        assert!(leaving(&mut streams).is_empty());
        assert_eq!(streams.event(), Some(StreamEvent::Arrived(0)));
    }

    /// Rejected data are sent like any other. So are data that the peer accepted although they exceed its limits.
    #[test]
    fn data_that_were_refused_are_sent() {
        for (permitted, is_taken) in [(1000, false), (200, true)] {
            let mut streams = client(permitted);
            streams.open_early(&[7; 300], true, is_taken).unwrap();
            let length = permitted.min(300) as u32;
            let first = leaving(&mut streams)[0];
            assert_eq!(first, SentFrame::Stream { id: 0, offset: 0, length, fin: length == 300 });
        }
    }
}
