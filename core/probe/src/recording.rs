//! A path under light and under heavy load, recorded as a trace (after CellReplay, NSDI 2025): short trains that find the
//! path idle, then a load above its rate. Opportunities are the arrivals of 1500 bytes.

use crate::budget::{Budget, MAX_BYTES};
use crate::buffer::StopAt;
use crate::frames::MAX_PACKETS;
use crate::probe::{PathEstimate, ProbeDirection, ProbeStep};
use crate::rate::{FULL_BYTES, MAX_RATE, OPENING_PACKETS};
use crate::train::{Purpose, Train, TrainObservation};
use narrows_base::{Duration, Time};
use narrows_link::trace::OPPORTUNITY_BYTES;

/// Trains in each direction, at most, and seconds for them.
const TRAINS: usize = 20;
const LIGHT: f64 = 1.5;
/// Seconds of the heavy load in each direction.
const HEAVY: f64 = 4.0;
/// The heavy load, as a multiple of the rate that the probe found.
const LOAD: f64 = 1.5;
/// A packet that is later than the fastest by this has waited in a queue.
const WAITED_S: f64 = 0.002;

const PHASES: [(bool, ProbeDirection); 4] = [
    (false, ProbeDirection::Up),
    (false, ProbeDirection::Down),
    (true, ProbeDirection::Up),
    (true, ProbeDirection::Down),
];

/// Plans the trains of a recording, and keeps their observations. It is used as [`Probe`](crate::Probe).
#[derive(Clone, Debug)]
pub struct TraceRecording {
    began: Time,
    /// Rates in bits per second, there and back.
    rates: [f64; 2],
    phase: usize,
    phase_began: Option<Time>,
    light: [Vec<TrainObservation>; 2],
    heavy: [TrainObservation; 2],
    sent: [Budget; 2],
}

/// A recorded direction.
#[derive(Clone, PartialEq, Debug)]
pub struct RecordedWay {
    /// The trace, in the form that `trace=FILE` reads.
    pub text: String,
    /// Mean rate under load in bits per second, headers of IP and UDP included.
    pub rate: f64,
    /// Length in seconds.
    pub seconds: f64,
    /// Share of the load's packets that waited in a queue, from 0 to 1. Below some 0.9, the load did not fill the path.
    pub waited: f64,
    /// Number of trains.
    pub trains: usize,
}

impl TraceRecording {
    /// A recording of the path that a probe has estimated.
    pub fn new(now: Time, estimate: &PathEstimate) -> TraceRecording {
        let rates = [&estimate.up, &estimate.down].map(|way| way.rate.value.clamp(1.0, MAX_RATE));
        let (light, heavy, sent) = <_>::default();
        TraceRecording { began: now, rates, phase: 0, phase_began: None, light, heavy, sent }
    }

    /// The next train; `None` when the recording is over.
    pub fn next(&mut self, now: Time) -> Option<ProbeStep> {
        loop {
            let (is_heavy, way) = *PHASES.get(self.phase)?;
            let begun = *self.phase_began.get_or_insert(now);
            let train = if is_heavy { self.load(way) } else { self.train(way, now.since(begun)) };
            match train {
                Some(train) => return Some(ProbeStep { way, train, stop_at: StopAt::default() }),
                None => (self.phase, self.phase_began) = (self.phase + 1, None),
            }
        }
    }

    fn train(&self, way: ProbeDirection, passed: Duration) -> Option<Train> {
        let is_over = self.light[way as usize].len() >= TRAINS || passed.as_secs_f64() >= LIGHT;
        let purpose = Purpose::Open;
        let bytes = FULL_BYTES;
        let gap = Duration::ZERO;
        (!is_over).then_some(Train { purpose, packets: OPENING_PACKETS, bytes, gap, ce: 0 })
    }

    fn load(&self, way: ProbeDirection) -> Option<Train> {
        let bits = f64::from(FULL_BYTES) * 8.0;
        let per_s = LOAD * self.rates[way as usize] / bits;
        let max = (self.sent[way as usize].left() / u64::from(FULL_BYTES)).min(MAX_PACKETS.into());
        let packets = (HEAVY * per_s).clamp(2.0, max as f64) as u32;
        let gap = Duration::from_secs_f64(1.0 / per_s);
        let purpose = Purpose::Fill;
        let bytes = FULL_BYTES;
        let is_new = self.heavy[way as usize].sent.is_empty();
        let train = Train { purpose, packets, bytes, gap, ce: 0 };
        (is_new && self.sent[way as usize].check(packets, bytes, gap).is_ok()).then_some(train)
    }

    /// Adds a train's observation.
    pub fn on_train(&mut self, step: &ProbeStep, observed: TrainObservation) {
        let way = step.way as usize;
        self.sent[way].count(observed.sent.len(), step.train.bytes);
        if step.train.purpose == Purpose::Fill {
            self.heavy[way] = observed;
            self.phase += 1;
        } else {
            self.light[way].push(observed);
        }
    }

    /// Progress from 0 to 1, by time.
    pub fn progress(&self, now: Time) -> f64 {
        (now.since(self.began).as_secs_f64() / (2.0 * (LIGHT + HEAVY))).min(1.0)
    }

    /// Both directions, there and back. `None` if too few packets arrived.
    pub fn recorded(&self) -> Option<[RecordedWay; 2]> {
        Some([self.way(ProbeDirection::Up)?, self.way(ProbeDirection::Down)?])
    }

    fn way(&self, way: ProbeDirection) -> Option<RecordedWay> {
        let light = &self.light[way as usize];
        let heavy = &self.heavy[way as usize];
        let times = in_order(heavy);
        let bits = times.len().checked_sub(1)? as f64 * f64::from(FULL_BYTES) * 8.0;
        let millis = opportunities(&times);
        let period = *millis.last()?;
        let seconds = times.last()? - times.first()?;
        if period == 0 {
            return None;
        }
        let rate = bits / seconds;
        let delays: Vec<Vec<(usize, f64)>> = light.iter().map(TrainObservation::delays).collect();
        let all = || heavy.delays().into_iter().chain(delays.iter().flatten().copied());
        let fastest = all().map(|d| d.1).min_by(f64::total_cmp)?;
        let waited = heavy.delays().iter().filter(|d| d.1 > fastest + WAITED_S).count();
        // Of the packet itself: the link's delay is that of a packet without length.
        let own = f64::from(OPPORTUNITY_BYTES) * 8.0 / rate;
        let trains = light.iter().zip(&delays).filter(|(train, _)| train.count() > 1);
        let trains: Vec<Vec<u64>> = trains
            .filter_map(|(train, delays)| {
                let first = delays.iter().map(|d| d.1).min_by(f64::total_cmp)? - fastest + own;
                let ms = |s: f64| (s * 1e3).round() as u64;
                let later = opportunities(&in_order(train)).into_iter().map(|at| at + ms(first));
                Some([ms(first)].into_iter().chain(later).collect())
            })
            .collect();
        let mut text = format!(
            "# narrows probe --trace: {:.3} Mbit/s under load for {seconds:.1} s, {} trains\n",
            rate * 1e-6,
            trains.len()
        );
        for (i, train) in trains.iter().enumerate() {
            text += &format!("light {}", period * i as u64 / trains.len() as u64);
            train.iter().for_each(|ms| text += &format!(" {ms}"));
            text.push('\n');
        }
        millis.iter().for_each(|ms| text += &format!("{ms}\n"));
        let waited = waited as f64 / times.len() as f64;
        Some(RecordedWay { text, rate, seconds, waited, trains: trains.len() })
    }
}

/// Arrival times in seconds, from the first on.
fn in_order(observed: &TrainObservation) -> Vec<f64> {
    let mut times: Vec<f64> = observed.arrival_times().iter().map(|t| t.1).collect();
    times.sort_by(f64::total_cmp);
    times
}

/// The milliseconds at which 1500 bytes more had arrived after the first packet.
fn opportunities(times: &[f64]) -> Vec<u64> {
    let bytes = |i: usize| i as u64 * u64::from(FULL_BYTES) / u64::from(OPPORTUNITY_BYTES);
    let each = times.iter().enumerate().skip(1);
    each.flat_map(|(i, at)| (bytes(i - 1)..bytes(i)).map(move |_| (at * 1e3).round() as u64))
        .collect()
}

const _: () = assert!(MAX_BYTES > TRAINS as u64 * (OPENING_PACKETS * FULL_BYTES) as u64);
