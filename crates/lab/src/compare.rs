//! `narrows compare`: a dumbbell per protocol, the same luck for all.
//!
//! ```text
//!   main.0 ──access──╮                     ╭──egress── receiver
//!   main.1 ──access──┤                     ├──egress── receiver
//!                  left ════ bottleneck ═ right
//!   against.0 ───────╯                     ╰────────── reverse.0 (its data go the other way)
//! ```
//!
//! The flows under test are called `main` whatever they speak: luck follows names, so every
//! protocol meets the same losses and starts at the same moments.

use crate::families::protocols;
use crate::link::Link;
use crate::links;
use crate::scenario::{Flows, Own, Scenario, Speaks, Wire};
use narrows_base::{Duration, Spec, SpecError};
use narrows_flow::{PROTOCOLS, Preset, Protocol};
use narrows_sim::SourceSpec;
use std::path::Path;

/// What `compare` was asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// A link's specification or name.
    pub link: String,
    /// Families and names with parameters, separated by commas ([`crate::families`]).
    pub protocols: String,
    /// Flows of the protocol under test.
    pub flows: usize,
    /// `NAME[:M]`: competitors on the same link.
    pub against: Option<String>,
    /// `NAME[:M]`: flows the other way.
    pub reverse: Option<String>,
    /// Simulated time.
    pub duration: Duration,
    /// Measures count from here.
    pub warmup: Duration,
    /// Starts are drawn over this time.
    pub stagger: Duration,
    /// Bytes of a data packet.
    pub packet: u32,
    /// How many seeds.
    pub seeds: u32,
    /// The first.
    pub seed: u64,
    /// Which endpoint.
    pub preset: Preset,
}

impl Default for Question {
    fn default() -> Question {
        Question {
            link: links::DEFAULT.into(),
            protocols: "tcp".into(),
            flows: 1,
            against: None,
            reverse: None,
            duration: Duration::from_secs(60),
            warmup: Duration::ZERO,
            stagger: Duration::ZERO,
            packet: 1000,
            seeds: 10,
            seed: 1,
            preset: Preset::Rfc,
        }
    }
}

impl Question {
    /// The scenario to run, and the link with its queues resolved; trace files are found from
    /// `folder`.
    ///
    /// # Errors
    /// One line that names the flag and says what would be right.
    pub fn scenario(&self, folder: &Path) -> Result<(Scenario, Link), SpecError> {
        self.varied(&[], folder)
    }

    /// The same, with these keys of the link in place of its own.
    ///
    /// # Errors
    /// As [`Question::scenario`].
    pub fn varied(
        &self,
        keys: &[(&str, &str)],
        folder: &Path,
    ) -> Result<(Scenario, Link), SpecError> {
        let link = Link::parse_with(&self.link, keys, folder).map_err(|e| e.at("--link"))?;
        let link = link.resolved(self.packet);
        let own = |side: Option<crate::side::Side>, stream| side.map(|side| Own { side, stream });
        let (access, egress) = (own(link.access, "access"), own(link.egress, "egress"));
        let flows = |name: &str, speaks, count| Flows {
            name: name.to_string(),
            speaks,
            count,
            from: "left".into(),
            to: "right".into(),
            start: Duration::ZERO,
            stagger: self.stagger,
            stop: None,
            source: SourceSpec::bulk(),
            access,
            egress,
            line: 0,
        };
        let read = |spec: &Spec| Protocol::read(spec, self.preset, self.packet);
        read(&Spec::named(PROTOCOLS[0].name)).map_err(|e| e.at("--packet"))?;
        if self.flows == 0 {
            return Err(SpecError::new("--flows must be at least 1"));
        }
        let mut groups = vec![flows("main", Speaks::Each, self.flows)];
        if let Some(text) = &self.against {
            let (spec, count) = several(text, self.flows)
                .and_then(|x| read(&x.0).map(|_| x))
                .map_err(|e| e.at("--against"))?;
            groups.push(flows("against", Speaks::One(spec), count));
        }
        if let Some(text) = &self.reverse {
            let (spec, count) = several(text, self.flows)
                .and_then(|x| read(&x.0).map(|_| x))
                .map_err(|e| e.at("--reverse"))?;
            // The network is the same: who sends the other way begins behind an egress link.
            groups.push(Flows {
                from: "right".into(),
                to: "left".into(),
                access: egress,
                egress: access,
                ..flows("reverse", Speaks::One(spec), count)
            });
        }
        let mut s = Scenario::named("compare");
        s.seed = self.seed;
        s.seeds = self.seeds;
        s.duration = self.duration;
        s.warmup = self.warmup;
        s.preset = self.preset;
        s.packet = self.packet;
        s.protocols = protocols(&self.protocols).map_err(|e| e.at("--protocols"))?;
        for spec in &s.protocols {
            read(spec).map_err(|e| e.at("--protocols"))?;
        }
        s.links = vec![Wire {
            name: "bottleneck".into(),
            from: "left".into(),
            to: "right".into(),
            there: link.forward.clone(),
            back: link.back.clone(),
            line: 0,
        }];
        // Utilisation and losses are the stated link's, even behind a slower access link.
        s.bottleneck = Some("bottleneck".into());
        s.flows = groups;
        Ok((s, link))
    }
}

/// `NAME[:M]`, where the name may have parameters in parentheses.
fn several(text: &str, usual: usize) -> Result<(Spec, usize), SpecError> {
    let colon = text.rfind(':').filter(|c| !text[*c..].contains(')'));
    let (name, count) = match colon {
        None => (text, usual),
        Some(c) => {
            let number = text[c + 1..].trim();
            let count = number.parse().ok().filter(|n| *n > 0).ok_or_else(|| {
                SpecError::new(format!(
                    "'{text}': '{number}' is not a number of flows, as in reno:4"
                ))
            })?;
            (&text[..c], count)
        }
    };
    Ok((Spec::parse(name)?, count))
}
