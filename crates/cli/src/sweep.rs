//! The command `narrows sweep`.

use crate::args::Sweep;
use crate::failure::Failure;
use crate::terminal::{Bar, STOP, catch_interrupt, note, print, print_json, text_width, width};
use narrows_lab::sweep::{About, Control, Outcome, journal};
use narrows_options::words::quoted;
use narrows_report::sweep::{json, shown, write};
use narrows_report::{output, summary};

/// `narrows sweep`.
pub fn sweep(a: &Sweep) -> Result<(), Failure> {
    output::check_folder(&a.out).map_err(Failure::Input)?;
    let (sweep, chosen) = a.sweep.read(a.sweep.base()?)?;
    std::fs::create_dir_all(&a.out).map_err(|e| unwritable(a, &e))?;
    let (known, journal) = journal::open(&a.out, a.fresh).map_err(Failure::Input)?;
    let mut runs = sweep.known(known);
    let reused = runs.iter().flatten().flatten().count();
    if reused > 0 {
        let all = sweep.points.len() * sweep.seeds as usize;
        note(&format!(
            "narrows: {reused} of {all} runs were already in {}; --fresh runs them again",
            a.out.join(journal::NAME).display()
        ));
    }
    catch_interrupt();
    let points = sweep.points.len();
    let bar = Bar::new(format!("{points} points"));
    let control = Control {
        stop: &STOP,
        progress: &|fraction, done| {
            bar.tell(fraction);
            bar.say(|| format!("{done} of {points} points"));
        },
        jobs: a.jobs.count(),
    };
    let ran = sweep.execute(&mut runs, journal, &control);
    bar.finish();
    ran.map_err(Failure::Outside)?;
    if runs.iter().flatten().all(Option::is_none) {
        return Err(Failure::Interrupted);
    }
    let about = About {
        command_line: crate::command_line::command_line(),
        base_line: base_line(),
        measure: chosen.measure,
        group: chosen.group,
    };
    let outcome = Outcome::new(&sweep, &runs, about);
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
    let (all, done) = (runs.iter().flatten().count(), runs.iter().flatten().flatten().count());
    if done < all {
        return Err(Failure::Stopped(format!(
            "interrupted with {done} of {all} runs finished; the same command goes on with the rest"
        )));
    }
    Ok(())
}

fn unwritable(a: &Sweep, e: &std::io::Error) -> Failure {
    let why = narrows_scenario::text_file::plain(e);
    Failure::Input(format!("--out {}: cannot create the folder: {why}", a.out.display()))
}

/// The command without what varies and where it goes, so that a report can name the command that
/// draws one of its points.
fn base_line() -> String {
    const WITH_VALUE: &[&str] = &["--vary", "--out", "--measure", "--group", "--jobs"];
    const ALONE: &[&str] = &["--json", "--fresh"];
    let mut words = vec!["narrows".to_string()];
    let mut skip = false;
    for word in std::env::args_os().skip(1) {
        let word = word.to_string_lossy();
        let joined = word.split_once('=').is_some_and(|(flag, _)| WITH_VALUE.contains(&flag));
        if !std::mem::take(&mut skip) && !joined && !ALONE.contains(&word.as_ref()) {
            if WITH_VALUE.contains(&word.as_ref()) {
                skip = true;
            } else {
                words.push(quoted(&word));
            }
        }
    }
    words.join(" ")
}
