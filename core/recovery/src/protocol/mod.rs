//! Protocols over the packet sender: a controller, its parameters, and the configuration of both ends. The same run over
//! sockets and in simulations.

pub mod check;

mod config;
mod entry;
mod list;
mod parameters;
mod params;

pub use config::{DatagramConfig, FeedbackConfig, MAX_WINDOW, OpeningExchange, StreamRecovery};
pub use entry::{Family, LinuxControl, PRINTED, ProtocolEntry, STREAM_PREFIX};
pub use list::{LENT_STREAMS, PROTOCOLS, STREAMS, every};
pub use parameters::{ControllerFactory, MakeController, MakeReceiverSide, Parameters};
pub use params::{DATAGRAM_PARAMS, STREAM_PARAMS};

use narrows_base::{FieldError, Param, RandomKey, Spec, SpecError};
use narrows_congestion::{Controller, Environment, PathHints, ReceiverSide, SimulationScope};
use std::sync::Arc;

/// Bytes of a full data packet on a link of Ethernet: a datagram of 1472 bytes, and 28 bytes of IP and UDP headers.
pub const PACKET_BYTES: u32 = 1500;

/// A protocol over the packet sender: rrtp, another controller's stream (`rrtp+bbr`), or media.
///
/// ```
/// use narrows_recovery::protocol::Protocol;
///
/// let rrtp = Protocol::rrtp();
/// let bbr: Protocol = "rrtp+bbr".parse()?;
/// assert_eq!((rrtp.label(), bbr.label()), ("rrtp", "rrtp+bbr"));
/// # Ok::<(), narrows_base::SpecError>(())
/// ```
#[derive(Clone)]
pub struct Protocol {
    label: String,
    /// Whether it was built from a custom controller.
    is_custom: bool,
    config: DatagramConfig,
    controllers: ControllerFactory,
}

impl std::fmt::Debug for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Protocol({}, {:?})", self.label, self.config)
    }
}

/// Finds a listed protocol over the packet sender by its name.
///
/// # Errors
/// An unknown name, with a suggestion.
pub fn find(name: &str) -> Result<&'static ProtocolEntry, SpecError> {
    let lent = PROTOCOLS.lent().into_iter().chain(LENT_STREAMS.lent()).collect::<Vec<_>>();
    find_among(name, every().chain(lent), PROTOCOLS.iter())
}

/// Finds a protocol by its name among `all`, of which `named` have a name of their own.
///
/// # Errors
/// An unknown name, with a suggestion.
pub fn find_among(
    name: &str,
    all: impl Iterator<Item = &'static ProtocolEntry> + Clone,
    named: impl Iterator<Item = &'static ProtocolEntry>,
) -> Result<&'static ProtocolEntry, SpecError> {
    all.clone().find(|p| p.name == name).ok_or_else(|| {
        let all: Vec<&str> = all.map(|p| p.name).collect();
        if let Ok(controller) = narrows_congestion::find(name) {
            let name = controller.descriptor.name;
            return SpecError::new(format!(
                "'{name}' is a controller without a protocol of that name: write {STREAM_PREFIX}{name}"
            ));
        }
        if narrows_base::spec::nearest(name, &all).is_some() {
            return SpecError::unknown("protocol", name, &all);
        }
        let mut names: Vec<&str> = named.map(|p| p.name).collect();
        names.push("rrtp+NAME for every controller");
        SpecError::unknown("protocol", name, &names)
    })
}

impl ProtocolEntry {
    /// Parameters of its endpoint over the packet sender, without its controller's.
    pub fn datagram_params(&self) -> &'static [Param] {
        if self.family == Family::Media { DATAGRAM_PARAMS } else { STREAM_PARAMS }
    }
}

/// Limit on a label's length in bytes: labels are sent to peers.
pub const MAX_LABEL: usize = 128;

/// Whether a controller's label can be sent to a peer.
pub fn is_printable_label(label: &str) -> bool {
    label.len() <= MAX_LABEL && label.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
}

/// Checks the label of a custom controller.
///
/// # Errors
/// A label that begins with the name of a listed protocol or controller, or that cannot be sent to a peer.
pub fn custom_label(label: &str) -> Result<String, SpecError> {
    let name = label.split('(').next().unwrap_or_default().trim();
    if name.is_empty() || !is_printable_label(label) {
        return Err(SpecError::new(format!(
            "a protocol cannot have the label '{}': give a name of at most 128 printable ASCII characters",
            label.escape_debug()
        )));
    }
    if find(name).is_ok() || narrows_congestion::find(name).is_ok() {
        return Err(SpecError::new(format!(
            "the label '{label}' is taken: '{name}' is a listed protocol or controller"
        )));
    }
    Ok(label.to_string())
}

impl Protocol {
    /// rrtp with its own controller, for packets of [`PACKET_BYTES`].
    ///
    /// # Panics
    /// Never: the list has rrtp, and its defaults are valid.
    pub fn rrtp() -> Protocol {
        Protocol::read(&Spec::named("rrtp"), PACKET_BYTES).expect("rrtp is listed")
    }

    /// A stream over rrtp with this controller, for packets of [`PACKET_BYTES`]: `bbr` is the protocol `rrtp+bbr`.
    ///
    /// # Errors
    /// An unknown controller, with a suggestion.
    pub fn with_controller(name: &str) -> Result<Protocol, SpecError> {
        Protocol::read(&Spec::named(&format!("{STREAM_PREFIX}{name}")), PACKET_BYTES)
    }

    /// Reads `rrtp+vegas(alpha=1,beta=3)` for packets of `packet_bytes` on the wire.
    ///
    /// # Errors
    /// An unknown protocol or parameter, a value out of range, a parameter that has no effect, or a packet that does not
    /// fit its own headers.
    pub fn read(spec: &Spec, packet_bytes: u32) -> Result<Protocol, SpecError> {
        Protocol::read_from(spec, DatagramConfig { packet_bytes, ..DatagramConfig::default() })
    }

    /// Like [`read`](Protocol::read), from another configuration than the default one.
    ///
    /// # Errors
    /// As [`read`](Protocol::read).
    pub fn read_from(spec: &Spec, base: DatagramConfig) -> Result<Protocol, SpecError> {
        let entry = find(&spec.name)?;
        let parameters = Parameters::read(spec, entry, entry.datagram_params())?;
        let config = params::configure(entry, &base, &parameters.endpoint)?;
        if !["shared", "uncoupled"].contains(&config.coupling)
            && (entry.controller != "reno" || parameters.own.choice("like") == "linux")
        {
            return Err(SpecError::new(format!(
                "{}: coupling={} changes the additive increase of rrtp+reno, not like=linux, and of no other controller",
                spec, config.coupling
            )));
        }
        let protocol = Protocol {
            label: spec.to_string(),
            is_custom: false,
            config,
            controllers: parameters.factory(),
        };
        let key = RandomKey::from_seed(0);
        let hints = protocol.hints();
        let environment = protocol.environment(protocol.packet_bytes(), key, hints);
        parameters.refuse_unused(&environment, &base.environment(base.packet_bytes, key, hints))?;
        Ok(protocol)
    }

    /// A protocol with a custom controller, and its receiver side if it has one. Over sockets the peer needs a
    /// controller's receiver side. It selects it by this label, among the custom protocols of its connection's
    /// configuration, and refuses the connection if the label is unknown to it.
    ///
    /// # Errors
    /// A label that begins with the name of a listed protocol or controller, since a peer would take it for that one. A
    /// label that cannot be sent to a peer: empty, longer than 128 bytes, or not printable ASCII.
    pub fn custom(
        label: &str,
        config: DatagramConfig,
        make: impl Fn(&Environment) -> Box<dyn Controller> + Send + Sync + 'static,
        make_receiver: Option<Arc<MakeReceiverSide>>,
    ) -> Result<Protocol, SpecError> {
        Ok(Protocol {
            label: custom_label(label)?,
            is_custom: true,
            config,
            controllers: ControllerFactory::new(Arc::new(make), make_receiver),
        })
    }

    /// Checks whether its endpoint can be built; for protocols from [`read`](Protocol::read) it always can.
    ///
    /// # Errors
    /// The first field of a custom configuration with an invalid value.
    pub fn check(&self) -> Result<(), FieldError> {
        check::datagram(&self.config, self.controllers.has_receiver_side())
    }

    /// The specification as given, or the custom label.
    pub fn label(&self) -> &str {
        &self.label
    }
    /// The scope in which a simulation of it must run, if any.
    pub fn scope(&self) -> Option<SimulationScope> {
        self.controllers.scope()
    }
    /// Distinguishes protocols with the same label; 0 for built-in ones.
    pub fn version(&self) -> u64 {
        self.controllers.version()
    }
    /// The name that is sent to a peer; empty for a custom controller without a receiver side.
    pub fn announced(&self) -> &str {
        let has_no_receiver = !self.controllers.has_receiver_side();
        if self.is_custom && has_no_receiver { "" } else { &self.label }
    }
    /// The configuration of its endpoints.
    pub fn config(&self) -> &DatagramConfig {
        &self.config
    }
    /// Bytes of a full data packet on the wire.
    pub fn packet_bytes(&self) -> u32 {
        self.config.packet_bytes
    }
    /// The path hints among its parameters.
    pub fn hints(&self) -> PathHints {
        self.config.hints
    }
    /// The input of its controller's constructor; `random_key` is the flow's key.
    pub fn environment(
        &self,
        packet_bytes: u32,
        random_key: RandomKey,
        hints: PathHints,
    ) -> Environment {
        self.config.environment(packet_bytes, random_key, hints)
    }
    /// Builds its controller alone, for an endpoint that is built elsewhere.
    pub fn controller(&self, environment: &Environment) -> Box<dyn Controller> {
        self.controllers.controller(environment)
    }
    /// Builds its controller's receiver side, if there is one.
    pub fn receiver_side(&self, environment: &Environment) -> Option<Box<dyn ReceiverSide>> {
        self.controllers.receiver_side(environment)
    }
    /// The same protocol with each controller replaced by the result of `wrap`, to observe or override its decisions.
    #[must_use]
    pub fn wrapped(
        self,
        wrap: impl Fn(&Environment, Box<dyn Controller>) -> Box<dyn Controller> + Send + Sync + 'static,
    ) -> Protocol {
        Protocol { controllers: self.controllers.wrapped(wrap), ..self }
    }
}

impl std::str::FromStr for Protocol {
    type Err = SpecError;

    /// Reads a specification for packets of [`PACKET_BYTES`].
    fn from_str(text: &str) -> Result<Protocol, SpecError> {
        Protocol::read(&Spec::parse(text)?, PACKET_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::descriptor::ParamKind;

    /// The choices of a protocol's parameters equal the lists, so that every entry can be chosen.
    #[test]
    fn params_of_streams_offer_the_listed_classifiers() {
        let param = STREAM_PARAMS.iter().find(|p| p.name == "classifier").unwrap();
        let ParamKind::Choice(words) = param.kind else { panic!("no choice") };
        assert_eq!(words[1..], crate::loss_classifier::LOSS_CLASSIFIERS.names());
        for p in every() {
            let protocol = Protocol::read(&Spec::named(p.name), 1000).unwrap();
            assert_eq!(protocol.check(), Ok(()), "{}", p.name);
        }
    }
}
