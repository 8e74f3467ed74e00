//! Beside ns-2: the reference measurements in `experiments/ns2/`, our runs, and how far apart.
//!
//! Goodput must agree within 2% where nothing is random; where loss is random, means must agree
//! within their joint 95% interval or within 5%. Whatever does not is explained in the reference
//! file, and an explanation of something that agrees is an error.

use super::dumbbell::dumbbell;
use super::file::set;
use super::judge::digits;
use super::run::{Sample, parallel};
use super::stat::Stat;
use crate::outcome::Estimate;
use crate::plan::Plan;
use crate::scenario_file;
use crate::stats::{estimate, student_t975};
use serde::Deserialize;
use std::fmt::Write as _;
use std::path::Path;

/// `reference.json`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reference {
    simulator: String,
    how: String,
    n1: Vec<OneFlow>,
    n2: Vec<Lossy>,
    dumbbells: Vec<Dumbbell>,
    why: Vec<Why>,
}

/// One flow, nothing random.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OneFlow {
    limit: u64,
    variant: String,
    ours: String,
    goodput_mbps: f64,
    drops: u64,
    retransmitted: u64,
    /// Least, most and mean from 10 s on.
    cwnd: [f64; 3],
    queue: [f64; 3],
}

/// One flow with random loss: goodput over capacity.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lossy {
    variant: String,
    ours: String,
    p: String,
    goodput: f64,
    sd: f64,
    seeds: u32,
    timeouts: Option<f64>,
    retransmitted: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Dumbbell {
    name: String,
    flows: u32,
    mbps: u64,
    seconds: u64,
    delivered: u64,
    sent: u64,
    retransmitted: u64,
}

/// Why a row differs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Why {
    /// `n1`, `n2` or `dumbbell`.
    table: String,
    variant: String,
    /// The row's limit or p.
    at: String,
    why: String,
}

/// Seconds from which N1's windows and queues are compared.
const STEADY: f64 = 10.0;

/// Runs everything and writes the section.
///
/// # Errors
/// A file that cannot be read, or a difference without an explanation.
pub fn section(folder: &Path, jobs: usize) -> Result<String, String> {
    let path = folder.join("reference.json");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let reference: Reference =
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut page = Page { out: String::new(), why: reference.why.clone(), faults: Vec::new() };
    let _ = writeln!(page.out, "Simulator: {}. {}\n", reference.simulator, reference.how);
    page.one_flow(folder, &reference.n1, jobs)?;
    page.lossy(folder, &reference.n2, jobs)?;
    page.dumbbells(&reference.dumbbells, jobs)?;
    for w in &page.why {
        page.faults.push(format!(
            "{} {} {}: explained, but it agrees or is not there",
            w.table, w.variant, w.at
        ));
    }
    if page.faults.is_empty() {
        return Ok(page.out);
    }
    // The tables tell more than the faults.
    Err(format!("{}\n{}", page.out, page.faults.join("\n")))
}

struct Page {
    out: String,
    /// Explanations not used yet.
    why: Vec<Why>,
    faults: Vec<String>,
}

impl Page {
    /// A row's verdict; an explanation goes to `notes`.
    fn verdict(
        &mut self,
        agrees: bool,
        key: (&str, &str, &str),
        notes: &mut Vec<String>,
    ) -> String {
        if agrees {
            return "agrees".into();
        }
        let (table, variant, at) = key;
        let found = |w: &Why| w.table == table && w.variant == variant && w.at == at;
        match self.why.iter().position(found) {
            Some(i) => {
                let why = self.why.remove(i).why;
                let n = notes.iter().position(|n| *n == why).unwrap_or_else(|| {
                    notes.push(why);
                    notes.len() - 1
                });
                format!("differs ({})", n + 1)
            }
            None => {
                self.faults.push(format!("{table} {variant} {at}: differs and nobody says why"));
                "differs".into()
            }
        }
    }

    fn notes(&mut self, notes: &[String]) {
        for (i, why) in notes.iter().enumerate() {
            let _ = writeln!(self.out, "\n({}) {why}", i + 1);
        }
        self.out.push('\n');
    }

    fn one_flow(&mut self, folder: &Path, rows: &[OneFlow], jobs: usize) -> Result<(), String> {
        self.out.push_str(
            "### One flow, nothing random\n\n\
             10 Mbit/s 0.2 ms, then 1.5 Mbit/s 20 ms, 30 s \
             ([n1.toml](../experiments/ns2/n1.toml)). Goodput must agree within 2%. Windows and \
             queues (packets waiting) from 10 s to 30 s, sampled every millisecond, as least – most \
             (mean); `limit` L is L − 1 packets waiting.\n\n\
             | limit | ns-2 | ours | goodput ns-2 | ours | difference | cwnd ns-2 | ours | queue ns-2 | ours | drops | retransmitted | |\n\
             |---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        );
        let samples = parallel(rows.len(), jobs, |i| {
            let room = format!("{}p", rows[i].limit - 1);
            let plan = plan(folder, "n1.toml", "link.bottleneck.queue", &room)?;
            Sample::take(&plan, variant(&plan, &rows[i].ours)?, plan.scenario.seed)
        })?;
        let mut notes = Vec::new();
        for (r, s) in rows.iter().zip(&samples) {
            let mbps = s.measure(None, "goodput_bps") / 1e6 + first_packet(30.0) * 1.5;
            let off = mbps / r.goodput_mbps - 1.0;
            let limit = r.limit.to_string();
            let verdict = self.verdict(off.abs() <= 0.02, ("n1", &r.variant, &limit), &mut notes);
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

    fn lossy(&mut self, folder: &Path, rows: &[Lossy], jobs: usize) -> Result<(), String> {
        self.out.push_str(
            "### One flow, random loss\n\n\
             10 Mbit/s 0.1 ms, then 1.5 Mbit/s 80 ms, 29 packets waiting at most, 200 s; each data \
             packet is lost with probability p after transmission \
             ([n2.toml](../experiments/ns2/n2.toml)). Goodput over capacity, mean ± half-width of the \
             95% interval; means must agree within their joint interval or within 5%.\n\n\
             | p | ns-2 | ours | ns-2 | ours | difference | joint interval | timeouts | retransmitted | |\n\
             |---|---|---|---|---|---|---|---|---|---|\n",
        );
        let plans: Vec<Plan> = (rows.iter())
            .map(|r| plan(folder, "n2.toml", "link.bottleneck.loss", &r.p))
            .collect::<Result<_, _>>()?;
        // Every row has as many seeds as its plan; nothing is random without loss.
        let seeds = |i: usize| if rows[i].p == "0" { 1 } else { plans[i].scenario.seeds as usize };
        let tasks: Vec<(usize, u64)> =
            (0..rows.len()).flat_map(|i| (0..seeds(i)).map(move |s| (i, s as u64))).collect();
        let taken = parallel(tasks.len(), jobs, |t| {
            let (i, seed) = tasks[t];
            let s = Sample::take(
                &plans[i],
                variant(&plans[i], &rows[i].ours)?,
                plans[i].scenario.seed + seed,
            )?;
            let goodput = s.measure(None, "goodput_bps") / 1.5e6 + first_packet(200.0);
            Ok([goodput, s.measure(None, "timeouts"), s.measure(None, "retransmissions")])
        })?;
        let mut notes = Vec::new();
        for (i, r) in rows.iter().enumerate() {
            let of = |k: usize| {
                let mine = tasks.iter().zip(&taken).filter(|(t, _)| t.0 == i);
                estimate(mine.map(|(_, x)| x[k]))
            };
            let [ours, timeouts, again] = [0, 1, 2].map(of);
            let half =
                student_t975(r.seeds.saturating_sub(1) as usize) * r.sd / f64::from(r.seeds).sqrt();
            let theirs = Estimate { mean: r.goodput, ci95: (r.seeds > 1).then_some(half) };
            let joint = half.hypot(ours.ci95.unwrap_or(0.0));
            let gap = ours.mean - r.goodput;
            let agrees = match r.seeds {
                1 => gap.abs() <= 0.02 * r.goodput,
                _ => gap.abs() <= joint || gap.abs() <= 0.05 * r.goodput,
            };
            let verdict = self.verdict(agrees, ("n2", &r.variant, &r.p), &mut notes);
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

    fn dumbbells(&mut self, rows: &[Dumbbell], jobs: usize) -> Result<(), String> {
        self.out.push_str(
            "### Dumbbells\n\n\
             N SACK flows over 10 ms with a buffer of one BDP, access links of 1 Gbit/s and 1 ms, flow i \
             starts at i/N seconds. Packets delivered in order must agree within 2%. Counts as ns-2 / \
             ours.\n\n\
             | case | flows | link | time | delivered | difference | sent | retransmitted | |\n\
             |---|---|---|---|---|---|---|---|---|\n",
        );
        let results = parallel(rows.len(), jobs, |i| {
            let r = &rows[i];
            let network = dumbbell(r.flows, r.mbps, r.seconds, "sack")?;
            let result = narrows_sim::run(&network, &mut |_| true).map_err(|e| e.to_string())?;
            let flows = &result.groups[0].flows;
            let sum = |f: fn(&narrows_sim::FlowResult) -> u64| flows.iter().map(f).sum::<u64>();
            // ns-2 counts what its senders have seen acknowledged.
            Ok([sum(|f| f.acknowledged), sum(|f| f.sent_packets), sum(|f| f.retransmissions)])
        })?;
        let mut notes = Vec::new();
        for (r, [delivered, sent, again]) in rows.iter().zip(results) {
            let off = delivered as f64 / r.delivered as f64 - 1.0;
            let verdict =
                self.verdict(off.abs() <= 0.02, ("dumbbell", "Sack1", &r.name), &mut notes);
            let _ = writeln!(
                self.out,
                "| {} | {} | {} Mbit/s | {} s | {} / {delivered} | {:+.2}% | {} / {sent} | {} / {again} | {verdict} |",
                r.name,
                r.flows,
                r.mbps,
                r.seconds,
                r.delivered,
                100.0 * off,
                r.sent,
                r.retransmitted,
            );
        }
        self.notes(&notes);
        Ok(())
    }
}

/// ns-2 counts packet 0, the SYN's stand-in, as one packet of goodput: its share of 1.5 Mbit/s.
fn first_packet(seconds: f64) -> f64 {
    8000.0 / seconds / 1.5e6
}

fn plan(folder: &Path, file: &str, key: &str, value: &str) -> Result<Plan, String> {
    let path = folder.join(file);
    let say = |e: String| format!("{}: {e}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|e| say(e.to_string()))?;
    let text = set(&text, key, value).map_err(say)?;
    let scenario = scenario_file::parse(&text, folder).map_err(|e| say(e.to_string()))?;
    Plan::new(scenario).map_err(|e| say(e.to_string()))
}

fn variant(plan: &Plan, protocol: &str) -> Result<usize, String> {
    let found = plan.scenario.protocols.iter().position(|p| p.to_string() == protocol);
    found.ok_or_else(|| format!("the scenario has no protocol '{protocol}'"))
}

fn stat(s: &Sample, table: &str, column: &str, stat: Stat, from: f64) -> f64 {
    let found = s.series.iter().find(|t| t.name == table);
    let Some((table, values)) = found.and_then(|t| Some((t, t.column(column)?))) else {
        return f64::NAN;
    };
    let first = table.time_s.iter().position(|t| *t >= from - 1e-9).unwrap_or(0);
    stat.of(&table.time_s[first..], &values[first..], 0.0)
}

fn span([least, most, mean]: &[f64; 3]) -> String {
    format!("{} – {} ({})", digits(*least), digits(*most), digits(*mean))
}

fn share(x: Estimate) -> String {
    x.ci95.map_or_else(|| format!("{:.4}", x.mean), |half| format!("{:.4} ± {half:.4}", x.mean))
}
