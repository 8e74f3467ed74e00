//! A misbehaving peer that has the keys, for tests and fuzzing of the code that must withstand it. It seals any
//! content, true or false, and opens the packets that it receives.

use crate::bytes::MAX_VARINT;
use crate::frame::{PATH_ID, PATH_LEADER, PATH_STATUS, PathId, PathStatusFrame, REPAIR};
use crate::packet::TAG_BYTES;
use crate::report::{MAX_RUNS, runs};
use crate::seal::receipt_nonce;
use crate::{
    ConnectionId, Established, Frame, FrameWriter, Frames, Opener, PacketRun, PathKeys, Prelude,
    Report, ReportReason, Sealer,
};
use narrows_base::Time;
use std::collections::BTreeMap;

/// The false part of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lie {
    /// The report is true.
    None,
    /// The highest number is larger by this, so packets arrived that were never sent.
    HigherNumber(u8),
    /// The highest number is smaller by this.
    LowerNumber(u8),
    /// Only the latest run is listed.
    LatestRun,
    /// Every run has one packet.
    ShortRuns,
    /// Every packet below the highest arrived.
    AllArrived,
    /// The radio link lost the missing packets.
    RadioLosses,
    /// The report was delayed by two to the power of this.
    Delay(u8),
    /// The echoed stamp.
    Echo(u8),
    /// The number of packets with a CE mark.
    Marks(u8),
    /// Feedback of bytes with this value: one to four words of them.
    Feedback(u8),
    /// These bits of the sum of nonces are wrong.
    NonceSum(u8),
}

impl From<u8> for Lie {
    /// The upper four bits choose the field, the lower ones its value.
    fn from(byte: u8) -> Lie {
        let value = byte & 15;
        match byte >> 4 {
            1 => Lie::HigherNumber(value),
            2 => Lie::LatestRun,
            3 => Lie::RadioLosses,
            4 => Lie::Delay(value),
            5 => Lie::LowerNumber(value),
            6 => Lie::ShortRuns,
            7 => Lie::Echo(byte),
            8 => Lie::Marks(value),
            9 => Lie::Feedback(byte),
            10 => Lie::NonceSum(value),
            11 => Lie::AllArrived,
            _ => Lie::None,
        }
    }
}

/// The other end of a connection: keys, packet numbers, and frames that need not be true.
pub struct HostilePeer {
    path_keys: Option<PathKeys>,
    sealer: Sealer,
    opener: Opener,
    next: u64,
    /// Received packet numbers with their nonces; the number below which reports are silent; the last stamp.
    received: BTreeMap<u64, u8>,
    floor: u64,
    stamp: u32,
    /// The last datagram sent.
    last: Vec<u8>,
    challenge: Option<[u8; 8]>,
    stream: u64,
    offset: u64,
}

impl HostilePeer {
    /// A peer with the keys of a handshake in which it was the client or the server.
    pub fn new(established: Established, is_client: bool) -> HostilePeer {
        let Established { sealer, opener, path_keys, .. } = established;
        HostilePeer::with_keys(Some(path_keys), sealer, opener, is_client)
    }

    /// The same peer on a further path, with packet numbers and streams of its own. `theirs` is the ID in packets to the
    /// other end. `None` for path 0.
    pub fn further(&self, path: u8, theirs: ConnectionId, is_client: bool) -> Option<HostilePeer> {
        let secrets = self.path_keys.as_ref()?.path(path)?;
        let opener = secrets.opener()?;
        Some(HostilePeer::with_keys(None, secrets.sealer(theirs)?, opener, is_client))
    }

    fn with_keys(
        path_keys: Option<PathKeys>,
        sealer: Sealer,
        opener: Opener,
        is_client: bool,
    ) -> HostilePeer {
        HostilePeer {
            path_keys,
            sealer,
            opener,
            next: 0,
            received: BTreeMap::new(),
            floor: 0,
            stamp: 0,
            last: Vec::new(),
            challenge: None,
            stream: u64::from(!is_client),
            offset: 0,
        }
    }

    /// Receives a datagram; returns whether it is authentic and new.
    ///
    /// # Panics
    /// The opened payload cannot be parsed.
    pub fn receive(&mut self, datagram: &mut [u8]) -> bool {
        let nonce = receipt_nonce(datagram);
        let Ok(opened) = self.opener.open(datagram) else { return false };
        self.received.insert(opened.number, nonce);
        if self.received.len() > 4000 {
            self.received.pop_first();
        }
        let (prelude, frames) = Frames::read(opened.payload).expect("a prelude");
        self.stamp = prelude.stamp;
        self.floor = self.floor.max(prelude.least_unacked(opened.number));
        for frame in frames {
            if let Frame::PathChallenge(data) = frame.expect("what it writes can be read") {
                self.challenge = Some(data);
            }
        }
        true
    }

    /// Seals the payload that `write` writes.
    fn seal(&mut self, now: Time, write: impl FnOnce(&mut [u8], Prelude) -> usize) -> Vec<u8> {
        let number = self.next;
        self.next = (self.next + 1).min(MAX_VARINT);
        let head = Sealer::header_len(number, None);
        let mut datagram = vec![0; 1472];
        let prelude = Prelude::new(now, number, number.saturating_sub(9));
        let length = write(&mut datagram[head..1472 - TAG_BYTES], prelude);
        datagram.truncate(head + length + TAG_BYTES);
        if self.sealer.seal(number, None, &mut datagram).is_err() {
            // The packet numbers are used up: no further packet can be sent.
            return vec![0; 40];
        }
        self.last = datagram.clone();
        datagram
    }

    /// A packet with these bytes behind a valid prelude, or in its place.
    pub fn raw(&mut self, now: Time, payload: &[u8]) -> Vec<u8> {
        self.seal(now, |area, prelude| {
            let start = match payload.first() {
                Some(255) => 0,
                _ => FrameWriter::new(area, prelude).map_or(0, |writer| writer.len()),
            };
            area[start..start + payload.len()].copy_from_slice(payload);
            start + payload.len()
        })
    }
    /// A packet with this frame alone.
    pub fn frame(&mut self, now: Time, frame: &Frame<'_>) -> Vec<u8> {
        self.seal(now, |area, prelude| {
            let mut writer = FrameWriter::new(area, prelude).expect("room for a prelude");
            let _ = writer.frame(frame);
            writer.len()
        })
    }

    /// A report of received packets with a false part.
    pub fn report(&mut self, now: Time, lie: Lie) -> Vec<u8> {
        let mut list: Vec<PacketRun> = Vec::new();
        let mut below: Option<u64> = None;
        for number in self.received.range(self.floor..).rev().map(|packet| packet.0) {
            match (below, list.last_mut()) {
                (Some(last), Some(run)) if number + 1 == last => run.arrived += 1,
                (Some(last), Some(run)) => {
                    run.missing = last - number - 1;
                    if list.len() == MAX_RUNS {
                        break;
                    }
                    list.push(PacketRun { arrived: 1, missing: 0, radio: false });
                }
                _ => list.push(PacketRun { arrived: 1, missing: 0, radio: false }),
            }
            below = Some(*number);
        }
        let Some(mut highest) = self.received.last_key_value().map(|packet| *packet.0) else {
            return self.frame(now, &Frame::Ping);
        };
        match lie {
            Lie::HigherNumber(by) => highest += u64::from(by),
            Lie::LowerNumber(by) => highest = highest.saturating_sub(u64::from(by)),
            Lie::LatestRun => list.truncate(1),
            Lie::ShortRuns => list.iter_mut().for_each(|run| run.arrived = 1),
            Lie::AllArrived => {
                list.truncate(1);
                list.iter_mut().for_each(|run| run.arrived = highest + 1);
            }
            Lie::RadioLosses => list.iter_mut().for_each(|run| run.radio = true),
            _ => {}
        }
        if highest + 1 < list.iter().map(|run| run.arrived + run.missing).sum() {
            list.truncate(1);
            list[0] = PacketRun { arrived: 1, missing: 0, radio: false };
        }
        // It has no nonces of packets that never arrived.
        let mut nonce_sum = 0;
        let mut to = highest + 1;
        for run in &list {
            let arrived = self.received.range(to.saturating_sub(run.arrived)..to);
            nonce_sum = arrived.fold(nonce_sum, |sum, (_, nonce)| sum ^ nonce);
            to = to.saturating_sub(run.arrived + run.missing);
        }
        let mut bytes = [0; 16 * MAX_RUNS + 4];
        let mut report = Report {
            reason: ReportReason::Regular,
            highest,
            echo: self.stamp,
            delay: 0,
            marks: None,
            nonce_sum,
            feedback: &[],
            runs: runs(&mut bytes, list),
        };
        let feedback;
        match lie {
            Lie::Delay(exponent) => report.delay = 1 << exponent,
            Lie::Echo(stamp) => report.echo = u32::from(stamp),
            Lie::Marks(count) => report.marks = Some(u64::from(count)),
            Lie::Feedback(byte) => {
                feedback = [byte; 16];
                report.feedback = &feedback[..4 * usize::from(1 + byte % 4)];
            }
            Lie::NonceSum(bits) => report.nonce_sum ^= bits,
            _ => {}
        }
        self.frame(now, &Frame::Report(report))
    }

    /// A packet with more data of a stream of its own.
    pub fn stream(&mut self, now: Time, length: usize) -> Vec<u8> {
        let data = vec![9; length.min(1300)];
        let id = self.stream;
        let offset = self.offset;
        self.offset += data.len() as u64;
        self.frame(now, &Frame::Stream { id, offset, fin: false, data: &data })
    }

    /// A well-formed frame with any content: the lower four bits of `arg` are its kind, the upper ones a number.
    pub fn arbitrary_frame(&mut self, now: Time, arg: u8, lie: u64) -> Vec<u8> {
        let id = u64::from(arg >> 4);
        let data = [arg; 32];
        let repair =
            [&[1 + (lie & 62) as u8, 1, (lie >> 6) as u8][..], &data, &[lie as u8]].concat();
        let path = (lie & 7) as u8;
        let path_id = PathId { path, connection: ConnectionId((lie >> 3) as u32) }.bytes();
        let status = (lie >> 3 & 3) as u8;
        let status = PathStatusFrame { path, status, sequence: (lie >> 5) as u32 }.bytes();
        let frame = match arg & 15 {
            0 => Frame::Stream { id, offset: lie, fin: false, data: &data[..1] },
            1 => Frame::Stream { id, offset: lie, fin: true, data: &data },
            2 => Frame::MaxData(lie),
            3 => Frame::MaxStream { id, most: lie },
            4 => Frame::MaxStreams { one_way: id & 1 == 1, most: lie },
            5 => Frame::Blocked { at: lie },
            6 => Frame::StreamBlocked { id, at: lie },
            7 => Frame::StreamsBlocked { one_way: id & 1 == 1, at: lie },
            8 => Frame::ResetStream { id, code: lie, size: lie },
            9 => Frame::ResetStream { id, code: 1, size: self.offset },
            10 => Frame::Stop { id, code: lie },
            11 => Frame::Datagram(&data),
            12 => Frame::Feedback(&data[..1 + usize::from(arg >> 4)]),
            13 => Frame::PathChallenge([arg; 8]),
            14 => Frame::Stream { id: lie & 31, offset: lie >> 5, fin: false, data: &data },
            _ if arg >> 4 == REPAIR - 0x40 => Frame::Extension { kind: REPAIR, body: &repair },
            _ if arg >> 4 == PATH_ID - 0x40 => Frame::Extension { kind: PATH_ID, body: &path_id },
            _ if arg >> 4 == PATH_LEADER - 0x40 => {
                Frame::Extension { kind: PATH_LEADER, body: &status[..2] }
            }
            _ if arg >> 4 == PATH_STATUS - 0x40 => {
                Frame::Extension { kind: PATH_STATUS, body: &status }
            }
            _ => Frame::Extension { kind: 0x40 + (arg >> 4), body: &data[..usize::from(arg >> 4)] },
        };
        self.frame(now, &frame)
    }

    /// The last datagram, once more.
    pub fn again(&mut self) -> Vec<u8> {
        if self.last.is_empty() { vec![0; 40] } else { self.last.clone() }
    }
    /// Skips `n` packet numbers.
    pub fn skip(&mut self, n: u64) {
        self.next = (self.next + n).min(MAX_VARINT);
    }
    /// The response to a path challenge, or a wrong one.
    pub fn challenged(&mut self, now: Time, arg: u8) -> Vec<u8> {
        let data = self.challenge.take().filter(|_| arg < 128).unwrap_or([arg; 8]);
        self.frame(now, &Frame::PathResponse(data))
    }
}
