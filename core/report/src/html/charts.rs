//! Data of the page's charts, as compact JSON for `page.js`.
//!
//! ```text
//! { light, dark: colours, end, warmup: seconds,
//!   bars: [{title, unit, better, mean: [per protocol], low, high: [per protocol]}],
//!   smooth: {scales: [seconds], lines: [per protocol: [per scale]]} or null,
//!   trade: {x: index into bars, y: index into bars} or null,
//!   protocols: [{name, times: [[s]], panels: [ChartPanel], left_out}] }
//! ChartPanel = { title, unit, limit: {name, y} or null, lines: [Line], marks: [Marks] }
//! Line  = { name, colour, style: 0 solid | 1 dashed | 2 faint, x: index into times, y: [] }
//! Marks = { name, symbol, colour, x: [s], y: [], n: [events] }
//! ```

mod panel;

use super::columns::{ShownMeasure, unit};
use super::text::{list, number, numbers, string};
use crate::palette;
use crate::variables::{self, ENDS};
use narrows_lab::measure::{Better, ROUGHNESS};
use narrows_lab::outcome::{Estimate, Outcome, ProtocolOutcome};
use narrows_sim::SeriesTable;
use panel::{ChartPanel, DIGITS, LineLook, Style, TIME_DIGITS, Times, finite};
use std::fmt::Write;

/// Most flows and most links drawn per protocol; the file of the series has them all.
const MAX_FLOWS: usize = 6;
const MAX_OTHERS: usize = 4;
const MAX_LINKS: usize = 4;
/// Most panels of a recording beside the usual ones.
const MAX_WATCHED: usize = 6;

/// Everything that the charts need.
pub(super) fn json(outcome: &Outcome, shown: &[ShownMeasure]) -> String {
    let mut out = String::from("{\"light\":");
    list(&mut out, palette::LIGHT, string);
    out.push_str(",\"dark\":");
    list(&mut out, palette::DARK, string);
    out.push_str(",\"end\":");
    number(&mut out, outcome.duration_s, TIME_DIGITS);
    out.push_str(",\"warmup\":");
    number(&mut out, outcome.warmup_s, TIME_DIGITS);

    let bars: Vec<&ShownMeasure> = shown.iter().filter(|s| s.bars).collect();
    out.push_str(",\"bars\":");
    list(&mut out, &bars, |out, shown| bar(out, outcome, shown));
    let place = |name| bars.iter().position(|s| s.measure.name == name);
    match (place("rtt_s_mean"), place("goodput_bps")) {
        (Some(x), Some(y)) if outcome.results.len() > 1 && !outcome.is_real() => {
            let _ = write!(out, ",\"trade\":{{\"x\":{x},\"y\":{y}}}");
        }
        _ => out.push_str(",\"trade\":null"),
    }

    out.push_str(",\"smooth\":");
    smooth(&mut out, outcome);
    let units = Units::of(outcome);
    out.push_str(",\"protocols\":");
    list(&mut out, &outcome.results, |out, result| protocol(out, outcome, result, units));
    out.push('}');
    out
}

fn bar(out: &mut String, outcome: &Outcome, shown: &ShownMeasure) {
    let estimates = || outcome.results.iter().map(|r| r.measure(shown.measure.name));
    out.push_str("{\"title\":");
    string(out, shown.measure.title);
    out.push_str(",\"unit\":");
    string(out, shown.unit);
    out.push_str(",\"better\":");
    string(out, better_words(shown.measure.better));
    out.push_str(",\"mean\":");
    numbers(out, estimates().map(|e| e.map_or(f64::NAN, |e| e.mean * shown.scale)), DIGITS);
    for (name, end) in ENDS {
        let _ = write!(out, ",\"{name}\":");
        let of = |e: Estimate| e.ci95().map_or(f64::NAN, |ends| end(ends) * shown.scale);
        numbers(out, estimates().map(|e| e.map_or(f64::NAN, of)), DIGITS);
    }
    out.push('}');
}

/// The coefficient of variation on each time scale that any protocol has.
fn smooth(out: &mut String, outcome: &Outcome) {
    let of = |r: &ProtocolOutcome, name| r.measure(name).map_or(f64::NAN, |e| e.mean);
    let any = |name| outcome.results.iter().any(|r| of(r, name).is_finite());
    let scales: Vec<(&str, f64)> = ROUGHNESS.iter().filter(|s| any(s.0)).copied().collect();
    if scales.len() < 2 {
        out.push_str("null");
        return;
    }
    out.push_str("{\"scales\":");
    numbers(out, scales.iter().map(|s| s.1), DIGITS);
    out.push_str(",\"lines\":");
    list(out, &outcome.results, |out, result| {
        numbers(out, scales.iter().map(|s| of(result, s.0)), DIGITS);
    });
    out.push('}');
}

/// Which way is better, for a chart's title.
pub(super) fn better_words(better: Better) -> &'static str {
    match better {
        Better::More => "more is better",
        Better::Less => "less is better",
        Better::Neither => "",
    }
}

fn look(colour: usize, style: Style) -> LineLook {
    LineLook { colour, style }
}

/// Units of the traces, the same for all protocols.
#[derive(Clone, Copy)]
struct Units {
    rate: (&'static str, f64),
    time: (&'static str, f64),
}

impl Units {
    fn of(outcome: &Outcome) -> Self {
        let largest = |column| {
            let tables = outcome.results.iter().flat_map(|r| &r.series);
            let values = tables.filter_map(|t| t.column(column)).flatten().copied();
            values.filter(|v| v.is_finite()).fold(0.0, f64::max)
        };
        Units {
            rate: unit(
                "bit/s",
                largest("throughput_bps")
                    .max(largest("goodput_bps"))
                    .max(largest("offered_bps"))
                    .max(finite(outcome.capacity_bps)),
            ),
            time: unit("s", largest("rtt_s")),
        }
    }
}

fn protocol(out: &mut String, outcome: &Outcome, result: &ProtocolOutcome, units: Units) {
    let all = |kind| result.series.iter().filter(move |t| t.kind == kind);
    let own = |t: &&SeriesTable| t.group == result.group;
    let mut flows: Vec<&SeriesTable> = all("flow").filter(own).take(MAX_FLOWS).collect();
    let owned = flows.len();
    flows.extend(all("flow").filter(|t| !own(t)).take(MAX_OTHERS));
    let links: Vec<&SeriesTable> = all("link").take(MAX_LINKS).collect();
    let own_group = all("group").find(own);
    let drawable = result.series.iter().filter(|t| t.kind != "group").count();
    let left_out = drawable - flows.len() - links.len();
    // The first link is the bottleneck.
    let limit = finite(outcome.capacity_bps) * units.rate.1;
    let limit = (limit > 0.0 && !links.is_empty()).then_some(("capacity", limit));

    // For recordings: the controller's variables have a panel of their own.
    let mut watched: Vec<ChartPanel> = Vec::new();
    let mut times = Times::default();
    let mut panels = [
        ChartPanel::new("Window", "packets", None),
        ChartPanel::new("Queue", "packets", None),
        ChartPanel::new("RTT", units.time.0, None),
        ChartPanel::new("Throughput", units.rate.0, limit),
        ChartPanel::new("Fairness", "", None),
    ];
    // Many thresholds and marks would hide the windows.
    let few = flows.len() <= 3;
    for (i, flow) in flows.iter().enumerate() {
        let name = |what: &str| match flows.len() {
            1 => what.to_string(),
            _ if few => format!("{} {what}", flow.name),
            _ => flow.name.clone(),
        };
        let style = if i < owned { Style::Solid } else { Style::Faint };
        let [window, _, rtt, rate, _] = &mut panels;
        window.line(&mut times, flow, "cwnd", name("cwnd"), look(i, style), 1.0);
        if few && i < owned {
            window.line(
                &mut times,
                flow,
                "ssthresh",
                name("ssthresh"),
                look(i, Style::Dashed),
                1.0,
            );
            window.marks(flow, "retransmissions", None, name("sent again"), "line-ns", 1);
        }
        rtt.line(&mut times, flow, "rtt_s", name("RTT"), look(i, style), units.time.1);
        rate.line(&mut times, flow, "throughput_bps", name("flow"), look(i, style), units.rate.1);
        rate.line(&mut times, flow, "goodput_bps", name("goodput"), look(i, style), units.rate.1);
        if outcome.is_real() {
            if few {
                window.marks(flow, "lost", None, name("lost"), "triangle-up", 5);
            }
            for (column, title) in recorded(flow) {
                let (unit, scale) = match variables::find(outcome, column).map_or("", |v| v.unit) {
                    "bit/s" => units.rate,
                    "s" => units.time,
                    unit => (unit, 1.0),
                };
                let at = watched.iter().position(|p| p.title == title).unwrap_or_else(|| {
                    watched.push(ChartPanel::new(title, unit, None));
                    watched.len() - 1
                });
                watched[at].line(&mut times, flow, column, name(title), look(i, style), scale);
            }
        }
    }
    for (i, link) in links.iter().enumerate() {
        let name = |what: &str| match links.len() {
            1 => what.to_string(),
            _ => format!("{} {what}", link.name),
        };
        let [_, queue, _, rate, _] = &mut panels;
        if i == 0 {
            let faint = look(i, Style::Faint);
            queue.line(&mut times, link, "queue_max", name("largest"), faint, 1.0);
            let dropped = "dropped by the queue".into();
            queue.marks(link, "drops", Some("queue_max"), dropped, "x-thin", 1);
            queue.marks(link, "losses", None, "lost on the link".into(), "triangle-up", 5);
        }
        let style = if i == 0 { Style::Solid } else { Style::Faint };
        queue.line(&mut times, link, "queue", name("queue"), look(i, style), 1.0);
        let colour = flows.len() + i;
        let shown = look(colour, Style::Faint);
        rate.line(&mut times, link, "throughput_bps", name("link"), shown, units.rate.1);
        // Of a relay's recording.
        let faint = look(colour + 1, Style::Faint);
        let solid = look(colour, Style::Solid);
        rate.line(&mut times, link, "offered_bps", name("offered"), faint, units.rate.1);
        rate.line(&mut times, link, "delivered_bps", name("delivered"), solid, units.rate.1);
    }

    if let Some(group) = own_group {
        let [.., fairness] = &mut panels;
        let solid = |i| look(i, Style::Solid);
        fairness.line(&mut times, group, "jain", "Jain's index".into(), solid(0), 1.0);
        fairness.line(
            &mut times,
            group,
            "theta",
            "theta, share of the other flows".into(),
            solid(1),
            1.0,
        );
    }

    out.push_str("{\"name\":");
    string(out, result.title());
    let _ = write!(out, ",\"left_out\":{left_out},\"times\":");
    list(out, &times.0, |out, time| numbers(out, time.iter().copied(), TIME_DIGITS));
    out.push_str(",\"panels\":");
    let drawn = panels.iter().chain(&watched).filter(|p| !p.is_empty());
    list(out, drawn, |out, panel| panel.json(out));
    out.push('}');
}

/// Columns of a recorded flow that have a panel of their own, and its title: the pacing rate, and the controller's
/// variables.
fn recorded(flow: &SeriesTable) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
    const ELSEWHERE: [&str; 8] = [
        "cwnd",
        "in_flight",
        "rtt_s",
        "goodput_bps",
        "sent_bps",
        "received_bps",
        "lost",
        "retransmissions",
    ];
    let names = flow.columns.iter().map(|c| c.0).filter(|c| !ELSEWHERE.contains(c));
    // The unit stands on the panel's axis.
    let bare = |c: &'static str| c.strip_suffix("_bps").or(c.strip_suffix("_s")).unwrap_or(c);
    names
        .take(MAX_WATCHED)
        .map(move |c| (c, if c == "pacing_bps" { "Pacing rate" } else { bare(c) }))
}
