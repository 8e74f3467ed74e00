//! The list of controllers. A controller is one file in this folder, its `mod` line in
//! `lib.rs` and its entry here; nothing else in the house knows its name.

use crate::{Controller, Environment};
use crate::{bbr, cubic, reno, stpd, vegas, veno, westwood, westwood_plus};
use narrows_base::{Card, Settings, Spec, SpecError};

/// A controller: its card, and how to build it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What it says of itself.
    pub card: &'static Card,
    /// Builds it.
    pub build: fn(&Settings, &Environment) -> Box<dyn Controller>,
}

/// All controllers.
pub const CONTROLLERS: &[Entry] = &[
    Entry { card: &reno::CARD, build: reno::build },
    Entry { card: &cubic::CARD, build: cubic::build },
    Entry { card: &bbr::CARD, build: bbr::build },
    Entry { card: &vegas::CARD, build: vegas::build },
    Entry { card: &veno::CARD, build: veno::build },
    Entry { card: &westwood::CARD, build: westwood::build },
    Entry { card: &westwood_plus::CARD, build: westwood_plus::build },
    Entry { card: &stpd::CARD, build: stpd::build },
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
    /// Builds it from what the user wrote.
    ///
    /// # Errors
    /// A parameter that is unknown or out of range.
    pub fn read(&self, spec: &Spec) -> Result<Settings, SpecError> {
        Settings::read(spec, self.card.params)
    }
}
