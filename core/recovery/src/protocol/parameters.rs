//! The parameters of a specification, and the controllers that they describe.

use super::ProtocolEntry;
use narrows_base::{Param, Settings, Spec, SpecError};
use narrows_congestion::{Controller, ControllerEntry, Environment, ReceiverSide, SimulationScope};
use std::sync::Arc;

/// Builds a controller for one flow.
pub type MakeController = dyn Fn(&Environment) -> Box<dyn Controller> + Send + Sync;
/// Builds the receiver side of a controller for one flow.
pub type MakeReceiverSide = dyn Fn(&Environment) -> Box<dyn ReceiverSide> + Send + Sync;

/// Builds the controllers of a protocol.
#[derive(Clone)]
pub struct ControllerFactory {
    make: Arc<MakeController>,
    make_receiver: Option<Arc<MakeReceiverSide>>,
    scope: Option<SimulationScope>,
    version: u64,
}

impl ControllerFactory {
    /// Controllers by `make`, and receiver sides by `make_receiver`.
    pub fn new(
        make: Arc<MakeController>,
        make_receiver: Option<Arc<MakeReceiverSide>>,
    ) -> ControllerFactory {
        ControllerFactory { make, make_receiver, scope: None, version: 0 }
    }
    /// Builds a controller.
    pub fn controller(&self, environment: &Environment) -> Box<dyn Controller> {
        (self.make)(environment)
    }
    /// Builds a receiver side, if the controller has one.
    pub fn receiver_side(&self, environment: &Environment) -> Option<Box<dyn ReceiverSide>> {
        self.make_receiver.as_ref().map(|make| make(environment))
    }
    /// Whether the controller has a receiver side.
    pub fn has_receiver_side(&self) -> bool {
        self.make_receiver.is_some()
    }
    /// The scope in which a simulation of it must run, if any.
    pub fn scope(&self) -> Option<SimulationScope> {
        self.scope
    }
    /// Distinguishes controllers of the same name; 0 for built-in ones.
    pub fn version(&self) -> u64 {
        self.version
    }
    /// The same with each controller replaced by the result of `wrap`.
    #[must_use]
    pub fn wrapped(
        self,
        wrap: impl Fn(&Environment, Box<dyn Controller>) -> Box<dyn Controller> + Send + Sync + 'static,
    ) -> ControllerFactory {
        let make = self.make.clone();
        ControllerFactory { make: Arc::new(move |e| wrap(e, make(e))), ..self }
    }
}

/// The parameters of a specification: the controller's own, and those of the endpoint.
pub struct Parameters {
    entry: &'static ProtocolEntry,
    controller: &'static ControllerEntry,
    endpoint_params: &'static [Param],
    /// The controller's.
    pub own: Settings,
    /// The endpoint's.
    pub endpoint: Settings,
}

impl Parameters {
    /// Reads the parameters of a listed protocol, whose endpoint has `endpoint_params`.
    ///
    /// # Errors
    /// An unknown parameter or a value out of range.
    pub fn read(
        spec: &Spec,
        entry: &'static ProtocolEntry,
        endpoint_params: &'static [Param],
    ) -> Result<Parameters, SpecError> {
        let controller = narrows_congestion::find(entry.controller)?;
        let mut own = Spec::named(entry.name);
        let mut endpoint = Spec::named(entry.name);
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
        Ok(Parameters {
            entry,
            controller,
            endpoint_params,
            own: Settings::read(&own, controller.descriptor.params)?,
            endpoint: Settings::read(&endpoint, endpoint_params)?,
        })
    }

    /// Builds controllers with these parameters.
    pub fn factory(&self) -> ControllerFactory {
        let controller = self.controller;
        let make_receiver = controller.receiver.map(|build| {
            let settings = self.own.clone();
            Arc::new(move |environment: &Environment| build(&settings, environment))
                as Arc<MakeReceiverSide>
        });
        let settings = self.own.clone();
        ControllerFactory {
            make: Arc::new(move |environment: &Environment| {
                controller.build(&settings, environment)
            }),
            make_receiver,
            scope: controller.scope,
            version: controller.version,
        }
    }

    /// Refuses parameters of the controller without effect in this environment, and an initial window or slow-start
    /// threshold that the controller ignores. `usual` has those of an endpoint without parameters.
    ///
    /// # Errors
    /// One line that names the parameter.
    pub fn refuse_unused(
        &self,
        environment: &Environment,
        usual: &Environment,
    ) -> Result<(), SpecError> {
        self.controller.refuse_unread(&self.own, environment)?;
        let starts = [
            (
                "initial-window",
                Environment { initial_window: usual.initial_window, ..*environment },
            ),
            (
                "initial-ssthresh",
                Environment { initial_ssthresh: usual.initial_ssthresh, ..*environment },
            ),
        ];
        for (name, other) in starts {
            let is_endpoints = self.endpoint_params.iter().any(|p| p.name == name);
            if is_endpoints
                && self.endpoint.given(name)
                && (other.initial_window, other.initial_ssthresh)
                    != (environment.initial_window, environment.initial_ssthresh)
                && let Some(with) = self.controller.first_limits(&self.own, environment)
                && Some(with) == self.controller.first_limits(&self.own, &other)
            {
                return Err(SpecError::new(format!(
                    "{}: {name}={} has no effect on {}",
                    self.entry.name,
                    self.endpoint.number(name),
                    self.controller.descriptor.name
                )));
            }
        }
        Ok(())
    }
}
