//! Bulk flows: goodput, retransmissions, timeouts, RTT and queue.

use super::compare::{Compared, agree, over_time, run, verdict};
use super::reference::LinuxReference;
use narrows_lab::parallel::parallel;
use narrows_lab::stats::estimate;
use std::fmt::Write as _;
use std::path::Path;

/// The simulator's results, in the order of the reference's columns; the window is from the series.
const MEASURES: [&str; 5] =
    ["goodput_bps", "retransmissions", "timeouts", "rtt_s_mean", "queue_packets_mean"];
const SEEDS: u64 = 10;

pub fn table(
    out: &mut Compared,
    folder: &Path,
    reference: &LinuxReference,
    jobs: usize,
) -> Result<(), String> {
    let cells = &reference.cells;
    let seeds = |i: usize| if cells[i].loss == "0" { 1 } else { SEEDS };
    let tasks: Vec<(usize, u64)> =
        (0..cells.len()).flat_map(|i| (1..=seeds(i)).map(move |s| (i, s))).collect();
    let taken = parallel(tasks.len(), jobs, |t| {
        let (i, seed) = tasks[t];
        let c = &cells[i];
        let link = reference.links.get(&c.link).ok_or_else(|| format!("no link {}", c.link))?;
        let sample = run(folder, link, &c.loss, &c.ours, &[], seed)?;
        let [goodput, sent_again, timeouts, rtt, queue] = MEASURES.map(|m| sample.measure(None, m));
        let window = over_time(&sample, "main.0", "cwnd", 0.0);
        Ok([goodput, sent_again, timeouts, rtt, queue, window])
    })?;
    let mut rows = String::new();
    let mut agreed = 0;
    let mut missed = Vec::new();
    let mut lossless = 0;
    let mut as_often = 0;
    for (i, c) in cells.iter().enumerate() {
        let theirs = |k: usize| estimate(c.runs.iter().map(|r| r[k]));
        let ours = |k: usize| {
            let mine = tasks.iter().zip(&taken).filter(|(t, _)| t.0 == i);
            estimate(mine.map(|(_, x)| x[k]))
        };
        let agrees = agree(ours(0), theirs(0), 0.05);
        match agrees {
            true => agreed += 1,
            false => missed.push(format!("{} {} {}", c.link, c.kernel, c.loss)),
        }
        if c.loss == "0" {
            lossless += 1;
            let apart = (ours(1).mean - theirs(1).mean).abs();
            as_often += usize::from(apart <= 0.2 * theirs(1).mean);
        }
        let joint = ours(0).half().unwrap_or(0.0).hypot(theirs(0).half().unwrap_or(0.0));
        let _ = writeln!(
            rows,
            "| {} | {} | {} | {:.3} | {:.3} | {:+.1}% | ±{:.1}% | {} | {:.0} / {:.0} | {:.1} / {:.1} | {:.1} / {:.1} | {:.1} / {:.1} | {:.1} / {:.1} |",
            c.link,
            c.loss,
            c.kernel,
            theirs(0).mean / 1e6,
            ours(0).mean / 1e6,
            100.0 * (ours(0).mean / theirs(0).mean - 1.0),
            100.0 * joint / theirs(0).mean,
            verdict(agrees),
            theirs(1).mean,
            ours(1).mean,
            theirs(2).mean,
            ours(2).mean,
            theirs(3).mean,
            ours(3).mean * 1e3,
            theirs(4).mean,
            ours(4).mean,
            theirs(5).mean,
            ours(5).mean,
        );
    }
    let links: Vec<String> = (reference.links.iter())
        .map(|(name, l)| {
            format!(
                "{name}: {} Mbit/s, {} ms each way, {} packets waiting, {} s",
                l.rate_kbps as f64 / 1e3,
                l.delay_ms,
                l.queue_packets,
                l.seconds
            )
        })
        .collect();
    let table = format!(
        "Goodput must agree within 5% or within the joint 95% interval (kernel 3 to 10 seeds, ours {SEEDS}; one without \
         loss). Without loss, preset `linux` retransmits as much as the kernel, within 20%, in {as_often} of {lossless} \
         cells.\n\n{}. Each data packet is lost with the probability given, after the bottleneck.\n\n\
         | link | loss | algorithm | kernel Mbit/s | ours Mbit/s | difference | joint interval | | \
         retransmitted | timeouts | RTT ms | queue | cwnd |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|\n{rows}\n\
         Retransmissions, timeouts, mean RTT, mean queue and mean window in packets as kernel / ours. The kernel's queue \
         counts the packet in service, ours does not. Its RTT is the mean of SRTT every 0.1 s, ours that over ACKs.\n",
        links.join("; "),
    );
    out.add("Bulk flows", [agreed, cells.len()], &missed, &table);
    Ok(())
}
