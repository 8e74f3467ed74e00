//! The commands `compare`, `run` and `list`.

use crate::args::{CompareArgs, ListArgs, OutputArgs, RunArgs};
use crate::command_line::command_line;
use crate::failure::Failure;
use crate::terminal::{STOP, TerminalBar, catch_interrupt, print, print_json, text_width, width};
use crate::watched::{PacedPage, WatchedRun};
use narrows_base::{Duration, SpecError};
use narrows_lab::collect::{OutcomeMetadata, collect};
use narrows_lab::execute::{RunControl, execute_observed};
use narrows_lab::{Outcome, catalogue};
use narrows_report::{output, picture, summary};
use narrows_scenario::{Plan, scenario_file};
use std::io::Write as _;
use std::path::Path;

/// Packet size of the kernel's TCP in bytes; below, duration and seeds of real transfers.
const REAL_PACKET: u32 = 1500;
const REAL_DURATION: Duration = Duration::from_secs(20);
const REAL_SEEDS: u32 = 3;

/// `narrows compare`.
pub fn compare(a: &CompareArgs) -> Result<(), Failure> {
    if a.real() && a.question.packet.is_some_and(|packet| packet != REAL_PACKET) {
        return Err(Failure::Input(format!(
            "--packet: with --real it is {REAL_PACKET}B, the kernel's"
        )));
    }
    let mut usual = a.question.usual();
    if a.real() {
        usual.packet = REAL_PACKET;
        usual.duration = REAL_DURATION;
        usual.seeds = REAL_SEEDS;
    }
    let (scenario, about) = a.question.scenario(&usual, command_line())?;
    let saved = a.save.as_ref().map(|path| (path.as_path(), scenario_file::text(&scenario)));
    if let Some((path, _)) = &saved {
        output::check_file("--save", path).map_err(Failure::Input)?;
    }
    output::check_folder(&a.output.out).map_err(Failure::Input)?;
    let how = RunSettings { out: &a.output, saved, real: a.real(), live: &a.live };
    answer(&Plan::new(scenario)?, about, how)
}

/// `narrows run`.
pub fn run(a: &RunArgs) -> Result<(), Failure> {
    let scenario = a.run.load()?;
    output::check_folder(&a.output.out).map_err(Failure::Input)?;
    let (plan, about) = a.run.plan(scenario, command_line())?;
    let how = RunSettings { out: &a.output, saved: None, real: false, live: &a.live };
    answer(&plan, about, how).map_err(|e| match e {
        // The simulation found an error in the scenario: name its file.
        Failure::Input(line) => Failure::Input(format!("{}: {line}", a.run.scenario.display())),
        other => other,
    })
}

/// Output and other options of a run.
struct RunSettings<'a> {
    out: &'a OutputArgs,
    saved: Option<(&'a Path, String)>,
    real: bool,
    live: &'a PacedPage,
}

/// Runs a plan, shows the result and writes the files.
fn answer(plan: &Plan, about: OutcomeMetadata, how: RunSettings<'_>) -> Result<(), Failure> {
    let RunSettings { out, saved, real, live } = how;
    if real {
        check_real(plan)?;
    }
    let watched = WatchedRun::open(&live.page)?;
    catch_interrupt();
    let variants = plan.scenario.variants();
    let seeds = plan.scenario.seeds;
    let bar = TerminalBar::new(format!("{} runs", variants as u64 * u64::from(seeds)));
    let control = RunControl {
        stop: &STOP,
        progress: &|fraction| bar.tell(fraction),
        jobs: out.jobs.count(),
    };
    let detail = format!("{}; {}", about.link, about.path);
    let observer = watched.runs(plan, &detail, live);
    let runs = execute_observed(plan, &control, observer.as_deref());
    drop(observer);
    bar.finish();
    let runs = runs.map_err(Failure::Input)?;
    if runs.iter().flatten().all(Option::is_none) {
        return Err(Failure::Interrupted);
    }
    let mut outcome = collect(plan, about.clone(), &runs, Some(&control));
    if real {
        in_real_time(plan, &about, &mut outcome)?;
    }
    let plots = out.plot.iter().map(|column| {
        let plot = picture::over_time(&outcome, column).map_err(|e| e.at("--plot"))?;
        Ok((out.out.join(format!("{column}.svg")), plot))
    });
    let plots = plots.collect::<Result<Vec<_>, SpecError>>()?;
    let mut files = output::write_all(&outcome, &out.out).map_err(Failure::Outside)?;
    for (path, plot) in plots {
        let written = output::whole(&path, |f| f.write_all(plot.as_bytes()));
        files.push(written.map_err(Failure::Outside)?);
    }
    if let Some((path, text)) = saved {
        let written = output::whole(path, |f| f.write_all(text.as_bytes()));
        files.push(written.map_err(Failure::Outside)?);
    }
    if out.json {
        print_json(&narrows_report::json::outcome(&outcome))?;
    } else {
        print(&(shown(&outcome, &files) + "\n"))?;
    }
    let complete = !STOP.load(std::sync::atomic::Ordering::SeqCst);
    watched.stay(complete);
    let all = runs.iter().flatten().count();
    let done = runs.iter().flatten().flatten().count();
    if done < all {
        let line = format!("interrupted: this is of the {done} runs of {all} that were finished");
        return Err(Failure::Stopped(line));
    }
    Ok(())
}

/// Adds results of the kernel's TCP over emulated links.
#[cfg(all(feature = "full", target_os = "linux"))]
fn in_real_time(
    plan: &Plan,
    about: &OutcomeMetadata,
    outcome: &mut Outcome,
) -> Result<(), Failure> {
    let bar = TerminalBar::new("real transfers".into());
    let control = RunControl { stop: &STOP, progress: &|fraction| bar.tell(fraction), jobs: 1 };
    let seen = crate::real::outcome(plan, about, &control);
    bar.finish();
    crate::real::beside(outcome, seen?);
    Ok(())
}

#[cfg(all(feature = "full", target_os = "linux"))]
fn check_real(plan: &Plan) -> Result<(), Failure> {
    crate::real::check(plan)
}

#[cfg(not(all(feature = "full", target_os = "linux")))]
fn check_real(_: &Plan) -> Result<(), Failure> {
    Err(Failure::Input("--real: the kernel's TCP is driven on Linux only".into()))
}

#[cfg(not(all(feature = "full", target_os = "linux")))]
fn in_real_time(_: &Plan, _: &OutcomeMetadata, _: &mut Outcome) -> Result<(), Failure> {
    Ok(())
}

/// The result as text for the terminal.
fn shown(o: &Outcome, files: &[std::path::PathBuf]) -> String {
    let fit = |line: &str| match width() {
        Some(width) => summary::wrapped(line, width),
        None => line.to_string(),
    };
    let mut text = format!("{}\n{}\n", o.link, fit(&o.path));
    let seeds = o.results.iter().map(|r| r.seeds).max().unwrap_or(0);
    let warm =
        if o.warmup_s > 0.0 { format!(", measured from {} s", o.warmup_s) } else { String::new() };
    let intervals = if seeds > 1 { ", ± 95% intervals" } else { "" };
    let plural = if seeds == 1 { "" } else { "s" };
    text += &format!(
        "{} s simulated{warm}, {seeds} seed{plural} from {}{intervals}\n\n",
        o.duration_s, o.seed
    );
    text += &summary::table(o, width());
    let recommendation = o.recommendation.to_string();
    if !recommendation.is_empty() {
        text += &format!("\n{}\n", summary::wrapped(&recommendation, text_width()));
    }
    for note in &o.notes {
        text += &format!("\n{}", summary::wrapped(&format!("Note: {note}."), text_width()));
    }
    if !o.notes.is_empty() {
        text.push('\n');
    }
    let names: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
    text + &format!("\n{}", fit(&format!("Wrote {}", names.join(", "))))
}

/// `narrows list`.
pub fn list(a: &ListArgs) -> Result<(), Failure> {
    let (items, whole) = if a.papers {
        (catalogue::of_papers(), true)
    } else {
        let (items, detailed) = catalogue::chosen(a.kind.as_deref(), a.name.as_deref())?;
        if detailed && !a.json {
            return print(&catalogue::text(&items, true));
        }
        (items, false)
    };
    if a.json {
        return print_json(&catalogue::json(&items));
    }
    print(&if whole { catalogue::text(&items, false) } else { catalogue::list_text(items) })
}
