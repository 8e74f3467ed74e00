use super::experiment::{self, Claim};
use super::interval::{digits, shown};
use super::judge::{self, Verdict};
use super::measured::Measured;
use super::models::{mathis, pftk, slow_start_time};
use super::quantity::Quantity;
use super::run;
use super::sample::Sample;
use super::stat::{Stat, binned};
use super::{page, panel};
use narrows_lab::outcome::Estimate;
use narrows_sim::Table;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments")
}

/// A window that saws between 10 and 20 over 10 s, sampled every second.
fn table(name: &str) -> Table {
    Table {
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
    let sample = Sample { series: vec![table("main.0"), table("main.1")], ..Sample::default() };
    quantity(text).leaf(&sample)
}

#[test]
fn every_experiment_can_be_read() {
    let folders = experiment::folders(&root()).unwrap();
    assert!(folders.len() >= 7, "{folders:?}");
    for folder in &folders {
        let e = experiment::load(folder).unwrap();
        assert!(!e.file.claim.is_empty(), "{}: no claims", e.file.id);
        for (run, file) in e.runs.iter().zip(&e.file.run) {
            assert!(
                file.set.is_none() || run.at.iter().all(|x| x.is_finite()),
                "{}: at",
                e.file.id
            );
        }
    }
    let names: Vec<_> = folders.iter().map(|f| f.file_name().unwrap().to_str().unwrap()).collect();
    let place = |id| names.iter().position(|n| *n == id);
    assert!(place("s0-f3.9") < place("s0-f3.10"), "figures count: {names:?}");
}

/// The share of transfers that took longer than a level is a mean of ones and zeros over seeds; a
/// transfer that did not finish says nothing.
#[test]
fn a_measure_against_a_level_counts_runs() {
    let at = narrows_lab::measure::MEASURES.iter().position(|m| m.name == "completion_s").unwrap();
    let took = |seconds: f64| {
        let mut values = vec![f64::NAN; narrows_lab::measure::MEASURES.len()];
        values[at] = seconds;
        Sample { groups: vec![("main".into(), values)], ..Sample::default() }
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

#[test]
fn a_value_is_set_where_it_stands_or_added() {
    let text = "seeds = 2\n[[link]]\nname = \"a\"\nloss = \"1%\"\n[[link]]\nname = \"b\"\n";
    let set = |key, value| experiment::set(text, key, value);
    assert!(set("link.a.loss", "3%").unwrap().contains("name = \"a\"\nloss = \"3%\"\n"));
    assert!(set("link.b.loss", "3%").unwrap().ends_with("[[link]]\nloss = \"3%\"\nname = \"b\"\n"));
    assert!(set("duration", "9s").unwrap().starts_with("duration = \"9s\"\nseeds = 2\n"));
    assert!(set("seeds", "5").unwrap().contains("seeds = 5\n"), "a number stays one");
    assert!(set("link.c.loss", "3%").unwrap_err().contains("no [[link]] has name = \"c\""));
    assert!(set("a.b", "3%").is_err());
}

fn claim(why: &str) -> Claim {
    let text = format!(
        "text = 't'\nstated = '1'\nmeasure = {{ measure = 'jain' }}\nmin = 0.9\nmax = 1.1\nbasis = 'b'\n{why}"
    );
    toml::from_str(&text).unwrap()
}

fn measured(mean: f64, ci95: Option<f64>) -> Measured {
    Measured { value: Estimate { mean, ci95 }, seeds: 1 }
}

#[test]
fn a_verdict_needs_the_whole_interval() {
    let at = |x, half, why| judge::one(&claim(why), measured(x, Some(half))).map(|j| j.verdict);
    assert_eq!(at(1.0, 0.1, ""), Ok(Verdict::Reproduced), "its ends are the range's");
    assert_eq!(at(1.0, 0.101, ""), Ok(Verdict::Undecided));
    assert_eq!(at(1.3, 0.3, "why = 'so'"), Ok(Verdict::Undecided), "it may be in the range");
    assert_eq!(at(1.3, 0.1, "why = 'so'"), Ok(Verdict::Differs));
    assert_eq!(at(1.3, 0.3, "impossible = 'so'"), Ok(Verdict::Undecided));
    // What is printed is judged: 1 ± 0.11, where 1 ± 0.1 would be rounded.
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
        shown(Estimate { mean: 0.355_12, ci95: Some(0.0123) }, "of it"),
        "0.3551 ± 0.013 of it"
    );
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
fn a_small_experiment_runs_and_is_the_same_with_any_number_of_threads() {
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

#[test]
fn experiments_are_sorted_as_people_count() {
    let mut names = ["s2-f5", "s0-f3.10", "s0-f4.8", "ns2", "s0-f3.8"];
    names.sort_by_key(|n| super::experiment::natural(n));
    assert_eq!(names, ["ns2", "s0-f3.8", "s0-f3.10", "s0-f4.8", "s2-f5"]);
}
