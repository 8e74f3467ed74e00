//! The harness of measurements in real time (`sim_vs_real`, `bench transport`): links by variants by
//! seeds, several runs at once within a budget, and a file from which a killed measurement continues.

pub mod ask;
pub mod ledger;
mod schedule;
pub mod senders;

use crate::all_cores;
use ask::{MeasureOptions, RepeatMode};
use ledger::{Figures, Ledger, LedgerKey, LedgerRow};
use narrows_lab::parallel::parallel;
use schedule::ScheduledRun;
use std::collections::BTreeMap;
use std::time::Instant;

/// Largest mean lateness of a relay, s. Above it, a run is repeated without other runs beside it.
pub const LATE_S: f64 = 0.25e-3;
/// Time of a run besides its transfer, s: processes, keys, the end.
const AROUND_S: f64 = 1.0;

/// A link of a measurement: name, specification, rate (bit/s), bytes of a packet, duration (s), and hints as parameters
/// of rrtp.
#[derive(Clone, Copy)]
pub struct MeasuredLink {
    pub name: &'static str,
    pub spec: &'static str,
    pub bps: f64,
    pub packet: u32,
    pub seconds: f64,
    pub hints: &'static str,
}

pub const fn link(
    name: &'static str,
    spec: &'static str,
    bps: f64,
    packet: u32,
    seconds: f64,
    hints: &'static str,
) -> MeasuredLink {
    MeasuredLink { name, spec, bps, packet, seconds, hints }
}

/// Result of a run, with the mean lateness of its relay, s (zero without a relay).
pub struct Ran {
    pub figures: Figures,
    pub late_mean_s: f64,
    /// Text for its line of output.
    pub line: String,
}

/// Something to measure.
#[derive(Clone)]
pub struct Measurement {
    pub key: LedgerKey,
    /// Rate that it takes from the budget, bit/s.
    pub rate_bps: f64,
    /// Whether it must run alone, regardless of the budget.
    pub alone: bool,
}

/// The chosen links with these variants, seed by seed, so that load on the machine affects all alike.
pub fn wanted(
    ask: &MeasureOptions,
    links: &[MeasuredLink],
    protocols: &[&str],
) -> Vec<Measurement> {
    let mut wanted = Vec::new();
    for seed in 1..=ask.runs {
        for link in links.iter().filter(|l| ask.link(l.name)) {
            for protocol in protocols {
                let protocol = (*protocol).into();
                let name = link.name.into();
                let seconds = link.seconds * ask.shorter;
                let key = LedgerKey { protocol, link: name, seed, seconds };
                wanted.push(Measurement { key, rate_bps: link.bps, alone: false });
            }
        }
    }
    wanted
}

/// Measures the wanted runs that are not yet in the ledger: several at once within the budget, and the late ones again,
/// alone, at the end. Preparations without a need for real time are made before. Returns all rows of the ledger, the
/// better of two attempts each, and the first error.
pub fn measure<P: Send + Sync>(
    ask: &MeasureOptions,
    file: &str,
    wanted: &[Measurement],
    prepare: impl Fn(&LedgerKey) -> Result<P, String> + Sync,
    run: impl Fn(&LedgerKey, &P) -> Result<Ran, String> + Sync,
) -> Result<(Vec<LedgerRow>, Option<String>), String> {
    let mut ledger = Ledger::open(file, ask)?;
    let mut rows = ledger.rows();
    let mut fault = None;
    for attempt in [1, 2] {
        let jobs: Vec<ScheduledRun> = (wanted.iter().enumerate())
            .filter(|(_, w)| match best(&rows, &w.key) {
                None => attempt == 1,
                Some(_) if attempt == 1 => ask.mode == RepeatMode::Again,
                // There is no third attempt.
                Some(row) => row.late_mean_s > LATE_S && count(&rows, &w.key) < 2,
            })
            .map(|(number, w)| ScheduledRun {
                number,
                rate_bps: w.rate_bps,
                seconds: w.key.seconds + AROUND_S,
                alone: w.alone || attempt == 2,
            })
            .collect();
        if jobs.is_empty() {
            continue;
        }
        let minutes = |jobs: &[_]| (schedule::plan(jobs, ask.budget_bps).1 / 60.0).ceil();
        eprintln!(
            "{} runs{}; about {:.0} minutes, at most {:.0} Mbit/s of links at once; each is kept in {}",
            jobs.len(),
            if attempt == 1 { "" } else { " again, one by one: the relay was late" },
            minutes(&jobs),
            ask.budget_bps * 1e-6,
            ledger.path().display()
        );
        let begun = Instant::now();
        let prepared: BTreeMap<usize, Result<P, String>> =
            parallel(jobs.len(), all_cores::count(), |i| {
                Ok((jobs[i].number, prepare(&wanted[jobs[i].number].key)))
            })?
            .into_iter()
            .collect();
        if begun.elapsed().as_secs_f64() > 1.0 {
            eprintln!("prepared in {:.0} s", begun.elapsed().as_secs_f64());
        }
        schedule::run(
            &jobs,
            ask.budget_bps,
            |job| {
                run(&wanted[job.number].key, prepared[&job.number].as_ref().map_err(Clone::clone)?)
            },
            |job, result, left| {
                let key = &wanted[job.number].key;
                let kept = result.and_then(|ran| {
                    let row = ledger.add(key, attempt, ran.late_mean_s, &ran.figures)?;
                    ledger::join(&mut rows, row);
                    Ok(format!("{}, late by {:.3} ms on average", ran.line, ran.late_mean_s * 1e3))
                });
                let (Ok(said) | Err(said)) = &kept;
                let said = format!("{} on {} seed {}: {said}", key.protocol, key.link, key.seed);
                eprintln!("{said} ({} runs left, {:.0} min)", left.len(), minutes(left));
                if kept.is_err() {
                    fault.get_or_insert(said);
                }
            },
        );
    }
    Ok((bests(rows), fault))
}

fn count(rows: &[LedgerRow], key: &LedgerKey) -> usize {
    rows.iter().filter(|r| r.key == *key).count()
}

/// The attempt with the smallest lateness of the relay.
fn best(rows: &[LedgerRow], key: &LedgerKey) -> Option<LedgerRow> {
    let mine = rows.iter().filter(|r| r.key == *key);
    mine.min_by(|a, b| a.late_mean_s.total_cmp(&b.late_mean_s)).cloned()
}

fn bests(rows: Vec<LedgerRow>) -> Vec<LedgerRow> {
    let mut kept: BTreeMap<String, LedgerRow> = BTreeMap::new();
    for row in rows {
        let k = &row.key;
        // Seeds in numerical order.
        let key = format!("{} {} {:08} {}", k.link, k.protocol, k.seed, k.seconds);
        match kept.get(&key) {
            Some(before) if before.late_mean_s <= row.late_mean_s => {}
            _ => drop(kept.insert(key, row)),
        }
    }
    kept.into_values().collect()
}

/// The runs of a protocol over a link for that many seconds: all, and those of which the relay was in time.
pub fn runs_of<'a>(
    rows: &'a [LedgerRow],
    (link, protocol): (&str, &str),
    seconds: f64,
) -> (Vec<&'a LedgerRow>, Vec<&'a LedgerRow>) {
    let mine = |r: &&LedgerRow| {
        let k = &r.key;
        k.link == link && k.protocol == protocol && (k.seconds - seconds).abs() < 1e-6
    };
    let all: Vec<&LedgerRow> = rows.iter().filter(mine).collect();
    let in_time = all.iter().copied().filter(|r| r.late_mean_s <= LATE_S).collect();
    (all, in_time)
}

/// Median, least, most; NaN without any.
pub fn spread(values: impl IntoIterator<Item = f64>) -> (f64, f64, f64) {
    let mut v: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
    v.sort_by(f64::total_cmp);
    (quantile(&v, 0.5), quantile(&v, 0.0), quantile(&v, 1.0))
}

/// Of sorted values, interpolated; NaN without any.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = q * last as f64;
    let low = sorted[at.floor() as usize];
    let high = sorted[at.ceil() as usize];
    // Both may be infinite.
    if low == high { low } else { low + (at - at.floor()) * (high - low) }
}

/// The machine's load over the last minute.
pub fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|w| w.parse().ok()).unwrap_or(f64::NAN)
}
