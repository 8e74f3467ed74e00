//! The pages of the atlas.

use super::data::Atlas;
use super::meanings;
use super::pairs::{PairFigures, matrix};
use super::worst::{self, WorstNetwork};
use narrows_lab::networks::scores::{self, Score};
use narrows_lab::networks::{ATLAS_PARTS, BenchNetwork, BenchPart, IntervalValue};
use std::fmt::Write as _;

/// The page with the simulator, beside the atlas.
pub const SIMULATOR: &str = "simulator.html";
const WORST: &str = "worst.html";
/// A cell's colour is mixed from its value `--v`, between 0 and 1.
const STYLE: &str = "\
:root{color-scheme:light dark;--much:#e8792b;--little:#4d94d8}\
@media(prefers-color-scheme:dark){:root{--much:#a8501a;--little:#2a5f96}}\
body{font:15px/1.4 system-ui,sans-serif;margin:1.5em auto;max-width:95%}\
nav{display:flex;flex-wrap:wrap;gap:4px 1em}p,dl{max-width:46em}\
dl{display:grid;grid-template-columns:minmax(6em,auto) 1fr;gap:2px 1em;font-size:13px}dt{font-weight:600}dd{margin:0}\
table{border-collapse:collapse;font-size:13px;display:block;overflow:auto;max-height:92vh}\
th,td{padding:2px 8px;text-align:right;white-space:nowrap;border-bottom:1px solid #8884}\
th{font-weight:600;vertical-align:bottom}thead th{white-space:normal;min-width:4.5em}\
th:first-child,.link{text-align:left}\
th:first-child{position:sticky;left:0;background:Canvas;z-index:1}\
thead th{position:sticky;top:0;background:Canvas}thead th:first-child{z-index:2}small{opacity:.8}\
.heat td:not(.link){padding:0;text-align:center;font-size:12px;background:color-mix(in srgb,var(--much) calc(var(--v,0)*80%),Canvas)}\
.heat td.little{background:color-mix(in srgb,var(--little) calc(var(--v,0)*80%),Canvas)}\
.heat td a{display:block;padding:3px 5px;color:inherit;text-decoration:none}.heat td a:hover{text-decoration:underline}\
.heat thead th:not(:first-child,.link){writing-mode:vertical-rl;text-align:right;min-width:0;white-space:nowrap;padding:6px 2px}\
@media(max-width:600px){.heat th:first-child{max-width:7em;overflow:hidden;text-overflow:ellipsis}}";

/// Name and text of each page.
pub fn pages(atlas: &Atlas, has_simulator: bool) -> Vec<(String, String)> {
    let mut pages = vec![("index.html".to_string(), index(atlas))];
    for (part, _) in ATLAS_PARTS {
        let networks: Vec<&BenchNetwork> =
            atlas.networks.iter().filter(|n| n.part == part).collect();
        let text = match part {
            _ if networks.is_empty() => continue,
            BenchPart::Pairs => pairs(atlas, has_simulator),
            _ => each(atlas, part, &networks, has_simulator),
        };
        pages.push((file(part), text));
    }
    if !atlas.worst.is_empty() {
        pages.push((WORST.into(), worst(atlas, has_simulator)));
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
        BenchPart::Pairs => ["Pairs: one flow beside one", "own Mbit/s"],
        BenchPart::Transfers => ["Transfers on random networks", "completion ms"],
        BenchPart::AccessTransfers => ["Transfers by access type", "completion ms"],
        _ => ["Recorded links", "goodput"],
    }
}

/// A page; links that begin with `#` lead to the simulator.
fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>\
         <link rel=icon href='data:,'><base href={SIMULATOR}>\
         <title>{title}</title><style>{STYLE}</style><h1>{title}</h1>{body}</html>\n"
    )
}

fn index(atlas: &Atlas) -> String {
    let version = &atlas.version;
    let tables = ["scores", "figures", "pairs", "worst"].map(|name| {
        format!("{name}: <a href={name}.csv>CSV</a>, <a href={name}.parquet>Parquet</a>")
    });
    let mut body = format!(
        "<p>Every protocol is simulated on the same networks, drawn at random from seed {} (commit {}). Values are \
         with 95% intervals. Data: {}; described by <a href=datapackage.json>datapackage.json</a>.</p><nav>",
        version.seed,
        escaped(&version.commit),
        tables.join("; ")
    );
    let mut sections = String::new();
    for (part, _) in ATLAS_PARTS {
        let rows = scores::of(part, &atlas.networks);
        if rows.is_empty() {
            continue;
        }
        let count = atlas.networks.iter().filter(|n| n.part == part).count();
        // A bottleneck of pairs is a network with each protocol beside, and with none.
        let each = if part == BenchPart::Pairs { version.protocols.len() + 1 } else { 1 };
        let head = format!("<a href={}>{} ({})</a>", file(part), title(part)[0], count / each);
        body += &head;
        let _ = write!(sections, "<h2>{head}</h2>{}{}", explained(&rows), table(atlas, &rows));
    }
    if !atlas.worst.is_empty() {
        let _ = write!(body, "<a href={WORST}>The worst networks</a>");
    }
    document("Atlas of congestion controllers", &format!("{body}</nav>{sections}"))
}

/// The meanings of the scores.
fn explained(scores: &[Score]) -> String {
    let mut text = String::from("<details open><summary>What the columns mean</summary><dl>");
    for [part, meaning] in meanings::of(scores) {
        let part = part.trim_end_matches([':', '/', ' ']);
        let _ = write!(text, "<dt>{part}<dd>{meaning}");
    }
    text + "</dl></details>"
}

/// A row for each protocol, a column for each score.
fn table(atlas: &Atlas, scores: &[Score]) -> String {
    let mut text = String::from("<table><thead><tr><th>protocol");
    for score in scores {
        let _ = write!(text, "<th>{} <small>({})</small>", escaped(&score.label), score.keys.len());
    }
    text += "</thead>";
    for protocol in atlas.columns() {
        let _ = write!(text, "<tr><th scope=row>{}", escaped(protocol));
        for score in scores {
            text += "<td>";
            text += &written(score.estimate(&atlas.measured.results, protocol), score.digits);
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
    let is_listed = |protocol: &String| has_simulator && !atlas.outsiders.contains(protocol);
    let mut body = format!("<p><a href=index.html>Atlas</a>. Figures: {figure}. ");
    body += match (has_simulator, part) {
        (false, _) => "",
        (true, BenchPart::Traces) => {
            "A cell opens the link in the simulator: drop the recorded file of its name there."
        }
        (true, _) => {
            "A cell opens its runs in the simulator, with the digest that <a href=figures.csv>figures.csv</a> lists."
        }
    };
    body += "</p><table class=heat><thead><tr><th>network";
    for protocol in atlas.columns() {
        let _ = write!(body, "<th>{}", escaped(protocol));
    }
    body += "<th class=link>link</thead>";
    for network in networks {
        let _ = write!(body, "<tr><th scope=row>{}", escaped(&network.name));
        let of_network = atlas.measured.results.get(&network.key());
        for protocol in atlas.columns() {
            let value = of_network.and_then(|r| r.get(protocol)?.get(figure)).copied();
            let is_share = figure == "goodput";
            let digits = if is_share { 2 } else { 1 };
            let shown = value.map_or("-".into(), |x| format!("{x:.digits$}"));
            let heat = value.filter(|_| is_share).map_or(0.0, |x| x.clamp(0.0, 1.0));
            let options = options(network, protocol, atlas.version.seed);
            body += &cell(&shown, heat, "", is_listed(protocol).then_some(&options[..]));
        }
        let _ = write!(body, "<td class=link>{}", escaped(&without_folder(&network.describe())));
    }
    document(name, &(body + "</table>"))
}

/// A cell whose colour shows `heat`, from 0 to 1, and which opens a question in the simulator.
fn cell(shown: &str, heat: f64, class: &str, options: Option<&[(&str, String)]>) -> String {
    let style = if heat > 0.0 { format!(" style=--v:{heat:.2}") } else { String::new() };
    let class = if class.is_empty() { String::new() } else { format!(" class={class}") };
    match options {
        Some(options) => format!("<td{class}{style}><a href='#{}'>{shown}</a>", fragment(options)),
        None => format!("<td{class}{style}>{shown}"),
    }
}

/// Selects one column of the matrix, with its explanation.
struct PairFigure {
    title: &'static str,
    says: &'static str,
    of: fn(&PairFigures) -> f64,
}

const PAIR_FIGURES: [PairFigure; 3] = [
    PairFigure {
        title: "Share",
        says: "Percent of the goodput of both that the row's flow has beside the column's.",
        of: |pair| pair.share,
    },
    PairFigure {
        title: "Harm",
        says: "Percent of its goodput alone that the column's flow loses beside the row's.",
        of: |pair| pair.harm,
    },
    PairFigure {
        title: "Starvation",
        says: "Percent of the bottlenecks on which the column's flow has less than a tenth of an equal share.",
        of: |pair| pair.starved,
    },
];

/// A matrix for each figure of pairs.
fn pairs(atlas: &Atlas, has_simulator: bool) -> String {
    let all = matrix(atlas);
    let protocols: Vec<&String> = atlas.columns().collect();
    let networks = atlas.networks.iter().filter(|n| n.part == BenchPart::Pairs).count();
    let mut body = format!(
        "<p><a href=index.html>Atlas</a>. Means of one flow beside another on {} random bottlenecks, alone for harm. ",
        networks / (atlas.version.protocols.len() + 1)
    );
    if has_simulator {
        body += "A cell opens the bottleneck on which the row does the column most harm.";
    }
    body += "</p>";
    for PairFigure { title, says, of } in PAIR_FIGURES {
        let _ =
            write!(body, "<h2>{title}</h2><p>{says}</p><table class=heat><thead><tr><th>beside");
        for protocol in &protocols {
            let _ = write!(body, "<th>{}", escaped(protocol));
        }
        body += "</thead>";
        for row in all.chunk_by(|a, b| a.protocol == b.protocol) {
            let _ = write!(body, "<tr><th scope=row>{}", escaped(&row[0].protocol));
            for pair in row {
                let value = of(pair);
                let is_share = title == "Share";
                let heat = if is_share { 2.0 * (value - 0.5).abs() } else { value };
                let class = if is_share && value < 0.5 { "little" } else { "" };
                let address =
                    format!("{}/{}/{}", BenchPart::Pairs.name(), atlas.version.seed, pair.worst);
                let options = [("network", address), ("protocols", pair.simulated.clone())];
                let shown = format!("{:.0}", 100.0 * value);
                let is_outside = |name: &String| atlas.outsiders.contains(name);
                let is_listed = !is_outside(&pair.protocol) && !is_outside(&pair.beside);
                let opens = has_simulator && is_listed;
                body += &cell(&shown, heat, class, opens.then_some(&options[..]));
            }
        }
        body += "</table>";
    }
    document("Pairs of congestion controllers", &body)
}

/// A row for each protocol, the worst first.
fn worst(atlas: &Atlas, has_simulator: bool) -> String {
    let mut sorted: Vec<&WorstNetwork> = atlas.worst.iter().collect();
    sorted.sort_by(|a, b| b.badness.total_cmp(&a.badness));
    let mut body = format!(
        "<p><a href=index.html>Atlas</a>. The network on which each protocol has least of the goodput that an omniscient \
         sender has: the worst that <code>narrows attack</code> finds with {} tries and runs of {} s, in its simplest \
         form. A search with more tries finds worse ones.</p>\
         <table><thead><tr><th>protocol<th>times less<th class=link>network</thead>",
        atlas.budget,
        worst::SECONDS
    );
    for found in sorted {
        let protocol = escaped(&found.protocol);
        let network = escaped(&found.network);
        let options: Vec<(&str, String)> =
            found.options.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let network = match has_simulator {
            true => format!("<a href='#{}'>{network}</a>", fragment(&options)),
            false => network,
        };
        let badness = found.badness;
        let _ =
            write!(body, "<tr><th scope=row>{protocol}<td>{badness:.2}<td class=link>{network}");
    }
    document("The worst networks", &(body + "</table>"))
}

/// The simulator's question for a cell; a network without competitors has CUBIC for comparison.
fn options(network: &BenchNetwork, protocol: &str, seed: u64) -> Vec<(&'static str, String)> {
    let is_alone = network.neighbours.is_none() && protocol != "cubic";
    let protocols = if is_alone { format!("{protocol},cubic") } else { protocol.into() };
    if network.part == BenchPart::Traces {
        let mut options = network.similar(&protocols).options();
        options[0].1 = without_folder(&options[0].1);
        return options;
    }
    vec![("network", network.address(seed)), ("protocols", protocols)]
}

/// A link's text with the name alone of a recorded file.
pub fn without_folder(text: &str) -> String {
    match text.split_once("trace=") {
        Some((before, file)) if !file.starts_with("cellular(") => {
            let name = file.rsplit('/').next().unwrap_or(file);
            format!("{before}trace={name}")
        }
        _ => text.into(),
    }
}

fn fragment(options: &[(&str, String)]) -> String {
    let fields: Vec<String> = options.iter().map(|(k, v)| format!("{k}={}", encoded(v))).collect();
    fields.join("&amp;")
}

/// Percent-encoded, but for the characters that a fragment may hold as they are.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b".-_,/():".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
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

    #[test]
    fn recorded_links_show_the_name_of_the_file() {
        let link = |trace: &str| without_folder(&format!("12Mbit/s,30ms,trace={trace}"));
        assert_eq!(link("/a/b/drive.down"), "12Mbit/s,30ms,trace=drive.down");
        assert_eq!(link("cellular(mean=1Mbit/s)"), "12Mbit/s,30ms,trace=cellular(mean=1Mbit/s)");
    }
}
