//! Output of small sweeps: page, table, JSON, and the scenario of a single point.

use super::{json, report, shown, write};
use narrows_lab::measure::MEASURES;
use narrows_lab::sweep::{
    Base, CheckedSweep, Grid, Runs, SweepControl, SweepMetadata, SweepOutcome, journal,
};
use narrows_scenario::scenario_file::Template;
use narrows_scenario::{Plan, scenario_file};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

const FILE: &str = r#"
name = "small"
duration = "4s"
warmup = "1s"
[variables]
n = 1
[[link]]
from = "a"
to = "b"
rate = "1Mbit/s"
delay = "10ms"
queue = "10p"
loss = "1%"
[[flows]]
name = "tcp"
protocol = "sack"
count = "n"
from = "a"
to = "b"
[[flows]]
protocol = "vegas"
count = "2*n"
from = "a"
to = "b"
"#;

/// A folder of the test's own, empty.
fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("narrows-swept-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// A sweep that has been run in a folder.
fn swept(text: &str, vary: [&str; 2], seeds: u32, folder: &Path) -> (CheckedSweep, Runs) {
    let base = Base::File(Box::new(Template::parse(text, Path::new("")).unwrap()));
    let s =
        CheckedSweep::new(Grid::read(base, &vary.map(String::from)).unwrap(), 1, seeds).unwrap();
    let (known, journal) = journal::open(folder, false).unwrap();
    let mut runs = s.known(known);
    let control =
        SweepControl { stop: &AtomicBool::new(false), progress: &|_, _| (), jobs: 2, part: None };
    s.execute(&mut runs, journal, &control).unwrap();
    (s, runs)
}

fn outcome<'a>(s: &'a CheckedSweep, runs: &'a Runs) -> SweepOutcome<'a> {
    let about = SweepMetadata {
        command_line: "narrows sweep x".into(),
        base_line: "narrows sweep </script>".into(),
        measure: s.usual_measure(),
        group: s.usual_group(),
    };
    SweepOutcome::new(s, runs, about)
}

#[test]
fn the_page_and_the_table_show_the_chosen_measure() {
    let place = folder("page");
    let vary = ["link.a-b.rate=0.5Mbit/s,1Mbit/s,2Mbit/s", "n=1,3"];
    let (s, runs) = swept(FILE, vary, 2, &place);
    let o = outcome(&s, &runs);
    let page = report::html(&o);
    assert!(page.contains("narrows sweep \\u003c/script\\u003e"), "no text ends the script");
    let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let chosen = &data["measures"][data["measure"].as_u64().unwrap() as usize];
    assert_eq!(chosen["name"], "theta");
    assert_eq!(chosen["mean"][0].as_array().unwrap().len(), 6);
    let trace = &data["traces"]["points"]["5"];
    assert_eq!(trace["lines"].as_array().unwrap().len(), 4, "two groups and two of the queue");
    assert!(trace["lines"][1].as_array().unwrap().len() > 100);
    let text = shown::table(&o, None);
    assert!(text.contains("link.a-b.rate \\ n") && text.lines().count() == 6, "{text}");
    fs::remove_dir_all(place).unwrap();
}

/// A point without random draws is marked as deterministic in each format.
#[test]
fn one_trajectory_is_called_deterministic() {
    let place = folder("deterministic");
    let text = FILE.replace("loss = \"1%\"", "loss = \"0%\"").replace("10p", "1000p");
    let (s, runs) = swept(&text, ["link.a-b.loss=0%,20%", "n=1"], 3, &place);
    let mut o = outcome(&s, &runs);
    o.measure = MEASURES.iter().position(|m| m.name == "goodput_bps").unwrap();
    let table = shown::table(&o, None);
    let says = |line: &&str| line.ends_with("deterministic");
    assert_eq!(table.lines().filter(says).count(), 1, "{table}");
    let has_interval = table.contains(['±', '−']);
    assert!(!table.contains("±0 ") && !table.contains("±0\n") && has_interval, "{table}");
    let json = json::outcome(&o);
    assert_eq!(json["points"][0]["deterministic"], true);
    assert!(json["points"][0]["groups"][0]["goodput_bps"]["ci95"].is_null());
    assert_eq!(json["points"][1]["deterministic"], false);
    assert!(report::html(&o).contains("\"deterministic\":[true,false]"));
    fs::remove_dir_all(place).unwrap();
}

/// The file of a sweep with one point is the scenario that was run.
#[test]
fn a_single_points_scenario_is_saved() {
    let place = folder("saved");
    let (s, runs) = swept(FILE, ["link.a-b.rate=2Mbit/s", "n=3"], 1, &place);
    write::all(&outcome(&s, &runs), &place).unwrap();
    let saved = Plan::new(scenario_file::load(&place.join("scenario.toml")).unwrap()).unwrap();
    let again = narrows_sim::run(&saved.network(0, 1, false), &mut |_| true).unwrap();
    assert_eq!(runs[0][0].as_ref().unwrap().digest, again.digest);
    fs::remove_dir_all(place).unwrap();
}
