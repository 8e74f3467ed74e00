//! Random draws of a comparison, which prevent exact coincidences from deciding it, and its notes if there are no
//! draws.

use narrows_base::Duration;
use narrows_lab::collect::{OutcomeMetadata, collect};
use narrows_lab::execute::{RunControl, execute};
use narrows_lab::{Outcome, Question};
use narrows_scenario::{Plan, Scenario, scenario_file};
use narrows_sim::protocol::Preset;
use std::path::Path;

fn answer(scenario: Scenario) -> Outcome {
    let plan = Plan::new(scenario).unwrap();
    let runs = execute(&plan, &RunControl::quiet(1)).unwrap();
    collect(&plan, OutcomeMetadata::default(), &runs, None)
}

fn ask(q: &Question) -> Outcome {
    answer(q.scenario(Path::new("")).unwrap().0)
}

fn beside_reno_1990(link: &str, protocol: &str) -> Question {
    Question {
        link: link.into(),
        protocols: protocol.into(),
        against: Some("reno-1990:1".into()),
        seeds: 6,
        // An ACK for every packet, which is most sensitive to phases.
        preset: Preset::Rfc,
        ..Question::default()
    }
}

/// Exact to the nanosecond, this share was 0.55 at 20 ms and 0.90 at 21 ms: the packets that a full queue dropped
/// depended on the phase of the flows' packets, which no real network keeps.
#[test]
fn a_millisecond_of_delay_does_not_decide_a_share() {
    let share = |link: &str| {
        let o = ask(&beside_reno_1990(link, "rrtp"));
        o.results[0].measure("share").unwrap().mean
    };
    let a = share("10Mbit/s,20ms");
    let b = share("10Mbit/s,21ms");
    assert!((a - b).abs() < 0.08, "{a} and {b}");
    let c = share("10Mbit/s,20ms,host-delay=0s");
    let d = share("10Mbit/s,21ms,host-delay=0s");
    let drawn = (a - b).abs();
    let exact = (c - d).abs();
    assert!(exact > 2.0 * drawn, "{exact} and {drawn}: is there anything to draw for?");
}

#[test]
fn a_host_delays_packets_and_keeps_their_order() {
    let of = |delay: &str| {
        let o = ask(&Question {
            link: format!("2Mbit/s,20ms,queue=unlimited,host-delay={delay}"),
            protocols: "sack".into(),
            duration: Duration::from_secs(20),
            seeds: 2,
            ..Question::default()
        });
        let mean = |name: &str| o.results[0].measure(name).unwrap().mean;
        (mean("sender_loss_rate"), mean("rtt_s_min"))
    };
    let exact = of("0s");
    let late = of("40ms");
    // A packet that overtook three others would be taken for lost and retransmitted.
    assert_eq!((exact.0, late.0), (0.0, 0.0));
    assert!(late.1 >= exact.1 && late.1 < exact.1 + 0.04, "{exact:?}, {late:?}");
}

#[test]
fn undrawn_comparison_runs_once_without_interval() {
    let exact = Question {
        protocols: "reno,cubic".into(),
        link: "10Mbit/s,20ms,host-delay=0s".into(),
        stagger: Some(Duration::ZERO),
        duration: Duration::from_secs(10),
        ..Question::default()
    };
    let o = ask(&exact);
    for r in &o.results {
        assert!(r.one_trajectory && r.seeds == 1 && r.by_seed.len() == 1, "{}", r.protocol);
        assert!(r.measures.iter().all(|m| m.1.ci95().is_none()), "{}", r.protocol);
    }
    assert!(o.notes.iter().any(|n| n.starts_with("deterministic")), "{:?}", o.notes);
    assert!(!o.recommendation.to_string().contains("95%"), "{}", o.recommendation);
    // With draws there are seeds and intervals.
    let o = ask(&Question { link: "10Mbit/s,20ms".into(), seeds: 5, ..exact });
    for r in &o.results {
        assert!(!r.one_trajectory && r.seeds == 5, "{}", r.protocol);
        assert!(r.measure("rtt_s_mean").unwrap().half().is_some_and(|half| half > 0.0));
    }
    assert!(!o.notes.iter().any(|n| n.starts_with("deterministic")), "{:?}", o.notes);
}

/// Scenario files without host delays run as before, and so does preset `ns2`.
#[test]
fn ns2_and_unmarked_files_draw_no_values() {
    let q = Question { preset: Preset::Ns2, ..beside_reno_1990("10Mbit/s,20ms", "sack") };
    let (scenario, link) = q.scenario(Path::new("")).unwrap();
    let text = scenario_file::text(&scenario);
    for key in ["host-delay", "stagger", "trace-start"] {
        assert!(!text.contains(key), "{text}");
    }
    assert_eq!(link.host_delay, None);
    assert!(answer(scenario).results[0].one_trajectory);
    // Today's default writes all its draws, and reads back.
    let (scenario, _) = beside_reno_1990("10Mbit/s,20ms", "sack").scenario(Path::new("")).unwrap();
    let text = scenario_file::text(&scenario);
    assert!(
        text.contains("host-delay = \"800us\"") && text.contains("stagger = \"40ms\""),
        "{text}"
    );
    let bare: Vec<&str> = text
        .lines()
        .filter(|l| !l.starts_with("host-delay") && !l.starts_with("stagger"))
        .collect();
    let saved_before = scenario_file::parse(&bare.join("\n"), Path::new("")).unwrap();
    assert!(answer(saved_before).results[0].one_trajectory);
}

#[test]
fn each_seed_enters_a_trace_elsewhere_unless_told() {
    let folder = std::env::temp_dir().join(format!("narrows-drawn-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // Half a second of 12 Mbit/s, half a second without opportunities.
    let lines: String = (1..=500).map(|ms| format!("{ms}\n")).collect();
    std::fs::write(folder.join("half.trace"), lines + "1000\n").unwrap();
    let of = |start: &str| {
        let q = Question {
            link: format!("6Mbit/s,10ms,trace=half.trace,host-delay=0s{start}"),
            protocols: "sack".into(),
            stagger: Some(Duration::ZERO),
            duration: Duration::from_secs(3),
            seeds: 4,
            ..Question::default()
        };
        answer(q.scenario(&folder).unwrap().0).results.remove(0)
    };
    assert!(of(",trace-start=0s").one_trajectory);
    assert!(of(",trace-start=400ms").one_trajectory);
    assert!(!of("").one_trajectory);
    assert_ne!(of(",trace-start=0s").digest, of(",trace-start=400ms").digest);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn every_seed_is_kept() {
    let o = ask(&Question { protocols: "reno,rrtp".into(), seeds: 4, ..Question::default() });
    for r in &o.results {
        let values: Vec<(u64, f64)> = r.seeds_of("goodput_bps").collect();
        assert_eq!(values.iter().map(|v| v.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
        let mean = values.iter().map(|v| v.1).sum::<f64>() / 4.0;
        assert!((mean / r.measure("goodput_bps").unwrap().mean - 1.0).abs() < 1e-9);
        assert!(values[0].1 != values[1].1);
    }
}
