//! Transfers of a given size: from the call of `connect` to the receiver's last byte.

use super::reference::Reference;
use super::{PRESETS, agree, run, verdict};
use crate::run::parallel;
use narrows_lab::stats::estimate;
use std::fmt::Write as _;
use std::path::Path;

const SEEDS: u64 = 40;

pub fn table(
    out: &mut String,
    folder: &Path,
    reference: &Reference,
    jobs: usize,
) -> Result<(), String> {
    let all = &reference.transfers;
    let seeds = |i: usize| if all[i].loss == "0" { 1 } else { SEEDS };
    let tasks: Vec<(usize, usize, u64)> = (0..all.len())
        .flat_map(|i| (0..PRESETS.len()).map(move |p| (i, p)))
        .flat_map(|(i, p)| (1..=seeds(i)).map(move |s| (i, p, s)))
        .collect();
    let taken = parallel(tasks.len(), jobs, |t| {
        let (i, p, seed) = tasks[t];
        let x = &all[i];
        let link = reference.links.get(&x.link).ok_or_else(|| format!("no link {}", x.link))?;
        let source = format!("transfer(size={}B)", x.bytes);
        let others = [("flows.main.source", source.as_str()), ("duration", "60s")];
        let what = (PRESETS[p], x.loss.as_str(), x.ours.as_str());
        let sample = run((folder, "cell.toml"), link, what, &others, seed)?;
        Ok(sample.measure(None, "completion_s"))
    })?;
    let (mut rows, mut agreed) = (String::new(), [0; PRESETS.len()]);
    for (i, x) in all.iter().enumerate() {
        let theirs = estimate(x.seconds.iter().copied());
        let ours = [0, 1].map(|p| {
            let mine = tasks.iter().zip(&taken).filter(|(t, _)| (t.0, t.1) == (i, p));
            estimate(mine.map(|(_, x)| *x))
        });
        let agrees = ours.map(|o| agree(o, theirs, 0.1));
        for (count, yes) in agreed.iter_mut().zip(agrees) {
            *count += usize::from(yes);
        }
        let off = ours.map(|o| 100.0 * (o.mean / theirs.mean - 1.0));
        let _ = writeln!(
            rows,
            "| {} | {} | {} | {} kB | {:.3} | {:.3} | {:+.1}% | {} | {:+.1}% |",
            x.link,
            x.loss,
            x.kernel,
            x.bytes / 1000,
            theirs.mean,
            ours[0].mean,
            off[0],
            verdict(agrees[0]),
            off[1],
        );
    }
    let _ = writeln!(
        out,
        "### Completion times\n\nSeconds from the call of `connect` to the receiver's last byte, alone on the link; with \
         loss means over 24 transfers of the kernel's and {SEEDS} of ours. They must agree within 10% or within the joint \
         95% interval.\n\n**{} of {} agree in preset `linux`, {} in preset `rfc`.**\n\n\
         | link | loss | algorithm | size | kernel s | `linux` s | difference | | `rfc` |\n\
         |---|---|---|---|---|---|---|---|---|\n{rows}",
        agreed[0],
        all.len(),
        agreed[1],
    );
    Ok(())
}
