//! The page's tables: protocols against measures, and flows against measures.

use super::columns::{Shown, estimate_text};
use super::text::escape;
use crate::measure::Better;
use crate::outcome::{Estimate, Outcome, ProtocolOutcome};
use std::fmt::Write;

/// Most flows listed per protocol; `summary.json` has them all.
const MOST_FLOWS: usize = 50;

/// Protocols against measures.
pub(super) fn comparison(outcome: &Outcome, shown: &[Shown]) -> String {
    let mut out = String::from("<table id=\"results\" class=\"sortable\"><thead><tr>");
    let (title, what) = match outcome.is_relay() {
        true => ("Way", "towards the server, and back"),
        false => ("Protocol", "as asked for, with the number of its flows"),
    };
    head(&mut out, title, what, "", true);
    for s in shown {
        head(&mut out, s.measure.title, s.measure.doc, s.unit, s.first);
    }
    out.push_str("</tr></thead><tbody>");
    let best: Vec<Option<Estimate>> = shown.iter().map(|s| best(outcome, s)).collect();
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
        for (s, best) in shown.iter().zip(&best) {
            let estimate = result.measure(s.measure.name);
            let good = matches!((estimate, best), (Some(e), Some(b)) if tied(e, *b));
            cell(&mut out, estimate, s, good);
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table>");
    out
}

/// A protocol's flows against measures; empty with fewer than two flows.
pub(super) fn flows(result: &ProtocolOutcome, shown: &[Shown]) -> String {
    if result.per_flow.len() < 2 {
        return String::new();
    }
    let has = |s: &&Shown| {
        result
            .per_flow
            .iter()
            .any(|f| f.1.iter().any(|m| m.0 == s.measure.name && m.1.mean.is_finite()))
    };
    let shown: Vec<&Shown> = shown.iter().filter(has).collect();
    let mut out = format!(
        "<details><summary>Each of its {} flows</summary><div class=\"scroll\">\
         <table class=\"sortable\"><thead><tr>",
        result.per_flow.len()
    );
    head(&mut out, "Flow", "", "", true);
    for s in &shown {
        head(&mut out, s.measure.title, s.measure.doc, s.unit, true);
    }
    out.push_str("</tr></thead><tbody>");
    for (place, (name, measures)) in result.per_flow.iter().take(MOST_FLOWS).enumerate() {
        let _ = write!(out, "<tr><th scope=\"row\" data-v=\"{place}\">{}</th>", escape(name));
        for s in &shown {
            let estimate = measures.iter().find(|m| m.0 == s.measure.name).map(|m| m.1);
            cell(&mut out, estimate, s, false);
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
    if result.per_flow.len() > MOST_FLOWS {
        let _ = write!(
            out,
            "<p class=\"quiet\">The first {MOST_FLOWS} are shown; summary.json has all.</p>"
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

fn cell(out: &mut String, estimate: Option<Estimate>, shown: &Shown, good: bool) {
    let estimate = estimate.unwrap_or(Estimate { mean: f64::NAN, ci95: None });
    let (mean, half) = estimate_text(estimate, shown.scale);
    let class = match (shown.first, good) {
        (true, true) => " class=\"good\"",
        (true, false) => "",
        (false, true) => " class=\"more good\"",
        (false, false) => " class=\"more\"",
    };
    let value = if estimate.mean.is_finite() { estimate.mean.to_string() } else { String::new() };
    let _ = write!(out, "<td{class} data-v=\"{value}\">{mean}");
    if let Some(half) = half {
        let _ = write!(out, " <small>± {half}</small>");
    }
    out.push_str("</td>");
}

/// The best mean of a column, if one way is better and the protocols differ.
fn best(outcome: &Outcome, shown: &Shown) -> Option<Estimate> {
    // The two ends of one connection do not compete.
    if outcome.is_real() {
        return None;
    }
    let estimates = || {
        outcome
            .results
            .iter()
            .filter_map(|r| r.measure(shown.measure.name))
            .filter(|e| e.mean.is_finite())
    };
    let order = |a: &Estimate, b: &Estimate| a.mean.total_cmp(&b.mean);
    let low = estimates().min_by(order)?;
    let high = estimates().max_by(order)?;
    let best = match shown.measure.better {
        Better::More => high,
        Better::Less => low,
        Better::Neither => return None,
    };
    // Where all are as good, none stands out.
    (!tied(low, high)).then_some(best)
}

/// Whether the difference of two means is within the 95% interval of a difference.
fn tied(a: Estimate, b: Estimate) -> bool {
    let half = |e: Estimate| e.ci95.filter(|c| c.is_finite()).unwrap_or(0.0);
    (a.mean - b.mean).abs() <= half(a).hypot(half(b))
}
