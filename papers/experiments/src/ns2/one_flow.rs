//! N1: one flow, without random draws.

use super::page::{ComparisonPage, first_packet, variant};
use super::reference::SingleFlow;
use crate::interval::digits;
use crate::sample::SimulationSample;
use crate::stat::Stat;
use crate::varied::plan;
use narrows_lab::parallel::parallel;
use std::fmt::Write as _;
use std::path::Path;

/// Seconds from which windows and queues are compared.
const STEADY: f64 = 10.0;

impl ComparisonPage {
    pub(super) fn one_flow(
        &mut self,
        folder: &Path,
        rows: &[SingleFlow],
        jobs: usize,
    ) -> Result<(), String> {
        self.begin("One flow, nothing random");
        self.out.push_str(
            "10 Mbit/s 0.2 ms, then 1.5 Mbit/s 20 ms, 30 s \
             ([n1.toml](n1.toml)). Goodput must agree within 2%. Windows and \
             queues (packets waiting) from 10 s to 30 s, sampled every millisecond, as least – most \
             (mean); `limit` L is L − 1 packets waiting.\n\n\
             | limit | ns-2 | ours | goodput ns-2 | ours | difference | cwnd ns-2 | ours | queue ns-2 | ours | drops | retransmitted | |\n\
             |---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        );
        let samples = parallel(rows.len(), jobs, |i| {
            let room = format!("{}p", rows[i].limit - 1);
            let plan = plan(folder, "n1.toml", &[("link.bottleneck.queue", &room)])?;
            SimulationSample::take(&plan, variant(&plan, &rows[i].ours)?, plan.scenario.seed)
        })?;
        let mut notes = Vec::new();
        for (r, s) in rows.iter().zip(&samples) {
            let mbps = s.measure(None, "goodput_bps") / 1e6 + first_packet(30.0, 1.5e6) * 1.5;
            let off = mbps / r.goodput_mbps - 1.0;
            let limit = r.limit.to_string();
            let verdict = self.verdict(off.abs() <= 0.02, "n1", &r.variant, &limit, &mut notes);
            let range = |table: &str, column: &str| {
                span(&[Stat::Min, Stat::Max, Stat::Mean].map(|x| stat(s, table, column, x, STEADY)))
            };
            let _ = writeln!(
                self.out,
                "| {limit} | {} | `{}` | {:.4} | {mbps:.4} | {:+.2}% | {} | {} | {} | {} | {} / {} | {} / {} | {verdict} |",
                r.variant,
                r.ours,
                r.goodput_mbps,
                100.0 * off,
                span(&r.cwnd),
                range("main.0", "cwnd"),
                span(&r.queue),
                range("bottleneck", "queue"),
                r.drops,
                digits(stat(s, "bottleneck", "drops", Stat::Sum, 0.0)),
                r.retransmitted,
                digits(s.measure(None, "retransmissions")),
            );
        }
        self.out.push_str("\nGoodput in Mbit/s; drops and retransmissions as ns-2 / ours.\n");
        self.notes(&notes);
        Ok(())
    }
}

fn stat(s: &SimulationSample, table: &str, column: &str, stat: Stat, from: f64) -> f64 {
    let found = s.series.iter().find(|t| t.name == table);
    let Some((table, values)) = found.and_then(|t| Some((t, t.column(column)?))) else {
        return f64::NAN;
    };
    let first = table.time_s.iter().position(|t| *t >= from - 1e-9).unwrap_or(0);
    stat.of(&table.time_s[first..], &values[first..], 0.0)
}

fn span([min, max, mean]: &[f64; 3]) -> String {
    format!("{} – {} ({})", digits(*min), digits(*max), digits(*mean))
}
