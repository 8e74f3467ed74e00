use super::*;
use crate::bytes::{BufferFull, Sink};
use crate::header::{ConnectionId, ShortHeader};
use crate::packet::TAG_BYTES;
use crate::report::{self, PacketRun, ReportReason};
use crate::writer::FrameWriter;
use proptest::collection::vec;
use proptest::prelude::*;

const PRELUDE: Prelude = Prelude { stamp: 123_456, distance: 300 };

/// A number of any size that a varint holds.
fn number() -> impl Strategy<Value = u64> {
    (0..=MAX_VARINT, 0u32..62).prop_map(|(n, shift)| n >> shift)
}

#[derive(Clone, Debug)]
struct Draw {
    kind: u8,
    a: u64,
    b: u64,
    c: u64,
    flag: bool,
    reason: u8,
    bytes: Vec<u8>,
    runs: Vec<PacketRun>,
}

fn draw() -> impl Strategy<Value = Draw> {
    let run =
        (1u64..1 << 40, 1u64..1 << 40, any::<bool>(), 0u32..40).prop_map(|(a, m, radio, s)| {
            PacketRun { arrived: (a >> s).max(1), missing: (m >> s).max(1), radio }
        });
    (
        0u8..17,
        number(),
        number(),
        number(),
        any::<bool>(),
        0u8..4,
        vec(any::<u8>(), 0..300),
        vec(run, 1..40),
    )
        .prop_map(|(kind, a, b, c, flag, reason, bytes, mut runs)| {
            if flag {
                runs.last_mut().unwrap().missing = 0;
            }
            Draw { kind, a, b, c, flag, reason, bytes, runs }
        })
}

impl Draw {
    fn frame<'a>(&'a self, space: &'a mut [u8]) -> Frame<'a> {
        let Draw { a, b, c, flag, .. } = *self;
        let most = |n: usize| &self.bytes[..self.bytes.len().min(n)];
        let block = self.bytes.first_chunk().copied().unwrap_or_default();
        match self.kind {
            0 => Frame::Padding(1 + self.bytes.len()),
            1 => Frame::Ping,
            2 => {
                let runs = report::runs(space, self.runs.iter().copied());
                let reason = [
                    ReportReason::Regular,
                    ReportReason::Cumulative,
                    ReportReason::Missing,
                    ReportReason::Selective,
                ][usize::from(self.reason)];
                Frame::Report(Report {
                    // High enough for all runs.
                    reason,
                    highest: a | 1 << 61,
                    echo: b as u32 >> 2,
                    delay: c,
                    marks: flag.then_some(b),
                    feedback: most(16),
                    nonce_sum: a as u8,
                    runs,
                })
            }
            3 if self.bytes.is_empty() => Frame::Ping,
            3 => Frame::Feedback(most(16)),
            4 => Frame::Datagram(&self.bytes),
            5 | 6 => {
                Frame::Stream { id: a >> (c % 62), offset: b >> 1, fin: flag, data: &self.bytes }
            }
            7 => Frame::MaxData(a),
            8 => Frame::MaxStream { id: a, most: b },
            9 => Frame::MaxStreams { one_way: flag, most: a },
            10 => Frame::Blocked { at: a },
            11 => Frame::StreamBlocked { id: a, at: b },
            12 => Frame::StreamsBlocked { one_way: flag, at: b },
            13 if flag => Frame::PathChallenge(block),
            13 => Frame::PathResponse(block),
            14 => Frame::ResetStream { id: a, code: b, size: c },
            15 if flag => Frame::Stop { id: a, code: b },
            15 => Frame::Close { code: a, reason: most(MAX_REASON_BYTES) },
            _ => Frame::Extension { kind: 0x40 + (a % 64) as u8, body: &self.bytes },
        }
    }
}

fn frames(payload: &[u8]) -> Vec<Result<Frame<'_>, Malformed>> {
    Frames::read(payload).map(|(_, frames)| frames.collect()).unwrap_or_default()
}

proptest! {
    /// Frames are read as written, until the buffer is full. A frame that does not fit leaves no trace.
    #[test]
    fn frames_come_back(draws in vec(draw(), 0..12), room in 6usize..1500, last in any::<Option<bool>>()) {
        let mut spaces = vec![[0u8; 600]; draws.len()];
        let written: Vec<Frame> =
            draws.iter().zip(&mut spaces).map(|(d, space)| d.frame(space)).collect();
        let mut buffer = vec![0xaa; room];
        let mut writer = FrameWriter::new(&mut buffer, PRELUDE).unwrap();
        let mut expected: Vec<Frame> = Vec::new();
        for frame in &written {
            let before = writer.len();
            match writer.frame(frame) {
                Ok(()) => match (expected.last_mut(), frame) {
                    // Padding beside padding is one.
                    (Some(Frame::Padding(n)), Frame::Padding(more)) => *n += more,
                    _ => expected.push(*frame),
                },
                Err(BufferFull) => prop_assert_eq!(writer.len(), before),
            }
        }
        let tail = [9u8; 40];
        let mut apart = None;
        let fitting = &tail[..writer.stream_room(9, 1 << 24).min(40)];
        match last {
            Some(true) if writer.last_stream_apart(9, 1 << 24, true, fitting.len()).is_ok() => {
                prop_assert_eq!(writer.apart(), fitting.len());
                apart = Some(fitting);
                expected.push(Frame::Stream { id: 9, offset: 1 << 24, fin: true, data: fitting });
                prop_assert_eq!(writer.frame(&Frame::Ping), Err(BufferFull));
            }
            Some(false) if writer.last_datagram(&tail).is_ok() => {
                expected.push(Frame::Datagram(&tail));
                prop_assert_eq!(writer.room(), 0);
            }
            _ => {}
        }
        let length = writer.len();
        if let Some(data) = apart {
            buffer[length - data.len()..length].copy_from_slice(data);
        }
        let (prelude, read) = Frames::read(&buffer[..length]).unwrap();
        prop_assert_eq!(prelude, PRELUDE);
        let read: Vec<Frame> = read.map(|f| f.expect("what was written")).collect();
        prop_assert_eq!(read, expected);
    }

    /// Any prefix of a payload and any corrupt byte read as something or one error at the end.
    #[test]
    fn damage_is_an_error_or_something(draws in vec(draw(), 1..5), byte in any::<u8>()) {
        let mut spaces = vec![[0u8; 600]; draws.len()];
        let mut buffer = vec![0; 3000];
        let mut writer = FrameWriter::new(&mut buffer, PRELUDE).unwrap();
        for (draw, space) in draws.iter().zip(&mut spaces) {
            writer.frame(&draw.frame(space)).unwrap();
        }
        let length = writer.len();
        for cut in 0..length {
            let read = frames(&buffer[..cut]);
            prop_assert!(read.iter().rev().skip(1).all(Result::is_ok));
        }
        for at in 0..length {
            let kept = std::mem::replace(&mut buffer[at], byte);
            let _ = frames(&buffer[..length]);
            buffer[at] = kept;
        }
    }

    /// Any accepted report is consistent: ranges fall, and stay above zero.
    #[test]
    fn any_report_that_is_accepted_is_consistent(bytes in vec(prop_oneof![any::<u8>(), 0u8..8], 0..120)) {
        let mut payload = vec![0, 0, 0, 0, kind::REPORT];
        payload.extend_from_slice(&bytes);
        if let Some(Ok(Frame::Report(report))) = frames(&payload).first() {
            let mut below = report.highest + 1;
            let mut all: Vec<(u64, u64)> = report.arrived().collect();
            prop_assert!(all.len() <= report::MAX_RUNS && report.feedback.len() <= 16);
            all.extend(report.missing().map(|(from, to, _)| (from, to)));
            all.sort_by(|a, b| b.cmp(a));
            for (from, to) in all {
                prop_assert_eq!(to, below);
                prop_assert!(from < to);
                below = from;
            }
        }
    }
}

/// The vector of Choi 2006 section 4.2.2, with a cause: of 4 to 10, packet 4 is missing.
#[test]
fn a_vector_is_runs_from_the_top() {
    let mut space = [0; 600];
    let list = [PacketRun { arrived: 6, missing: 1, radio: true }];
    let report = Report {
        reason: ReportReason::Missing,
        highest: 10,
        echo: 5,
        delay: 0,
        marks: None,
        feedback: &[],
        nonce_sum: 77,
        runs: report::runs(&mut space, list),
    };
    assert_eq!(report.arrived().collect::<Vec<_>>(), [(5, 11)]);
    assert_eq!(report.missing().collect::<Vec<_>>(), [(4, 5, true)]);
    let mut buffer = [0; 64];
    let mut writer = FrameWriter::new(&mut buffer, PRELUDE).unwrap();
    writer.frame(&Frame::Report(report)).unwrap();
    // Type, flags, highest, echo, delay, nonce sum, count, arrived - 1, missing * 2 + 1.
    assert_eq!(buffer[6..18], [2, 2, 10, 0, 0, 0, 5, 0, 77, 1, 5, 3]);
}

/// A full datagram of stream data: everything that is not data.
#[test]
fn header_and_seal_take_at_most_36_bytes() {
    // The first streams of either side, below 1 TiB, with fewer than 65,536 packets of unknown
    // outcome (which is 94 MB in flight).
    for (id, offset, number, least_unacked) in [
        (0, 0, 0, 0),
        (0, 1_000_000_000, 700_000, 690_000),
        (6, (1 << 40) - 1, u64::from(u32::MAX), u64::from(u32::MAX) - 65_535),
    ] {
        let header =
            ShortHeader::new(ConnectionId(u32::MAX), false, number, least_unacked.checked_sub(1));
        let mut datagram = [0; 1472];
        let prelude = Prelude::new(narrows_base::Time::from_secs_f64(1e5), number, least_unacked);
        let mut writer =
            FrameWriter::new(&mut datagram[header.len()..1472 - TAG_BYTES], prelude).unwrap();
        let room = writer.stream_room(id, offset);
        writer.last_stream(id, offset, false, &vec![1; room]).unwrap();
        let overhead = 1472 - room;
        assert!(overhead <= 36, "{overhead} bytes with stream {id} at {offset}");
        assert_eq!(header.len() + writer.len() + TAG_BYTES, 1472);
    }
}

#[test]
fn unknown_frames() {
    let payload = |rest: &[u8]| [&[0, 0, 0, 0][..], rest].concat();
    // Extensions are skipped by their length.
    let read = payload(&[0x55, 2, 7, 8, kind::PING]);
    assert_eq!(
        frames(&read),
        [Ok(Frame::Extension { kind: 0x55, body: &[7, 8] }), Ok(Frame::Ping)]
    );
    assert!(frames(&payload(&[0x55, 9, 7, 8]))[0].is_err());
    // Any other kind ends the payload, and the bytes after it are not read.
    for kind in 0x15..0x40 {
        let read = payload(&[kind::PING, kind, kind::PING]);
        let read = frames(&read);
        assert_eq!((read.len(), read[1].is_err()), (2, true), "{kind:#x}");
    }
}

#[test]
fn writer_refuses_frames_that_readers_refuse() {
    let mut buffer = [0; 2000];
    let mut writer = FrameWriter::new(&mut buffer, PRELUDE).unwrap();
    for frame in [
        Frame::Feedback(&[]),
        Frame::Feedback(&[0; 17]),
        Frame::Close { code: 1, reason: &[b'x'; 256] },
        Frame::Extension { kind: 0x3f, body: &[] },
        Frame::Extension { kind: 0x80, body: &[] },
        Frame::MaxData(MAX_VARINT + 1),
        Frame::Stream { id: 0, offset: MAX_VARINT, fin: false, data: &[1] },
    ] {
        assert_eq!(writer.frame(&frame), Err(BufferFull), "{frame:?}");
        assert_eq!(writer.len(), PRELUDE.len());
    }
    let mut none: [u8; 3] = [0; 3];
    assert_eq!(PRELUDE.write(&mut Sink::new(&mut none)), Err(BufferFull));
}

#[test]
fn path_id_has_five_bytes() {
    let id = PathId { path: 3, connection: ConnectionId(0x0102_0304) };
    assert_eq!(id.bytes(), [3, 1, 2, 3, 4]);
    assert_eq!(PathId::read(&id.bytes()), Ok(id));
    let mut long = id.bytes().to_vec();
    assert!((0..5).all(|length| PathId::read(&long[..length]).is_err()));
    long.push(0);
    assert!(PathId::read(&long).is_err());
}
