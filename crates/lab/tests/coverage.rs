//! How often 95% intervals of ten seeds hold the mean that two thousand seeds have: by Student's t
//! alone, and as they are now. `cargo test -p narrows-lab --test coverage -- --nocapture` prints them.

use narrows_base::Duration;
use narrows_lab::execute::{Control, execute};
use narrows_lab::interval::{Events, Resamples, events};
use narrows_lab::measure::MEASURES;
use narrows_lab::stats::estimate;
use narrows_lab::{Plan, Question};
use std::path::Path;
use std::sync::atomic::AtomicBool;

const SAMPLES: usize = 200;
const SEEDS: usize = 10;

/// Values of every measure, by protocol, seed and measure.
fn values(link: &str, protocols: &str) -> Vec<Vec<Vec<f64>>> {
    let q = Question {
        link: link.into(),
        protocols: protocols.into(),
        duration: Duration::from_secs(10),
        seeds: (SAMPLES * SEEDS) as u32,
        ..Question::default()
    };
    let plan = Plan::new(q.scenario(Path::new("")).unwrap().0).unwrap();
    let stop = AtomicBool::new(false);
    let runs = execute(&plan, &Control { stop: &stop, progress: &|_| (), jobs: 2 }).unwrap();
    let of = |run: narrows_lab::execute::Run| run.groups.into_iter().next().unwrap().measures;
    runs.into_iter().map(|seeds| seeds.into_iter().flatten().map(of).collect()).collect()
}

/// How often the interval of so many seeds holds the mean of all: before, and now. An interval that
/// does not exist promises nothing and is not counted.
fn coverage(runs: &[Vec<f64>], name: &str) -> (f64, f64) {
    let at = |name: &str| MEASURES.iter().position(|m| m.name == name).unwrap();
    let of = |name: &str| runs.iter().map(|r| r[at(name)]).collect::<Vec<f64>>();
    let (all, sent) = (of(name), of("sent_packets"));
    let truth = match events(name) {
        // Events per packet are of all packets.
        Some(Events::PerPacket) => {
            let seen: f64 = all.iter().zip(&sent).map(|(x, n)| x * n).sum();
            seen / sent.iter().sum::<f64>()
        }
        _ => all.iter().sum::<f64>() / all.len() as f64,
    };
    let resamples = Resamples::of(SEEDS);
    let (mut before, mut now, mut exist) = (0, 0, 0);
    for (x, n) in all.chunks(SEEDS).zip(sent.chunks(SEEDS)) {
        let ours = match events(name) {
            Some(Events::PerRun) => resamples.estimate_events(x, &[1.0; SEEDS]),
            Some(Events::PerPacket) => resamples.estimate_events(x, n),
            None => resamples.estimate(x),
        };
        let student = estimate(x.iter().copied());
        before += student.ci95.is_some_and(|h| (student.mean - truth).abs() <= h) as usize;
        exist += ours.ci95.is_some() as usize;
        now += ours.ci95.is_some_and(|h| (ours.mean - truth).abs() <= h) as usize;
    }
    (before as f64 / SAMPLES as f64, now as f64 / exist.max(1) as f64)
}

#[test]
fn intervals_hold_as_often_as_they_say() {
    let names = ["goodput_bps", "rtt_s_mean", "rtt_s_p95", "queue_loss_rate", "timeouts", "cov_1s"];
    let (mut worst_before, mut worst_now) = (1.0f64, 1.0f64);
    for (link, protocols) in [("wireless", "rrtp,sack,cubic"), ("2Mbit/s,20ms", "rrtp,reno")] {
        for (runs, protocol) in values(link, protocols).iter().zip(protocols.split(',')) {
            for name in names {
                let (before, now) = coverage(runs, name);
                println!("{link:14} {protocol:6} {name:16} {before:.3} {now:.3}");
                worst_before = worst_before.min(before);
                worst_now = worst_now.min(now);
            }
        }
    }
    println!("worst {worst_before} {worst_now}");
}
