//! The figures that the atlas's pages and tables show.

use super::worst::WorstNetwork;
use narrows_lab::networks::{BenchNetwork, Results};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the figures are of. Portions of another version, or of files that differ from their commit, are simulated anew.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtlasVersion {
    /// The commit, with `-dirty` after it if files differ from it.
    pub commit: String,
    pub protocols: Vec<String>,
    pub seed: u64,
}

/// Digests by network, then by protocol, in hexadecimal digits.
pub type Digests = BTreeMap<String, BTreeMap<String, String>>;

/// Figures and digests of networks.
#[derive(Serialize, Deserialize, Default, Debug, PartialEq)]
pub struct Measured {
    pub results: Results,
    pub digests: Digests,
}

/// The figures of all networks.
pub struct Atlas {
    pub version: AtlasVersion,
    /// Protocols with figures from a file.
    pub outsiders: Vec<String>,
    pub networks: Vec<BenchNetwork>,
    pub measured: Measured,
    /// The worst network that was found for each protocol.
    pub worst: Vec<WorstNetwork>,
    /// Networks that each of these searches tried.
    pub budget: usize,
}

impl Atlas {
    /// All protocols of the tables.
    pub fn columns(&self) -> impl Iterator<Item = &String> {
        self.version.protocols.iter().chain(&self.outsiders)
    }
}
