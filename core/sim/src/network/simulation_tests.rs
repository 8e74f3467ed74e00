//! A run in steps equals the same run at once.

use super::Simulation;
use crate::protocol::{DatagramConfig, FlowProtocol, Preset, Protocol, TcpConfig};
use crate::spec::{NetworkSpec, SeriesSpec, SimError};
use crate::{SourceSpec, dumbbell, run};
use narrows_base::{Duration, RandomKey, Rate, Spec, Time};
use narrows_congestion::{Ack, Controller, SendLimits};
use narrows_link::{LinkChange, LossSpec};
use std::any::Any;
use std::sync::Arc;

fn read(text: &str) -> FlowProtocol {
    FlowProtocol::read(&Spec::parse(text).unwrap(), Preset::Linux, 1000).unwrap()
}

/// Losses, jitter, queue management, changes and series: all parts with random draws or times of their own.
fn eventful(protocol: &str, flows: u32) -> NetworkSpec {
    let mut spec = dumbbell(flows, 10, 4, read(protocol));
    let mut there = (*spec.links[0].config).clone();
    there.loss = LossSpec::parse_all("1%").unwrap();
    there.impairments.jitter = Duration::from_millis(2);
    there.changes = true;
    there.queue.aqm = Some(Spec::parse("codel").unwrap());
    spec.links[0].config = Arc::new(there);
    let slower = LinkChange::Rate(Rate::from_bps(3_000_000));
    spec.changes = vec![(Time::from_secs_f64(1.5), 0, slower)];
    spec.measure_from = Time::from_secs_f64(1.0);
    let interval = Duration::from_millis(30);
    spec.series =
        Some(SeriesSpec { interval, from: Time::ZERO, links: vec![0], flows_per_group: 2 });
    let mut other = spec.groups[0].clone();
    other.name = "web".into();
    other.source = SourceSpec::read(&Spec::parse("web").unwrap()).unwrap();
    spec.groups.push(other);
    spec
}

/// All values of a result: flows, groups and links, series, digest.
fn described(result: &crate::RunResult) -> String {
    format!("{result:?}")
}

/// The end of a step is no event: steps of any length, also ones that end at events, give the same bits.
#[test]
fn steps_of_any_length_give_the_run_to_the_bit() {
    for (protocol, flows) in [("cubic", 1), ("cubic", 12), ("rrtp", 3), ("bbr", 2), ("tfrc", 2)] {
        let spec = eventful(protocol, flows);
        let whole = described(&run(&spec, &mut |_| true).unwrap());
        let mut random = RandomKey::from_seed(9).named("steps").stream();
        for longest_ns in [50_000_000, 1_000_000_000] {
            let mut simulation = Simulation::new(&spec).unwrap();
            while simulation.now() < spec.end {
                // Whole milliseconds are often the time of an event.
                let step = random.bits() % longest_ns / 1_000_000 * 1_000_000;
                let until = simulation.now() + Duration::from_nanos(step + random.bits() % 2);
                simulation.advance(until, &mut |_| true).unwrap();
                assert_eq!(simulation.now(), until.min(spec.end));
            }
            assert!(
                described(&simulation.finish()) == whole,
                "{protocol}, steps to {longest_ns} ns"
            );
        }
    }
}

#[derive(Clone)]
struct Window(f64);

impl Controller for Window {
    fn on_ack(&mut self, _ack: &Ack) {}
    fn send_limits(&self) -> SendLimits {
        SendLimits::unpaced(self.0)
    }
}

/// A window that is changed between two steps takes effect at once, not with the next acknowledgement.
#[test]
fn a_changed_window_is_sent_at_once() {
    let make = |_: &narrows_congestion::Environment| Box::new(Window(2.0)) as Box<dyn Controller>;
    let stream = DatagramConfig { reliable: true, ..DatagramConfig::default() };
    // The packet sender's limiter bounds the packets that leave at once.
    for (protocol, at_once) in [
        (FlowProtocol::custom("w", TcpConfig::preset(Preset::Rfc), make).unwrap(), 12),
        (Protocol::custom("w", stream, make, None).unwrap().into(), 3),
    ] {
        let spec = dumbbell(1, 10, 2, protocol);
        let mut simulation = Simulation::new(&spec).unwrap();
        simulation.advance(Time::from_secs_f64(1.0), &mut |_| true).unwrap();
        assert!(simulation.flight(0) <= 2);
        let limits = simulation.change_controller(0, |c| {
            let window = (c as &mut dyn Any).downcast_mut::<Window>().unwrap();
            window.0 = 12.0;
            window.send_limits()
        });
        assert_eq!(limits, simulation.controller(0).send_limits());
        assert_eq!(simulation.flight(0), at_once);
        simulation.advance(spec.end, &mut |_| true).unwrap();
        assert!(simulation.acknowledged(0) > 300, "{}", simulation.acknowledged(0));
    }
}

/// `progress` can return false in any step.
#[test]
fn a_caller_can_stop_any_step() {
    let spec = dumbbell(300, 1000, 60, read("cubic"));
    let mut simulation = Simulation::owned(spec).unwrap();
    simulation.advance(Time::from_secs_f64(0.1), &mut |_| true).unwrap();
    let stopped = simulation.advance(Time::NEVER, &mut |_| false);
    assert_eq!(stopped, Err(SimError::Interrupted));
}
