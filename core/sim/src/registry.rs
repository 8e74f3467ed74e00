//! Parts that a program adds to the lists: controllers, protocols, queues, loss processes, traffic
//! sources.

use crate::endpoints::foreign::{FOREIGN, ForeignEntry};
use crate::protocol::{self, Family, PROTOCOLS, RECOVERIES, STREAM_PREFIX, TCP_PROTOCOLS};
use crate::source::{self, SOURCES};
use narrows_base::descriptor::ParamKind;
use narrows_base::{Descriptor, Settings, SpecError};
use narrows_congestion::{CONTROLLERS, Environment};
use narrows_link::{LOSSES, QUEUES, loss, queue};
use narrows_recovery::loss_classifier::LOSS_CLASSIFIERS;

/// Names of families of protocols.
const FAMILIES: [&str; 4] = ["tcp", "media", "rrtp", "all"];

/// Parts to be added to the built-in ones. After [`install`](Registry::install), every specification, scenario, sweep,
/// list, report and connection of this process finds them by name.
///
/// ```
/// use narrows_sim::Registry;
/// # use narrows_base::{Descriptor, Settings, Status};
/// # const DESCRIPTOR: Descriptor = Descriptor { name: "mine", summary: "as Reno", source: "-", senses: "-", sets: "-",
/// #     params: &[], status: Status::NotValidated };
/// # fn build(_: &Settings, e: &narrows_congestion::Environment)
/// #     -> Box<dyn narrows_congestion::Controller> {
/// #     let reno = narrows_congestion::find("reno").unwrap();
/// #     reno.build(&Settings::defaults(reno.descriptor.params), e)
/// # }
/// use narrows_congestion::ControllerEntry as Controller;
/// use narrows_sim::protocol::ProtocolEntry as Protocol;
///
/// Registry::new()
///     .controller(Controller::new(&DESCRIPTOR, build))
///     .protocol(Protocol::tcp("mine", "mine", "sack", "my controller over TCP with SACK"))
///     .install()?;
/// assert!(narrows_sim::protocol::find("mine").is_ok());
/// assert!(narrows_sim::protocol::find("rrtp+mine").is_ok());
/// # Ok::<(), narrows_base::SpecError>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Registry {
    controllers: Vec<narrows_congestion::ControllerEntry>,
    protocols: Vec<protocol::ProtocolEntry>,
    queues: Vec<queue::QueueEntry>,
    losses: Vec<loss::LossEntry>,
    sources: Vec<source::SourceEntry>,
    foreign: Vec<ForeignEntry>,
}

impl Registry {
    /// A registry without additions.
    pub fn new() -> Registry {
        Registry::default()
    }
    /// Adds a controller, and with it the protocol `rrtp+NAME`.
    pub fn controller(mut self, entry: narrows_congestion::ControllerEntry) -> Registry {
        self.controllers.push(entry);
        self
    }
    /// Adds a protocol: a controller, built in or added, with an endpoint and a recovery.
    pub fn protocol(mut self, entry: protocol::ProtocolEntry) -> Registry {
        self.protocols.push(entry);
        self
    }
    /// Adds a queue discipline, for `aqm=NAME`.
    pub fn queue(mut self, entry: queue::QueueEntry) -> Registry {
        self.queues.push(entry);
        self
    }
    /// Adds a loss process, for `loss=NAME(…)`.
    pub fn loss(mut self, entry: loss::LossEntry) -> Registry {
        self.losses.push(entry);
        self
    }
    /// Adds a traffic source.
    pub fn source(mut self, entry: source::SourceEntry) -> Registry {
        self.sources.push(entry);
        self
    }
    /// Adds another project's stack as a protocol of simulations. Families and listings do not include it.
    pub fn foreign(mut self, entry: ForeignEntry) -> Registry {
        self.foreign.push(entry);
        self
    }

    /// Adds all parts to the lists of this process. This is possible once, before the lists have been read, so that a
    /// name keeps its meaning for the life of the process. After an error the lists may contain some of the additions.
    ///
    /// # Errors
    /// The first part that cannot be added: its name is taken or invalid, its descriptor is inconsistent, a protocol
    /// consists of parts that do not exist, or the lists have been read already.
    pub fn install(self) -> Result<(), SpecError> {
        CONTROLLERS.check(&self.controllers)?;
        let (over_tcp, over_datagrams): (Vec<_>, Vec<_>) =
            self.protocols.iter().copied().partition(|p| p.family == Family::Tcp);
        TCP_PROTOCOLS.check(&over_tcp)?;
        PROTOCOLS.check(&over_datagrams)?;
        for p in &self.protocols {
            check_name(p, over_tcp.iter().chain(&over_datagrams))?;
        }
        QUEUES.check(&self.queues)?;
        LOSSES.check(&self.losses)?;
        SOURCES.check(&self.sources)?;
        FOREIGN.check(&self.foreign)?;
        let mut descriptors = (self.controllers.iter().map(|e| e.descriptor))
            .chain(self.queues.iter().map(|e| e.descriptor))
            .chain(self.losses.iter().map(|e| e.descriptor))
            .chain(self.sources.iter().map(|e| e.descriptor));
        descriptors.try_for_each(check_descriptor)?;
        // Checking a protocol builds its controller, which may look up others.
        CONTROLLERS.add(self.controllers)?;
        for p in &self.protocols {
            check_protocol(p)?;
        }
        TCP_PROTOCOLS.add(over_tcp)?;
        PROTOCOLS.add(over_datagrams)?;
        QUEUES.add(self.queues)?;
        LOSSES.add(self.losses)?;
        SOURCES.add(self.sources)?;
        if let Some(taken) = self.foreign.iter().find(|e| protocol::find(e.name).is_ok()) {
            let name = taken.name;
            return Err(SpecError::new(format!(
                "protocol '{name}' cannot be registered: another protocol has that name"
            )));
        }
        FOREIGN.add(self.foreign)
    }
}

/// Checks that no protocol of the other list has this name, and that it is added once.
fn check_name<'a>(
    p: &protocol::ProtocolEntry,
    additions: impl Iterator<Item = &'a protocol::ProtocolEntry>,
) -> Result<(), SpecError> {
    if protocol::built_in().any(|b| b.name == p.name) {
        return Err(SpecError::new(format!(
            "protocol '{}' cannot be registered: Narrows has a protocol of that name",
            p.name
        )));
    }
    if additions.filter(|a| a.name == p.name).count() > 1 {
        return Err(SpecError::new(format!("protocol '{}' is registered twice", p.name)));
    }
    Ok(())
}

pub(crate) fn check_protocol(p: &protocol::ProtocolEntry) -> Result<(), SpecError> {
    let wrong =
        |why: String| SpecError::new(format!("protocol '{}' cannot be registered: {why}", p.name));
    if p.name.starts_with(STREAM_PREFIX) || FAMILIES.contains(&p.name) {
        return Err(wrong(format!(
            "{STREAM_PREFIX}… and {} have a meaning already",
            FAMILIES.join(", ")
        )));
    }
    let controller = CONTROLLERS.find(p.controller).map_err(|e| wrong(e.to_string()))?;
    if p.family == Family::Tcp {
        RECOVERIES.find(p.recovery).map_err(|e| wrong(e.to_string()))?;
        let settings = Settings::defaults(controller.descriptor.params);
        let one = controller.build(&settings, &Environment::default());
        if controller.receiver.is_some() || one.requirements().rrtp {
            let why = "its controller is for datagrams: it learns from each packet's outcome or from its \
                       receiver side, which TCP does not have";
            return Err(wrong(why.into()));
        }
    }
    LOSS_CLASSIFIERS.find(p.classifier).map_err(|e| wrong(e.to_string()))?;
    Ok(())
}

/// Checks that a part can be built from its descriptor's defaults.
pub(crate) fn check_descriptor(descriptor: &Descriptor) -> Result<(), SpecError> {
    for p in descriptor.params {
        let (ok, why) = match p.kind {
            ParamKind::Number { min, max, default, .. } => {
                ((min..=max).contains(&default), "its default is outside its range")
            }
            ParamKind::Choice(words) => (!words.is_empty(), "a choice has at least one word"),
            ParamKind::Integers => (true, ""),
        };
        if !ok {
            return Err(SpecError::new(format!(
                "'{}' cannot be registered: parameter '{}': {why}",
                descriptor.name, p.name
            )));
        }
    }
    Ok(())
}
