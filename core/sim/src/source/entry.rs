//! The traits of sources, and the entries of their list.

use crate::endpoints::FramePart;
use narrows_base::descriptor::ParamKind;
use narrows_base::list::Listed;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, Param, RandomStream, Settings, SpecError, Time};

/// An application that writes into one connection.
///
/// 1,000 bytes each second:
///
/// ```
/// use narrows_base::{Duration, Time};
/// use narrows_sim::source::Source;
///
/// #[derive(Debug)]
/// struct Sensor;
///
/// impl Source for Sensor {
///     fn write(&mut self, now: Time, _allowed_bps: &dyn Fn() -> f64) -> (u64, Time) {
///         (1000, now + Duration::from_secs(1))
///     }
/// }
/// ```
pub trait Source: std::fmt::Debug + Send {
    /// Called at `now`: returns the bytes to send, and when to call again, later than `now` ([`Time::NEVER`] for
    /// never). `allowed_bps` returns the rate that the transport allows at present.
    fn write(&mut self, now: Time, allowed_bps: &dyn Fn() -> f64) -> (u64, Time);
}

/// State of the transport, as a source of frames gets it.
#[derive(Clone, Copy, Debug)]
pub struct TransportState {
    /// The rate in application bit/s that the transport allows at present.
    pub allowed_bps: f64,
    /// Bytes that were written and not sent yet.
    pub unsent_bytes: u64,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Duration,
    /// Application bytes of a full packet.
    pub payload_bytes: u32,
}

/// An application that writes frames of media. The arrival of each frame is measured.
pub trait FrameSource: std::fmt::Debug + Send {
    /// Called at `now`: adds the parts to write, and returns when to call again, later than `now`. The base layer's
    /// parts are written in the order of the frames, each frame once; a skipped frame has 0 bytes.
    fn write(&mut self, now: Time, state: &TransportState, parts: &mut Vec<FramePart>) -> Time;
    /// Time from one frame to the next.
    fn frame_interval(&self) -> Duration;
    /// Limit on the number of layers.
    fn layers(&self) -> usize;
    /// Passes its variables for time series to `put`, by name.
    fn watch(&self, _now: Time, _put: &mut dyn FnMut(&'static str, f64)) {}
}

/// Starts a source of frames for one flow, with its own random stream.
pub type StartFrames = fn(&Settings, RandomStream) -> Box<dyn FrameSource>;
/// Starts a source for one flow, with its own random stream.
pub type StartSource = fn(&Settings, RandomStream) -> Box<dyn Source>;
/// Lists transfers from a given time on, in order of start: start time and bytes.
pub type StartTransfers =
    fn(&Settings, Time, RandomStream) -> Box<dyn Iterator<Item = (Time, u64)>>;

/// How a source uses connections, and how it is started.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Pattern {
    /// Always has data to send: its first write is `u64::MAX`.
    Endless(StartSource),
    /// One file, passed to the transport in the first write.
    Transfer(StartSource),
    /// Writes from time to time, without end.
    Ongoing(StartSource),
    /// Writes frames of media, without end.
    Frames(StartFrames),
    /// Files, each over its own connection.
    Transfers(StartTransfers),
}

/// An entry of the list: a descriptor and a constructor.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SourceEntry {
    /// Name, parameters and source.
    pub descriptor: &'static Descriptor,
    /// How it uses connections.
    pub pattern: Pattern,
    /// The application rate in bit/s without any limit: infinite if it always has data, `None` if the rate is not
    /// constant.
    pub demand_bps: fn(&Settings) -> Option<f64>,
    /// Checks that the parameters fit together; each alone is already within its descriptor's
    /// range.
    pub check: fn(&Settings) -> Result<(), SpecError>,
}

impl SourceEntry {
    /// An entry without a constant rate, for which all parameters fit together.
    pub const fn new(descriptor: &'static Descriptor, pattern: Pattern) -> SourceEntry {
        SourceEntry { descriptor, pattern, demand_bps: |_| None, check: |_| Ok(()) }
    }
}

impl Listed for SourceEntry {
    fn name(&self) -> &'static str {
        self.descriptor.name
    }
}

pub(super) const fn number(
    name: &'static str,
    unit: Unit,
    help: &'static str,
    min: f64,
    max: f64,
    default: f64,
    origin: &'static str,
) -> Param {
    Param { name, help, kind: ParamKind::Number { unit, min, max, default }, origin }
}

pub(super) const LATENCY: Param = number(
    "latency",
    Unit::Seconds,
    "from when a frame is written (for layers, from the stream's start) to when it is shown",
    0.001,
    600.0,
    0.4,
    "ITU-T G.114's limit for talking",
);
