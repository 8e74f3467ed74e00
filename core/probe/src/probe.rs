//! The whole probe: both directions in turn, within their time and bytes.

use crate::budget::{Budget, MAX_BYTES, MAX_TIME};
use crate::buffer::{Buffer, StopAt};
use crate::direction::{DirectionProbe, Reordering};
use crate::ecn::Ecn;
use crate::loss::RandomLoss;
use crate::policer::PolicerFit;
use crate::statistics::ConfidenceInterval;
use crate::train::{Purpose, Train, TrainObservation};
use narrows_base::{Duration, Time};

/// A direction, seen from the prober.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProbeDirection {
    /// From the prober to the server.
    Up,
    /// From the server to the prober.
    Down,
}

/// The next action of the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProbeStep {
    /// Direction, which decides the sending end.
    pub way: ProbeDirection,
    /// The train to send.
    pub train: Train,
    /// When its receiver stops it.
    pub stop_at: StopAt,
}

/// Estimate of one direction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WayEstimate {
    /// Bits per second, with the headers of IP and UDP; without an upper end if no train was faster than the path.
    pub rate: ConfidenceInterval,
    /// Losses that no queue explains.
    pub loss: Option<RandomLoss>,
    /// Packets are up to this many seconds later than without jitter.
    pub jitter: Option<f64>,
    /// Packets that later ones overtook.
    pub reordering: Option<Reordering>,
    /// A token bucket, if one was detected.
    pub policer: Option<PolicerFit>,
    /// ECN fields of the packets at arrival.
    pub ecn: Ecn,
    /// With a train that fills it.
    pub buffer: Option<Buffer>,
    /// Packets that were sent.
    pub sent_packets: u64,
    /// Bytes that were sent, the headers of IP and UDP included.
    pub sent_bytes: u64,
}

/// Rate, delay, queue and loss of both directions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathEstimate {
    /// From the prober to the server.
    pub up: WayEstimate,
    /// From the server to the prober.
    pub down: WayEstimate,
    /// Round trip of a packet without length, with empty queues, in seconds.
    pub base_rtt: ConfidenceInterval,
}

/// The phases in their order.
const PHASES: [(Purpose, ProbeDirection); 14] = [
    (Purpose::Rate, ProbeDirection::Up),
    (Purpose::Rate, ProbeDirection::Down),
    (Purpose::Idle, ProbeDirection::Up),
    (Purpose::Idle, ProbeDirection::Down),
    (Purpose::Steady, ProbeDirection::Up),
    (Purpose::Below, ProbeDirection::Up),
    (Purpose::Steady, ProbeDirection::Down),
    (Purpose::Below, ProbeDirection::Down),
    (Purpose::Fill, ProbeDirection::Up),
    (Purpose::Fill, ProbeDirection::Down),
    // A second look, with more time for the direction in which the loss rate is less certain.
    (Purpose::Steady, ProbeDirection::Up),
    (Purpose::Below, ProbeDirection::Up),
    (Purpose::Steady, ProbeDirection::Down),
    (Purpose::Below, ProbeDirection::Down),
];

/// Index of the first phase of the second looks at losses.
const SECOND_LOOKS: usize = 10;

/// Seconds of the phases with a fixed length, without their round trips.
const RATE: f64 = 0.9;
const RATE_ROUND_TRIPS: f64 = 1.6;
const IDLE: f64 = 0.6;
/// The search for the rate takes at most one byte in this many.
const RATE_SHARE: u64 = 3;
/// Filling takes at most this share of the time left, if it is wanted; the steady load has the rest.
const FILL: f64 = 0.45;
/// Each first look at losses takes this share of the steady load's time; the second looks share the time left at the
/// end.
const FIRST_LOOK: f64 = 0.3;
/// Minimum round trips of a first look.
const LEAST_ROUND_TRIPS: f64 = 3.0;
/// A second look at one direction is left out if its share of the time is below this.
const LEAST_SHARE: f64 = 0.15;
/// Round trips of a handshake and of the last report.
const ENDS: f64 = 3.0;

/// Times by which the phases must be over, in seconds. Time that a phase does not use is left to later ones.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    rtt: f64,
    /// Of one direction, round trips included.
    rate: f64,
    idle: f64,
    /// First look at one direction.
    first_look: f64,
    fill_over: f64,
    total: f64,
}

impl Schedule {
    fn new(rtt: f64, fill: bool) -> Schedule {
        let total = (MAX_TIME.as_secs_f64() - ENDS * rtt).max(1.0);
        let rate = RATE + RATE_ROUND_TRIPS * rtt;
        let idle = IDLE + rtt;
        // On a path with a round trip of seconds, the phases are shortened in proportion.
        let scale = (0.7 * total / (2.0 * (rate + idle))).min(1.0);
        let rate = rate * scale;
        let idle = idle * scale;
        let rest = total - 2.0 * (rate + idle);
        let fill = if fill { FILL * rest } else { 0.0 };
        // If round trips would take most of the time, each direction has only one look.
        let looks = rest - fill;
        let two = FIRST_LOOK * looks > LEAST_ROUND_TRIPS * rtt;
        let first_look = if two { FIRST_LOOK * looks } else { 0.5 * looks };
        let fill_over = total - (looks - 2.0 * first_look);
        Schedule { rtt, rate, idle, first_look, fill_over, total }
    }

    /// Time by which a phase that begins now must be over. `unknown` is the uncertainty of the loss rate in each
    /// direction, see [`DirectionProbe::unknown`].
    fn end(&self, phase: usize, now: f64, unknown: [f64; 2]) -> f64 {
        let end = match PHASES.get(phase) {
            Some((Purpose::Open | Purpose::Rate, ProbeDirection::Up)) => self.rate,
            Some((Purpose::Open | Purpose::Rate, ProbeDirection::Down)) => 2.0 * self.rate,
            Some((Purpose::Idle, ProbeDirection::Up)) => 2.0 * self.rate + self.idle,
            Some((Purpose::Idle, ProbeDirection::Down)) => 2.0 * (self.rate + self.idle),
            Some((Purpose::Steady, _)) if phase < SECOND_LOOKS => now + self.first_look,
            Some((Purpose::Steady, ProbeDirection::Up)) => {
                let left = (self.total - now).max(f64::MIN_POSITIVE);
                now + left * second_look(self.first_look / left, unknown)
            }
            Some((Purpose::Steady, ProbeDirection::Down)) | None => self.total,
            // A look at a lower load takes its time from the later phases.
            Some((Purpose::Below, _)) => now + IDLE + self.rtt,
            Some((Purpose::Fill, ProbeDirection::Up)) => now + 0.5 * (self.fill_over - now),
            Some((Purpose::Fill, ProbeDirection::Down)) => self.fill_over,
        };
        end.min(self.total)
    }
}

/// The forward direction's share of the time of the second looks. Intervals shrink with the root of the time. Each
/// direction has already used `had` times the time that is left.
fn second_look(had: f64, unknown: [f64; 2]) -> f64 {
    let [up, down] = unknown.map(|u| u * u);
    match up / (up + down).max(f64::MIN_POSITIVE) * (1.0 + 2.0 * had) - had {
        share if share < LEAST_SHARE => 0.0,
        share if share > 1.0 - LEAST_SHARE => 1.0,
        share => share,
    }
}

/// A probe of a path. The caller sends the train that [`next`](Probe::next) returns, and passes its observation to
/// [`on_train`](Probe::on_train).
#[derive(Clone, Debug)]
pub struct Probe {
    began: Time,
    rtt: Duration,
    fill: bool,
    schedule: Schedule,
    phase: usize,
    /// When this phase must be over.
    end: Option<Time>,
    ways: [DirectionProbe; 2],
    sent: [Budget; 2],
}

impl Probe {
    /// `rtt` is about a round trip, from a handshake. With `fill` it makes queues overflow, once in each direction.
    pub fn new(now: Time, rtt: Duration, fill: bool) -> Probe {
        let schedule = Schedule::new(rtt.as_secs_f64(), fill);
        Probe {
            began: now,
            rtt,
            fill,
            schedule,
            phase: 0,
            end: None,
            ways: Default::default(),
            sent: Default::default(),
        }
    }

    /// The next train; `None` when the probe is over.
    pub fn next(&mut self, now: Time) -> Option<ProbeStep> {
        while let Some((purpose, way)) = PHASES.get(self.phase) {
            let end = *self.end.get_or_insert_with(|| {
                let unknown = self.ways.each_ref().map(DirectionProbe::unknown);
                let end =
                    self.schedule.end(self.phase, now.since(self.began).as_secs_f64(), unknown);
                self.began + Duration::from_secs_f64(end)
            });
            // The train's round trip is added to its duration.
            let left = end.since(now + self.rtt);
            let wanted = self.fill || *purpose != Purpose::Fill;
            if wanted {
                let budget = self.sent[*way as usize];
                // On a fast path the search for the rate would use all bytes and leave no budget for the measurement of
                // losses.
                let kept = match purpose {
                    Purpose::Open | Purpose::Rate => MAX_BYTES - MAX_BYTES / RATE_SHARE,
                    _ => 0,
                };
                let bytes = budget.left().saturating_sub(kept);
                let train = self.ways[*way as usize].next(*purpose, left, bytes);
                let fits = |t: &Train| budget.check(t.packets, t.bytes, t.gap).is_ok();
                if let Some(train) = train.filter(fits) {
                    // When time is up, only the indispensable trains are sent, and once.
                    if left == Duration::ZERO {
                        self.go_on();
                    }
                    let stop_at = self.ways[*way as usize].stop_at(&train);
                    return Some(ProbeStep { way: *way, train, stop_at });
                }
            }
            self.go_on();
        }
        None
    }

    fn go_on(&mut self) {
        self.phase += 1;
        self.end = None;
    }

    /// Adds a train's observation. A stopped train has fewer packets than planned.
    pub fn on_train(&mut self, step: &ProbeStep, observed: TrainObservation) {
        self.sent[step.way as usize].count(observed.sent.len(), step.train.bytes);
        self.ways[step.way as usize].on_train(&step.train, observed);
        if matches!(step.train.purpose, Purpose::Steady | Purpose::Below) {
            self.go_on();
        }
    }

    /// Progress from 0 to 1, by time.
    pub fn progress(&self, now: Time) -> f64 {
        (now.since(self.began).as_secs_f64() / MAX_TIME.as_secs_f64()).min(1.0)
    }

    /// The estimate so far. `None` if too few packets arrived.
    pub fn estimate(&self) -> Option<PathEstimate> {
        let [up, down] = &self.ways;
        let way = |direction: &DirectionProbe, sent: &Budget| {
            Some(WayEstimate {
                rate: direction.rate()?,
                loss: direction.loss(),
                jitter: direction.idle().map(|i| i.jitter),
                reordering: direction.reordering(),
                policer: direction.policer(),
                ecn: direction.ecn(),
                buffer: direction.buffer(),
                sent_packets: sent.sent_packets(),
                sent_bytes: sent.sent_bytes(),
            })
        };
        let there = up.idle()?.base;
        let back = down.idle()?.base;
        let base_rtt = ConfidenceInterval {
            value: (there.value + back.value).max(0.0),
            low: (there.low + back.low).max(0.0),
            high: (there.high + back.high).max(0.0),
        };
        Some(PathEstimate {
            up: way(up, &self.sent[0])?,
            down: way(down, &self.sent[1])?,
            base_rtt,
        })
    }
}
