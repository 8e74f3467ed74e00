//! `cargo xtask bench networks`: controllers on networks that are drawn at random, in simulation.

mod page;

use crate::command::cores;
use crate::files::{entries, keep, kept};
use crate::flags::Flags;
use narrows_lab::execute::RunControl;
use narrows_lab::networks::{BenchNetwork, BenchPart, Results, draw, simulate, without_longest};
use std::path::{Path, PathBuf};

const KNOWN: &str = "--set dev|check, --seed N, \
                     --only networks|access|routes|mixes|transfers|access-transfers|traces|named \
                     (several: A,B), \
                     --protocols A,B, --traces DIR, --quick, --light, --each, --jobs N, --json FILE, --before FILE";

/// Numbers of networks, networks by access type, mixes and networks for transfers; `--quick` uses the first of them.
/// There are as many networks with changing routes as by access type.
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
            jobs: cores(),
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
                "--protocols" => options.protocols = protocols(flags.value()?)?,
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
            options.protocols = protocols(if options.quick { "rrtp,rrtp+bbr" } else { all })?;
        }
        Ok(options)
    }

    fn items(&self) -> Result<Vec<BenchNetwork>, String> {
        let mut items = Vec::new();
        let [networks, access, mixes, transfers] = if self.quick { QUICK } else { FULL };
        for part in &self.only {
            let count = match part {
                BenchPart::Networks => networks,
                BenchPart::Access | BenchPart::Routes => access,
                BenchPart::Mixes => mixes,
                BenchPart::Transfers | BenchPart::AccessTransfers => transfers,
                BenchPart::Pairs | BenchPart::Traces | BenchPart::Named => 0,
            };
            items.extend(draw::numbered(*part, self.seed, 0..count));
            match part {
                BenchPart::Named => items.extend(draw::named()),
                BenchPart::Traces => {
                    if let Some(folder) = &self.traces {
                        items.extend(recorded(folder)?);
                    }
                }
                _ => {}
            }
        }
        if self.light { without_longest(items) } else { Ok(items) }
    }
}

fn part(name: &str) -> Result<BenchPart, String> {
    let part =
        BenchPart::ALL.into_iter().find(|p| p.name() == name.trim() && *p != BenchPart::Pairs);
    part.ok_or_else(|| {
        format!("--only '{name}': networks, access, routes, mixes, transfers, access-transfers, traces or named")
    })
}

/// Commas within parentheses belong to a protocol.
pub fn protocols(text: &str) -> Result<Vec<String>, String> {
    let list = narrows_base::spec::split(text).map_err(|e| e.to_string())?;
    Ok(list.iter().map(|p| p.trim().to_string()).filter(|p| !p.is_empty()).collect())
}

/// The trace files of a folder, by name.
pub fn recorded(folder: &Path) -> Result<Vec<BenchNetwork>, String> {
    let is_trace =
        |p: &PathBuf| p.is_file() && p.extension().is_none_or(|e| e != "md" && e != "txt");
    let mut files = entries(folder).map_err(|e| format!("--traces {e}"))?;
    files.retain(is_trace);
    if files.is_empty() {
        return Err(format!("--traces {}: no files", folder.display()));
    }
    let recorded = files.iter().map(|file| draw::recorded(file));
    let all = recorded.chain(files.iter().map(|file| draw::modelled(file)));
    all.collect::<Result<_, String>>().map_err(|e| format!("--traces: {e}"))
}

/// `bench networks`.
///
/// # Errors
/// An unknown flag or protocol, a trace that does not parse, a file that cannot be read or written.
pub fn run(args: &[String]) -> Result<(), String> {
    let options = Options::read(args).map_err(|e| format!("bench networks: {e}"))?;
    let before = options.before.as_deref().map(kept::<Results>).transpose()?;
    let items = options.items()?;
    let control = RunControl::quiet(options.jobs);
    let simulated = simulate(&items, &options.protocols, &control)?;
    let results = simulated.unwrap_or_default().results;
    if options.each {
        print!("{}", page::each(&items, &results, &options.protocols));
    }
    print!("{}", page::text(&items, &results, &options.protocols, before.as_ref()));
    if let Some(file) = &options.json {
        keep(file, &results)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_parentheses_do_not_separate_protocols() {
        assert_eq!(
            protocols("rrtp, cubic(c=1,beta=0.5)").unwrap(),
            ["rrtp", "cubic(c=1,beta=0.5)"]
        );
    }

    #[test]
    fn a_small_run_fills_the_table() {
        let mut items = draw::networks(1, 0..2);
        items.extend(draw::mixes(1, 0..1));
        items.iter_mut().for_each(|i| i.question.duration = narrows_base::Duration::from_secs(2));
        items.iter_mut().for_each(|i| {
            i.question.warmup = narrows_base::Duration::ZERO;
            i.changes.clear();
            if let Some(n) = &mut i.neighbours {
                n.starts_s = (0.0, 0.0);
            }
        });
        let options = Options::read(&["--jobs".into(), "1".into()]).unwrap();
        let control = RunControl::quiet(1);
        let results = simulate(&items, &options.protocols, &control).unwrap().unwrap().results;
        let file = std::env::temp_dir().join(format!("bench-networks-{}", std::process::id()));
        let file = file.to_string_lossy();
        keep(&*file, &results).unwrap();
        let before: Results = kept(&*file).unwrap();
        std::fs::remove_file(&*file).unwrap();
        assert_eq!(before.len(), items.len());
        let text = page::text(&items, &results, &options.protocols, Some(&before));
        assert!(text.contains("goodput / capacity, mean"), "{text}");
        assert!(text.contains("no more harm than CUBIC"), "{text}");
        assert!(Options::read(&["--set".into(), "x".into()]).is_err());
    }
}
