//! The contract of a loss process, and its entry in the list.

use crate::LinkPacket;
use narrows_base::descriptor::ParamKind;
use narrows_base::list::Listed;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, RandomKey, Settings, SpecError, Time};

/// Decides for each packet whether it is lost. Packets come in the order in which their
/// transmission ends.
///
/// A process that loses each packet above 1,000 bytes:
///
/// ```
/// use narrows_base::Time;
/// use narrows_link::{LinkPacket, loss::LossProcess};
///
/// struct Large;
///
/// impl LossProcess for Large {
///     fn strikes(&mut self, _at: Time, packet: &dyn LinkPacket) -> bool {
///         packet.size() > 1000
///     }
/// }
/// ```
pub trait LossProcess: Send {
    /// Whether this packet is lost. Its transmission ended at `at`.
    fn strikes(&mut self, at: Time, packet: &dyn LinkPacket) -> bool;
}

/// An entry of the list: a descriptor and a constructor.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LossEntry {
    /// Name, parameters and source.
    pub descriptor: &'static Descriptor,
    /// Builds the process for a link with the given random key.
    pub build: fn(&Settings, RandomKey) -> Box<dyn LossProcess>,
    /// Checks that the parameters fit together; each alone is already within its descriptor's
    /// range.
    pub check: fn(&Settings) -> Result<(), SpecError>,
}

impl LossEntry {
    /// An entry without constraints between its parameters.
    pub const fn new(
        descriptor: &'static Descriptor,
        build: fn(&Settings, RandomKey) -> Box<dyn LossProcess>,
    ) -> LossEntry {
        LossEntry { descriptor, build, check: |_| Ok(()) }
    }
}

impl Listed for LossEntry {
    fn name(&self) -> &'static str {
        self.descriptor.name
    }
}

/// A parameter from 0 to 1.
pub const fn probability(
    name: &'static str,
    help: &'static str,
    default: f64,
    origin: &'static str,
) -> Param {
    Param {
        name,
        help,
        kind: ParamKind::Number { unit: Unit::Fraction, min: 0.0, max: 1.0, default },
        origin,
    }
}
