//! A stream in layers for many receivers, sent without feedback.

use super::{FrameSource, Pattern, SourceEntry, TransportState, number};
use crate::endpoints::FramePart;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, RandomStream, Settings, Status, Time};
use narrows_congestion::layers::MAX_LAYERS;

pub(super) const ENTRY: SourceEntry = SourceEntry::new(&DESCRIPTOR, Pattern::Frames(start));

/// Name of the source: groups of flows with an equal specification are receivers of one sender.
pub(super) const NAME: &str = "multicast";

const DESCRIPTOR: Descriptor = Descriptor {
    name: NAME,
    summary: "a live stream in layers to many receivers without feedback; groups with the same one share its sender",
    source: "Jayaram 2001, sections 2.3, 3.1 and 3.2, chapter 8; McCanne, Jacobson and Vetterli 1996",
    senses: "no feedback: receivers join and leave layers by TEAR's rate",
    sets: "application data",
    params: &[
        number("session", Unit::None, "number of the session", 0.0, 1e6, 1.0, "ours"),
        number("count", Unit::None, "layers", 1.0, MAX_LAYERS as f64, 4.0, "ours"),
        number("rate", Unit::BitsPerSecond, "the base layer's rate", 1e3, 1e9, 200e3, "ours"),
        number(
            "growth",
            Unit::None,
            "each further layer's rate over that of the one below",
            0.1,
            10.0,
            2.0,
            "Vicisano, Rizzo and Crowcroft 1997, by Jayaram 2001, section 2.3",
        ),
        number("fps", Unit::None, "frames per second", 1.0, 1000.0, 25.0, "film and PAL"),
        number(
            "latency",
            Unit::Seconds,
            "from when a frame is written to when it is shown",
            0.001,
            600.0,
            1.0,
            "ours",
        ),
        number(
            "rtt",
            Unit::Seconds,
            "round trip that receivers assume while no queue has formed",
            0.001,
            60.0,
            0.1,
            "ours: no feedback could measure it",
        ),
    ],
    status: Status::Validated(
        "layers and shares of receivers, by test and experiment s4-multicast",
    ),
};

/// Parameters of a session that its receivers need.
#[derive(Clone, Debug)]
pub(crate) struct MulticastSession {
    /// Rates of the layers in bit/s.
    pub rates: Vec<f64>,
    /// The base RTT that receivers assume.
    pub rtt: Duration,
}

pub(super) fn session(s: &Settings) -> MulticastSession {
    let base = s.number("rate");
    let growth = s.number("growth");
    let next = |rate: &f64| Some((rate * growth).min(1e12));
    let count = s.number("count") as usize;
    let rates = std::iter::successors(Some(base), next).take(count).collect();
    MulticastSession { rates, rtt: Duration::from_secs_f64(s.number("rtt")) }
}

fn start(s: &Settings, _: RandomStream) -> Box<dyn FrameSource> {
    let fps = s.number("fps");
    let bytes = |rate: f64| (rate / fps / 8.0).ceil() as u32;
    Box::new(AllLayers {
        bytes: session(s).rates.into_iter().map(bytes).collect(),
        interval: Duration::from_secs_f64(1.0 / fps),
        latency: Duration::from_secs_f64(s.number("latency")),
        frame: 0,
    })
}

/// Every layer of every frame at its time.
#[derive(Debug)]
struct AllLayers {
    bytes: Vec<u32>,
    interval: Duration,
    latency: Duration,
    frame: u64,
}

impl FrameSource for AllLayers {
    fn write(&mut self, now: Time, _: &TransportState, parts: &mut Vec<FramePart>) -> Time {
        let playout = now + self.latency;
        parts.extend(self.bytes.iter().enumerate().map(|(layer, bytes)| FramePart {
            frame: self.frame,
            layer: layer as u8,
            bytes: *bytes,
            playout,
            expires: playout,
        }));
        self.frame += 1;
        now + self.interval
    }
    fn frame_interval(&self) -> Duration {
        self.interval
    }
    fn layers(&self) -> usize {
        self.bytes.len()
    }
}
