use super::experiment::{self, Claim};
use super::interval::{IntervalPosition, UncertainValue, Uncertainty, digits, place, shown};
use super::judge::{self, Verdict};
use super::measured::MeasuredValue;
use super::models::{friendly, mathis, pftk, slow_start_time};
use super::quantity::Quantity;
use super::run;
use super::sample::SimulationSample;
use super::stat::{Stat, binned};
use super::{page, panel, varied};
use narrows_lab::outcome::Estimate;
use narrows_sim::SeriesTable;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments")
}

/// A window that saws between 10 and 20 over 10 s, sampled every second.
fn table(name: &str) -> SeriesTable {
    SeriesTable {
        kind: "flow",
        name: name.into(),
        group: "main".into(),
        time_s: (0..=10).map(f64::from).collect(),
        columns: vec![
            ("cwnd", vec![10.0, 15.0, 20.0, 10.0, 15.0, 20.0, 10.0, 15.0, 20.0, 10.0, f64::NAN]),
            ("acked", vec![0.0, 5.0, 5.0, 5.0, 5.0, 9.0, 9.0, 12.0, 13.0, 14.0, 15.0]),
        ],
    }
}

fn quantity(text: &str) -> Quantity {
    toml::from_str(text).expect("a quantity")
}

fn leaf(text: &str) -> f64 {
    let sample = SimulationSample {
        series: vec![table("main.0"), table("main.1")],
        ..SimulationSample::default()
    };
    quantity(text).leaf(&sample)
}

#[test]
fn every_experiment_can_be_read() {
    let folders = experiment::folders(&root()).unwrap();
    assert!(folders.len() >= 7, "{folders:?}");
    for folder in &folders {
        let e = experiment::load(folder).unwrap();
        assert!(!e.file.claim.is_empty(), "{}: no claims", e.file.id);
    }
    let names: Vec<_> = folders.iter().map(|f| f.file_name().unwrap().to_str().unwrap()).collect();
    let place = |id| names.iter().position(|n| *n == id);
    assert!(place("s0-f3.9") < place("s0-f3.10"), "figures count: {names:?}");
}

/// The share of transfers that took longer than a level is a mean of ones and zeros over seeds. An unfinished transfer
/// does not count.
#[test]
fn a_measure_against_a_level_counts_runs() {
    let at = narrows_lab::measure::MEASURES.iter().position(|m| m.name == "completion_s").unwrap();
    let took = |seconds: f64| {
        let mut values = vec![f64::NAN; narrows_lab::measure::MEASURES.len()];
        values[at] = seconds;
        SimulationSample { groups: vec![("main".into(), values)], ..SimulationSample::default() }
    };
    let slow = quantity("measure = 'completion_s'\nstat = 'fraction_above'\nlevel = 11");
    assert_eq!(slow.leaf(&took(12.0)), 1.0);
    assert_eq!(slow.leaf(&took(10.0)), 0.0);
    assert!(slow.leaf(&took(f64::NAN)).is_nan());
    assert_eq!(quantity("measure = 'completion_s'").leaf(&took(12.0)), 12.0);
}

#[test]
fn statistics_of_a_column() {
    let cwnd = |stat: &str| leaf(&format!("column = 'cwnd'\ntable = 'main.0'\n{stat}"));
    for (stat, value) in [
        ("stat = 'min'", 10.0),
        ("stat = 'max'", 20.0),
        ("stat = 'mean'", 14.5),
        ("stat = 'median'", 15.0),
        ("stat = 'mean'\nfrom = 1\nto = 2", 17.5),
        ("stat = 'first'\nfrom = 1", 15.0),
        ("stat = 'last'", 10.0),
        ("stat = 'sum'\nto = 2", 45.0),
        ("stat = 'fraction_above'\nlevel = 15", 0.3),
        ("stat = 'fraction_below'\nlevel = 15", 0.4),
        ("stat = 'time_above'\nlevel = 20", 2.0),
        ("stat = 'time_below'\nlevel = 10\nfrom = 1", 3.0),
        // From the last sample that was not below.
        ("stat = 'longest_below'\nlevel = 17", 2.0),
        ("stat = 'falls'\nlevel = 0.4", 3.0),
        ("stat = 'mean_gap'\nlevel = 0.4", 3.0),
    ] {
        assert!((cwnd(stat) - value).abs() < 1e-12, "{stat}: {} is not {value}", cwnd(stat));
    }
    assert_eq!(leaf("column = 'acked'\ntable = 'main.0'\nstat = 'longest_still'"), 3.0);
    assert!((cwnd("stat = 'cov'") - 4.153_311_931_459_037 / 14.5).abs() < 1e-12);
    let both = leaf("column = 'acked'\ntable = ['main.0', 'main.1']\nstat = 'last'");
    assert_eq!(both, 30.0);
    assert!(leaf("column = 'acked'\ntable = 'nobody'").is_nan());
    assert!(Stat::Max.of(&[], &[], 0.0).is_nan());
}

#[test]
fn bins_include_their_end() {
    let time = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5];
    let (t, v) = binned(&time, &[9.0, 1.0, 3.0, 5.0, 7.0, 8.0], 1.0);
    assert_eq!((t, v), (vec![1.0, 2.0, 3.0], vec![2.0, 6.0, 8.0]));
}

#[test]
fn quantities_combine() {
    let q = quantity(
        "measure = 'goodput_bps'\nscale = 2\nover = { measure = 'jain', minus = { measure = 'share' } }",
    );
    let mut parts = Vec::new();
    q.leaves(&mut parts);
    assert_eq!(parts.len(), 3);
    assert_eq!(q.combine(&mut [6.0, 5.0, 2.0].into_iter()), 4.0);
}

/// A claim with `reason_of` has the reason and the cause of the claim that it names.
#[test]
fn a_reason_is_written_once() {
    let e = experiment::load(&root().join("s2-f5")).unwrap();
    let first = &e.file.claim[14];
    let second = &e.file.claim[15];
    assert_eq!(second.reason_of, Some(15));
    assert!(first.why.is_some() && second.why == first.why, "{:?}", second.why);
    assert_eq!(second.cause, first.cause);
}

/// An experiment may vary several values of a scenario together, parameters inside a value too.
#[test]
fn a_run_varies_several_values_together() {
    let folder = root().join("s1-f6.8");
    let keys = [("link.bottleneck.rate", "2Mbit/s"), ("link.bottleneck.aqm.max-p", "0.5")];
    let read = varied::scenario(&folder, "n4.toml", &keys).unwrap();
    let there = &read.links[0].forward;
    assert_eq!(there.rate.as_bps(), 2_000_000);
    assert!(there.aqm.as_ref().unwrap().to_string().contains("max-p=0.5"), "{:?}", there.aqm);
    let fault = varied::scenario(&folder, "n4.toml", &[("link.nobody.rate", "1Mbit/s")]);
    assert!(fault.unwrap_err().contains("unknown parameter 'link.nobody.rate'"));
    let run = |values: &str| {
        let text = format!(
            "scenario = 'n4.toml'\nset = ['link.bottleneck.rate', 'duration']\nvalues = {values}"
        );
        experiment::read_run(&folder, &toml::from_str(&text).unwrap())
    };
    let read = run("[['1Mbit/s', '30s'], ['2Mbit/s', '40s']]").unwrap();
    assert_eq!(read.at, [1e6, 2e6]);
    assert_eq!(read.plans[1].1.scenario.duration.as_secs_f64(), 40.0);
    assert!(run("['1Mbit/s']").unwrap_err().contains("not one value for each"));
    assert!(run("[['1Mbit/s', '30s'], ['1Mbit/s', '40s']]").unwrap_err().contains("two values"));
    assert!(run("[]").is_err());
    let words = "scenario = 'n4.toml'\nset = 'flows.tcp.protocol'\nvalues = ['reno', 'sack']";
    let fault = experiment::read_run(&folder, &toml::from_str(words).unwrap()).unwrap_err();
    assert!(fault.contains("'reno' is no number; give at = [...], 2 places"), "{fault}");
}

/// Choi 2006 section 6.2.2: max-p is the loss rate at which a TCP's window is each forward flow's share of the
/// BDP at 22 ms; at most 1.
#[test]
fn s1_s_red_knows_the_number_of_flows() {
    let e = experiment::load(&root().join("s1-f6.8")).unwrap();
    for run in &e.runs {
        for (name, plan) in &run.plans {
            let scenario = &plan.scenario;
            let flows: usize =
                scenario.flows.iter().filter(|f| f.from == "R").map(|f| f.count).sum();
            let bottleneck = &scenario.links[0].forward;
            let window = bottleneck.rate.as_bps() as f64 * 0.022 / 8000.0 / flows as f64;
            // Algorithm 1 counts p up in steps of 1e-5.
            let p = (1..=100_000).map(|i| f64::from(i) * 1e-5);
            let p = p.into_iter().find(|p| 1.0 / friendly(*p) < window).unwrap_or(1.0);
            let aqm = bottleneck.aqm.as_ref().unwrap();
            let max_p = aqm.args.iter().find(|a| a.0.as_deref() == Some("max-p")).unwrap();
            let max_p: f64 = max_p.1.parse().unwrap();
            assert!((max_p / p - 1.0).abs() < 0.01, "{} {name}: {max_p}", run.name);
        }
    }
}

fn claim(why: &str) -> Claim {
    let text = format!(
        "text = 't'\nstated = '1'\nmeasure = {{ measure = 'jain' }}\nmin = 0.9\nmax = 1.1\nbasis = 'b'\n{why}"
    );
    toml::from_str(&text).unwrap()
}

fn measured(mean: f64, ci95: Option<f64>) -> MeasuredValue {
    MeasuredValue { value: Estimate::symmetric(mean, ci95).into(), seeds: 1 }
}

#[test]
fn a_verdict_needs_the_whole_interval() {
    let at = |x, half, why| judge::one(&claim(why), measured(x, Some(half))).map(|j| j.verdict);
    assert_eq!(at(1.0, 0.1, ""), Ok(Verdict::Reproduced), "its ends are the range's");
    assert_eq!(at(1.0, 0.101, ""), Ok(Verdict::Undecided));
    assert_eq!(at(1.3, 0.3, "why = 'so'"), Ok(Verdict::Undecided), "it may be in the range");
    assert_eq!(at(1.3, 0.1, "why = 'so'"), Ok(Verdict::Differs));
    assert_eq!(at(1.3, 0.3, "impossible = 'so'"), Ok(Verdict::Undecided));
    // The printed value is compared: 1 ± 0.11, although 1 ± 0.1 would be rounded.
    let close = judge::one(&claim(""), measured(1.0, Some(0.1001))).unwrap();
    assert_eq!((close.ours.as_str(), close.verdict), ("1 ± 0.11", Verdict::Undecided));
}

#[test]
fn verdicts_are_honest() {
    let at = |x, why| judge::one(&claim(why), measured(x, None));
    assert_eq!(at(1.05, "").unwrap().verdict, Verdict::Reproduced);
    assert_eq!(at(1.2, "why = 'so'").unwrap().verdict, Verdict::Differs);
    assert_eq!(at(1.2, "impossible = 'so'").unwrap().verdict, Verdict::Impossible);
    assert!(at(1.2, "").unwrap_err().contains("find out and say why"));
    assert!(at(1.0, "why = 'so'").is_err(), "a stale reason");
    assert!(at(1.0, "impossible = 'so'").is_err(), "it is possible");
    assert!(at(f64::NAN, "").is_err());
}

#[test]
fn numbers_are_rounded_as_their_interval_deserves() {
    assert_eq!(digits(1234.567), "1235");
    assert_eq!(digits(0.000_123_456), "0.0001235");
    assert_eq!(digits(20.0), "20");
    assert_eq!(digits(0.0), "0");
    assert_eq!(digits(1e12), "1.000e12");
    assert_eq!(
        shown(Estimate::symmetric(0.355_12, Some(0.0123)).into(), "of it"),
        "0.3551 ± 0.013 of it"
    );
}

/// The interval of a share of runs is asymmetric. The printed interval is compared, and is no narrower than the exact
/// one.
#[test]
fn an_uneven_interval_is_printed_by_its_ends() {
    let share =
        |value, low, high| UncertainValue { value, interval: Uncertainty::Between(low, high) };
    assert_eq!(shown(share(1.0, 0.83887, 1.0), "of runs"), "1 (0.838 to 1) of runs");
    assert_eq!(shown(share(0.3, 0.1077, 0.60321), ""), "0.3 (0.107 to 0.604)");
    assert_eq!(shown(share(0.0, 0.0, 0.16113), ""), "0 (0 to 0.162)");
    assert_eq!(shown(share(2.0, 2.0, 2.0), "s"), "2 s", "all runs are the same");
    let at_least = |low| (Some(low), None);
    assert_eq!(place(at_least(0.838), share(1.0, 0.83887, 1.0)), IntervalPosition::Inside);
    assert_eq!(
        place(at_least(0.8385), share(1.0, 0.83887, 1.0)),
        IntervalPosition::Across,
        "as printed"
    );
    assert_eq!(place(at_least(0.61), share(0.3, 0.1077, 0.60321)), IntervalPosition::Outside);
}

#[test]
fn models_give_the_numbers_of_the_facts_sheet() {
    // Section 16, item 10: one flow over 400 ms with 1% loss, packets in 60 s.
    assert_eq!((mathis(0.4, 0.01) * 60.0).round(), 1837.0);
    // Section 16, item 8: RTT 56 ms, 1000-byte packets, in Mbit/s.
    assert!((pftk(0.056, 0.01, 0.2, 1.0) * 8e-3 - 1.59).abs() < 0.015);
    // Without timeouts to speak of, the two models are one.
    assert!((pftk(0.1, 1e-7, 1.0, 1.0) / mathis(0.1, 1e-7) - 1.0).abs() < 0.002);
    // 4 + 8 + 16 packets: three rounds after the opening, the last one a half.
    assert!((slow_start_time(0.1, 28.0, 4.0) - 0.35).abs() < 1e-12);
    assert!((slow_start_time(0.1, 29.0, 4.0) - 0.45).abs() < 1e-12);
}

#[test]
fn small_experiment_is_identical_for_any_number_of_threads() {
    let e = experiment::load(&root().join("s0-f3.8")).unwrap();
    let one = run::run(&e, 1).unwrap();
    let two = run::run(&e, 2).unwrap();
    assert_eq!(one.digest, two.digest);
    let judged = judge::judge(&e, &one).unwrap();
    assert!(judged.iter().all(|j| j.verdict == Verdict::Reproduced), "{judged:#?}");
    assert_eq!(panel::figure(&e, &one), panel::figure(&e, &two));
    let readme = page::readme(&e, &judged);
    assert!(
        readme.contains("![") && readme.contains("narrows run experiments/s0-f3.8/scenario.toml")
    );
}

/// The leading numbers of a text, and those that words such as "to" connect to them.
fn numbers(text: &str) -> Vec<f64> {
    let parts = text.split(|c: char| c.is_whitespace() || "()".contains(c));
    parts
        .map_while(|p| match p {
            "" | "to" | "±" | "at" | "least" | "most" => Some(None),
            _ => p.parse().ok().map(Some),
        })
        .flatten()
        .collect()
}

/// Every published claim: its result is recomputed from the digits of its row, without the code that made it.
#[test]
fn published_figure_is_compared_to_its_digits() {
    let mut rows = 0;
    for folder in experiment::folders(&root()).unwrap() {
        let Ok(text) = std::fs::read_to_string(folder.join("result.json")) else { continue };
        for j in serde_json::from_str::<Vec<judge::CheckedClaim>>(&text).unwrap() {
            let ends = numbers(&j.accepted);
            let (min, max) = match (&j.accepted, ends.as_slice()) {
                (a, _) if a.ends_with(" in at least 0.9 of runs") => (0.9, f64::INFINITY),
                (a, _) if a.ends_with(" in at least one run") => (0.001, f64::INFINITY),
                (a, _) if a.ends_with(" in at most 0.9 of runs") => (f64::NEG_INFINITY, 0.9),
                (a, [min]) if a.starts_with("at least") => (*min, f64::INFINITY),
                (a, [max]) if a.starts_with("at most") => (f64::NEG_INFINITY, *max),
                (_, [min, max]) => (*min, *max),
                other => panic!("{other:?}"),
            };
            let (low, high) = match (numbers(&j.ours).as_slice(), j.ours.contains('±')) {
                ([v, half], true) => (v - half, v + half),
                ([_, low, high], false) => (*low, *high),
                // A value with its unit, which may begin with a number: "11 Mbit/s", "0.6 of 64 kbit/s".
                ([v, ..], _) => (*v, *v),
                other => panic!("{other:?}"),
            };
            let slack = 1e-9 * low.abs().max(high.abs());
            let inside = low >= min - slack && high <= max + slack;
            let outside = high < min || low > max;
            let right = match j.verdict {
                Verdict::Reproduced => inside,
                Verdict::Differs | Verdict::Impossible => outside,
                Verdict::Undecided => !inside && !outside,
                Verdict::Given => !outside,
            };
            assert!(right, "{}: {j:#?}", folder.display());
            assert!(j.why.is_some() || !outside, "what differs says why: {j:#?}");
            rows += 1;
        }
    }
    assert!(rows > 1000, "{rows}");
}

/// If several flows share a queue without random draws, the order of simultaneous events decides whose packets are
/// dropped.
#[test]
fn no_claim_rests_on_the_order_of_simultaneous_events() {
    for folder in experiment::folders(&root()).unwrap() {
        let e = experiment::load(&folder).unwrap();
        for run in &e.runs {
            for (_, plan) in &run.plans {
                let flows: usize = plan.scenario.flows.iter().map(|f| f.count).sum();
                let name = format!("{} {}", e.file.id, run.name);
                assert!(flows < 2 || plan.draws(), "{name}: give its flows a host-delay");
            }
        }
    }
}

#[test]
fn experiments_are_sorted_as_people_count() {
    let mut names = ["s2-f5", "s0-f3.10", "s0-f4.8", "ns2", "s0-f3.8"];
    names.sort_by_key(|n| super::experiment::natural(n));
    assert_eq!(names, ["ns2", "s0-f3.8", "s0-f3.10", "s0-f4.8", "s2-f5"]);
}
