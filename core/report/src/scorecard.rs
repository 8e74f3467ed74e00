//! `scorecard.html`: a controller's rank beside Reno, CUBIC and BBR in each figure. Plain HTML with small pictures in
//! SVG: no script, readable on a telephone and on paper.

use crate::VERSION;
use crate::html::page;
use crate::html::text::escape;
use narrows_lab::scorecard::{
    Judgement, MeasuredFigure, NOT_SIMULATED, SECTIONS, Scorecard, ScorecardRow,
};
use std::fmt::Write as _;

const STYLE: &str = include_str!("scorecard.css");

/// A strip's width and height, and how many factors of two fit on either side of its middle.
const WIDTH: f64 = 260.0;
const HEIGHT: f64 = 26.0;
const OCTAVES: f64 = 3.0;

/// The page. `names` are the scenarios' file names without their extension, in the order of `rows`; `verdict` is the
/// summary in one sentence.
pub fn html(
    asked: &Scorecard,
    rows: &[ScorecardRow],
    names: &[String],
    verdict: &str,
    command_line: &str,
) -> String {
    let protocol = escape(&asked.protocol);
    let mut page = page::begin(&format!("{protocol} by the criteria of RFC 9743"), STYLE);
    let y = asked.yardsticks();
    let _ = writeln!(
        page,
        "<header><p class=\"brand\">narrows scorecard</p><h1>How does {protocol} stand by the criteria of RFC 9743?</h1>\
         <p class=\"path\">Beside Reno ({}), CUBIC ({}) and BBR ({}) in its place on the same networks with the \
         same random draws; means over {} seeds</p></header>\
         <section class=\"answer\"><h2>In short</h2><p>{}</p></section>",
        y.reno,
        y.cubic,
        y.bbr,
        asked.seeds,
        escape(verdict)
    );
    overview(&mut page, rows);
    let _ = writeln!(
        page,
        "<p class=\"quiet legend\"><span>{}{protocol}</span> <span>{}Reno</span> <span>{}CUBIC</span> \
         <span>{}BBR, not judged by</span><br>Further right is better. The middle is between Reno and CUBIC, each \
         line a factor of two; what is further away stands at the edge.</p>",
        sample("own"),
        sample("reno"),
        sample("cubic"),
        sample("bbr")
    );
    for (number, title) in SECTIONS {
        let of_section = rows.iter().zip(names).filter(|(r, _)| r.criterion.section == number);
        let networks: Vec<_> = of_section.collect();
        if networks.is_empty() {
            continue;
        }
        let _ = writeln!(page, "<section id=\"s{number}\"><h2>{number} {title}</h2>");
        for (row, name) in networks {
            network(&mut page, row, name, &protocol);
        }
        page.push_str("</section>\n");
    }
    closing(&mut page, asked, names, command_line);
    page::end_plain(&mut page);
    page
}

/// A square for each figure, section by section.
fn overview(page: &mut String, rows: &[ScorecardRow]) {
    page.push_str("<section><h2>At a glance</h2><div class=\"glance\">");
    for (number, title) in SECTIONS {
        let of_section = rows.iter().filter(|r| r.criterion.section == number);
        let entries: Vec<&MeasuredFigure> = of_section.flat_map(|r| &r.entries).collect();
        if entries.is_empty() {
            continue;
        }
        let _ = write!(page, "<a href=\"#s{number}\">{number} {title}</a><span>");
        for e in entries {
            let _ = write!(
                page,
                "<i class=\"{}\" title=\"{}: {}\"></i>",
                class(e.judgement),
                escape(e.figure.title),
                words(e.judgement)
            );
        }
        page.push_str("</span>");
    }
    page.push_str(
        "</div><p class=\"quiet legend\"><span><i class=\"better\"></i> better than Reno and CUBIC</span> \
         <span><i class=\"alike\"></i> like one of them, or between</span> \
         <span><i class=\"worse\"></i> worse than both</span></p></section>\n",
    );
}

fn class(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Better => "better",
        Judgement::Worse => "worse",
        Judgement::Alike => "alike",
        _ => "unknown",
    }
}

fn words(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Better => "better",
        Judgement::Worse => "worse",
        Judgement::Alike => "alike",
        _ => "not measured",
    }
}

fn network(page: &mut String, row: &ScorecardRow, name: &str, protocol: &str) {
    let _ = write!(
        page,
        "<article><h3>{}</h3><p class=\"quiet\"><a href=\"scenarios/{}.toml\">{1}.toml</a></p>",
        escape(&row.criterion.what),
        escape(name)
    );
    for e in &row.entries {
        let _ = write!(
            page,
            "<div class=\"figure\"><p><b>{}</b> <span class=\"badge {}\">{}</span></p>{}<dl>",
            escape(e.figure.title),
            class(e.judgement),
            words(e.judgement),
            strip(e)
        );
        for (who, x) in [protocol, "Reno", "CUBIC", "BBR"].into_iter().zip(e.means) {
            let _ = write!(page, "<dt>{who}</dt><dd>{}</dd>", e.figure.text(x));
        }
        page.push_str("</dl></div>");
    }
    page.push_str("</article>\n");
}

/// A value relative to the geometric mean of Reno's and CUBIC's, in factors of two; positive if it is better.
fn place(e: &MeasuredFigure, x: f64) -> Option<f64> {
    let [_, reno, cubic, _] = e.means;
    if !(x.is_finite() && reno.is_finite() && cubic.is_finite()) {
        return None;
    }
    // Zero and tiny values are drawn at the edge of the strip.
    let least = 1e-9 * e.means.iter().copied().filter(|m| m.is_finite()).fold(1e-9, f64::max);
    let log = |x: f64| narrows_base::math::log2(x.max(least));
    let octaves = log(x) - 0.5 * (log(reno) + log(cubic));
    let better = if e.figure.more_is_better() { octaves } else { -octaves };
    Some(better.clamp(-OCTAVES, OCTAVES))
}

fn mark(class: &str, x: f64, y: f64) -> String {
    match class {
        "own" => format!("<circle class=\"own\" cx=\"{x:.1}\" cy=\"{y}\" r=\"7\"/>"),
        "reno" => format!("<circle class=\"reno\" cx=\"{x:.1}\" cy=\"{y}\" r=\"4.5\"/>"),
        "cubic" => format!(
            "<rect class=\"cubic\" x=\"{:.1}\" y=\"{}\" width=\"9\" height=\"9\"/>",
            x - 4.5,
            y - 4.5
        ),
        _ => format!("<path class=\"bbr\" d=\"M{:.1} {}l8 8m0 -8l-8 8\"/>", x - 4.0, y - 4.0),
    }
}

fn sample(class: &str) -> String {
    format!(
        "<svg class=\"sample\" width=\"18\" height=\"18\" aria-hidden=\"true\">{}</svg> ",
        mark(class, 9.0, 9.0)
    )
}

fn strip(e: &MeasuredFigure) -> String {
    let at = |octaves: f64| (octaves / OCTAVES * 0.5 * (WIDTH - 20.0)) + 0.5 * WIDTH;
    let mut out = format!(
        "<svg class=\"strip\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        words(e.judgement)
    );
    for line in -3..=3 {
        let x = at(f64::from(line));
        let class = if line == 0 { "middle" } else { "line" };
        let _ = write!(out, "<path class=\"{class}\" d=\"M{x:.1} 2V{}\"/>", HEIGHT - 2.0);
    }
    // The tested controller is drawn first, and largest, so that no smaller mark is hidden.
    for (class, x) in ["own", "reno", "cubic", "bbr"].into_iter().zip(e.means) {
        if let Some(octaves) = place(e, x) {
            out.push_str(&mark(class, at(octaves), 0.5 * HEIGHT));
        }
    }
    out.push_str("</svg>");
    out
}

fn closing(page: &mut String, asked: &Scorecard, names: &[String], command_line: &str) {
    if asked.section.is_none() {
        page.push_str("<section><h2>Not simulated</h2><dl class=\"missing\">");
        for (number, title, why) in NOT_SIMULATED {
            let _ = write!(page, "<dt>{number} {title}</dt><dd>{why}</dd>");
        }
        page.push_str("</dl></section>\n");
    }
    let again = names.first().map_or(String::new(), |n| format!("narrows run scenarios/{n}.toml"));
    let _ = writeln!(
        page,
        "<section><h2>Repeat it</h2><pre><code>{}\n{}</code></pre><p class=\"quiet\">narrows {VERSION}, first seed \
         {}. scorecard.json has all numbers. Better and worse: by more than 5%, and beyond the 95% interval of the \
         differences seed by seed.</p></section>",
        escape(command_line),
        escape(&again),
        asked.seed
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_lab::execute::RunControl;

    fn measured(section: &str) -> (Scorecard, Vec<ScorecardRow>) {
        let section = Some(section.to_string());
        let asked = Scorecard { protocol: "vegas(alpha=2)".into(), seeds: 2, seed: 1, section };
        let control = RunControl::quiet(2);
        let rows = asked.measure(&control).unwrap().unwrap();
        (asked, rows)
    }

    /// Every figure has its strip with a mark for each that was measured, its numbers and its judgement.
    #[test]
    fn every_figure_is_shown_and_foreign_text_escaped() {
        let (asked, rows) = measured("5.1.5");
        let names: Vec<String> = (1..=rows.len()).map(|i| format!("5.1.5-{i}")).collect();
        let page = html(&asked, &rows, &names, "a < b", "narrows scorecard '<x>'");
        let entries: Vec<&MeasuredFigure> = rows.iter().flat_map(|r| &r.entries).collect();
        assert!(!entries.is_empty());
        assert_eq!(page.matches("class=\"strip\"").count(), entries.len());
        let strips: String = page.split("<svg class=\"strip\"").skip(1).collect();
        assert_eq!(strips.matches("class=\"own\"").count(), entries.len());
        for e in entries {
            assert!(page.contains(&e.figure.text(e.means[0])), "{}", e.figure.text(e.means[0]));
        }
        assert!(page.contains("a &lt; b") && !page.contains("'<x>'") && !page.contains("NaN"));
        assert!(!page.contains("<script"));
    }

    #[test]
    fn better_stands_to_the_right_whichever_direction_is_better() {
        let (_, rows) = measured("5.1.5");
        let mut e = rows[0].entries[0].clone();
        assert!(!e.figure.more_is_better(), "a completion time");
        e.means = [1.0, 2.0, 2.0, 1e9];
        assert_eq!(place(&e, 1.0), Some(1.0));
        assert_eq!(place(&e, 4.0), Some(-1.0));
        assert_eq!((place(&e, 1e9), place(&e, f64::NAN)), (Some(-OCTAVES), None));
    }
}
