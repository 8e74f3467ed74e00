//! Controllers that are listed for a limited time, such as a class of an interpreter while it is in use.

use crate::protocol::{LENT_STREAMS, PROTOCOLS, ProtocolEntry, TCP_PROTOCOLS};
use crate::registry::{check_descriptor, check_protocol};
use narrows_base::SpecError;
use narrows_base::list::Lent;
use narrows_congestion::{CONTROLLERS, ControllerEntry};

/// Lists a controller under its name until it is dropped, as a protocol over TCP and as `rrtp+NAME`. During that time
/// every specification, scenario, sweep, connection and kernel agent of this process can use it. Families and listings
/// do not include it. Its results can be read and charted after that, too.
///
/// ```
/// use narrows_congestion::{Controller, ControllerEntry};
/// use narrows_sim::Loan;
/// use narrows_sim::protocol::{ProtocolEntry, find};
/// # use narrows_base::{Descriptor, Settings, Status};
/// # static DESCRIPTOR: Descriptor = Descriptor { name: "Mine", summary: "as Reno", source: "-", senses: "-",
/// #     sets: "-", params: &[], status: Status::NotValidated };
/// let build = |_: &Settings, e: &_| -> Box<dyn Controller> {
///     let reno = narrows_congestion::find("reno").unwrap();
///     reno.build(&Settings::defaults(reno.descriptor.params), e)
/// };
/// let controller = Box::leak(Box::new(ControllerEntry::from_closure(&DESCRIPTOR, Box::leak(Box::new(build)))));
/// let over_tcp = Box::leak(Box::new(ProtocolEntry::tcp("Mine", "Mine", "sack", "as Reno")));
/// let over_rrtp = Box::leak(Box::new(ProtocolEntry::stream("rrtp+Mine", "Mine", "as Reno")));
/// let loan = Loan::new(controller, over_tcp, over_rrtp)?;
/// assert!(find("Mine").is_ok() && find("rrtp+Mine").is_ok());
/// drop(loan);
/// assert!(find("Mine").is_err() && find("rrtp+Mine").is_err());
/// # Ok::<(), narrows_base::SpecError>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct Loan {
    _protocols: [Lent<ProtocolEntry>; 2],
    _controller: Lent<ControllerEntry>,
}

impl Loan {
    /// Lists a controller and its two protocols.
    ///
    /// # Errors
    /// A name that is taken or invalid in specifications, an inconsistent descriptor, or a protocol of parts that do
    /// not fit.
    pub fn new(
        controller: &'static ControllerEntry,
        over_tcp: &'static ProtocolEntry,
        over_rrtp: &'static ProtocolEntry,
    ) -> Result<Loan, SpecError> {
        check_descriptor(controller.descriptor)?;
        let lent = CONTROLLERS.lend(controller)?;
        check_protocol(over_tcp)?;
        if PROTOCOLS.iter().any(|p| p.name == over_tcp.name) {
            return Err(SpecError::new(format!(
                "protocol '{}' cannot be lent: Narrows has a protocol of that name",
                over_tcp.name
            )));
        }
        let protocols = [TCP_PROTOCOLS.lend(over_tcp)?, LENT_STREAMS.lend(over_rrtp)?];
        Ok(Loan { _protocols: protocols, _controller: lent })
    }
}
