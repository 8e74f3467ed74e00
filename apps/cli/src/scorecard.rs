//! The command `narrows scorecard`.

use crate::command_line::command_line;
use crate::failure::Failure;
use crate::terminal::{STOP, TerminalBar, catch_interrupt, print, print_json, text_width};
use clap::Args;
use narrows_lab::execute::RunControl;
use narrows_lab::networks::NetworkScorecard;
use narrows_lab::options::Jobs;
use narrows_lab::options::values::seed;
use narrows_lab::options::words::quoted;
use narrows_lab::scorecard::{Judgement, NOT_SIMULATED, SECTIONS, Scorecard, ScorecardRow};
use narrows_report::{network_scorecard, output, summary};
use narrows_scenario::scenario_file;
use std::io::Write as _;
use std::path::{Path, PathBuf};

pub const HELP: &str = "\
Criteria of RFC 9743 (BCP 133) for a new congestion controller: collapse,
bufferbloat, induced losses, fairness, short flows, competitors, wireless links,
AQM, changing delays, outages, and more. The RFC sets no thresholds. Each figure
is compared with those of Reno and CUBIC on the same network with the same
random draws: 'better' is better than both, 'WORSE' worse than both, by more
than 5% and beyond the 95% interval. BBR is shown for information.

With --networks, the controller runs on random networks, on types of access
(fibre, cable, DSL, Wi-Fi, LTE, satellite and others) and in mixes with other
flows, beside CUBIC, BBRv3 and rrtp on the same networks. Goodput is over the
best of these protocols. A mix does no more harm than CUBIC if both sides keep
0.8 of an equal share, or of their rate with CUBIC in the controller's place,
and no more flows starve. Intervals are 95%. This takes about 30 CPU seconds and
writes no files.

Examples:
  narrows scorecard rrtp                       narrows-scorecard/scorecard.html
  narrows scorecard 'rrtp+vegas(alpha=2)' --section 5.2
  narrows scorecard bbr3 --seeds 20 --json
  narrows scorecard bbr3 --networks            beside others on random networks
  narrows scorecard bbr3 --networks=200 --json
  narrows scorecard mine --networks=600 --atlas    for cargo xtask atlas --add
  narrows run narrows-scorecard/scenarios/5.1.4-3.toml    one network again";

#[derive(Args)]
pub struct ScorecardArgs {
    /// The protocol, as in 'vegas(alpha=1,beta=3)'
    #[arg(value_name = "PROTOCOL")]
    pub protocol: String,
    /// Score on N random networks, N access links and N mixes, by default 40
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "40",
        value_parser = clap::value_parser!(u16).range(1..=1000),
        conflicts_with_all = ["section", "seeds", "out"]
    )]
    pub networks: Option<u16>,
    /// JSON of N networks of each part of the atlas: also transfers and pairs
    #[arg(long, requires = "networks")]
    pub atlas: bool,
    /// Only this section of the RFC: 5.2, or 7.1
    #[arg(long, value_name = "NUMBER")]
    pub section: Option<String>,
    /// Number of seeds for each network
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub seeds: u32,
    /// The first seed; with --networks, the seed of the networks
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = seed())]
    pub seed: u64,
    #[command(flatten)]
    pub jobs: Jobs,
    /// Folder for scorecard.html, scorecard.md, scorecard.json, scenarios/
    #[arg(long, value_name = "DIR", default_value = "narrows-scorecard")]
    pub out: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// `narrows scorecard`.
pub fn scorecard(a: &ScorecardArgs) -> Result<(), Failure> {
    match a.networks {
        Some(networks) => on_networks(a, networks.into()),
        None => by_criteria(a),
    }
}

/// Scores on random networks.
fn on_networks(a: &ScorecardArgs, networks: usize) -> Result<(), Failure> {
    let asked = NetworkScorecard { protocol: a.protocol.clone(), networks, seed: a.seed };
    let scores = with_progress(a, "random networks", |control| match a.atlas {
        true => asked.for_atlas(control),
        false => asked.measure(control),
    })?;
    if a.json || a.atlas {
        let mut json = network_scorecard::json(&asked, &scores);
        json["command_line"] = command_line().into();
        return print_json(&json);
    }
    print(&network_scorecard::table(&scores))
}

/// Measures with a progress bar, until Ctrl-C.
fn with_progress<T>(
    a: &ScorecardArgs,
    title: &str,
    measure: impl FnOnce(&RunControl<'_>) -> Result<Option<T>, String>,
) -> Result<T, Failure> {
    catch_interrupt();
    let bar = TerminalBar::new(format!("{title} for {}", a.protocol));
    let progress = |fraction| bar.tell(fraction);
    let control = RunControl { stop: &STOP, progress: &progress, jobs: a.jobs.count() };
    let measured = measure(&control);
    bar.finish();
    measured.map_err(Failure::Input)?.ok_or(Failure::Interrupted)
}

/// The criteria of RFC 9743.
fn by_criteria(a: &ScorecardArgs) -> Result<(), Failure> {
    output::check_folder(&a.out).map_err(Failure::Input)?;
    let asked = Scorecard {
        protocol: a.protocol.clone(),
        seeds: a.seeds,
        seed: a.seed,
        section: a.section.clone(),
    };
    let rows = with_progress(a, "RFC 9743", |control| asked.measure(control))?;
    let names = names(&rows);
    write(&asked, &rows, &names, &a.out)?;
    if a.json {
        return print_json(&json(&asked, &rows, &names));
    }
    let mut text = table(&asked, &rows);
    text += &format!("\n{}\n", summary::wrapped(&verdict(&rows), text_width()));
    let files = ["scorecard.html", "scorecard.md"].map(|f| a.out.join(f).display().to_string());
    text += &format!("\n{}\n", files.join("\n"));
    print(&text)
}

/// A file name for each network: its section, and its number within it.
fn names(rows: &[ScorecardRow]) -> Vec<String> {
    let mut counted = std::collections::BTreeMap::new();
    rows.iter()
        .map(|r| {
            let number = counted.entry(r.criterion.section).or_insert(0);
            *number += 1;
            format!("{}-{number}", r.criterion.section)
        })
        .collect()
}

fn write(
    a: &Scorecard,
    rows: &[ScorecardRow],
    names: &[String],
    out: &Path,
) -> Result<(), Failure> {
    let folder = out.join("scenarios");
    std::fs::create_dir_all(&folder).map_err(|e| {
        let why = narrows_scenario::text_file::plain(&e);
        Failure::Outside(format!("--out {}: cannot create the folder: {why}", out.display()))
    })?;
    let keep = |path: PathBuf, text: String| {
        output::whole(&path, |f| f.write_all(text.as_bytes())).map(|_| ()).map_err(Failure::Outside)
    };
    for (row, name) in rows.iter().zip(names) {
        keep(folder.join(format!("{name}.toml")), scenario_file::text(&row.scenario))?;
    }
    let text = serde_json::to_string_pretty(&json(a, rows, names)).unwrap_or_default() + "\n";
    keep(out.join("scorecard.json"), text)?;
    let html = narrows_report::scorecard::html(a, rows, names, &verdict(rows), &command_line());
    keep(out.join("scorecard.html"), html)?;
    keep(out.join("scorecard.md"), page(a, rows, names))
}

fn of_section<'a>(
    rows: &'a [ScorecardRow],
    section: &'a str,
) -> impl Iterator<Item = (usize, &'a ScorecardRow)> {
    rows.iter().enumerate().filter(move |(_, r)| r.criterion.section == section)
}

fn count(rows: &[ScorecardRow], judgement: Judgement) -> usize {
    let entries = rows.iter().flat_map(|r| &r.entries);
    entries.filter(|e| e.judgement == judgement).count()
}

fn verdict(rows: &[ScorecardRow]) -> String {
    let all: usize = rows.iter().map(|r| r.entries.len()).sum();
    let mut text = format!(
        "Of {all} figures {} are better than Reno's and CUBIC's, {} are worse than both",
        count(rows, Judgement::Better),
        count(rows, Judgement::Worse)
    );
    let worse: Vec<&str> = SECTIONS
        .iter()
        .filter(|(number, _)| {
            let mut entries = of_section(rows, number).flat_map(|(_, r)| &r.entries);
            entries.any(|e| e.judgement == Judgement::Worse)
        })
        .map(|(number, _)| *number)
        .collect();
    if !worse.is_empty() {
        text += &format!(" (sections {})", worse.join(", "));
    }
    text + "."
}

/// The table for the terminal.
fn table(a: &Scorecard, rows: &[ScorecardRow]) -> String {
    let mut text = format!("{:<30}{:>13}{:>13}{:>13}{:>13}\n", "", "this", "Reno", "CUBIC", "BBR");
    text = text.replacen("this", &format!("{:>4}", shortened(&a.protocol)), 1);
    for (number, title) in SECTIONS {
        if of_section(rows, number).next().is_none() {
            continue;
        }
        text += &format!("\n{number} {title}\n");
        for (_, row) in of_section(rows, number) {
            text += &format!(" {}\n", row.criterion.what);
            for e in &row.entries {
                text += &format!("   {:<27}", e.figure.title);
                for x in e.means {
                    text += &format!("{:>13}", e.figure.text(x));
                }
                let shown = !matches!(e.judgement, Judgement::Alike);
                text += &format!("  {}\n", if shown { e.judgement.name() } else { "" });
            }
        }
    }
    text.lines().map(|l| l.trim_end().to_string() + "\n").collect()
}

fn shortened(name: &str) -> String {
    name.chars().take(12).collect()
}

/// The page in Markdown, for attachment to a draft.
fn page(a: &Scorecard, rows: &[ScorecardRow], names: &[String]) -> String {
    let y = a.yardsticks();
    let mut text = format!(
        "# {} by the criteria of RFC 9743 (BCP 133)\n\n\
         Simulated, means over {} seeds, `{}`. Beside it, in its place on the same networks with the same \
         random draws: Reno (`{}`), CUBIC (`{}`), and BBR (`{}`), by which nothing is judged. **Better** is better \
         than both Reno and CUBIC, **WORSE** worse than both, by more than 5% and beyond the 95% interval \
         of the differences; the rest is like one of them or between them.\n\n{}\n",
        a.protocol,
        a.seeds,
        command_line(),
        y.reno,
        y.cubic,
        y.bbr,
        verdict(rows)
    );
    for (number, title) in SECTIONS {
        if of_section(rows, number).next().is_none() {
            continue;
        }
        text +=
            &format!("\n## {number} {title}\n\n| | | {} | Reno | CUBIC | BBR | |\n", a.protocol);
        text += "|---|---|---|---|---|---|---|\n";
        for (i, row) in of_section(rows, number) {
            let mut what = format!("[{}](scenarios/{}.toml)", row.criterion.what, names[i]);
            for e in &row.entries {
                let cells: Vec<String> = e.means.iter().map(|x| e.figure.text(*x)).collect();
                let judged = match e.judgement {
                    Judgement::Better => "**better**",
                    Judgement::Worse => "**WORSE**",
                    other => other.name(),
                };
                text += &format!(
                    "| {what} | {} | {} | {judged} |\n",
                    e.figure.title,
                    cells.join(" | ")
                );
                what = String::new();
            }
        }
    }
    if a.section.is_none() {
        text += "\n## Not simulated\n\n| | | |\n|---|---|---|\n";
        for (number, title, why) in NOT_SIMULATED {
            text += &format!("| {number} | {title} | {why} |\n");
        }
    }
    let example = names.first().map_or("", String::as_str);
    text += &format!(
        "\nA network again: `narrows run {}`.\n",
        quoted(&format!("scenarios/{example}.toml"))
    );
    text
}

fn json(a: &Scorecard, rows: &[ScorecardRow], names: &[String]) -> serde_json::Value {
    let y = a.yardsticks();
    let criteria: Vec<serde_json::Value> = (rows.iter().zip(names))
        .map(|(row, name)| {
            let figures: Vec<serde_json::Value> = (row.entries.iter())
                .map(|e| {
                    serde_json::json!({
                        "title": e.figure.title,
                        "measure": e.figure.measure,
                        "of_the_others": e.figure.group == 1,
                        "per_second": e.figure.per_second,
                        "more_is_better": e.figure.more_is_better(),
                        "value": e.means[0],
                        "reno": e.means[1],
                        "cubic": e.means[2],
                        "bbr": e.means[3],
                        "judgement": e.judgement.name().to_lowercase(),
                    })
                })
                .collect();
            serde_json::json!({
                "section": row.criterion.section,
                "network": row.criterion.what,
                "scenario": format!("scenarios/{name}.toml"),
                "figures": figures,
            })
        })
        .collect();
    serde_json::json!({
        "command": "scorecard",
        "command_line": command_line(),
        "protocol": a.protocol,
        "reno": y.reno,
        "cubic": y.cubic,
        "bbr": y.bbr,
        "seeds": a.seeds,
        "seed": a.seed,
        "better": count(rows, Judgement::Better),
        "worse": count(rows, Judgement::Worse),
        "criteria": criteria,
    })
}
