//! Detects where frames begin in a program's datagrams: in RTP (`rtp.rs`), in MPEG-TS (`transport_stream.rs`), also
//! within RTP (RFC 2250). In any other format each datagram counts as a frame.

use crate::rtp;
use crate::transport_stream::{TransportStream, is_ts, is_whole_ts};

/// Format of a program's datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// RTP packets (RFC 3550).
    Rtp,
    /// MPEG transport stream packets.
    Ts,
    /// Any other datagrams.
    Datagrams,
}

impl Format {
    /// The format that a datagram appears to have.
    pub fn of(datagram: &[u8]) -> Format {
        match rtp::read(datagram) {
            Some(packet) if is_whole_ts(packet.payload) => Format::Ts,
            _ if is_ts(datagram) => Format::Ts,
            Some(_) => Format::Rtp,
            None => Format::Datagrams,
        }
    }

    /// Name of the format for display.
    pub fn name(self) -> &'static str {
        match self {
            Format::Rtp => "RTP",
            Format::Ts => "MPEG-TS",
            Format::Datagrams => "datagrams",
        }
    }
}

/// Counts frames in the datagrams of a program.
#[derive(Debug, Default)]
pub struct FrameCounter {
    format: Option<Format>,
    frame: u32,
    rtp: rtp::RtpStreams,
    ts: TransportStream,
    /// Whether RTP packets carry the MPEG-TS packets.
    is_ts_in_rtp: bool,
}

impl FrameCounter {
    /// The format of the datagrams; `None` before the first one.
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    /// The number of the next datagram's frame, and whether it begins there.
    pub fn on_datagram(&mut self, datagram: &[u8]) -> (u32, bool) {
        let begins = self.begins(datagram);
        self.frame = self.frame.wrapping_add(u32::from(begins));
        (self.frame, begins)
    }

    fn begins(&mut self, datagram: &[u8]) -> bool {
        let packet = rtp::read(datagram);
        if self.format == Some(Format::Ts) {
            // A datagram that begins within an MPEG-TS packet may look like RTP.
            let in_rtp = packet.as_ref().map(|packet| packet.payload);
            let carried = if self.is_ts_in_rtp { in_rtp } else { Some(datagram) };
            if let Some(begins) = carried.and_then(|carried| self.ts.on_datagram(carried)) {
                return begins;
            }
        }
        // The program may have changed. An unrecognised datagram is ignored, as it may be RTCP on the media's port.
        let format = match (Format::of(datagram), self.format) {
            (Format::Datagrams, Some(known)) => known,
            (found, _) => found,
        };
        self.format = Some(format);
        match (format, packet) {
            (Format::Datagrams, _) => true,
            (Format::Rtp, Some(packet)) => self.rtp.on_packet(&packet),
            (Format::Rtp, None) => false,
            (Format::Ts, _) => {
                let in_rtp = packet.map(|packet| packet.payload).filter(|p| is_whole_ts(p));
                self.is_ts_in_rtp = in_rtp.is_some();
                self.ts.on_datagram(in_rtp.unwrap_or(datagram)).unwrap_or(false)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtp::tests::packet as rtp;
    use crate::transport_stream::tests::packet as ts;
    use proptest::prelude::*;

    const VIDEO: [u8; 6] = [0, 0, 1, 0xe0, 0, 0];

    #[test]
    fn an_rtp_frame_is_one_timestamp_of_one_source() {
        let mut frames = FrameCounter::default();
        let rtp = |source, timestamp| rtp(96, source, timestamp, 3);
        let rtcp = vec![0x80, 200, 0, 1, 0, 0, 0, 1];
        let all = [rtp(1, 1), rtp(1, 1), rtp(1, 2), rtp(9, 7), rtcp, rtp(1, 2), rtp(1, 3)];
        let found = all.map(|datagram| frames.on_datagram(&datagram));
        let begins = [true, false, true, false, false, false, true];
        assert_eq!(found.map(|(_, begins)| begins), begins);
        assert_eq!((found[6].0, frames.format()), (3, Some(Format::Rtp)));
    }

    #[test]
    fn picture_in_transport_stream_starts_at_its_pes_packet() {
        let mut frames = FrameCounter::default();
        let all = [
            ts(0, true, None, &[0]),
            ts(65, true, Some(7), &VIDEO),
            ts(65, false, None, &VIDEO),
            ts(66, true, None, &[0, 0, 1, 0xc0]),
            // A second video does not count: frames of only one video are counted.
            ts(70, true, None, &VIDEO),
            [ts(65, false, None, &[]), ts(65, true, None, &VIDEO)].concat(),
        ];
        let found = all.map(|datagram| frames.on_datagram(&datagram));
        let expected = [(0, false), (1, true), (1, false), (1, false), (1, false), (2, true)];
        assert_eq!((found, frames.format()), (expected, Some(Format::Ts)));
    }

    /// ffmpeg's `rtp_mpegts` gives each packet a timestamp of its own.
    #[test]
    fn pictures_of_a_transport_stream_in_rtp_are_counted() {
        let mut frames = FrameCounter::default();
        for n in 0..90u32 {
            let payload = [ts(65, n % 3 == 0, None, &VIDEO), ts(66, true, None, &[])].concat();
            let mut datagram = rtp(33, 1, n, 0);
            datagram.extend(payload);
            frames.on_datagram(&datagram);
        }
        assert_eq!((frames.frame, frames.format()), (30, Some(Format::Ts)));
    }

    /// M2TS timestamps and bytes within packets may look like the start of an RTP header.
    #[test]
    fn a_transport_stream_that_looks_like_rtp_stays_one() {
        let picture = [ts(65, true, None, &VIDEO), ts(65, false, None, &[])];
        let picture = picture.map(|packet| [vec![0x80; 4], packet].concat()).concat();
        assert!(rtp::read(&picture).is_some());
        let mut frames = FrameCounter::default();
        // Only the first datagram has enough packets for detection.
        frames.on_datagram(&picture.repeat(4));
        for n in 2..30 {
            assert_eq!(frames.on_datagram(&picture), (n, true));
        }
        assert_eq!(frames.format(), Some(Format::Ts));
    }

    #[test]
    fn another_program_on_the_port_is_seen() {
        let mut frames = FrameCounter::default();
        let ts = [ts(65, true, None, &VIDEO), ts(65, false, None, &[])].concat();
        for (datagram, format) in [
            (b"hello".to_vec(), Format::Datagrams),
            (ts.clone(), Format::Ts),
            (rtp(96, 1, 5, 900), Format::Rtp),
            (ts, Format::Ts),
        ] {
            assert!(frames.on_datagram(&datagram).1, "{format:?}");
            assert_eq!(frames.format(), Some(format));
        }
        assert!(!frames.on_datagram(b"what is no media").1);
    }

    proptest! {
        #[test]
        fn anything_has_a_format_and_a_frame(all: Vec<Vec<u8>>) {
            let mut frames = FrameCounter::default();
            for datagram in &all {
                let (frame, begins) = frames.on_datagram(datagram);
                prop_assert!(frame > 0 || !begins);
            }
        }
    }
}
