//! A light set of random networks, which scores one controller beside today's in less than a minute.

use super::draw;
use super::item::{BenchNetwork, BenchPart};
use super::scores::{Results, Score, brief};
use super::simulate::{Simulated, simulate};
use crate::compare::{Question, check_protocol};
use crate::execute::RunControl;
use narrows_sim::protocol::every;

/// The controller is compared with these. Mixes need the first.
const COMPARED: [&str; 3] = ["cubic", "bbr3", "rrtp"];
/// Added to the seed: rrtp was developed on the networks of small seeds.
pub const SCORECARD_SEED: u64 = 2_000_000;

/// Parts of the atlas (`cargo xtask atlas`), and how many networks each has; of recorded links all.
pub const ATLAS_PARTS: [(BenchPart, usize); 7] = [
    (BenchPart::Networks, 600),
    (BenchPart::Access, 300),
    (BenchPart::Mixes, 240),
    (BenchPart::Pairs, 8),
    (BenchPart::Transfers, 100),
    (BenchPart::AccessTransfers, 100),
    (BenchPart::Traces, usize::MAX),
];

/// Options of [`NetworkScorecard::measure`].
#[derive(Clone, Debug)]
pub struct NetworkScorecard {
    /// The protocol, as in `compare`.
    pub protocol: String,
    /// Number of random networks, of networks by access type, and of mixes.
    pub networks: usize,
    /// Seed of the networks.
    pub seed: u64,
}

/// Figures of each network with each protocol.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NetworkScores {
    /// The controller, and those with which it is compared.
    pub protocols: Vec<String>,
    /// Networks of all parts, in the order of the table.
    pub networks: Vec<BenchNetwork>,
    /// Figures by network and protocol.
    pub results: Results,
}

/// A section of the table.
#[non_exhaustive]
pub struct ScoreSection {
    /// Heading in the table.
    pub title: &'static str,
    /// Number of its networks.
    pub networks: usize,
    /// Rows in the order of the table.
    pub scores: Vec<Score>,
}

impl NetworkScorecard {
    /// Simulates all networks; `None` if it was interrupted.
    ///
    /// # Errors
    /// An unknown protocol, several protocols, or an error of the simulator.
    pub fn measure(&self, control: &RunControl<'_>) -> Result<Option<NetworkScores>, String> {
        let seed = self.drawn_from();
        let mut networks = draw::networks(seed, 0..self.networks);
        networks.extend(draw::access_in_turn(seed, self.networks));
        networks.extend(draw::mixes(seed, 0..self.networks));
        self.on(networks, &COMPARED, control)
    }

    /// Simulates the networks of an atlas of this seed, at most so many of each part as `networks`, without those with
    /// which it is compared: the atlas has them. `None` if it was interrupted.
    ///
    /// # Errors
    /// As [`NetworkScorecard::measure`].
    pub fn for_atlas(&self, control: &RunControl<'_>) -> Result<Option<NetworkScores>, String> {
        let others: Vec<String> = every().map(|entry| entry.name.to_string()).collect();
        let networks = ATLAS_PARTS.into_iter().flat_map(|(part, most)| {
            let numbers = 0..most.min(self.networks);
            match part {
                BenchPart::Pairs => draw::pairs(self.drawn_from(), numbers, &others),
                _ => draw::numbered(part, self.drawn_from(), numbers),
            }
        });
        self.on(networks.collect(), &[], control)
    }

    /// The seed from which the networks are drawn.
    fn drawn_from(&self) -> u64 {
        SCORECARD_SEED.wrapping_add(self.seed)
    }

    fn on(
        &self,
        networks: Vec<BenchNetwork>,
        compared: &[&str],
        control: &RunControl<'_>,
    ) -> Result<Option<NetworkScores>, String> {
        let protocol = self.protocol.trim();
        let preset = Question::default().preset;
        check_protocol(protocol, preset).map_err(|e| e.to_string())?;
        let mut protocols = vec![protocol.to_string()];
        protocols.extend(compared.iter().filter(|p| **p != protocol).map(ToString::to_string));
        let simulated = simulate(&networks, &protocols, control)?;
        let scores = |s: Simulated| NetworkScores { protocols, networks, results: s.results };
        Ok(simulated.map(scores))
    }
}

impl NetworkScores {
    /// The sections of the table, without those that have no networks; none without compared protocols.
    pub fn sections(&self) -> Vec<ScoreSection> {
        if self.protocols.len() < 2 {
            return Vec::new();
        }
        let of = |part: BenchPart| -> Vec<&BenchNetwork> {
            self.networks.iter().filter(|n| n.part == part).collect()
        };
        let networks = of(BenchPart::Networks);
        let access = of(BenchPart::Access);
        let mixes = of(BenchPart::Mixes);
        let (beside_itself, beside_others): (Vec<&BenchNetwork>, Vec<&BenchNetwork>) =
            mixes.iter().partition(|n| n.beside_itself());
        let section = |title, of: &[&BenchNetwork], rows: fn(&[&BenchNetwork]) -> Vec<Score>| {
            ScoreSection { title, networks: of.len(), scores: rows(of) }
        };
        let mut sections = vec![
            section("Random networks", &networks, brief::networks),
            section("Access types", &access, brief::networks),
            section("Goodput / best, mean, by access type", &access, brief::by_class),
            section("Mixes", &mixes, brief::mixes),
            section("Mixes with other protocols", &beside_others, brief::beside_others),
            section("Mixes with itself", &beside_itself, brief::beside_itself),
        ];
        sections.retain(|s| s.networks > 0);
        sections
    }
}
