//! Measurements in real time, shared by `sim_vs_real`, `bench transport` and `bench hysteria`: options, several runs at
//! once within a budget, and a file from which a killed measurement continues.

pub mod ask;
#[cfg(target_os = "linux")]
pub mod kernel_tcp;
pub mod ledger;
pub mod relayed;
pub mod schedule;
mod watch;

use ask::{MeasureOptions, RepeatMode};
use ledger::{Figures, Ledger, LedgerKey, LedgerRow};
use schedule::ScheduledRun;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use watch::MeasurementBar;

/// Largest mean lateness of a relay, s. Above it, a run is repeated without other runs beside it.
pub const LATE_S: f64 = 0.25e-3;
/// Time of a run besides its transfer, s: processes, keys, the end.
const AROUND_S: f64 = 1.0;

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
        let jobs: Vec<ScheduledRun> = (0..wanted.len())
            .filter_map(|n| Some((n, wanted.get(n)?)))
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
        let watch = MeasurementBar::begin(&jobs, ask.budget_bps, attempt, ledger.path());
        let begun = Instant::now();
        let prepared = prepare_all(&jobs, wanted, &prepare);
        if begun.elapsed().as_secs_f64() > 1.0 {
            watch.say(&format!("prepared in {:.0} s", begun.elapsed().as_secs_f64()));
        }
        schedule::run(
            &jobs,
            ask.budget_bps,
            |job| match (wanted.get(job.number), prepared.get(&job.number)) {
                (Some(w), Some(Ok(p))) => run(&w.key, p),
                (_, Some(Err(why))) => Err(why.clone()),
                _ => Err("was not prepared".into()),
            },
            |job, result| {
                watch.ended(job);
                let Some(w) = wanted.get(job.number) else { return };
                match result {
                    Ok(ran) => {
                        watch.say(&format!(
                            "{} on {} seed {}: {}, late by {:.3} ms on average",
                            w.key.protocol,
                            w.key.link,
                            w.key.seed,
                            ran.line,
                            ran.late_mean_s * 1e3
                        ));
                        match ledger.add(&w.key, attempt, ran.late_mean_s, &ran.figures) {
                            Ok(row) => ledger::join(&mut rows, row),
                            Err(why) => fault = fault.take().or(Some(why)),
                        }
                    }
                    Err(why) => {
                        let k = &w.key;
                        let why = format!("{} on {} seed {}: {why}", k.protocol, k.link, k.seed);
                        watch.say(&why);
                        fault = fault.take().or(Some(why));
                    }
                }
            },
            |running| watch.tick(running),
        );
        watch.end();
    }
    Ok((bests(rows), fault))
}

/// On all cores, by the jobs' numbers.
fn prepare_all<P: Send>(
    jobs: &[ScheduledRun],
    wanted: &[Measurement],
    prepare: &(impl Fn(&LedgerKey) -> Result<P, String> + Sync),
) -> BTreeMap<usize, Result<P, String>> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Some(w) = wanted.get(job.number) else { continue };
                    let result = prepare(&w.key);
                    done.lock().unwrap_or_else(PoisonError::into_inner).insert(job.number, result);
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
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
    let at = |i: usize| v.get(i).copied().unwrap_or(f64::NAN);
    let last = v.len().saturating_sub(1);
    ((at(last / 2) + at(v.len() / 2)) / 2.0, at(0), at(last))
}

/// The machine's load over the last minute.
pub fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|w| w.parse().ok()).unwrap_or(f64::NAN)
}
