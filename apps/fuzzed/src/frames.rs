//! Any payload of an authenticated peer: no panic, bounded memory, and decoded frames are encoded and decoded again
//! unchanged.

use narrows_wire::bytes::Sink;
use narrows_wire::frame::REPAIR;
use narrows_wire::{Frame, FrameWriter, Frames, RepairFields};

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let Ok((prelude, frames)) = Frames::read(bytes) else { return };
    let frames: Vec<_> = frames.collect();
    let read: Vec<Frame> = frames.iter().filter_map(|f| f.ok()).collect();
    assert!(frames.len() <= read.len() + 1, "something follows an error");
    for frame in &read {
        if let Frame::Report(report) = frame {
            let mut at = report.highest + 1;
            for (from, to) in report.arrived() {
                assert!(from < to && to <= at);
                at = from;
            }
            assert!(report.missing().count() <= report.runs.iter().count());
        }
        if let Frame::Extension { kind: REPAIR, body } = frame
            && let Ok(repair) = RepairFields::read(body)
        {
            assert!(repair.numbers(1 << 40).all(|n| n < 1 << 40));
            let mut again = vec![0; repair.len()];
            repair.write(&mut Sink::new(&mut again)).expect("it has room");
            assert_eq!(RepairFields::read(&again), Ok(repair));
        }
    }
    // Lengths are added, and integers may become shorter: twice the size suffices.
    let mut buffer = vec![0; 2 * bytes.len() + 64];
    let mut writer = FrameWriter::new(&mut buffer, prelude).expect("room for a prelude");
    for frame in &read {
        writer.frame(frame).expect("what was read can be written");
    }
    let length = writer.len();
    let (again, rest) = Frames::read(&buffer[..length]).expect("what was written can be read");
    assert_eq!(again, prelude);
    let rest: Vec<Frame> = rest.map(|f| f.expect("what was written can be read")).collect();
    assert_eq!(rest, read);
}
