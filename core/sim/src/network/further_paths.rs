//! The further paths of flows with several.
//!
//! A path's packets have a flow number of its own, above those of flows and of branches of multicasts. So flows with one
//! path have no additional cost: only packets without a flow look for a path.

use super::Network;
use super::route::{FlowRoute, NONE};
use crate::endpoints::{SimulatedReceiver, SimulatedSender};
use crate::spec::PathSpec;

/// All further paths of a run; empty in most.
#[derive(Default)]
pub(super) struct FurtherPaths {
    /// The number of the first.
    first: usize,
    /// The flow of each.
    owners: Vec<u32>,
    /// Flows whose further paths have no number yet.
    unnumbered: Vec<(u32, Vec<PathSpec>)>,
}

impl FurtherPaths {
    /// A flow has these.
    pub fn add(&mut self, flow: u32, paths: &[PathSpec]) {
        if !paths.is_empty() {
            self.unnumbered.push((flow, paths.to_vec()));
        }
    }
    /// The flow of the path with this number.
    pub fn owner(&self, number: usize) -> Option<usize> {
        let owner = self.owners.get(number.checked_sub(self.first)?)?;
        Some(*owner as usize)
    }
}

impl Network {
    /// Adds the routes of further paths and numbers these, after flows and branches.
    pub(super) fn build_further_paths(&mut self, users: &mut [u32]) {
        self.further.first = self.routes.len();
        for (number, paths) in std::mem::take(&mut self.further.unnumbered) {
            let first = self.routes.len() as u32;
            let group = self.routes[number as usize].group;
            for path in &paths {
                let ways = [&path.forward, &path.back].map(|links| self.add_route(links, users));
                self.routes.push(FlowRoute { ways, group, series: NONE });
                self.further.owners.push(number);
            }
            let flow = &mut self.flows[number as usize];
            if let SimulatedSender::Multipath(sender) = &mut flow.sender {
                sender.number_paths(first);
            }
            if let SimulatedReceiver::Multipath(receiver) = &mut flow.receiver {
                receiver.number_paths(first);
            }
        }
    }
}
