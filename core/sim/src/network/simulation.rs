//! A run in steps.

use super::Network;
use super::scope::within;
use crate::endpoints::{Counters, SendingLimit};
use crate::packet_log::{PacketEvent, PacketLog};
use crate::result::RunResult;
use crate::spec::{NetworkSpec, SimError};
use narrows_base::{Duration, Time};
use narrows_congestion::Controller;
use std::borrow::Cow;

/// A network that is advanced step by step and can be read in between. However long its steps are, its result is equal
/// to that of [`run`](crate::run) to the bit, unless a controller is changed.
///
/// ```
/// use narrows_base::{Spec, Time};
/// use narrows_sim::{Simulation, dumbbell, run};
/// use narrows_sim::protocol::{FlowProtocol, Preset};
///
/// let protocol = FlowProtocol::read(&Spec::parse("cubic")?, Preset::Linux, 1000)?;
/// let network = dumbbell(1, 10, 2, protocol);
/// let mut simulation = Simulation::new(&network)?;
/// simulation.advance(Time::from_secs_f64(1.0), &mut |_| true)?;
/// assert!(simulation.acknowledged(0) > 500);
/// simulation.advance(network.end, &mut |_| true)?;
/// assert_eq!(simulation.finish().digest, run(&network, &mut |_| true)?.digest);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Simulation<'s> {
    spec: Cow<'s, NetworkSpec>,
    network: Network,
}

impl Simulation<'static> {
    /// The same as [`new`](Simulation::new), but owns the specification.
    ///
    /// # Errors
    /// [`SimError::Spec`] names a field with an invalid value.
    pub fn owned(spec: NetworkSpec) -> Result<Simulation<'static>, SimError> {
        Simulation::begin(Cow::Owned(spec))
    }
}

impl<'s> Simulation<'s> {
    /// The network at time zero, before the first packet.
    ///
    /// # Errors
    /// [`SimError::Spec`] names a field with an invalid value.
    pub fn new(spec: &'s NetworkSpec) -> Result<Simulation<'s>, SimError> {
        Simulation::begin(Cow::Borrowed(spec))
    }

    fn begin(spec: Cow<'s, NetworkSpec>) -> Result<Simulation<'s>, SimError> {
        let network = within(&spec, &mut |_| true, &mut |_| Network::begin(&spec))?;
        Ok(Simulation { spec, network })
    }

    /// Handles all events up to and at `until`, at most to the end of the run. `progress` is called regularly with the
    /// simulated time; returning false stops the run.
    ///
    /// # Errors
    /// The reason why the run was aborted. It cannot be continued then.
    pub fn advance(
        &mut self,
        until: Time,
        progress: &mut dyn FnMut(Time) -> bool,
    ) -> Result<(), SimError> {
        let Simulation { spec, network } = self;
        within(spec, progress, &mut |progress| network.play(spec, until, progress))
    }

    /// The time up to which all events have been handled.
    pub fn now(&self) -> Time {
        self.network.now
    }
    /// The specification.
    pub fn spec(&self) -> &NetworkSpec {
        &self.spec
    }
    /// Number of flows. They are numbered in the order of the groups; each transfer of a `web` source is a flow.
    pub fn flows(&self) -> usize {
        self.network.flows.len()
    }
    /// A flow's controller.
    pub fn controller(&self, flow: usize) -> &dyn Controller {
        self.network.flows[flow].sender.controller()
    }
    /// Mutable access to a flow's controller, for changes that do not affect its limits, such as counters.
    pub fn controller_mut(&mut self, flow: usize) -> &mut dyn Controller {
        self.network.flows[flow].sender.controller_mut()
    }
    /// Lets `change` change a flow's controller; packets that the new limits permit are sent at once.
    pub fn change_controller<R>(
        &mut self,
        flow: usize,
        change: impl FnOnce(&mut dyn Controller) -> R,
    ) -> R {
        let result = change(self.network.flows[flow].sender.controller_mut());
        self.network.pump(flow as u32);
        result
    }
    /// Counters of a flow's sender.
    pub fn counters(&self, flow: usize) -> Counters {
        self.network.flows[flow].sender.counters()
    }
    /// The limit that keeps a flow's sender from sending more.
    pub fn limit(&self, flow: usize) -> SendingLimit {
        self.network.flows[flow].sender.limit()
    }
    /// Packets of a flow known to have arrived; for TCP, the cumulative acknowledgement including the SYN.
    pub fn acknowledged(&self, flow: usize) -> u64 {
        self.network.flows[flow].sender.acknowledged()
    }
    /// Application bytes that a flow's receiver has: in order for streams, without duplicates for media.
    pub fn delivered(&self, flow: usize) -> u64 {
        self.network.flows[flow].receiver.delivered()
    }
    /// Packets of a flow of unknown outcome; for TCP, FlightSize.
    pub fn flight(&self, flow: usize) -> u64 {
        self.network.flows[flow].sender.flight()
    }
    /// Logs single packets from now on: drops and losses on metered links of all flows, and packets sent and
    /// acknowledged of the first `flows`. The log is kept until [`packets`](Simulation::packets) reads it.
    pub fn log_packets(&mut self, flows: usize) {
        self.network.packet_log = Some(Box::new(PacketLog::new(flows, self.network.flows.len())));
        self.network.meters.iter_mut().for_each(|m| m.packet_log = Some(Vec::new()));
    }
    /// Passes the events of packets since the last call to `each`, with the metered link of a drop or a loss.
    pub fn packets(&mut self, each: &mut dyn FnMut(&PacketEvent, Option<usize>)) {
        let flows = self.network.flows.len();
        for (n, node) in self.network.nodes.iter().enumerate() {
            let meter = self.network.meters.get_mut(node.meter as usize);
            if let Some(log) = meter.and_then(|m| m.packet_log.as_mut()) {
                for mut event in log.drain(..) {
                    // Numbers after the flows are branches of a multicast and further paths.
                    if let Some(branch) = (event.flow as usize).checked_sub(flows) {
                        let owner = self.network.further.owner(event.flow as usize);
                        let owner = owner.map(|n| n as u32);
                        event.flow =
                            owner.or_else(|| self.network.multicast.flow_of(branch)).unwrap_or(0);
                    }
                    each(&event, Some(n));
                }
            }
        }
        if let Some(log) = &mut self.network.packet_log {
            log.events.drain(..).for_each(|event| each(&event, None));
        }
    }
    /// RTT of a flow's last acknowledgement, and the bits that arrived at its receiver; zero without
    /// [`log_packets`](Simulation::log_packets).
    pub fn received(&self, flow: usize) -> (Duration, f64) {
        let Some(log) = &self.network.packet_log else { return (Duration::ZERO, 0.0) };
        let rtt = log.rtts.get(flow).copied().unwrap_or_default();
        (rtt, log.received_bits.get(flow).copied().unwrap_or(0.0))
    }
    /// Packets that wait in a link's queue; 0 if the link is neither metered nor has a limited queue.
    pub fn waiting(&self, link: usize) -> usize {
        self.network.nodes[link].link.waiting(self.network.now)
    }

    /// Reads the data of the next events, and returns a value that depends on all of them. A program that runs
    /// thousands of simulations in turn calls this before each step: the processor then fetches a simulation from
    /// distant memory at once, rather than packet by packet.
    pub fn fetch(&self) -> u64 {
        let links = self.network.nodes.iter().fold(0, |sum, n| sum ^ n.link.fetch());
        self.network.flows.iter().fold(links, |sum, f| sum ^ f.sender.fetch())
    }

    /// The result, as if the run ended now: measures cover the span up to the specification's end.
    pub fn finish(self) -> RunResult {
        self.network.finish(&self.spec)
    }
}

impl std::fmt::Debug for Simulation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Simulation({} flows at {:?})", self.flows(), self.now())
    }
}

#[cfg(test)]
#[path = "packet_log_tests.rs"]
mod packet_log_tests;
#[cfg(test)]
#[path = "simulation_tests.rs"]
mod tests;
