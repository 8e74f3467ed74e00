//! The time while links run: signals, ends of commands, display.

use super::args::LinkArgs;
use super::labelled::Labelled;
use super::shown::{json, live_line, table, warning};
use crate::failure::Failure;
use crate::terminal::{note, print};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use narrows_emulator::{
    EmulatedLink, LinkStats, Programs, ReceivedSignal, SignalReceiver, forward,
};
use serde_json::Value;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);
const TERMINATE: i32 = 15;

/// Running links and commands. They end with the last command; without a command, at a signal.
pub struct RunningLinks<'a> {
    pub links: Vec<(&'a str, &'a EmulatedLink)>,
    pub programs: Programs,
    /// Output of all commands except the last.
    pub labelled: Labelled,
}

/// Waits for the end. If the last command's exit code is not zero, it is the failure.
pub fn attend(
    a: &LinkArgs,
    signals: &SignalReceiver,
    running: RunningLinks<'_>,
) -> Result<(), Failure> {
    let RunningLinks { links, mut programs, labelled } = running;
    let alone = programs.commands().len() == 0;
    let bar = (alone && !a.quiet).then(bar);
    let mut last: Vec<LinkStats> = links.iter().map(|(_, l)| l.stats()).collect();
    let mut shown = Instant::now();
    let code = loop {
        let patience = SECOND.saturating_sub(shown.elapsed());
        match signals.wait(patience) {
            Some(ReceivedSignal::Child) => {
                if let Some(status) = ended(&mut programs, a.quiet) {
                    break code(status);
                }
            }
            Some(ReceivedSignal::Stop { signal, .. }) if alone => {
                break Some(signal)
                    .filter(|s| *s != 2 && *s != TERMINATE)
                    .map_or(0, |s| 128 + s as u8);
            }
            Some(ReceivedSignal::Stop { signal, everybody }) => {
                for child in programs.commands().filter(|_| !everybody) {
                    forward(child, signal);
                }
            }
            None => {}
        }
        if shown.elapsed() >= SECOND {
            let now: Vec<LinkStats> = links.iter().map(|(_, l)| l.stats()).collect();
            let seconds = shown.elapsed().as_secs_f64();
            for (((name, _), now), before) in links.iter().zip(&now).zip(&last) {
                let line = live_line(name, now, before, seconds);
                match &bar {
                    Some(bar) => bar.set_message(line),
                    None if a.progress => note(&line),
                    None => {}
                }
            }
            last = now;
            shown = Instant::now();
        }
    };
    // End the programs first, while the links still carry their last packets.
    drop(programs);
    labelled.finish();
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    finish(a, &links)?;
    if code == 0 { Ok(()) } else { Err(Failure::Command(code)) }
}

/// Prints the counters.
fn finish(a: &LinkArgs, links: &[(&str, &EmulatedLink)]) -> Result<(), Failure> {
    let all: Vec<(&str, LinkStats, bool)> =
        links.iter().map(|(n, l)| (*n, l.stats(), l.is_real_time())).collect();
    if a.json {
        let objects: serde_json::Map<String, Value> =
            all.iter().map(|(n, s, r)| ((*n).to_string(), json(s, *r))).collect();
        print(&format!("{}\n", Value::Object(objects)))?;
    } else if !a.quiet {
        for (name, stats, _) in &all {
            table(name, stats).lines().for_each(note);
        }
    }
    for line in all.iter().filter_map(|(name, stats, real_time)| warning(name, stats, *real_time)) {
        note(&format!("narrows: {line}"));
    }
    Ok(())
}

/// The last command's status, if it has ended. Failures of other commands are reported.
fn ended(programs: &mut Programs, quiet: bool) -> Option<ExitStatus> {
    let mut status = None;
    for (label, ended, is_last) in programs.ended() {
        if is_last {
            status = Some(ended);
        } else if !ended.success() && !quiet {
            note(&format!("narrows: {label}: {ended}"));
        }
    }
    status
}

/// The exit code; for a signal, the code that a shell would return.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{msg}") {
        bar.set_style(style);
    }
    bar
}
