//! Video frames at a constant frame rate; their size follows the rate that the transport allows.

use super::{FrameSource, LATENCY, Pattern, SourceEntry, TransportState, number};
use crate::endpoints::FramePart;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, RandomStream, Settings, SpecError, Status, Time};

pub(super) const ENTRY: SourceEntry =
    SourceEntry { check, ..SourceEntry::new(&DESCRIPTOR, Pattern::Frames(start)) };

const DESCRIPTOR: Descriptor = Descriptor {
    name: "video",
    summary: "frames at a steady pace, sized by the rate that the transport allows",
    source: "-",
    senses: "the transport's send rate at each frame",
    sets: "application data",
    params: &[
        number("fps", Unit::None, "frames per second", 0.1, 1000.0, 25.0, "film and PAL"),
        number(
            "min",
            Unit::BitsPerSecond,
            "the encoder's lowest rate",
            1.0,
            1e12,
            64e3,
            "a talking head",
        ),
        number("max", Unit::BitsPerSecond, "its highest rate", 1.0, 1e12, 4e6, "1080p streams"),
        number(
            "key",
            Unit::None,
            "frames per key frame; 0 is no key frames",
            0.0,
            1e6,
            0.0,
            "equal frames by default",
        ),
        number(
            "key-size",
            Unit::None,
            "size of a key frame over the others'",
            1.0,
            100.0,
            4.0,
            "rough",
        ),
        LATENCY,
    ],
    status: Status::Validated("frame sizes and mean rate, by test"),
};

fn check(s: &Settings) -> Result<(), SpecError> {
    let min = s.number("min");
    let max = s.number("max");
    if min > max {
        return Err(SpecError::new(format!(
            "video: min ({}) is above max ({})",
            Unit::BitsPerSecond.show(min),
            Unit::BitsPerSecond.show(max)
        )));
    }
    Ok(())
}

fn start(s: &Settings, _: RandomStream) -> Box<dyn FrameSource> {
    Box::new(Video {
        fps: s.number("fps"),
        bps: (s.number("min"), s.number("max")),
        key: s.number("key") as u64,
        key_size: s.number("key-size"),
        latency: Duration::from_secs_f64(s.number("latency")),
        frame: 0,
    })
}

#[derive(Debug)]
struct Video {
    fps: f64,
    /// The encoder's lowest and highest rate in bit/s.
    bps: (f64, f64),
    /// Frames per group, from one key frame to the next; 0 for no key frames.
    key: u64,
    /// Size of a key frame relative to the others.
    key_size: f64,
    latency: Duration,
    frame: u64,
}

impl FrameSource for Video {
    fn write(&mut self, now: Time, state: &TransportState, parts: &mut Vec<FramePart>) -> Time {
        // The mean over a group of frames equals the rate, however large the key frame is.
        let share = if self.key == 0 {
            1.0
        } else {
            let usual = self.key as f64 / (self.key as f64 - 1.0 + self.key_size);
            if self.frame.is_multiple_of(self.key) { usual * self.key_size } else { usual }
        };
        let bytes = state.allowed_bps.clamp(self.bps.0, self.bps.1) * share / self.fps / 8.0;
        parts.push(FramePart {
            frame: self.frame,
            layer: 0,
            bytes: bytes.max(1.0) as u32,
            playout: now + self.latency,
            // The flow's own `expiry` decides.
            expires: Time::NEVER,
        });
        self.frame += 1;
        now + Duration::from_secs_f64(1.0 / self.fps)
    }
    fn frame_interval(&self) -> Duration {
        Duration::from_secs_f64(1.0 / self.fps)
    }
    fn layers(&self) -> usize {
        1
    }
}
