use super::frame::{GSO_NONE, GSO_TCP4, GSO_TCP6, GSO_UDP, HEADER, NEEDS_CHECKSUM, VnetHeader};
use super::ip::{CE, Layout, TCP, UDP, ecn, fold, number, put, sum};
use super::join::Joiner;
use super::split::{sequence, split};
use super::{checksum, ip};
use narrows_net::ip_packet::mark;

/// A super-frame as the kernel hands it over, with `payload` bytes of payload.
fn super_frame(six: bool, protocol: u8, payload: usize, size: usize) -> Vec<u8> {
    let transport = if six { 40 } else { 20 };
    let headers = transport + if protocol == TCP { 32 } else { 8 };
    let mut packet = vec![0; headers];
    if six {
        packet[..8].copy_from_slice(&[0x60, 0x20, 0, 0, 0, 0, protocol, 64]);
        packet[8..40].iter_mut().enumerate().for_each(|(n, b)| *b = n as u8);
    } else {
        packet[..12].copy_from_slice(&[0x45, 2, 0, 0, 0x12, 0xff, 0x40, 0, 64, protocol, 0, 0]);
        packet[12..20].copy_from_slice(&[198, 18, 0, 1, 198, 18, 0, 2]);
    }
    put(&mut packet, transport, 4000);
    put(&mut packet, transport + 2, 5201);
    if protocol == TCP {
        // Near the end of the sequence numbers; ACK, PSH, FIN, CWR; options.
        packet[transport + 4..transport + 8].copy_from_slice(&0xffff_ff00u32.to_be_bytes());
        packet[transport + 12..transport + 14].copy_from_slice(&[0x80, 0x99]);
        packet[transport + 20..transport + 32].fill(1);
    }
    packet.extend((0..payload).map(|n| (n / 7) as u8));
    let layout = Layout { six, protocol, transport };
    if protocol == UDP {
        put(&mut packet, transport + 4, (payload + 8) as u16);
    }
    layout.set_length(&mut packet);
    let offset = if protocol == TCP { 16 } else { 6 };
    let pseudo = layout.pseudo_header(&packet, packet.len() - transport);
    put(&mut packet, transport + offset, pseudo);
    let gso_type = match (protocol, six) {
        (UDP, _) => GSO_UDP,
        (_, false) => GSO_TCP4 | super::frame::GSO_ECN,
        (_, true) => GSO_TCP6 | super::frame::GSO_ECN,
    };
    let header = VnetHeader {
        flags: NEEDS_CHECKSUM,
        gso_type,
        header_length: headers as u16,
        gso_size: size as u16,
        checksum_start: transport as u16,
        checksum_offset: offset as u16,
    };
    [&header.bytes()[..], &packet].concat()
}

fn packets(frame: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    assert!(split(frame, &mut Vec::new(), |p| all.push(p.to_vec())));
    all
}

fn joined(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut joiner = Joiner::new(true);
    let mut out = Vec::new();
    for packet in packets {
        joiner.push(packet, |f| out.push(f.to_vec()));
    }
    joiner.flush(|f| out.push(f.to_vec()));
    out
}

/// A whole checksum over pseudo header and transport part sums to all ones.
fn is_intact(frame: &[u8]) -> bool {
    let packet = &frame[HEADER..];
    let layout = Layout::of(packet).unwrap();
    let transport = &packet[layout.transport..];
    let pseudo = u64::from(layout.pseudo_header(packet, transport.len()));
    fold(pseudo + sum(transport)) == 0xffff
}

const KINDS: [(bool, u8); 4] = [(false, TCP), (true, TCP), (false, UDP), (true, UDP)];

#[test]
fn super_frame_splits_into_packets_and_joins_again() {
    for (six, protocol) in KINDS {
        let frame = super_frame(six, protocol, 5000, 1448);
        let split = packets(&frame);
        assert_eq!(split.len(), 4);
        let mut payload = Vec::new();
        for (n, one) in split.iter().enumerate() {
            let (header, packet) = VnetHeader::read(one).unwrap();
            assert_eq!((header.gso_type, header.gso_size), (GSO_NONE, 0));
            let layout = Layout::of(packet).unwrap();
            assert_eq!((layout.six, layout.protocol), (six, protocol));
            if six {
                assert_eq!(usize::from(number(packet, 4)) + 40, packet.len());
            } else {
                assert_eq!(usize::from(number(packet, 2)), packet.len());
                assert_eq!(fold(sum(&packet[..20])), 0xffff, "IPv4 header checksum");
                assert_eq!(number(packet, 4), 0x12ffu16.wrapping_add(n as u16));
            }
            let t = layout.transport;
            if protocol == TCP {
                let wanted = 0xffff_ff00u32.wrapping_add(n as u32 * 1448);
                assert_eq!(sequence(packet, t), wanted);
                let flags = [0x90, 0x10, 0x10, 0x19][n];
                assert_eq!(packet[t + 13], flags, "CWR first only, PSH and FIN last only");
                payload.extend_from_slice(&packet[t + 32..]);
            } else {
                assert_eq!(usize::from(number(packet, t + 4)), packet.len() - t);
                payload.extend_from_slice(&packet[t + 8..]);
            }
            let mut whole = one.clone();
            checksum::complete(&mut whole);
            assert!(is_intact(&whole), "packet {n} of {six} {protocol}");
        }
        assert_eq!(payload, (0..5000).map(|n| (n / 7) as u8).collect::<Vec<_>>());
        assert_eq!(joined(&split), [frame], "{six} {protocol}");
    }
}

#[test]
fn effects_of_the_link_stay_with_their_packet() {
    let frame = super_frame(false, TCP, 1448 * 6, 1448);
    let mut split = packets(&frame);
    // One packet is marked and one is lost: neither may be joined over.
    mark(&mut split[1][HEADER..]);
    split.remove(4);
    let out = joined(&split);
    let marks: Vec<u8> = out.iter().map(|f| ecn(&f[HEADER..])).collect();
    assert_eq!(marks, [2, CE, 2, 2]);
    assert_eq!(out.iter().flat_map(|f| packets(f)).collect::<Vec<_>>(), split);
}

#[test]
fn only_equal_datagrams_of_one_flow_are_joined() {
    let small = |payload: usize, port: u16| {
        let frame = super_frame(false, UDP, payload, 1400);
        let mut one = packets(&frame).remove(0);
        put(&mut one[HEADER..], 20, port);
        one
    };
    let all =
        [small(100, 1), small(100, 1), small(40, 1), small(40, 1), small(40, 2), small(50, 2)];
    let out = joined(&all);
    let kinds: Vec<(u8, usize)> = out.iter().map(|f| (f[1], f.len() - HEADER - 28)).collect();
    assert_eq!(kinds, [(GSO_UDP, 240), (GSO_NONE, 40), (GSO_NONE, 40), (GSO_NONE, 50)]);
    let mut without = Joiner::new(false);
    let mut count = 0;
    all.iter().for_each(|p| without.push(p, |_| count += 1));
    without.flush(|_| count += 1);
    assert_eq!(count, 6, "an old kernel takes no super-frames of UDP");
}

#[test]
fn no_bytes_from_a_device_make_a_panic() {
    // Every prefix of good frames, and every byte of their headers replaced.
    for (six, protocol) in KINDS {
        let frame = super_frame(six, protocol, 3000, 1000);
        let try_it = |bytes: &[u8]| {
            let mut all = Vec::new();
            split(bytes, &mut Vec::new(), |p| all.push(p.to_vec()));
            for packet in &mut all {
                ip::flow(packet.get(HEADER..).unwrap_or_default());
                mark(packet.get_mut(HEADER..).unwrap_or_default());
                checksum::complete(&mut packet.clone());
            }
            joined(&all);
        };
        (0..120).for_each(|n| try_it(&frame[..n]));
        for at in 0..90 {
            for value in [0, 1, 4, 5, 0x40, 0x4f, 0x60, 0x7f, 0x80, 0xff] {
                let mut changed = frame.clone();
                changed[at] = value;
                try_it(&changed);
            }
        }
    }
}
