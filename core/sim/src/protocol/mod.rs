//! The protocols of a simulation: TCP, and those of `narrows_recovery` over the packet sender; presets, and the parser of
//! specifications.

mod check;
mod list;
mod preset;
mod recovery;
mod tcp_config;
mod tcp_params;

pub use list::{TCP_PROTOCOLS, built_in, every, find, named};
pub use narrows_recovery::protocol::{
    DATAGRAM_PARAMS, DatagramConfig, Family, FeedbackConfig, LENT_STREAMS, LinuxControl,
    MAX_WINDOW, OpeningExchange, PRINTED, PROTOCOLS, Protocol, ProtocolEntry, STREAM_PARAMS,
    STREAM_PREFIX, STREAMS, StreamRecovery,
};
pub use preset::{Preset, datagram_preset};
pub use recovery::{RECOVERIES, RecoveryEntry};
pub use tcp_config::{RecoveryKind, TcpConfig};
pub use tcp_params::TCP_PARAMS;

use crate::endpoints::foreign::{FOREIGN, ForeignProtocol, VisibleWindow};
use narrows_base::{FieldError, Param, RandomKey, Spec, SpecError};
use narrows_congestion::{Controller, Environment, PathHints, ReceiverSide, SimulationScope};
use narrows_recovery::protocol::{ControllerFactory, Parameters, custom_label};
use std::sync::Arc;

/// Parameters of a protocol's endpoint, without its controller's.
pub fn endpoint_params(entry: &ProtocolEntry) -> &'static [Param] {
    if entry.family == Family::Tcp { TCP_PARAMS } else { entry.datagram_params() }
}

/// A TCP protocol of a simulation.
#[derive(Clone)]
pub struct TcpProtocol {
    label: String,
    config: TcpConfig,
    controllers: ControllerFactory,
}

impl TcpProtocol {
    /// The configuration of its endpoints.
    pub fn config(&self) -> &TcpConfig {
        &self.config
    }
}

impl std::fmt::Debug for TcpProtocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TcpProtocol({}, {:?})", self.label, self.config)
    }
}

/// The protocol of a simulated flow, from which its endpoints are built.
#[derive(Clone, Debug)]
pub enum FlowProtocol {
    /// A TCP with its configuration.
    Tcp(TcpProtocol),
    /// rrtp or media, which also run over sockets.
    Datagram(Protocol),
    /// Another project's stack.
    Foreign(ForeignProtocol),
}

impl From<Protocol> for FlowProtocol {
    fn from(protocol: Protocol) -> FlowProtocol {
        FlowProtocol::Datagram(protocol)
    }
}

impl FlowProtocol {
    /// Reads `vegas(alpha=1,beta=3)` for packets of `packet_bytes` on the wire.
    ///
    /// # Errors
    /// An unknown protocol or parameter, a value out of range, a parameter that has no effect in this preset, beside
    /// the others or in a simulation, or a packet that does not fit its own headers.
    pub fn read(spec: &Spec, preset: Preset, packet_bytes: u32) -> Result<FlowProtocol, SpecError> {
        if spec.args.iter().any(|(key, _)| key.as_deref() == Some("repair")) {
            return Err(SpecError::new(format!(
                "{}: repair has no effect in a simulation, only over sockets",
                spec.name
            )));
        }
        if let Some(entry) = FOREIGN.iter().find(|entry| entry.name == spec.name) {
            if !spec.args.is_empty() {
                return Err(SpecError::new(format!("{} has no parameters", entry.name)));
            }
            return Ok(FlowProtocol::Foreign(ForeignProtocol { entry, packet_bytes }));
        }
        let entry = find(&spec.name)?;
        if entry.family != Family::Tcp {
            let base = DatagramConfig { packet_bytes, ..datagram_preset(preset, entry.family) };
            return Protocol::read_from(spec, base).map(FlowProtocol::Datagram);
        }
        let parameters = Parameters::read(spec, entry, TCP_PARAMS)?;
        let config = tcp_params::configure(entry, preset, packet_bytes, &parameters)?;
        let key = RandomKey::from_seed(0);
        let environment = config.environment(packet_bytes, key, PathHints::default());
        let usual = TcpConfig::preset(preset);
        let usual = usual.environment(packet_bytes, key, PathHints::default());
        parameters.refuse_unused(&environment, &usual)?;
        Ok(FlowProtocol::Tcp(TcpProtocol {
            label: spec.to_string(),
            config,
            controllers: parameters.factory(),
        }))
    }

    /// A TCP endpoint with a custom controller.
    ///
    /// # Errors
    /// A label that is a listed name or that cannot be sent to a peer.
    pub fn custom(
        label: &str,
        config: TcpConfig,
        make: impl Fn(&Environment) -> Box<dyn Controller> + Send + Sync + 'static,
    ) -> Result<FlowProtocol, SpecError> {
        Ok(FlowProtocol::Tcp(TcpProtocol {
            label: custom_label(label)?,
            config,
            controllers: ControllerFactory::new(Arc::new(make), None),
        }))
    }

    /// Checks whether its endpoint can be built; for protocols from [`read`](FlowProtocol::read) it always can.
    ///
    /// # Errors
    /// The first field of a custom endpoint's configuration with an invalid value.
    pub fn check(&self) -> Result<(), FieldError> {
        match self {
            FlowProtocol::Tcp(p) => check::tcp(&p.config),
            FlowProtocol::Datagram(p) => p.check(),
            FlowProtocol::Foreign(_) => Ok(()),
        }
    }

    /// The specification as given, or the custom label.
    pub fn label(&self) -> &str {
        match self {
            FlowProtocol::Tcp(p) => &p.label,
            FlowProtocol::Datagram(p) => p.label(),
            FlowProtocol::Foreign(p) => p.entry.name,
        }
    }
    /// The scope in which a simulation of it must run, if any.
    pub fn scope(&self) -> Option<SimulationScope> {
        match self {
            FlowProtocol::Tcp(p) => p.controllers.scope(),
            FlowProtocol::Datagram(p) => p.scope(),
            FlowProtocol::Foreign(_) => None,
        }
    }
    /// Distinguishes protocols with the same label; 0 for built-in ones.
    pub fn version(&self) -> u64 {
        match self {
            FlowProtocol::Tcp(p) => p.controllers.version(),
            FlowProtocol::Datagram(p) => p.version(),
            FlowProtocol::Foreign(_) => 0,
        }
    }
    /// Bytes of a full data packet on the wire.
    pub fn packet_bytes(&self) -> u32 {
        match self {
            FlowProtocol::Tcp(p) => p.config().packet_bytes,
            FlowProtocol::Datagram(p) => p.config().packet_bytes,
            FlowProtocol::Foreign(p) => p.packet_bytes,
        }
    }
    /// The path hints among its parameters.
    pub fn hints(&self) -> PathHints {
        match self {
            FlowProtocol::Tcp(_) | FlowProtocol::Foreign(_) => PathHints::default(),
            FlowProtocol::Datagram(p) => p.hints(),
        }
    }
    /// The configuration of a protocol over the packet sender; `None` over TCP.
    pub fn datagram(&self) -> Option<&DatagramConfig> {
        match self {
            FlowProtocol::Tcp(_) | FlowProtocol::Foreign(_) => None,
            FlowProtocol::Datagram(p) => Some(p.config()),
        }
    }
    /// The input of its controller's constructor; `random_key` is the flow's key.
    pub fn environment(
        &self,
        packet_bytes: u32,
        random_key: RandomKey,
        hints: PathHints,
    ) -> Environment {
        match self {
            FlowProtocol::Tcp(p) => p.config().environment(packet_bytes, random_key, hints),
            FlowProtocol::Datagram(p) => p.config().environment(packet_bytes, random_key, hints),
            FlowProtocol::Foreign(_) => {
                Environment { packet_bytes, random_key, hints, ..Environment::default() }
            }
        }
    }
    /// Builds its controller alone, for an endpoint that is built elsewhere. A foreign stack's does nothing.
    pub fn controller(&self, environment: &Environment) -> Box<dyn Controller> {
        match self {
            FlowProtocol::Tcp(p) => p.controllers.controller(environment),
            FlowProtocol::Datagram(p) => p.controller(environment),
            FlowProtocol::Foreign(_) => Box::new(VisibleWindow::default()),
        }
    }
    /// Builds its controller's receiver side, if there is one.
    pub fn receiver_side(&self, environment: &Environment) -> Option<Box<dyn ReceiverSide>> {
        match self {
            FlowProtocol::Tcp(p) => p.controllers.receiver_side(environment),
            FlowProtocol::Datagram(p) => p.receiver_side(environment),
            FlowProtocol::Foreign(_) => None,
        }
    }
    /// The same protocol with each controller replaced by the result of `wrap`, to observe or override its decisions.
    /// A foreign stack keeps its own.
    #[must_use]
    pub fn wrapped(
        self,
        wrap: impl Fn(&Environment, Box<dyn Controller>) -> Box<dyn Controller> + Send + Sync + 'static,
    ) -> FlowProtocol {
        match self {
            FlowProtocol::Tcp(p) => {
                FlowProtocol::Tcp(TcpProtocol { controllers: p.controllers.wrapped(wrap), ..p })
            }
            FlowProtocol::Datagram(p) => FlowProtocol::Datagram(p.wrapped(wrap)),
            FlowProtocol::Foreign(p) => FlowProtocol::Foreign(p),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::descriptor::ParamKind;

    /// The choices of a protocol's parameters equal the lists, so that every entry can be chosen.
    #[test]
    fn params_of_tcp_offer_the_listed_recoveries() {
        let param = TCP_PARAMS.iter().find(|p| p.name == "recovery").unwrap();
        let ParamKind::Choice(words) = param.kind else { panic!("no choice") };
        assert_eq!(words[1..], RECOVERIES.names());
        for p in every() {
            let protocol = FlowProtocol::read(&Spec::named(p.name), Preset::Rfc, 1000).unwrap();
            assert_eq!(protocol.check(), Ok(()), "{}", p.name);
        }
    }

    /// Media use the same reports and pacing as over sockets. In preset `ns2` they use those of the papers'
    /// simulations, unless parameters change that.
    #[test]
    fn media_in_preset_ns2_report_and_pace_as_in_papers() {
        let of = |text: &str, preset| {
            let protocol = FlowProtocol::read(&Spec::parse(text).unwrap(), preset, 1000).unwrap();
            let config = protocol.datagram().unwrap();
            (config.feedback.ack_every, config.window_pacing)
        };
        for protocol in ["tfrc", "tfwc", "tear-wireless", "fixed"] {
            assert_eq!(of(protocol, Preset::Rfc), (32, true), "{protocol}");
        }
        assert_eq!(of("tfrc", Preset::Ns2), (0, false));
        assert_eq!(of("tfwc", Preset::Ns2), (1, false));
        assert_eq!(of("tfwc(ack-every=32,window-pacing=on)", Preset::Ns2), (32, true));
        assert_eq!(of("rrtp+tfwc", Preset::Ns2), (32, true));
    }
}
