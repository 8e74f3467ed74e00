//! The protocol between both ends of a probe: frames on a stream, and the header of a train's packets.
//!
//! A frame is its kind (1 byte), the length of the rest (4), and the rest. The prober announces each train and its
//! direction. The sender of a train reports its end; the receiver may stop it. Numbers are big-endian; reports have
//! variable-length ones, differences from one arrival to the next.

use crate::buffer::StopAt;
use crate::train::TrainArrival;

/// Packets of a train, at most.
pub const MAX_PACKETS: u32 = 24_000;
/// Largest frame in bytes: a report of [`MAX_PACKETS`] packets.
pub const MAX_FRAME: usize = 19 * MAX_PACKETS as usize + 64;
/// Bytes of a packet's header.
pub const HEADER: usize = 16;
const REASON: usize = 200;
/// Clocks in nanoseconds do not reach this.
const MAX_NUMBER: u64 = 1 << 63;

/// A message on the stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProbeFrame {
    /// From the prober: announces a train that the prober sends.
    Up(TrainFrame),
    /// The prober: send this train.
    Down(TrainFrame),
    /// From the sender of a train: it is over after this many packets.
    Sent {
        /// Number of the train.
        train: u32,
        /// Number of packets sent.
        packets: u32,
    },
    /// From the receiver of a train: stop sending it.
    Stop {
        /// Number of the train.
        train: u32,
    },
    /// From the server: arrivals of a train, in the order of arrival.
    Report {
        /// Number of the train.
        train: u32,
        /// Arrived packets of the train.
        arrivals: Vec<TrainArrival>,
    },
    /// From the server: it refuses the request.
    Refused {
        /// Reason as text.
        why: String,
    },
}

/// A train in its announcement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TrainFrame {
    /// Number of the train.
    pub train: u32,
    /// Number of packets.
    pub packets: u32,
    /// Bytes of a message, its header included.
    pub bytes: u16,
    /// From one to the next, ns.
    pub gap_ns: u64,
    /// When the receiver stops it.
    pub stop_at: StopAt,
    /// Number of packets at the end that leave with the ECN field CE.
    pub ce: u16,
}

/// The first bytes of each packet of a train.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TrainHeader {
    /// Number of the train.
    pub train: u32,
    /// Which packet of it.
    pub index: u32,
    /// Send time by the sender's clock.
    pub sent_ns: u64,
}

impl TrainHeader {
    /// In network byte order.
    pub fn bytes(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[..4].copy_from_slice(&self.train.to_be_bytes());
        out[4..8].copy_from_slice(&self.index.to_be_bytes());
        out[8..].copy_from_slice(&self.sent_ns.to_be_bytes());
        out
    }
    /// Parses a packet; `None` if it is too short.
    pub fn read(message: &[u8]) -> Option<TrainHeader> {
        let mut input = FrameBytes(message);
        Some(TrainHeader { train: input.u32()?, index: input.u32()?, sent_ns: input.u64()? })
    }
}

/// Why frames of a peer cannot be read any further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadFrame;

impl std::fmt::Display for BadFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the other end sent bytes that are no frame of a probe")
    }
}

impl std::error::Error for BadFrame {}

impl ProbeFrame {
    /// The whole frame with kind and length.
    pub fn bytes(&self) -> Vec<u8> {
        let mut rest = Vec::new();
        let kind = match self {
            ProbeFrame::Up(train) | ProbeFrame::Down(train) => {
                rest.extend(train.train.to_be_bytes());
                rest.extend(train.packets.to_be_bytes());
                rest.extend(train.bytes.to_be_bytes());
                rest.extend(train.gap_ns.to_be_bytes());
                rest.extend([train.stop_at.runs, train.stop_at.marks]);
                rest.extend(train.ce.to_be_bytes());
                if matches!(self, ProbeFrame::Up(_)) { 1 } else { 2 }
            }
            ProbeFrame::Sent { train, packets } => {
                rest.extend(train.to_be_bytes());
                rest.extend(packets.to_be_bytes());
                3
            }
            ProbeFrame::Stop { train } => {
                rest.extend(train.to_be_bytes());
                4
            }
            ProbeFrame::Report { train, arrivals } => {
                rest.extend(train.to_be_bytes());
                let mut index = 0;
                let mut at = 0;
                for arrival in arrivals.iter().take(MAX_PACKETS as usize) {
                    let place = u64::from(arrival.index) << 2 | u64::from(arrival.ecn & 3);
                    write_difference(&mut rest, index, place);
                    write_difference(&mut rest, at, arrival.at_ns);
                    index = place;
                    at = arrival.at_ns;
                }
                5
            }
            ProbeFrame::Refused { why } => {
                rest.extend(why.bytes().take(REASON));
                6
            }
        };
        let mut out = vec![kind];
        out.extend((rest.len() as u32).to_be_bytes());
        out.extend(rest);
        out
    }

    fn read(kind: u8, rest: &[u8]) -> Option<ProbeFrame> {
        let mut input = FrameBytes(rest);
        let frame = match kind {
            1 | 2 => {
                let train = TrainFrame {
                    train: input.u32()?,
                    packets: input.u32()?,
                    bytes: input.u16()?,
                    gap_ns: input.u64()?,
                    stop_at: StopAt { runs: input.u8()?, marks: input.u8()? },
                    ce: input.u16()?,
                };
                if kind == 1 { ProbeFrame::Up(train) } else { ProbeFrame::Down(train) }
            }
            3 => ProbeFrame::Sent { train: input.u32()?, packets: input.u32()? },
            4 => ProbeFrame::Stop { train: input.u32()? },
            5 => {
                let train = input.u32()?;
                let mut arrivals = Vec::new();
                let mut index = 0;
                let mut at_ns = 0;
                while !input.0.is_empty() {
                    index = input.difference(index)?;
                    at_ns = input.difference(at_ns)?;
                    let ecn = (index & 3) as u8;
                    arrivals.push(TrainArrival {
                        index: u32::try_from(index >> 2).ok()?,
                        at_ns,
                        ecn,
                    });
                    if arrivals.len() > MAX_PACKETS as usize {
                        return None;
                    }
                }
                ProbeFrame::Report { train, arrivals }
            }
            6 => {
                let text = String::from_utf8_lossy(rest.get(..rest.len().min(REASON))?);
                // The peer's text goes to a terminal.
                let why = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
                input.0 = &[];
                ProbeFrame::Refused { why }
            }
            _ => return None,
        };
        input.0.is_empty().then_some(frame)
    }
}

/// Frames out of a stream's bytes.
#[derive(Debug, Default)]
pub struct FrameReader {
    bytes: Vec<u8>,
}

impl FrameReader {
    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
    /// The next whole frame; `None` if it has not arrived in full.
    ///
    /// # Errors
    /// The bytes are no frame, or the frame is too long.
    pub fn next_frame(&mut self) -> Result<Option<ProbeFrame>, BadFrame> {
        let Some((head, rest)) = self.bytes.split_first_chunk::<5>() else { return Ok(None) };
        let [kind, length @ ..] = *head;
        let length = u32::from_be_bytes(length) as usize;
        if length > MAX_FRAME {
            return Err(BadFrame);
        }
        let Some(rest) = rest.get(..length) else { return Ok(None) };
        let frame = ProbeFrame::read(kind, rest).ok_or(BadFrame)?;
        self.bytes.drain(..5 + length);
        Ok(Some(frame))
    }
}

struct FrameBytes<'a>(&'a [u8]);

impl FrameBytes<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }
    fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[b]| b)
    }
    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }
    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }
    /// A number that was written as its difference from another.
    fn difference(&mut self, from: u64) -> Option<u64> {
        let mut bits = 0;
        for shift in (0..).step_by(7).take(10) {
            let byte = self.u8()?;
            bits |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                // Even numbers are differences upwards, odd ones downwards.
                let half = bits >> 1;
                let back = bits & 1 == 1;
                let to = if back { from.checked_sub(half) } else { from.checked_add(half) };
                return to.filter(|to| *to < MAX_NUMBER);
            }
        }
        None
    }
}

fn write_difference(out: &mut Vec<u8>, from: u64, to: u64) {
    let mut bits = if to >= from { (to - from) << 1 } else { (from - to) << 1 | 1 };
    while bits >= 0x80 {
        out.push(bits as u8 | 0x80);
        bits >>= 7;
    }
    out.push(bits as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn arrivals() -> impl Strategy<Value = Vec<TrainArrival>> {
        let one = (0..MAX_PACKETS, 0..u64::MAX >> 1, 0u8..4);
        let one = one.prop_map(|(index, at_ns, ecn)| TrainArrival { index, at_ns, ecn });
        prop::collection::vec(one, 0..50)
    }

    fn frame() -> impl Strategy<Value = ProbeFrame> {
        let train = (any::<(u32, u32, u16)>(), any::<(u64, u8, u8, u16)>()).prop_map(
            |((train, packets, bytes), (gap_ns, runs, marks, ce))| TrainFrame {
                train,
                packets,
                bytes,
                gap_ns,
                stop_at: StopAt { runs, marks },
                ce,
            },
        );
        prop_oneof![
            train.clone().prop_map(ProbeFrame::Up),
            train.prop_map(ProbeFrame::Down),
            any::<(u32, u32)>().prop_map(|(train, packets)| ProbeFrame::Sent { train, packets }),
            any::<u32>().prop_map(|train| ProbeFrame::Stop { train }),
            (any::<u32>(), arrivals())
                .prop_map(|(train, arrivals)| ProbeFrame::Report { train, arrivals }),
            "[a-z ]{0,100}".prop_map(|why| ProbeFrame::Refused { why }),
        ]
    }

    proptest! {
        #[test]
        fn frames_come_back_in_whatever_pieces(
            frames in prop::collection::vec(frame(), 1..5),
            piece in 1usize..40,
        ) {
            let bytes: Vec<u8> = frames.iter().flat_map(ProbeFrame::bytes).collect();
            let mut reader = FrameReader::default();
            let mut read = Vec::new();
            for piece in bytes.chunks(piece) {
                reader.push(piece);
                while let Some(frame) = reader.next_frame().unwrap() {
                    read.push(frame);
                }
            }
            prop_assert_eq!(read, frames);
        }

        /// On any input, memory is bounded and the decoder does not panic.
        #[test]
        fn any_bytes_are_frames_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut reader = FrameReader::default();
            reader.push(&bytes);
            while let Ok(Some(frame)) = reader.next_frame() {
                prop_assert!(frame.bytes().len() <= 5 + MAX_FRAME);
            }
            let _ = TrainHeader::read(&bytes);
        }
    }

    #[test]
    fn oversized_frame_is_refused_before_its_payload() {
        let mut reader = FrameReader::default();
        reader.push(&[5, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(reader.next_frame(), Err(BadFrame));
    }

    #[test]
    fn the_longest_report_fits() {
        let far = |i: u32| TrainArrival {
            index: i % 2 * (MAX_PACKETS - 1),
            at_ns: u64::from(i % 2) << 62,
            ecn: 3,
        };
        let arrivals: Vec<TrainArrival> = (0..MAX_PACKETS).map(far).collect();
        let bytes = ProbeFrame::Report { train: 1, arrivals }.bytes();
        let mut reader = FrameReader::default();
        reader.push(&bytes);
        assert!(reader.next_frame().unwrap().is_some());
    }
}
