//! The keys of a change of a link during a run: in `[[change]]` of a scenario file, in `--change` on a command line, and
//! in scripts of a test network.

use crate::link_direction::LinkDirection;
use crate::values;
use narrows_base::SpecError;
use narrows_link::{LinkChange, LossSpec};

/// A key of `[[change]]`: a change of one direction of a link.
#[derive(Debug)]
pub struct ChangeKey {
    /// As in files and on command lines.
    pub name: &'static str,
    /// Reads its value.
    pub read: fn(&str) -> Result<LinkChange, SpecError>,
    /// The value in a form that [`read`](ChangeKey::read) accepts; `None` for another kind of change.
    pub text: fn(&LinkChange) -> Option<String>,
    /// Whether both directions have the same value, so that a change of the whole link applies to both. A loss applies
    /// only to the data's direction, as in a link's specification.
    pub both_ways: fn(&LinkDirection, &LinkDirection) -> bool,
}

/// All keys of `[[change]]` except `at` and `link`.
pub const CHANGE_KEYS: &[ChangeKey] = &[
    ChangeKey {
        name: "rate",
        read: |text| values::rate(text).map(LinkChange::Rate),
        text: |change| match change {
            LinkChange::Rate(rate) => Some(values::rate_text(*rate)),
            _ => None,
        },
        both_ways: |forward, reverse| forward.rate == reverse.rate,
    },
    ChangeKey {
        name: "delay",
        read: |text| values::delay(text).map(LinkChange::Delay),
        text: |change| match change {
            LinkChange::Delay(delay) => Some(values::time_text(*delay)),
            _ => None,
        },
        both_ways: |forward, reverse| forward.delay == reverse.delay,
    },
    ChangeKey {
        name: "loss",
        read: |text| LossSpec::parse_all(text).map(LinkChange::Loss),
        text: |change| match change {
            LinkChange::Loss(loss) => Some(values::loss_text(loss)),
            _ => None,
        },
        both_ways: |_, _| false,
    },
    ChangeKey {
        name: "mtu",
        read: |text| values::mtu(text).map(LinkChange::Mtu),
        text: |change| match change {
            LinkChange::Mtu(mtu) => Some(values::mtu_text(*mtu)),
            _ => None,
        },
        both_ways: |forward, reverse| forward.impairments.mtu == reverse.impairments.mtu,
    },
];

/// The key of that name.
///
/// # Errors
/// An unknown name, with a suggestion.
pub fn find(name: &str) -> Result<&'static ChangeKey, SpecError> {
    CHANGE_KEYS.iter().find(|k| k.name == name).ok_or_else(|| {
        let names: Vec<&str> = CHANGE_KEYS.iter().map(|k| k.name).collect();
        SpecError::unknown("key", name, &names)
    })
}
