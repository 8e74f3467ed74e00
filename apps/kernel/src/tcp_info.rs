//! The kernel's state of a TCP connection (`TCP_INFO`), with any congestion control.

use crate::bpf::system::{TCP_INFO_BYTES, tcp_info};
use std::io;
use std::os::fd::AsFd;

/// A connection as its sender sees it. Fields that an older kernel lacks are 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpInfo {
    /// Smoothed round-trip time in microseconds.
    pub rtt_us: u32,
    /// Window in segments.
    pub cwnd: u32,
    /// Pacing rate in bytes per second.
    pub pacing_rate: u64,
    /// Segments with data sent, retransmissions included.
    pub segments_sent: u32,
    /// Segments retransmitted since the connection began.
    pub retransmissions: u32,
    /// Bytes of payload sent, retransmissions included.
    pub bytes_sent: u64,
    /// Bytes of payload written and not acknowledged, whether sent or not (Linux 4.19).
    pub bytes_unacknowledged: u64,
    /// Expiries of the retransmission timer (Linux 6.7).
    pub timeouts: u16,
}

impl TcpInfo {
    /// Of a socket.
    ///
    /// # Errors
    /// It is no TCP socket.
    pub fn of(socket: &impl AsFd) -> io::Result<TcpInfo> {
        Ok(TcpInfo::read(&tcp_info(socket.as_fd())?))
    }

    /// The places are those of `struct tcp_info` in linux/tcp.h, which only grows at its end.
    fn read(bytes: &[u8; TCP_INFO_BYTES]) -> TcpInfo {
        let two = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let four = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let eight = |at: usize| {
            let [first, second] = [four(at), four(at + 4)].map(u64::from);
            if cfg!(target_endian = "little") { second << 32 | first } else { first << 32 | second }
        };
        let bytes_sent = eight(200);
        let bytes_acknowledged = eight(120);
        let bytes_retransmitted = eight(208);
        let bytes_unsent = u64::from(four(144));
        let bytes_written = bytes_unsent.saturating_add(bytes_sent);
        TcpInfo {
            rtt_us: four(68),
            cwnd: four(80),
            retransmissions: four(100),
            pacing_rate: eight(104),
            segments_sent: four(156),
            bytes_sent,
            bytes_unacknowledged: bytes_written
                .saturating_sub(bytes_retransmitted)
                .saturating_sub(bytes_acknowledged),
            timeouts: two(240),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    /// Protects against places that are not the kernel's.
    #[test]
    fn sent_bytes_are_reported() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut far = listener.accept().unwrap().0;
        near.write_all(&[1; 5000]).unwrap();
        far.read_exact(&mut [0; 5000]).unwrap();
        let info = TcpInfo::of(&near).unwrap();
        assert!(info.bytes_sent == 5000 && info.cwnd >= 2 && info.retransmissions == 0, "{info:?}");
        assert!((1..=5).contains(&info.segments_sent) && info.rtt_us < 1_000_000, "{info:?}");
    }

    #[test]
    fn tcp_info_of_blocked_sender_counts_unacknowledged_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut far = listener.accept().unwrap().0;
        near.set_nonblocking(true).unwrap();
        let mut written = 0;
        while let Ok(n) = near.write(&[1; 65_536]) {
            written += n as u64;
        }
        let blocked = TcpInfo::of(&near).unwrap().bytes_unacknowledged;
        assert!((1..written).contains(&blocked), "{blocked} of {written} bytes");
        near.set_nonblocking(false).unwrap();
        far.read_exact(&mut vec![0; written as usize]).unwrap();
        // The answer acknowledges what came before it.
        far.write_all(&[1]).unwrap();
        near.read_exact(&mut [0]).unwrap();
        assert_eq!(TcpInfo::of(&near).unwrap().bytes_unacknowledged, 0);
    }
}
