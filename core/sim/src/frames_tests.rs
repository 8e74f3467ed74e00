//! Frames that arrive in time, late, in part or not at all.

use super::*;

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}
/// Writes a layer of a frame at 25 frames per second, which is shown after 100 ms.
fn write(meter: &mut FrameMeter, frame: u64, layer: u8, bytes: u32) {
    let written = at(frame * 40);
    let playout = at(frame * 40 + 100);
    meter.written(written, &FramePart { frame, layer, bytes, playout, expires: Time::NEVER });
}
fn meter() -> FrameMeter {
    FrameMeter::new(Duration::from_millis(40), 3, Time::ZERO)
}

#[test]
fn late_or_missing_frames_freeze_long_freezes_stall() {
    let mut m = meter();
    for frame in 0..50 {
        write(&mut m, frame, 0, 1000);
        match frame {
            // Late, then one that is never complete: together shorter than a stall.
            10 => m.arrived(at(frame * 40 + 130), (frame, 0), 1000),
            11 => m.arrived(at(frame * 40 + 30), (frame, 0), 999),
            // 280 ms without a frame.
            20..=25 => {}
            _ => {
                m.arrived(at(frame * 40 + 20), (frame, 0), 400);
                m.arrived(at(frame * 40 + 50), (frame, 0), 600);
            }
        }
    }
    let r = m.result(at(50 * 40 + 100));
    assert_eq!((r.due, r.late, r.frozen, r.stalls, r.switches), (50, 1, 8, 1, 0));
    assert_eq!((r.layers, r.delay.count()), (42, 43));
    assert!((r.delay.quantile(0.5).unwrap() as f64 / 50e6 - 1.0).abs() < 0.01);
    assert!((r.span_s - 2.0).abs() < 1e-9);
}

#[test]
fn layers_count_without_a_gap_and_switches_are_the_senders() {
    let mut m = meter();
    for frame in 0..30 {
        for layer in 0..if frame < 20 { 3 } else { 1 } {
            write(&mut m, frame, layer, 100);
            let lost = frame == 5 && layer == 1;
            let late = frame == 6 && layer == 2;
            if !lost {
                m.arrived(at(frame * 40 + if late { 101 } else { 10 }), (frame, layer), 100);
            }
        }
    }
    let r = m.result(at(30 * 40 + 100));
    assert_eq!((r.due, r.frozen, r.switches), (30, 0, 1));
    assert_eq!(r.layers, 18 * 3 + 1 + 2 + 10, "without layer 1, layer 2 is of no use");
}

#[test]
fn streams_frame_is_whole_once_its_bytes_arrived() {
    let mut m = meter();
    for frame in 0..4 {
        write(&mut m, frame, 0, 1000);
        m.in_order(at(frame * 40 + 90), if frame == 2 { 2999 } else { (frame + 1) * 1000 });
    }
    let r = m.result(at(300));
    assert_eq!((r.due, r.late, r.frozen), (4, 1, 1), "the third came with the fourth");
}

#[test]
fn frames_before_the_interval_do_not_count() {
    let mut m = FrameMeter::new(Duration::from_millis(40), 1, at(1000));
    for frame in 0..100_000 {
        write(&mut m, frame, 0, 10);
        assert!(m.frames.len() < 1600);
    }
    let mut m = FrameMeter::new(Duration::from_millis(40), 1, at(1000));
    (0..50).for_each(|frame| write(&mut m, frame, 0, 10));
    let r = m.result(at(2000));
    assert_eq!((r.due, r.frozen, r.stalls), (25, 25, 1));
}
