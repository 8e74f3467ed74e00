//! Two paths with queues of a model: the detector's decisions.

use super::*;
use narrows_base::RandomKey;

const BASE_MS: u64 = 40;

/// Queueing delay that varies by up to 10 ms, by time in milliseconds: other for each seed.
fn queue(seed: u64, ms: u64) -> f64 {
    let level = |step: u64| {
        let mut stream = RandomKey::from_seed(seed).named("queue").stream();
        (0..=step % 997).map(|_| stream.unit()).last().unwrap_or(0.0)
    };
    let step = ms / BASE_MS;
    let part = (ms % BASE_MS) as f64 / BASE_MS as f64;
    0.01 * (level(step) * (1.0 - part) + level(step + 1) * part)
}

struct Model {
    detector: SharedBottleneck,
    paths: Vec<PathState>,
    ms: u64,
}

impl Model {
    /// Paths of 1 MB/s with these base RTTs.
    fn new(rtts_ms: [u64; 2]) -> Model {
        let path = |ms| PathState {
            min_rtt: Duration::from_millis(ms),
            rate: 1e6,
            ..PathState::default()
        };
        Model {
            detector: SharedBottleneck::default(),
            paths: rtts_ms.iter().map(|ms| path(*ms)).collect(),
            ms: 0,
        }
    }
    fn now(&self) -> Time {
        Time::ZERO + Duration::from_millis(self.ms)
    }
    fn is_limited(&self, index: usize) -> bool {
        self.detector.departure(index, &self.paths) > Time::ZERO
    }
    /// Runs for this time or until `ends`; a path sends a packet per millisecond if it may. `delay` is a path's queueing
    /// delay in seconds at a time in milliseconds, if its rate is limited or not.
    fn run(
        &mut self,
        ms: u64,
        delay: impl Fn(usize, u64, bool) -> f64,
        ends: impl Fn(&SharedBottleneck) -> bool,
    ) -> Option<u64> {
        for passed in 0..ms {
            self.ms += 1;
            let now = self.now();
            for index in 0..2 {
                if self.detector.departure(index, &self.paths) > now {
                    continue;
                }
                self.detector.on_sent(now, index, 1000);
                let delay = delay(index, self.ms, self.is_limited(index));
                let delay = Duration::from_secs_f64(0.02 + delay);
                self.detector.on_delay(now, index, delay, &self.paths);
            }
            if ends(&self.detector) {
                return Some(passed);
            }
        }
        None
    }
}

fn is_led(detector: &SharedBottleneck) -> bool {
    detector.leader(1).is_some()
}

#[test]
fn shared_queue_is_confirmed_within_50_round_trips() {
    let mut model = Model::new([BASE_MS; 2]);
    let after = model.run(60_000, |_, ms, _| queue(1, ms), is_led);
    assert!(after.is_some_and(|ms| ms < 50 * BASE_MS), "{after:?}");
    assert_eq!(model.detector.leader(1), Some(0));
    let sent = std::cell::Cell::new(0);
    let count = |index: usize, ms: u64, _| {
        sent.set(sent.get() + index);
        queue(1, ms)
    };
    model.run(10_000, count, |_| false);
    assert!((100..=300).contains(&sent.get()), "{} of 10,000 packets", sent.get());
}

#[test]
fn shared_queue_behind_different_delays_is_confirmed() {
    for longer in [0, 1] {
        let mut rtts = [BASE_MS; 2];
        rtts[longer] = 3 * BASE_MS;
        let mut model = Model::new(rtts);
        let later = |index: usize| if index == longer { BASE_MS } else { 0 };
        let delay = |index: usize, ms: u64, _| queue(1, 10_000 + ms - later(index));
        let found = model.run(60_000, delay, |d| d.leader(longer).is_some());
        assert!(found.is_some(), "longer path {longer}");
    }
}

#[test]
fn separate_queues_are_never_confirmed() {
    for seed in 1..20 {
        let mut model = Model::new([BASE_MS; 2]);
        let delay = |index: usize, ms: u64, _| queue(2 * seed + index as u64, ms);
        assert_eq!(model.run(60_000, delay, is_led), None, "seed {seed}");
    }
}

/// Equal controllers probe separate queues at the same times. Trials are rare, since each costs throughput.
#[test]
fn separate_queues_in_step_are_refuted_by_trials() {
    let mut model = Model::new([BASE_MS; 2]);
    let limited = std::cell::Cell::new(0);
    let delay = |index: usize, ms: u64, is_limited: bool| {
        limited.set(limited.get() + u64::from(is_limited));
        if index == 1 && is_limited { 0.0 } else { queue(1, ms) }
    };
    assert_eq!(model.run(100_000, delay, is_led), None);
    let packets = limited.get();
    assert!((1..2_000).contains(&packets), "{packets} of 100,000 in trials");
}

#[test]
fn steady_delays_begin_no_trial() {
    let mut model = Model::new([BASE_MS; 2]);
    assert_eq!(model.run(20_000, |_, ms, _| 0.04 * queue(1, ms), |_| false), None);
    assert_eq!(model.detector.next_trial, Time::ZERO);
    assert!(model.detector.paths.iter().all(|path| path.reduced.is_none()));
}

#[test]
fn led_path_is_released_when_delays_differ() {
    let mut model = Model::new([BASE_MS; 2]);
    model.run(60_000, |_, ms, _| queue(1, ms), is_led);
    let apart = |index: usize, ms: u64, _| queue(1 + index as u64, ms);
    assert!(model.run(60_000, apart, |d| !is_led(d)).is_some());
    assert!(!model.is_limited(1));
}

#[test]
fn led_path_without_usable_leader_is_not_limited() {
    let mut model = Model::new([BASE_MS; 2]);
    model.run(60_000, |_, ms, _| queue(1, ms), is_led);
    assert!(model.is_limited(1));
    model.paths[0].status = PathStatus::Unusable;
    assert!(!model.is_limited(1));
    model.run(1_000, |_, ms, _| queue(1, ms), |_| false);
    assert_eq!(model.detector.leader(1), None);
}

#[test]
fn path_of_less_than_half_the_rate_is_no_leader() {
    let mut model = Model::new([BASE_MS, 2 * BASE_MS]);
    model.paths[0].rate = 4e5;
    model.run(60_000, |_, ms, _| queue(1, ms), |d| d.leader(0).is_some());
    assert_eq!(model.detector.leader(0), Some(1));
}

proptest::proptest! {
    #[test]
    fn detector_accepts_any_delays_times_and_states(
        reports in proptest::collection::vec((0u64..u64::MAX / 2, 0usize..4, 0u64..u64::MAX, 0u64..1 << 40), 1..200),
        rate in proptest::num::f64::ANY,
    ) {
        let mut detector = SharedBottleneck::default();
        let mut now = 0;
        for (later, index, delay, rtt) in reports {
            now = (now + later % 10_000_000_000).min(u64::MAX / 2);
            let at = Time::from_nanos(now);
            let state = PathState { min_rtt: Duration::from_nanos(rtt), rate, ..PathState::default() };
            let paths = [state; 3];
            detector.on_delay(at, index, Duration::from_nanos(delay), &paths);
            detector.on_sent(at, index, 1500);
            detector.departure(index, &paths);
        }
    }
}
