//! Counters of a connection's packets, and the limit on a server before its first acknowledgement.

use super::payload::SHORT_PROBE_DATAGRAM;

/// Bytes that a server may send per byte received, until a packet of its own is acknowledged. Short probes have a
/// higher limit, because the client's report may depend on them if the first packet was lost. Reports and CLOSE are not
/// limited; with them the factor stays below 40.
const MAX_UNHEARD: u64 = 34;
const MAX_UNHEARD_WITH_PROBES: u64 = 36;
/// UDP payload in bytes: SYN; START with the shortest FINISH; the server's handshake packets.
const SYN: u64 = 64;
const START_AND_FINISH: u64 = 90 + 73;
const SERVERS_HANDSHAKE: u64 = 57 + 240;

/// Counters of datagrams and of bytes of UDP payload.
#[derive(Debug, Default)]
pub(super) struct TrafficCounters {
    pub datagrams_sent: u64,
    pub bytes_sent: u64,
    /// Bytes of authentic packets.
    pub bytes_received: u64,
    /// Packets that were duplicates or not authentic.
    pub refused: u64,
    /// Reports ignored because they covered packets with dropped nonces.
    pub unproved: u64,
    /// Server: no packet has been acknowledged yet, which limits the bytes sent.
    pub before_first_ack: bool,
    /// The handshake had no SYN.
    pub without_syn: bool,
}

impl TrafficCounters {
    /// Counts a sent datagram of `size` bytes.
    pub fn on_sent(&mut self, size: usize) {
        self.datagrams_sent += 1;
        self.bytes_sent += size as u64;
    }
    /// Whether a packet of `bytes` bytes, `sent` in total with it, exceeds the limit for a client that has acknowledged
    /// no packet. The client's address is validated, but its requests may serve to flood a link.
    pub fn is_before_first_ack(&self, sent: u64, bytes: usize) -> bool {
        let syn = if self.without_syn { 0 } else { SYN };
        let came = self.bytes_received + syn + START_AND_FINISH;
        let is_short = bytes <= SHORT_PROBE_DATAGRAM;
        let most = if is_short { MAX_UNHEARD_WITH_PROBES } else { MAX_UNHEARD };
        self.before_first_ack && sent + SERVERS_HANDSHAKE > most * came
    }
}
