//! Which controller, and whether the kernel's TCP can feed it.

use crate::Error;
use narrows_base::{RandomKey, Settings, Spec};
use narrows_congestion::{Controller, ControllerEntry, Dialect, Environment};

/// A controller with its parameters, for connections of the kernel's TCP.
#[derive(Clone, Debug)]
pub struct Choice {
    entry: &'static ControllerEntry,
    settings: Settings,
    text: String,
}

impl Choice {
    /// Of that name, with parameters: `"vegas(alpha=2)"`.
    ///
    /// # Errors
    /// A controller that does not exist, with a suggestion, or that the kernel's TCP cannot serve.
    pub fn new(specification: &str) -> Result<Choice, Error> {
        let spec = Spec::parse(specification)?;
        let entry = narrows_congestion::find(&spec.name)?;
        let settings = entry.read(&spec)?;
        let name = entry.descriptor.name;
        if entry.is_unresponsive() {
            return Err(Error::Unresponsive(name));
        }
        let environment = Environment { dialect: Dialect::Linux, ..Environment::default() };
        entry.refuse_unread(&settings, &environment)?;
        if entry.needs_rrtp(&settings, &environment) {
            return Err(Error::NeedsRrtp(name));
        }
        Ok(Choice { entry, settings, text: specification.to_string() })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it reacts to packet delay all the time, which its own bursts lengthen.
    pub(crate) fn senses_delay(&self) -> bool {
        let mut clauses = self.entry.descriptor.senses.split(';');
        clauses.next().is_some_and(|all_the_time| all_the_time.contains("delay"))
    }

    /// Whether it reacts to ECN marks, which the kernel negotiates only if `net.ipv4.tcp_ecn` is 1.
    pub fn goes_by_marks(&self) -> bool {
        self.entry.descriptor.senses.contains("mark")
    }

    /// The default name in the kernel: `nw_rrtp`. A longer one is shortened.
    pub fn default_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let name: String = self.entry.descriptor.name.chars().map(plain).collect();
        format!("nw_{name}").chars().take(15).collect()
    }

    /// Checks a name that the user gave.
    ///
    /// # Errors
    /// A name that the kernel does not accept.
    pub fn checked_name(name: &str) -> Result<&str, Error> {
        let valid = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        if (1..=15).contains(&name.len()) && name.bytes().all(valid) {
            Ok(name)
        } else {
            Err(Error::BadName(name.to_string()))
        }
    }

    /// A controller for a connection: its number, its window, and the bytes of a full packet on the wire.
    pub(crate) fn build(&self, number: u32, window: f64, packet_bytes: u32) -> Box<dyn Controller> {
        let environment = Environment {
            initial_window: window,
            packet_bytes,
            // Controllers that Linux has behave as in Linux, unless a parameter changes that.
            dialect: Dialect::Linux,
            random_key: RandomKey::from_seed(1).numbered(u64::from(number)),
            ..Environment::default()
        };
        self.entry.build(&self.settings, &environment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controller_that_needs_packet_outcomes_is_refused() {
        let e = Choice::new("rrtp-lasthop").unwrap_err().to_string();
        assert!(e.contains("use rrtp-lasthop over rrtp"), "the protocol with its classifier: {e}");
        for name in ["tfwc", "tfrc", "tear", "scream", "fixed", "brutal"] {
            let e = Choice::new(name).unwrap_err().to_string();
            assert!(e.contains(&format!("use rrtp+{name} over rrtp")) && !e.contains('\n'), "{e}");
        }
        let e = Choice::new("vegsa").unwrap_err().to_string();
        assert!(e.contains("vegas"), "{e}");
    }

    #[test]
    fn every_other_controller_gets_a_valid_kernel_name() {
        let mut served = 0;
        for entry in narrows_congestion::CONTROLLERS.iter() {
            let Ok(choice) = Choice::new(entry.descriptor.name) else { continue };
            assert!(Choice::checked_name(&choice.default_name()).is_ok());
            assert!(choice.build(1, 10.0, 1500).send_limits().cwnd >= 1.0);
            served += 1;
        }
        assert!(served >= 12, "{served}");
        for name in ["", "nw rrtp", "sixteen_letters_", "nw/x", "nw_ü"] {
            assert!(Choice::checked_name(name).is_err(), "{name}");
        }
    }
}
