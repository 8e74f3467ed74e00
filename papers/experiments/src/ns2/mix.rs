//! N4: TCP against TFRC over a DSL-like link, TCP's share over seeds.

use super::page::{ComparisonPage, half, share, variant};
use super::reference::{Mix, MixRow};
use crate::sample::SimulationSample;
use crate::varied::plan;
use narrows_lab::outcome::Estimate;
use narrows_lab::parallel::parallel;
use narrows_lab::stats::estimate;
use narrows_report::figure::{Figure, lines};
use std::fmt::Write as _;
use std::path::Path;

/// Accepted difference of TCP's share, or the joint interval if that is larger.
const NEAR: f64 = 0.05;

impl ComparisonPage {
    /// Adds the section's text to the page, and returns the figure.
    pub(super) fn mix(&mut self, folder: &Path, mix: &Mix, jobs: usize) -> Result<String, String> {
        let ours = [mix.ours.as_str(), mix.beside.as_str()];
        self.begin("TCP against TFRC over a DSL-like link");
        let _ = write!(
            self.out,
            "{n} TCP and {n} TFRC flows share a drop-tail link of 10 ms with the ACKs of {n} TCP flows \
             the other way, each with access links of its own (15 Mbit/s, 0.5 to 2 ms), 200 s \
             ([n4.toml](n4.toml)). θ is TCP's part of what leaves the link's queue: \
             mean ± half-width of the 95% interval over {seeds} seeds. `limit` L is L − 1 packets \
             waiting, both ways. With `{0}` means must agree within {NEAR} or their joint interval; \
             `{1}` stands beside it.\n\n\
             ![TCP's share against the rate of the link](figure.svg)\n\n\
             | Mbit/s | limit | ns-2 | `{0}` | difference | joint interval | | `{1}` |\n\
             |---|---|---|---|---|---|---|---|\n",
            ours[0],
            ours[1],
            n = mix.flows,
            seeds = mix.rows.first().map_or(0, |r| r.seeds),
        );
        let measured = measure(folder, &mix.rows, ours, jobs)?;
        let mut notes = Vec::new();
        for (r, of) in mix.rows.iter().zip(&measured) {
            let theirs = theirs(r);
            let joint = theirs.half().unwrap_or(0.0).hypot(of[0].half().unwrap_or(0.0));
            let gap = of[0].mean - theirs.mean;
            let agrees = gap.abs() <= NEAR.max(joint);
            let verdict = self.verdict(agrees, "n4", &mix.ours, &r.mbps, &mut notes);
            let _ = writeln!(
                self.out,
                "| {} | {} | {} | {} | {gap:+.4} | ±{joint:.4} | {verdict} | {} |",
                r.mbps,
                r.limit,
                share(theirs),
                share(of[0]),
                share(of[1]),
            );
        }
        for note in &mix.notes {
            let _ = writeln!(self.out, "\n{note}");
        }
        self.notes(&notes);
        Ok(figure(&mix.rows, ours, &measured))
    }
}

fn theirs(r: &MixRow) -> Estimate {
    Estimate::symmetric(r.theta, Some(half(r.sd, r.seeds)))
}

/// Per row, TCP's share with each of the two TCPs.
fn measure(
    folder: &Path,
    rows: &[MixRow],
    ours: [&str; 2],
    jobs: usize,
) -> Result<Vec<[Estimate; 2]>, String> {
    let plan = |r: &MixRow| {
        let rate = format!("{}Mbit/s", r.mbps);
        let room = format!("{}p", r.limit.saturating_sub(1));
        plan(folder, "n4.toml", &[("link.dsl.rate", &rate), ("link.dsl.queue", &room)])
    };
    let plans = rows.iter().map(plan).collect::<Result<Vec<_>, _>>()?;
    let mut tasks = Vec::new();
    // The longest first, so that no thread begins one of them last.
    for (i, plan) in plans.iter().enumerate().rev() {
        for (k, protocol) in ours.iter().enumerate() {
            let variant = variant(plan, protocol)?;
            let seeds = u64::from(plan.scenario.seeds);
            tasks.extend((0..seeds).map(|s| (i, k, variant, plan.scenario.seed + s)));
        }
    }
    let taken = parallel(tasks.len(), jobs, |t| {
        let (i, _, variant, seed) = tasks[t];
        // For the media group, theta is the other flows' (TCP's) share of all departures.
        Ok(SimulationSample::take(&plans[i], variant, seed)?.measure(Some("tfrc"), "theta"))
    })?;
    let of = |i: usize, k: usize| {
        let mine = tasks.iter().zip(&taken).filter(|(t, _)| t.0 == i && t.1 == k);
        estimate(mine.map(|(_, theta)| *theta))
    };
    Ok((0..rows.len()).map(|i| [of(i, 0), of(i, 1)]).collect())
}

fn figure(rows: &[MixRow], ours: [&str; 2], measured: &[[Estimate; 2]]) -> String {
    let at = |r: &MixRow| r.mbps.parse().unwrap_or(f64::NAN);
    let all = |of: &dyn Fn(usize) -> Estimate| -> Vec<(f64, Estimate)> {
        rows.iter().enumerate().map(|(i, r)| (at(r), of(i))).collect()
    };
    let middle = |v: &[(f64, Estimate)]| v.iter().map(|(x, e)| (*x, e.mean)).collect::<Vec<_>>();
    let band = |v: &[(f64, Estimate)]| {
        let half = |e: &Estimate| e.half().unwrap_or(0.0);
        v.iter().map(|(x, e)| (*x, e.mean - half(e), e.mean + half(e))).collect::<Vec<_>>()
    };
    let ns2 = all(&|i| theirs(&rows[i]));
    let [first, second] = [0, 1].map(|k| all(&move |i| measured[i][k]));
    let panel = lines("TCP's share beside TFRC")
        .x("link", "Mbit/s")
        .y("θ", "")
        .log_x()
        .y_range(0.0, 0.8)
        .band(ours[0], band(&first))
        .line(ours[0], middle(&first))
        .dashed(ours[1], middle(&second))
        .points("ns-2.35", middle(&ns2));
    Figure::new().panel(panel).caption("ns2: cargo xtask validate ns2").svg()
}
