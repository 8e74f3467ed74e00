//! Loss differentiation at the receiver: whether a missing packet was lost by the radio link or dropped by a full queue
//! (section 3.6 of the RRTP thesis). One file per classifier, and the list.
//!
//! A classifier sees every arrival with the number of packets missing directly below it. A [`LossTracker`] records for
//! a receiver, simulated or real, which numbers are missing and which of them are attributed to the radio link, for its
//! reports. A packet that arrives late counts as neither, and reports do not list it as missing.

mod biaz;
mod rule;
mod spike;
mod zigzag;

use crate::ranges::Ranges;
use narrows_base::list::{List, Listed};
use narrows_base::{Descriptor, Settings, Spec, SpecError, Status, Time};

pub use rule::{ArrivalWithGap, LossClassifier};

/// Limit on ranges of radio losses; forgotten ones count as congestion.
const MAX_RANGES: usize = 256;

/// An entry of the list: a descriptor and a constructor.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ClassifierEntry {
    /// Name, parameters and source.
    pub descriptor: &'static Descriptor,
    /// Builds the classifier from its parameters.
    pub build: fn(&Settings) -> Box<dyn LossClassifier>,
}

impl Listed for ClassifierEntry {
    fn name(&self) -> &'static str {
        self.descriptor.name
    }
}

/// Every loss counts as congestion.
const NONE: Descriptor = Descriptor {
    name: "none",
    summary: "no classification: every loss may be congestion",
    source: "TCP",
    senses: "nothing",
    sets: "nothing",
    params: &[],
    status: Status::NotValidated,
};

struct NoClassifier;

impl LossClassifier for NoClassifier {
    fn on_arrival(&mut self, _seen: &ArrivalWithGap) -> bool {
        false
    }
}

/// All loss classifiers.
pub static LOSS_CLASSIFIERS: List<ClassifierEntry> = List::new(
    "loss classifier",
    &[
        ClassifierEntry { descriptor: &NONE, build: |_| Box::new(NoClassifier) },
        ClassifierEntry { descriptor: &biaz::DESCRIPTOR, build: biaz::build },
        ClassifierEntry { descriptor: &spike::DESCRIPTOR, build: spike::build },
        ClassifierEntry { descriptor: &zigzag::DESCRIPTOR, build: zigzag::build },
    ],
);

/// Builds a classifier by name and parameters: `spike`, `biaz(sigma=0.75)`.
///
/// # Errors
/// An unknown classifier or parameter.
pub fn read(spec: &Spec) -> Result<Box<dyn LossClassifier>, SpecError> {
    let entry = LOSS_CLASSIFIERS.find(&spec.name)?;
    Ok((entry.build)(&Settings::read(spec, entry.descriptor.params)?))
}

/// A classifier as part of a configuration.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ClassifierConfig {
    /// A name in [`LOSS_CLASSIFIERS`].
    pub name: &'static str,
    /// Biaz's sigma and phi; other classifiers ignore them.
    pub biaz: (f64, f64),
}

impl Default for ClassifierConfig {
    fn default() -> ClassifierConfig {
        // Table 3.2 of the RRTP thesis.
        ClassifierConfig { name: "none", biaz: (1.0, 2.0) }
    }
}

impl ClassifierConfig {
    /// A receiver's tracker with this classifier; `None` if every loss counts as congestion.
    pub fn tracker(&self) -> Option<LossTracker> {
        self.build().map(LossTracker::new)
    }

    /// The classifier alone.
    pub fn build(&self) -> Option<Box<dyn LossClassifier>> {
        let mut spec = Spec::named(self.name);
        match self.name {
            "none" => return None,
            "biaz" => {
                for (name, x) in [("sigma", self.biaz.0), ("phi", self.biaz.1)] {
                    spec.args.push((Some(name.into()), x.to_string()));
                }
            }
            _ => {}
        }
        read(&spec).ok()
    }
}

/// The missing packets at a receiver, and their classification.
pub struct LossTracker {
    classifier: Box<dyn LossClassifier>,
    radio: Ranges,
    /// The newest classification: `[from, to)`, and whether it was the radio.
    classified: Option<(u64, u64, bool)>,
}

impl LossTracker {
    /// With this classifier, before the first packet.
    pub fn new(classifier: Box<dyn LossClassifier>) -> LossTracker {
        LossTracker { classifier, radio: Ranges::default(), classified: None }
    }

    /// A packet arrived at `now`; it was sent at `sent` by the sender's clock. It reveals that the numbers `[from, to)`
    /// are missing; the range may be empty.
    #[inline]
    pub fn on_arrival(&mut self, now: Time, sent: Time, (from, to): (u64, u64)) {
        let missing = to.saturating_sub(from);
        let radio = self.classifier.on_arrival(&ArrivalWithGap { now, sent, missing });
        if missing > 0 {
            self.classified = Some((from, to, radio));
            if radio {
                self.radio.insert(from, to, |_, _| ());
                while self.radio.len() > MAX_RANGES {
                    let Some((_, to)) = self.radio.iter().next() else { break };
                    self.radio.trim_below(to);
                }
            }
        }
    }

    /// Whether a missing packet is attributed to the radio link.
    #[inline]
    pub fn is_radio(&self, number: u64) -> bool {
        !self.radio.is_empty() && self.radio.find(number).is_some()
    }

    /// Number of ranges of radio losses that it stores.
    pub fn ranges(&self) -> usize {
        self.radio.len()
    }

    /// Reports no longer cover numbers below `n`.
    #[inline]
    pub fn trim_below(&mut self, n: u64) {
        if !self.radio.is_empty() {
            self.radio.trim_below(n);
        }
    }

    /// The newest classification, returned once: `[from, to)`, and whether it is attributed to the radio link. For
    /// comparison with the true cause.
    #[inline]
    pub fn classified(&mut self) -> Option<(u64, u64, bool)> {
        self.classified.take()
    }
}

impl std::fmt::Debug for LossTracker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LossTracker({} radio ranges)", self.radio.len())
    }
}

#[cfg(test)]
#[path = "loss_classifier_tests.rs"]
mod tests;
