//! Brutal: the congestion control of Hysteria 2 (`core/internal/congestion/brutal`), which sends at a configured rate
//! and compensates for losses by sending more.
//!
//! Measures only the share of packets that arrive, over the last five seconds:
//!
//! ```text
//! pacing rate = configured rate / max(arrived share, 1 - compensation)
//! window      = 2 pacing rate srtt
//! ```
//!
//! **It is unfair**: flows that share the bottleneck get only the rest of the capacity. Use it only with a reserved
//! rate. Departures from Hysteria: losses are compensated up to a factor of 1 / (1 - 0.3), in Hysteria up to 1 / 0.8.
//! There is a circuit breaker (RFC 8085 section 3.1.10), which Hysteria lacks. If more than twice the arrived packets
//! are sent over half a second or an RTT, the rate falls to twice the arrival rate, but at least two packets per RTT.
//! It recovers as more arrives. Without a configured rate it sends its initial window per RTT; Hysteria uses BBR.

use crate::{
    Ack, CongestionEvent, Controller, Environment, PathEvent, PathHints, SendLimits, Sent, bounded,
    variables,
};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, Param, Rate, Settings, Status, Time, Variable};

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "brutal",
    summary: "sends at a given rate and compensates for losses; unfair to all other flows",
    source: "Hysteria 2, core/internal/congestion/brutal",
    senses: "share of packets that arrive",
    sets: "rate: the given one over the share that arrives; window of two RTTs",
    params: &[
        Param {
            name: "rate",
            help: "bits on the wire per second; 0 is the hinted rate of the path",
            kind: ParamKind::Number {
                unit: Unit::BitsPerSecond,
                min: 0.0,
                max: 1e13,
                default: 0.0,
            },
            origin: "Hysteria's bandwidth settings",
        },
        Param {
            name: "compensation",
            help: "share of losses that is made good at most",
            kind: ParamKind::Number { unit: Unit::Fraction, min: 0.0, max: 0.5, default: 0.3 },
            origin: "bounded at 1/(1 - 0.3); Hysteria 0.2 (minAckRate 0.8)",
        },
    ],
    status: Status::NotValidated,
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[
    variables::RATE,
    Variable::new("arrived_share", "fraction", "share of packets that arrived in five seconds"),
    Variable::state("circuit_breaker", "whether too little arrives", &["closed", "open"]),
];

/// The share of arrivals is taken over this many slots of a second (`pktInfoSlotCount`).
const SLOTS: usize = 5;
/// With fewer packets the share is taken as 1 (`minSampleCount`).
const MIN_SAMPLES: u64 = 50;
/// The window as a multiple of the rate times the RTT (`congestionWindowMultiplier`).
const WINDOW_RTTS: f64 = 2.0;
/// Ratio of sent to arrived at which the circuit breaker opens.
const MAX_EXCESS: f64 = 2.0;
/// The breaker compares over half a second, or over an RTT if that is longer.
const BREAKER_PERIOD: Duration = Duration::from_millis(500);
const MIN_WINDOW: f64 = 2.0;

/// Builds the controller.
pub fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    let rate = settings.number("rate");
    let given_rate = if rate > 0.0 { Some(rate) } else { hinted(&environment.hints) };
    Box::new(Brutal {
        configured: rate > 0.0,
        given_rate,
        min_share: 1.0 - settings.number("compensation"),
        packet_bits: f64::from(environment.packet_bytes.max(1)) * 8.0,
        initial_window: bounded(environment.initial_window, MIN_WINDOW),
        srtt: environment.hints.rtt.map(|rtt| rtt.as_secs_f64()),
        arrivals: Arrivals::default(),
        breaker: Breaker::default(),
    })
}

fn hinted(hints: &PathHints) -> Option<f64> {
    hints.rate.map(|rate| rate.as_bps() as f64).filter(|rate| *rate > 0.0)
}

#[derive(Clone, Debug)]
struct Brutal {
    /// Whether the rate comes from the parameter. If so, hints do not change it.
    configured: bool,
    /// Configured rate in bit/s.
    given_rate: Option<f64>,
    min_share: f64,
    packet_bits: f64,
    initial_window: f64,
    /// Seconds.
    srtt: Option<f64>,
    arrivals: Arrivals,
    breaker: Breaker,
}

/// Packets that arrived and that were lost, per slot of a second.
#[derive(Clone, Debug, Default)]
struct Arrivals {
    slots: [SecondCounts; SLOTS],
}

#[derive(Clone, Copy, Debug, Default)]
struct SecondCounts {
    second: u64,
    arrived: u64,
    lost: u64,
}

impl Arrivals {
    fn slot(&mut self, now: Time) -> &mut SecondCounts {
        let second = now.as_nanos() / 1_000_000_000;
        let slot = &mut self.slots[(second % SLOTS as u64) as usize];
        if slot.second != second {
            *slot = SecondCounts { second, ..SecondCounts::default() };
        }
        slot
    }

    /// The share of arrivals in slots at most five seconds older than the newest.
    fn share(&self) -> f64 {
        let newest = self.slots.iter().map(|s| s.second).max().unwrap_or(0);
        let valid = self.slots.iter().filter(|s| s.second + SLOTS as u64 > newest);
        let (arrived, lost) = valid.fold((0_u64, 0_u64), |(a, l), s| {
            (a.saturating_add(s.arrived), l.saturating_add(s.lost))
        });
        let all = arrived.saturating_add(lost);
        if all < MIN_SAMPLES { 1.0 } else { arrived as f64 / all as f64 }
    }
}

/// Compares sent with arrived packets.
#[derive(Clone, Debug, Default)]
struct Breaker {
    period: Option<Time>,
    sent_bits: f64,
    arrived_bits: f64,
    /// Rate limit in bit/s while open.
    most: Option<f64>,
}

impl Breaker {
    fn restart(&mut self, now: Time) {
        self.period = Some(now);
        self.sent_bits = 0.0;
        self.arrived_bits = 0.0;
    }

    fn check(&mut self, now: Time, srtt: f64, least: f64) {
        let Some(began) = self.period else { return };
        let seconds = now.since(began).as_secs_f64();
        if seconds < BREAKER_PERIOD.as_secs_f64().max(srtt) {
            return;
        }
        let bearable = MAX_EXCESS * self.arrived_bits;
        if self.sent_bits > bearable {
            self.most = Some((bearable / seconds).max(least));
        } else if let Some(most) = &mut self.most {
            *most = most.max(bearable / seconds);
        }
        self.restart(now);
    }
}

impl Brutal {
    /// Rate in bit/s before the circuit breaker.
    fn wanted(&self) -> Option<f64> {
        self.given_rate.map(|given_rate| given_rate / self.arrivals.share().max(self.min_share))
    }

    fn rate(&self) -> Option<f64> {
        match (self.wanted(), self.breaker.most) {
            (Some(wanted), Some(most)) => Some(wanted.min(most)),
            (wanted, _) => wanted,
        }
    }

    fn check_breaker(&mut self, now: Time) {
        let Some(srtt) = self.srtt else { return };
        self.breaker.check(now, srtt, MIN_WINDOW * self.packet_bits / srtt.max(1e-6));
        let wanted = self.wanted();
        if self.breaker.most.is_some_and(|most| wanted.is_none_or(|w| most >= w)) {
            self.breaker.most = None;
        }
    }
}

impl Controller for Brutal {
    fn on_sent(&mut self, sent: &Sent) {
        // After a pause, compare only from the first acknowledgement on.
        if sent.outstanding <= 1 {
            self.breaker.period = None;
        }
        self.breaker.sent_bits += f64::from(sent.bytes) * 8.0;
        self.check_breaker(sent.now);
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.newly_delivered == 0 {
            return;
        }
        self.srtt = Some(ack.estimate.srtt.as_secs_f64());
        let slot = self.arrivals.slot(ack.now);
        slot.arrived = slot.arrived.saturating_add(ack.newly_delivered);
        if self.breaker.period.is_none() {
            self.breaker.restart(ack.now);
        }
        self.breaker.arrived_bits += ack.newly_delivered as f64 * self.packet_bits;
        self.check_breaker(ack.now);
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        if let CongestionEvent::Losses(loss) = event {
            let slot = self.arrivals.slot(loss.now);
            slot.lost = slot.lost.saturating_add(loss.segments);
        }
    }

    fn on_path_event(&mut self, _now: Time, event: &PathEvent) {
        if let (PathEvent::Hints(hints), false) = (event, self.configured) {
            self.given_rate = hinted(hints).or(self.given_rate);
        }
    }

    fn send_limits(&self) -> SendLimits {
        let Some((rate, srtt)) = self.rate().zip(self.srtt) else {
            let pacing_rate = self.rate().map(Rate::from_bps_f64);
            return SendLimits { pacing_rate, ..SendLimits::unpaced(self.initial_window) };
        };
        let cwnd = bounded(WINDOW_RTTS * rate * srtt / self.packet_bits, self.initial_window);
        SendLimits::paced(cwnd, Rate::from_bps_f64(rate))
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("rate_bps", self.rate().unwrap_or(0.0));
        put("arrived_share", self.arrivals.share());
        put("circuit_breaker", f64::from(u8::from(self.breaker.most.is_some())));
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::build;
    use crate::scenario_path::SimplePath;
    use narrows_base::Time;

    fn rate(path: &SimplePath) -> f64 {
        path.controller.send_limits().pacing_rate.map_or(0.0, |r| r.as_bps() as f64)
    }

    #[test]
    fn it_makes_good_for_losses_up_to_its_bound() {
        let mut path = SimplePath::new(build("brutal(rate=5Mbit/s)"));
        path.lose = |number| number % 10 == 9;
        path.run(Time::from_secs_f64(8.0));
        assert!((rate(&path) / 5e6 - 1.0 / 0.9).abs() < 0.02, "{}", rate(&path));
        assert!(path.goodput() > 4.8e6, "{}", path.goodput());
        let mut path = SimplePath::new(build("brutal(rate=5Mbit/s)"));
        path.lose = |number| number % 5 >= 3; // 40%
        path.run(Time::from_secs_f64(8.0));
        assert!((rate(&path) / 5e6 - 1.0 / 0.7).abs() < 0.02, "{}", rate(&path));
    }

    #[test]
    fn rate_above_the_paths_is_reduced_within_a_second() {
        let mut path = SimplePath::new(build("brutal(rate=100Mbit/s)"));
        path.rate_bps = 2e6;
        path.queue_limit = 20;
        path.run(Time::from_secs_f64(1.2));
        assert!(rate(&path) < 4.2e6, "{}", rate(&path));
        path.run(Time::from_secs_f64(5.0));
        assert!(rate(&path) < 4.2e6, "{}", rate(&path));
        path.rate_bps = 40e6;
        path.run(Time::from_secs_f64(9.0));
        assert!(rate(&path) > 60e6, "comes back as more arrives: {}", rate(&path));
    }

    #[test]
    fn without_a_told_rate_it_sends_its_initial_window() {
        let mut path = SimplePath::new(build("brutal"));
        path.run(Time::from_secs_f64(2.0));
        assert_eq!(path.window(), 4.0);
        assert_eq!(path.controller.send_limits().pacing_rate, None);
    }
}
