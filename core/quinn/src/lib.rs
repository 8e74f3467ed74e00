#![doc = include_str!("../README.md")]

mod adapter;

use adapter::Adapter;
use narrows_congestion::PathHints;
use narrows_congestion::quic::{QuicControllers, QuicStack};
use quinn_proto::congestion::{Controller, ControllerFactory};
use std::sync::Arc;
use std::time::Instant;

pub use narrows_congestion::quic::QuicError as Error;

static STACK: QuicStack =
    QuicStack { name: "quinn", has_packet_numbers: false, has_pacing_rate: false };

/// Makes a controller for each connection: a factory for
/// [`congestion_controller_factory`](quinn_proto::TransportConfig::congestion_controller_factory).
#[derive(Debug)]
pub struct Controllers(QuicControllers);

impl Controllers {
    /// The controller with this name and parameters: `"vegas(alpha=2)"`.
    ///
    /// # Errors
    /// A controller that does not exist, with a suggestion, or that quinn cannot serve.
    pub fn new(specification: &str) -> Result<Controllers, Error> {
        QuicControllers::new(specification, &STACK).map(Controllers)
    }

    /// Packets that may be sent before the first acknowledgement; at least one.
    #[must_use]
    pub fn with_initial_window(self, packets: f64) -> Controllers {
        Controllers(self.0.with_initial_window(packets))
    }

    /// Properties of the path that are given in advance.
    #[must_use]
    pub fn with_hints(self, hints: PathHints) -> Controllers {
        Controllers(self.0.with_hints(hints))
    }

    /// Seed of random draws (BBR's phases); each connection draws differently.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Controllers {
        Controllers(self.0.with_seed(seed))
    }
}

impl ControllerFactory for Controllers {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Adapter(self.0.build(now, current_mtu)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controller_that_needs_more_than_quinn_gives_is_refused() {
        let e = Controllers::new("rrtp-lasthop").unwrap_err().to_string();
        assert!(e.contains("use rrtp-lasthop over rrtp"), "{e}");
        for name in ["tfwc", "tfrc", "tear", "scream", "fixed", "brutal"] {
            let e = Controllers::new(name).unwrap_err().to_string();
            assert!(e.contains(&format!("use rrtp+{name} over rrtp")), "{e}");
        }
        let e = Controllers::new("vegsa").unwrap_err().to_string();
        assert!(e.contains("vegas"), "{e}");
    }

    #[test]
    fn every_other_controller_serves() {
        let now = Instant::now();
        let names = narrows_congestion::CONTROLLERS.iter().map(|entry| entry.descriptor.name);
        let served: Vec<&str> = names.filter(|name| Controllers::new(name).is_ok()).collect();
        for name in &served {
            let controller = Arc::new(Controllers::new(name).unwrap()).build(now, 1200);
            assert!(controller.window() >= 1200, "{name}");
            assert_eq!(controller.window(), controller.clone_box().window());
        }
        assert_eq!(served.len(), 14, "{served:?}");
    }
}
