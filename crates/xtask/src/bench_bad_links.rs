//! `cargo xtask bench bad-links`: quality of a controller on links with loss, delay, reordering and changes, in
//! simulation: medians over seeds, each beside its goal.

mod cells;
mod figure;
mod measured;
mod page;

use crate::all_cores::{self, SeedRun};
use crate::flags::Flags;
use crate::real::quantile;
use crate::section::{keep, read};
use cells::{BadLinkCell, Goal};
use figure::GoalFigure;
use narrows_lab::compare;
use narrows_scenario::Plan;
use narrows_scenario::access_link::AccessLink;
use narrows_scenario::scenario::{GroupProtocol, OwnLink, Scheduled};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const KNOWN: &str = "--filter 'TEXT|TEXT', --protocols A,B, --seeds N, --quick, --each, --json FILE, --before FILE, --write";

struct BadLinksOptions {
    filter: Vec<String>,
    protocols: Vec<String>,
    seeds: u64,
    quick: bool,
    each: bool,
    json: Option<String>,
    before: Option<String>,
    write: bool,
}

impl BadLinksOptions {
    fn read(args: &[String]) -> Result<BadLinksOptions, String> {
        let mut ask = BadLinksOptions {
            filter: Vec::new(),
            protocols: vec!["rrtp".into()],
            seeds: 10,
            quick: false,
            each: false,
            json: None,
            before: None,
            write: false,
        };
        let mut flags = Flags::new(args);
        while let Some(flag) = flags.advance() {
            match flag {
                "--filter" => {
                    let words = flags.value()?.split('|');
                    ask.filter = words.map(|w| w.trim().to_string()).collect();
                }
                "--protocols" => ask.protocols = flags.list()?,
                "--seeds" => ask.seeds = flags.number(1..=1000)?,
                "--quick" => ask.quick = true,
                "--each" => ask.each = true,
                "--json" => ask.json = Some(flags.value()?.into()),
                "--before" => ask.before = Some(flags.value()?.into()),
                "--write" => ask.write = true,
                _ => return flags.unknown(KNOWN),
            }
        }
        Ok(ask)
    }
    fn chosen(&self, cell: &BadLinkCell) -> bool {
        let name = format!("{}: {}", cell.table, cell.name);
        (self.filter.is_empty() || self.filter.iter().any(|f| name.contains(f)))
            && (!self.quick || cell.quick)
    }
}

/// Medians of the figures of a cell: by protocol, then by figure's name.
pub type Medians = BTreeMap<String, BTreeMap<String, f64>>;

/// A cell with its measured figures.
pub struct BadLinksRow {
    pub cell: BadLinkCell,
    pub medians: Medians,
}

fn median_of(medians: &Medians, who: &str, figure: GoalFigure) -> f64 {
    medians.get(who).and_then(|m| m.get(figure.name())).copied().unwrap_or(f64::NAN)
}

/// Whether a goal is met, and its value in numbers, given the rivals' results.
pub fn judge(goal: &Goal, protocol: &str, medians: &Medians) -> (f64, String, bool) {
    let figure = goal.figure();
    let of = |who: &str| median_of(medians, who, figure);
    let value = of(protocol);
    let text = |x| figure.text(x);
    let (bound, met) = match goal {
        Goal::AtLeast(_, least) => (format!("≥ {}", text(*least)), value >= *least),
        Goal::AtMost(_, most) => (format!("≤ {}", text(*most)), value <= *most),
        Goal::Between(_, least, most) => {
            (format!("{} to {}", text(*least), text(*most)), (*least..=*most).contains(&value))
        }
        Goal::OfBest(_, part, rivals) => {
            let best = rivals.iter().map(|r| of(r)).fold(f64::NEG_INFINITY, f64::max);
            (format!("≥ {}", text(part * best)), value >= part * best)
        }
        Goal::OfLeast(_, times, rivals) => {
            let least = rivals.iter().map(|r| of(r)).fold(f64::INFINITY, f64::min);
            (format!("≤ {}", text(times * least)), value <= times * least)
        }
        Goal::AsEqual(rivals) => {
            let of = |who: &str| median_of(medians, who, GoalFigure::Inequality);
            let most = rivals.iter().map(|r| of(r)).fold(f64::INFINITY, f64::min);
            (format!("0.5 ± {}", text(most)), of(protocol) <= most)
        }
    };
    (value, bound, met)
}

/// `bench bad-links`.
///
/// # Errors
/// An unknown flag, a link that does not parse, a file that cannot be written.
pub fn run(args: &[String]) -> Result<(), String> {
    let ask = BadLinksOptions::read(args).map_err(|e| format!("bench bad-links: {e}"))?;
    let chosen: Vec<BadLinkCell> = cells::all()?.into_iter().filter(|c| ask.chosen(c)).collect();
    if chosen.is_empty() {
        return Err("bench bad-links: no cell has that in its name".into());
    }
    let rows = measure(&ask, chosen)?;
    let before = ask.before.as_deref().map(read::<page::Before>).transpose()?;
    print!("{}", page::text(&rows, &ask.protocols, before.as_ref()));
    if let Some(file) = &ask.json {
        keep(file, &page::kept(&rows))?;
    }
    if ask.write {
        page::write(&rows, &ask.protocols, before.as_ref(), ask.seeds)?;
    }
    Ok(())
}

fn plan(cell: &BadLinkCell, protocol: &str, under_test: bool) -> Result<Plan, String> {
    let spec = match (under_test, cell.told) {
        (true, told) if !told.is_empty() => format!("{protocol}({told})"),
        _ => protocol.to_string(),
    };
    let mut question = compare::Question { protocols: spec, ..cell.question.clone() };
    let neighbour = &cell.neighbour;
    if let (false, Some(beside)) = (under_test, neighbour.beside_rivals) {
        question.against = Some(beside.into());
    }
    let wrong = |e: narrows_base::SpecError| format!("{}: {e}", cell.name);
    let (mut scenario, _) = question.scenario(Path::new("")).map_err(wrong)?;
    if let [under_test, others, ..] = &mut scenario.flows[..] {
        under_test.start = cell.start;
        others.start = neighbour.start;
        if neighbour.same {
            others.speaks = GroupProtocol::Each;
        }
        if let Some(text) = neighbour.access {
            let side = AccessLink::parse(text).map_err(wrong)?;
            others.access = Some(OwnLink { side, stream: "access" });
        }
    }
    scenario.changes = (cell.changes.iter())
        .map(|(at, change)| Scheduled {
            at: *at,
            link: "bottleneck".into(),
            change: change.clone(),
            line: 0,
        })
        .collect();
    Plan::new(scenario).map_err(wrong)
}

/// Runs every cell with every protocol and seed, on all cores.
fn measure(ask: &BadLinksOptions, chosen: Vec<BadLinkCell>) -> Result<Vec<BadLinksRow>, String> {
    let mut runs = Vec::new();
    for (case, cell) in chosen.iter().enumerate() {
        let rivals: BTreeSet<&str> = cell.goals.iter().flat_map(Goal::rivals).copied().collect();
        let tested = ask.protocols.iter().map(|p| (p.as_str(), true));
        let rivals = rivals.into_iter().filter(|r| !ask.protocols.iter().any(|p| p == r));
        for (protocol, under_test) in tested.chain(rivals.map(|r| (r, false))) {
            let plan = plan(cell, protocol, under_test)?;
            for seed in 1..=ask.seeds {
                let (label, plan) = (protocol.into(), plan.clone());
                runs.push(SeedRun { case, label, seed, cost: plan.work(), plan });
            }
        }
    }
    let all = all_cores::simulate(&mut runs, all_cores::count(), |w| {
        let cell = &chosen[w.case];
        let figures: Vec<GoalFigure> = cell.goals.iter().flat_map(Goal::figures).collect();
        let series = figures.contains(&GoalFigure::Drained);
        let mut network = w.plan.network(0, w.seed, series);
        if figures.contains(&GoalFigure::Acks) {
            // The return path is metered separately only if it is the bottleneck of some flow.
            network.links.iter_mut().take(2).for_each(|link| link.metered = true);
        }
        let run = narrows_sim::run(&network, &mut |_| true);
        let run = run.map_err(|e| format!("{}: {e}", cell.name))?;
        let of_run = figures.into_iter().map(|f| (f.name(), f.of(cell, &w.plan, &run)));
        Ok(of_run.collect::<BTreeMap<_, _>>())
    })?;
    let mut rows: Vec<BadLinksRow> =
        chosen.into_iter().map(|cell| BadLinksRow { cell, medians: Medians::new() }).collect();
    for ((case, protocol), seeds) in all {
        let row = &mut rows[case];
        let names: BTreeSet<&str> = seeds.values().flat_map(BTreeMap::keys).copied().collect();
        for figure in names {
            let mut list: Vec<(u64, f64)> = seeds.iter().map(|(s, of)| (*s, of[figure])).collect();
            list.sort_by(|a, b| a.1.total_cmp(&b.1));
            if ask.each {
                let list: Vec<String> = list.iter().map(|(s, v)| format!("{v:.4} ({s})")).collect();
                println!("{}, {protocol}, {figure}, by seed: {}", row.cell.name, list.join(" "));
            }
            let list: Vec<f64> = list.into_iter().map(|(_, value)| value).collect();
            let of_protocol = row.medians.entry(protocol.clone()).or_default();
            of_protocol.insert(figure.into(), quantile(&list, 0.5));
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::Time;

    #[test]
    fn every_cell_can_be_run_and_has_a_name_of_its_own() {
        let cells = cells::all().unwrap();
        let names: BTreeSet<String> =
            cells.iter().map(|c| format!("{}: {}", c.table, c.name)).collect();
        assert_eq!(names.len(), cells.len());
        for cell in &cells {
            plan(cell, "rrtp", true).unwrap();
            assert!(!cell.goals.is_empty(), "{}", cell.name);
        }
    }

    #[test]
    fn goals_are_judged_by_the_median_and_by_rivals_in_the_same_cell() {
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 9.0], 0.5), 2.5);
        assert_eq!(quantile(&[1.0, f64::INFINITY, f64::INFINITY], 0.5), f64::INFINITY);
        let of = |x: f64| BTreeMap::from([("Mbit/s".to_string(), x)]);
        let medians = Medians::from([("rrtp".into(), of(9.0)), ("rrtp+cubic".into(), of(10.0))]);
        let met = |goal: Goal| judge(&goal, "rrtp", &medians).2;
        assert!(met(Goal::OfBest(GoalFigure::Goodput, 0.9, &["rrtp+cubic"])));
        assert!(!met(Goal::OfBest(GoalFigure::Goodput, 0.95, &["rrtp+cubic"])));
        assert!(met(Goal::AtMost(GoalFigure::Goodput, 9.0)));
        assert!(!met(Goal::Between(GoalFigure::Goodput, 9.5, 10.0)));
        // A goal without a measured figure is not met.
        assert!(!met(Goal::AtLeast(GoalFigure::Theta, 0.0)));
    }
    /// A median of 0.5 may hide runs in which either side starves.
    #[test]
    fn equality_is_judged_run_by_run() {
        let of = |theta, inequality| {
            BTreeMap::from([("theta".into(), theta), ("inequality".into(), inequality)])
        };
        let medians =
            Medians::from([("rrtp".into(), of(0.5, 0.3)), ("cubic".into(), of(0.4, 0.1))]);
        let met = |who| judge(&Goal::AsEqual(&["cubic"]), who, &medians).2;
        assert!(met("cubic") && !met("rrtp"));
    }

    #[test]
    fn neighbours_speak_what_the_cell_says_and_the_late_begin_late() {
        let cells = cells::all().unwrap();
        let find = |name: &str| cells.iter().find(|c| c.name == name).unwrap();
        let beside = |name: &str, protocol: &str, under_test| {
            plan(find(name), protocol, under_test).unwrap().protocol(1, 0).label().to_string()
        };
        assert_eq!(beside("1+1 bbr, 10M, 16bdp", "rrtp", true), "bbr");
        assert_eq!(beside("1+1 bbr, 10M, 16bdp", "cubic", false), "cubic");
        assert_eq!(beside("late beside 4 of its own, 20M", "vegas", true), "vegas");
        let starts = |name: &str| -> Vec<f64> {
            let network = plan(find(name), "rrtp", true).unwrap().network(0, 1, false);
            let flows = network.groups.iter().flat_map(|g| &g.flows);
            flows.map(|f| f.start.since(Time::ZERO).as_secs_f64()).collect()
        };
        let own = starts("late beside 4 of its own, 20M");
        assert!(own.len() == 5 && own[..4].iter().all(|s| *s < 1.0) && own[4] >= 20.0, "{own:?}");
        let tested = starts("late beside bbr, 20M");
        assert!(tested[0] >= 20.0 && tested[1] < 1.0, "{tested:?}");
    }
}
