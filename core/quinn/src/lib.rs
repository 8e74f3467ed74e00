//! Narrows' congestion controllers for [quinn](https://docs.rs/quinn): for applications that use QUIC.
//!
//! ```
//! use std::sync::Arc;
//!
//! let controller = narrows_quinn::Controllers::new("rrtp")?;
//! // quinn::TransportConfig is this type.
//! let mut transport = quinn_proto::TransportConfig::default();
//! transport.congestion_controller_factory(Arc::new(controller));
//! # Ok::<(), narrows_quinn::Error>(())
//! ```
//!
//! Any controller of `narrows list controllers` that is driven by acknowledgements can be used, with its parameters:
//! `"vegas(alpha=2,beta=4)"`, `"bbr3"`, `"stpd"`. How differences between quinn's trait and Narrows' trait are handled:
//!
//! | quinn | here |
//! |---|---|
//! | no pacing rate: it paces 1.25 windows per smoothed RTT | if a controller sets a rate, the window is at most that rate times the smoothed RTT |
//! | no ticks | due ticks are delivered with the next packet or acknowledgement |
//! | one call for several sent packets | the same number of packets of the path's MTU |
//! | no packet numbers of acknowledged packets, and only the total of losses | controllers that need packet numbers, or have a receiver side, are [refused](Error::NeedsRrtp) |
//! | spurious losses are not reported | they stay losses |
//!
//! RTTs are measured per packet and include the peer's ACK delay.
//!
//! `jersey` reduces its window only at congestion marks: without an AQM that marks it fills every queue, inside quinn
//! as elsewhere.
//!
//! `cargo run --release -p narrows-quinn --example transfer -- quinn-cubic rrtp` compares controllers between a quinn
//! client and server over an emulated link; `tests/virtual_time.rs` does so in virtual time.

mod adapter;
mod sent_log;

use adapter::Adapter;
use narrows_base::{RandomKey, Settings, Spec, SpecError};
use narrows_congestion::{ControllerEntry, Environment, PathHints};

use quinn_proto::congestion::{Controller, ControllerFactory};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// RFC 9002 section 7.2: ten packets.
const INITIAL_WINDOW: f64 = 10.0;

/// Why a controller cannot serve quinn.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no such controller, or a parameter is unknown or out of range.
    Specification(SpecError),
    /// It needs packet numbers or a receiver side, which only rrtp provides.
    NeedsRrtp(&'static str),
    /// Its rate does not depend on acknowledgements, which quinn's window cannot express.
    Unresponsive(&'static str),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Specification(e) => e.fmt(f),
            Error::NeedsRrtp(name) => write!(
                f,
                "{name} goes by packet numbers or has a receiver side, for which quinn has no means: use \
                 {} over rrtp",
                // rrtp's own controllers have protocols of their names, with the loss classifiers that they use.
                if name.starts_with("rrtp") { (*name).into() } else { format!("rrtp+{name}") }
            ),
            Error::Unresponsive(name) => write!(
                f,
                "{name} sends at a fixed rate, which quinn's window cannot express: use rrtp+{name} over rrtp"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Specification(e) => Some(e),
            _ => None,
        }
    }
}

impl From<SpecError> for Error {
    fn from(e: SpecError) -> Error {
        Error::Specification(e)
    }
}

/// Makes a controller for each connection: a factory for
/// [`congestion_controller_factory`](quinn_proto::TransportConfig::congestion_controller_factory).
#[derive(Debug)]
pub struct Controllers {
    entry: &'static ControllerEntry,
    settings: Settings,
    initial_window: f64,
    hints: PathHints,
    seed: u64,
    made: AtomicU64,
}

impl Controllers {
    /// The controller with this name and parameters: `"vegas(alpha=2)"`.
    ///
    /// # Errors
    /// A controller that does not exist, with a suggestion, or that quinn cannot serve.
    pub fn new(specification: &str) -> Result<Controllers, Error> {
        let spec = Spec::parse(specification)?;
        let entry = narrows_congestion::find(&spec.name)?;
        let settings = entry.read(&spec)?;
        entry.refuse_unread(&settings, &Environment::default())?;
        let name = entry.descriptor.name;
        if entry.is_unresponsive() {
            return Err(Error::Unresponsive(name));
        }
        if entry.needs_rrtp(&settings, &Environment::default()) {
            return Err(Error::NeedsRrtp(name));
        }
        Ok(Controllers {
            entry,
            settings,
            initial_window: INITIAL_WINDOW,
            hints: PathHints::default(),
            seed: 1,
            made: AtomicU64::new(0),
        })
    }
    /// Packets that may be sent before the first acknowledgement; at least one.
    #[must_use]
    pub fn with_initial_window(mut self, packets: f64) -> Controllers {
        self.initial_window = packets.clamp(1.0, 1e6);
        self
    }
    /// Properties of the path that are given in advance.
    #[must_use]
    pub fn with_hints(mut self, hints: PathHints) -> Controllers {
        self.hints = hints;
        self
    }
    /// Seed of random draws (BBR's phases); each connection draws differently.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Controllers {
        self.seed = seed;
        self
    }
}

impl ControllerFactory for Controllers {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let environment = Environment {
            initial_window: self.initial_window,
            packet_bytes: u32::from(current_mtu),
            random_key: RandomKey::from_seed(self.seed).numbered(number),
            hints: self.hints,
            ..Environment::default()
        };
        let controller = self.entry.build(&self.settings, &environment);
        Box::new(Adapter::new(controller, now, current_mtu, self.initial_window))
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
        let mut served = 0;
        for entry in narrows_congestion::CONTROLLERS.iter() {
            let Ok(factory) = Controllers::new(entry.descriptor.name) else { continue };
            let controller = Arc::new(factory).build(now, 1200);
            assert!(controller.window() >= 1200, "{}", entry.descriptor.name);
            assert_eq!(controller.window(), controller.clone_box().window());
            served += 1;
        }
        assert!(served >= 12, "{served}");
    }
}
