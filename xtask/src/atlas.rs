//! `cargo xtask atlas`: what every controller does on networks drawn at random, as pages and as data.
//!
//! The networks are simulated in portions. The figures of a portion are in a file under `portions`, so that an
//! interrupted run continues. The tables are made from all of them:
//!
//! ```text
//! index.html                scores by protocol, with 95% intervals
//! networks.html  ...        goodput on each network; a cell opens in the page with the simulator
//! pairs.html                every two protocols on one bottleneck: share, harm, starvation
//! worst.html                the worst network that `narrows attack` finds for each protocol
//! scores.csv, figures.csv   the same as tables, with digests; also as Parquet
//! pairs.csv, worst.csv
//! datapackage.json          their columns, units, version and licence (Data Package of frictionlessdata.io)
//! .zenodo.json              title, licence and version for a DOI
//! ```

mod data;
mod meanings;
mod outsider;
mod page;
mod pairs;
mod tables;
mod worst;

use crate::bench_networks::{protocols, recorded};
use crate::command::{cores, output, target};
use crate::files::{self, failed, keep, kept};
use crate::flags::Flags;
use data::{Atlas, AtlasVersion, Measured};
use narrows_lab::execute::RunControl;
use narrows_lab::networks::{ATLAS_PARTS, BenchNetwork, BenchPart, SCORECARD_SEED, draw, simulate};
use narrows_sim::protocol::every;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const KNOWN: &str =
    "--protocols A,B, --networks N, --seed N, --traces DIR, --add FILE, --out DIR, --jobs N";
/// Networks between two writes.
const PORTION: usize = 20;
/// End of a commit's name if files differ from it.
const DIRTY: &str = "-dirty";

/// A file under `portions`.
#[derive(Serialize, Deserialize)]
struct Portion<T> {
    version: AtlasVersion,
    found: T,
}

struct Options {
    protocols: Vec<String>,
    /// At most so many networks of each part.
    networks: usize,
    seed: u64,
    /// Folder of recorded links.
    traces: Option<PathBuf>,
    /// Files of controllers from outside.
    add: Vec<PathBuf>,
    out: PathBuf,
    jobs: usize,
}

impl Options {
    fn read(args: &[String]) -> Result<Options, String> {
        let mut options = Options {
            protocols: every().map(|entry| entry.name.to_string()).collect(),
            networks: usize::MAX,
            seed: SCORECARD_SEED + 1,
            traces: None,
            add: Vec::new(),
            out: Path::new(&target()).join("atlas"),
            jobs: cores(),
        };
        let mut flags = Flags::new(args);
        while let Some(flag) = flags.advance() {
            match flag {
                "--protocols" => options.protocols = protocols(flags.value()?)?,
                "--networks" => options.networks = flags.number(1..=1_000_000)?,
                "--seed" => options.seed = flags.number(0..=1 << 40)?,
                "--traces" => options.traces = Some(flags.value()?.into()),
                "--add" => options.add.push(flags.value()?.into()),
                "--out" => options.out = flags.value()?.into(),
                "--jobs" => options.jobs = flags.number(1..=1024)?,
                _ => return flags.unknown(KNOWN),
            }
        }
        Ok(options)
    }
}

/// `atlas`.
///
/// # Errors
/// An unknown flag or protocol, or a file that cannot be read or written.
pub fn run(args: &[String]) -> Result<(), String> {
    let options = Options::read(args).map_err(|e| format!("atlas: {e}"))?;
    let protocols = with_compared(&options.protocols);
    let first = draw::networks(options.seed, 0..1);
    for (network, protocol) in first.iter().cycle().zip(&protocols) {
        network.plan(protocol).map_err(|e| format!("atlas: {e}"))?;
    }
    let version = AtlasVersion { commit: commit(), protocols, seed: options.seed };
    let out = &options.out;
    let portions = out.join("portions");
    std::fs::create_dir_all(&portions).map_err(failed(&portions))?;
    let mut atlas = Atlas {
        version,
        outsiders: Vec::new(),
        networks: Vec::new(),
        measured: Measured::default(),
        worst: Vec::new(),
        budget: worst::budget(options.networks),
    };
    for (part, most) in ATLAS_PARTS {
        let networks = match (part, &options.traces) {
            (BenchPart::Traces, Some(folder)) => recorded(folder)?,
            _ => drawn(part, &atlas.version, most.min(options.networks)),
        };
        for (i, portion) in networks.chunks(PORTION).enumerate() {
            let file = portions.join(format!("{}-{i:03}.json", part.name()));
            let Measured { results, digests } =
                measured(&file, portion, &atlas.version, options.jobs)?;
            atlas.measured.results.extend(results);
            atlas.measured.digests.extend(digests);
            let done = (PORTION * (i + 1)).min(networks.len());
            eprintln!("{}: {done} of {}", part.name(), networks.len());
        }
        atlas.networks.extend(networks);
    }
    for (i, protocol) in atlas.version.protocols.iter().enumerate() {
        let file = portions.join(format!("worst-{i:03}.json"));
        let budget = atlas.budget;
        let is_same = |found: &worst::WorstSearch| found.budget == budget;
        let search = || worst::search(protocol, budget, options.seed, options.jobs);
        atlas.worst.extend(portion(&file, &atlas.version, is_same, search)?.worst);
        eprintln!("worst networks: {} of {}", i + 1, atlas.version.protocols.len());
    }
    for file in &options.add {
        outsider::add(&mut atlas, file)?;
    }
    pairs::mirror(&mut atlas.measured.results);
    atlas.write(out)?;
    println!("{}", out.join("index.html").display());
    Ok(())
}

/// These protocols, and those with which scores compare them.
fn with_compared(protocols: &[String]) -> Vec<String> {
    let mut all = protocols.to_vec();
    for name in ["cubic", "rrtp+bbr"] {
        if !all.iter().any(|p| p == name) {
            all.push(name.into());
        }
    }
    all
}

/// The first networks of a part.
fn drawn(part: BenchPart, version: &AtlasVersion, n: usize) -> Vec<BenchNetwork> {
    if part == BenchPart::Pairs {
        return draw::pairs(version.seed, 0..n, &version.protocols);
    }
    draw::numbered(part, version.seed, 0..n)
}

/// What was measured on these networks, from the file if that is of the same version and networks.
fn measured(
    file: &Path,
    networks: &[BenchNetwork],
    version: &AtlasVersion,
    jobs: usize,
) -> Result<Measured, String> {
    let simulate = || {
        let control = RunControl::quiet(jobs);
        let simulated = simulate(networks, &version.protocols, &control)?.unwrap_or_default();
        let written = |(protocol, digest): (String, u64)| (protocol, format!("{digest:016x}"));
        let digests = simulated.digests.into_iter();
        let digests = digests.map(|(key, of)| (key, of.into_iter().map(written).collect()));
        Ok(Measured { results: simulated.results, digests: digests.collect() })
    };
    let is_whole = |found: &Measured| networks.iter().all(|n| found.results.contains_key(&n.key()));
    let mut found = portion(file, version, is_whole, simulate)?;
    found.results.retain(|key, _| networks.iter().any(|n| n.key() == *key));
    Ok(found)
}

/// What the file has, if it is of the same version; else what `make` finds, which is written to the file.
fn portion<T: Serialize + DeserializeOwned>(
    file: &Path,
    version: &AtlasVersion,
    is_whole: impl Fn(&T) -> bool,
    make: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    if file.exists() && !version.commit.ends_with(DIRTY) {
        let before = kept::<Portion<T>>(file).ok().filter(|portion| portion.version == *version);
        if let Some(portion) = before.filter(|portion| is_whole(&portion.found)) {
            return Ok(portion.found);
        }
    }
    let portion = Portion { version: version.clone(), found: make()? };
    // A run that ends while it writes leaves the former file.
    let beside = file.with_extension("new");
    keep(&beside, &portion)?;
    std::fs::rename(&beside, file).map_err(failed(file))?;
    Ok(portion.found)
}

fn commit() -> String {
    let name = output("git", &["rev-parse", "--short=12", "HEAD"]).unwrap_or("unknown".into());
    let is_clean = output("git", &["status", "--porcelain"]).is_ok_and(|text| text.is_empty());
    name.trim().to_string() + if is_clean { "" } else { DIRTY }
}

impl Atlas {
    fn write(&self, out: &Path) -> Result<(), String> {
        let simulator = Path::new(&target()).join("web/index.html");
        let has_simulator = simulator.exists();
        if has_simulator {
            std::fs::copy(&simulator, out.join(page::SIMULATOR)).map_err(failed(out))?;
        } else {
            eprintln!("no cell opens in the simulator: `cargo xtask web` has not written its page");
        }
        for (name, text) in page::pages(self, has_simulator) {
            files::write(out.join(&name), text)?;
        }
        tables::write(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::Duration;

    /// Networks of a second.
    fn short(part: BenchPart, n: usize) -> Vec<BenchNetwork> {
        let mut networks = drawn(part, &version("bbr"), n);
        for network in &mut networks {
            network.question.duration = Duration::from_secs(1);
            network.question.warmup = Duration::ZERO;
            network.changes.clear();
            if let Some(n) = &mut network.neighbours {
                n.starts_s = (0.0, 0.0);
            }
        }
        networks
    }

    fn version(protocol: &str) -> AtlasVersion {
        let protocols = with_compared(&[protocol.into()]);
        AtlasVersion { commit: "1".into(), protocols, seed: 1 }
    }

    #[test]
    fn interrupted_atlas_continues_and_has_all_files() {
        let folder = std::env::temp_dir().join(format!("narrows-atlas-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("portion.json");
        let mut networks = short(BenchPart::Networks, 2);
        networks.extend(short(BenchPart::Mixes, 1));
        networks.extend(short(BenchPart::Pairs, 1));
        let first = measured(&file, &networks, &version("bbr"), 1).unwrap();
        assert_eq!(measured(&file, &networks, &version("bbr"), 1).unwrap(), first, "to the bit");
        // Figures that no simulation gives show that the file was read.
        let mut portion: Portion<Measured> = kept(&file).unwrap();
        for of_network in portion.found.results.values_mut().flat_map(|r| r.values_mut()) {
            of_network.insert("goodput".into(), 7.0);
        }
        keep(&file, &portion).unwrap();
        let again = measured(&file, &networks, &version("bbr"), 1).unwrap();
        assert_eq!(again.results[&networks[0].key()]["cubic"]["goodput"], 7.0);
        let dirty = AtlasVersion { commit: format!("1{DIRTY}"), ..version("bbr") };
        keep(&file, &Portion { version: dirty.clone(), ..portion }).unwrap();
        assert_eq!(measured(&file, &networks, &dirty, 1).unwrap(), first);
        let other = measured(&file, &networks, &version("reno"), 1).unwrap();
        let of_cubic = |of: &Measured| of.results[&networks[0].key()]["cubic"].clone();
        assert_eq!(of_cubic(&other), of_cubic(&first));

        let count = networks.len();
        let mut atlas = Atlas {
            version: version("bbr"),
            outsiders: Vec::new(),
            networks,
            measured: first,
            worst: Vec::new(),
            budget: 8,
        };
        // Of the pairs beside others, 6 of 9 were simulated.
        let of_pairs = |atlas: &Atlas| -> usize {
            let pairs = atlas
                .networks
                .iter()
                .filter(|n| n.neighbours.is_some() && n.part == BenchPart::Pairs);
            pairs.map(|n| atlas.measured.results[&n.key()].len()).sum()
        };
        assert_eq!(of_pairs(&atlas), 6);
        pairs::mirror(&mut atlas.measured.results);
        assert_eq!(of_pairs(&atlas), 9);
        for [a, b] in [["bbr", "cubic"], ["cubic", "rrtp+bbr"]] {
            let figure = |protocol: &str, beside: &str, name: &str| {
                atlas.measured.results[&format!("pairs 000 {beside}")][protocol][name]
            };
            assert_eq!(figure(a, b, "own Mbit/s"), figure(b, a, "others Mbit/s"));
            assert_eq!(figure(a, b, "starved"), figure(b, a, "own starved"));
        }
        atlas.write(&folder).unwrap();
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(text("index.html").contains("goodput / capacity, mean"));
        assert!(text("networks.html").contains("Mbit/s"));
        assert_eq!(text("figures.csv").lines().count(), 1 + 3 * count);
        assert_eq!(text("pairs.csv").lines().count(), 1 + 3 * 3);
        assert!(text("pairs.html").contains("of one flow beside another"));
        let about: serde_json::Value = serde_json::from_str(&text("datapackage.json")).unwrap();
        for resource in about["resources"].as_array().unwrap() {
            assert!(folder.join(resource["path"].as_str().unwrap()).exists(), "{resource}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
