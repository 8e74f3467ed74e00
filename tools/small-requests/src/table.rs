//! The table: medians over turns, and ratios to quinn in the same turn.

use crate::rows::{Cost, ROWS};
use std::collections::BTreeMap;

const SENDERS: [&str; 3] = ["quinn", "rrtp", "rrtp-thread"];

/// Costs by row and sender, in the order of turns.
pub fn print(costs: &BTreeMap<(&str, &str), Vec<Cost>>) {
    println!("| operation | sender | CPU µs | ratio | latency µs | ratio | switches | datagrams |");
    println!("|---|---|---|---|---|---|---|---|");
    for (row, _) in ROWS {
        for sender in SENDERS {
            let (Some(mine), Some(quinn)) = (costs.get(&(row, sender)), costs.get(&(row, "quinn")))
            else {
                continue;
            };
            let of = |figure: fn(&Cost) -> f64| {
                (
                    median(mine.iter().map(figure)),
                    ratio(mine.iter().map(figure), quinn.iter().map(figure)),
                )
            };
            let (cpu, cpu_ratio) = of(|c| c.cpu_us);
            let (latency, latency_ratio) = of(|c| c.latency_us);
            let switches = median(mine.iter().map(|c| c.switches));
            let datagrams = median(mine.iter().map(|c| c.datagrams));
            println!(
                "| {row} | {sender} | {cpu:.1} | {cpu_ratio} | {latency:.0} | {latency_ratio} | {switches:.2} | {datagrams:.2} |"
            );
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The geometric mean of the ratios in each turn, within two standard errors.
fn ratio(mine: impl Iterator<Item = f64>, quinn: impl Iterator<Item = f64>) -> String {
    let logs: Vec<f64> = mine.zip(quinn).map(|(a, b)| (a / b).ln()).collect();
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let variance = logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let error = 2.0 * (variance / count).sqrt();
    format!("{:.2} ({:.2} to {:.2})", mean.exp(), (mean - error).exp(), (mean + error).exp())
}
