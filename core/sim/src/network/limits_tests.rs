//! Limits that end runs which would never end, or would use unbounded memory.

use super::run;
use crate::dumbbell;
use crate::protocol::{DatagramConfig, FlowProtocol, Preset, Protocol, TcpConfig};
use crate::spec::{NetworkSpec, SimError};
use narrows_base::{Duration, Rate, Spec, Time};
use narrows_congestion::{Ack, Controller, SendLimits};
use std::sync::Arc;

/// A controller without limits.
#[derive(Clone)]
struct Unlimited;

impl Controller for Unlimited {
    fn on_ack(&mut self, _ack: &Ack) {}
    fn send_limits(&self) -> SendLimits {
        SendLimits::unpaced(f64::INFINITY)
    }
}

/// Always requests a tick at the moment of the last acknowledgement.
#[derive(Clone)]
struct Impatient(Time);

impl Controller for Impatient {
    fn on_ack(&mut self, ack: &Ack) {
        self.0 = ack.now;
    }
    fn send_limits(&self) -> SendLimits {
        SendLimits::unpaced(1.0)
    }
    fn next_tick(&self) -> Time {
        self.0
    }
}

fn with(flows: u32, protocol: FlowProtocol) -> NetworkSpec {
    dumbbell(flows, 100, 1, protocol)
}
fn read(text: &str) -> FlowProtocol {
    FlowProtocol::read(&Spec::parse(text).unwrap(), Preset::Rfc, 1000).unwrap()
}

/// An infinite window, which the documentation allows, fills a link as any other.
#[test]
fn an_infinite_window_is_no_limit_and_ends() {
    let tcp = TcpConfig::preset(Preset::Rfc);
    let media = DatagramConfig::default();
    let stream = DatagramConfig { reliable: true, ..media.clone() };
    // The packet sender's limiter permits twice the bytes that arrived, per part of a second. Without pacing they leave
    // as one burst, and the queue of 30 packets drops most of it.
    for (protocol, fills) in [
        (FlowProtocol::custom("u", tcp, |_| Box::new(Unlimited)).unwrap(), 0.9),
        (Protocol::custom("u", media, |_| Box::new(Unlimited), None).unwrap().into(), 0.8),
        (Protocol::custom("u", stream, |_| Box::new(Unlimited), None).unwrap().into(), 0.8),
    ] {
        // Access links of 1 Gbit/s carry them; the queue of 10 Mbit/s drops most.
        let spec =
            NetworkSpec { measure_from: Time::from_secs_f64(1.0), ..dumbbell(1, 10, 2, protocol) };
        let r = run(&spec, &mut |_| true).unwrap();
        let served = r.links[0].served_bits;
        let capacity = r.links[0].capacity_bits;
        assert!(served > fills * capacity, "{served} of {capacity}");
    }
}

/// Unlimited queues before a slow link would hold all packets of several such senders.
#[test]
fn packets_under_way_are_bounded() {
    let tcp = TcpConfig::preset(Preset::Rfc);
    let spec = with(8, FlowProtocol::custom("u", tcp, |_| Box::new(Unlimited)).unwrap());
    let stopped = run(&spec, &mut |_| true).err().unwrap();
    assert!(matches!(stopped, SimError::TooManyPackets { .. }), "{stopped}");
    // Every link of a long route doubles the packet.
    let mut spec = with(1, read("reno"));
    for link in &mut spec.links {
        let mut config = (*link.config).clone();
        config.impairments.duplicate = 1.0;
        config.rate = Rate::from_bps(1_000_000_000_000_000);
        config.queue = Default::default();
        link.config = Arc::new(config);
    }
    spec.groups[0].flows[0].forward = vec![0; 200];
    let stopped = run(&spec, &mut |_| true).err().unwrap();
    assert!(matches!(stopped, SimError::TooManyPackets { .. }), "{stopped}");
}

#[test]
fn a_controller_that_is_always_due_is_named() {
    let tcp = TcpConfig::preset(Preset::Rfc);
    let spec =
        with(1, FlowProtocol::custom("i", tcp, |_| Box::new(Impatient(Time::NEVER))).unwrap());
    let stopped = run(&spec, &mut |_| true).err().unwrap();
    assert!(matches!(stopped, SimError::TimeStandsStill { .. }), "{stopped}");
}

/// A path without delay: the first acknowledgement arrives at the moment of sending.
#[test]
fn a_circle_without_delay_ends() {
    let mut spec = with(1, read("reno"));
    for link in &mut spec.links {
        let mut config = (*link.config).clone();
        config.delay = Duration::ZERO;
        config.rate = Rate::from_bps(1_000_000_000_000_000);
        link.config = Arc::new(config);
    }
    let mut calls = 0;
    let stopped = run(&spec, &mut |_| {
        calls += 1;
        calls < 20
    });
    assert!(stopped.is_err(), "the caller is asked, or it ends by itself");
}
