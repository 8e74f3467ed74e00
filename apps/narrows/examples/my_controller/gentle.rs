//! Gentle adds one segment per round trip, reduces the window by a seventh when the round-trip time exceeds the
//! smallest one by a given share, and halves it at a loss. The worked example of `docs/adding-a-controller.md`, which
//! quotes this file.

use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, Settings, Status, Variable};
use narrows_congestion::{Ack, CongestionEvent, Controller, Environment, SendLimits};

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "gentle",
    summary: "leaves a seventh of the window when the round trip stretches",
    source: "docs/adding-a-controller.md",
    senses: "delay, loss",
    sets: "window: +1 segment per RTT, 6/7 of it at a long round trip, halved per loss episode",
    params: &[Param {
        name: "limit",
        help: "round-trip time over its minimum at which the window shrinks",
        kind: ParamKind::Number { unit: Unit::None, min: 1.0, max: 100.0, default: 1.25 },
        origin: "chosen for this example",
    }],
    status: Status::NotValidated,
};

/// The columns of its time series.
pub const VARIABLES: &[Variable] =
    &[Variable::new("limit", "", "round-trip time over its minimum at which the window shrinks")];

/// Makes the controller of a flow.
pub fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    Box::new(Gentle {
        cwnd: environment.initial_window,
        ssthresh: environment.initial_ssthresh,
        limit: settings.number("limit"),
    })
}

#[derive(Clone)]
struct Gentle {
    cwnd: f64,
    ssthresh: f64,
    limit: f64,
}

impl Controller for Gentle {
    fn on_ack(&mut self, ack: &Ack) {
        // No growth during recovery; a sender without data has earned no growth.
        if ack.in_recovery || !ack.window_limited {
            return;
        }
        let stretch = ack.rtt.as_secs_f64() / ack.estimate.min_rtt.as_secs_f64().max(1e-9);
        if stretch > self.limit && ack.round_start {
            self.cwnd = (self.cwnd * 6.0 / 7.0).max(2.0);
            self.ssthresh = self.cwnd;
        } else if self.cwnd < self.ssthresh {
            self.cwnd += ack.cumulative.newly_acked as f64;
        } else {
            self.cwnd += ack.cumulative.newly_acked as f64 / self.cwnd;
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match event {
            CongestionEvent::RecoveryStart(recovery) => {
                self.ssthresh = (recovery.flight as f64 / 2.0).max(2.0);
                self.cwnd = self.ssthresh;
            }
            CongestionEvent::SlowStartRestart(restart) => {
                self.ssthresh = (restart.flight as f64 / 2.0).max(2.0);
                self.cwnd = 1.0;
            }
            _ => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::unpaced(self.cwnd).with_ssthresh(self.ssthresh)
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("limit", self.limit); // shows in series.parquet and the report
    }
}
