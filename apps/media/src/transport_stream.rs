//! Pictures in an MPEG transport stream (ISO/IEC 13818-1 section 2.4.3). Its packets need not begin at the start of a
//! datagram: ffmpeg's datagrams have 1,472 bytes unless `pkt_size` is set.

/// Size of an MPEG-TS packet in bytes; below, its first byte.
const PACKET: usize = 188;
const SYNC: u8 = 0x47;
/// Distances between packets: plain, with a four-byte time before each (M2TS, of Blu-ray and AVCHD), and with 16 parity
/// bytes after each (DVB, EN 300 429).
const STRIDES: [usize; 3] = [PACKET, 192, 204];
/// Sync bytes in a row that count as proof: of 2^24 datagrams of random bytes, one has three at a given place.
const CERTAIN: usize = 3;
/// Pictures of another video since the last one of the counted video, after which that video is over.
const OVER: u32 = 25;

/// Positions of packets in a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Places {
    stride: usize,
    /// Offset of the first packet that begins in the datagram.
    first: usize,
}

/// The positions found in a single datagram.
fn places(datagram: &[u8]) -> Option<Places> {
    if is_whole_ts(datagram) {
        return Some(Places { stride: PACKET, first: 0 });
    }
    let all = STRIDES.into_iter().flat_map(|s| (0..s).map(move |f| Places { stride: s, first: f }));
    all.into_iter().find(|places| fits(datagram, *places).is_some_and(|count| count >= CERTAIN))
}

/// The number of packets that begin in the datagram, if all have a sync byte.
fn fits(datagram: &[u8], places: Places) -> Option<usize> {
    let mut firsts = datagram.iter().skip(places.first).step_by(places.stride);
    firsts.try_fold(0, |count, first| (*first == SYNC).then_some(count + 1))
}

/// Whether a datagram contains MPEG-TS packets.
pub fn is_ts(datagram: &[u8]) -> bool {
    places(datagram).is_some()
}

/// Whether the payload is a whole number of MPEG-TS packets, as RTP requires (RFC 2250 section 2).
pub fn is_whole_ts(payload: &[u8]) -> bool {
    payload.len().is_multiple_of(PACKET)
        && fits(payload, Places { stride: PACKET, first: 0 }).is_some_and(|count| count > 0)
}

/// The PID, if a picture begins in this packet; the first bytes of the packet suffice.
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

/// Detects pictures in a program's datagrams.
#[derive(Debug, Default)]
pub struct TransportStream {
    /// Positions of packets in the next datagram.
    places: Option<Places>,
    /// The beginning of a packet that continues in the next datagram.
    rest: Vec<u8>,
    /// PID of the counted video; below, pictures of other videos since its last.
    video: Option<u16>,
    others: u32,
}

impl TransportStream {
    /// Whether a picture begins in the next datagram; `None` if it contains no packets.
    pub fn on_datagram(&mut self, datagram: &[u8]) -> Option<bool> {
        let expected = self.places.filter(|places| fits(datagram, *places).is_some());
        // Otherwise a datagram is missing, or the program has restarted.
        let at = match expected {
            Some(at) => at,
            None => {
                self.rest.clear();
                self.places = None;
                places(datagram)?
            }
        };
        let mut begins = false;
        if !self.rest.is_empty() {
            let missing = PACKET.saturating_sub(self.rest.len()).min(datagram.len());
            self.rest.extend(datagram.get(..missing).unwrap_or_default());
            if let Some(pid) = begins_picture(&self.rest) {
                begins |= self.counts(pid);
                self.rest.clear();
            } else if self.rest.len() >= PACKET {
                self.rest.clear();
            }
        }
        let mut next = at.first;
        while let Some(packet) = datagram.get(next..).filter(|rest| !rest.is_empty()) {
            let whole = packet.get(..PACKET);
            let pid = begins_picture(whole.unwrap_or(packet));
            begins |= pid.is_some_and(|pid| self.counts(pid));
            if whole.is_none() && pid.is_none() {
                self.rest = packet.to_vec();
            }
            next += at.stride;
        }
        self.places = Some(Places { first: next - datagram.len(), ..at });
        Some(begins)
    }

    /// Whether a picture of this PID counts; pictures of only one video are counted.
    fn counts(&mut self, pid: u16) -> bool {
        let is_own = *self.video.get_or_insert(pid) == pid;
        self.others = if is_own { 0 } else { self.others + 1 };
        if self.others > OVER {
            self.video = Some(pid);
            self.others = 0;
        }
        self.video == Some(pid)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use proptest::prelude::*;

    const VIDEO: [u8; 6] = [0, 0, 1, 0xe0, 0, 0];

    /// A packet with these bytes at the start of its payload. `adaptation` is the length of an adaptation field before
    /// it.
    pub fn packet(pid: u8, starts: bool, adaptation: Option<u8>, payload: &[u8]) -> Vec<u8> {
        let control = if adaptation.is_some() { 0x30 } else { 0x10 };
        let mut packet = vec![SYNC, u8::from(starts) << 6, pid, control];
        if let Some(length) = adaptation {
            packet.push(length);
            packet.extend(vec![0xff; length.into()]);
        }
        packet.extend(payload);
        packet.resize(PACKET, 0xff);
        packet
    }

    /// `pictures` pictures of a PID, each in several packets, with audio between them. Each packet is preceded by
    /// `before` and followed by `behind` other bytes.
    fn stream(pid: u8, pictures: u8, before: usize, behind: usize) -> Vec<u8> {
        let mut packets = vec![packet(0, true, None, &[0])];
        for n in 0..pictures {
            packets.push(packet(pid, true, Some(7 + n % 90), &VIDEO));
            packets.extend((0..n % 7).map(|_| packet(pid, false, None, &VIDEO)));
            packets.push(packet(66, true, None, &[0, 0, 1, 0xc0]));
        }
        let framed = packets.into_iter();
        framed.flat_map(|packet| [vec![9; before], packet, vec![8; behind]].concat()).collect()
    }

    fn counted(ts: &mut TransportStream, bytes: &[u8], datagram: usize) -> usize {
        bytes.chunks(datagram).filter(|datagram| ts.on_datagram(datagram) == Some(true)).count()
    }

    #[test]
    fn pictures_are_counted_wherever_datagrams_are_cut() {
        for (before, behind) in [(0, 0), (4, 0), (0, 16)] {
            let bytes = stream(65, 120, before, behind);
            // 1,316 and 1,472 are ffmpeg's sizes with and without pkt_size.
            for datagram in [1316, 1472, 1344, 1428, 1000, 700, 1536, 1450] {
                let mut ts = TransportStream::default();
                let first = bytes.chunks(datagram).next().unwrap();
                assert!(is_ts(first), "{before} {behind} {datagram}");
                let found = counted(&mut ts, &bytes, datagram);
                // Pictures that begin in the same datagram count once.
                let several = bytes.chunks(datagram).count().min(120);
                assert!(found <= 120 && found * 10 >= several * 8, "{found} of {several}");
            }
        }
        // No datagram contains two pictures, so all are counted.
        for (before, behind) in [(0, 0), (4, 0), (0, 16)] {
            let stride = PACKET + before + behind;
            let mut bytes = Vec::new();
            for _ in 0..200 {
                let picture =
                    (0..9).map(|n| packet(65, n == 0, Some(20), if n == 0 { &VIDEO } else { &[] }));
                bytes.extend(picture.flat_map(|p| [vec![9; before], p, vec![8; behind]].concat()));
            }
            for datagram in [7 * PACKET, 1472, 3 * stride + 1, 3 * stride + 30, 1500] {
                let found = counted(&mut TransportStream::default(), &bytes, datagram);
                assert_eq!(found, 200, "{before} {behind} {datagram}");
            }
        }
    }

    #[test]
    fn a_missing_datagram_and_another_beginning_are_found() {
        let bytes = stream(65, 90, 0, 0);
        let mut all = TransportStream::default();
        let mut some = TransportStream::default();
        let whole = counted(&mut all, &bytes, 1472);
        let left = bytes.chunks(1472).enumerate().filter(|(n, _)| n % 10 != 5);
        let found = left.filter(|(_, datagram)| some.on_datagram(datagram) == Some(true)).count();
        assert!(found * 100 >= whole * 85 && found < whole, "{found} of {whole}");
        // The program restarts with another PID for its video.
        let again = counted(&mut some, &stream(70, 90, 0, 0), 1472);
        assert!(again + OVER as usize + 3 >= whole, "{again} of {whole}");
    }

    #[test]
    fn foreign_bytes_are_no_transport_stream() {
        let text: Vec<u8> = (0..1472u32).map(|n| (n * n / 7) as u8).collect();
        for datagram in [&[][..], &[SYNC], &[SYNC; 100], &[0; 188], &text] {
            assert!(!is_ts(datagram), "{datagram:?}");
            assert_eq!(TransportStream::default().on_datagram(datagram), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(all: Vec<Vec<u8>>, cut in 1usize..500, mut bytes: Vec<u8>) {
            let mut ts = TransportStream::default();
            let pictures = stream(65, 10, 0, 0);
            for datagram in pictures.chunks(cut).chain(all.iter().map(Vec::as_slice)) {
                let _ = ts.on_datagram(datagram);
            }
            bytes.extend(&pictures);
            for datagram in bytes.chunks(cut) {
                let _ = ts.on_datagram(datagram);
            }
        }
    }
}
