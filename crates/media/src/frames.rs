//! Where frames begin, as far as a program's datagrams show it.
//!
//! In RTP (RFC 3550 section 5.1) all packets of a video frame have one timestamp. In MPEG-TS (ISO/IEC 13818-1 section
//! 2.4.3) a packet that starts a payload unit begins a PES packet, and video encoders put one picture into each. Of
//! anything else each datagram is taken for a frame.

/// What a program sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// RTP.
    Rtp,
    /// MPEG transport stream packets of 188 bytes.
    Ts,
    /// Anything in datagrams.
    Datagrams,
}

/// Bytes of a packet of MPEG-TS, and its first byte.
const TS: usize = 188;
const SYNC: u8 = 0x47;

impl Format {
    /// What a datagram looks like.
    pub fn of(datagram: &[u8]) -> Format {
        let is_ts = !datagram.is_empty()
            && datagram.len().is_multiple_of(TS)
            && datagram.chunks(TS).all(|packet| packet.first() == Some(&SYNC));
        if is_ts {
            Format::Ts
        } else if timestamp(datagram).is_some() {
            Format::Rtp
        } else {
            Format::Datagrams
        }
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Format::Rtp => "RTP",
            Format::Ts => "MPEG-TS",
            Format::Datagrams => "datagrams",
        }
    }
}

/// Source and timestamp of an RTP packet.
fn timestamp(datagram: &[u8]) -> Option<(u32, u32)> {
    let (head, _) = datagram.split_first_chunk::<12>()?;
    let [first, kind, _, _, t0, t1, t2, t3, s0, s1, s2, s3] = *head;
    // Version 2; kinds 72 to 76 would be RTCP's (RFC 5761 section 4).
    let is_rtp = first >> 6 == 2 && !(72..=76).contains(&(kind & 0x7f));
    is_rtp.then(|| (u32::from_be_bytes([s0, s1, s2, s3]), u32::from_be_bytes([t0, t1, t2, t3])))
}

/// Whether a packet of MPEG-TS begins a PES packet with video, and its PID.
fn begins_picture(packet: &[u8]) -> Option<u16> {
    let (head, rest) = packet.split_first_chunk::<4>()?;
    let [SYNC, high, low, control] = *head else { return None };
    let skipped = match control >> 4 & 3 {
        1 => 0,
        3 => 1 + usize::from(*rest.first()?),
        _ => return None,
    };
    let is_video = matches!(rest.get(skipped..)?, [0, 0, 1, 0xe0..=0xef, ..]);
    (high & 0x40 != 0 && is_video).then_some(u16::from_be_bytes([high & 0x1f, low]))
}

/// Counts frames over the datagrams of a program.
#[derive(Debug, Default)]
pub struct Frames {
    format: Option<Format>,
    frame: u32,
    /// Of the frame: source and timestamp.
    rtp: Option<(u32, u32)>,
    /// The PID of the first video that was seen.
    video: Option<u16>,
}

impl Frames {
    /// What the first datagram looked like.
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    /// The frame of the next datagram, and whether it begins there.
    pub fn on_datagram(&mut self, datagram: &[u8]) -> (u32, bool) {
        let format = *self.format.get_or_insert_with(|| Format::of(datagram));
        let begins = match format {
            Format::Datagrams => true,
            Format::Rtp => match timestamp(datagram) {
                // RTCP, say, on the same port.
                None => false,
                Some((source, _)) if self.rtp.is_some_and(|(of, _)| of != source) => false,
                found => std::mem::replace(&mut self.rtp, found) != found,
            },
            Format::Ts => datagram.chunks(TS).any(|packet| {
                begins_picture(packet).is_some_and(|pid| *self.video.get_or_insert(pid) == pid)
            }),
        };
        self.frame = self.frame.wrapping_add(u32::from(begins));
        (self.frame, begins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rtp(source: u8, timestamp: u8) -> Vec<u8> {
        vec![0x80, 96, 0, 1, 0, 0, 0, timestamp, 0, 0, 0, source, 1, 2, 3]
    }

    /// A packet with a payload that begins like this; behind an adaptation field where that has a length.
    fn ts(pid: u8, starts: bool, adaptation: Option<u8>, payload: &[u8]) -> Vec<u8> {
        let control = if adaptation.is_some() { 0x30 } else { 0x10 };
        let mut packet = vec![SYNC, u8::from(starts) << 6, pid, control];
        if let Some(length) = adaptation {
            packet.push(length);
            packet.extend(vec![0xff; length.into()]);
        }
        packet.extend(payload);
        packet.resize(TS, 0xff);
        packet
    }

    #[test]
    fn an_rtp_frame_is_one_timestamp_of_one_source() {
        let mut frames = Frames::default();
        let all = [rtp(1, 1), rtp(1, 1), rtp(1, 2), rtp(9, 7), rtp(1, 2), rtp(1, 3)];
        let found = all.map(|datagram| frames.on_datagram(&datagram));
        let expected = [(1, true), (1, false), (2, true), (2, false), (2, false), (3, true)];
        assert_eq!((found, frames.format()), (expected, Some(Format::Rtp)));
    }

    #[test]
    fn a_picture_in_a_transport_stream_begins_with_its_pes_packet() {
        let video = [0, 0, 1, 0xe0, 0, 0];
        let mut frames = Frames::default();
        let all = [
            ts(0, true, None, &[0]),
            ts(65, true, Some(7), &video),
            ts(65, false, None, &video),
            ts(66, true, None, &[0, 0, 1, 0xc0]),
            // A second video does not count: frames are those of one.
            ts(70, true, None, &video),
            [ts(65, false, None, &[]), ts(65, true, None, &video)].concat(),
        ];
        let found = all.map(|datagram| frames.on_datagram(&datagram));
        let expected = [(0, false), (1, true), (1, false), (1, false), (1, false), (2, true)];
        assert_eq!((found, frames.format()), (expected, Some(Format::Ts)));
    }

    proptest! {
        #[test]
        fn anything_has_a_format_and_a_frame(all: Vec<Vec<u8>>) {
            let mut frames = Frames::default();
            for datagram in &all {
                let (frame, begins) = frames.on_datagram(datagram);
                prop_assert!(frame > 0 || !begins);
            }
        }
    }
}
