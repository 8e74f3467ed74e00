//! What a receiver says of a stream at its end.

use crate::meter::Meter;
use crate::receiver::Receiver;
use crate::shown::Layers;
use narrows_base::Duration;
use serde::Serialize;

/// Measures of a stream. Delays are in ms beyond the path's shortest time, of what came in time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measures {
    /// Seconds from the first media to the last.
    pub seconds: f64,
    /// The latency that was allowed, in ms.
    pub latency_ms: f64,
    /// Datagrams handed out.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Mean rate in Mbit/s of what was handed out.
    pub mbit_per_s: f64,
    /// Packets that were due: those that were there, and those that were not.
    pub packets: u64,
    /// Packets that were not there in time.
    pub late_packets: u64,
    /// ... of them those that came afterwards.
    pub came_afterwards: u64,
    /// Packets that were handed out after their time, since all before them came as late: the path stood still.
    pub delayed_packets: u64,
    /// Packets that were lost, asked for, and there in time.
    pub repaired_packets: u64,
    /// Packets that were lost and restored from packets of repair.
    pub restored_packets: u64,
    /// Half of the packets took at most so long.
    pub packet_delay_p50_ms: Option<f64>,
    /// 95 of 100 did.
    pub packet_delay_p95_ms: Option<f64>,
    /// 999 of 1000 did.
    pub packet_delay_p999_ms: Option<f64>,
    /// Frames (datagrams, if it is neither RTP nor MPEG-TS).
    pub frames: u64,
    /// Frames of which something was not there in time.
    pub late_frames: u64,
    /// From a frame's first packet at the sender until all of it was there, half of the frames.
    pub frame_delay_p50_ms: Option<f64>,
    /// 95 of 100.
    pub frame_delay_p95_ms: Option<f64>,
    /// How often the picture stood.
    pub stalls: u64,
    /// The same for each minute.
    pub stalls_per_minute: f64,
    /// How long it stood, in seconds.
    pub frozen_s: f64,
    /// Mean number of layers that were there; 1 for a stream without layers.
    pub mean_layers: f64,
    /// How often the number of layers changed that were there.
    pub quality_switches: u64,
    /// Of each layer, the base layer first.
    pub layers: Vec<LayerMeasures>,
}

/// Measures of one layer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LayerMeasures {
    /// Datagrams handed out.
    pub datagrams: u64,
    /// Mean rate in Mbit/s of what was handed out.
    pub mbit_per_s: f64,
    /// Packets that were due.
    pub packets: u64,
    /// Packets that were not there in time.
    pub late_packets: u64,
}

fn ms(delay: Option<Duration>) -> Option<f64> {
    delay.map(|delay| (delay.as_secs_f64() * 1e6).round() / 1e3)
}

impl Measures {
    /// Of what these layers have released within so long; delays and frames are the base layer's.
    pub fn of(layers: &Layers, latency: Duration, lasted: Duration) -> Measures {
        let received = layers.received();
        let empty = Meter::default();
        let meter = layers.receivers().first().map_or(&empty, Receiver::meter);
        let (counts, seconds) = (meter.counts(), lasted.as_secs_f64());
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
            frames: counts.frames,
            late_frames: counts.late_frames,
            frame_delay_p50_ms: ms(meter.frame_delay(0.5)),
            frame_delay_p95_ms: ms(meter.frame_delay(0.95)),
            stalls: counts.stalls,
            stalls_per_minute: each_minute(counts.stalls),
            frozen_s: counts.frozen.as_secs_f64(),
            mean_layers: layers.shown().mean(),
            quality_switches: layers.shown().switches,
            layers: (layers.receivers().iter().map(Receiver::received))
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

    /// For people: a few lines.
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
            self.late_frames,
            self.frames,
            share(self.late_frames, self.frames),
            ms(self.frame_delay_p50_ms),
            ms(self.frame_delay_p95_ms),
            self.stalls,
            self.stalls_per_minute,
            self.frozen_s,
            self.layers_text(),
        )
    }
}
