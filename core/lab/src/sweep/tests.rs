//! Small sweeps: resuming, threads, keys.

use super::journal::SweepPart;
use super::{Base, CheckedSweep, Grid, Runs, SweepControl, SweepMetadata, SweepOutcome, journal};
use crate::measure::MEASURES;
use narrows_link::QueueLimit;
use narrows_scenario::scenario_file::Template;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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
queue = "max(1.1bdp,5p)"
loss = "1%"
reverse = { loss = "0.5%" }
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
[[flows]]
name = "back"
protocol = "reno"
count = "n/2"
from = "b"
to = "a"
"#;

fn template(text: &str) -> Base {
    Base::File(Box::new(Template::parse(text, Path::new("")).unwrap()))
}

fn sweep_of(text: &str, vary: &[&str], seeds: u32) -> CheckedSweep {
    let vary: Vec<String> = vary.iter().map(ToString::to_string).collect();
    CheckedSweep::new(Grid::read(template(text), &vary).unwrap(), 1, seeds).unwrap()
}

fn sweep(vary: &[&str]) -> CheckedSweep {
    sweep_of(FILE, vary, 2)
}

/// An empty folder for this test.
fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("narrows-sweep-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// Runs the missing runs of a folder; returns their number.
fn run(s: &CheckedSweep, folder: &Path, jobs: usize) -> (Runs, usize) {
    let (known, journal) = journal::open(folder, false).unwrap();
    let mut runs = s.known(known);
    let ran = AtomicUsize::new(0);
    let count = |_: f64, _: usize| {
        ran.fetch_add(1, Ordering::Relaxed);
    };
    let control =
        SweepControl { stop: &AtomicBool::new(false), progress: &count, jobs, part: None };
    s.execute(&mut runs, journal, &control).unwrap();
    (runs, ran.into_inner())
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

const VARY: [&str; 2] = ["link.a-b.rate=0.5Mbit/s,1Mbit/s,2Mbit/s", "n=1,3"];

#[test]
fn killed_sweep_resumes_to_the_same_result() {
    let whole = folder("whole");
    let half = folder("half");
    let s = sweep(&VARY);
    let (runs, ran) = run(&s, &whole, 1);
    assert_eq!(ran, 12);
    // A kill leaves five lines and an incomplete one.
    let text = fs::read_to_string(whole.join(journal::NAME)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 12);
    let left = lines[..5].join("\n") + "\n" + &lines[5][..lines[5].len() - 3];
    fs::write(half.join(journal::NAME), left).unwrap();
    let (again, ran) = run(&s, &half, 2);
    assert_eq!(ran, 7);
    assert!(runs[0][0].as_ref().is_some_and(|f| f.trace.is_some()));
    // As text, in which NaN equals itself.
    assert_eq!(format!("{again:?}"), format!("{runs:?}"), "traces are kept too");
    // Now all runs are present, in spite of the incomplete line.
    assert_eq!(run(&s, &half, 1).1, 0);
    assert!(journal::open(&half, true).unwrap().0.is_empty(), "unless it is to be forgotten");
    for f in [whole, half] {
        fs::remove_dir_all(f).unwrap();
    }
}

/// Programs on several machines share a folder: they run disjoint parts, and together all runs.
#[test]
fn parts_of_a_sweep_are_together_the_whole() {
    let whole = folder("undivided");
    let shared = folder("shared");
    let s = sweep(&VARY);
    let (runs, _) = run(&s, &whole, 1);
    let mut sizes = Vec::new();
    for number in 1..=5 {
        let part = SweepPart { number, of: 5 };
        // A program does not read the journals of those that run at the same time.
        let mut own: Runs = s.known(std::collections::BTreeMap::new());
        let (_, journal) = journal::open_part(&shared, part).unwrap();
        let stop = AtomicBool::new(false);
        let control = SweepControl { stop: &stop, progress: &|_, _| (), jobs: 1, part: Some(part) };
        s.execute(&mut own, journal, &control).unwrap();
        sizes.push(own.iter().flatten().flatten().count());
    }
    assert_eq!(sizes, [3, 3, 2, 2, 2]);
    let (together, ran) = run(&s, &shared, 1);
    assert_eq!(ran, 0, "all of it was in the parts' journals");
    assert_eq!(format!("{together:?}"), format!("{runs:?}"));
    for f in [whole, shared] {
        fs::remove_dir_all(f).unwrap();
    }
}

#[test]
fn interrupted_sweep_keeps_finished_runs() {
    let place = folder("stopped");
    let s = sweep(&VARY);
    let (known, journal) = journal::open(&place, false).unwrap();
    let mut runs = s.known(known);
    let stop = AtomicBool::new(false);
    let first = |_: f64, _: usize| stop.store(true, Ordering::Relaxed);
    let control = SweepControl { stop: &stop, progress: &first, jobs: 1, part: None };
    s.execute(&mut runs, journal, &control).unwrap();
    assert_eq!(runs.iter().flatten().flatten().count(), 1);
    let o = outcome(&s, &runs);
    assert_eq!(o.finished().count(), 1);
    assert!(o.notes[0].starts_with("interrupted: 1 of 12"));
    assert_eq!(run(&s, &place, 1).1, 11);
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn sweep_is_identical_for_any_number_of_threads() {
    let one = folder("one");
    let two = folder("two");
    let s = sweep(&VARY);
    let a = run(&s, &one, 1).0;
    let b = run(&s, &two, 2).0;
    assert_eq!(format!("{a:?}"), format!("{b:?}"));
    let a = outcome(&s, &a);
    let b = outcome(&s, &b);
    assert_eq!(format!("{:?}", a.estimates), format!("{:?}", b.estimates));
    for f in [one, two] {
        fs::remove_dir_all(f).unwrap();
    }
}

#[test]
fn a_point_is_the_run_of_its_scenario() {
    let place = folder("same");
    let s = sweep_of(FILE, &["link.a-b.rate=2Mbit/s", "n=3"], 1);
    let (runs, _) = run(&s, &place, 1);
    let text = FILE.replace("1Mbit/s", "2Mbit/s").replace("n = 1", "n = 3");
    let plan = narrows_scenario::Plan::new(
        narrows_scenario::scenario_file::parse(&text, Path::new("")).unwrap(),
    )
    .unwrap();
    let alone = narrows_sim::run(&plan.network(0, 1, false), &mut |_| true).unwrap();
    assert_eq!(runs[0][0].as_ref().unwrap().digest, alone.digest);
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn keys_follow_everything_that_a_result_depends_on() {
    let key = |text: &str| sweep_of(text, &["n=2"], 1).points[0].key;
    let usual = key(FILE);
    assert_eq!(usual, key(&FILE.replace("name = \"small\"", "name = \"other\"\nseeds = 7")));
    for (old, new) in [
        ("4s", "5s"),
        ("1s", "2s"),
        ("1Mbit/s", "1.001Mbit/s"),
        ("max(1.1bdp,5p)", "1.1bdp"),
        ("0.5%", "0.6%"),
        ("sack", "newreno"),
        ("n/2", "n"),
        ("\"back\"", "\"backwards\""),
    ] {
        assert_ne!(usual, key(&FILE.replacen(old, new, 1)), "{old} to {new}");
    }
    assert_ne!(usual.with_seed(1), usual.with_seed(2));
    assert_eq!(super::key::RunKey::parse(&usual.to_string()), Some(usual));
}

#[test]
fn derived_values_follow_their_value() {
    let s = sweep(&["link.a-b.rate=100kbit/s,10Mbit/s", "n=3,4"]);
    let at = |p| s.grid.scenario(p).unwrap();
    let counts: Vec<usize> = at(0).flows.iter().map(|f| f.count).collect();
    assert_eq!(counts, [3, 6, 2], "half of three, rounded up");
    let room = |p| {
        let plan = at(p);
        let wire = &plan.links[0];
        assert_eq!(wire.forward.rate, wire.reverse.rate, "the other direction has the same rate");
        wire.forward.limit(wire.forward.delay + wire.reverse.delay, plan.packet)
    };
    assert_eq!(room(0), QueueLimit::Either { packets: 5, bytes: 275 });
    assert_eq!(room(2), QueueLimit::Either { packets: 28, bytes: 27_500 }, "22 ms of 10 Mbit/s");
    // Names, and with them random draws, do not depend on the protocol.
    let s = sweep(&["flows.vegas.protocol=reno,cubic", "flows.vegas.count=flows.tcp.count=1,2"]);
    assert_eq!(s.groups, ["tcp", "vegas", "back"]);
    let last = s.grid.scenario(3).unwrap();
    assert_eq!((last.flows[0].count, last.flows[1].count), (2, 2));
}

#[test]
fn unknown_names_get_a_suggestion() {
    let base = template(FILE);
    for (name, hint) in [
        ("link.a-b.rat", "'link.a-b.rate'"),
        ("link.c.rate", "link.{a-b}"),
        ("flows.tcp.cuont", "'flows.tcp.count'"),
        ("m", "n, duration"),
        ("seeds", "What can vary"),
        ("link.a-b.rate.x", "What can vary"),
        ("", "What can vary"),
    ] {
        let e = base.knob(name).unwrap_err().to_string();
        assert!(e.contains(hint), "{name}: {e}");
    }
    let sweep = |vary: &str| {
        let grid = Grid::read(template(FILE), &[vary.to_string()]).unwrap();
        CheckedSweep::new(grid, 1, 1).map(|_| ()).unwrap_err().to_string()
    };
    assert!(sweep("n=1,x").contains("n=x") && sweep("n=1,x").contains("whole number"));
    assert!(sweep("link.a-b.rate=1Mbit/s,5").contains("rate=5: rate: '5' has no unit"));
    assert!(sweep("flows.tcp.protocol.alpha=1").contains("parameter of reno"));
    assert!(sweep("link.a-b.aqm.x=1").contains("none whose parameter 'x'"));
    assert!(Template::parse("[variables]\nseed = 1\n", Path::new("")).is_err());
}

/// A point without random draws is marked and has no interval; a point without events has a bound.
#[test]
fn single_trajectory_is_deterministic_and_zero_events_a_bound() {
    let place = folder("deterministic");
    let text = FILE
        .replace("loss = \"1%\"", "loss = \"0%\"")
        .replace("reverse = { loss = \"0.5%\" }", "")
        .replace("max(1.1bdp,5p)", "1000p");
    let s = sweep_of(&text, &["link.a-b.loss=0%,20%", "n=1"], 3);
    let (runs, _) = run(&s, &place, 2);
    let mut o = outcome(&s, &runs);
    o.measure = MEASURES.iter().position(|m| m.name == "goodput_bps").unwrap();
    assert_eq!(o.deterministic, [true, false]);
    assert!(
        o.estimates[0].iter().flatten().all(|e| e.ci95().is_none()),
        "no run says how it scatters"
    );
    assert!(o.estimates[1][0][o.measure].half().is_some_and(|half| half > 0.0));
    assert!(o.notes.iter().any(|n| n.starts_with("deterministic") && n.contains("1 of 2 points")));
    // Packets are lost at random but not by the full queue: at most 3 over all packets of three seeds.
    let at = |name| MEASURES.iter().position(|m| m.name == name).unwrap();
    let drops = o.estimates[1][0][at("queue_loss_rate")];
    assert!(drops.mean == 0.0 && drops.half().is_some_and(|half| half > 0.0), "{drops:?}");
    assert!(o.notes.iter().any(|n| n.starts_with("few events") && n.contains("queue_loss_rate")));
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn the_scenarios_at_hand_can_be_swept() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let base = Base::File(Box::new(Template::load(&root.join("dsl-fairness.toml")).unwrap()));
    let vary = ["link.dsl.rate=0.1Mbit/s..20Mbit/s:log:8", "n=1..100:log:8"];
    let grid = Grid::read(base, &vary.map(String::from)).unwrap();
    let s = CheckedSweep::new(grid, 1, 3).unwrap();
    assert_eq!(s.points.len(), 64);
    let last: Vec<usize> = s.points[63].groups.iter().map(|g| g.1).collect();
    assert_eq!(last, [100, 100, 50]);
    assert!(s.points[63].work > 100.0 * s.points[0].work, "the largest points come first");
}

/// A class of an interpreter keeps its name when its code changes: runs of the old code are not used for the new code.
#[test]
fn keys_follow_the_version_of_a_lent_controller() {
    use narrows_congestion::{ControllerEntry, find};
    use narrows_sim::protocol::ProtocolEntry;
    let reno = find("reno").unwrap();
    let named = narrows_base::Descriptor { name: "Versioned", ..*reno.descriptor };
    let descriptor: &'static narrows_base::Descriptor = Box::leak(Box::new(named));
    let tcp = Box::leak(Box::new(ProtocolEntry::tcp("Versioned", "Versioned", "sack", "-")));
    let name = "rrtp+Versioned";
    let stream = Box::leak(Box::new(ProtocolEntry::stream(name, "Versioned", "-")));
    let key = |version| {
        let build = |s: &_, e: &_| find("reno").unwrap().build(s, e);
        let build = Box::leak(Box::new(build));
        let entry = ControllerEntry::from_closure(descriptor, build).with_version(version);
        let _loan = narrows_sim::Loan::new(Box::leak(Box::new(entry)), tcp, stream).unwrap();
        sweep_of(&FILE.replace("vegas", "Versioned"), &["n=2"], 1).points[0].key
    };
    assert_eq!(key(1), key(1));
    assert_ne!(key(1), key(2));
}
