//! `report.html` of a sweep: a map, a surface or lines of any measure, and the course over time at each point. One page
//! that needs no network; drawn by `page.js` from the JSON below.
//!
//! ```text
//! { light, dark: colours, seed, end, warmup: seconds, base: command line, measure, group: indices,
//!   parameters: [{name, values: [texts], numbers: [] or null, log}], groups: [names],
//!   measures: [{name, title, unit, doc, better, middle, mean, low, high: [per group: [per point]]}],
//!   deterministic: [per point],
//!   traces: {step, unit, scale, points: {point: [lines]}} or null }
//! ```

use crate::VERSION;
use crate::html::columns::unit;
use crate::html::page;
use crate::html::text::{escape, list, number, numbers, string};
use crate::palette;
use crate::variables::ENDS;
use narrows_lab::measure::{MEASURES, Measure};
use narrows_lab::sweep::SweepOutcome;
use std::fmt::Write as _;

const SCRIPT: &str = include_str!("page.js");
/// Styles of this page in addition to the common ones.
const MORE: &str = "#map { min-height: 520px; } #trace { min-height: 0; } .controls { display: flex; \
    flex-wrap: wrap; gap: 8px 18px; margin: 12px 0; } .controls label { color: var(--quiet); } \
    select { font: inherit; color: var(--text); background: var(--panel); max-width: 22em; \
    border: 1px solid var(--line); border-radius: 6px; padding: 3px 6px; }";
/// Most numbers in the page: beyond, only the chosen measure is there.
const MAX_NUMBERS: usize = 500_000;
const DIGITS: usize = 5;

/// The page.
pub fn html(o: &SweepOutcome<'_>) -> String {
    let name = escape(&o.scenario);
    let mut page = page::begin(&format!("A sweep of {name}"), MORE);
    let finished = o.finished().count();
    let seeds = o.sweep.seeds;
    let plural = if seeds == 1 { "" } else { "s" };
    let names: Vec<String> = o.sweep.grid.parameters.iter().map(|p| escape(&p.name)).collect();
    let _ = writeln!(
        page,
        "<header><p class=\"brand\">narrows sweep</p><h1>How does it depend on {}?</h1>\
         <p class=\"path\">{name}: {finished} points, {seeds} seed{plural} each</p></header>",
        names.join(", ")
    );
    if !o.notes.is_empty() {
        page.push_str("<section class=\"notes\"><h2>Please note</h2><ul>");
        for note in &o.notes {
            let _ = write!(page, "<li>{}</li>", escape(note));
        }
        page.push_str("</ul></section>\n");
    }
    page.push_str(
        "<section><div class=\"controls\" id=\"controls\"></div><p class=\"quiet\" id=\"doc\"></p>\
         <noscript><p>The charts need JavaScript; points.csv has the numbers.</p></noscript>\
         <div class=\"wide\" id=\"map\"></div></section>\n\
         <section id=\"point\"><h2 id=\"name\">One point</h2><p class=\"quiet\" id=\"hint\">Click a \
         point to see what happened there.</p><div class=\"wide\" id=\"trace\"></div>\
         <pre hidden id=\"again\"></pre></section>\n",
    );
    let _ = writeln!(
        page,
        "<section><h2>Repeat it</h2><pre><code>{}</code></pre><dl>\
         <dt>Version</dt><dd>narrows {VERSION}</dd><dt>First seed</dt><dd>{}</dd>\
         <dt>Measured</dt><dd>{} s to {} s of simulated time</dd></dl>\
         <p class=\"quiet\">Every run is in sweep.csv, means with 95% intervals in points.csv \
         and sweep.json. Charts: plotly.js, © Plotly, Inc., MIT \
         licence.</p></section>",
        escape(&o.command_line),
        o.sweep.seed,
        o.span_s.1,
        o.span_s.0
    );
    page::end(&mut page, &data(o), SCRIPT);
    page
}

fn data(o: &SweepOutcome<'_>) -> String {
    let s = o.sweep;
    let mut out = String::from("{\"light\":");
    list(&mut out, palette::LIGHT, string);
    out.push_str(",\"dark\":");
    list(&mut out, palette::DARK, string);
    let _ = write!(out, ",\"seed\":{},\"end\":", s.seed);
    number(&mut out, o.span_s.0, DIGITS);
    out.push_str(",\"warmup\":");
    number(&mut out, o.span_s.1, DIGITS);
    out.push_str(",\"base\":");
    string(&mut out, &o.base_line);
    out.push_str(",\"parameters\":");
    list(&mut out, &s.grid.parameters, |out, p| {
        out.push_str("{\"name\":");
        string(out, &p.name);
        out.push_str(",\"values\":");
        list(out, &p.values, string);
        out.push_str(",\"numbers\":");
        match &p.numbers {
            Some(n) => numbers(out, n.iter().copied(), 7),
            None => out.push_str("null"),
        }
        let _ = write!(out, ",\"log\":{}}}", p.log);
    });
    out.push_str(",\"groups\":");
    list(&mut out, &s.groups, string);
    let all = 2 * MEASURES.len() * s.groups.len() * s.points.len() <= MAX_NUMBERS;
    let shown: Vec<usize> =
        (0..MEASURES.len()).filter(|m| (all || *m == o.measure) && has(o, *m)).collect();
    let chosen = shown.iter().position(|m| *m == o.measure).unwrap_or(0);
    let _ = write!(out, ",\"measure\":{chosen},\"group\":{},\"measures\":", o.group);
    list(&mut out, shown, |out, m| measure(out, o, m));
    out.push_str(",\"deterministic\":");
    list(&mut out, &o.deterministic, |out, d| out.push_str(if *d { "true" } else { "false" }));
    out.push_str(",\"traces\":");
    traces(&mut out, o);
    out.push('}');
    out
}

/// Whether a measure exists anywhere.
fn has(o: &SweepOutcome<'_>, m: usize) -> bool {
    o.estimates.iter().flatten().any(|group| group[m].mean.is_finite())
}

/// Unit and factor of a measure. Shares between groups stay fractions, as the papers show them.
pub(super) fn scaled(measure: &Measure, largest: f64) -> (&'static str, f64) {
    if measure.competition { ("", 1.0) } else { unit(measure.unit, largest) }
}

fn measure(out: &mut String, o: &SweepOutcome<'_>, m: usize) {
    let measure = &MEASURES[m];
    let means = o.estimates.iter().flatten().map(|g| g[m].mean.abs());
    let (unit, scale) = scaled(measure, means.filter(|x| x.is_finite()).fold(0.0, f64::max));
    out.push_str("{\"name\":");
    string(out, measure.name);
    out.push_str(",\"title\":");
    string(out, measure.title);
    out.push_str(",\"unit\":");
    string(out, unit);
    out.push_str(",\"doc\":");
    string(out, measure.doc);
    // A share between two has a middle that means something.
    let _ =
        write!(out, ",\"middle\":{},\"mean\":", if measure.competition { "0.5" } else { "null" });
    let groups = 0..o.sweep.groups.len();
    list(out, groups.clone(), |out, g| {
        numbers(out, o.estimates.iter().map(|p| p[g][m].mean * scale), DIGITS);
    });
    for (name, end) in ENDS {
        let _ = write!(out, ",\"{name}\":");
        list(out, groups.clone(), |out, g| {
            let ends = o.estimates.iter().map(|p| p[g][m].ci95());
            numbers(out, ends.map(|e| e.map_or(f64::NAN, |e| end(e) * scale)), 4);
        });
    }
    out.push('}');
}

/// Course over time in each point's first seed.
fn traces(out: &mut String, o: &SweepOutcome<'_>) {
    let groups = o.sweep.groups.len();
    let found = o
        .runs
        .iter()
        .enumerate()
        .filter_map(|(p, seeds)| Some((p, seeds.first()?.as_ref()?.trace.as_ref()?)));
    let found: Vec<_> = found.collect();
    let Some((_, first)) = found.first() else {
        out.push_str("null");
        return;
    };
    out.push_str("{\"step\":");
    number(out, first.step_s, 7);
    out.push_str(",\"points\":{");
    for (i, (point, trace)) in found.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        let _ = write!(out, "{comma}\"{point}\":{{\"step\":");
        number(out, trace.step_s, 7);
        out.push_str(",\"lines\":");
        list(out, trace.lines.iter().enumerate(), |out, (line, values)| {
            // Whole kbit/s are short and precise enough.
            let scale = if line < groups { 1e-3 } else { 1.0 };
            numbers(out, values.iter().map(|v| v * scale), 4);
        });
        out.push('}');
    }
    out.push_str("}}");
}
