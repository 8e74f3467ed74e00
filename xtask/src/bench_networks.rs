//! `cargo xtask bench networks`: controllers on networks that are drawn at random, in simulation.

mod item;
mod law;
mod measure;
mod page;
mod scores;
mod statistics;

use crate::all_cores::{self, SeedRun};
use crate::flags::Flags;
use crate::section::{keep, read};
use item::{BenchNetwork, BenchPart};
use scores::{MIX_RIVAL, Results, TRACE_RIVAL, TRANSFER_RIVALS};
use std::path::{Path, PathBuf};

const KNOWN: &str = "--set dev|check, --seed N, \
                     --only networks|access|routes|mixes|transfers|traces|named (several: A,B), \
                     --protocols A,B, --traces DIR, --quick, --light, --each, --jobs N, --json FILE, --before FILE";

/// `--light` leaves networks out by the work of this protocol.
const REFERENCE: &str = "rrtp";
/// Numbers of networks, networks by access type, mixes and networks for transfers; `--quick` uses the first of them.
/// There are as many networks with changing routes as by access type.
const FULL: [usize; 4] = [600, 300, 240, 100];
const QUICK: [usize; 4] = [200, 100, 100, 40];

/// Plans of the first networks of the development set, with these protocols in turn.
///
/// # Errors
/// A network that does not parse; the message names it.
pub fn plans(networks: usize, protocols: &[&str]) -> Result<Vec<narrows_scenario::Plan>, String> {
    let items = law::networks(1, networks);
    items.iter().zip(protocols.iter().cycle()).map(|(item, protocol)| item.plan(protocol)).collect()
}

struct Options {
    seed: u64,
    only: Vec<BenchPart>,
    protocols: Vec<String>,
    traces: Option<PathBuf>,
    quick: bool,
    /// Without the fifth of each part that needs the most time.
    light: bool,
    each: bool,
    jobs: usize,
    json: Option<String>,
    before: Option<String>,
}

impl Options {
    fn read(args: &[String]) -> Result<Options, String> {
        let mut options = Options {
            seed: 1,
            only: BenchPart::ALL.into(),
            protocols: Vec::new(),
            traces: None,
            quick: false,
            light: false,
            each: false,
            jobs: all_cores::count(),
            json: None,
            before: None,
        };
        let mut flags = Flags::new(args);
        while let Some(flag) = flags.advance() {
            match flag {
                "--set" => {
                    options.seed = match flags.value()? {
                        "dev" => 1,
                        "check" => 1_000_003,
                        other => return Err(format!("--set '{other}': dev or check")),
                    }
                }
                "--seed" => options.seed = flags.number(0..=1 << 40)?,
                "--jobs" => options.jobs = flags.number(1..=1024)?,
                "--only" => {
                    options.only = flags.value()?.split(',').map(part).collect::<Result<_, _>>()?
                }
                "--protocols" => options.protocols = protocols(flags.value()?),
                "--traces" => options.traces = Some(flags.value()?.into()),
                "--quick" => options.quick = true,
                "--light" => options.light = true,
                "--each" => options.each = true,
                "--json" => options.json = Some(flags.value()?.into()),
                "--before" => options.before = Some(flags.value()?.into()),
                _ => return flags.unknown(KNOWN),
            }
        }
        if options.protocols.is_empty() {
            let all = "rrtp,rrtp+bbr,cubic,bbr3,copa";
            options.protocols = protocols(if options.quick { "rrtp,rrtp+bbr" } else { all });
        }
        Ok(options)
    }

    fn items(&self) -> Result<Vec<BenchNetwork>, String> {
        let mut items = Vec::new();
        let [networks, access, mixes, transfers] = if self.quick { QUICK } else { FULL };
        for part in &self.only {
            match part {
                BenchPart::Networks => items.extend(law::networks(self.seed, networks)),
                BenchPart::Access => items.extend(law::access(self.seed, access)),
                BenchPart::Routes => items.extend(law::routes(self.seed, access)),
                BenchPart::Mixes => items.extend(law::mixes(self.seed, mixes)),
                BenchPart::Transfers => items.extend(law::transfers(self.seed, transfers)),
                BenchPart::Named => items.extend(law::named()),
                BenchPart::Traces => {
                    if let Some(folder) = &self.traces {
                        items.extend(recorded(folder)?);
                    }
                }
            }
        }
        if self.light { without_longest(items) } else { Ok(items) }
    }
}

/// Leaves out the fifth of each part that needs the most time: it takes three quarters of all.
fn without_longest(items: Vec<BenchNetwork>) -> Result<Vec<BenchNetwork>, String> {
    let mut work = Vec::new();
    for item in items {
        work.push((item.plan(REFERENCE)?.work(), item));
    }
    let most = |part: BenchPart| {
        let of_part = work.iter().filter(|w| w.1.part == part).map(|w| w.0);
        let mut sorted: Vec<f64> = of_part.collect();
        sorted.sort_by(f64::total_cmp);
        crate::real::quantile(&sorted, 0.8)
    };
    let most = BenchPart::ALL.map(|part| (part, most(part)));
    work.retain(|(cost, item)| most.iter().any(|(part, most)| *part == item.part && cost <= most));
    Ok(work.into_iter().map(|w| w.1).collect())
}

fn part(name: &str) -> Result<BenchPart, String> {
    let part = BenchPart::ALL.into_iter().find(|p| p.name() == name.trim());
    part.ok_or_else(|| {
        format!("--only '{name}': networks, access, routes, mixes, transfers, traces or named")
    })
}

/// Commas within parentheses belong to a protocol.
fn protocols(text: &str) -> Vec<String> {
    let (mut list, mut depth) = (vec![String::new()], 0);
    for c in text.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        match list.last_mut() {
            Some(last) if c != ',' || depth > 0 => last.push(c),
            _ => list.push(String::new()),
        }
    }
    list.iter().map(|p| p.trim().to_string()).filter(|p| !p.is_empty()).collect()
}

/// The trace files of a folder, by name.
fn recorded(folder: &Path) -> Result<Vec<BenchNetwork>, String> {
    let wrong = |e: std::io::Error| format!("--traces {}: {e}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        if path.is_file() && path.extension().is_none_or(|e| e != "md" && e != "txt") {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(format!("--traces {}: no files", folder.display()));
    }
    files.sort();
    let recorded = files.iter().map(|file| law::recorded(file));
    recorded.chain(files.iter().map(|file| law::modelled(file))).collect()
}

/// `bench networks`.
///
/// # Errors
/// An unknown flag or protocol, a trace that does not parse, a file that cannot be read or written.
pub fn run(args: &[String]) -> Result<(), String> {
    let options = Options::read(args).map_err(|e| format!("bench networks: {e}"))?;
    let before = options.before.as_deref().map(read::<Results>).transpose()?;
    let items = options.items()?;
    let results = simulate(&mut works(&items, &options.protocols)?, &items, options.jobs)?;
    if options.each {
        print!("{}", page::each(&items, &results, &options.protocols));
    }
    print!("{}", page::text(&items, &results, &options.protocols, before.as_ref()));
    if let Some(file) = &options.json {
        keep(file, &results)?;
    }
    Ok(())
}

/// The protocols with which an item runs: these, and those with which they are compared.
fn protocols_of(item: &BenchNetwork, protocols: &[String]) -> Vec<String> {
    let mut list = protocols.to_vec();
    let mut rival = |name: &str| {
        if !protocols.iter().any(|p| p == name) {
            list.push(name.into());
        }
    };
    match item.part {
        BenchPart::Transfers => TRANSFER_RIVALS.iter().for_each(|r| rival(r)),
        BenchPart::Traces => rival(TRACE_RIVAL),
        BenchPart::Mixes => rival(MIX_RIVAL),
        BenchPart::Networks | BenchPart::Access | BenchPart::Routes | BenchPart::Named => {}
    }
    list
}

/// All simulations of these protocols, and of those with which they are compared.
fn works(items: &[BenchNetwork], protocols: &[String]) -> Result<Vec<SeedRun>, String> {
    let mut works = Vec::new();
    for (case, item) in items.iter().enumerate() {
        for protocol in protocols_of(item, protocols) {
            // A plan holds its trace; the traces of all works would not fit into memory together.
            let cost = item.plan(&protocol)?.work();
            for i in 0..item.seeds {
                works.push(SeedRun { case, protocol: protocol.clone(), seed: item.seed + i, cost });
            }
        }
    }
    Ok(works)
}

fn simulate(works: &mut [SeedRun], items: &[BenchNetwork], jobs: usize) -> Result<Results, String> {
    let figures = all_cores::simulate(works, jobs, |w| {
        let item = &items[w.case];
        measure::run(item, &item.plan(&w.protocol)?, w.seed)
    })?;
    let mut results = Results::new();
    for ((case, protocol), of_seeds) in figures {
        let of_seeds: Vec<measure::Figures> = of_seeds.into_values().collect();
        let of_item = results.entry(items[case].key()).or_default();
        of_item.insert(protocol, measure::medians(&of_seeds));
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn all(seed: u64) -> Vec<BenchNetwork> {
        let mut items = law::networks(seed, FULL[0]);
        items.extend(law::access(seed, FULL[1]));
        items.extend(law::routes(seed, FULL[1]));
        items.extend(law::mixes(seed, FULL[2]));
        items.extend(law::transfers(seed, FULL[3]));
        items.extend(law::named());
        items
    }

    #[test]
    fn every_drawn_item_can_run_and_has_unique_name() {
        for seed in [1, 1_000_003] {
            let items = all(seed);
            let keys: BTreeSet<String> = items.iter().map(BenchNetwork::key).collect();
            assert_eq!(keys.len(), items.len());
            for item in &items {
                item.plan("rrtp").unwrap();
            }
        }
    }

    /// Each class of the distribution must be frequent enough to be a row.
    #[test]
    fn every_kind_of_network_is_drawn() {
        let items = law::networks(1, FULL[0]);
        let count = |class: &str| items.iter().filter(|i| i.classes.contains(&class)).count();
        for class in [
            "codel",
            "fq-codel",
            "pie",
            "red",
            "dualpi2",
            "no loss",
            "single losses",
            "bursts in packets",
            "bursts in time",
            "jitter > RTT/10",
            "reordering",
            "return path < rate",
            "cellular model",
            "rate steps",
            "rate walks",
            "two rates in turn",
            "policer",
            "outages",
            "web beside",
            "queue < 1/4 BDP",
            "queue 1/4 to 1 BDP",
            "queue 1 to 4 BDP",
        ] {
            assert!(count(class) >= 5, "{class}: {}", count(class));
        }
    }

    #[test]
    fn quick_set_is_part_of_full_and_sets_differ() {
        let describe =
            |items: Vec<BenchNetwork>| items.iter().map(BenchNetwork::describe).collect::<Vec<_>>();
        let (full, quick) = (law::networks(1, 30), law::networks(1, 10));
        assert_eq!(describe(full)[..10], describe(quick)[..]);
        assert_ne!(describe(law::mixes(1, 5)), describe(law::mixes(2, 5)));
    }

    #[test]
    fn commas_in_parentheses_do_not_separate_protocols() {
        assert_eq!(protocols("rrtp, cubic(c=1,beta=0.5)"), ["rrtp", "cubic(c=1,beta=0.5)"]);
    }

    #[test]
    fn a_small_run_fills_the_table() {
        let mut items = law::networks(1, 2);
        items.extend(law::mixes(1, 1));
        items.iter_mut().for_each(|i| i.question.duration = narrows_base::Duration::from_secs(2));
        items.iter_mut().for_each(|i| {
            i.question.warmup = narrows_base::Duration::ZERO;
            i.changes.clear();
            if let Some(n) = &mut i.neighbours {
                n.starts_s = (0.0, 0.0);
            }
        });
        let options = Options::read(&["--jobs".into(), "1".into()]).unwrap();
        let mut works = works(&items, &options.protocols).unwrap();
        let results = simulate(&mut works, &items, 1).unwrap();
        let file = std::env::temp_dir().join(format!("bench-networks-{}", std::process::id()));
        let file = file.to_string_lossy();
        keep(&file, &results).unwrap();
        let before: Results = read(&file).unwrap();
        std::fs::remove_file(&*file).unwrap();
        assert_eq!(before.len(), items.len());
        let text = page::text(&items, &results, &options.protocols, Some(&before));
        assert!(text.contains("goodput / capacity, mean"), "{text}");
        assert!(text.contains("no more harm than CUBIC"), "{text}");
        assert!(Options::read(&["--set".into(), "x".into()]).is_err());
    }
}
