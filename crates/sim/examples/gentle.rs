//! The worked example of `docs/adding-a-controller.md`, which quotes this file:
//! `cargo run -p narrows-sim --example gentle`.

use narrows_base::card::Kind;
use narrows_base::units::Unit;
use narrows_base::{Card, Duration, Param, Rate, Settings, Status, Time};
use narrows_control::{Ack, Allowance, Controller, Environment, Repair, Restart};
use narrows_flow::tcp::{RecoveryKind, TcpConfig};
use narrows_flow::{Preset, Protocol};
use narrows_path::{Limit, LinkConfig, QueueConfig};
use narrows_sim::{FlowSpec, GroupSpec, LinkSpec, NetworkSpec, SourceSpec, run};
use std::sync::Arc;

/// What it says of itself.
pub const CARD: Card = Card {
    name: "gentle",
    summary: "leaves a seventh of the window when the round trip stretches",
    source: "docs/adding-a-controller.md",
    senses: "delay, loss",
    sets: "window: +1 segment per RTT, 6/7 of it at a long round trip, halved per loss episode",
    params: &[Param {
        name: "limit",
        help: "round-trip time over its minimum at which the window shrinks",
        kind: Kind::Number { unit: Unit::None, min: 1.0, max: 100.0, default: 1.25 },
        origin: "chosen for this example",
    }],
    status: Status::NotValidated,
};

/// Makes one for a flow.
pub fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    Box::new(Gentle {
        cwnd: environment.initial_window,
        ssthresh: environment.initial_ssthresh,
        limit: settings.number("limit"),
    })
}

struct Gentle {
    cwnd: f64,
    ssthresh: f64,
    limit: f64,
}

impl Controller for Gentle {
    fn on_ack(&mut self, ack: &Ack) {
        // Repairs are recovery's time; a sender without data has earned no growth.
        if ack.in_repair || !ack.window_limited {
            return;
        }
        let stretch = ack.rtt.as_secs_f64() / ack.min_rtt.as_secs_f64().max(1e-9);
        if stretch > self.limit && ack.round_start {
            self.cwnd = (self.cwnd * 6.0 / 7.0).max(2.0);
            self.ssthresh = self.cwnd;
        } else if self.cwnd < self.ssthresh {
            self.cwnd += ack.newly_acked as f64;
        } else {
            self.cwnd += ack.newly_acked as f64 / self.cwnd;
        }
    }

    fn on_repair(&mut self, repair: &Repair) {
        self.ssthresh = (repair.flight as f64 / 2.0).max(2.0);
        self.cwnd = self.ssthresh;
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.ssthresh = (restart.flight as f64 / 2.0).max(2.0);
        self.cwnd = 1.0;
    }

    fn allowance(&self) -> Allowance {
        Allowance::window(self.cwnd)
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("limit", self.limit); // shows in series.parquet and the report
    }
}

fn main() {
    // To try it before it is in the list: a TCP endpoint with this controller …
    let config = TcpConfig { recovery: RecoveryKind::Sack, ..TcpConfig::preset(Preset::Rfc) };
    let settings = Settings::defaults(CARD.params);
    let gentle = Protocol::custom("gentle", config, move |e| build(&settings, e)).unwrap();

    // … on a link of 2 Mbit/s, 30 ms each way, with room for 60 packets.
    let back = LinkConfig::plain(Rate::from_bps(2_000_000), Duration::from_millis(30));
    let mut there = back.clone();
    there.queue = QueueConfig { limit: Limit::Packets(60), aqm: None };
    let link = |name: &str, config: LinkConfig| LinkSpec {
        name: name.into(),
        config: Arc::new(config),
        metered: true,
    };
    let flow = FlowSpec { start: Time::ZERO, stop: Time::NEVER, forward: vec![0], back: vec![1] };
    let group = GroupSpec {
        name: "main".into(),
        protocol: gentle,
        source: SourceSpec::bulk(),
        flows: vec![flow],
    };
    let network = NetworkSpec {
        seed: 1,
        end: Time::from_secs_f64(60.0),
        measure_from: Time::from_secs_f64(10.0),
        links: vec![link("there", there), link("back", back)],
        groups: vec![group],
        changes: Vec::new(),
        series: None,
    };
    let result = run(&network, &mut |_simulated_time| true).unwrap();

    // The link is full, and the queue is nowhere near its room of 60.
    let link = &result.links[0];
    assert!(link.served_bits / link.capacity_bits > 0.95);
    assert!(link.queue_mean < 15.0, "{}", link.queue_mean);
    println!("{:.1} packets wait on average", link.queue_mean);
}
