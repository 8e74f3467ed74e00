//! `cargo xtask bench probe`: accuracy of `narrows probe` on twelve simulated links, and results of `compare` on the
//! estimated links.

use crate::flags::Flags;
use crate::real::spread;
use narrows_base::Duration;
use narrows_lab::compare::Question;
use narrows_link::LinkConfig;
use narrows_probe::simulated::{CheckedEstimate, JudgedLink, LINKS, SimulatedPath, judge};
use narrows_probe::{FULL_BYTES, PathEstimate};
use narrows_scenario::BottleneckLink;
use std::fmt::Write as _;
use std::path::Path;

const PAGE: &str = "docs/probe.md";
const PROTOCOLS: [&str; 5] = ["reno-1990", "cubic", "bbr", "vegas", "rrtp"];
/// Largest accepted difference of `compare`'s results.
const ALIKE: f64 = 0.1;
/// Of a comparison, and its seeds.
const SECONDS: u64 = 30;
const COMPARED: u32 = 5;

/// `bench probe`.
///
/// # Errors
/// An unknown flag, a page that cannot be written.
pub fn run(args: &[String]) -> Result<(), String> {
    let (mut seeds, mut write) = (10, false);
    let mut flags = Flags::new(args);
    while let Some(flag) = flags.advance() {
        match flag {
            "--seeds" => seeds = flags.number(1..=100)?,
            "--write" => write = true,
            _ => return flags.unknown("--seeds N, --write"),
        }
    }
    let (mut accuracy, mut compared) = (String::new(), String::new());
    for link in &LINKS {
        let row = ProbeRow::measure(link, seeds)?;
        row.accuracy(&mut accuracy);
        row.compared(&mut compared)?;
        eprintln!("{}", link.name);
    }
    let heads: String = PROTOCOLS.iter().map(|p| format!(" {p} |")).collect();
    let lines = "---|".repeat(PROTOCOLS.len() + 1);
    let text = format!(
        "| link | base RTT | rate there, back | loss there, back (points) | buffer there, back | intervals that hold \
         | MB sent |\n|---|---|---|---|---|---|---|\n{accuracy}\n\
         Goodput by `compare` on the link that a probe found, over that on the true one, {SECONDS} s each: the median of \
         {seeds} probes, and where not all of them are within a tenth, how many are.\n\n| link |{heads}\n|{lines}\n{compared}"
    );
    print!("{text}");
    match write {
        true => crate::section::write(PAGE, "bench probe", &format!("\n{text}\n")),
        false => Ok(()),
    }
}

/// Estimates of a link, with every seed.
struct ProbeRow {
    link: JudgedLink,
    seeds: u32,
    found: Vec<(PathEstimate, Vec<CheckedEstimate>)>,
}

impl ProbeRow {
    fn measure(link: &JudgedLink, seeds: u32) -> Result<ProbeRow, String> {
        let wrong = |e: narrows_base::SpecError| format!("{}: {e}", link.name);
        let parsed = BottleneckLink::parse(link.link, Path::new("")).map_err(wrong)?;
        let rtt = parsed.base_rtt();
        let config = |way: &narrows_scenario::link_direction::LinkDirection| -> LinkConfig {
            way.config(rtt, FULL_BYTES, false)
        };
        let (up, down) = (config(&parsed.forward), config(&parsed.back));
        let mut found = Vec::new();
        for seed in 1..=u64::from(seeds) {
            let mut path = SimulatedPath::new(&up, &down, seed).map_err(wrong)?;
            let estimate = path.probe(true).ok_or_else(|| format!("{}: no estimate", link.name))?;
            found.push((estimate, judge([&up, &down], link.loss, &estimate)));
        }
        Ok(ProbeRow { link: *link, seeds, found })
    }

    /// The largest error of any seed, in each direction that there is.
    fn worst(&self, what: &str, error: impl Fn(&CheckedEstimate) -> f64) -> Vec<f64> {
        let of = |judged: &[CheckedEstimate]| -> Vec<f64> {
            judged.iter().filter(|j| j.what == what).map(&error).collect()
        };
        let mut worst: Vec<f64> = Vec::new();
        for (_, judged) in &self.found {
            for (i, error) in of(judged).into_iter().enumerate() {
                match worst.get_mut(i) {
                    Some(most) => *most = most.max(error),
                    None => worst.push(error),
                }
            }
        }
        worst
    }

    fn accuracy(&self, out: &mut String) {
        let share = |j: &CheckedEstimate| 100.0 * (j.found.value / j.truth - 1.0).abs();
        let join = |all: Vec<f64>, unit: &str, digits: usize| {
            let each: Vec<String> = all.iter().map(|x| format!("{x:.digits$}{unit}")).collect();
            each.join(", ")
        };
        let rtt = self.worst("rtt", |j| 1e3 * (j.found.value - j.truth).abs());
        let rate = self.worst("rate", share);
        let loss = self.worst("loss", |j| 100.0 * (j.found.value - j.truth).abs());
        let bound = |j: &CheckedEstimate| j.found.high.is_infinite();
        let bounds = self.found.iter().any(|f| f.1.iter().any(|j| j.what == "buffer" && bound(j)));
        let buffer = self.worst("buffer", |j| if bound(j) { 0.0 } else { share(j) });
        let buffer = if buffer.is_empty() { "-".into() } else { join(buffer, "%", 0) };
        let mark = if bounds { " (some bounds)" } else { "" };
        let all: Vec<&CheckedEstimate> = self.found.iter().flat_map(|f| &f.1).collect();
        let held = all.iter().filter(|j| j.held).count();
        let missed = all.iter().filter(|j| !j.near).count();
        let missed = if missed > 0 { format!(", **{missed} too far**") } else { String::new() };
        let sent = self.found.iter().map(|f| f.0.up.sent_bytes + f.0.down.sent_bytes).max();
        let _ = writeln!(
            out,
            "| {}: `{}` | {} | {} | {} | {buffer}{mark} | {held} of {}{missed} | {:.1} |",
            self.link.name,
            self.link.link,
            join(rtt, " ms", 2),
            join(rate, "%", 1),
            join(loss, "", 2),
            all.len(),
            sent.unwrap_or(0) as f64 * 1e-6,
        );
    }

    /// For each protocol the median ratio of all seeds' links, and how many of them are alike.
    fn compared(&self, out: &mut String) -> Result<(), String> {
        let _ = write!(out, "| {} |", self.link.name);
        for protocol in PROTOCOLS {
            let truth = self.goodput(self.link.link, protocol, COMPARED.max(self.seeds))?;
            let each = self.found.iter().map(|(estimate, _)| {
                Ok(self.goodput(&estimate.link(), protocol, COMPARED)? / truth)
            });
            let ratios = each.collect::<Result<Vec<f64>, String>>()?;
            let alike = ratios.iter().filter(|r| (*r - 1.0).abs() <= ALIKE).count();
            let middle = spread(ratios.iter().copied()).0;
            let all = alike == ratios.len();
            let text = if all { String::new() } else { format!(" (**{alike}**)") };
            let _ = write!(out, " {middle:.3}{text} |");
        }
        out.push('\n');
        Ok(())
    }

    /// Bytes, on average over the seeds of a comparison.
    fn goodput(&self, link: &str, protocol: &str, seeds: u32) -> Result<f64, String> {
        let question = Question {
            link: link.into(),
            protocols: protocol.into(),
            duration: Duration::from_secs(SECONDS),
            seeds,
            ..Question::default()
        };
        let wrong = |e: narrows_base::SpecError| format!("{link}: {e}");
        let (scenario, _) = question.scenario(Path::new("")).map_err(wrong)?;
        let plan = narrows_scenario::Plan::new(scenario).map_err(wrong)?;
        let mut sum = 0.0;
        for seed in 1..=u64::from(seeds) {
            let network = plan.network(0, seed, false);
            let result = narrows_sim::run(&network, &mut |_| true).map_err(|e| e.to_string())?;
            let flows = result.groups.first().map(|g| &g.flows[..]).unwrap_or_default();
            sum += flows.iter().map(|f| f.goodput_bytes as f64).sum::<f64>();
        }
        Ok(sum / f64::from(seeds))
    }
}
