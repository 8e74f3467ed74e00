//! Measures of media quality: delays of packets and frames, late frames, stalls.

use crate::histogram::DelayHistogram;
use narrows_base::{Duration, Time};

/// Maximum number of completely lost frames between two received ones; a larger gap is another stream.
const MAX_LOST_FRAMES: u32 = 1000;
/// A stall is longer than three frame intervals, and than one interval plus this time (as `freezeCount` of W3C's
/// webrtc-stats).
const STALL: Duration = Duration::from_millis(150);

/// Measures the released parts.
#[derive(Debug, Default)]
pub struct PlayoutMeter {
    packets: DelayHistogram,
    frames: DelayHistogram,
    current: Option<MeteredFrame>,
    counts: FrameCounts,
    /// Stamp of the last complete frame; below, whether an incomplete one has followed.
    last_whole: Option<Time>,
    broken_since: bool,
    /// Mean interval of complete frames.
    interval: Option<Duration>,
    /// The longest delay of complete frames since the last call of [`PlayoutMeter::take_longest_frame`].
    longest: Option<Duration>,
}

/// Counters of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FrameCounts {
    /// Frames that have ended.
    pub frames: u64,
    /// Ended frames with a part that did not arrive in time.
    pub late_frames: u64,
    /// Number of stalls.
    pub stalls: u64,
    /// Total duration of stalls.
    pub frozen: Duration,
}

#[derive(Debug)]
struct MeteredFrame {
    number: u32,
    stamp: Time,
    is_whole: bool,
    /// From the frame's first stamp to its completion, beyond the path's shortest delay.
    took: Duration,
}

/// A datagram's part as the program receives it.
#[derive(Clone, Copy, Debug)]
pub struct ReleasedPart {
    /// Whether parts before it are missing.
    pub is_behind_gap: bool,
    /// Number of its frame; 0 before the first frame begins.
    pub frame: u32,
    /// Whether that frame begins in its datagram.
    pub begins_frame: bool,
    /// Time at which the program sent it.
    pub stamp: Time,
    /// Its delay beyond the path's shortest delay.
    pub took: Duration,
}

impl PlayoutMeter {
    /// Handles a released part.
    pub fn on_part(&mut self, part: &ReleasedPart) {
        self.packets.add(part.took);
        if let Some(current) = self.current.as_mut().filter(|_| part.is_behind_gap) {
            current.is_whole = false;
        }
        let ahead = self.current.as_ref().map(|c| part.frame.wrapping_sub(c.number));
        if ahead != Some(0) {
            self.end_frame();
            let lost = ahead.map_or(0, |ahead| ahead - 1);
            if (1..MAX_LOST_FRAMES).contains(&lost) {
                self.counts.frames += u64::from(lost);
                self.counts.late_frames += u64::from(lost);
                self.broken_since = true;
            }
            // Frame 0 stands for the parts before the first frame begins.
            let is_frame = part.frame != 0 && (part.begins_frame || part.is_behind_gap);
            self.current = Some(MeteredFrame {
                number: part.frame,
                stamp: part.stamp,
                is_whole: is_frame && part.begins_frame,
                took: part.took,
            });
        }
        if let Some(current) = &mut self.current {
            current.took = current.took.max(part.stamp.since(current.stamp) + part.took);
        }
    }

    fn end_frame(&mut self) {
        let Some(frame) = self.current.take().filter(|frame| frame.number != 0) else { return };
        self.counts.frames += 1;
        if !frame.is_whole {
            self.counts.late_frames += 1;
            self.broken_since = true;
            return;
        }
        self.frames.add(frame.took);
        self.longest = self.longest.max(Some(frame.took));
        let since = self.last_whole.replace(frame.stamp).map(|last| frame.stamp.since(last));
        let was_broken = std::mem::take(&mut self.broken_since);
        match (since, self.interval) {
            (Some(since), Some(interval)) if was_broken => {
                let is_stall = since > interval.saturating_mul(3).max(interval + STALL);
                self.counts.stalls += u64::from(is_stall);
                self.counts.frozen += if is_stall { since } else { Duration::ZERO };
            }
            (Some(since), mean) if !was_broken => {
                let mean = mean.map_or(since, |m| m.mul_f64(0.95) + since.mul_f64(0.05));
                self.interval = Some(mean);
            }
            _ => {}
        }
    }

    /// Counters of frames.
    pub fn counts(&self) -> FrameCounts {
        self.counts
    }
    /// A percentile of the delay of released packets; `share` is from 0 to 1.
    pub fn packet_delay(&self, share: f64) -> Option<Duration> {
        self.packets.percentile(share)
    }
    /// A percentile of the delay of complete frames; `share` is from 0 to 1.
    pub fn frame_delay(&self, share: f64) -> Option<Duration> {
        self.frames.percentile(share)
    }
    /// The longest delay of frames that were completed since the last call.
    pub fn take_longest_frame(&mut self) -> Option<Duration> {
        self.longest.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }
    /// Frames of three packets, 40 ms apart; `lost` selects the packets that are missing.
    fn metered(frames: u32, lost: impl Fn(u32, u32) -> bool) -> PlayoutMeter {
        let mut meter = PlayoutMeter::default();
        let mut is_behind_gap = false;
        for frame in 1..=frames {
            for packet in 0..3 {
                if lost(frame, packet) {
                    is_behind_gap = true;
                    continue;
                }
                let stamp = Time::ZERO + ms(40 * u64::from(frame) + 5 * u64::from(packet));
                let begins_frame = packet == 0;
                let took = ms(7);
                meter.on_part(&ReleasedPart { is_behind_gap, frame, begins_frame, stamp, took });
                is_behind_gap = false;
            }
        }
        meter
    }

    #[test]
    fn frame_time_runs_from_first_stamp_to_last_arrival() {
        let meter = metered(101, |_, _| false);
        assert_eq!(meter.counts(), FrameCounts { frames: 100, ..FrameCounts::default() });
        let near = |found: Option<Duration>, expected: f64| {
            (found.unwrap().as_secs_f64() * 1e3 / expected - 1.0).abs() < 0.03
        };
        assert!(near(meter.frame_delay(0.5), 17.0) && near(meter.packet_delay(0.95), 7.0));
    }

    #[test]
    fn frame_with_missing_packet_is_late_many_are_a_stall() {
        // The middle of one frame, the end of another, and the beginning of a third.
        let meter =
            metered(101, |frame, packet| matches!((frame, packet), (10, 1) | (20, 2) | (30, 0)));
        let counts = meter.counts();
        // If a beginning is lost, the end of the frame before it cannot be checked.
        assert_eq!((counts.frames, counts.late_frames, counts.stalls), (100, 4, 0));
        let counts = metered(101, |frame, _| (50..58).contains(&frame)).counts();
        assert_eq!((counts.frames, counts.late_frames, counts.stalls), (100, 9, 1));
        assert_eq!(counts.frozen, ms(400));
    }

    #[test]
    fn numbers_without_sense_count_as_little() {
        let mut meter = PlayoutMeter::default();
        for n in 0..1000u32 {
            let frame = n.wrapping_mul(0x9e37_79b9);
            let stamp = Time::from_nanos(u64::from(frame) << 30);
            meter.on_part(&ReleasedPart {
                is_behind_gap: n % 2 == 0,
                frame,
                begins_frame: n % 3 == 0,
                stamp,
                took: Duration::MAX,
            });
        }
        assert!(meter.counts().frames < 2000);
    }
}
