//! An entry of the list of protocols: which endpoint, controller and recovery a name combines.

use narrows_base::list::Listed;
use narrows_base::{Descriptor, SpecError, Status};

/// What a protocol is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// A reliable stream over the TCP endpoint.
    Tcp,
    /// A media rate over our endpoint: nothing is repaired.
    Media,
    /// A reliable stream over our endpoint.
    Rrtp,
}

impl std::fmt::Display for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Family::Tcp => "tcp",
            Family::Media => "media",
            Family::Rrtp => "rrtp",
        })
    }
}

/// A named combination of endpoint, controller and recovery.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ProtocolEntry {
    /// As the user writes it.
    pub name: &'static str,
    /// What it is for, and so which endpoint it speaks.
    pub family: Family,
    /// One line.
    pub summary: &'static str,
    /// The controller's name.
    pub controller: &'static str,
    /// How it repairs losses unless configured otherwise; `none` where nothing is repaired.
    pub recovery: &'static str,
    /// Switches of its endpoint that are on unless configured otherwise, whatever the preset.
    pub turns_on: &'static [&'static str],
    /// Who tells radio losses from congestion unless configured otherwise.
    pub classifier: &'static str,
}

impl ProtocolEntry {
    const fn of(
        family: Family,
        (name, controller): (&'static str, &'static str),
        recovery: &'static str,
        summary: &'static str,
    ) -> ProtocolEntry {
        ProtocolEntry {
            name,
            family,
            summary,
            controller,
            recovery,
            turns_on: &[],
            classifier: "none",
        }
    }
    /// A reliable stream over the TCP endpoint, with one of [`RECOVERIES`](super::RECOVERIES).
    pub const fn tcp(
        name: &'static str,
        controller: &'static str,
        recovery: &'static str,
        summary: &'static str,
    ) -> ProtocolEntry {
        ProtocolEntry::of(Family::Tcp, (name, controller), recovery, summary)
    }
    /// A media rate over our endpoint: nothing is repaired.
    pub const fn media(
        name: &'static str,
        controller: &'static str,
        summary: &'static str,
    ) -> ProtocolEntry {
        ProtocolEntry::of(Family::Media, (name, controller), "none", summary)
    }
    /// A reliable stream over our endpoint. `rrtp+CONTROLLER` is there without an entry.
    pub const fn stream(
        name: &'static str,
        controller: &'static str,
        summary: &'static str,
    ) -> ProtocolEntry {
        ProtocolEntry::of(Family::Rrtp, (name, controller), "rfc9002", summary)
    }
    /// With these switches of its endpoint on unless the user says otherwise.
    #[must_use]
    pub const fn with(mut self, switches: &'static [&'static str]) -> ProtocolEntry {
        self.turns_on = switches;
        self
    }
    /// With one of [`LOSS_CLASSIFIERS`](crate::loss_classifier::LOSS_CLASSIFIERS), unless the user says otherwise.
    #[must_use]
    pub const fn with_classifier(mut self, classifier: &'static str) -> ProtocolEntry {
        self.classifier = classifier;
        self
    }

    /// Its controller's descriptor, as this protocol uses it: what was checked over TCP or under media
    /// was not checked over a stream of ours.
    ///
    /// # Errors
    /// A controller that is not listed.
    pub fn descriptor(&self) -> Result<Descriptor, SpecError> {
        let descriptor = *narrows_congestion::find(self.controller)?.descriptor;
        Ok(match self.family {
            Family::Rrtp => Descriptor { status: Status::NotValidated, ..descriptor },
            _ => descriptor,
        })
    }
}

impl Listed for ProtocolEntry {
    fn name(&self) -> &'static str {
        self.name
    }
}
