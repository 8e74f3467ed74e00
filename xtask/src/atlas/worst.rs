//! The worst network that `narrows attack` finds for a protocol.

use narrows_base::Duration;
use narrows_lab::attack::{Attack, Hunt, attack};
use narrows_lab::execute::RunControl;
use serde::{Deserialize, Serialize};

/// Networks that a search tries; with `--networks N` at most 8 N.
const BUDGET: usize = 96;
/// Simulated seconds of a run.
pub const SECONDS: u64 = 5;
/// The measure that the search maximizes.
pub const HUNT: Hunt = Hunt::Goodput;
/// Seeds of a cell that opens in the simulator.
const SEEDS: u32 = 3;

/// A search of one protocol.
#[derive(Serialize, Deserialize)]
pub struct WorstSearch {
    pub budget: usize,
    /// `None` if every network is as good as can be.
    pub worst: Option<WorstNetwork>,
}

#[derive(Serialize, Deserialize, Clone, Debug)]
pub struct WorstNetwork {
    pub protocol: String,
    /// 1 is the best possible value ([`Hunt`]).
    pub badness: f64,
    pub network: String,
    /// Names and values of the options of `compare`.
    pub options: Vec<(String, String)>,
}

/// The number of networks that a search tries.
pub fn budget(networks: usize) -> usize {
    BUDGET.min(networks.saturating_mul(8))
}

/// Searches.
pub fn search(
    protocol: &str,
    budget: usize,
    seed: u64,
    jobs: usize,
) -> Result<WorstSearch, String> {
    let asked = Attack {
        protocol: protocol.into(),
        hunt: HUNT,
        rival: None,
        budget,
        seed,
        duration: Duration::from_secs(SECONDS),
        report: 1,
    };
    let control = RunControl::quiet(jobs);
    let found = attack(&asked, &control).map_err(|e| format!("attack {protocol}: {e}"))?;
    let worst = found.worst.first().map(|worst| {
        let options = asked.question(&worst.case, seed, SEEDS).options();
        let named = |(name, value): (&str, String)| (name.to_string(), value);
        WorstNetwork {
            protocol: protocol.into(),
            badness: worst.badness,
            network: worst.case.describe(),
            options: options.into_iter().map(named).collect(),
        }
    });
    Ok(WorstSearch { budget, worst })
}
