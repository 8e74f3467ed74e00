//! `cargo xtask validate`: runs the experiments and writes their pages and `docs/validation.md`.

mod fingerprints;

use crate::command::cores;
use crate::files::{self, failed, marked, marks, name, read, section, with_section};
use fingerprints::Fingerprints;
use narrows_experiments::coverage::{self, Coverage};
use narrows_experiments::{
    CheckedClaim, Experiment, experiment, interval, judge, linux, ns2, page, panel, row_references,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/validation.md";
/// Prefix of folders that are compared with theory.
const FORMS: &str = "closed-forms";
const NS2: &str = "ns2";
const LINUX: &str = "linux";
const FINDINGS: &str = "findings.md";
const FIGURES: &str = "figures.toml";
/// The experiment with each paper's headline, and the page that has its table between marks of this name.
const PAPERS: &str = "papers";
const PAPERS_PAGE: &str = "docs/papers.md";

const ROW_HEAD: &str =
    "| experiment | | reproduced | undecided | differs | impossible |\n|---|---|---|---|---|---|\n";

/// Written files: paths from the workspace's root, and texts.
type Written = BTreeMap<PathBuf, String>;

/// Runs the named experiments, or without names all of them. `--check` only compares with the existing files. Without
/// names it runs those that have changed, and some further ones that the commit determines (see [`fingerprints`]); with
/// `--all`, every one. `--try` prints the verdicts of the named ones by their ranges alone and writes nothing: for a
/// setting that is being chosen.
///
/// # Errors
/// An unknown experiment, a claim that does not match its explanation, or with `--check` a file that would differ.
pub fn run(args: &[String]) -> Result<(), String> {
    let has = |flag: &str| args.iter().any(|a| a == flag);
    let check = has("--check");
    let every = has("--all");
    let named: Vec<&str> =
        args.iter().map(String::as_str).filter(|a| !a.starts_with("--")).collect();
    let known = |flag: &str| ["--check", "--all", "--try"].contains(&flag);
    if let Some(flag) = args.iter().find(|a| a.starts_with("--") && !known(a)) {
        return Err(format!("unknown flag '{flag}'; there are --check, --all and --try"));
    }
    narrows_experiments::install()?;
    let root = root();
    let folders = experiment::folders(&root.join("experiments"))?;
    let ids: Vec<String> = folders.iter().map(|f| name(f)).collect();
    for id in &named {
        if ![LINUX, NS2].contains(id) && !ids.iter().any(|i| i == id) {
            return Err(format!(
                "no experiment '{id}'; there is {LINUX}, {NS2}, {}",
                ids.join(", ")
            ));
        }
    }
    let jobs = cores();
    if has("--try") {
        let mut tried = folders.iter().filter(|f| named.contains(&name(f).as_str()));
        return tried.try_for_each(|f| try_out(&experiment::load(f)?, jobs));
    }
    let sample = check && !every && named.is_empty();
    let mut fingerprints = Fingerprints::read(&root)?;
    let wanted = |id: &str| named.is_empty() || named.contains(&id);
    let mut written = Written::new();
    let experiments = readable(&folders);
    let mut faults = Vec::new();
    let mut done = Vec::new();
    for ((e, folder), id) in experiments.into_iter().zip(&folders).zip(&ids) {
        let keep = match sample {
            true => !fingerprints.in_turn(id) && fingerprints.still(folder, id, jobs)?,
            false => !wanted(id),
        };
        match if keep { kept(e) } else { fresh(e, jobs, &mut written) } {
            Ok(x) => done.push(x),
            Err(fault) => faults.push(fault),
        }
    }
    let before = read(root.join(PAGE)).unwrap_or_default();
    let mut comparisons =
        [LINUX, NS2].map(|id| section(&before, id).unwrap_or_default().to_string());
    for (id, summary) in [LINUX, NS2].into_iter().zip(&mut comparisons) {
        if wanted(id) && (!sample || fingerprints.is_simulated(id)) {
            eprintln!("{id}");
            match comparison(id, &root, jobs, &mut written) {
                Ok(found) => *summary = found,
                Err(fault) => faults.push(fault),
            }
        }
    }
    if let Some(papers) = done.iter().find(|d| d.id == PAPERS) {
        let text = read(root.join(PAPERS_PAGE))?;
        let page = with_section(&text, PAPERS, &page::table(&papers.judged))
            .ok_or_else(|| format!("{PAPERS_PAGE} lacks the marks {:?}", marks(PAPERS)))?;
        written.insert(PAPERS_PAGE.into(), page);
    }
    let results: Vec<(&str, &[CheckedClaim])> =
        done.iter().map(|d| (d.id.as_str(), d.judged.as_slice())).collect();
    if let Err(fault) = row_references::check(&results) {
        faults.push(fault);
    }
    // The completed experiments are written even if others failed.
    if faults.is_empty() {
        let text = read(root.join("experiments").join(FINDINGS))?;
        let figures = coverage::read(&read(root.join("experiments").join(FIGURES))?)?;
        let find = |id: &str| done.iter().find(|d| d.id == id).map(|d| d.judged.as_slice());
        match crate::findings::filled(&text, find) {
            Ok(findings) => {
                written.insert(PAGE.into(), all(&done, &comparisons, &findings, &figures));
            }
            Err(fault) => faults.push(fault),
        }
    }
    let outcome = if check { compare(&root, &written) } else { write(&root, &written) };
    if let Err(fault) = outcome {
        faults.push(fault);
    }
    for done in done.iter().filter(|d| named.contains(&d.id.as_str())) {
        print(done);
    }
    // Their pages are up to date only now.
    if !check {
        for (folder, id) in folders.iter().zip(&ids).filter(|(_, id)| wanted(id)) {
            if let Some(done) = done.iter().find(|d| d.id == **id) {
                let seeds: Vec<usize> = done.judged.iter().map(|j| j.seeds).collect();
                fingerprints.put(folder, id, &seeds, jobs)?;
            }
        }
        fingerprints.write(&ids)?;
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// All experiments. If one cannot be read, or a row refers to a wrong one, this ends the process as for any bad input.
fn readable(folders: &[PathBuf]) -> Vec<Experiment> {
    let all = folders.iter().map(|f| experiment::load(f)).collect::<Result<Vec<_>, _>>();
    let checked = all.and_then(|all| {
        let claims: Vec<_> =
            all.iter().map(|e| (e.file.id.as_str(), e.file.claim.as_slice())).collect();
        row_references::check_strictness(&claims)?;
        Ok(all)
    });
    checked.unwrap_or_else(|line| {
        eprintln!("xtask: {line}");
        std::process::exit(2)
    })
}

/// An experiment's title and verdicts.
struct ExperimentVerdicts {
    id: String,
    title: String,
    judged: Vec<CheckedClaim>,
}

/// The summary of a comparison with another simulator or the kernel.
fn comparison(id: &str, root: &Path, jobs: usize, written: &mut Written) -> Result<String, String> {
    let folder = root.join("experiments").join(id);
    if id == LINUX {
        let found = linux::section(&folder, jobs)?;
        written.insert("experiments/linux/results.md".into(), found.page);
        return Ok(found.summary);
    }
    let found = ns2::section(&folder, jobs)?;
    written.insert("experiments/ns2/figure.svg".into(), found.figure);
    written.insert("experiments/ns2/README.md".into(), found.page);
    Ok(found.summary)
}

fn fresh(e: Experiment, jobs: usize, written: &mut Written) -> Result<ExperimentVerdicts, String> {
    let id = e.file.id.clone();
    eprintln!("{id}");
    let observed = narrows_experiments::run::run(&e, jobs)?;
    let place = PathBuf::from("experiments").join(&id);
    if !e.file.panel.is_empty() {
        written.insert(place.join("figure.svg"), panel::figure(&e, &observed)?);
    }
    let judged = judge::judge(&e, &observed)?;
    written.insert(place.join("README.md"), page::readme(&e, &judged));
    let mut json = serde_json::to_string_pretty(&judged).map_err(|e| e.to_string())?;
    json.push('\n');
    written.insert(place.join("result.json"), json);
    Ok(ExperimentVerdicts { id, title: e.file.title, judged })
}

/// Prints the verdicts of an experiment by its ranges alone.
fn try_out(e: &Experiment, jobs: usize) -> Result<(), String> {
    let observed = narrows_experiments::run::run(e, jobs)?;
    for (i, (claim, ours)) in e.file.claim.iter().zip(&observed.claims).enumerate() {
        let verdict = judge::by_range(claim, *ours);
        let ours = interval::shown(ours.value, claim.shown_unit());
        println!("{}#{} {verdict}: {}: {ours}", e.file.id, i + 1, claim.text);
    }
    Ok(())
}

/// Prints the verdicts of an experiment, and its page.
fn print(done: &ExperimentVerdicts) {
    for claim in &done.judged {
        println!("{}: {}: {} (stated: {})", claim.verdict, claim.claim, claim.ours, claim.stated);
    }
    println!("experiments/{}/README.md", done.id);
}

/// The verdicts of an experiment that is not run this time.
fn kept(e: Experiment) -> Result<ExperimentVerdicts, String> {
    let path = e.folder.join("result.json");
    let judged = if path.exists() { files::kept(&path)? } else { Vec::new() };
    Ok(ExperimentVerdicts { id: e.file.id, title: e.file.title, judged })
}

/// `docs/validation.md`.
fn all(
    done: &[ExperimentVerdicts],
    comparisons: &[String; 2],
    findings: &str,
    figures: &Coverage,
) -> String {
    let (forms, papers): (Vec<&ExperimentVerdicts>, Vec<&ExperimentVerdicts>) =
        done.iter().partition(|d| d.id.starts_with(FORMS));
    let results: Vec<(&str, &[CheckedClaim])> =
        papers.iter().map(|d| (d.id.as_str(), d.judged.as_slice())).collect();
    let summary = figures.summary(&results);
    let missing = figures.missing();
    let rows = |all: &[&ExperimentVerdicts]| -> String {
        let rows = all.iter().map(|d| page::row(&d.id, &d.title, &d.judged) + "\n");
        ROW_HEAD.to_string() + &rows.collect::<String>()
    };
    let forms = rows(&forms);
    let all = rows(&papers);
    format!(
        "<!-- Generated by `cargo xtask validate`; edit the folders under experiments/ instead. -->\n\n\
         # Validation\n\n\
         What Narrows computes, beside what others measured, what theory says, and what the papers \
         claim. Everything here is computed anew by `cargo xtask validate`. The accepted ranges follow \
         from what is stated, as each folder says, and were written down before the first run unless \
         the folder's choices say otherwise. Of 416 rows counted on 2026-11-28, 156 had got another range since \
         then, mostly a narrower one, when the papers were read again \
         ([readings](../experiments/sample.md)); the gains of s3-t4.6 followed. Where a claim differs, the experiment's page says why.\n\n\
         Claims are judged with their intervals, as they are printed: *reproduced* if the whole interval \
         lies in the accepted range, *differs* if it lies outside, else *undecided*. Before a claim is left \
         undecided, 10, 20, 40 and 80 seeds (of shares of runs 20, 52 and 80) have been tried \
         ([how](../experiments/README.md#verdicts)).\n\n{summary}\n\
         {missing}\n\
         ## Against the Linux kernel\n\n{}\n\
         ## Against ns-2\n\n{}\n\
         ## Against closed forms\n\n\
         Ours over the model's; the scenarios and ranges of validity are in the folders.\n\n{forms}\n\
         ## Against the papers\n\n\
         One folder per figure: the scenario as data, the stated numbers, ours, and a verdict.\n\n\
         {findings}\n\
         ### All experiments\n\n\
         {all}",
        marked(LINUX, &comparisons[0]),
        marked(NS2, &comparisons[1]),
    )
}

fn write(root: &Path, written: &Written) -> Result<(), String> {
    for (path, text) in written {
        let path = root.join(path);
        if std::fs::read_to_string(&path).is_ok_and(|old| old == *text) {
            continue;
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed(folder))?;
        }
        files::write(&path, text)?;
        eprintln!("wrote {}", path.strip_prefix(root).unwrap_or(&path).display());
    }
    Ok(())
}

fn compare(root: &Path, written: &Written) -> Result<(), String> {
    let same = |(path, text): &(&PathBuf, &String)| {
        std::fs::read_to_string(root.join(path)).is_ok_and(|old| old == **text)
    };
    let differ: Vec<String> =
        written.iter().filter(|w| !same(w)).map(|w| w.0.display().to_string()).collect();
    match differ.is_empty() {
        true => Ok(()),
        false => Err(format!("out of date, run cargo xtask validate: {}", differ.join(", "))),
    }
}

/// The workspace's root.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
