//! The further paths of flows with several.
//!
//! A path's packets have a flow number of its own, above those of flows and of branches of multicasts. So flows with one
//! path have no additional cost: only packets without a flow look for a path.

use crate::spec::PathSpec;

/// All further paths of a run; empty in most.
#[derive(Default)]
pub(super) struct FurtherPaths {
    /// The number of the first.
    pub first: usize,
    /// The flow of each.
    pub owners: Vec<u32>,
    /// Flows whose further paths have no number yet.
    pub unnumbered: Vec<(u32, Vec<PathSpec>)>,
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
