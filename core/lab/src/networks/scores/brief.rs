//! The rows of a scorecard.

use super::{
    BenchNetwork, MIX_RIVAL, OF_BEST, Of, Score, classes, does_no_more_harm, of_class, over,
    over_best, plain, score,
};
use crate::networks::statistics::Statistic;

/// Networks with one flow.
pub fn networks(items: &[&BenchNetwork]) -> Vec<Score> {
    let goodput = || -> Of { Box::new(over_best) };
    let is_missed: Of = Box::new(|r, p| match over_best(r, p) {
        x if x.is_nan() => x,
        x => f64::from(u8::from(x < OF_BEST)),
    });
    vec![
        score("goodput / best, mean", items, goodput(), Statistic::Mean, 2),
        score("goodput / best, p10", items, goodput(), Statistic::Quantile(0.1), 2),
        score("share below 0.7 of best", items, is_missed, Statistic::Mean, 2),
        queue(items),
    ]
}

/// Goodput over the best's, a row for each class.
pub fn by_class(items: &[&BenchNetwork]) -> Vec<Score> {
    let row =
        |class| score(class, &of_class(items, class), Box::new(over_best), Statistic::Mean, 2);
    classes(items).into_iter().map(row).collect()
}

/// Mixes, also those with the same protocol.
pub fn mixes(items: &[&BenchNetwork]) -> Vec<Score> {
    let harm: Of = Box::new(does_no_more_harm);
    vec![score("no more harm than CUBIC", items, harm, Statistic::Mean, 2), queue(items)]
}

/// Mixes with other protocols.
pub fn beside_others(items: &[&BenchNetwork]) -> Vec<Score> {
    let kept = over("others Mbit/s", MIX_RIVAL);
    vec![
        score("others' rate / with CUBIC", items, kept, Statistic::GeometricMean, 2),
        score("others' starved flows", items, plain("starved"), Statistic::Mean, 2),
    ]
}

/// Mixes with the same protocol.
pub fn beside_itself(items: &[&BenchNetwork]) -> Vec<Score> {
    vec![
        score("Jain's index, mean", items, plain("jain"), Statistic::Mean, 2),
        score("capacity used", items, plain("used"), Statistic::Mean, 2),
    ]
}

fn queue(items: &[&BenchNetwork]) -> Score {
    score("mean queue, ms, median", items, plain("queue ms"), Statistic::Quantile(0.5), 1)
}
