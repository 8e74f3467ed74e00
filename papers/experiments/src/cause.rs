//! Causes of differences.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a result differs from the stated one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DifferenceCause {
    /// The paper does not give a setting, or its text has lost it.
    Setting,
    /// Another value of a setting that the paper does not give gives this cell, but not the others of its figure.
    Conflict,
    /// The paper's TCP is not the one that is run.
    Tcp,
    /// The paper's algorithm, as printed, does not do it.
    Algorithm,
    /// A reading or an addition of Narrows, or a run shorter than the paper's.
    Reading,
    /// Chance decides a claim about every run, or the paper shows one random trace.
    Chance,
    /// The paper contradicts itself or arithmetic.
    Paper,
    /// The cause is not known.
    #[default]
    Untraced,
}

/// All causes, in the order of the page.
pub const CAUSES: [DifferenceCause; 8] = [
    DifferenceCause::Setting,
    DifferenceCause::Conflict,
    DifferenceCause::Tcp,
    DifferenceCause::Algorithm,
    DifferenceCause::Reading,
    DifferenceCause::Chance,
    DifferenceCause::Paper,
    DifferenceCause::Untraced,
];

impl fmt::Display for DifferenceCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DifferenceCause::Setting => "a setting that the paper does not give",
            DifferenceCause::Conflict => {
                "another value of the setting, which the rest of the figure contradicts"
            }
            DifferenceCause::Tcp => "another TCP than the paper's",
            DifferenceCause::Algorithm => "the paper's algorithm as printed",
            DifferenceCause::Reading => "our reading or a shorter run",
            DifferenceCause::Chance => "chance, or one random trace in the paper",
            DifferenceCause::Paper => "the paper contradicts itself or arithmetic",
            DifferenceCause::Untraced => "cause not known",
        })
    }
}

/// `#3`, a row of the experiment `here`, or `s0-f4.8#14`, a row of another, in the second form.
///
/// # Errors
/// The text has neither form.
pub fn qualified(row: &str, here: &str) -> Result<String, String> {
    let fault = || format!("'{row}' is neither #CLAIM nor EXPERIMENT#CLAIM");
    let (id, number) = row.split_once('#').ok_or_else(fault)?;
    let number: usize = number.parse().map_err(|_| fault())?;
    Ok(format!("{}#{number}", if id.is_empty() { here } else { id }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_named_by_its_experiment_and_number() {
        assert_eq!(qualified("#3", "s0-f1").unwrap(), "s0-f1#3");
        assert_eq!(qualified("s4-f2#14", "s0-f1").unwrap(), "s4-f2#14");
        for wrong in ["3", "claim 3", "#", "#x", "s0-f1#"] {
            assert!(qualified(wrong, "s0-f1").is_err(), "{wrong}");
        }
    }
}
