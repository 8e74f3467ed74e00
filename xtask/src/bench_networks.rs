//! `cargo xtask bench networks`: controllers on networks that are drawn at random, in simulation.

mod ablation;
mod built;
mod item;
mod law;
mod measure;
mod mechanisms;
mod page;
mod scores;
mod statistics;
mod variants;

use crate::all_cores::{self, SeedRun};
use crate::flags::Flags;
use crate::section::{self, keep, read};
use item::{BenchNetwork, BenchPart};
use scores::{MIX_RIVAL, Results, TRACE_RIVAL, TRANSFER_RIVALS};
use std::path::{Path, PathBuf};
use variants::MeasuredVariant;

const KNOWN: &str = "--set dev|check, --seed N, --only networks|access|mixes|transfers|traces|named (several: A,B), \
                     --protocols A,B, --traces DIR, --quick, --light, --each, --jobs N, --json FILE, --before FILE, \
                     --without A,B|A+B|all, --scale CONSTANT|all|random=F,F, --draws N, --write";

/// Numbers of networks, networks by access type, mixes and networks for transfers; `--quick` uses the first of them.
const FULL: [usize; 4] = [600, 300, 240, 100];
const QUICK: [usize; 4] = [200, 100, 100, 40];

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
    /// Whether the tables of variants go into the pages.
    write: bool,
    variants: Vec<MeasuredVariant>,
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
            write: false,
            variants: Vec::new(),
        };
        let (mut scales, mut draws) = (Vec::new(), 8);
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
                "--write" => options.write = true,
                "--without" => {
                    options.variants.extend(MeasuredVariant::without_each(flags.value()?)?)
                }
                "--scale" => scales.push(flags.value()?),
                "--draws" => draws = flags.number(1..=1 << 40)?,
                "--each" => options.each = true,
                "--json" => options.json = Some(flags.value()?.into()),
                "--before" => options.before = Some(flags.value()?.into()),
                _ => return flags.unknown(KNOWN),
            }
        }
        for scale in scales {
            options.variants.extend(MeasuredVariant::scaled(scale, draws, options.seed)?);
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
        work.push((item.plan(ablation::REFERENCE)?.work(), item));
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
        format!("--only '{name}': networks, access, mixes, transfers, traces or named")
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
    if args == ["--without", "list"] {
        for m in mechanisms::MECHANISMS {
            println!("{:<22} {}", m.name, m.does);
        }
        return Ok(());
    }
    let options = Options::read(args).map_err(|e| format!("bench networks: {e}"))?;
    if !built::LIST.is_empty() {
        built::install()?;
        return measure_variants(&options.items()?, &options);
    }
    if !options.variants.is_empty() {
        return compare_variants(args, &options);
    }
    let before = options.before.as_deref().map(read::<Results>).transpose()?;
    let items = options.items()?;
    let results = simulate(&mut works(&items, &options.protocols, true)?, &items, options.jobs)?;
    if options.each {
        print!("{}", page::each(&items, &results, &options.protocols));
    }
    print!("{}", page::text(&items, &results, &options.protocols, before.as_ref()));
    if let Some(file) = &options.json {
        keep(file, &results)?;
    }
    Ok(())
}

/// A simulation of an item, by the name of its protocol.
type NetworkRun = SeedRun<String>;

/// Tables of variants beside rrtp. Figures that the file of `--json` has are not measured again.
fn compare_variants(args: &[String], options: &Options) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = root.canonicalize().map_err(|e| format!("{}: {e}", root.display()))?;
    let folder = root.join("target/measure");
    let passing = folder.with_extension("json");
    let file = options.json.clone().unwrap_or_else(|| {
        // One of an earlier command, if any, may be of other sources.
        let _ = std::fs::remove_file(&passing);
        passing.to_string_lossy().into_owned()
    });
    let items = options.items()?;
    let known = if Path::new(&file).exists() { read(&file)? } else { Results::new() };
    let has = |label: &str| {
        items.iter().all(|i| known.get(&i.key()).is_some_and(|r| r.contains_key(label)))
    };
    let mut missing: Vec<MeasuredVariant> =
        options.variants.iter().filter(|v| !has(&v.label)).cloned().collect();
    if !missing.is_empty() {
        missing.insert(0, MeasuredVariant::unchanged());
        variants::write(&missing, &folder)?;
        // The controllers take little of a simulation's time, but their compilation most of the build's.
        let quickly = "profile.release.package.xtask.opt-level=1";
        let build = ["run", "--quiet", "--release", "--config", quickly, "--package", "xtask"];
        let what = ["--features", "variants", "--", "bench", "networks"];
        let mut command = crate::command::cargo_command(&build);
        command.args(what).args(args).args(["--json", &file]);
        command.env("NARROWS_VARIANTS", folder);
        let shown = format!("cargo {}, with {} variants", build.join(" "), missing.len());
        crate::command::run(&mut command, &shown)?;
    }
    let results: Results = read(&file)?;
    let mechanisms = ablation::mechanisms(&items, &results);
    let constants = ablation::constants(&items, &results);
    print!("{mechanisms}{constants}");
    if options.write {
        let line = |table: &str| format!("{}\n", table.trim_end());
        section::write("docs/benchmarks.md", "ablation", &line(&mechanisms))?;
        section::write("docs/rrtp-congestion-control.md", "constants", &line(&constants))?;
    }
    Ok(())
}

/// In the measuring build: simulates rrtp and each variant, and writes the file of `--json` after each of them.
fn measure_variants(items: &[BenchNetwork], options: &Options) -> Result<(), String> {
    let file = options.json.as_deref().ok_or("a measuring build needs --json")?;
    let mut results = if Path::new(file).exists() { read(file)? } else { Results::new() };
    let mut measure = |label: &str, protocol: &str, rivals: bool| -> Result<bool, String> {
        let mut works = works(items, &[protocol.to_string()], rivals)?;
        works.iter_mut().filter(|w| w.label == protocol).for_each(|w| w.label = label.into());
        works.retain(|w| {
            results.get(&items[w.case].key()).is_none_or(|r| !r.contains_key(&w.label))
        });
        if !works.is_empty() {
            eprintln!("{label}: {} simulations", works.len());
            for (key, figures) in simulate(&mut works, items, options.jobs)? {
                results.entry(key).or_default().extend(figures);
            }
            keep(file, &results)?;
        }
        let of = |name: &str| items.iter().map(|i| results[&i.key()].get(name)).collect::<Vec<_>>();
        Ok(of(ablation::REFERENCE) == of(label))
    };
    measure(ablation::REFERENCE, ablation::REFERENCE, true)?;
    for (label, descriptor, _) in built::LIST {
        let same = measure(label, descriptor.name, false)?;
        if *label == MeasuredVariant::unchanged().label && !same {
            return Err("the variant without a change differs from rrtp".into());
        }
    }
    Ok(())
}

/// The protocols with which an item runs: the name of the figures, and the protocol.
fn runs_of(item: &BenchNetwork, protocols: &[String], rivals: bool) -> Vec<(String, String)> {
    let mut list: Vec<(String, String)> =
        protocols.iter().map(|p| (p.clone(), p.clone())).collect();
    if !rivals {
        return list;
    }
    let mut rival = |name: &str| {
        if !protocols.iter().any(|p| p == name) {
            list.push((name.into(), name.into()));
        }
    };
    match item.part {
        BenchPart::Transfers => TRANSFER_RIVALS.iter().for_each(|r| rival(r)),
        BenchPart::Traces => rival(TRACE_RIVAL),
        BenchPart::Mixes => rival(MIX_RIVAL),
        BenchPart::Networks | BenchPart::Access | BenchPart::Named => {}
    }
    list
}

/// All simulations of these protocols, and of those with which they are compared if `rivals`.
fn works(
    items: &[BenchNetwork],
    protocols: &[String],
    rivals: bool,
) -> Result<Vec<NetworkRun>, String> {
    let mut works = Vec::new();
    for (case, item) in items.iter().enumerate() {
        for (label, plan) in runs_of(item, protocols, rivals) {
            // A plan holds its trace; the traces of all works would not fit into memory together.
            let cost = item.plan(&plan)?.work();
            for i in 0..item.seeds {
                let (label, plan) = (label.clone(), plan.clone());
                works.push(SeedRun { case, label, seed: item.seed + i, cost, plan });
            }
        }
    }
    Ok(works)
}

fn simulate(
    works: &mut [NetworkRun],
    items: &[BenchNetwork],
    jobs: usize,
) -> Result<Results, String> {
    let figures = all_cores::simulate(works, jobs, |w| {
        let item = &items[w.case];
        measure::run(item, &item.plan(&w.plan)?, w.seed)
    })?;
    let mut results = Results::new();
    for ((case, label), of_seeds) in figures {
        let of_seeds: Vec<measure::Figures> = of_seeds.into_values().collect();
        let of_item = results.entry(items[case].key()).or_default();
        of_item.insert(label, measure::medians(&of_seeds));
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
        items.extend(law::mixes(seed, FULL[2]));
        items.extend(law::transfers(seed, FULL[3]));
        items.extend(law::named());
        items
    }

    #[test]
    fn everything_that_is_drawn_can_be_run_and_has_a_name_of_its_own() {
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
    fn the_quick_set_is_a_part_of_the_full_one_and_sets_differ() {
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
        let mut works = works(&items, &options.protocols, true).unwrap();
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
