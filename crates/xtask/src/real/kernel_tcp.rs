//! One transfer by the kernel's own TCP over an emulated link, between two namespaces.

use narrows_base::{Duration, Time};
use narrows_emulator::{
    EmulatedLink, LinkOptions, LinkSide, LinkStats, LinkTap, Namespace, PassedPacket,
};
use narrows_net::relay::Lateness;
use narrows_speed::MeasuredRun;
use rustix::net::{AddressFamily, SocketType, connect, socket, sockopt};
use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

const PORT: u16 = 5001;
const TCP: u8 = 6;
const ACK: u8 = 0x10;
const SYN: u8 = 0x02;
/// Bytes that are written and read at once.
const BLOCK: usize = 128 << 10;

/// Result of a transfer.
pub struct BulkResult {
    /// Bytes that the receiver read in time.
    pub bytes: u64,
    pub stats: LinkStats,
    /// Processor time of the emulator's threads, s.
    pub cpu_s: f64,
}

/// Sends for a given time with this congestion control of the kernel. Returns the result and the emulator's lateness.
pub fn transfer(
    algorithm: &str,
    options: LinkOptions,
    seconds: f64,
) -> Result<(MeasuredRun, Lateness), String> {
    let tap = Arc::new(RttTap::default());
    let options = LinkOptions { tap: Some(tap.clone()), ..options };
    let BulkResult { bytes, stats, .. } = bulk(algorithm, options, seconds)?;
    let there = stats.there.packets;
    let seen = MeasuredRun {
        goodput_bps: bytes as f64 * 8.0 / seconds,
        rtt_s: tap.mean_s(),
        wait_s: there.mean_wait_s(),
        offered: there.offered_bytes as f64 / (bytes as f64).max(1.0),
    };
    let lost = stats.there.unread + stats.back.unread + stats.there.refused + stats.back.refused;
    if lost > 0 {
        return Err(format!("{lost} packets were lost in the emulator, not on the link"));
    }
    let worse = stats.there.lateness.mean_s >= stats.back.lateness.mean_s;
    Ok((seen, if worse { stats.there.lateness } else { stats.back.lateness }))
}

/// The same without looking at packets.
pub fn bulk(algorithm: &str, options: LinkOptions, seconds: f64) -> Result<BulkResult, String> {
    let say = |e: narrows_emulator::Error| e.to_string();
    let (a, b) = (Namespace::create("a").map_err(say)?, Namespace::create("b").map_err(say)?);
    let link = EmulatedLink::between(&a, &b, options).map_err(say)?;
    let to = SocketAddr::new(four(&link)?, PORT);
    let listener = b.enter(|| TcpListener::bind(to)).map_err(say)?.map_err(|e| e.to_string())?;
    let length = std::time::Duration::from_secs_f64(seconds);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| received(&listener, begun + length));
        let sender = a.enter(|| opened(algorithm, to)).map_err(say)??;
        let writer = sender.try_clone().map_err(|e| e.to_string())?;
        scope.spawn(move || {
            let (mut writer, block) = (writer, vec![0; BLOCK]);
            // Until the socket is shut.
            while writer.write_all(&block).is_ok() {}
        });
        let bytes = receiver.join().map_err(|_| "the receiver ended before its time");
        let _ = sender.shutdown(std::net::Shutdown::Both);
        let (bytes, cpu_s) = (bytes??, emulator_cpu_s());
        Ok(BulkResult { bytes, stats: link.stop(), cpu_s })
    })
}

/// The IPv4 address of the far end.
pub fn four(link: &EmulatedLink) -> Result<IpAddr, String> {
    let mut all = link.b().addresses.iter().copied();
    all.find(IpAddr::is_ipv4).ok_or_else(|| "the link has no IPv4".into())
}

/// Processor time of the emulator's threads that live, s.
pub fn emulator_cpu_s() -> f64 {
    let of = |entry: std::fs::DirEntry| -> Option<f64> {
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        let spent = std::fs::read_to_string(entry.path().join("schedstat")).ok()?;
        let ns: f64 = spent.split_whitespace().next()?.parse().ok()?;
        (name.trim() == "narrows-link").then_some(ns * 1e-9)
    };
    std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten().filter_map(of).sum()
}

fn opened(algorithm: &str, to: SocketAddr) -> Result<TcpStream, String> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)
        .map_err(|e| format!("a socket: {e}"))?;
    sockopt::set_tcp_congestion(&socket, algorithm)
        .map_err(|e| format!("the kernel has no congestion control {algorithm}: {e}"))?;
    connect(&socket, &to).map_err(|e| format!("{to}: {e}"))?;
    Ok(TcpStream::from(socket))
}

/// Bytes that arrive until `end`.
fn received(listener: &TcpListener, end: Instant) -> Result<u64, String> {
    let mut stream = listener.accept().map_err(|e| e.to_string())?.0;
    let (mut bytes, mut block) = (0, vec![0; BLOCK]);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(bytes);
        }
        stream.set_read_timeout(Some(left)).map_err(|e| e.to_string())?;
        match stream.read(&mut block) {
            Ok(0) => return Err("the sender ended before its time".into()),
            Ok(n) => bytes += n as u64,
            Err(_) => {}
        }
    }
}

/// Round-trip times as a sender measures them, for each ACK as in simulation. A cumulative ACK is timed from the first
/// packet with the timestamp that it echoes (RFC 7323; its resolution is milliseconds, the times here are exact). An
/// ACK with SACK blocks echoes a timestamp from before the hole, so it is timed from the last packet of its first
/// block.
#[derive(Debug, Default)]
struct RttTap {
    seen: Mutex<SegmentLog>,
}

#[derive(Debug, Default)]
struct SegmentLog {
    /// Timestamps in the order of time, and when each was sent first.
    stamps: VecDeque<(u32, Time)>,
    /// The number after each packet's last byte, and when it was sent, in the order of time.
    packets: VecDeque<(u32, Time)>,
    acked: Option<u32>,
    sum: Duration,
    count: u64,
}

/// Timestamps and packets that are kept: more than a round trip's.
const MAX_SENT: usize = 20_000;

impl RttTap {
    fn mean_s(&self) -> f64 {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.count == 0 { f64::NAN } else { seen.sum.as_secs_f64() / seen.count as f64 }
    }
}

impl SegmentLog {
    fn sent(&mut self, at: Time, segment: &SegmentHeader) {
        if self.stamps.back().is_none_or(|(last, _)| *last != segment.stamp) {
            self.stamps.push_back((segment.stamp, at));
        }
        self.packets.push_back((segment.end, at));
        for list in [&mut self.stamps, &mut self.packets] {
            if list.len() > MAX_SENT {
                list.pop_front();
            }
        }
    }

    fn answered(&mut self, at: Time, ack: &SegmentHeader) {
        let advances = self.acked.is_none_or(|last| ack.ack.wrapping_sub(last) as i32 > 0);
        let (list, what) = match ack.sack {
            _ if advances => (&self.stamps, ack.echo),
            Some(end) => (&self.packets, end),
            None => return,
        };
        if advances {
            self.acked = Some(ack.ack);
        }
        if let Some((_, sent)) = list.iter().rev().find(|(w, _)| *w == what) {
            self.sum += at.since(*sent);
            self.count += 1;
        }
    }
}

impl LinkTap for RttTap {
    fn passed(&self, packet: &PassedPacket<'_>) {
        if packet.end != LinkSide::A {
            return;
        }
        let Some(segment) = SegmentHeader::read(packet.bytes) else { return };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if packet.entered {
            seen.sent(packet.at, &segment);
        } else {
            seen.answered(packet.at, &segment);
        }
    }
}

/// Header fields of a TCP segment (IPv4, no SYN).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct SegmentHeader {
    /// After its last byte.
    end: u32,
    ack: u32,
    stamp: u32,
    echo: u32,
    /// The end of its first SACK block.
    sack: Option<u32>,
}

impl SegmentHeader {
    fn read(packet: &[u8]) -> Option<SegmentHeader> {
        let header = usize::from(packet.first()? & 0xf) * 4;
        if packet.first()? >> 4 != 4 || *packet.get(9)? != TCP {
            return None;
        }
        let tcp = packet.get(header..)?;
        if *tcp.get(13)? & (ACK | SYN) != ACK {
            return None;
        }
        let offset = usize::from(tcp.get(12)? >> 4) * 4;
        let payload = tcp.len().checked_sub(offset)? as u32;
        let (end, ack) = (number(tcp, 4)?.wrapping_add(payload), number(tcp, 8)?);
        let (mut stamps, mut sack) = (None, None);
        let mut options = tcp.get(20..offset)?;
        while let [kind, rest @ ..] = options {
            let length = match kind {
                0 => break,
                1 => 1,
                _ => usize::from(*rest.first()?).max(2),
            };
            match kind {
                5 => sack = number(options, 6),
                8 => stamps = number(options, 2).zip(number(options, 6)),
                _ => {}
            }
            options = options.get(length..)?;
        }
        let (stamp, echo) = stamps?;
        Some(SegmentHeader { end, ack, stamp, echo, sack })
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_be_bytes(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 header and a TCP header with timestamps and a SACK block; no payload.
    fn packet() -> Vec<u8> {
        let mut packet = vec![0u8; 20 + 44];
        (packet[0], packet[9], packet[32], packet[33]) = (0x45, TCP, 0xb0, ACK);
        packet[24..32].copy_from_slice(&[0, 0, 0, 7, 0, 0, 2, 0]);
        packet[40..52].copy_from_slice(&[1, 1, 8, 10, 0, 0, 1, 0, 0, 0, 0, 9]);
        packet[52..64].copy_from_slice(&[1, 1, 5, 10, 0, 0, 3, 0, 0, 0, 4, 0]);
        packet
    }

    #[test]
    fn numbers_and_options_of_a_segment_are_read() {
        let mut packet = packet();
        let read = SegmentHeader { end: 7, ack: 512, stamp: 256, echo: 9, sack: Some(1024) };
        assert_eq!(SegmentHeader::read(&packet), Some(read));
        for length in 0..packet.len() {
            assert_eq!(SegmentHeader::read(&packet[..length]), None);
        }
        packet.push(0);
        assert_eq!(SegmentHeader::read(&packet).unwrap().end, 8, "a byte of payload");
        packet[33] |= SYN;
        assert_eq!(SegmentHeader::read(&packet), None, "before the connection");
    }

    #[test]
    fn an_ack_beside_a_hole_is_timed_by_what_it_reports() {
        let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
        let segment = |end, stamp| SegmentHeader { end, ack: 0, stamp, echo: 0, sack: None };
        let mut seen = SegmentLog::default();
        seen.sent(at(0), &segment(100, 1));
        seen.sent(at(0), &segment(200, 1));
        seen.sent(at(10), &segment(300, 11));
        seen.answered(at(50), &SegmentHeader { ack: 100, echo: 1, ..segment(0, 50) });
        // 200 is lost; 300 arrives, and the echo is still that of the last packet in order.
        seen.answered(
            at(60),
            &SegmentHeader { ack: 100, echo: 1, sack: Some(300), ..segment(0, 60) },
        );
        assert_eq!((seen.sum, seen.count), (Duration::from_millis(100), 2));
    }
}
