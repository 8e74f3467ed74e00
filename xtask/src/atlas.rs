//! `cargo xtask atlas`: what every controller does on networks drawn at random, as pages and as data.
//!
//! The networks are simulated in portions. The figures of a portion are in a file under `portions`, so that an
//! interrupted run continues. The tables are made from all of them:
//!
//! ```text
//! index.html                scores by protocol, with 95% intervals
//! networks.html  ...        goodput on each network; a cell opens in the page with the simulator
//! scores.csv, figures.csv   the same as tables, also as Parquet
//! datapackage.json          their columns, units, version and licence (Data Package of frictionlessdata.io)
//! ```

mod page;
mod tables;

use crate::bench_networks::protocols;
use crate::command::target;
use crate::flags::Flags;
use crate::section::{keep, read};
use narrows_lab::execute::RunControl;
use narrows_lab::networks::{BenchNetwork, BenchPart, Results, draw, simulate};
use narrows_sim::protocol::every;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

const KNOWN: &str = "--protocols A,B, --networks N, --seed N, --out DIR, --jobs N";
/// The parts, and how many networks each has by default.
const PARTS: [(BenchPart, usize); 5] = [
    (BenchPart::Networks, 600),
    (BenchPart::Access, 300),
    (BenchPart::Mixes, 240),
    (BenchPart::Transfers, 100),
    (BenchPart::AccessTransfers, 100),
];
/// Networks between two writes.
const PORTION: usize = 20;
/// End of a commit's name if files differ from it.
const DIRTY: &str = "-dirty";

/// What the figures are of. Portions of another version, or of files that differ from their commit, are simulated anew.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct AtlasVersion {
    /// The commit, with [`DIRTY`] after it if files differ from it.
    commit: String,
    protocols: Vec<String>,
    seed: u64,
}

#[derive(Serialize, Deserialize)]
struct Portion {
    version: AtlasVersion,
    results: Results,
}

/// The figures of all networks.
struct Atlas {
    version: AtlasVersion,
    networks: Vec<BenchNetwork>,
    results: Results,
}

struct Options {
    protocols: Vec<String>,
    /// At most so many networks of each part.
    networks: usize,
    seed: u64,
    out: PathBuf,
    jobs: usize,
}

impl Options {
    fn read(args: &[String]) -> Result<Options, String> {
        let mut options = Options {
            protocols: every().map(|entry| entry.name.to_string()).collect(),
            networks: usize::MAX,
            seed: 1,
            out: Path::new(&target()).join("atlas"),
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
        };
        let mut flags = Flags::new(args);
        while let Some(flag) = flags.advance() {
            match flag {
                "--protocols" => options.protocols = protocols(flags.value()?),
                "--networks" => options.networks = flags.number(1..=1_000_000)?,
                "--seed" => options.seed = flags.number(0..=1 << 40)?,
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
    let first = draw::networks(options.seed, 1);
    for (network, protocol) in first.iter().cycle().zip(&protocols) {
        network.plan(protocol).map_err(|e| format!("atlas: {e}"))?;
    }
    let version = AtlasVersion { commit: commit(), protocols, seed: options.seed };
    let out = &options.out;
    let portions = out.join("portions");
    std::fs::create_dir_all(&portions).map_err(|e| format!("{}: {e}", portions.display()))?;
    let mut atlas = Atlas { version, networks: Vec::new(), results: Results::new() };
    for (part, most) in PARTS {
        let networks = drawn(part, options.seed, most.min(options.networks));
        for (i, portion) in networks.chunks(PORTION).enumerate() {
            let file = portions.join(format!("{}-{i:03}.json", part.name()));
            atlas.results.extend(figures(&file, portion, &atlas.version, options.jobs)?);
            let done = (PORTION * (i + 1)).min(networks.len());
            eprintln!("{}: {done} of {}", part.name(), networks.len());
        }
        atlas.networks.extend(networks);
    }
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

fn drawn(part: BenchPart, seed: u64, n: usize) -> Vec<BenchNetwork> {
    match part {
        BenchPart::Networks => draw::networks(seed, n),
        BenchPart::Access => draw::access(seed, n),
        BenchPart::Mixes => draw::mixes(seed, n),
        BenchPart::Transfers => draw::transfers(seed, n),
        BenchPart::AccessTransfers => draw::access_transfers(seed, n),
        BenchPart::Routes | BenchPart::Traces | BenchPart::Named => Vec::new(),
    }
}

/// The figures of a portion, from its file if that is of the same version and networks.
fn figures(
    file: &Path,
    networks: &[BenchNetwork],
    version: &AtlasVersion,
    jobs: usize,
) -> Result<Results, String> {
    let name = file.display().to_string();
    if file.exists() && !version.commit.ends_with(DIRTY) {
        let before = read::<Portion>(&name).ok().filter(|portion| portion.version == *version);
        let is_whole = |results: &Results| networks.iter().all(|n| results.contains_key(&n.key()));
        if let Some(portion) = before.filter(|portion| is_whole(&portion.results)) {
            let mut results = portion.results;
            results.retain(|key, _| networks.iter().any(|n| n.key() == *key));
            return Ok(results);
        }
    }
    let control = RunControl { stop: &AtomicBool::new(false), progress: &|_| (), jobs };
    let results = simulate(networks, &version.protocols, &control)?.unwrap_or_default();
    let portion = Portion { version: version.clone(), results };
    // A run that ends while it writes leaves the former file.
    let beside = format!("{name}.new");
    keep(&beside, &portion)?;
    std::fs::rename(&beside, &name).map_err(|e| format!("{name}: {e}"))?;
    Ok(portion.results)
}

fn commit() -> String {
    let git = |args: &[&str]| {
        let output = std::process::Command::new("git").args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let name = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into());
    let differs = git(&["status", "--porcelain"]).is_none_or(|text| !text.is_empty());
    if differs { name + DIRTY } else { name }
}

impl Atlas {
    fn write(&self, out: &Path) -> Result<(), String> {
        let simulator = Path::new(&target()).join("web/index.html");
        let has_simulator = simulator.exists();
        let wrong = |name: &str, e: &dyn std::fmt::Display| format!("{name}: {e}");
        if has_simulator {
            std::fs::copy(&simulator, out.join(page::SIMULATOR))
                .map_err(|e| wrong(page::SIMULATOR, &e))?;
        } else {
            eprintln!("no cell opens in the simulator: `cargo xtask web` has not written its page");
        }
        for (name, text) in page::pages(self, has_simulator) {
            std::fs::write(out.join(&name), text).map_err(|e| wrong(&name, &e))?;
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
        let mut networks = drawn(part, 1, n);
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

    #[test]
    fn interrupted_atlas_continues_and_has_all_files() {
        let folder = std::env::temp_dir().join(format!("narrows-atlas-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let version = |protocol: &str| AtlasVersion {
            commit: "1".into(),
            protocols: with_compared(&[protocol.into()]),
            seed: 1,
        };
        let file = folder.join("portion.json");
        let mut networks = short(BenchPart::Networks, 2);
        networks.extend(short(BenchPart::Mixes, 1));
        let first = figures(&file, &networks, &version("cubic"), 1).unwrap();
        // Figures that no simulation gives show that the file was read.
        let mut portion: Portion = read(&file.to_string_lossy()).unwrap();
        for of_network in portion.results.values_mut().flat_map(|r| r.values_mut()) {
            of_network.insert("goodput".into(), 7.0);
        }
        keep(&file.to_string_lossy(), &portion).unwrap();
        let again = figures(&file, &networks, &version("cubic"), 1).unwrap();
        assert_eq!(again[&networks[0].key()]["cubic"]["goodput"], 7.0);
        let dirty = AtlasVersion { commit: format!("1{DIRTY}"), ..version("cubic") };
        keep(&file.to_string_lossy(), &Portion { version: dirty.clone(), ..portion }).unwrap();
        assert_eq!(figures(&file, &networks, &dirty, 1).unwrap(), first);
        let other = figures(&file, &networks, &version("reno"), 1).unwrap();
        assert_eq!(other[&networks[0].key()]["cubic"], first[&networks[0].key()]["cubic"]);

        let atlas = Atlas { version: version("reno"), networks, results: other };
        atlas.write(&folder).unwrap();
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(text("index.html").contains("goodput / capacity, mean"));
        assert!(text("networks.html").contains("Mbit/s"));
        assert_eq!(text("figures.csv").lines().count(), 1 + 3 * 3);
        let about: serde_json::Value = serde_json::from_str(&text("datapackage.json")).unwrap();
        for resource in about["resources"].as_array().unwrap() {
            assert!(folder.join(resource["path"].as_str().unwrap()).exists(), "{resource}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
