//! One direction of a path: which train comes next in each phase, and what all of them together say.

use crate::buffer::{self, Buffer};
use crate::idle::{self, IdleDelay};
use crate::loss::{self, Loss};
use crate::policer::{self, Policer};
use crate::rate::{FULL_BYTES, RateSearch};
use crate::statistics::{Interval, quantile};
use crate::train::{Observed, Purpose, Train};
use narrows_base::Duration;

/// The steady load, as a share of the rate.
const LOAD: f64 = 0.85;
/// Packets of the steady load: so many that a loss of one percent is known to a fifth.
const PACKETS: f64 = 10_000.0;
/// Packets that a busy host may send together behind a late timer; what waited longer had met a queue.
const SLACK_PACKETS: f64 = 10.0;
/// Bytes of the smallest packet of a load.
const SMALLEST: u32 = 200;

/// Reordering: how often a packet comes late, and by how much.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reordering {
    /// The share of packets.
    pub share: f64,
    /// Seconds.
    pub by: f64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Direction {
    rate: RateSearch,
    rate_done: bool,
    idle: Option<IdleDelay>,
    steady: Option<(Train, Observed)>,
    below: Option<(Train, Observed)>,
    fill: Option<(Train, Observed)>,
}

impl Direction {
    /// The next train of a phase; `left` is the time that it may take without its round trip.
    pub fn next(&mut self, phase: Purpose, left: Duration, bytes: u64) -> Option<Train> {
        let train = match phase {
            Purpose::Open | Purpose::Rate if self.rate_done => None,
            Purpose::Open | Purpose::Rate => self.rate.next(),
            Purpose::Idle if self.idle.is_some() => None,
            Purpose::Idle => Some(idle::train(self.bps()?, left)),
            Purpose::Steady if self.steady.is_some() => None,
            Purpose::Steady => self.steady_train(left, bytes),
            Purpose::Below if self.below.is_some() => None,
            Purpose::Below => {
                let (train, observed) = self.steady.as_ref()?;
                policer::below(train, observed, &self.loss()?)
            }
            Purpose::Fill if self.fill.is_some() || self.policer().is_some() => None,
            Purpose::Fill => buffer::train(self.bps()?, left, bytes),
        }?;
        let fits = train.length() <= left && train.total_bytes() <= bytes;
        // Without these nothing is known at all.
        let needed = matches!(train.purpose, Purpose::Open | Purpose::Idle);
        (fits || needed).then_some(train)
    }

    /// The runs of lost packets among the last 48 at which a train stops; 0 for never.
    pub fn stop_at(&self, train: &Train) -> u8 {
        match (train.purpose, self.loss()) {
            (Purpose::Fill, Some(loss)) => buffer::stop_at(&loss),
            _ => 0,
        }
    }

    fn steady_train(&self, left: Duration, bytes: u64) -> Option<Train> {
        let load = LOAD * self.bps()?;
        let seconds = left.as_secs_f64();
        let size = (load * seconds / 8.0 / PACKETS) as u32;
        let size = size.clamp(SMALLEST, FULL_BYTES);
        let gap = f64::from(size) * 8.0 / load;
        let most = (bytes / u64::from(size)) as f64;
        let packets = (seconds / gap).min(PACKETS).min(most) as u32;
        let gap = Duration::from_secs_f64(gap);
        Some(Train { purpose: Purpose::Steady, packets, bytes: size, gap })
    }

    /// What became of a train.
    pub fn on_train(&mut self, train: &Train, observed: Observed) {
        match train.purpose {
            Purpose::Open | Purpose::Rate => self.rate.on_train(train, &observed),
            Purpose::Idle => self.idle = self.bps().and_then(|bps| idle::read(&observed, bps)),
            Purpose::Steady => self.steady = Some((*train, observed)),
            Purpose::Below => self.below = Some((*train, observed)),
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
    /// Bits per second.
    pub fn rate(&self) -> Option<Interval> {
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
    fn count(&self, load: &Option<(Train, Observed)>) -> Option<Loss> {
        load.as_ref().map(|(_, observed)| loss::count(observed, self.no_queue()))
    }
    /// Losses of the highest load that no policer cut.
    pub fn loss(&self) -> Option<Loss> {
        let steady = self.count(&self.steady);
        match self.policer() {
            Some(_) => self.count(&self.below),
            None => steady,
        }
    }
    pub fn policer(&self) -> Option<Policer> {
        let (train, observed) = self.steady.as_ref()?;
        let above = self.count(&self.steady)?;
        policer::read(train, observed, &above, &self.count(&self.below)?)
    }
    pub fn reordering(&self) -> Option<Reordering> {
        let (_, observed) = self.steady.as_ref()?;
        let (late, n) = (observed.late, observed.count());
        if late < 3 {
            return None;
        }
        // Of those that came late, how much later than the usual ones.
        let delays: Vec<f64> = observed.delays().iter().map(|d| d.1).collect();
        let usual = quantile(&delays, 0.5);
        let share = f64::from(late) / n.max(1) as f64;
        let by = quantile(&delays, 1.0 - 0.5 * share) - usual;
        Some(Reordering { share, by: by.max(0.0) })
    }
    pub fn buffer(&self) -> Option<Buffer> {
        let (_, fill) = self.fill.as_ref()?;
        let (train, steady) = self.steady.as_ref()?;
        let (bps, loss) = (self.bps()?, self.loss()?);
        let delays: Vec<f64> = steady.delays().iter().map(|d| d.1).collect();
        let empty = quantile(&delays, 0.5) - f64::from(train.bytes) * 8.0 / bps;
        buffer::read(fill, bps, empty, &loss)
    }
}
