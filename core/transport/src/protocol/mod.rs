//! The list of protocols, and the parser of protocol specifications.

mod check;
mod datagram_config;
mod datagram_params;
mod entry;
mod list;
mod recovery;
mod tcp_config;
mod tcp_params;

pub use datagram_config::{DatagramConfig, FeedbackConfig, OpeningExchange, StreamRecovery};
pub use datagram_params::{DATAGRAM_PARAMS, STREAM_PARAMS};
pub use entry::{Family, LinuxControl, PRINTED, ProtocolEntry, STREAM_PREFIX};
pub use list::{LENT_STREAMS, PROTOCOLS, STREAMS, every};
pub use recovery::{RECOVERIES, RecoveryEntry};
pub use tcp_config::{MAX_WINDOW, Preset, RecoveryKind, TcpConfig};
pub use tcp_params::TCP_PARAMS;

use narrows_base::{FieldError, Param, RandomKey, Settings, Spec, SpecError};
use narrows_congestion::{
    Controller, ControllerEntry, Environment, PathHints, ReceiverSide, SimulationScope,
};
use std::sync::Arc;

/// Builds a controller for one flow.
pub type MakeController = dyn Fn(&Environment) -> Box<dyn Controller> + Send + Sync;
/// Builds the receiver side of a controller for one flow.
pub type MakeReceiverSide = dyn Fn(&Environment) -> Box<dyn ReceiverSide> + Send + Sync;

/// The configuration of a protocol's endpoints.
#[derive(Clone, Debug)]
pub enum EndConfig {
    /// TCP's, for simulation only.
    Tcp(TcpConfig),
    /// rrtp's, for simulation or sockets.
    Datagram(DatagramConfig),
}

/// A checked protocol specification, from which endpoints are built.
#[derive(Clone)]
pub struct Protocol {
    label: String,
    /// Whether it was built from a custom controller.
    is_custom: bool,
    ends: EndConfig,
    preset: Preset,
    make: Arc<MakeController>,
    make_receiver: Option<Arc<MakeReceiverSide>>,
    scope: Option<SimulationScope>,
    version: u64,
}

impl std::fmt::Debug for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Protocol({}, {:?})", self.label, self.ends)
    }
}

impl ProtocolEntry {
    /// Parameters of its endpoint, without its controller's.
    pub fn endpoint_params(&self) -> &'static [Param] {
        match self.family {
            Family::Tcp => TCP_PARAMS,
            Family::Media => DATAGRAM_PARAMS,
            Family::Rrtp => STREAM_PARAMS,
        }
    }
}

/// Finds a listed protocol by its name. Papers call `reno` SACK TCP: it is also found as `sack`.
///
/// # Errors
/// An unknown name, with a suggestion.
pub fn find(name: &str) -> Result<&'static ProtocolEntry, SpecError> {
    let lent: Vec<_> = PROTOCOLS.lent().into_iter().chain(LENT_STREAMS.lent()).collect();
    let all = every().chain(lent);
    let entry_name = if name == "sack" { "reno" } else { name };
    all.clone().find(|p| p.name == entry_name).ok_or_else(|| {
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
        let mut names: Vec<&str> = PROTOCOLS.iter().map(|p| p.name).collect();
        names.push("rrtp+NAME for every controller");
        SpecError::unknown("protocol", name, &names)
    })
}

/// Limit on a label's length in bytes: labels are sent to peers.
pub(crate) const MAX_LABEL: usize = 128;

/// Whether a controller's label can be sent to a peer.
pub(crate) fn is_sayable(label: &str) -> bool {
    label.len() <= MAX_LABEL && label.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
}

/// Checks the label of a custom controller.
fn unlisted(label: &str) -> Result<String, SpecError> {
    let name = label.split('(').next().unwrap_or_default().trim();
    if name.is_empty() || !is_sayable(label) {
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

/// Rejects an initial window or threshold that the controller ignores.
fn refuse_unused_start(
    entry: &ProtocolEntry,
    controller: &ControllerEntry,
    (own, endpoint): (&Settings, &Settings),
    (preset, environment): (Preset, &Environment),
) -> Result<(), SpecError> {
    let usual = match entry.family {
        Family::Tcp => {
            let c = TcpConfig::preset(preset);
            (c.initial_window, c.initial_ssthresh)
        }
        Family::Media | Family::Rrtp => {
            let c = DatagramConfig::preset(preset);
            (c.initial_window, c.initial_ssthresh)
        }
    };
    let starts = [
        ("initial-window", Environment { initial_window: usual.0, ..*environment }),
        ("initial-ssthresh", Environment { initial_ssthresh: usual.1, ..*environment }),
    ];
    for (name, other) in starts {
        let is_endpoints = entry.endpoint_params().iter().any(|p| p.name == name);
        if is_endpoints
            && endpoint.given(name)
            && (other.initial_window, other.initial_ssthresh)
                != (environment.initial_window, environment.initial_ssthresh)
            && let Some(with) = controller.first_limits(own, environment)
            && Some(with) == controller.first_limits(own, &other)
        {
            return Err(SpecError::new(format!(
                "{}: {name}={} has no effect on {}",
                entry.name,
                endpoint.number(name),
                controller.descriptor.name
            )));
        }
    }
    Ok(())
}

impl Protocol {
    /// Reads `vegas(alpha=1,beta=3)` for packets of `packet_bytes` on the wire.
    ///
    /// # Errors
    /// An unknown protocol or parameter, a value out of range, a parameter that has no effect in this preset or beside
    /// the others, or a packet that does not fit its own headers.
    pub fn read(spec: &Spec, preset: Preset, packet_bytes: u32) -> Result<Protocol, SpecError> {
        let entry = find(&spec.name)?;
        let controller = narrows_congestion::find(entry.controller)?;
        let endpoint_params = entry.endpoint_params();
        let (mut own, mut endpoint) = (Spec::named(entry.name), Spec::named(entry.name));
        for (key, value) in &spec.args {
            let is_own = key
                .as_ref()
                .is_none_or(|k| controller.descriptor.params.iter().any(|p| p.name == k));
            let is_endpoint =
                key.as_ref().is_some_and(|k| endpoint_params.iter().any(|p| p.name == k));
            if !is_own && !is_endpoint {
                let mut known: Vec<&str> =
                    controller.descriptor.params.iter().map(|p| p.name).collect();
                known.extend(endpoint_params.iter().map(|p| p.name));
                let key = key.as_deref().unwrap_or_default();
                return Err(SpecError::unknown(
                    &format!("parameter of {}", entry.name),
                    key,
                    &known,
                ));
            }
            let side = if is_own { &mut own } else { &mut endpoint };
            side.args.push((key.clone(), value.clone()));
        }
        let settings = Settings::read(&own, controller.descriptor.params)?;
        let given = Settings::read(&endpoint, endpoint_params)?;
        let ends = match entry.family {
            Family::Tcp => {
                let settings = (&settings, &given);
                EndConfig::Tcp(tcp_params::configure(entry, preset, packet_bytes, settings)?)
            }
            Family::Media | Family::Rrtp => EndConfig::Datagram(datagram_params::configure(
                entry,
                preset,
                packet_bytes,
                &given,
            )?),
        };
        let make_receiver = controller.receiver.map(|build| {
            let settings = settings.clone();
            Arc::new(move |environment: &Environment| build(&settings, environment))
                as Arc<MakeReceiverSide>
        });
        let used = settings.clone();
        let make =
            Arc::new(move |environment: &Environment| controller.build(&settings, environment));
        let protocol = Protocol {
            label: spec.to_string(),
            is_custom: false,
            ends,
            preset,
            make,
            make_receiver,
            scope: controller.scope,
            version: controller.version,
        };
        let key = RandomKey::from_seed(0);
        let environment = protocol.environment(packet_bytes, key, protocol.hints());
        controller.refuse_unread(&used, &environment)?;
        refuse_unused_start(entry, controller, (&used, &given), (preset, &environment))?;
        Ok(protocol)
    }

    /// Like [`read`](Protocol::read), for a simulation, which ignores some parameters of real endpoints.
    ///
    /// # Errors
    /// As [`read`](Protocol::read), and a parameter that applies only over sockets.
    pub fn read_simulated(
        spec: &Spec,
        preset: Preset,
        packet_bytes: u32,
    ) -> Result<Protocol, SpecError> {
        if spec.args.iter().any(|(key, _)| key.as_deref() == Some("repair")) {
            return Err(SpecError::new(format!(
                "{}: repair has no effect in a simulation, only over sockets",
                spec.name
            )));
        }
        Protocol::read(spec, preset, packet_bytes)
    }

    /// A TCP endpoint with a custom controller.
    ///
    /// # Errors
    /// A label that is a listed name or cannot be sent to a peer: see [`custom_media`](Protocol::custom_media).
    pub fn custom(
        label: &str,
        config: TcpConfig,
        make: impl Fn(&Environment) -> Box<dyn Controller> + Send + Sync + 'static,
    ) -> Result<Protocol, SpecError> {
        Ok(Protocol {
            label: unlisted(label)?,
            is_custom: true,
            ends: EndConfig::Tcp(config),
            preset: Preset::Rfc,
            make: Arc::new(make),
            make_receiver: None,
            scope: None,
            version: 0,
        })
    }

    /// A datagram endpoint with a custom controller, and its receiver side if it has one. Over sockets the peer needs a
    /// controller's receiver side. It selects it by this label, in
    /// [`ConnectionConfig::custom`](crate::connection::ConnectionConfig::custom), and refuses the connection if the
    /// label is unknown to it.
    ///
    /// # Errors
    /// A label that begins with the name of a listed protocol or controller, since a peer would take it for that one. A
    /// label that cannot be sent to a peer: empty, longer than 128 bytes, or not printable ASCII.
    pub fn custom_media(
        label: &str,
        config: DatagramConfig,
        make: impl Fn(&Environment) -> Box<dyn Controller> + Send + Sync + 'static,
        make_receiver: Option<Arc<MakeReceiverSide>>,
    ) -> Result<Protocol, SpecError> {
        Ok(Protocol {
            label: unlisted(label)?,
            is_custom: true,
            ends: EndConfig::Datagram(config),
            preset: Preset::Rfc,
            make: Arc::new(make),
            make_receiver,
            scope: None,
            version: 0,
        })
    }

    /// Checks whether its endpoint can be built; for protocols from [`read`](Protocol::read) it always can.
    ///
    /// # Errors
    /// The first field of a custom endpoint's configuration with an invalid value.
    pub fn check(&self) -> Result<(), FieldError> {
        match &self.ends {
            EndConfig::Tcp(c) => check::tcp(c),
            EndConfig::Datagram(c) => check::datagram(c, self.make_receiver.is_some()),
        }
    }

    /// The specification as given, or the custom label.
    pub fn label(&self) -> &str {
        &self.label
    }
    /// The scope in which a simulation of it must run, if any.
    pub fn scope(&self) -> Option<SimulationScope> {
        self.scope
    }
    /// Distinguishes protocols with the same label; 0 for built-in ones.
    pub fn version(&self) -> u64 {
        self.version
    }
    /// The name that is sent to a peer; empty for a custom controller without a receiver side.
    pub(crate) fn announced(&self) -> &str {
        if self.is_custom && self.make_receiver.is_none() { "" } else { &self.label }
    }
    /// The configuration of its endpoints.
    pub fn endpoint_config(&self) -> &EndConfig {
        &self.ends
    }
    /// Bytes of a full data packet on the wire.
    pub fn packet_bytes(&self) -> u32 {
        match &self.ends {
            EndConfig::Tcp(c) => c.packet_bytes,
            EndConfig::Datagram(c) => c.packet_bytes,
        }
    }

    /// The path hints among its parameters.
    pub fn hints(&self) -> PathHints {
        match &self.ends {
            EndConfig::Tcp(_) => PathHints::default(),
            EndConfig::Datagram(c) => c.hints,
        }
    }
    /// The input of its controller's constructor; `random_key` is the flow's key.
    pub fn environment(
        &self,
        packet_bytes: u32,
        random_key: RandomKey,
        hints: PathHints,
    ) -> Environment {
        let begin = match &self.ends {
            EndConfig::Tcp(c) => (c.initial_window, c.initial_ssthresh, c.dialect),
            EndConfig::Datagram(c) => (c.initial_window, c.initial_ssthresh, c.dialect),
        };
        Environment {
            initial_window: begin.0,
            initial_ssthresh: begin.1,
            packet_bytes,
            dialect: begin.2,
            random_key: random_key.named("controller"),
            hints,
        }
    }
    /// Builds its controller alone, for an endpoint that is built elsewhere.
    pub fn controller(&self, environment: &Environment) -> Box<dyn Controller> {
        (self.make)(environment)
    }
    /// The same protocol with each controller replaced by the result of `wrap`, to observe or override its decisions.
    #[must_use]
    pub fn wrapped(
        self,
        wrap: impl Fn(&Environment, Box<dyn Controller>) -> Box<dyn Controller> + Send + Sync + 'static,
    ) -> Protocol {
        let make = self.make.clone();
        Protocol { make: Arc::new(move |e| wrap(e, make(e))), ..self }
    }
    /// Builds its controller's receiver side, if there is one.
    pub fn receiver_side(&self, environment: &Environment) -> Option<Box<dyn ReceiverSide>> {
        self.make_receiver.as_ref().map(|make| make(environment))
    }
    /// Its datagram endpoint's configuration; for a protocol over TCP the default one.
    pub fn datagram(&self) -> DatagramConfig {
        match &self.ends {
            EndConfig::Datagram(c) => c.clone(),
            EndConfig::Tcp(c) => DatagramConfig {
                rto: c.rto,
                initial_window: c.initial_window,
                initial_ssthresh: c.initial_ssthresh,
                ..DatagramConfig::preset(self.preset)
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::descriptor::ParamKind;

    fn words(params: &'static [narrows_base::Param], name: &str) -> &'static [&'static str] {
        match params.iter().find(|p| p.name == name).map(|p| p.kind) {
            Some(ParamKind::Choice(words)) => &words[1..],
            _ => panic!("{name} is no choice"),
        }
    }

    /// The choices of a protocol's parameters equal the lists, so that every entry can be chosen.
    #[test]
    fn choices_offer_what_the_lists_have() {
        let recoveries = RECOVERIES.names();
        assert_eq!(words(TCP_PARAMS, "recovery"), recoveries);
        let classifiers = narrows_recovery::loss_classifier::LOSS_CLASSIFIERS.names();
        assert_eq!(words(STREAM_PARAMS, "classifier"), classifiers);
        for p in every() {
            let spec = Spec::named(p.name);
            let protocol = Protocol::read(&spec, Preset::Rfc, 1000).unwrap();
            assert_eq!(protocol.check(), Ok(()), "{}", p.name);
        }
    }
}
