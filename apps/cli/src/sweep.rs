//! The command `narrows sweep`.

use crate::args::SweepArgs;
use crate::failure::Failure;
use crate::slurm;
use crate::terminal::{
    STOP, TerminalBar, catch_interrupt, note, print, print_json, text_width, width,
};
use crate::watched::WatchedRun;
use narrows_lab::options::words::quoted;
use narrows_lab::sweep::{SweepControl, SweepMetadata, SweepOutcome, journal};
use narrows_report::sweep::{json, shown, write};
use narrows_report::{output, summary};

/// `narrows sweep`.
pub fn sweep(a: &SweepArgs) -> Result<(), Failure> {
    output::check_folder(&a.out).map_err(Failure::Input)?;
    if a.part.is_some() && a.fresh {
        return Err(Failure::Input(
            "--part: it goes on with what is there; not with --fresh".into(),
        ));
    }
    let (sweep, chosen) = a.sweep.read(a.sweep.base()?)?;
    if let Some(parts) = a.slurm {
        return print(&slurm::script(&words_without("--slurm"), &a.out, parts));
    }
    std::fs::create_dir_all(&a.out).map_err(|e| unwritable(a, &e))?;
    let opened = match a.part {
        None => journal::open(&a.out, a.fresh),
        Some(part) => journal::open_part(&a.out, part),
    };
    let (known, journal) = opened.map_err(Failure::Input)?;
    let mut runs = sweep.known(known);
    let reused = runs.iter().flatten().flatten().count();
    if reused > 0 {
        let all = sweep.points.len() * sweep.seeds as usize;
        note(&format!(
            "narrows: {reused} of {all} runs were already in {}; --fresh runs them again",
            a.out.join(journal::NAME).display()
        ));
    }
    let watched = WatchedRun::open(&a.live)?;
    let shown = watched.sweep(&sweep, chosen);
    for (point, seeds) in runs.iter().enumerate() {
        seeds.iter().flatten().for_each(|found| shown(point, found));
    }
    catch_interrupt();
    let points = sweep.points.len();
    let bar = TerminalBar::new(format!("{points} points"));
    let control = SweepControl {
        stop: &STOP,
        progress: &|fraction, done| {
            bar.tell(fraction);
            bar.say(|| format!("{done} of {points} points"));
        },
        jobs: a.jobs.count(),
        part: a.part,
    };
    let ran = sweep.execute_told(&mut runs, journal, &control, &shown);
    bar.finish();
    ran.map_err(Failure::Outside)?;
    if let Some(part) = a.part {
        let left = sweep.missing(&runs, a.part).len();
        let line = match left {
            0 => format!("part {} of {} is finished", part.number, part.of),
            _ => {
                return Err(Failure::Stopped(format!(
                    "interrupted with {left} runs left of this part"
                )));
            }
        };
        return print(&format!("{line}; the same command without --part writes the tables\n"));
    }
    if runs.iter().flatten().all(Option::is_none) {
        return Err(Failure::Interrupted);
    }
    let about = SweepMetadata {
        command_line: crate::command_line::command_line(),
        base_line: base_line(),
        measure: chosen.measure,
        group: chosen.group,
    };
    let outcome = SweepOutcome::new(&sweep, &runs, about);
    let files = write::all(&outcome, &a.out).map_err(Failure::Outside)?;
    if a.json {
        print_json(&json::outcome(&outcome))?;
    } else {
        let mut text = shown::table(&outcome, width());
        for note in &outcome.notes {
            let note = format!("Note: {note}.");
            text += &format!("\n{}\n", summary::wrapped(&note, text_width()));
        }
        let names: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
        print(&format!("{text}\nWrote {}\n", names.join(", ")))?;
    }
    let all = runs.iter().flatten().count();
    let done = runs.iter().flatten().flatten().count();
    watched.stay(done == all);
    if done < all {
        return Err(Failure::Stopped(format!(
            "interrupted with {done} of {all} runs finished; the same command goes on with the rest"
        )));
    }
    Ok(())
}

fn unwritable(a: &SweepArgs, e: &std::io::Error) -> Failure {
    let why = narrows_scenario::text_file::plain(e);
    Failure::Input(format!("--out {}: cannot create the folder: {why}", a.out.display()))
}

/// The command without the varied parameters and the output, so that a report can name the command that draws one of
/// its points.
fn base_line() -> String {
    const WITH_VALUE: &[&str] = &["--vary", "--out", "--measure", "--group", "--jobs"];
    const ALONE: &[&str] = &["--json", "--fresh", "--live"];
    let words: Vec<String> = words_but(WITH_VALUE, ALONE).iter().map(|w| quoted(w)).collect();
    words.join(" ")
}

/// The command's words without this option and its value, and without `--live`.
fn words_without(option: &str) -> Vec<String> {
    words_but(&[option], &["--live"])
}

/// The command's words without options `with_value`, and without flags that stand `alone`.
fn words_but(with_value: &[&str], alone: &[&str]) -> Vec<String> {
    let mut words = vec!["narrows".to_string()];
    let mut skip = false;
    for word in std::env::args_os().skip(1) {
        let word = word.to_string_lossy();
        let is_out = |flag: &str| with_value.contains(&flag) || alone.contains(&flag);
        let joined = word.split_once('=').is_some_and(|(flag, _)| is_out(flag));
        if !std::mem::take(&mut skip) && !joined && !alone.contains(&word.as_ref()) {
            if with_value.contains(&word.as_ref()) {
                skip = true;
            } else {
                words.push(word.into_owned());
            }
        }
    }
    words
}
