//! One direction of a path: chooses the next train of each phase, and combines the results of all trains.

use crate::buffer::{self, Buffer, StopAt};
use crate::ecn::Ecn;
use crate::frames::MAX_PACKETS;
use crate::idle::{self, IdleDelay};
use crate::loss::{self, RandomLoss};
use crate::policer::{self, PolicerFit};
use crate::rate::{FULL_BYTES, RateSearch};
use crate::statistics::{ConfidenceInterval, quantile};
use crate::train::{Purpose, Train, TrainObservation};
use narrows_base::Duration;

/// The steady load, as a share of the rate.
const LOAD: f64 = 0.85;
/// Packets of the load per second. More packets measure losses better, but a host cannot send many more on time.
const PACKETS_PER_SECOND: f64 = 12_000.0;
/// Packets that a busy host may send together behind a late timer. Longer waits are attributed to a queue.
const SLACK_PACKETS: f64 = 10.0;
/// Bytes of the smallest packet of a load, the headers of IP and UDP and the seal included.
const SMALLEST: f64 = 80.0;
/// A load of fewer packets is not worth its round trip.
const FEWEST: u32 = 20;
/// Largest share of the byte budget for the first look.
const FIRST_SHARE: f64 = 0.4;
/// Required precision of the loss rate: relative, and its absolute minimum; the third value is for a direction without
/// observed losses.
const NEAR: (f64, f64, f64) = (0.2, 0.0003, 0.001);

/// Reordering: share and lateness of late packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reordering {
    /// The share of packets.
    pub share: f64,
    /// Lateness in seconds.
    pub by: f64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct DirectionProbe {
    rate: RateSearch,
    rate_done: bool,
    idle: Option<IdleDelay>,
    /// Steady loads in order: the first look, then a lower load if the first loses packets, and the second look.
    loads: Vec<(Train, TrainObservation)>,
    fill: Option<(Train, TrainObservation)>,
    ecn: Ecn,
}

impl DirectionProbe {
    /// The next train of a phase. `left` is the time for it, without its round trip.
    pub fn next(&mut self, phase: Purpose, left: Duration, bytes: u64) -> Option<Train> {
        let train = match phase {
            Purpose::Open | Purpose::Rate if self.rate_done => None,
            Purpose::Open | Purpose::Rate => self.rate.next(),
            Purpose::Idle if self.idle.is_some() => None,
            Purpose::Idle => Some(idle::train(self.bps()?, left)),
            Purpose::Steady => self.steady_train(left, bytes),
            Purpose::Below => {
                let (train, observed) = self.loads.last()?;
                policer::below(train, observed, &self.loss()?, left)
            }
            Purpose::Fill if self.fill.is_some() || self.policer().is_some() => None,
            Purpose::Fill => buffer::train(self.bps()?, left, bytes),
        }?;
        let fits = train.length() <= left && train.total_bytes() <= bytes;
        // These two are sent even if they exceed time or bytes: without them there is no estimate.
        let needed = matches!(train.purpose, Purpose::Open | Purpose::Idle);
        (fits || needed).then_some(train)
    }

    /// When the receiver of a train stops it.
    pub fn stop_at(&self, train: &Train) -> StopAt {
        match (train.purpose, self.loss()) {
            (Purpose::Fill, Some(loss)) => {
                StopAt { runs: buffer::stop_at(&loss), marks: self.ecn.stop_at() }
            }
            _ => StopAt::default(),
        }
    }
    pub fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn steady_train(&self, left: Duration, bytes: u64) -> Option<Train> {
        let carried = self.policer().map_or(f64::INFINITY, |p| p.rate.low);
        let load = LOAD * self.bps()?.min(carried);
        let size = (load / 8.0 / PACKETS_PER_SECOND).clamp(SMALLEST, f64::from(FULL_BYTES));
        let gap = size * 8.0 / load;
        let packets = (left.as_secs_f64() / gap).min(f64::from(MAX_PACKETS));
        // The first look also searches for policers, so it keeps its load and leaves bytes to the later phases. The
        // second look only counts losses, for which shorter packets serve as well.
        let (packets, size) = if self.loads.is_empty() {
            (packets.min(FIRST_SHARE * bytes as f64 / size), size)
        } else {
            let size = size.min(bytes as f64 / packets).max(SMALLEST);
            (packets.min(bytes as f64 / size), size)
        };
        let packets = packets as u32;
        let bytes = size as u32;
        let gap = Duration::from_secs_f64(gap);
        let train = Train { purpose: Purpose::Steady, packets, bytes, gap, ce: 0 };
        (packets >= FEWEST).then_some(train)
    }

    /// Adds the observation of a train.
    pub fn on_train(&mut self, train: &Train, observed: TrainObservation) {
        self.ecn.add(train, &observed);
        match train.purpose {
            Purpose::Open | Purpose::Rate => self.rate.on_train(train, &observed),
            Purpose::Idle => self.idle = self.bps().and_then(|bps| idle::read(&observed, bps)),
            Purpose::Steady | Purpose::Below => self.loads.push((*train, observed)),
            Purpose::Fill => {
                self.rate.on_fill(train, &observed);
                self.fill = Some((*train, observed));
            }
        }
        self.rate_done |= !matches!(train.purpose, Purpose::Open | Purpose::Rate);
    }

    fn bps(&self) -> Option<f64> {
        self.rate.interval().map(|i| i.value.max(1.0))
    }
    /// Rate in bits per second.
    pub fn rate(&self) -> Option<ConfidenceInterval> {
        self.rate.interval()
    }
    pub fn idle(&self) -> Option<IdleDelay> {
        self.idle
    }
    /// Waiting that jitter and hosts explain, seconds.
    fn no_queue(&self) -> f64 {
        let jitter = self.idle.map_or(0.0, |i| i.jitter);
        let bps = self.bps().unwrap_or(1.0);
        1.2 * jitter + 0.001 + SLACK_PACKETS * f64::from(FULL_BYTES) * 8.0 / bps
    }
    fn count<'a>(&self, loads: impl Iterator<Item = &'a TrainObservation>) -> RandomLoss {
        loss::count(loads, self.no_queue())
    }
    /// Losses of all loads below the policer's rate, if there is a policer.
    pub fn loss(&self) -> Option<RandomLoss> {
        self.loads.first()?;
        let max = self.policer().map_or(f64::INFINITY, |p| p.rate.low);
        let below = self.loads.iter().filter(|(train, observed)| observed.load(train) <= max);
        Some(self.count(below.map(|l| &l.1)))
    }
    /// Width of the loss rate's interval relative to the required one: above 1, more packets are needed.
    pub fn unknown(&self) -> f64 {
        self.loss().map_or(1.0, |loss| {
            let half = 0.5 * (loss.share.high - loss.share.low);
            half / if loss.lost > 0 { (NEAR.0 * loss.share.value).max(NEAR.1) } else { NEAR.2 }
        })
    }
    /// The policer, from a pair of loads of which the lower one lost less.
    pub fn policer(&self) -> Option<PolicerFit> {
        self.loads.windows(2).find_map(|pair| {
            let [(train, above), (after, below)] = pair else { return None };
            if after.purpose != Purpose::Below {
                return None;
            }
            let count = |observed| self.count(std::iter::once(observed));
            policer::read(train, above, &count(above), &count(below))
        })
    }
    pub fn reordering(&self) -> Option<Reordering> {
        let loads = || self.loads.iter().map(|l| &l.1);
        let (late, n) = loads().fold((0, 0), |(late, n), o| (late + o.late, n + o.count()));
        if late < 3 {
            return None;
        }
        // Lateness of the late packets relative to the usual delay.
        let delays: Vec<f64> = loads().flat_map(|o| o.delays()).map(|d| d.1).collect();
        let usual = quantile(&delays, 0.5);
        let share = f64::from(late) / n.max(1) as f64;
        let by = quantile(&delays, 1.0 - 0.5 * share) - usual;
        Some(Reordering { share, by: by.max(0.0) })
    }
    pub fn buffer(&self) -> Option<Buffer> {
        let (_, fill) = self.fill.as_ref()?;
        let (train, steady) = self.loads.last()?;
        let bps = self.bps()?;
        let loss = self.loss()?;
        let delays: Vec<f64> = steady.delays().iter().map(|d| d.1).collect();
        let empty = quantile(&delays, 0.5) - f64::from(train.bytes) * 8.0 / bps;
        buffer::read(fill, bps, empty, &loss, self.ecn.queue_marks())
    }
}
