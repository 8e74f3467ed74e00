//! The pages of the atlas.

use super::{Atlas, PARTS};
use narrows_lab::networks::scores::{self, Score};
use narrows_lab::networks::{BenchNetwork, BenchPart, IntervalValue};
use std::fmt::Write as _;

/// The page with the simulator, beside the atlas.
pub const SIMULATOR: &str = "simulator.html";
const STYLE: &str = "body{font:15px/1.4 system-ui,sans-serif;margin:2em auto;max-width:95%;color-scheme:light dark}\
table{border-collapse:collapse;font-size:13px;display:block;overflow-x:auto}\
th,td{padding:2px 8px;text-align:right;white-space:nowrap;border-bottom:1px solid #8884}\
th:first-child,td:first-child,.link{text-align:left}\
th:first-child,td:first-child{position:sticky;left:0;background:Canvas}\
thead th{position:sticky;top:0;background:Canvas}small{opacity:.75}";

/// Name and text of each page.
pub fn pages(atlas: &Atlas, has_simulator: bool) -> Vec<(String, String)> {
    let mut pages = vec![("index.html".to_string(), index(atlas))];
    for (part, _) in PARTS {
        let networks: Vec<&BenchNetwork> =
            atlas.networks.iter().filter(|n| n.part == part).collect();
        if !networks.is_empty() {
            pages.push((file(part), each(atlas, part, &networks, has_simulator)));
        }
    }
    pages
}

fn file(part: BenchPart) -> String {
    format!("{}.html", part.name())
}

/// The part in words, and its figure on the page of its networks.
fn title(part: BenchPart) -> [&'static str; 2] {
    match part {
        BenchPart::Networks => ["Random networks", "goodput"],
        BenchPart::Access => ["Networks by access type", "goodput"],
        BenchPart::Mixes => ["Mixes: several flows beside several", "own Mbit/s"],
        BenchPart::Transfers => ["Transfers on random networks", "completion ms"],
        _ => ["Transfers by access type", "completion ms"],
    }
}

fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>\
         <title>{title}</title><style>{STYLE}</style><h1>{title}</h1>{body}</html>\n"
    )
}

fn index(atlas: &Atlas) -> String {
    let version = &atlas.version;
    let mut body = format!(
        "<p>Every protocol is simulated on the same networks, drawn at random from seed {} (commit {}). Values are \
         with 95% intervals. Data: <a href=scores.csv>scores.csv</a>, <a href=figures.csv>figures.csv</a>, \
         <a href=scores.parquet>scores.parquet</a>, <a href=figures.parquet>figures.parquet</a>, described by \
         <a href=datapackage.json>datapackage.json</a>.</p>",
        version.seed,
        escaped(&version.commit)
    );
    for (part, _) in PARTS {
        let rows = scores::of(part, &atlas.networks);
        if rows.is_empty() {
            continue;
        }
        let count = atlas.networks.iter().filter(|n| n.part == part).count();
        let _ = write!(body, "<h2><a href={}>{}</a> ({count})</h2>", file(part), title(part)[0]);
        body += &table(atlas, &rows);
    }
    document("Atlas of congestion controllers", &body)
}

/// A row for each protocol, a column for each score.
fn table(atlas: &Atlas, scores: &[Score]) -> String {
    let mut text = String::from("<table><thead><tr><th>protocol");
    for score in scores {
        let _ = write!(text, "<th>{} <small>({})</small>", escaped(&score.label), score.keys.len());
    }
    text += "</thead>";
    for protocol in &atlas.version.protocols {
        let _ = write!(text, "<tr><td>{}", escaped(protocol));
        for score in scores {
            text += "<td>";
            text += &written(score.estimate(&atlas.results, protocol), score.digits);
        }
    }
    text + "</table>"
}

fn written(estimate: IntervalValue, digits: usize) -> String {
    let IntervalValue { value, half } = estimate;
    match (value.is_finite(), half.is_finite()) {
        (false, _) => "-".into(),
        (true, false) => format!("{value:.digits$}"),
        (true, true) => format!("{value:.digits$} <small>± {half:.digits$}</small>"),
    }
}

/// A row for each network, a column for each protocol.
fn each(atlas: &Atlas, part: BenchPart, networks: &[&BenchNetwork], has_simulator: bool) -> String {
    let [name, figure] = title(part);
    let mut body = format!("<p><a href=index.html>Atlas</a>. Figures: {figure}.");
    if has_simulator {
        body += " A linked cell opens the network's link in the simulator, beside CUBIC.";
    }
    body += "</p><table><thead><tr><th>network";
    for protocol in &atlas.version.protocols {
        let _ = write!(body, "<th>{}", escaped(protocol));
    }
    body += "<th class=link>link</thead>";
    for network in networks {
        let _ = write!(body, "<tr><td>{}", escaped(&network.name));
        let of_network = atlas.results.get(&network.key());
        for protocol in &atlas.version.protocols {
            let value = of_network.and_then(|r| r.get(protocol)?.get(figure)).copied();
            let digits = if figure == "goodput" { 3 } else { 1 };
            let shown = value.map_or("-".into(), |x| format!("{x:.digits$}"));
            match has_simulator.then(|| fragment(network, protocol)).flatten() {
                Some(to) => {
                    let _ = write!(body, "<td><a href='{SIMULATOR}#{to}'>{shown}</a>");
                }
                None => {
                    let _ = write!(body, "<td>{shown}");
                }
            }
        }
        let _ = write!(body, "<td class=link>{}", escaped(&network.describe()));
    }
    document(name, &(body + "</table>"))
}

/// The simulator's question for a network; `None` for one that it does not ask so: several flows, changes, web traffic.
fn fragment(network: &BenchNetwork, protocol: &str) -> Option<String> {
    let is_plain =
        network.changes.is_empty() && network.neighbours.is_none() && network.web.is_none();
    let protocols = if protocol == "cubic" { protocol.into() } else { format!("{protocol},cubic") };
    let question = &network.question;
    let fields = [
        ("link", question.link.clone()),
        ("protocols", protocols),
        ("source", question.source.text().to_string()),
        ("duration", question.duration.to_string()),
    ];
    let text: Vec<String> = fields.iter().map(|(k, v)| format!("{k}={}", encoded(v))).collect();
    is_plain.then(|| text.join("&"))
}

/// Percent-encoded, but for the characters that a fragment may hold as they are.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'.'
            | b'-'
            | b'_'
            | b','
            | b'/'
            | b'('
            | b')' => {
                encoded.push(char::from(byte));
            }
            _ => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragment_keeps_a_link_with_all_its_signs() {
        assert_eq!(encoded("8Mbit/s,30ms,loss=0.5%+ge(a)"), "8Mbit/s,30ms,loss%3D0.5%25%2Bge(a)");
        assert_eq!(encoded("µ'&"), "%C2%B5%27%26");
    }
}
