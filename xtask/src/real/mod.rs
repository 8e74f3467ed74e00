//! The harness of measurements in real time (`sim_vs_real`, `bench transport`): links by variants by
//! seeds, one run after another, and a file from which a killed measurement continues.

pub mod ask;
pub mod ledger;
pub mod senders;

use ask::{MeasureOptions, RepeatMode};
use ledger::{Figures, Ledger, LedgerKey, LedgerRow};
use narrows_lab::stats::quantile;
use std::collections::BTreeMap;

/// Largest mean lateness of a relay, s. Above it, a run is repeated.
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

/// The chosen links with these variants, seed by seed, so that load on the machine affects all alike.
pub fn wanted(ask: &MeasureOptions, links: &[MeasuredLink], protocols: &[&str]) -> Vec<LedgerKey> {
    let mut wanted = Vec::new();
    for seed in 1..=ask.runs {
        for link in links.iter().filter(|l| ask.link(l.name)) {
            for protocol in protocols {
                let protocol = (*protocol).into();
                let seconds = link.seconds * ask.shorter;
                wanted.push(LedgerKey { protocol, link: link.name.into(), seed, seconds });
            }
        }
    }
    wanted
}

/// Measures the wanted runs that are not yet in the ledger, one after another; a run whose relay was late is repeated
/// once. Returns all rows of the ledger, the better of two attempts each, and the first error.
pub fn measure(
    ask: &MeasureOptions,
    file: &str,
    wanted: &[LedgerKey],
    run: impl Fn(&LedgerKey) -> Result<Ran, String>,
) -> Result<(Vec<LedgerRow>, Option<String>), String> {
    let mut ledger = Ledger::open(file, ask)?;
    let mut rows = ledger.rows();
    let is_missing = |key: &&LedgerKey| {
        ask.mode == RepeatMode::Again || !rows.iter().any(|row: &LedgerRow| row.key == **key)
    };
    let missing: Vec<&LedgerKey> = wanted.iter().filter(is_missing).collect();
    let mut left_s: f64 = missing.iter().map(|key| key.seconds + AROUND_S).sum();
    eprintln!("{} runs; each is kept in {}", missing.len(), ledger.path().display());
    let mut fault = None;
    for key in missing {
        let name = format!("{} on {} seed {}", key.protocol, key.link, key.seed);
        eprintln!("{name} ({:.0} minutes left)", (left_s / 60.0).ceil());
        left_s -= key.seconds + AROUND_S;
        for attempt in [1, 2] {
            let kept = run(key).and_then(|ran| {
                eprintln!("{}, late by {:.3} ms on average", ran.line, ran.late_mean_s * 1e3);
                ledger.add(key, attempt, ran.late_mean_s, &ran.figures)
            });
            match kept {
                Ok(row) => {
                    let is_late = row.late_mean_s > LATE_S;
                    ledger::join(&mut rows, row);
                    if is_late {
                        continue;
                    }
                }
                Err(why) => {
                    eprintln!("{why}");
                    fault.get_or_insert(format!("{name}: {why}"));
                }
            }
            break;
        }
    }
    Ok((bests(rows), fault))
}

/// The attempt of each run with the smallest lateness of the relay.
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
    link: &str,
    protocol: &str,
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
