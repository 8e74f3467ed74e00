//! The list of controllers. A controller is one file in this folder, its `mod` line in
//! `lib.rs` and its entry here; nothing else in the house knows its name.

use crate::{Controller, Environment, ReceiverHalf};
use crate::{bbr, cubic, fixed, jersey, rap, reno, stpd, tear, tear_wireless, tfrc, tfwc};
use crate::{rrtp, rrtp_lasthop, vegas, veno, westwood, westwood_plus};
use narrows_base::{Card, Settings, Spec, SpecError, Variable};

/// Builds a receiver half.
pub type BuildReceiver = fn(&Settings, &Environment) -> Box<dyn ReceiverHalf>;

/// A controller: its card, and how to build it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What it says of itself.
    pub card: &'static Card,
    /// Builds its sender half.
    pub build: fn(&Settings, &Environment) -> Box<dyn Controller>,
    /// Builds its receiver half, where the algorithm has one.
    pub receiver: Option<BuildReceiver>,
    /// Everything that either half may show over time.
    pub variables: &'static [Variable],
}

/// A controller that needs nothing of its receiver but acknowledgements.
const fn one_sided(
    card: &'static Card,
    build: fn(&Settings, &Environment) -> Box<dyn Controller>,
    variables: &'static [Variable],
) -> Entry {
    Entry { card, build, receiver: None, variables }
}

/// All controllers.
pub const CONTROLLERS: &[Entry] = &[
    one_sided(&reno::CARD, reno::build, &[]),
    one_sided(&cubic::CARD, cubic::build, cubic::VARIABLES),
    one_sided(&bbr::CARD, bbr::build, bbr::VARIABLES),
    one_sided(&vegas::CARD, vegas::build, vegas::VARIABLES),
    one_sided(&veno::CARD, veno::build, veno::VARIABLES),
    one_sided(&westwood::CARD, westwood::build, westwood::VARIABLES),
    one_sided(&westwood_plus::CARD, westwood_plus::build, westwood_plus::VARIABLES),
    one_sided(&jersey::CARD, jersey::build, jersey::VARIABLES),
    one_sided(&stpd::CARD, stpd::build, stpd::VARIABLES),
    one_sided(&rap::CARD, rap::build, rap::VARIABLES),
    one_sided(&fixed::CARD, fixed::build, &[]),
    one_sided(&rrtp::CARD, rrtp::build, rrtp::VARIABLES),
    Entry {
        card: &rrtp_lasthop::CARD,
        build: rrtp_lasthop::build,
        receiver: Some(rrtp_lasthop::receiver),
        variables: rrtp_lasthop::VARIABLES,
    },
    Entry {
        card: &tfrc::CARD,
        build: tfrc::build,
        receiver: Some(tfrc::build_receiver),
        variables: tfrc::VARIABLES,
    },
    one_sided(&tfwc::CARD, tfwc::build, tfwc::VARIABLES),
    Entry {
        card: &tear::CARD,
        build: tear::build,
        receiver: Some(tear::receiver),
        variables: tear::VARIABLES,
    },
    Entry {
        card: &tear_wireless::CARD,
        build: tear_wireless::build,
        receiver: Some(tear_wireless::receiver),
        variables: tear_wireless::VARIABLES,
    },
];

/// The controller of that name.
///
/// # Errors
/// An unknown name, with a suggestion.
pub fn find(name: &str) -> Result<&'static Entry, SpecError> {
    CONTROLLERS.iter().find(|e| e.card.name == name).ok_or_else(|| {
        let names: Vec<&str> = CONTROLLERS.iter().map(|e| e.card.name).collect();
        SpecError::unknown("controller", name, &names)
    })
}

impl Entry {
    /// Whether what it sends follows from which packets arrived and when they were acknowledged: not where a
    /// receiver half says how fast to send or how much was lost, nor where nothing is listened to.
    pub fn is_ack_driven(&self) -> bool {
        self.receiver.is_none() && self.card.name != crate::fixed::CARD.name
    }
    /// Builds it from what the user wrote.
    ///
    /// # Errors
    /// A parameter that is unknown or out of range.
    pub fn read(&self, spec: &Spec) -> Result<Settings, SpecError> {
        Settings::read(spec, self.card.params)
    }
}
