//! The list of controllers. A controller is one file in this folder, its `mod` line in `lib.rs` and its entry here; no
//! other code refers to it. Programs add their own with `narrows_sim::Registry`, or for a time with
//! `narrows_sim::Loan`.

use crate::{Controller, Dialect, Environment, ReceiverSide, SendLimits};
use crate::{
    bbr, bbr3, brutal, copa, cubic, fixed, illinois, jersey, ledbat, prague, rap, reno, stpd,
};
use crate::{rrtp, rrtp_lasthop, scream, vegas, veno, westwood, westwood_plus};
use crate::{tear, tear_wireless, tfrc, tfwc};
use narrows_base::list::{List, Listed};
use narrows_base::{Descriptor, Settings, Spec, SpecError, Variable};
use std::panic::RefUnwindSafe;

/// Builds a receiver side.
pub type BuildReceiver = fn(&Settings, &Environment) -> Box<dyn ReceiverSide>;

/// Scope in which whole simulations run: see [`ControllerEntry::with_scope`].
#[derive(Clone, Copy, Debug)]
pub struct SimulationScope {
    /// Calls its argument once.
    pub enter: fn(&mut dyn FnMut()),
    /// Called repeatedly within the scope. Returns the reason to stop the simulation if a controller of this thread has
    /// failed.
    pub failure: fn() -> Option<String>,
}

type Build = dyn Fn(&Settings, &Environment) -> Box<dyn Controller> + Send + Sync + RefUnwindSafe;

/// How a sender side is built.
#[derive(Clone, Copy)]
enum Builder {
    Function(fn(&Settings, &Environment) -> Box<dyn Controller>),
    Closure(&'static Build),
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Builder")
    }
}

/// An entry of the list of controllers.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ControllerEntry {
    /// Name, parameters, source and status.
    pub descriptor: &'static Descriptor,
    builder: Builder,
    /// Builds its receiver side, where the algorithm has one.
    pub receiver: Option<BuildReceiver>,
    /// Everything that either side reports for time series.
    pub variables: &'static [Variable],
    /// Whether sending is driven by acknowledgements.
    ack_driven: bool,
    /// Whether its packets are ECN-capable by default.
    for_ecn: bool,
    /// Within which whole simulations run.
    pub scope: Option<SimulationScope>,
    /// Distinguishes it from another controller of the same name; 0 for one that is part of the program.
    pub version: u64,
}

impl ControllerEntry {
    /// A controller that is driven by acknowledgements and has no receiver side. `build` reads every parameter that acts:
    /// a given one that it does not read is refused.
    pub const fn new(
        descriptor: &'static Descriptor,
        build: fn(&Settings, &Environment) -> Box<dyn Controller>,
    ) -> ControllerEntry {
        ControllerEntry::built_by(descriptor, Builder::Function(build))
    }
    /// As [`new`](Self::new), for a part that is created at run time, such as a class of an interpreter.
    pub fn from_closure(descriptor: &'static Descriptor, build: &'static Build) -> ControllerEntry {
        ControllerEntry::built_by(descriptor, Builder::Closure(build))
    }
    const fn built_by(descriptor: &'static Descriptor, builder: Builder) -> ControllerEntry {
        ControllerEntry {
            descriptor,
            builder,
            receiver: None,
            variables: &[],
            ack_driven: true,
            for_ecn: false,
            scope: None,
            version: 0,
        }
    }
    /// Builds a sender side.
    pub fn build(&self, settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
        match self.builder {
            Builder::Function(build) => build(settings, environment),
            Builder::Closure(build) => build(settings, environment),
        }
    }
    /// Runs whole simulations within this scope. Resources that are too expensive per event, such as an interpreter's
    /// lock, are acquired once per run. The scope also ends the simulation of a controller that can fail.
    #[must_use]
    pub const fn with_scope(mut self, scope: SimulationScope) -> ControllerEntry {
        self.scope = Some(scope);
        self
    }
    /// Its results may be mixed only with those of the same version: a sweep's finished runs are not used again after
    /// the controller has changed.
    #[must_use]
    pub const fn with_version(mut self, version: u64) -> ControllerEntry {
        self.version = version;
        self
    }
    /// Adds the variables that it reports by [`Controller::watch`].
    #[must_use]
    pub const fn with_variables(mut self, variables: &'static [Variable]) -> ControllerEntry {
        self.variables = variables;
        self
    }
    /// Adds a receiver side, which then determines the sending limits.
    #[must_use]
    pub const fn with_receiver(mut self, build: BuildReceiver) -> ControllerEntry {
        self.receiver = Some(build);
        self
    }
    /// Declares that it ignores acknowledgements.
    #[must_use]
    pub const fn ignoring_acks(mut self) -> ControllerEntry {
        self.ack_driven = false;
        self
    }
    /// Declares that it is made for ECN: protocols with it are ECN-capable unless `ecn=off`.
    #[must_use]
    pub const fn for_ecn(mut self) -> ControllerEntry {
        self.for_ecn = true;
        self
    }
}

impl Listed for ControllerEntry {
    fn name(&self) -> &'static str {
        self.descriptor.name
    }
}

/// All controllers.
pub static CONTROLLERS: List<ControllerEntry> = List::new(
    "controller",
    &[
        ControllerEntry::new(&reno::DESCRIPTOR, reno::build),
        ControllerEntry::new(&cubic::DESCRIPTOR, cubic::build).with_variables(cubic::VARIABLES),
        ControllerEntry::new(&bbr::DESCRIPTOR, bbr::build).with_variables(bbr::VARIABLES),
        ControllerEntry::new(&bbr3::DESCRIPTOR, bbr3::build).with_variables(bbr3::VARIABLES),
        ControllerEntry::new(&vegas::DESCRIPTOR, vegas::build).with_variables(vegas::VARIABLES),
        ControllerEntry::new(&veno::DESCRIPTOR, veno::build).with_variables(veno::VARIABLES),
        ControllerEntry::new(&westwood::DESCRIPTOR, westwood::build)
            .with_variables(westwood::VARIABLES),
        ControllerEntry::new(&westwood_plus::DESCRIPTOR, westwood_plus::build)
            .with_variables(westwood_plus::VARIABLES),
        ControllerEntry::new(&jersey::DESCRIPTOR, jersey::build)
            .with_variables(jersey::VARIABLES)
            .for_ecn(),
        ControllerEntry::new(&stpd::DESCRIPTOR, stpd::build).with_variables(stpd::VARIABLES),
        ControllerEntry::new(&illinois::DESCRIPTOR, illinois::build)
            .with_variables(illinois::VARIABLES),
        ControllerEntry::new(&copa::DESCRIPTOR, copa::build).with_variables(copa::VARIABLES),
        ControllerEntry::new(&ledbat::DESCRIPTOR, ledbat::build).with_variables(ledbat::VARIABLES),
        ControllerEntry::new(&prague::DESCRIPTOR, prague::build).with_variables(prague::VARIABLES),
        ControllerEntry::new(&brutal::DESCRIPTOR, brutal::build)
            .with_variables(brutal::VARIABLES)
            .ignoring_acks(),
        ControllerEntry::new(&rap::DESCRIPTOR, rap::build).with_variables(rap::VARIABLES),
        ControllerEntry::new(&fixed::DESCRIPTOR, fixed::build).ignoring_acks(),
        ControllerEntry::new(&rrtp::DESCRIPTOR, rrtp::build).with_variables(rrtp::VARIABLES),
        ControllerEntry::new(&rrtp_lasthop::DESCRIPTOR, rrtp_lasthop::build)
            .with_variables(rrtp_lasthop::VARIABLES)
            .with_receiver(rrtp_lasthop::receiver),
        ControllerEntry::new(&tfrc::DESCRIPTOR, tfrc::build)
            .with_variables(tfrc::VARIABLES)
            .with_receiver(tfrc::build_receiver),
        ControllerEntry::new(&tfwc::DESCRIPTOR, tfwc::build).with_variables(tfwc::VARIABLES),
        ControllerEntry::new(&scream::DESCRIPTOR, scream::build).with_variables(scream::VARIABLES),
        ControllerEntry::new(&tear::DESCRIPTOR, tear::build)
            .with_variables(tear::VARIABLES)
            .with_receiver(tear::receiver),
        ControllerEntry::new(&tear_wireless::DESCRIPTOR, tear_wireless::build)
            .with_variables(tear_wireless::VARIABLES)
            .with_receiver(tear_wireless::receiver),
    ],
);

/// Finds a controller by name.
///
/// # Errors
/// The name is unknown; the message suggests a similar one.
pub fn find(name: &str) -> Result<&'static ControllerEntry, SpecError> {
    CONTROLLERS.find(name)
}

impl ControllerEntry {
    /// Whether sending is driven by which packets arrived and when they were acknowledged: false if a receiver side
    /// determines the rate or measures the losses, or if acknowledgements are ignored.
    pub fn is_ack_driven(&self) -> bool {
        self.ack_driven && self.receiver.is_none()
    }
    /// Whether it is made for ECN, so that protocols with it are ECN-capable by default.
    pub fn is_for_ecn(&self) -> bool {
        self.for_ecn
    }
    /// Whether it ignores all congestion signals (unresponsive in the sense of RFC 8085 section
    /// 3.1).
    pub fn is_unresponsive(&self) -> bool {
        !self.ack_driven
    }
    /// Reads its parameters.
    ///
    /// # Errors
    /// A parameter is unknown or out of range.
    pub fn read(&self, spec: &Spec) -> Result<Settings, SpecError> {
        Settings::read(spec, self.descriptor.params)
    }

    /// Whether it depends on data that only rrtp has: the outcome of each packet by its number, or its receiver side.
    pub fn needs_rrtp(&self, settings: &Settings, environment: &Environment) -> bool {
        self.receiver.is_some() || self.build(settings, environment).requirements().packet_numbers
    }

    /// Limits before the first packet; `None` for a controller that is created at run time, which is only built if
    /// needed.
    pub fn first_limits(
        &self,
        settings: &Settings,
        environment: &Environment,
    ) -> Option<SendLimits> {
        let Builder::Function(build) = self.builder else { return None };
        Some(build(settings, environment).send_limits())
    }

    /// Refuses parameters that neither side reads in this environment, because another variant is meant or another
    /// parameter makes them void.
    ///
    /// # Errors
    /// One line that names the parameter and the choices with which it acts.
    pub fn refuse_unread(
        &self,
        settings: &Settings,
        environment: &Environment,
    ) -> Result<(), SpecError> {
        let Builder::Function(build) = self.builder else { return Ok(()) };
        let variant = if environment.dialect == Dialect::Linux { " as in Linux" } else { "" };
        let part = format!("{}{variant}", self.descriptor.name);
        settings.refuse_unread(&part, self.descriptor.params, |s| {
            build(s, environment);
            if let Some(receiver) = self.receiver {
                receiver(s, environment);
            }
        })
    }
}
