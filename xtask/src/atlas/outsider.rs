//! Controllers from outside: figures of `narrows scorecard --networks --json`, of `narrows.scorecard` in Python, or of
//! stacks (`narrows-stacks networks --json`).

use super::data::Atlas;
use crate::files::kept;
use narrows_lab::networks::{Figures, SCORECARD_SEED};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[derive(Deserialize)]
struct Scorecard {
    /// Absent if all protocols of the file are scored.
    protocol: Option<String>,
    networks: Vec<ScoredNetwork>,
}

#[derive(Deserialize)]
struct ScoredNetwork {
    network: String,
    description: String,
    figures: BTreeMap<String, Figures>,
}

/// Adds the file's protocols to the tables, on the networks that are equal to the atlas's.
///
/// # Errors
/// A file of another form, no protocol that the atlas lacks, or no equal network.
pub fn add(atlas: &mut Atlas, file: &Path) -> Result<(), String> {
    let name = file.display().to_string();
    let scorecard: Scorecard = kept(file)?;
    let named = |s: ScoredNetwork| ([s.network, s.description], s.figures);
    let scored: BTreeMap<[String; 2], _> = scorecard.networks.into_iter().map(named).collect();
    let all: BTreeSet<&String> = scored.values().flat_map(BTreeMap::keys).collect();
    let is_scored = |p: &&String| scorecard.protocol.as_ref().is_none_or(|only| only == *p);
    let is_new = |p: &&String| !atlas.columns().any(|column| column == *p);
    let protocols: Vec<String> =
        all.into_iter().filter(is_scored).filter(is_new).cloned().collect();
    if protocols.is_empty() {
        return Err(format!("{name}: the atlas has its protocols already"));
    }
    let mut count = 0;
    for network in &atlas.networks {
        let key = network.key();
        let Some(figures) = scored.get(&[key.clone(), network.describe()]) else { continue };
        count += 1;
        let of_network = atlas.measured.results.entry(key).or_default();
        for protocol in &protocols {
            if let Some(figures) = figures.get(protocol) {
                of_network.insert(protocol.clone(), figures.clone());
            }
        }
    }
    if count == 0 {
        let seed = atlas.version.seed;
        return Err(format!(
            "{name}: no network of the atlas; its seed is {seed}, and that of a scorecard --seed plus {SCORECARD_SEED}"
        ));
    }
    eprintln!("{}: on {count} networks of {name}", protocols.join(", "));
    atlas.outsiders.extend(protocols);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atlas::{AtlasVersion, Measured, drawn};
    use narrows_lab::execute::RunControl;
    use narrows_lab::networks::{BenchPart, NetworkScorecard};
    use narrows_report::network_scorecard;

    fn atlas(seed: u64) -> Atlas {
        let protocols = vec!["cubic".into()];
        let version = AtlasVersion { commit: "1".into(), protocols, seed };
        let parts = [BenchPart::Networks, BenchPart::Mixes, BenchPart::Transfers];
        let networks = parts.iter().flat_map(|part| drawn(*part, &version, 1)).collect();
        let measured = Measured::default();
        Atlas { version, outsiders: Vec::new(), networks, measured, worst: Vec::new(), budget: 0 }
    }

    #[test]
    fn scorecard_joins_tables_on_equal_networks() {
        let asked = NetworkScorecard { protocol: "reno".into(), networks: 1, seed: 3 };
        let control = RunControl::quiet(1);
        let scores = asked.measure(&control).unwrap().unwrap();
        let file = std::env::temp_dir().join(format!("narrows-outsider-{}", std::process::id()));
        std::fs::write(&file, network_scorecard::json(&asked, &scores).to_string()).unwrap();
        let mut equal = atlas(SCORECARD_SEED + 3);
        add(&mut equal, &file).unwrap();
        for key in ["networks 000", "mixes 000"] {
            assert_eq!(equal.measured.results[key]["reno"], scores.results[key]["reno"]);
        }
        assert_eq!(equal.columns().collect::<Vec<_>>(), ["cubic", "reno"]);
        assert!(add(&mut equal, &file).unwrap_err().contains("has its protocols already"));
        let other = add(&mut atlas(SCORECARD_SEED + 4), &file).unwrap_err();
        assert!(other.contains("no network of the atlas"), "{other}");
        std::fs::remove_file(&file).unwrap();
    }
}
