//! Checks the generated pages independently of `judge` and `interval`: the result of each claim must follow from the
//! printed range and the printed interval.

use narrows_experiments::{CheckedClaim, Verdict, page};
use std::fs;
use std::path::{Path, PathBuf};

/// Suffix of a claim about every run: the share of runs is compared with a fixed range.
const EVERY_RUN: &str = " in at least 0.9 of runs";
const ONE_RUN: &str = " in at least one run";
const NOT_EVERY_RUN: &str = " in at most 0.9 of runs";

/// A leading number of a text, followed by a space or the end, and the rest of the text.
fn number(text: &str) -> Option<(f64, &str)> {
    let end = text.find([' ', ')']).unwrap_or(text.len());
    let value = text[..end].parse().ok().filter(|x: &f64| x.is_finite())?;
    Some((value, &text[end..]))
}

/// `A to B`, and the rest of the text.
fn pair(text: &str) -> Option<((f64, f64), &str)> {
    let (low, rest) = number(text)?;
    let (high, rest) = number(rest.strip_prefix(" to ")?)?;
    Some(((low, high), rest))
}

/// The accepted range as printed.
fn accepted(text: &str) -> Option<(f64, f64)> {
    if text.ends_with(EVERY_RUN) {
        return Some((0.9, 1.0));
    }
    // The interval begins at 0 if there is none. One run of a million is above the tolerance of `fault`.
    if text.ends_with(ONE_RUN) {
        return Some((1e-6, 1.0));
    }
    if text.ends_with(NOT_EVERY_RUN) {
        return Some((0.0, 0.9));
    }
    if let Some(rest) = text.strip_prefix("at least ") {
        return Some((number(rest)?.0, f64::INFINITY));
    }
    if let Some(rest) = text.strip_prefix("at most ") {
        return Some((f64::NEG_INFINITY, number(rest)?.0));
    }
    pair(text).map(|p| p.0)
}

/// The measured interval as printed: `V ± W`, `V (LO to HI)`, or `V` alone.
fn interval(text: &str) -> Option<(f64, f64)> {
    let (value, rest) = number(text)?;
    if let Some(rest) = rest.strip_prefix(" ± ") {
        let half = number(rest)?.0;
        return Some((value - half, value + half));
    }
    match rest.strip_prefix(" (") {
        Some(rest) => pair(rest).filter(|p| p.1.starts_with(')')).map(|p| p.0),
        None => Some((value, value)),
    }
}

/// What is wrong with a row, if anything is.
fn fault(row: &CheckedClaim) -> Option<String> {
    let Some((min, max)) = accepted(&row.accepted).filter(|r| r.0 <= r.1) else {
        return Some(format!("'{}' is no range", row.accepted));
    };
    let Some((low, high)) = interval(&row.ours).filter(|r| r.0 <= r.1) else {
        return Some(format!("'{}' is no number with an interval", row.ours));
    };
    // V - W is computed: its last bit may differ from the printed value.
    let slack = 1e-9 * low.abs().max(high.abs());
    let inside = low >= min - slack && high <= max + slack;
    let outside = high < min || low > max;
    let holds = match row.verdict {
        Verdict::Reproduced => inside,
        Verdict::Differs | Verdict::Impossible => outside,
        Verdict::Undecided => !inside && !outside,
        Verdict::Given => !outside,
    };
    let said = !matches!(row.verdict, Verdict::Differs | Verdict::Impossible) || row.why.is_some();
    if holds && said {
        return None;
    }
    let reason = if holds { ", without a reason" } else { "" };
    Some(format!("{} of {} is called {}{reason}", row.ours, row.accepted, row.verdict))
}

fn experiments() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let all = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|folder| folder.join("result.json").exists()).collect()
}

fn rows(folder: &Path) -> Vec<CheckedClaim> {
    serde_json::from_str(&fs::read_to_string(folder.join("result.json")).unwrap()).unwrap()
}

/// A claim is reproduced only if its interval is inside its range, different only if it is outside, and undecided only
/// if it is neither.
#[test]
fn every_published_verdict_follows_from_its_interval() {
    let mut faults = Vec::new();
    let mut seen = 0;
    for folder in experiments() {
        let found = rows(&folder);
        seen += found.len();
        let id = folder.file_name().unwrap().to_string_lossy().into_owned();
        let of = |row: &CheckedClaim| fault(row).map(|f| format!("{id}: {}: {f}", row.claim));
        faults.extend(found.iter().filter_map(of));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(seen > 1000, "only {seen} rows were found");
}

/// The pages show the results that were checked above.
#[test]
fn every_page_shows_the_verdicts_of_its_results() {
    for folder in experiments() {
        let shown = fs::read_to_string(folder.join("README.md")).unwrap();
        let table = page::table(&rows(&folder));
        assert!(shown.contains(&table), "{}: README.md and result.json differ", folder.display());
    }
}

fn row(accepted: &str, ours: &str, verdict: Verdict) -> CheckedClaim {
    CheckedClaim {
        claim: "c".into(),
        stated: "s".into(),
        accepted: accepted.into(),
        ours: ours.into(),
        seeds: 3,
        verdict,
        why: Some("so".into()),
        cause: None,
        shown: None,
        beside: None,
    }
}

/// Self-check: the test must detect false rows.
#[test]
fn false_rows_are_found() {
    use Verdict::{Differs, Given, Impossible, Reproduced, Undecided};
    for (accepted, ours, right) in [
        ("0.9 to 1.1 of the path", "1 ± 0.1 of the path", Reproduced),
        ("0.9 to 1.1", "1 ± 0.11", Undecided),
        ("at least 0.9 times", "0.8 ± 0.09 times", Differs),
        ("at most 2e-3", "0.001 (0.0005 to 0.0021)", Undecided),
        ("-3 to -1 dB", "-2 dB", Reproduced),
        ("0.35 to 0.65 in at least 0.9 of runs", "1 (0.933 to 1) of runs", Reproduced),
        ("0.35 to 0.65 in at least 0.9 of runs", "0.5 (0.264 to 0.736) of runs", Differs),
        ("at most 2 in at least one run", "0.1 (0.0178 to 0.405) of runs", Reproduced),
        ("0.35 to 0.65 in at most 0.9 of runs", "0.7 (0.434 to 0.877) of runs", Reproduced),
    ] {
        for verdict in [Reproduced, Differs, Undecided, Impossible, Given] {
            let holds = verdict == right
                || (verdict, right) == (Impossible, Differs)
                || (verdict == Given && right != Differs);
            let found = fault(&row(accepted, ours, verdict));
            assert_eq!(found.is_none(), holds, "{accepted}, {ours}, {verdict}: {found:?}");
        }
    }
    let silent = CheckedClaim { why: None, ..row("at least 2", "1", Differs) };
    assert!(fault(&silent).is_some(), "no reason");
    for (accepted, ours) in
        [("anything", "1"), ("1 to 2", "-"), ("1 to 2", "1 (1 to "), ("2 to 1", "1")]
    {
        assert!(fault(&row(accepted, ours, Reproduced)).is_some(), "{accepted}, {ours}");
    }
}
