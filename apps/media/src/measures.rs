//! A receiver's report at the end of a stream.

use crate::meter::PlayoutMeter;
use crate::receiver::MediaLayerReceiver;
use crate::shown::LayerStatistics;
use narrows_base::Duration;
use serde::Serialize;

/// Measures of a stream. Delays are in ms beyond the path's shortest delay, for the packets and frames that were
/// released.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measures {
    /// Seconds from the first media packet to the last.
    pub seconds: f64,
    /// The allowed latency in ms.
    pub latency_ms: f64,
    /// Datagrams released.
    pub datagrams: u64,
    /// Bytes released.
    pub bytes: u64,
    /// Mean rate of released datagrams in Mbit/s.
    pub mbit_per_s: f64,
    /// Packets that were due, including late ones.
    pub packets: u64,
    /// Packets that did not arrive in time.
    pub late_packets: u64,
    /// Late packets that arrived afterwards.
    pub came_afterwards: u64,
    /// Packets that were released after their time because all packets before them came equally late: the path stood
    /// still.
    pub delayed_packets: u64,
    /// Packets that were lost, requested, and received in time.
    pub repaired_packets: u64,
    /// Packets that were lost and restored from repair packets.
    pub restored_packets: u64,
    /// Median packet delay in ms.
    pub packet_delay_p50_ms: Option<f64>,
    /// 95th percentile of the packet delay in ms.
    pub packet_delay_p95_ms: Option<f64>,
    /// 99.9th percentile of the packet delay in ms.
    pub packet_delay_p999_ms: Option<f64>,
    /// Measures of the frames, in the same JSON object.
    #[serde(flatten)]
    pub picture: PictureMeasures,
    /// Mean number of layers present; 1 for a stream without layers.
    pub mean_layers: f64,
    /// Number of changes of the number of layers present.
    pub quality_switches: u64,
    /// Measures of each layer, the base layer first.
    pub layers: Vec<LayerMeasures>,
}

/// Measures of the frames.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PictureMeasures {
    /// Number of frames; of datagrams, unless the format is RTP or MPEG-TS.
    pub frames: u64,
    /// Frames with a part that did not arrive in time.
    pub late_frames: u64,
    /// Median delay in ms from a frame's first packet at the sender to the frame's completion.
    pub frame_delay_p50_ms: Option<f64>,
    /// 95th percentile of the frame delay in ms.
    pub frame_delay_p95_ms: Option<f64>,
    /// Number of stalls of the picture.
    pub stalls: u64,
    /// Number of stalls per minute of media.
    pub stalls_per_minute: f64,
    /// Total duration of stalls in seconds.
    pub frozen_s: f64,
}

/// Measures of one layer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LayerMeasures {
    /// Datagrams released.
    pub datagrams: u64,
    /// Mean rate of released datagrams in Mbit/s.
    pub mbit_per_s: f64,
    /// Packets that were due, including late ones.
    pub packets: u64,
    /// Packets that did not arrive in time.
    pub late_packets: u64,
}

fn ms(delay: Option<Duration>) -> Option<f64> {
    delay.map(|delay| (delay.as_secs_f64() * 1e6).round() / 1e3)
}

impl Measures {
    /// Measures of these layers after a time of `lasted`; delays and frames are the base layer's.
    pub fn of(layers: &LayerStatistics, latency: Duration, lasted: Duration) -> Measures {
        let received = layers.received();
        let empty = PlayoutMeter::default();
        let meter = layers.receivers().first().map_or(&empty, MediaLayerReceiver::meter);
        let counts = meter.counts();
        let seconds = lasted.as_secs_f64();
        let each_minute = |n: u64| if seconds > 0.0 { n as f64 * 60.0 / seconds } else { 0.0 };
        Measures {
            seconds,
            latency_ms: latency.as_nanos() as f64 / 1e6,
            datagrams: received.datagrams,
            bytes: received.bytes,
            mbit_per_s: each_minute(received.bytes) / 60.0 * 8e-6,
            packets: received.parts + received.missed,
            late_packets: received.missed,
            came_afterwards: received.came_late,
            delayed_packets: received.delayed,
            repaired_packets: received.repaired,
            restored_packets: received.restored,
            packet_delay_p50_ms: ms(meter.packet_delay(0.5)),
            packet_delay_p95_ms: ms(meter.packet_delay(0.95)),
            packet_delay_p999_ms: ms(meter.packet_delay(0.999)),
            picture: PictureMeasures {
                frames: counts.frames,
                late_frames: counts.late_frames,
                frame_delay_p50_ms: ms(meter.frame_delay(0.5)),
                frame_delay_p95_ms: ms(meter.frame_delay(0.95)),
                stalls: counts.stalls,
                stalls_per_minute: each_minute(counts.stalls),
                frozen_s: counts.frozen.as_secs_f64(),
            },
            mean_layers: layers.shown().mean(),
            quality_switches: layers.shown().switches,
            layers: (layers.receivers().iter().map(MediaLayerReceiver::received))
                .map(|one| LayerMeasures {
                    datagrams: one.datagrams,
                    mbit_per_s: each_minute(one.bytes) / 60.0 * 8e-6,
                    packets: one.parts + one.missed,
                    late_packets: one.missed,
                })
                .collect(),
        }
    }

    fn layers_text(&self) -> String {
        if self.layers.len() < 2 {
            return String::new();
        }
        let rates: Vec<_> = self.layers.iter().map(|l| format!("{:.2}", l.mbit_per_s)).collect();
        let late: Vec<_> = self.layers.iter().map(|l| l.late_packets.to_string()).collect();
        format!(
            "  layers: {:.2} of {} on average, {} quality switches; {} Mbit/s; {} late\n",
            self.mean_layers,
            self.layers.len(),
            self.quality_switches,
            rates.join(" + "),
            late.join(" + ")
        )
    }

    /// A summary of a few lines for display.
    pub fn text(&self) -> String {
        let share = |n: u64, of: u64| 100.0 * n as f64 / (of.max(1)) as f64;
        let ms = |ms: Option<f64>| ms.map_or("-".into(), |ms| format!("{ms:.1}"));
        format!(
            "  {:.1} s, {:.2} Mbit/s, {} datagrams\n  \
             packets: {} of {} late ({:.3}%), {} repaired in time, {} restored, {} delayed\n  \
             packet delay p50 {} ms, p95 {} ms, p99.9 {} ms, of {} allowed\n  \
             frames: {} of {} late ({:.3}%), delay p50 {} ms, p95 {} ms\n  \
             stalls: {} ({:.2} a minute), frozen {:.1} s\n{}",
            self.seconds,
            self.mbit_per_s,
            self.datagrams,
            self.late_packets,
            self.packets,
            share(self.late_packets, self.packets),
            self.repaired_packets,
            self.restored_packets,
            self.delayed_packets,
            ms(self.packet_delay_p50_ms),
            ms(self.packet_delay_p95_ms),
            ms(self.packet_delay_p999_ms),
            self.latency_ms,
            self.picture.late_frames,
            self.picture.frames,
            share(self.picture.late_frames, self.picture.frames),
            ms(self.picture.frame_delay_p50_ms),
            ms(self.picture.frame_delay_p95_ms),
            self.picture.stalls,
            self.picture.stalls_per_minute,
            self.picture.frozen_s,
            self.layers_text(),
        )
    }
}
