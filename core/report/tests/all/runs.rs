//! Results of runs: the same random draws, the same digests, the shape of the JSON.

use narrows_base::Duration;
use narrows_lab::collect::{OutcomeMetadata, collect};
use narrows_lab::execute::{RunControl, execute};
use narrows_lab::{Outcome, Question};
use narrows_report::columns::Values;
use narrows_report::{json, picture, seeds, summary};
use narrows_scenario::{Plan, Scenario, scenario_file};
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn question() -> Question {
    Question {
        protocols: "reno,stpd".into(),
        duration: Duration::from_secs(5),
        seeds: 3,
        ..Question::default()
    }
}

fn answer(scenario: Scenario, jobs: usize) -> Outcome {
    let plan = Plan::new(scenario).unwrap();
    let runs = execute(&plan, &RunControl::quiet(jobs)).unwrap();
    let about = OutcomeMetadata { command: "compare", ..OutcomeMetadata::default() };
    collect(&plan, about, &runs, None)
}

fn ask(q: &Question) -> Outcome {
    answer(q.scenario(Path::new("")).unwrap().0, 1)
}

#[test]
fn saved_comparison_repeats_its_digest_for_any_jobs() {
    let q = Question {
        link: "dsl,loss=0.5%,jitter=1ms".into(),
        flows: 2,
        against: Some("cubic".into()),
        reverse: Some("sack:1".into()),
        stagger: Some(Duration::from_secs(1)),
        ..question()
    };
    let (scenario, _) = q.scenario(Path::new("")).unwrap();
    let text = scenario_file::text(&scenario);
    let saved = scenario_file::parse(&text, Path::new("")).unwrap();
    let one = answer(scenario.clone(), 1);
    for other in [answer(scenario, 2), answer(saved, 2)] {
        assert_eq!(json::outcome(&other)["results"], json::outcome(&one)["results"]);
    }
}

#[test]
fn the_json_has_every_measure_and_no_nan() {
    let q = Question { against: Some("reno:2".into()), flows: 2, ..question() };
    let o = json::outcome(&ask(&q));
    for key in ["command", "version", "seed", "link", "duration_s", "results"] {
        assert!(!o[key].is_null(), "{key}");
    }
    assert_eq!(o["results"].as_array().unwrap().len(), 2);
    for r in o["results"].as_array().unwrap() {
        for key in [
            "goodput_bps",
            "throughput_bps",
            "utilisation",
            "loss_rate",
            "queue_loss_rate",
            "random_loss_rate",
            "offered_over_delivered",
            "queue_packets_mean",
            "queue_packets_max",
            "rtt_s_min",
            "rtt_s_mean",
            "rtt_s_p95",
            "retransmissions",
            "timeouts",
            "cov_1s",
            "jain",
            "share",
            "theta",
        ] {
            assert!(r[key]["mean"].is_f64(), "{key}: {}", r[key]);
            assert!(r[key]["ci95"][1].is_f64(), "{key}: {}", r[key]);
        }
        assert_eq!((r["flows"].as_u64(), r["seeds"].as_u64()), (Some(2), Some(3)));
        assert_eq!(r["per_flow"].as_array().unwrap().len(), 2);
        let sum: f64 = r["per_flow"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| f["goodput_bps"]["mean"].as_f64().unwrap())
            .sum();
        assert!((sum / r["goodput_bps"]["mean"].as_f64().unwrap() - 1.0).abs() < 1e-9);
        let part = |k: &str| r[k]["mean"].as_f64().unwrap();
        assert!(
            (part("queue_loss_rate") + part("random_loss_rate") - part("loss_rate")).abs() < 1e-12
        );
        assert!(part("utilisation") <= 1.0 && part("goodput_bps") < part("throughput_bps"));
    }
}

#[test]
fn marks_and_averages_exist_where_the_queue_has_them() {
    let measures = ["mark_rate", "red_average_min", "red_average_mean", "red_average_max"];
    let of = |aqm: &str| {
        let link = format!("5Mbit/s,20ms,queue=40p,aqm={aqm}");
        let o = json::outcome(&ask(&Question { link, ..question() }));
        measures.map(|m| o["results"][0][m]["mean"].as_f64())
    };
    let red = of("red").map(Option::unwrap);
    assert_eq!(red[0], 0.0, "no end here uses ECN");
    assert!(red[1] < red[2] && red[2] < red[3] && red[3] < 40.0, "{red:?}");
    assert_eq!(of("codel"), [Some(0.0), None, None, None]);
    assert_eq!(of("droptail"), [None; 4]);
}

#[test]
fn one_seed_has_no_interval_one_flow_no_share() {
    let o = json::outcome(&ask(&Question { seeds: 1, ..question() }));
    let r = &o["results"][0];
    assert!(r["goodput_bps"]["ci95"].is_null() && r["goodput_bps"]["mean"].is_f64());
    assert!(r.get("share").is_none() && r.get("theta").is_none());
}

#[test]
fn protocol_gets_the_same_draws_beside_any_other() {
    let alone = ask(&Question { protocols: "stpd".into(), ..question() });
    let beside = ask(&question());
    assert_eq!(alone.results[0].digest, beside.results[1].digest);
}

#[test]
fn extreme_links_run_and_missing_figures_are_null() {
    for (link, duration) in [
        ("1bit/s,80ms", Duration::from_secs(5)),
        ("400Gbit/s,80ms", Duration::from_millis(200)),
        ("1.5Mbit/s,80ms,queue=0p", Duration::from_secs(5)),
        ("1.5Mbit/s,80ms,loss=100%", Duration::from_secs(5)),
        ("1.5Mbit/s,0s", Duration::from_secs(2)),
        ("1.5Mbit/s,80ms", Duration::from_nanos(1)),
    ] {
        let o = ask(&Question { link: link.into(), duration, seeds: 1, ..question() });
        let text = serde_json::to_string(&json::outcome(&o)).unwrap();
        assert!(!text.contains("NaN") && !text.contains("inf"), "{link}");
        assert_eq!(summary::csv(&o).lines().count(), 3);
        assert_eq!(summary::table(&o, None).lines().count(), 4);
    }
}

#[test]
fn table_fits_its_terminal_and_names_omitted_columns() {
    let q = Question {
        protocols: "vegas(alpha=1,beta=3,initial-window=2),bbr,stpd".into(),
        against: Some("reno:1".into()),
        ..question()
    };
    let o = ask(&q);
    assert!(o.recommendation.to_string().starts_with("Use "), "{}", o.recommendation);
    for width in [60, 70, 80, 90, 100, 120] {
        let table = summary::table(&o, Some(width));
        for line in table.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        assert_eq!(table.contains("Left out"), width < 100, "{width}: {table}");
        assert!(table.contains("share") && table.contains("goodput"), "{width}: {table}");
    }
    // A pipe gets the whole table.
    let whole = summary::table(&o, None);
    assert!(whole.contains("vegas(alpha=1,beta=3,initial-window=2)") && whole.contains("outs"));
    assert!(summary::table(&o, Some(80)).contains("sent again"), "named as left out");
}

#[test]
fn interruption_keeps_finished_runs() {
    let plan = Plan::new(question().scenario(Path::new("")).unwrap().0).unwrap();
    let stop = AtomicBool::new(false);
    // Of six runs (2 protocols × 3 seeds), stop after a bit more than half.
    let progress = |f: f64| stop.store(f > 0.55, std::sync::atomic::Ordering::Relaxed);
    let runs = execute(&plan, &RunControl { stop: &stop, progress: &progress, jobs: 1 }).unwrap();
    let finished: Vec<usize> = runs.iter().map(|r| r.iter().flatten().count()).collect();
    assert!(
        finished.iter().sum::<usize>() >= 3 && finished.iter().sum::<usize>() < 6,
        "{finished:?}"
    );
    assert!(finished[0].abs_diff(finished[1]) <= 1, "{finished:?}");
}

/// The step of the documentation can be read, and every protocol has a response to it.
#[test]
fn a_step_is_answered_in_seconds() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/step.toml");
    let mut scenario = scenario_file::load(&path).unwrap();
    scenario.protocols.retain(|p| p.name == "sack" || p.name == "stpd");
    scenario.seeds = 1;
    let o = answer(scenario, 2);
    for r in &o.results {
        let measure = |name: &str| r.measure(name).unwrap().mean;
        for name in ["halving_s", "takeup_s"] {
            assert!(
                (0.0..20.0).contains(&measure(name)),
                "{} {name} {}",
                r.protocol,
                measure(name)
            );
        }
        assert!(measure("loss_event_rate") <= measure("sender_loss_rate"));
        let table = r.series.iter().find(|t| t.kind == "group" && t.name == "main").unwrap();
        let theta = table.column("theta").unwrap();
        let jain = table.column("jain").unwrap();
        assert_eq!((theta.len(), jain.len()), (100, 100));
        // There is no other flow in the first minute.
        assert!(theta[5..60].iter().all(|t| *t == 0.0), "{theta:?}");
        assert!(theta[65..80].iter().all(|t| *t > 0.1), "{theta:?}");
        assert!(jain[5..].iter().all(|j| (0.25..=1.0).contains(j)), "{jain:?}");
    }
}

/// Without changes there is no response; smoothness exists on every scale.
#[test]
fn measures_over_time_exist_where_they_mean_something() {
    let duration = Duration::from_secs(25);
    let o = ask(&Question { protocols: "sack,fixed(rate=1Mbit/s)".into(), duration, ..question() });
    for r in &o.results {
        assert!(r.measure("halving_s").unwrap().mean.is_nan());
        assert!(r.measure("takeup_s").unwrap().mean.is_nan());
        for (name, _) in narrows_lab::measure::ROUGHNESS {
            assert!(r.measure(name).unwrap().mean >= 0.0, "{name}");
        }
        let flow = &r.per_flow[0].1;
        let cov = |name| flow.iter().find(|m| m.0 == name).unwrap().1.mean;
        assert!(cov("cov_1s") < cov("cov_100ms"), "packets are lumps on a fine scale");
    }
    let constant = o.results[1].measure("convergence_s").unwrap().mean;
    assert!(constant < 1.0, "a constant rate is there at once: {constant}");
}

/// The values of all seeds are kept, and their mean is the reported one.
#[test]
fn values_of_each_seed_average_to_the_reported_mean() {
    let q =
        Question { link: "dsl,loss=0.5%".into(), against: Some("cubic:1".into()), ..question() };
    let outcome = ask(&q);
    let table = narrows_report::seeds::table(&outcome).unwrap();
    let column = |name: &str| &table.0.iter().find(|c| c.0 == name).unwrap().1;
    let (Values::Text(protocols), Values::Whole(seeds), Values::Number(goodput)) =
        (column("protocol"), column("seed"), column("goodput_bps"))
    else {
        panic!("other kinds of columns");
    };
    assert_eq!(protocols, &["reno", "reno", "reno", "stpd", "stpd", "stpd"]);
    assert_eq!(seeds, &[1, 2, 3, 1, 2, 3]);
    let json = json::outcome(&outcome);
    for (i, result) in outcome.results.iter().enumerate() {
        let own = &goodput[3 * i..3 * i + 3];
        assert!(own[0] != own[1] && own[1] != own[2], "{own:?}");
        let mean = own.iter().sum::<f64>() / 3.0;
        assert!((mean / result.measure("goodput_bps").unwrap().mean - 1.0).abs() < 1e-9);
        let runs = json["results"][i]["by_seed"].as_array().unwrap();
        let told: Vec<f64> = runs.iter().map(|r| r["goodput_bps"].as_f64().unwrap()).collect();
        assert_eq!(told, own);
    }
    // Every measure that has a mean has its values.
    for (name, _) in &outcome.results[0].measures {
        assert!(table.0.iter().any(|c| c.0 == *name), "{name}");
    }
    assert_eq!(table.csv().lines().count(), 7);
}

#[test]
fn table_of_seeds_has_one_row_per_protocol_and_seed() {
    let o = ask(&Question { seeds: 4, ..question() });
    let csv = seeds::table(&o).unwrap().csv();
    let rows: Vec<Vec<&str>> = csv.lines().map(|l| l.split(',').collect()).collect();
    assert_eq!((rows.len(), &rows[0][..4]), (9, &["protocol", "group", "flows", "seed"][..]));
    assert!(rows.iter().all(|r| r.len() == rows[0].len()));
    let goodput = rows[0].iter().position(|c| *c == "goodput_bps").unwrap();
    assert_eq!(
        rows[6][goodput].parse::<f64>().ok(),
        o.results[1].seeds_of("goodput_bps").nth(1).map(|v| v.1)
    );
}

/// A column over time is a figure of each flow; a column that no series has is refused with those that exist.
#[test]
fn a_column_over_time_is_a_figure() {
    let outcome = ask(&Question { flows: 2, ..question() });
    let figure = picture::over_time(&outcome, "cwnd").unwrap();
    assert!(
        figure.starts_with("<svg width=\"322\"") && figure.contains("cwnd, packets"),
        "{figure}"
    );
    for result in &outcome.results {
        let flows = result.series.iter().filter(|t| t.kind == "flow");
        for flow in flows {
            let name = format!("{} {}", result.protocol, flow.name);
            assert!(figure.contains(&name), "{name}");
        }
    }
    let refused = picture::over_time(&outcome, "cwmd").unwrap_err().to_string();
    assert!(refused.contains("did you mean 'cwnd'"), "{refused}");
}
