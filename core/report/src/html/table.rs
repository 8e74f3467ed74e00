//! The page's tables: protocols against measures, and flows against measures.

use super::columns::{ShownMeasure, estimate_text};
use super::text::escape;
use narrows_lab::measure::Better;
use narrows_lab::outcome::{Estimate, Outcome, ProtocolOutcome};
use std::fmt::Write;

/// Most flows listed per protocol; `summary.json` has them all.
const MAX_FLOWS: usize = 50;

/// Protocols against measures.
pub(super) fn comparison(outcome: &Outcome, shown: &[ShownMeasure]) -> String {
    let mut out = String::from("<table id=\"results\" class=\"sortable\"><thead><tr>");
    let (title, what) = match outcome.command {
        "relay" => ("Way", "towards the server, and back"),
        "link" => ("Way", "from the command (end A) to the other end, and back"),
        _ => ("Protocol", "as requested, with the number of its flows"),
    };
    head(&mut out, title, what, "", true);
    for s in shown {
        head(&mut out, s.measure.title, s.measure.doc, s.unit, s.first);
    }
    out.push_str("</tr></thead><tbody>");
    let marked: Vec<Vec<bool>> = shown.iter().map(|s| marked(outcome, s)).collect();
    for (place, result) in outcome.results.iter().enumerate() {
        let name = escape(&result.title());
        let _ = write!(
            out,
            "<tr><th scope=\"row\" data-v=\"{place}\"><a href=\"#p{place}\">{name}</a>"
        );
        if result.flows != 1 {
            let _ = write!(out, " <small>× {}</small>", result.flows);
        }
        out.push_str("</th>");
        for (s, marked) in shown.iter().zip(&marked) {
            cell(&mut out, result.measure(s.measure.name), s, marked[place]);
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table>");
    out
}

/// A protocol's flows against measures; empty with fewer than two flows.
pub(super) fn flows(result: &ProtocolOutcome, shown: &[ShownMeasure]) -> String {
    if result.per_flow.len() < 2 {
        return String::new();
    }
    let has = |s: &&ShownMeasure| {
        result
            .per_flow
            .iter()
            .any(|f| f.1.iter().any(|m| m.0 == s.measure.name && m.1.mean.is_finite()))
    };
    let shown: Vec<&ShownMeasure> = shown.iter().filter(has).collect();
    let mut out = format!(
        "<details><summary>Each of its {} flows</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Flows\">\
         <table class=\"sortable\"><thead><tr>",
        result.per_flow.len()
    );
    head(&mut out, "Flow", "", "", true);
    for s in &shown {
        head(&mut out, s.measure.title, s.measure.doc, s.unit, true);
    }
    out.push_str("</tr></thead><tbody>");
    for (place, (name, measures)) in result.per_flow.iter().take(MAX_FLOWS).enumerate() {
        let _ = write!(out, "<tr><th scope=\"row\" data-v=\"{place}\">{}</th>", escape(name));
        for s in &shown {
            let estimate = measures.iter().find(|m| m.0 == s.measure.name).map(|m| m.1);
            cell(&mut out, estimate, s, false);
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
    if result.per_flow.len() > MAX_FLOWS {
        let _ = write!(
            out,
            "<p class=\"quiet\">The first {MAX_FLOWS} are shown; summary.json has all.</p>"
        );
    }
    out.push_str("</details>");
    out
}

fn head(out: &mut String, title: &str, help: &str, unit: &str, first: bool) {
    let class = if first { "" } else { " class=\"more\"" };
    let _ = write!(
        out,
        "<th scope=\"col\"{class}><button type=\"button\" title=\"{}\">{}",
        escape(help),
        escape(title)
    );
    if !unit.is_empty() {
        let _ = write!(out, " <small>{}</small>", escape(unit));
    }
    out.push_str("</button></th>");
}

fn cell(out: &mut String, estimate: Option<Estimate>, shown: &ShownMeasure, good: bool) {
    let estimate = estimate.unwrap_or(Estimate::symmetric(f64::NAN, None));
    let (mean, interval) = estimate_text(estimate, shown.scale);
    let class = match (shown.first, good) {
        (true, true) => " class=\"good\"",
        (true, false) => "",
        (false, true) => " class=\"more good\"",
        (false, false) => " class=\"more\"",
    };
    let value = if estimate.mean.is_finite() { estimate.mean.to_string() } else { String::new() };
    let _ = write!(out, "<td{class} data-v=\"{value}\">{mean}");
    if let Some(interval) = interval {
        let _ = write!(out, " <small>{interval}</small>");
    }
    out.push_str("</td>");
}

/// Marks, in a column, the results that are better than every result that differs significantly from the best one. So a
/// result without a mark is never better than one with a mark.
fn marked(outcome: &Outcome, shown: &ShownMeasure) -> Vec<bool> {
    let none = vec![false; outcome.results.len()];
    let better = match shown.measure.better {
        Better::More => |a: f64, b: f64| a > b,
        Better::Less => |a: f64, b: f64| a < b,
        Better::Neither => return none,
    };
    // The two ends of one connection do not compete.
    if outcome.is_real() {
        return none;
    }
    let estimates: Vec<Option<Estimate>> = (outcome.results.iter())
        .map(|r| r.measure(shown.measure.name).filter(|e| e.mean.is_finite()))
        .collect();
    let first = |a: Estimate, b: Estimate| if better(b.mean, a.mean) { b } else { a };
    let Some(best) = estimates.iter().flatten().copied().reduce(first) else { return none };
    // If all are equally good, no result is marked.
    let Some(other) =
        estimates.iter().flatten().filter(|e| !tied(**e, best)).copied().reduce(first)
    else {
        return none;
    };
    estimates.iter().map(|e| e.is_some_and(|e| better(e.mean, other.mean))).collect()
}

/// Whether the difference of two means is within the 95% interval of a difference.
fn tied(a: Estimate, b: Estimate) -> bool {
    !narrows_lab::stats::differ(a, b)
}
