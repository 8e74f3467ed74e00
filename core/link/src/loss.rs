//! Loss processes: which packets a link loses after transmission.
//!
//! The list and the reading of specifications; the contract and each process are in files of their own. `docs/sources.md`
//! has the definitions.

mod burst;
mod correlated;
mod outage;
mod process;
mod single;

pub use process::{LossEntry, LossProcess};

use narrows_base::list::List;
use narrows_base::{RandomKey, Settings, Spec, SpecError, units};

/// All loss processes.
pub static LOSSES: List<LossEntry> = List::new(
    "loss process",
    &[
        single::NONE,
        single::UNIFORM,
        single::PERIODIC,
        single::LIST,
        burst::GILBERT_ELLIOTT,
        burst::BURST,
        burst::FADE,
        outage::OUTAGE,
        correlated::CORRELATED,
        correlated::STATE,
    ],
);

/// The specification of a loss process, read and checked, from which any link can build it.
#[derive(Clone, Debug)]
pub struct LossSpec {
    spec: Spec,
    entry: &'static LossEntry,
    settings: Settings,
}

impl PartialEq for LossSpec {
    fn eq(&self, other: &LossSpec) -> bool {
        // The name in the specification is the entry's.
        self.spec == other.spec && self.settings == other.settings
    }
}

impl LossSpec {
    /// Reads a list of loss processes: `1%`, `0.01`, `ge(g=0.13%,h=12.5%)`, or several joined by
    /// `+`.
    ///
    /// # Errors
    /// An unknown process, or a parameter that is unknown or out of range.
    pub fn parse_all(text: &str) -> Result<Vec<LossSpec>, SpecError> {
        let mut out = Vec::new();
        for piece in split_plus(text) {
            let one = LossSpec::parse(piece.trim())?;
            if one.spec.name != "none" {
                out.push(one);
            }
        }
        Ok(out)
    }

    fn parse(text: &str) -> Result<LossSpec, SpecError> {
        let spec = if text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
            units::share("loss", text)?;
            Spec { name: "uniform".into(), args: vec![(None, text.to_string())] }
        } else {
            Spec::parse(text)?
        };
        let entry = LOSSES.find(&spec.name)?;
        let settings = Settings::read(&spec, entry.descriptor.params)?;
        (entry.check)(&settings)?;
        settings.refuse_unread(entry.descriptor.name, entry.descriptor.params, |s| {
            drop((entry.build)(s, RandomKey::from_seed(0)));
        })?;
        Ok(LossSpec { spec, entry, settings })
    }

    /// The complete specification as text, which [`parse_all`](LossSpec::parse_all) reads.
    pub fn text(&self) -> String {
        self.spec.to_string()
    }

    /// Builds the process for a link with the key `random_key`.
    pub fn build(&self, random_key: RandomKey) -> Box<dyn LossProcess> {
        (self.entry.build)(&self.settings, random_key)
    }
}

/// Whether `text` ends in a number's `e` (`1e`, but not `ge`), so that a following `+` belongs to
/// the exponent.
fn ends_in_exponent(text: &[u8]) -> bool {
    matches!(text, [.., b'0'..=b'9' | b'.', b'e' | b'E'])
}

/// Splits at `+` outside parentheses and outside exponents such as `1e+3`.
fn split_plus(text: &str) -> Vec<&str> {
    let mut depth = 0i32;
    let mut from = 0;
    let mut out = Vec::new();
    let bytes = text.as_bytes();
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            '+' if depth == 0 && i > from && !ends_in_exponent(&bytes[from..i]) => {
                out.push(&text[from..i]);
                from = i + 1;
            }
            _ => {}
        }
    }
    out.push(&text[from..]);
    out
}

#[cfg(test)]
#[path = "loss/tests.rs"]
mod tests;
