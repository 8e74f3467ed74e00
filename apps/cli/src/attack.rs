//! The command `narrows attack`.

use crate::command_line::command_line;
use crate::failure::Failure;
use crate::terminal::{STOP, TerminalBar, catch_interrupt, print, print_json, text_width};
use clap::Args;
use narrows_base::{Duration, SpecError};
use narrows_lab::attack::{self, Attack, Finding, Findings, Hunt};
use narrows_lab::collect::{OutcomeMetadata, collect};
use narrows_lab::execute::{RunControl, execute};
use narrows_lab::options::Jobs;
use narrows_lab::options::values::{CASES, number, seed, time};
use narrows_lab::options::words::quoted;
use narrows_report::{output, summary};
use narrows_scenario::{Plan, scenario_file};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

pub const HELP: &str = "\
Searches, in simulation, for the network on which a controller performs worst.
Rates, delays, buffers, single and burst losses, jitter, reordering, slow return
paths, steps, outages and competitors are drawn and mutated. The worst cases are
confirmed with other seeds, simplified, and saved as scenarios. The same command
finds the same networks.

Examples:
  narrows attack rrtp                             goodput beside an ideal sender
  narrows attack cubic --hunt delay --budget 2000
  narrows attack rrtp --rival cubic               where cubic performs better
  narrows attack bbr --hunt harm                  harm to competitors
  narrows run narrows-attack/worst-1.toml         the worst case again";

#[derive(Args)]
pub struct AttackArgs {
    /// The protocol under attack, as in 'vegas(alpha=1,beta=3)'
    #[arg(value_name = "PROTOCOL")]
    pub protocol: String,
    /// Objective: goodput, delay, waste or harm
    #[arg(long, value_name = "WHAT", default_value = "goodput", value_parser = hunt)]
    pub hunt: Hunt,
    /// Compare with this protocol on the same network, not with an omniscient sender
    #[arg(long, value_name = "PROTOCOL")]
    pub rival: Option<String>,
    /// Networks to try
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = number(CASES))]
    pub budget: usize,
    /// How many of the worst networks to report
    #[arg(long, value_name = "K", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=20))]
    pub worst: u8,
    /// Simulated time of each run
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = time)]
    pub duration: Duration,
    /// Seed of the random networks
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = seed())]
    pub seed: u64,
    #[command(flatten)]
    pub jobs: Jobs,
    /// Folder for worst-1.toml, worst-1/report.html, attack.json
    #[arg(long, value_name = "DIR", default_value = "narrows-attack")]
    pub out: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

fn hunt(text: &str) -> Result<Hunt, String> {
    let names = Hunt::NAMES.map(|(name, _)| name);
    let found = Hunt::NAMES.iter().find(|(name, _)| *name == text);
    found.map(|(_, hunt)| *hunt).ok_or_else(|| SpecError::unknown("aim", text, &names).to_string())
}

/// `narrows attack`.
pub fn attack(a: &AttackArgs) -> Result<(), Failure> {
    output::check_folder(&a.out).map_err(Failure::Input)?;
    let asked = Attack {
        protocol: a.protocol.clone(),
        hunt: a.hunt,
        rival: a.rival.clone(),
        budget: a.budget,
        seed: a.seed,
        duration: a.duration,
        report: usize::from(a.worst),
    };
    catch_interrupt();
    let bar = TerminalBar::new(format!("{} networks", a.budget));
    let jobs = a.jobs.count();
    let control = RunControl { stop: &STOP, progress: &|fraction| bar.tell(fraction), jobs };
    let found = attack::attack(&asked, &control);
    bar.finish();
    let found = found.map_err(Failure::Input)?;
    if STOP.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    let files = write(&asked, &found, &a.out, jobs)?;
    if a.json {
        return print_json(&json(&asked, &found, &files));
    }
    print(&text(&asked, &found, &files))
}

/// Where a finding's scenario and report were written.
struct FindingFiles {
    scenario: PathBuf,
    report: PathBuf,
}

fn write(
    a: &Attack,
    found: &Findings,
    out: &Path,
    jobs: usize,
) -> Result<Vec<FindingFiles>, Failure> {
    let cannot = |folder: &Path, e: &std::io::Error| {
        let why = narrows_scenario::text_file::plain(e);
        Failure::Outside(format!("--out {}: cannot create the folder: {why}", folder.display()))
    };
    std::fs::create_dir_all(out).map_err(|e| cannot(out, &e))?;
    let mut files = Vec::new();
    for (i, f) in found.worst.iter().enumerate() {
        let scenario = a.scenario(&f.case, a.seed, 3)?;
        let path = out.join(format!("worst-{}.toml", i + 1));
        let text = scenario_file::text(&scenario);
        let toml =
            output::whole(&path, |f| f.write_all(text.as_bytes())).map_err(Failure::Outside)?;
        // For comparison, the report also shows a well-known protocol.
        let known = if a.protocol == "cubic" { "reno" } else { "cubic" };
        let shown = Attack { rival: a.rival.clone().or(Some(known.into())), ..a.clone() };
        let plan = Plan::new(shown.scenario(&f.case, a.seed, 3)?)?;
        let control = RunControl { stop: &STOP, progress: &|_| {}, jobs };
        let runs = execute(&plan, &control).map_err(Failure::Input)?;
        let about = OutcomeMetadata {
            command: "run",
            command_line: format!("narrows run {}", quoted(&path.to_string_lossy())),
            link: f.case.link(),
            path: f.case.describe(),
            ..OutcomeMetadata::default()
        };
        let report = out.join(format!("worst-{}", i + 1));
        narrows_scenario::output_file::folder(&report).map_err(|e| cannot(&report, &e))?;
        output::write_all(&collect(&plan, about, &runs, None), &report)
            .map_err(Failure::Outside)?;
        files.push(FindingFiles { scenario: toml, report: report.join("report.html") });
    }
    let text = serde_json::to_string_pretty(&json(a, found, &files)).unwrap_or_default() + "\n";
    output::whole(&out.join("attack.json"), |f| f.write_all(text.as_bytes()))
        .map_err(Failure::Outside)?;
    Ok(files)
}

fn text(a: &Attack, found: &Findings, files: &[FindingFiles]) -> String {
    let beside = match &a.rival {
        Some(rival) => format!("; beside {rival} on the same network"),
        None => String::new(),
    };
    let mut text = format!("{} networks tried, seed {}{beside}\n", found.cases, a.seed);
    for (i, (f, kept)) in found.worst.iter().zip(files).enumerate() {
        text += &format!("\n{}. {}\n", i + 1, headline(a, f));
        text += &summary::wrapped(&f.case.describe(), text_width());
        text += &format!("\n   narrows run {}", quoted(&kept.scenario.to_string_lossy()));
        text += &format!("\n   {}\n", kept.report.display());
    }
    if found.worst.is_empty() {
        text += "\nNothing was found.\n";
    }
    text
}

fn headline(a: &Attack, f: &Finding) -> String {
    match &a.rival {
        Some(rival) => format!("{} {:.2} times worse than {rival}", a.protocol, f.badness),
        None => format!("{} {:.2} {}", a.protocol, f.badness, a.hunt.means()),
    }
}

fn json(a: &Attack, found: &Findings, files: &[FindingFiles]) -> serde_json::Value {
    let name = Hunt::NAMES.iter().find(|(_, hunt)| *hunt == a.hunt).map(|(name, _)| *name);
    let worst: Vec<serde_json::Value> = (found.worst.iter().zip(files))
        .map(|(f, kept)| {
            serde_json::json!({
                "badness": f.badness,
                "network": f.case.describe(),
                "link": f.case.link(),
                "kinds": f.case.kind(),
                "scenario": kept.scenario.display().to_string(),
                "report": kept.report.display().to_string(),
            })
        })
        .collect();
    serde_json::json!({
        "command": "attack",
        "command_line": command_line(),
        "protocol": a.protocol,
        "rival": a.rival,
        "hunt": name,
        "means": a.hunt.means(),
        "seed": a.seed,
        "budget": a.budget,
        "networks": found.cases,
        "duration_s": a.duration.as_secs_f64(),
        "worst": worst,
    })
}
