//! `report.html`: one page with recommendation, tables and charts, which needs no network.
//!
//! The text and the tables are plain HTML. The charts are drawn by plotly.js, which travels in the
//! page (see `build.rs`), from the JSON of `charts.rs` by `page.js`, each when it comes into view.
//! All text from outside passes `text::escape` or `text::string`. A content security policy forbids the page to load
//! any resource.

mod charts;
pub(crate) mod columns;
pub(crate) mod page;
mod table;
pub(crate) mod text;

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;

use crate::VERSION;
use crate::series::SERIES_FILE;
use narrows_lab::outcome::{Outcome, ProtocolOutcome, Recommendation};
use std::fmt::Write;
use text::escape;

const SCRIPT: &str = include_str!("page.js");

/// The page.
pub fn html(outcome: &Outcome) -> String {
    let parts = parts(outcome);
    let mut page = page::begin(&title(outcome), "");
    header(&mut page, outcome);
    for part in [&parts.answer, &parts.comparison, &parts.traces, &parts.repeat] {
        page.push_str(part);
    }
    page::end(&mut page, &parts.data, &format!("{SCRIPT}showReport();\n"));
    page
}

/// The parts of a page, for one that renews them while results arrive.
#[derive(Clone, Debug)]
pub struct ReportParts {
    /// Recommendation and notes.
    pub answer: String,
    /// The table, and the places of the charts that compare.
    pub comparison: String,
    /// The charts over time.
    pub traces: String,
    /// The command that repeats it.
    pub repeat: String,
    /// The charts' data as JSON.
    pub data: String,
}

/// The parts of the page of an outcome.
pub fn parts(outcome: &Outcome) -> ReportParts {
    let shown = columns::shown(outcome);
    let mut parts = ReportParts {
        answer: String::new(),
        comparison: String::new(),
        traces: String::new(),
        repeat: String::new(),
        data: charts::json(outcome, &shown),
    };
    answer(&mut parts.answer, outcome);
    comparison(&mut parts.comparison, outcome, &shown);
    traces(&mut parts.traces, outcome, &shown);
    repeat(&mut parts.repeat, outcome);
    parts
}

/// Style, scripts and packed plotly.js for a page that embeds the parts: it calls `showReport` when they are in place.
pub fn assets() -> ReportAssets {
    ReportAssets {
        style: page::STYLE,
        scripts: [page::BASE, SCRIPT].concat(),
        library: page::library(),
    }
}

/// What a page needs to show [`ReportParts`].
#[derive(Clone, Debug)]
pub struct ReportAssets {
    /// CSS.
    pub style: &'static str,
    /// JavaScript, for one script element.
    pub scripts: String,
    /// plotly.js as gzip in base64, for a script element of the id `library`.
    pub library: String,
}

fn title(outcome: &Outcome) -> String {
    let link = escape(&outcome.link);
    match outcome.command {
        "compare" => format!("What does each transport give on {link}?"),
        "run" => format!("What happened in {link}?"),
        _ => format!("What happened over {link}?"),
    }
}

/// The question and the path.
fn header(page: &mut String, outcome: &Outcome) {
    let path = escape(if outcome.path.is_empty() { &outcome.link } else { &outcome.path });
    let question = match outcome.command {
        "compare" => "What does each transport give you on this path?",
        "run" => "What happened in this scenario?",
        "relay" => "What passed this relay?",
        "link" => "What passed this link?",
        _ => "What happened on these connections?",
    };
    let _ = writeln!(
        page,
        "<header><p class=\"brand\">narrows {}</p><h1>{question}</h1>\
         <p class=\"path\">{path}</p></header>",
        escape(outcome.command)
    );
}

/// The recommended protocol, and necessary notes.
fn answer(page: &mut String, outcome: &Outcome) {
    recommendation(page, &outcome.recommendation);
    if !outcome.notes.is_empty() {
        page.push_str("<section class=\"notes\"><h2>Please note</h2><ul>");
        for note in &outcome.notes {
            let _ = write!(page, "<li>{}</li>", escape(note));
        }
        page.push_str("</ul></section>\n");
    }
}

/// The protocol, its command and what it achieves; the reasons are folded.
fn recommendation(page: &mut String, advice: &Recommendation) {
    let Some((first, reasons)) = advice.sentences.split_first() else { return };
    page.push_str("<section class=\"answer\"><h2>Recommendation</h2>");
    if !advice.protocol.is_empty() {
        let _ = write!(page, "<p class=\"use\">Use {}</p>", escape(&advice.protocol));
    }
    if let Some(command) = &advice.command {
        let _ = write!(
            page,
            "<p class=\"command\"><code>{}</code> <button type=\"button\" data-copy>Copy</button></p>",
            escape(command)
        );
    }
    // The heading has the name.
    let heading = format!("Use {}: ", advice.protocol);
    let _ = write!(page, "<p>{}</p>", escape(first.strip_prefix(&heading).unwrap_or(first)));
    if !reasons.is_empty() {
        let reasons: Vec<String> =
            reasons.iter().map(|r| format!("<li>{}</li>", escape(r))).collect();
        let _ = write!(
            page,
            "<details><summary>Reasons and alternatives</summary><ul>{}</ul></details>",
            reasons.concat()
        );
    }
    page.push_str("</section>\n");
}

/// The table, and the charts that set the protocols side by side.
fn comparison(page: &mut String, outcome: &Outcome, shown: &[columns::ShownMeasure]) {
    page.push_str("<section><h2>Comparison</h2>");
    if outcome.results.is_empty() {
        page.push_str(match outcome.is_real() {
            true => "<p>No connection was opened.</p></section>\n",
            false => "<p>No protocol finished a run.</p></section>\n",
        });
        return;
    }
    let most = outcome.results.iter().map(|r| r.seeds).max().unwrap_or(0);
    let means = match most {
        _ if outcome.is_real() => "Measured once: no intervals.".to_string(),
        0 | 1 => "One seed: no intervals.".to_string(),
        n => format!("Means over {n} seeds with their 95% intervals."),
    };
    // Ends of the same connections are not set side by side.
    let (best, hidden) = if outcome.is_real() {
        ("", " hidden")
    } else {
        (
            "<b class=\"good\">Marked</b>: the best, and those next to it that cannot be told from it. ",
            "",
        )
    };
    let _ = write!(
        page,
        "<p class=\"quiet\">{means} {best}Click a heading to sort.\
         <label class=\"switch\"><input type=\"checkbox\" id=\"all\"> all measures</label></p>\
         <div class=\"scroll wide-table\" tabindex=\"0\" role=\"region\" aria-label=\"Comparison\">{}</div></section>\n\
         <section id=\"sides\"{hidden}><h2>Side by side</h2><noscript><p>The charts need JavaScript; \
         the tables do not.</p></noscript><div id=\"choice\"></div><div class=\"wide\" id=\"trade\"></div>\
         <div class=\"wide\" id=\"smooth\"></div><div class=\"grid\" id=\"bars\"></div></section>\n",
        table::comparison(outcome, shown)
    );
}

/// Over time, per protocol.
fn traces(page: &mut String, outcome: &Outcome, shown: &[columns::ShownMeasure]) {
    if outcome.results.is_empty() {
        return;
    }
    let source = match outcome.is_real() {
        true if outcome.is_link() => format!("As the {} counted it.", outcome.command),
        true => "As the endpoints' own figures tell it.".to_string(),
        false => format!("From the run with seed {}.", outcome.seed),
    };
    let (one, all) = match outcome.is_link() {
        true => ("way", "both ways"),
        false => ("protocol", "all protocols"),
    };
    let _ = write!(
        page,
        "<section><h2>Over time</h2><p class=\"quiet\">{source} Drag across a \
         chart to zoom in time; double-click to see all. The charts of a {one} zoom together.\
         <label class=\"switch\"><input type=\"checkbox\" id=\"same\" checked> same scales for \
         all</label><label class=\"switch\"><input type=\"checkbox\" id=\"together\"> zoom \
         {all} together</label></p><nav>"
    );
    for (place, result) in outcome.results.iter().enumerate() {
        let _ = write!(page, "<a href=\"#p{place}\">{}</a> ", escape(&result.title()));
    }
    page.push_str("</nav>\n");
    for (place, result) in outcome.results.iter().enumerate() {
        protocol(page, place, result, shown);
    }
    page.push_str("</section>\n");
}

fn protocol(
    page: &mut String,
    place: usize,
    result: &ProtocolOutcome,
    shown: &[columns::ShownMeasure],
) {
    let _ = write!(
        page,
        "<article id=\"p{place}\"><h3>{} <small>{}</small></h3><p class=\"quiet\">",
        escape(&result.title()),
        escape(&result.status)
    );
    let words = shown.iter().filter(|s| s.bars).filter_map(|s| {
        let estimate = result.measure(s.measure.name).filter(|e| e.mean.is_finite())?;
        let (mean, half) = columns::estimate_text(estimate, s.scale);
        let half = half.map(|half| format!("\u{a0}±\u{a0}{half}")).unwrap_or_default();
        let space = if s.unit.is_empty() { "" } else { "\u{a0}" };
        Some(format!("{} {mean}{half}{space}{}", lower(s.measure.title), s.unit))
    });
    page.push_str(&escape(&words.take(4).collect::<Vec<_>>().join(" · ")));
    page.push_str("</p>");
    if result.series.is_empty() {
        page.push_str("<p class=\"quiet\">No time series.</p>");
    } else {
        let _ = write!(page, "<div class=\"timeline\" data-place=\"{place}\"></div>");
    }
    page.push_str(&table::flows(result, shown));
    page.push_str("</article>\n");
}

/// A heading inside a sentence: `Mean RTT` is `mean RTT`, but `RTT` stays.
fn lower(title: &str) -> String {
    let mut chars = title.chars();
    match chars.next() {
        Some(first) if chars.clone().next().is_some_and(char::is_lowercase) => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => title.to_string(),
    }
}

/// Command and version that reproduce the page.
fn repeat(page: &mut String, outcome: &Outcome) {
    if outcome.is_real() {
        let events = match outcome.is_link() {
            true => "",
            false => ", each connection's events in connection-N.sqlog",
        };
        let _ = writeln!(
            page,
            "<section><h2>Repeat it</h2><pre><code>{}</code></pre><dl>\
             <dt>Version</dt><dd>narrows {VERSION}</dd>\
             <dt>Over</dt><dd><code>{}</code></dd>\
             <dt>Measured</dt><dd>{:.3} s</dd></dl>\
             <p class=\"quiet\">All numbers are in summary.json and summary.csv beside this page, \
             all series in {SERIES_FILE}, the packets in packets*.pcapng{events}. Charts: plotly.js, © Plotly, Inc., MIT licence.</p></section>",
            escape(&outcome.command_line),
            escape(&outcome.link),
            outcome.duration_s
        );
        return;
    }
    let seeds = outcome.results.iter().map(|r| r.seeds);
    let seeds = match (seeds.clone().min(), seeds.max()) {
        (Some(low), Some(high)) if low != high => format!("{low} to {high}"),
        (Some(low), _) => low.to_string(),
        _ => "none".into(),
    };
    let _ = writeln!(
        page,
        "<section><h2>Repeat it</h2><pre><code>{}</code></pre><dl>\
         <dt>Version</dt><dd>narrows {VERSION}</dd>\
         <dt>First seed</dt><dd>{}</dd><dt>Seeds per protocol</dt><dd>{seeds}</dd>\
         <dt>Link</dt><dd><code>{}</code></dd>\
         <dt>Measured</dt><dd>{} s to {} s of simulated time</dd></dl>\
         <p class=\"quiet\">All numbers are in summary.json and summary.csv beside this page, those of \
         each seed in seeds.csv, all series in {SERIES_FILE}. Charts: plotly.js, © Plotly, Inc., MIT licence.</p>\
         </section>",
        escape(&outcome.command_line),
        outcome.seed,
        escape(&outcome.link),
        outcome.warmup_s,
        outcome.duration_s
    );
}
