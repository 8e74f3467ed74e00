//! The list of controllers. A controller is one file in this folder, its `mod` line in
//! `lib.rs` and its entry here; no other code knows its name. Programs add their own with
//! `narrows_sim::Registry`.

use crate::{Controller, Environment, ReceiverHalf};
use crate::{bbr, cubic, fixed, jersey, rap, reno, stpd, tear, tear_wireless, tfrc, tfwc};
use crate::{rrtp, rrtp_lasthop, vegas, veno, westwood, westwood_plus};
use narrows_base::list::{List, Listed};
use narrows_base::{Card, Settings, Spec, SpecError, Variable};

/// Builds a receiver half.
pub type BuildReceiver = fn(&Settings, &Environment) -> Box<dyn ReceiverHalf>;

/// A listed controller.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Entry {
    /// Name, parameters, source and status.
    pub card: &'static Card,
    /// Builds its sender half.
    pub build: fn(&Settings, &Environment) -> Box<dyn Controller>,
    /// Builds its receiver half, where the algorithm has one.
    pub receiver: Option<BuildReceiver>,
    /// Everything that either half may show over time.
    pub variables: &'static [Variable],
    /// Whether what it sends follows from acknowledgements.
    ack_driven: bool,
}

impl Entry {
    /// A controller that goes by acknowledgements and has no receiver half.
    pub const fn new(
        card: &'static Card,
        build: fn(&Settings, &Environment) -> Box<dyn Controller>,
    ) -> Entry {
        Entry { card, build, receiver: None, variables: &[], ack_driven: true }
    }
    /// With what it shows over time ([`Controller::watch`]).
    #[must_use]
    pub const fn with_variables(mut self, variables: &'static [Variable]) -> Entry {
        self.variables = variables;
        self
    }
    /// With a receiver half, which tells the sender what it may do.
    #[must_use]
    pub const fn with_receiver(mut self, build: BuildReceiver) -> Entry {
        self.receiver = Some(build);
        self
    }
    /// One that sends as it was told, whatever is acknowledged.
    #[must_use]
    pub const fn ignoring_acks(mut self) -> Entry {
        self.ack_driven = false;
        self
    }
}

impl Listed for Entry {
    fn name(&self) -> &'static str {
        self.card.name
    }
}

/// All controllers.
pub static CONTROLLERS: List<Entry> = List::new(
    "controller",
    &[
        Entry::new(&reno::CARD, reno::build),
        Entry::new(&cubic::CARD, cubic::build).with_variables(cubic::VARIABLES),
        Entry::new(&bbr::CARD, bbr::build).with_variables(bbr::VARIABLES),
        Entry::new(&vegas::CARD, vegas::build).with_variables(vegas::VARIABLES),
        Entry::new(&veno::CARD, veno::build).with_variables(veno::VARIABLES),
        Entry::new(&westwood::CARD, westwood::build).with_variables(westwood::VARIABLES),
        Entry::new(&westwood_plus::CARD, westwood_plus::build)
            .with_variables(westwood_plus::VARIABLES),
        Entry::new(&jersey::CARD, jersey::build).with_variables(jersey::VARIABLES),
        Entry::new(&stpd::CARD, stpd::build).with_variables(stpd::VARIABLES),
        Entry::new(&rap::CARD, rap::build).with_variables(rap::VARIABLES),
        Entry::new(&fixed::CARD, fixed::build).ignoring_acks(),
        Entry::new(&rrtp::CARD, rrtp::build).with_variables(rrtp::VARIABLES),
        Entry::new(&rrtp_lasthop::CARD, rrtp_lasthop::build)
            .with_variables(rrtp_lasthop::VARIABLES)
            .with_receiver(rrtp_lasthop::receiver),
        Entry::new(&tfrc::CARD, tfrc::build)
            .with_variables(tfrc::VARIABLES)
            .with_receiver(tfrc::build_receiver),
        Entry::new(&tfwc::CARD, tfwc::build).with_variables(tfwc::VARIABLES),
        Entry::new(&tear::CARD, tear::build)
            .with_variables(tear::VARIABLES)
            .with_receiver(tear::receiver),
        Entry::new(&tear_wireless::CARD, tear_wireless::build)
            .with_variables(tear_wireless::VARIABLES)
            .with_receiver(tear_wireless::receiver),
    ],
);

/// The controller of that name.
///
/// # Errors
/// An unknown name, with a suggestion.
pub fn find(name: &str) -> Result<&'static Entry, SpecError> {
    CONTROLLERS.find(name)
}

impl Entry {
    /// Whether what it sends follows from which packets arrived and when they were acknowledged: not where a
    /// receiver half says how fast to send or how much was lost, nor where nothing is listened to.
    pub fn is_ack_driven(&self) -> bool {
        self.ack_driven && self.receiver.is_none()
    }
    /// Builds it from what the user wrote.
    ///
    /// # Errors
    /// A parameter that is unknown or out of range.
    pub fn read(&self, spec: &Spec) -> Result<Settings, SpecError> {
        Settings::read(spec, self.card.params)
    }
}
