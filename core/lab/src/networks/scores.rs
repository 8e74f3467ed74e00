//! The rows of the table: which figure of which items, and the statistic of it.

pub(super) mod brief;

use super::item::{BenchNetwork, BenchPart};
use super::measure::Figures;
use super::statistics::{IntervalValue, Statistic};
use std::collections::{BTreeMap, BTreeSet};

/// Figures by item, then by protocol.
pub type Results = BTreeMap<String, BTreeMap<String, Figures>>;

/// Replaces the protocol under test in a mix. A protocol passes if it does no more harm and gets no less.
pub(super) const MIX_RIVAL: &str = "cubic";
/// With which transfers are compared.
pub(super) const TRANSFER_RIVALS: [&str; 2] = ["cubic", "rrtp+bbr"];
/// With which recorded links are compared.
pub(super) const TRACE_RIVAL: &str = "bbr";
/// A network counts as missed if the score is below this share of the best controller's.
const OF_BEST: f64 = 0.7;
/// In a mix, of the smaller of an equal share and the rate beside or of [`MIX_RIVAL`].
const KEPT: f64 = 0.8;

type Of = Box<dyn Fn(&BTreeMap<String, Figures>, &str) -> f64>;

/// A row of the table.
pub struct Score {
    /// Its title, with the unit.
    pub label: String,
    /// Keys of the networks that count.
    pub keys: Vec<String>,
    of: Of,
    /// The statistic over these networks.
    pub statistic: Statistic,
    /// Digits after the point.
    pub digits: usize,
}

impl Score {
    /// Values of a protocol, one for each item; NaN for a missing one.
    pub fn values(&self, results: &Results, protocol: &str) -> Vec<f64> {
        let one = |key: &String| results.get(key).map_or(f64::NAN, |r| (self.of)(r, protocol));
        self.keys.iter().map(one).collect()
    }

    /// The statistic of a protocol's values.
    pub fn estimate(&self, results: &Results, protocol: &str) -> IntervalValue {
        self.statistic.estimate(&self.values(results, protocol))
    }
}

fn figure(of_item: &BTreeMap<String, Figures>, protocol: &str, name: &str) -> f64 {
    of_item.get(protocol).and_then(|f| f.get(name)).copied().unwrap_or(f64::NAN)
}

fn plain(name: &'static str) -> Of {
    Box::new(move |r, p| figure(r, p, name))
}

fn over(name: &'static str, rival: &'static str) -> Of {
    Box::new(move |r, p| figure(r, p, name) / figure(r, rival, name))
}

/// All rows of a part, those of its classes included.
pub fn of(part: BenchPart, items: &[BenchNetwork]) -> Vec<Score> {
    let items: Vec<&BenchNetwork> = items.iter().filter(|i| i.part == part).collect();
    if items.is_empty() {
        return Vec::new();
    }
    match part {
        BenchPart::Networks | BenchPart::Access | BenchPart::Routes => networks(&items),
        BenchPart::Mixes => mixes(&items),
        BenchPart::Pairs => pairs(&items),
        BenchPart::Transfers | BenchPart::AccessTransfers => transfers(&items),
        BenchPart::Traces => traces(&items),
        BenchPart::Named => named(&items),
    }
}

fn score(
    label: impl Into<String>,
    items: &[&BenchNetwork],
    of: Of,
    statistic: Statistic,
    digits: usize,
) -> Score {
    let keys = items.iter().map(|i| i.key()).collect();
    Score { label: label.into(), keys, of, statistic, digits }
}

fn classes(items: &[&BenchNetwork]) -> BTreeSet<&'static str> {
    items.iter().flat_map(|i| i.classes.iter().copied()).collect()
}

fn of_class<'a>(items: &[&'a BenchNetwork], class: &str) -> Vec<&'a BenchNetwork> {
    items.iter().copied().filter(|i| i.classes.contains(&class)).collect()
}

/// Goodput over the largest of all protocols on the same network.
fn over_best(of_item: &BTreeMap<String, Figures>, protocol: &str) -> f64 {
    let best = of_item.values().filter_map(|f| f.get("goodput")).fold(0.0f64, |m, x| m.max(*x));
    figure(of_item, protocol, "goodput") / best
}

fn networks(items: &[&BenchNetwork]) -> Vec<Score> {
    let goodput = || plain("goodput");
    let best: Of = Box::new(over_best);
    let mut rows = vec![
        score("goodput / capacity, mean", items, goodput(), Statistic::Mean, 3),
        score("goodput / capacity, p10", items, goodput(), Statistic::Quantile(0.1), 3),
        score("goodput / capacity, worst", items, goodput(), Statistic::Least, 3),
        score("below .7 of the best, networks", items, best, Statistic::CountBelow(OF_BEST), 0),
        score("mean queue, ms, median", items, plain("queue ms"), Statistic::Quantile(0.5), 2),
        score("mean queue, ms, p95", items, plain("queue ms"), Statistic::Quantile(0.95), 1),
        score(
            "RTT p95 - least, ms, median",
            items,
            plain("late p95 ms"),
            Statistic::Quantile(0.5),
            1,
        ),
        score("dropped by the queue, mean", items, plain("dropped"), Statistic::Mean, 4),
        score("ln goodput - ½ ln(RTT/least), mean", items, plain("power"), Statistic::Mean, 3),
    ];
    for class in classes(items) {
        let of = of_class(items, class);
        rows.push(score(format!("goodput: {class}"), &of, goodput(), Statistic::Mean, 3));
    }
    rows
}

/// 1 if a mix passes: both sides have a mean rate of [`KEPT`] times the smaller of an equal share and the side's rate
/// with [`MIX_RIVAL`] in place of the protocol, and no more flows of a side starve.
fn does_no_more_harm(of_item: &BTreeMap<String, Figures>, protocol: &str) -> f64 {
    let now = |name: &str| figure(of_item, protocol, name);
    let with_rival = |name: &str| figure(of_item, MIX_RIVAL, name);
    let keeps = |side: &str| now(side) >= KEPT * with_rival(side).min(with_rival("equal Mbit/s"));
    let starves_no_more = |side: &str| now(side) <= with_rival(side);
    let passes = keeps("others Mbit/s")
        && keeps("own Mbit/s")
        && starves_no_more("starved")
        && starves_no_more("own starved");
    if now("own Mbit/s").is_nan() { f64::NAN } else { f64::from(u8::from(passes)) }
}

fn mixes(items: &[&BenchNetwork]) -> Vec<Score> {
    let (own, others): (Vec<&BenchNetwork>, Vec<&BenchNetwork>) =
        items.iter().copied().partition(|i| i.beside_itself());
    let passes = || -> Of { Box::new(does_no_more_harm) };
    let kept = || over("others Mbit/s", MIX_RIVAL);
    let queue = |name: &str, items: &[&BenchNetwork]| {
        score(name, items, plain("queue ms"), Statistic::Quantile(0.5), 1)
    };
    let mut rows = vec![
        score("no more harm than CUBIC", items, passes(), Statistic::Mean, 2),
        score("their starved flows", &others, plain("starved"), Statistic::Mean, 3),
        score("own starved flows", &others, plain("own starved"), Statistic::Mean, 3),
        score("their rate / beside CUBIC, p10", &others, kept(), Statistic::Quantile(0.1), 2),
        score("their rate / beside CUBIC, mean", &others, kept(), Statistic::GeometricMean, 2),
        score("capacity used", &others, plain("used"), Statistic::Mean, 3),
        queue("mean queue, ms, median", &others),
        score("beside itself: Jain, p10", &own, plain("jain"), Statistic::Quantile(0.1), 2),
        score("beside itself: Jain, mean", &own, plain("jain"), Statistic::Mean, 3),
        score("beside itself: capacity used", &own, plain("used"), Statistic::Mean, 3),
        queue("beside itself: mean queue, ms, median", &own),
    ];
    for class in classes(items) {
        let of = of_class(items, class);
        rows.push(score(format!("no more harm: {class}"), &of, passes(), Statistic::Mean, 2));
    }
    rows
}

/// Without those of one flow alone.
fn pairs(items: &[&BenchNetwork]) -> Vec<Score> {
    let pairs: Vec<&BenchNetwork> =
        items.iter().copied().filter(|i| i.neighbours.is_some()).collect();
    vec![
        score("share beside another, mean", &pairs, Box::new(pair_share), Statistic::Mean, 3),
        score("others that starve", &pairs, plain("starved"), Statistic::Mean, 3),
        score("own flows that starve", &pairs, plain("own starved"), Statistic::Mean, 3),
    ]
}

/// Own part of the goodput of a pair.
fn pair_share(of_item: &BTreeMap<String, Figures>, protocol: &str) -> f64 {
    let own = figure(of_item, protocol, "own Mbit/s");
    own / (own + figure(of_item, protocol, "others Mbit/s"))
}

fn transfers(items: &[&BenchNetwork]) -> Vec<Score> {
    let mut rows = Vec::new();
    for rival in TRANSFER_RIVALS {
        for (size, _) in super::draw::SIZES {
            let of = of_class(items, size);
            let label = format!("{size}: time / {rival}'s");
            rows.push(score(label, &of, over("completion ms", rival), Statistic::GeometricMean, 2));
        }
    }
    rows.push(score("not done, share", items, plain("not done"), Statistic::Mean, 3));
    for class in classes(items) {
        let of = of_class(items, class);
        let sizes = super::draw::SIZES.iter().any(|s| s.0 == class);
        if !sizes {
            let label = format!("time / cubic's: {class}");
            rows.push(score(
                label,
                &of,
                over("completion ms", "cubic"),
                Statistic::GeometricMean,
                2,
            ));
        }
    }
    rows
}

fn traces(all: &[&BenchNetwork]) -> Vec<Score> {
    let items = &of_class(all, "recorded")[..];
    let mut rows = vec![
        score("goodput / capacity, mean", items, plain("goodput"), Statistic::Mean, 3),
        score(
            "RTT / bbr's, geometric mean",
            items,
            over("rtt ms", TRACE_RIVAL),
            Statistic::GeometricMean,
            2,
        ),
        score("RTT, ms, mean", items, plain("rtt ms"), Statistic::Mean, 0),
        score("RTT p95, ms, mean", items, plain("rtt p95 ms"), Statistic::Mean, 0),
    ];
    for item in all {
        let label = |what: &str| format!("{what}: {}", item.name);
        rows.push(score(label("goodput"), &[item], plain("goodput"), Statistic::Mean, 3));
        rows.push(score(label("RTT, ms"), &[item], plain("rtt ms"), Statistic::Mean, 0));
    }
    rows
}

fn named(items: &[&BenchNetwork]) -> Vec<Score> {
    let mut rows = Vec::new();
    for item in items {
        let row = |label: &str, of| {
            score(format!("{}: {label}", item.name), &[item], of, Statistic::Mean, 3)
        };
        rows.push(row("median goodput", plain("goodput")));
        rows.push(row("worst goodput", plain("worst goodput")));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates of both sides, and their starved flows, over an equal share of 1 Mbit/s.
    fn of(own: f64, others: f64, starved: f64) -> Figures {
        let figures = [
            ("equal Mbit/s", 1.0),
            ("own Mbit/s", own),
            ("others Mbit/s", others),
            ("starved", starved),
            ("own starved", 0.0),
        ];
        figures.map(|(name, value)| (name.to_string(), value)).into()
    }

    #[test]
    fn mix_passes_if_neither_side_is_worse_than_with_cubic() {
        let with_cubic = of(1.5, 0.5, 0.0);
        for (figures, expected) in [
            (with_cubic.clone(), 1.0),
            // The neighbours keep .8 of their rate beside CUBIC.
            (of(1.6, 0.4, 0.0), 1.0),
            (of(1.61, 0.39, 0.0), 0.0),
            // An equal share is enough.
            (of(0.8, 1.2, 0.0), 1.0),
            (of(0.79, 1.21, 0.0), 0.0),
            (of(1.5, 0.5, 0.25), 0.0),
        ] {
            let item = [("cubic".into(), with_cubic.clone()), ("x".into(), figures)].into();
            assert_eq!(does_no_more_harm(&item, "x"), expected, "{item:?}");
        }
        assert!(does_no_more_harm(&BTreeMap::new(), "x").is_nan());
    }
}
