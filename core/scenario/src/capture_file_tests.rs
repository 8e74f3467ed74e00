//! The capture file is parsed here by the format's specification, independently of the code that wrote it.

use super::*;

fn word(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

/// Kinds and bodies of all blocks; both lengths of each must agree.
pub fn blocks(mut file: &[u8]) -> Vec<(usize, &[u8])> {
    let mut out = Vec::new();
    while !file.is_empty() {
        let kind = word(file, 0);
        let length = word(file, 4);
        assert!(length.is_multiple_of(4) && length <= file.len(), "{length}");
        assert_eq!(word(file, length - 4), length);
        out.push((kind, &file[8..length - 4]));
        file = &file[length..];
    }
    out
}

/// The Internet checksum: zero over anything that carries its own right one.
fn checksum(bytes: &[u8]) -> u16 {
    let sum = bytes.chunks(2).fold(0u32, |sum, pair| {
        sum + u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]))
    });
    let sum = (sum & 0xffff) + (sum >> 16);
    !(((sum & 0xffff) + (sum >> 16)) as u16)
}

fn capture(from: &str, to: &str, ecn: u8, payload: &[u8]) -> Vec<u8> {
    let mut packets = CaptureFile::new(Vec::new(), "client").unwrap();
    let from = from.parse().unwrap();
    let to = to.parse().unwrap();
    let at = 1_700_000_000_123_456_789;
    packets.add(CapturedDatagram { at, from, to, ecn, payload }).unwrap();
    assert_eq!(packets.written, 1);
    packets.into_inner()
}

#[test]
fn a_capture_has_times_in_nanoseconds_and_right_ipv4_headers() {
    for length in [0, 1, 2, 3, 1472] {
        let payload: Vec<u8> = (0..length).map(|i| i as u8).collect();
        let file = capture("10.1.2.3:4433", "192.0.2.9:80", 2, &payload);
        let blocks = blocks(&file);
        let kinds: Vec<usize> = blocks.iter().map(|b| b.0).collect();
        assert_eq!(kinds, [0x0a0d_0d0a, 1, 6]);
        assert_eq!(word(blocks[0].1, 0), 0x1a2b_3c4d);
        // LINKTYPE_RAW; options: if_name (2), if_tsresol (9) of one byte, 9.
        assert_eq!(u16::from_le_bytes(blocks[1].1[..2].try_into().unwrap()), 101);
        let options = &blocks[1].1[8..];
        assert!(
            options.windows(5).any(|w| w[..2] == 9u16.to_le_bytes()
                && w[2..4] == 1u16.to_le_bytes()
                && w[4] == 9)
        );

        let block = blocks[2].1;
        let at = (word(block, 4) as u64) << 32 | word(block, 8) as u64;
        assert_eq!(at, 1_700_000_000_123_456_789);
        assert_eq!((word(block, 12), word(block, 16)), (28 + length, 28 + length));
        let packet = &block[20..20 + 28 + length];
        assert_eq!((packet[0], packet[1] & 3, packet[9]), (0x45, 2, 17));
        assert_eq!(u16::from_be_bytes([packet[2], packet[3]]) as usize, 28 + length);
        assert_eq!(checksum(&packet[..20]), 0);
        assert_eq!((&packet[12..16], &packet[16..20]), (&[10, 1, 2, 3][..], &[192, 0, 2, 9][..]));
        let udp = &packet[20..];
        assert_eq!(u16::from_be_bytes([udp[0], udp[1]]), 4433);
        assert_eq!(u16::from_be_bytes([udp[4], udp[5]]) as usize, 8 + length);
        let mut all = packet[12..20].to_vec();
        all.extend([0, 17, udp[4], udp[5]]);
        all.extend(udp);
        assert_eq!(checksum(&all), 0);
        assert_eq!(&udp[8..], payload);
    }
}

#[test]
fn an_ipv6_capture_is_right_too() {
    let file = capture("[2001:db8::1]:4433", "[2001:db8::2]:80", 1, b"odd");
    let packet = &blocks(&file)[2].1[20..20 + 51];
    assert_eq!(packet[0] >> 4, 6);
    assert_eq!((packet[1] >> 4) & 3, 1, "ECN");
    assert_eq!(u16::from_be_bytes([packet[4], packet[5]]), 11);
    let mut all = packet[8..40].to_vec();
    all.extend([0, 0, 0, 11, 0, 0, 0, 17]);
    all.extend(&packet[40..]);
    assert_eq!(checksum(&all), 0);
}

#[test]
fn full_file_counts_omitted_packets() {
    let mut packets = CaptureFile::new(Vec::new(), "client").unwrap();
    packets.max = 3000;
    let from = "127.0.0.1:1".parse().unwrap();
    let to = "127.0.0.1:2".parse().unwrap();
    for _ in 0..10 {
        let d = CapturedDatagram { at: 0, from, to, ecn: 0, payload: &[0; 1000] };
        packets.add(d).unwrap();
    }
    assert_eq!((packets.written, packets.beyond), (3, 7));
}
