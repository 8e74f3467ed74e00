//! Frames in RTP (RFC 3550 section 5.1): all packets of a video frame have one timestamp.
//!
//! A port may carry more than the video: audio, events, repeats and repair packets, with other sources or payload
//! types.

/// Maximum number of remembered streams (source and payload type).
const MAX_STREAMS: usize = 8;
/// Number of recent timestamps. Late packets with one of them, such as repeats, begin no frame. Frames need not come in
/// the order of their timestamps.
const MAX_RECENT: usize = 8;
/// Packets of other streams since the last packet of the counted stream, after which that stream is over.
const OVER: u64 = 250;
/// A timestamp with several packets and more bytes than this is a picture's; packets of an event (RFC 4733) are small.
const PICTURE_BYTES: usize = 1000;

/// The fields of an RTP packet that frame detection needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtpPacket<'d> {
    source: u32,
    kind: u8,
    timestamp: u32,
    /// The bytes after the header.
    pub payload: &'d [u8],
}

/// Reads a packet; `None` if it is not RTP.
pub fn read(datagram: &[u8]) -> Option<RtpPacket<'_>> {
    let (head, rest) = datagram.split_first_chunk::<12>()?;
    let [first, kind, _, _, t0, t1, t2, t3, s0, s1, s2, s3] = *head;
    let kind = kind & 0x7f;
    // Version 2. Kinds 72 to 76 are RTCP (RFC 5761 section 4).
    if first >> 6 != 2 || (72..=76).contains(&kind) {
        return None;
    }
    let mut payload = rest.get(4 * usize::from(first & 0xf)..).unwrap_or_default();
    if first & 0x10 != 0 {
        let words =
            payload.get(2..4).map_or(0, |n| n.iter().fold(0, |n, b| n << 8 | usize::from(*b)));
        payload = payload.get(4 + 4 * words..).unwrap_or_default();
    }
    let source = u32::from_be_bytes([s0, s1, s2, s3]);
    Some(RtpPacket { source, kind, timestamp: u32::from_be_bytes([t0, t1, t2, t3]), payload })
}

/// Apparent content of a stream. The later variants have precedence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Content {
    /// A payload type of RFC 3551 table 4.
    Sound,
    Unknown,
    /// A payload type of RFC 3551 table 5, or pictures in several packets.
    Video,
}

/// Packets of one source and payload type.
#[derive(Debug)]
struct RtpStream {
    source: u32,
    kind: u8,
    content: Content,
    recent: Vec<u32>,
    /// Packets and bytes of the last timestamp.
    packets: usize,
    bytes: usize,
    /// Index of its last packet among the port's packets.
    last: u64,
}

impl RtpStream {
    fn new(packet: &RtpPacket<'_>) -> RtpStream {
        let content = match packet.kind {
            0..=23 => Content::Sound,
            25..=34 => Content::Video,
            _ => Content::Unknown,
        };
        let RtpPacket { source, kind, .. } = *packet;
        RtpStream { source, kind, content, recent: Vec::new(), packets: 0, bytes: 0, last: 0 }
    }

    /// Whether a frame begins with this packet.
    fn on_packet(&mut self, packet: &RtpPacket<'_>) -> bool {
        if self.recent.last() != Some(&packet.timestamp) {
            self.packets = 0;
            self.bytes = 0;
        }
        self.packets += 1;
        self.bytes += packet.payload.len();
        if self.packets > 1 && self.bytes > PICTURE_BYTES && self.content == Content::Unknown {
            self.content = Content::Video;
        }
        let begins = !self.recent.contains(&packet.timestamp);
        if begins {
            if self.recent.len() == MAX_RECENT {
                self.recent.remove(0);
            }
            self.recent.push(packet.timestamp);
        }
        begins
    }
}

/// The streams of a port; the frames of one of them are counted.
#[derive(Debug, Default)]
pub struct RtpStreams {
    all: Vec<RtpStream>,
    /// Source and payload type of the counted stream.
    counted: Option<(u32, u8)>,
    packets: u64,
}

impl RtpStreams {
    /// Whether a frame of the counted stream begins with the next packet.
    pub fn on_packet(&mut self, packet: &RtpPacket<'_>) -> bool {
        self.packets += 1;
        let key = (packet.source, packet.kind);
        let counted =
            self.counted.and_then(|of| self.all.iter().find(|s| (s.source, s.kind) == of));
        let counted = counted.map(|s| (s.content, s.last));
        let Some(stream) = self.stream(packet) else { return false };
        let begins = stream.on_packet(packet);
        let content = stream.content;
        if self.counted == Some(key) {
            return begins;
        }
        let takes_its_place = counted.is_none_or(|(other, last)| {
            content > other || self.packets - last > OVER && content >= other
        });
        if takes_its_place {
            self.counted = Some(key);
        }
        takes_its_place
    }

    /// The packet's stream. A new stream replaces the oldest if there are too many.
    fn stream(&mut self, packet: &RtpPacket<'_>) -> Option<&mut RtpStream> {
        let is_it = |s: &RtpStream| (s.source, s.kind) == (packet.source, packet.kind);
        if !self.all.iter().any(is_it) {
            if self.all.len() == MAX_STREAMS {
                let oldest = self.all.iter().enumerate().min_by_key(|(_, s)| s.last)?.0;
                self.all.swap_remove(oldest);
            }
            self.all.push(RtpStream::new(packet));
        }
        let stream = self.all.iter_mut().find(|s| is_it(s))?;
        stream.last = self.packets;
        Some(stream)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A packet with this payload type, source, timestamp, and number of bytes after the header.
    pub fn packet(kind: u8, source: u8, timestamp: u32, bytes: usize) -> Vec<u8> {
        let mut packet = vec![0x80, kind, 0, 1];
        packet.extend(timestamp.to_be_bytes());
        packet.extend([0, 0, 0, source]);
        packet.resize(12 + bytes, 1);
        packet
    }

    fn counted(streams: &mut RtpStreams, packets: &[Vec<u8>]) -> usize {
        packets.iter().filter(|p| streams.on_packet(&read(p).unwrap())).count()
    }

    /// A second of video with 25 frames of three packets, and the port's other packets between them.
    fn second(source: u8, others: impl Fn(u32) -> Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let frame = |n: u32| {
            let mut all = others(n);
            all.extend((0..3).map(|_| packet(96, source, 3600 * n, 700)));
            all
        };
        (0..25).flat_map(frame).collect()
    }

    #[test]
    fn a_frame_is_one_timestamp_of_the_video() {
        let none = |_| Vec::new();
        // PCMA and Opus, comfort noise and events of the same source; repair packets and late repeats of the video
        // itself.
        let sound =
            |n: u32| vec![packet(8, 9, 160 * 2 * n, 160), packet(8, 9, 160 * (2 * n + 1), 160)];
        let opus =
            |n: u32| vec![packet(111, 9, 960 * n, 150), packet(101, 9, 5, 4), packet(101, 9, 5, 4)];
        let repair = |n: u32| vec![packet(97, 1, 3600 * n + 77, 700)];
        let repeat = |n: u32| vec![packet(96, 1, 3600 * n.saturating_sub(2), 700)];
        for all in [second(1, none), second(1, repeat)] {
            assert_eq!(counted(&mut RtpStreams::default(), &all), 25);
        }
        // Packets before the first complete picture may be counted as frames, since they may be the only stream.
        for all in [second(1, sound), second(1, opus), second(1, repair)] {
            let found = counted(&mut RtpStreams::default(), &all);
            assert!((25..=27).contains(&found), "{found}");
        }
    }

    #[test]
    fn frames_in_another_order_than_their_timestamps_are_frames() {
        let order = [0, 3, 1, 2, 6, 4, 5, 9, 7, 8];
        let all: Vec<_> = order.iter().map(|n| packet(96, 1, 3600 * n, 500)).collect();
        assert_eq!(counted(&mut RtpStreams::default(), &all), 10);
    }

    #[test]
    fn sound_alone_has_a_frame_a_packet() {
        let all: Vec<_> = (0..50).map(|n| packet(111, 9, 960 * n, 150)).collect();
        assert_eq!(counted(&mut RtpStreams::default(), &all), 50);
    }

    #[test]
    fn a_program_that_begins_anew_is_counted_soon() {
        let mut streams = RtpStreams::default();
        let none = |_| Vec::new();
        for source in 1..40 {
            let four: Vec<_> = (0..4).flat_map(|_| second(source, none)).collect();
            let first = counted(&mut streams, &four);
            let found = counted(
                &mut streams,
                &(100..200).map(|n| packet(96, source, n, 700)).collect::<Vec<_>>(),
            );
            assert!(first > 0 && found == 100, "source {source}: {first}, {found}");
        }
        assert!(streams.all.len() <= MAX_STREAMS);
    }

    #[test]
    fn a_header_with_sources_and_an_extension_is_skipped() {
        let mut bytes = packet(33, 1, 0, 0);
        bytes[0] |= 0x12;
        bytes.extend([7; 8]);
        bytes.extend([0xbe, 0xde, 0, 1, 7, 7, 7, 7]);
        bytes.extend(b"payload");
        assert_eq!(read(&bytes).unwrap().payload, b"payload");
        for length in 0..bytes.len() {
            assert_eq!(read(&bytes[..length]).is_some(), length >= 12);
        }
    }
}
