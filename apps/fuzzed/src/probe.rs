//! Frames from the other end of a probe, and the resulting estimates: no panic, bounded memory, and decoded frames are
//! encoded and decoded again unchanged.

use narrows_base::{Duration, Time};
use narrows_probe::frames::{FrameReader, MAX_FRAME, MAX_PACKETS, ProbeFrame};
use narrows_probe::{MAX_BYTES, Probe, TrainArrival, TrainObservation};

/// Runs one input: as frames, and as the arrivals of each train of a probe.
pub fn run(bytes: &[u8]) {
    let mut reader = FrameReader::default();
    reader.push(bytes);
    while let Ok(Some(frame)) = reader.next_frame() {
        if let ProbeFrame::Report { arrivals, .. } = &frame {
            assert!(arrivals.len() <= MAX_PACKETS as usize);
        }
        let written = frame.bytes();
        assert!(written.len() <= MAX_FRAME + 5);
        let mut again = FrameReader::default();
        again.push(&written);
        // A reason may be longer after invalid UTF-8 was replaced; all else is equal.
        match (again.next_frame(), &frame) {
            (Ok(Some(ProbeFrame::Refused { .. })), ProbeFrame::Refused { .. }) => {}
            (other, _) => assert_eq!(other, Ok(Some(frame))),
        }
    }
    estimate(bytes);
}

/// A receiver with arbitrary reports.
fn estimate(bytes: &[u8]) {
    let mut lies = bytes.iter().copied().cycle();
    let mut lie = || u64::from(lies.next().unwrap_or(0));
    let fill = lie() % 2 == 0;
    let mut now = Time::ZERO;
    let mut probe = Probe::new(now, Duration::from_millis(lie()), fill);
    let mut sent_bytes = [0, 0];
    let mut steps = 0;
    while let Some(step) = probe.next(now) {
        steps += 1;
        assert!(steps < 10_000, "it never ends");
        assert!(step.train.packets <= MAX_PACKETS);
        let way = &mut sent_bytes[step.way as usize];
        assert!(*way + step.train.total_bytes() <= MAX_BYTES, "{step:?}");
        let gap = step.train.gap.as_nanos();
        // Limited, because long trains would slow down the fuzzing.
        let packets = step.train.packets.min(300);
        *way += u64::from(packets) * u64::from(step.train.bytes);
        let sent = (0..u64::from(packets)).map(|i| now.as_nanos() + i * gap).collect();
        let start = lie() << (lie() % 50);
        let spread = lie() << (lie() % 30);
        let arrivals: Vec<TrainArrival> = (0..lie() * 2)
            .map(|i| TrainArrival {
                index: (i * lie()) as u32,
                at_ns: start + spread * lie(),
                ecn: lie() as u8,
            })
            .collect();
        probe.on_train(&step, TrainObservation::new(sent, &arrivals));
        now += step.train.length() + Duration::from_millis(1 + lie());
    }
    if let Some(estimate) = probe.estimate() {
        let link = estimate.link();
        assert!(link.len() < 1000 && !link.contains("NaN") && !link.contains("inf"), "{link}");
    }
}
