//! Controllers inside QUIC stacks that have a trait of their own for congestion control: quinn and its fork noq.
//!
//! [`QuicControllers`] reads a specification and refuses what the stack cannot serve. [`QuicAdapter`] translates the
//! stack's calls into events.

mod adapter;
mod outcomes;
mod sent_log;

pub use adapter::{QuicAdapter, QuicStack};

use crate::{ControllerEntry, Environment, PathHints, find};
use narrows_base::{RandomKey, Settings, Spec, SpecError};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// RFC 9002 section 7.2: ten packets.
const INITIAL_WINDOW: f64 = 10.0;

/// Why a controller cannot serve a stack.
#[derive(Debug)]
#[non_exhaustive]
pub enum QuicError {
    /// There is no such controller, or a parameter is unknown or out of range.
    Specification(SpecError),
    /// It needs packet numbers, marks per packet, a timer or a receiver side, which only rrtp provides.
    NeedsRrtp {
        /// Name of the controller.
        controller: &'static str,
        /// Name of the stack.
        stack: &'static str,
    },
    /// Its rate does not depend on acknowledgements, which a window cannot express.
    Unresponsive {
        /// Name of the controller.
        controller: &'static str,
        /// Name of the stack.
        stack: &'static str,
    },
}

impl std::fmt::Display for QuicError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            QuicError::Specification(e) => e.fmt(f),
            QuicError::NeedsRrtp { controller, stack } => write!(
                f,
                "{controller} needs packet numbers, marks, timers or a receiver side that {stack} does not provide: \
                 use {} over rrtp",
                // rrtp's own controllers have protocols of their names, with the loss classifiers that they use.
                if controller.starts_with("rrtp") {
                    (*controller).into()
                } else {
                    format!("rrtp+{controller}")
                }
            ),
            QuicError::Unresponsive { controller, stack } => write!(
                f,
                "{controller} sends at a fixed rate, which {stack}'s window cannot express: use rrtp+{controller} \
                 over rrtp"
            ),
        }
    }
}

impl std::error::Error for QuicError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            QuicError::Specification(e) => Some(e),
            _ => None,
        }
    }
}

impl From<SpecError> for QuicError {
    fn from(e: SpecError) -> QuicError {
        QuicError::Specification(e)
    }
}

/// Builds a controller for each connection of a stack.
#[derive(Debug)]
pub struct QuicControllers {
    stack: &'static QuicStack,
    entry: &'static ControllerEntry,
    settings: Settings,
    initial_window: f64,
    hints: PathHints,
    seed: u64,
    built: AtomicU64,
}

impl QuicControllers {
    /// The controller with this name and parameters: `"vegas(alpha=2)"`.
    ///
    /// # Errors
    /// A controller that does not exist, with a suggestion, or that the stack cannot serve.
    pub fn new(
        specification: &str,
        stack: &'static QuicStack,
    ) -> Result<QuicControllers, QuicError> {
        let spec = Spec::parse(specification)?;
        let entry = find(&spec.name)?;
        let settings = entry.read(&spec)?;
        let environment = Environment::default();
        entry.refuse_unread(&settings, &environment)?;
        let controller = entry.descriptor.name;
        if entry.is_unresponsive() && !stack.has_pacing_rate {
            return Err(QuicError::Unresponsive { controller, stack: stack.name });
        }
        let needs = entry.build(&settings, &environment).requirements();
        let is_served = entry.receiver.is_none()
            && !needs.own_timer
            && !needs.l4s
            && (stack.has_packet_numbers || !needs.packet_numbers);
        if !is_served {
            return Err(QuicError::NeedsRrtp { controller, stack: stack.name });
        }
        Ok(QuicControllers {
            stack,
            entry,
            settings,
            initial_window: INITIAL_WINDOW,
            hints: PathHints::default(),
            seed: 1,
            built: AtomicU64::new(0),
        })
    }

    /// Packets that may be sent before the first acknowledgement; at least one.
    #[must_use]
    pub fn with_initial_window(mut self, packets: f64) -> QuicControllers {
        self.initial_window = packets.clamp(1.0, 1e6);
        self
    }

    /// Properties of the path that are given in advance.
    #[must_use]
    pub fn with_hints(mut self, hints: PathHints) -> QuicControllers {
        self.hints = hints;
        self
    }

    /// Seed of random draws (BBR's phases); each connection draws differently.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> QuicControllers {
        self.seed = seed;
        self
    }

    /// The next connection's controller; `mtu` is its packet size in bytes.
    pub fn build(&self, now: Instant, mtu: u16) -> QuicAdapter {
        let number = self.built.fetch_add(1, Ordering::Relaxed);
        let environment = Environment {
            initial_window: self.initial_window,
            packet_bytes: u32::from(mtu.max(1)),
            random_key: RandomKey::from_seed(self.seed).numbered(number),
            hints: self.hints,
            ..Environment::default()
        };
        let controller = self.entry.build(&self.settings, &environment);
        QuicAdapter::new(controller, self.stack, now, mtu, self.initial_window)
    }
}
