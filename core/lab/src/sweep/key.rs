//! The key of a run in the journal: a hash of everything that its result depends on.

use crate::measure::MEASURES;
use narrows_base::random::mix;
use narrows_scenario::plan::Plan;
use narrows_scenario::scenario::{Scenario, SeriesSelection};
use narrows_scenario::scenario_file;

/// 128 bits over the version, the measures, the whole scenario and the seed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RunKey(pub u64, pub u64);

impl RunKey {
    /// The key of a point, for all seeds.
    pub fn of(plan: &Plan) -> RunKey {
        // A saved scenario file reads back to the same runs, so it contains all that they depend on.
        let bare = Scenario {
            name: String::new(),
            seed: 0,
            seeds: 1,
            probe: SeriesSelection::default(),
            ..plan.scenario.clone()
        };
        let mut key = RunKey(0x6E61_7272_6F77_7331, 0x7377_6565_702D_3031);
        key.add(env!("CARGO_PKG_VERSION"));
        for measure in MEASURES {
            key.add(measure.name);
        }
        key.add(&scenario_file::text(&bare));
        // A trace is identified by its file name, so its contents are hashed, too.
        for way in plan.scenario.links.iter().flat_map(|l| [&l.forward, &l.reverse]) {
            if let Some((_, trace)) = &way.trace {
                key.add(&format!("{trace:?}"));
            }
        }
        // A custom controller is identified by its class name, so its version is hashed, too.
        let groups = 0..plan.scenario.flows.len();
        let versions = groups.flat_map(|group| {
            (0..plan.scenario.variants())
                .map(move |variant| plan.protocol(group, variant).version())
        });
        versions.filter(|version| *version != 0).for_each(|version| key.word(version));
        key
    }

    /// The key of one run.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> RunKey {
        self.word(seed);
        self
    }

    /// Reads a key from 32 hexadecimal digits.
    pub fn parse(text: &str) -> Option<RunKey> {
        let half = |t: Option<&str>| u64::from_str_radix(t?, 16).ok();
        (text.len() == 32).then_some(())?;
        Some(RunKey(half(text.get(..16))?, half(text.get(16..))?))
    }

    fn word(&mut self, word: u64) {
        self.0 = mix(self.0 ^ word);
        // The second half must not collide where the first one does.
        self.1 = mix(self.1.rotate_left(23).wrapping_add(word).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    }

    fn add(&mut self, text: &str) {
        self.word(text.len() as u64);
        for chunk in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }
}

impl std::fmt::Display for RunKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}{:016x}", self.0, self.1)
    }
}
