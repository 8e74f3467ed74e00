//! Transfers of a given size: from the call of `connect` to the receiver's last byte.

use super::compare::{Compared, agree, run, verdict};
use super::reference::LinuxReference;
use narrows_lab::parallel::parallel;
use narrows_lab::stats::estimate;
use std::fmt::Write as _;
use std::path::Path;

const SEEDS: u64 = 40;

pub fn table(
    out: &mut Compared,
    folder: &Path,
    reference: &LinuxReference,
    jobs: usize,
) -> Result<(), String> {
    let all = &reference.transfers;
    let seeds = |i: usize| if all[i].loss == "0" { 1 } else { SEEDS };
    let tasks: Vec<(usize, u64)> =
        (0..all.len()).flat_map(|i| (1..=seeds(i)).map(move |s| (i, s))).collect();
    let taken = parallel(tasks.len(), jobs, |t| {
        let (i, seed) = tasks[t];
        let x = &all[i];
        let link = reference.links.get(&x.link).ok_or_else(|| format!("no link {}", x.link))?;
        let source = format!("transfer(size={}B)", x.bytes);
        let others = [("flows.main.source", source.as_str()), ("duration", "60s")];
        let sample = run(folder, link, &x.loss, &x.ours, &others, seed)?;
        Ok(sample.measure(None, "completion_s"))
    })?;
    let mut rows = String::new();
    let mut agreed = 0;
    let mut missed = Vec::new();
    for (i, x) in all.iter().enumerate() {
        let theirs = estimate(x.seconds.iter().copied());
        let mine = tasks.iter().zip(&taken).filter(|(t, _)| t.0 == i);
        let ours = estimate(mine.map(|(_, x)| *x));
        let agrees = agree(ours, theirs, 0.1);
        match agrees {
            true => agreed += 1,
            false => missed.push(format!("{} {} {}", x.link, x.kernel, x.loss)),
        }
        let _ = writeln!(
            rows,
            "| {} | {} | {} | {} kB | {:.3} | {:.3} | {:+.1}% | {} |",
            x.link,
            x.loss,
            x.kernel,
            x.bytes / 1000,
            theirs.mean,
            ours.mean,
            100.0 * (ours.mean / theirs.mean - 1.0),
            verdict(agrees),
        );
    }
    let table = format!(
        "Seconds from the call of `connect` to the receiver's last byte, alone on the link. With loss they are means over \
         24 transfers of the kernel's and {SEEDS} of ours. They must agree within 10% or within the joint 95% interval.\n\n\
         | link | loss | algorithm | size | kernel s | ours s | difference | |\n\
         |---|---|---|---|---|---|---|---|\n{rows}",
    );
    out.add("Completion times", [agreed, all.len()], &missed, &table);
    Ok(())
}
