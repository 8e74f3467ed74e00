//! The tables of variants: the difference of each score from rrtp's, with its interval.

use super::item::{BenchNetwork, BenchPart};
use super::mechanisms::MECHANISMS;
use super::scores::{self, Results, Score};
use super::statistics::{IntervalValue, Statistic, paired};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The controller from which the variants differ.
pub const REFERENCE: &str = "rrtp";
/// Differences up to this part of the reference do not count, nor up to this in a share.
const LEAST: f64 = 0.01;
/// Half intervals from which a class of networks is named, and its least number of items.
const CLEAR: f64 = 2.0;
const CLASS: usize = 8;
const MINUS: &str = "−";

/// Part and label of the score, heading, whether larger is better, and whether it is a share.
const COLUMNS: [(BenchPart, &str, &str, bool, bool); 8] = [
    (BenchPart::Networks, "goodput / capacity, mean", "goodput", true, true),
    (BenchPart::Networks, "goodput / capacity, p10", "its p10", true, true),
    (BenchPart::Networks, "mean queue, ms, median", "queue, ms", false, false),
    (BenchPart::Mixes, "no more harm than CUBIC", "harmless", true, true),
    (BenchPart::Mixes, "their starved flows", "starved", false, true),
    (BenchPart::Mixes, "beside itself: Jain, mean", "Jain", true, true),
    (BenchPart::Mixes, "capacity used", "used", true, true),
    (BenchPart::Transfers, "", "time", false, false),
];

/// The rows of all parts.
pub struct Scores {
    columns: Vec<Option<Score>>,
    classes: Vec<Score>,
}

impl Scores {
    pub fn of(items: &[BenchNetwork]) -> Scores {
        let mut all: Vec<(BenchPart, Score)> = Vec::new();
        for part in [BenchPart::Networks, BenchPart::Mixes] {
            all.extend(scores::of(part, items).into_iter().map(|score| (part, score)));
        }
        let mut column = |part: BenchPart, label: &str| {
            if part == BenchPart::Transfers {
                return scores::all_transfers(items);
            }
            let at = all.iter().position(|(p, s)| *p == part && s.label == label)?;
            Some(all.remove(at).1)
        };
        let columns = COLUMNS.iter().map(|c| column(c.0, c.1)).collect();
        let is_class =
            |s: &Score| s.label.starts_with("goodput: ") || s.label.starts_with("no more harm: ");
        let classes = all.into_iter().map(|(_, s)| s).filter(is_class).collect();
        Scores { columns, classes }
    }

    fn differences(&self, results: &Results, label: &str) -> Vec<(IntervalValue, f64)> {
        let one = |score: &Option<Score>| {
            let Some(score) = score else {
                return (IntervalValue { value: f64::NAN, half: f64::NAN }, f64::NAN);
            };
            let before = score.values(results, REFERENCE);
            let value = score.statistic.estimate(&before).value;
            (paired(score.statistic, &score.values(results, label), &before), value)
        };
        self.columns.iter().map(one).collect()
    }

    /// The class with the clearest difference.
    fn clearest(&self, results: &Results, label: &str) -> String {
        let classes = self.classes.iter().filter_map(|score| {
            let (after, before) = (score.values(results, label), score.values(results, REFERENCE));
            let known = after.iter().zip(&before).filter(|(a, b)| (*a - *b).is_finite()).count();
            (known >= CLASS).then(|| (score, paired(score.statistic, &after, &before)))
        });
        let values: Vec<(&Score, IntervalValue)> = classes.collect();
        let clear = |v: &IntervalValue| if v.half > 0.0 { v.value.abs() / v.half } else { 0.0 };
        let most = values.iter().max_by(|a, b| clear(&a.1).total_cmp(&clear(&b.1)));
        match most {
            Some((score, v)) if clear(v) >= CLEAR => format!("{} {}", score.label, signed(*v, 2)),
            _ => "-".into(),
        }
    }
}

/// 1 if the difference is an improvement, -1 if it is a loss, 0 if it does not count.
fn judged(column: usize, (difference, reference): (IntervalValue, f64)) -> i32 {
    let (.., larger, share) = COLUMNS[column];
    let least = if share { LEAST } else { LEAST * reference.abs() };
    let IntervalValue { value, half } = difference;
    if value.is_nan() || half.is_nan() || value.abs() <= half.max(least) {
        return 0;
    }
    if (value > 0.0) == larger { 1 } else { -1 }
}

fn signed(v: IntervalValue, digits: usize) -> String {
    if v.value.is_nan() {
        return "-".into();
    }
    format!("{:+.digits$} ± {:.digits$}", v.value, v.half).replace('-', MINUS)
}

fn digits(column: usize) -> usize {
    if COLUMNS[column].2 == "queue, ms" { 2 } else { 3 }
}

/// A difference; bold if it is a loss, italic if it is an improvement.
fn cell(column: usize, d: (IntervalValue, f64)) -> String {
    let text = signed(d.0, digits(column));
    match judged(column, d) {
        -1 => format!("**{text}**"),
        1 => format!("*{text}*"),
        _ => text,
    }
}

/// Values of the reference, a cell for each column.
fn reference(scores: &Scores, results: &Results) -> String {
    let one = |(i, score): (usize, &Option<Score>)| match score {
        Some(score) => {
            let value = score.statistic.estimate(&score.values(results, REFERENCE)).value;
            format!(" {value:.*} |", digits(i))
        }
        None => " - |".into(),
    };
    scores.columns.iter().enumerate().map(one).collect()
}

/// The labels of all variants that have figures.
fn labels(results: &Results) -> BTreeSet<&str> {
    let of_item = results.values().flatten().filter(|(_, figures)| !figures.is_empty());
    of_item.map(|(label, _)| label.as_str()).collect()
}

/// The tables of mechanisms and of random constants.
pub fn mechanisms(items: &[BenchNetwork], results: &Results) -> String {
    let (scores, labels) = (Scores::of(items), labels(results));
    let headings: String = COLUMNS.iter().map(|c| format!(" {} |", c.2)).collect();
    let lines = "---|".repeat(COLUMNS.len());
    let cells = |label: &str| -> String {
        let differences = scores.differences(results, label);
        (differences.iter().enumerate()).map(|(i, d)| format!(" {} |", cell(i, *d))).collect()
    };
    let reference = reference(&scores, results);
    let (mut rows, mut free) = (String::new(), Vec::new());
    for m in MECHANISMS {
        let label = format!("without {}", m.name);
        if labels.contains(label.as_str()) {
            let differences = scores.differences(results, &label);
            if differences.iter().enumerate().all(|(i, d)| judged(i, *d) >= 0) {
                free.push(m.name);
            }
            let (clearest, cells) = (scores.clearest(results, &label), cells(&label));
            let size = format!("{}, {}", m.constants, m.lines);
            let _ = writeln!(rows, "| {}: {} | {size} |{cells} {clearest} |", m.name, m.does);
        }
    }
    for label in labels.iter().filter(|l| l.starts_with("without ") && l.contains('+')) {
        let (clearest, cells) = (scores.clearest(results, label), cells(label));
        let names = label.trim_start_matches("without ");
        let _ = writeln!(rows, "| {names} | - |{cells} {clearest} |");
    }
    let mut text = String::new();
    if !rows.is_empty() {
        let _ = writeln!(
            text,
            "| without | constants, lines |{headings} clearest class |\n|---|---|{lines}---|\n\
             | *rrtp* | - |{reference} - |\n{rows}\n\
             No score is lower without one of: {}.\n",
            free.join(", ")
        );
    }
    let random: Vec<&&str> = labels.iter().filter(|l| l.starts_with("random ")).collect();
    if !random.is_empty() {
        let _ = writeln!(text, "| draw |{headings}\n|---|{lines}\n| *rrtp* |{reference}");
        for label in &random {
            let _ = writeln!(text, "| {label} |{}", cells(label));
        }
        let all: Vec<_> = random.iter().map(|l| scores.differences(results, l)).collect();
        let mean = |i: usize| {
            let values: Vec<f64> = all.iter().map(|d| d[i].0.value).collect();
            format!(" {} |", signed(Statistic::Mean.estimate(&values), digits(i)))
        };
        let means: String = (0..COLUMNS.len()).map(mean).collect();
        let _ = writeln!(text, "| *mean* |{means}\n");
    }
    text
}

/// A row for each constant: for each factor, the scores that differ.
pub fn constants(items: &[BenchNetwork], results: &Results) -> String {
    let scores = Scores::of(items);
    let mut rows: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for label in labels(results) {
        if let Some((constant, factor)) = label.split_once(" x ") {
            rows.entry(constant).or_default().push((factor, label));
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let mut text = "| constant | factor: scores that differ |\n|---|---|\n".to_string();
    for (constant, factors) in rows {
        let effect = |(factor, label): &(&str, &str)| {
            let differences = scores.differences(results, label);
            let list: Vec<String> = (differences.iter().enumerate())
                .filter(|(i, d)| judged(*i, **d) != 0)
                .map(|(i, d)| format!("{} {}", COLUMNS[i].2, cell(i, *d)))
                .collect();
            let list = if list.is_empty() { "none".into() } else { list.join(", ") };
            format!("× {factor}: {list}")
        };
        let effects: Vec<String> = factors.iter().map(effect).collect();
        let _ = writeln!(text, "| {constant} | {} |", effects.join("; "));
    }
    text + "\n"
}
