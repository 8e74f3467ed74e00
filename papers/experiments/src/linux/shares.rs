//! Two flows on one link: their shares, their windows, and the queue.

use super::compare::{Compared, PRESET, mean, over_time, verdict};
use super::reference::{LinuxReference, ReferenceLink, SHARE_COLUMNS, Share};
use crate::interval::digits;
use crate::sample::SimulationSample;
use crate::varied::plan;
use narrows_lab::parallel::parallel;
use std::fmt::Write as _;
use std::path::Path;

/// Seconds of the measured part, from the later start.
const MEASURED: f64 = 120.0;
/// How far apart shares may be.
const WITHIN: f64 = 0.05;

pub fn table(
    out: &mut Compared,
    folder: &Path,
    reference: &LinuxReference,
    jobs: usize,
) -> Result<(), String> {
    let all = &reference.shares;
    let tasks: Vec<(usize, usize)> =
        (0..all.len()).flat_map(|i| (0..all[i].runs.len()).map(move |r| (i, r))).collect();
    let taken = parallel(tasks.len(), jobs, |t| {
        let (i, run) = tasks[t];
        let link = &all[i].link;
        let link = reference.links.get(link).ok_or_else(|| format!("no link {link}"))?;
        play(folder, link, &all[i], &all[i].runs[run])
    })?;
    let mut rows = String::new();
    let mut agreed = 0;
    let mut missed = Vec::new();
    for (i, x) in all.iter().enumerate() {
        let theirs = |k: usize| mean(x.runs.iter().map(|r| r[2 + k]));
        let ours = |k: usize| {
            let mine = tasks.iter().zip(&taken).filter(|(t, _)| t.0 == i);
            mean(mine.map(|(_, x)| x[k]))
        };
        let agrees = (ours(0) - theirs(0)).abs() <= WITHIN;
        let extra = if x.extra_ms > 0.0 { format!(" + {} ms", x.extra_ms) } else { String::new() };
        let names = format!("{} beside {}{extra}", x.first, x.second);
        match agrees {
            true => agreed += 1,
            false => missed.push(format!("{} {names}", x.link)),
        }
        let shares = || x.runs.iter().map(|r| r[2]);
        let _ = writeln!(
            rows,
            "| {} | {names} | {:.3} | {:.2} – {:.2} | {:.3} | {:+.3} | {} | {} / {} | {} / {} | {} / {} |",
            x.link,
            theirs(0),
            shares().fold(f64::INFINITY, f64::min),
            shares().fold(0.0, f64::max),
            ours(0),
            ours(0) - theirs(0),
            verdict(agrees),
            digits(theirs(1)),
            digits(ours(1)),
            digits(theirs(2)),
            digits(ours(2)),
            digits(theirs(3)),
            digits(ours(3)),
        );
    }
    let table = format!(
        "Two flows, nothing random: the first one's share of what arrives in {MEASURED} s from the later start on, as a \
         mean over several pairs of starts up to ten seconds apart ([share.toml](share.toml)). `+ 40 ms`: the second flow's \
         round trip is longer by so much. Means must agree within {WITHIN}.\n\n\
         | link | flows | kernel | least – most | ours | difference | | first's cwnd | second's | queue |\n\
         |---|---|---|---|---|---|---|---|---|---|\n{rows}\n\
         Windows and queue in packets, mean of samples every 0.1 s, as kernel / ours.\n",
    );
    out.add("Shares", [agreed, all.len()], &missed, &table);
    Ok(())
}

/// The first one's share, both mean windows, and the mean queue.
fn play(
    folder: &Path,
    link: &ReferenceLink,
    share: &Share,
    starts: &[f64; SHARE_COLUMNS],
) -> Result<[f64; 4], String> {
    let [first, second, ..] = *starts;
    let earlier = first.min(second);
    let later = first.max(second) - first.min(second);
    let start = |at: f64| format!("{}s", at - earlier);
    let plan = plan(
        folder,
        "share.toml",
        &[
            ("preset", PRESET),
            ("warmup", &format!("{later}s")),
            ("duration", &format!("{}s", later + MEASURED)),
            ("link.second.delay", &format!("{}ms", share.extra_ms)),
            ("link.bottleneck.rate", &format!("{}kbit/s", link.rate_kbps)),
            ("link.bottleneck.delay", &format!("{}ms", link.delay_ms)),
            ("link.bottleneck.queue", &format!("{}p", link.queue_packets)),
            ("flows.first.protocol", super::reference::ours(&share.first)),
            ("flows.second.protocol", super::reference::ours(&share.second)),
            ("flows.first.start", &start(first)),
            ("flows.second.start", &start(second)),
        ],
    )?;
    let sample = SimulationSample::take(&plan, 0, 1)?;
    let [one, other] = ["first", "second"].map(|f| sample.measure(Some(f), "goodput_bps"));
    let over_time = |table, column| over_time(&sample, table, column, later);
    let [w1, w2] = ["first.0", "second.0"].map(|flow| over_time(flow, "cwnd"));
    Ok([one / (one + other), w1, w2, over_time("bottleneck", "queue")])
}
