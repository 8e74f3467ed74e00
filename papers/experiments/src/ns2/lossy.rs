//! N2 and N3: one flow with random loss, over two paths.

use super::page::{ComparisonPage, first_packet, half, share, variant};
use super::reference::Lossy;
use crate::sample::SimulationSample;
use crate::varied::plan;
use narrows_lab::outcome::Estimate;
use narrows_lab::stats::estimate;
use narrows_scenario::plan::Plan;
use std::fmt::Write as _;
use std::path::Path;

/// A path with random loss.
pub(super) struct LossyPath {
    /// As reasons name it.
    table: &'static str,
    title: &'static str,
    path: &'static str,
    /// Of its bottleneck, in bit/s.
    capacity: f64,
}

pub(super) const N2: LossyPath = LossyPath {
    table: "n2",
    title: "One flow, random loss",
    path: "10 Mbit/s 0.1 ms, then 1.5 Mbit/s 80 ms, 29 packets waiting at most",
    capacity: 1.5e6,
};
/// With a short round trip timeouts weigh more.
pub(super) const N3: LossyPath = LossyPath {
    table: "n3",
    title: "The same over 52 ms of round trip",
    path: "20 Mbit/s 25 ms, then 2 Mbit/s 1 ms, 59 packets waiting at most",
    capacity: 2e6,
};
use narrows_lab::parallel::parallel;

impl ComparisonPage {
    pub(super) fn lossy(
        &mut self,
        path: &LossyPath,
        folder: &Path,
        rows: &[Lossy],
        jobs: usize,
    ) -> Result<(), String> {
        let file = format!("{}.toml", path.table);
        self.begin(path.title);
        let _ = write!(
            self.out,
            "{}, 200 s; each data packet is lost with probability p after transmission \
             ([{file}]({file})). Goodput over capacity, mean ± half-width of the \
             95% interval; means must agree within their joint interval or within 5%.\n\n\
             | p | ns-2 | ours | ns-2 | ours | difference | joint interval | timeouts | retransmitted | |\n\
             |---|---|---|---|---|---|---|---|---|---|\n",
            path.path,
        );
        let plan_of = |p: &str| {
            let share: f64 = p.parse().map_err(|e| format!("reference.json: p '{p}': {e}"))?;
            plan(folder, &file, &[("link.bottleneck.loss", &format!("{}%", 100.0 * share))])
        };
        let plans: Vec<Plan> = rows.iter().map(|r| plan_of(&r.p)).collect::<Result<_, _>>()?;
        // Every row has as many seeds as its plan; runs without loss are deterministic.
        let seeds = |i: usize| if rows[i].p == "0" { 1 } else { plans[i].scenario.seeds as usize };
        let tasks: Vec<(usize, u64)> =
            (0..rows.len()).flat_map(|i| (0..seeds(i)).map(move |s| (i, s as u64))).collect();
        let taken = parallel(tasks.len(), jobs, |t| {
            let (i, seed) = tasks[t];
            let s = SimulationSample::take(
                &plans[i],
                variant(&plans[i], &rows[i].ours)?,
                plans[i].scenario.seed + seed,
            )?;
            let goodput =
                s.measure(None, "goodput_bps") / path.capacity + first_packet(200.0, path.capacity);
            Ok([goodput, s.measure(None, "timeouts"), s.measure(None, "retransmissions")])
        })?;
        let mut notes = Vec::new();
        for (i, r) in rows.iter().enumerate() {
            let of = |k: usize| {
                let mine = tasks.iter().zip(&taken).filter(|(t, _)| t.0 == i);
                estimate(mine.map(|(_, x)| x[k]))
            };
            let [ours, timeouts, again] = [0, 1, 2].map(of);
            let half = half(r.sd, r.seeds);
            let theirs = Estimate::symmetric(r.goodput, (r.seeds > 1).then_some(half));
            let joint = half.hypot(ours.half().unwrap_or(0.0));
            let gap = ours.mean - r.goodput;
            let agrees = match r.seeds {
                1 => gap.abs() <= 0.02 * r.goodput,
                _ => gap.abs() <= joint || gap.abs() <= 0.05 * r.goodput,
            };
            let verdict = self.verdict(agrees, path.table, &r.variant, &r.p, &mut notes);
            let counts = |x: Option<f64>, y: Estimate| {
                format!("{} / {:.1}", x.map_or("-".into(), |x| format!("{x:.1}")), y.mean)
            };
            let _ = writeln!(
                self.out,
                "| {} | {} | `{}` | {} | {} | {:+.1}% | ±{:.4} | {} | {} | {verdict} |",
                r.p,
                r.variant,
                r.ours,
                share(theirs),
                share(ours),
                100.0 * gap / r.goodput,
                joint,
                counts(r.timeouts, timeouts),
                counts(r.retransmitted, again),
            );
        }
        self.out.push_str("\nTimeouts and retransmissions as ns-2 / ours, means over seeds.\n");
        self.notes(&notes);
        Ok(())
    }
}
