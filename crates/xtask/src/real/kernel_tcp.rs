//! One transfer by the kernel's own TCP over an emulated link, between two namespaces.

use narrows_base::{Duration, Time};
use narrows_emulator::{
    EmulatedLink, End, LinkOptions, LinkStats, LinkTap, Namespace, PassedPacket,
};
use narrows_net::relay::Lateness;
use narrows_speed::Observed;
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
/// What is written and read at once.
const BLOCK: usize = 128 << 10;

/// What a transfer gave.
pub struct Bulk {
    /// What the receiver read in time.
    pub bytes: u64,
    pub stats: LinkStats,
    /// Processor time of the emulator's threads, s.
    pub cpu_s: f64,
}

/// Sends for so long with this congestion control of the kernel; what was seen, and how late the emulator was.
pub fn transfer(
    algorithm: &str,
    options: LinkOptions,
    seconds: f64,
) -> Result<(Observed, Lateness), String> {
    let tap = Arc::new(RttTap::default());
    let options = LinkOptions { tap: Some(tap.clone()), ..options };
    let Bulk { bytes, stats, .. } = bulk(algorithm, options, seconds)?;
    let there = stats.there.packets;
    let seen = Observed {
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
pub fn bulk(algorithm: &str, options: LinkOptions, seconds: f64) -> Result<Bulk, String> {
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
        Ok(Bulk { bytes, stats: link.stop(), cpu_s })
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

/// Round-trip times as a sender sees them: from the first packet with a timestamp to each ACK that echoes it
/// (RFC 7323), as in simulation. The kernel's timestamps are milliseconds, the times here are exact.
#[derive(Debug, Default)]
struct RttTap {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Timestamps in the order of time, and when each was sent first.
    sent: VecDeque<(u32, Time)>,
    sum: Duration,
    count: u64,
}

/// Timestamps that are kept: a minute's.
const MAX_SENT: usize = 60_000;

impl RttTap {
    fn mean_s(&self) -> f64 {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.count == 0 { f64::NAN } else { seen.sum.as_secs_f64() / seen.count as f64 }
    }
}

impl LinkTap for RttTap {
    fn passed(&self, packet: &PassedPacket<'_>) {
        if packet.end != End::A {
            return;
        }
        let Some((value, echo)) = timestamps(packet.bytes) else { return };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if packet.entered {
            if seen.sent.back().is_none_or(|(last, _)| *last != value) {
                seen.sent.push_back((value, packet.at));
                if seen.sent.len() > MAX_SENT {
                    seen.sent.pop_front();
                }
            }
        } else if let Some(first) = seen.sent.front().map(|(v, _)| *v) {
            let after = echo.wrapping_sub(first);
            let at = seen.sent.partition_point(|(v, _)| v.wrapping_sub(first) < after);
            if let Some((_, sent)) = seen.sent.get(at).copied().filter(|(v, _)| *v == echo) {
                seen.sum += packet.at.since(sent);
                seen.count += 1;
            }
        }
    }
}

/// The two timestamps of a segment (IPv4) that is no SYN.
fn timestamps(packet: &[u8]) -> Option<(u32, u32)> {
    let header = usize::from(packet.first()? & 0xf) * 4;
    if packet.first()? >> 4 != 4 || *packet.get(9)? != TCP {
        return None;
    }
    let tcp = packet.get(header..)?;
    let flags = *tcp.get(13)?;
    if flags & (ACK | SYN) != ACK {
        return None;
    }
    let mut options = tcp.get(20..usize::from(tcp.get(12)? >> 4) * 4)?;
    loop {
        match *options {
            [1, ..] => options = options.get(1..)?,
            [8, 10, a, b, c, d, e, f, g, h, ..] => {
                return Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])));
            }
            [kind, length, ..] if kind > 1 && length >= 2 => {
                options = options.get(usize::from(length)..)?;
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_found_behind_other_options() {
        let mut packet = vec![0u8; 20 + 32];
        (packet[0], packet[9], packet[32], packet[33]) = (0x45, TCP, 0x80, ACK);
        packet[40..52].copy_from_slice(&[1, 1, 8, 10, 0, 0, 1, 0, 0, 0, 0, 9]);
        assert_eq!(timestamps(&packet), Some((256, 9)));
        packet[33] |= SYN;
        assert_eq!(timestamps(&packet), None, "before the connection");
        for length in 0..52 {
            assert_eq!(timestamps(&packet[..length]), None);
        }
    }
}
