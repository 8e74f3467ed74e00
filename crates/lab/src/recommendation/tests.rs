use super::*;
use crate::outcome::SeedValues;

const SEEDS: u64 = 10;
const NAMES: [&str; 11] = [
    "goodput_bps",
    "utilisation",
    "rtt_s_min",
    "rtt_s_mean",
    "rtt_s_p95",
    "offered_over_delivered",
    "random_loss_rate",
    "queue_loss_rate",
    "loss_rate",
    "cov_1s",
    "share",
];

/// A protocol with goodput in Mbit/s and mean RTT; all seeds scatter alike by a thousandth.
fn result(name: &str, goodput: f64, rtt: f64) -> ProtocolOutcome {
    let values = [goodput * 1e6, 0.9, 0.1, rtt, rtt * 1.2, 1.0, 0.0, 0.0, 0.0, 0.1, f64::NAN];
    let by_seed: Vec<SeedValues> = (0..SEEDS)
        .map(|seed| {
            let scatter = 1.0 + 1e-3 * (seed as f64 - 4.5);
            SeedValues { seed, values: values.map(|v| v * scatter).to_vec() }
        })
        .collect();
    let mut r = ProtocolOutcome {
        protocol: name.into(),
        group: "main".into(),
        digest: 0,
        flows: 1,
        rivals: 0,
        seeds: SEEDS as usize,
        one_trajectory: false,
        by_seed,
        status: String::new(),
        measures: Vec::new(),
        per_flow: Vec::new(),
        series: Vec::new(),
    };
    settle(&mut r);
    r
}

/// Means and intervals from what each seed has.
fn settle(r: &mut ProtocolOutcome) {
    let all = Resamples::of(r.by_seed.len());
    let of = |i: usize| r.by_seed.iter().map(|s| s.values[i]).collect::<Vec<f64>>();
    r.measures = NAMES.iter().enumerate().map(|(i, n)| (*n, all.estimate(&of(i)))).collect();
}

/// The same with other values of a measure.
fn with(mut r: ProtocolOutcome, name: &str, value: impl Fn(u64) -> f64) -> ProtocolOutcome {
    let at = NAMES.iter().position(|n| *n == name).unwrap();
    for s in &mut r.by_seed {
        s.values[at] = value(s.seed);
    }
    settle(&mut r);
    r
}

fn recommendation(aim: Aim, results: Vec<ProtocolOutcome>) -> String {
    let outcome = Outcome {
        command: "compare",
        command_line: String::new(),
        seed: 1,
        link: String::new(),
        path: String::new(),
        duration_s: 60.0,
        warmup_s: 0.0,
        capacity_bps: 1.5e6,
        results,
        recommendation: String::new(),
        notes: Vec::new(),
        variables: Vec::new(),
    };
    recommend(&outcome, aim, Preset::Linux)
}

/// Told 19 of 20 Mbit/s it leads every table of a link of one's own; who follows the advice has neighbours.
#[test]
fn who_gives_way_to_nobody_is_not_recommended() {
    let brutal = "rrtp+brutal(rate=19Mbit/s)";
    let text =
        recommendation(Aim::Bulk, vec![result(brutal, 19.0, 0.05), result("bbr", 18.0, 0.055)]);
    assert!(text.starts_with("Use bbr"), "{text}");
    assert!(text.contains("gives way to nobody"), "{text}");
}

#[test]
fn within_five_percent_the_shorter_delay_wins() {
    let text =
        recommendation(Aim::Bulk, vec![result("cubic", 9.6, 0.166), result("rrtp", 9.4, 0.103)]);
    assert!(text.starts_with("Use rrtp") && text.contains("cubic would give 2.1% more"), "{text}");
    let text =
        recommendation(Aim::Bulk, vec![result("veno", 1.38, 0.24), result("rrtp", 1.2, 0.11)]);
    assert!(text.starts_with("Use veno"), "{text}");
    // A delay that is shorter by chance alone decides nothing.
    let noisy = with(result("bbr", 9.5, 0.15), "rtt_s_mean", |s| 0.05 + 0.02 * s as f64);
    let text = recommendation(Aim::Bulk, vec![result("cubic", 9.6, 0.166), noisy]);
    assert!(text.starts_with("Use cubic"), "{text}");
}

/// Two seeds of 31.1 ± 19.3 cannot be told from 39.70 ± 0.22, and are not as good.
#[test]
fn what_cannot_be_told_apart_is_not_equal() {
    let wide =
        with(result("sack", 31.1, 0.405), "goodput_bps", |s| 31.1e6 + 8e6 * (s as f64 - 4.5));
    let text = recommendation(Aim::Bulk, vec![wide, result("rrtp", 39.7, 0.41)]);
    assert!(
        text.starts_with("Use rrtp") && text.contains("10 seeds cannot tell it from sack"),
        "{text}"
    );
}

/// Seeds scatter by 30%, and the same way for both: seed by seed one is always better.
#[test]
fn differences_are_paired_by_seed() {
    let of = |name, factor: f64| {
        with(result(name, 1.0, 0.12), "goodput_bps", move |s| {
            factor * 1e6 * (0.7 + 0.06 * s as f64)
        })
    };
    let text = recommendation(Aim::Bulk, vec![of("sack", 0.9), of("rrtp", 1.0)]);
    assert!(text.contains("11% more than the next, sack (95% interval, paired by seed"), "{text}");
}

#[test]
fn a_share_is_held_against_the_number_of_flows() {
    let shared = |flows, rivals, share: f64| {
        let mut r = with(result("rrtp", 5.0, 0.12), "share", |_| share);
        (r.flows, r.rivals) = (flows, rivals);
        recommendation(Aim::Bulk, vec![r])
    };
    // One flow beside four: 20% would be equal.
    assert!(shared(1, 4, 0.71).contains("Mind that it takes 71%"), "{}", shared(1, 4, 0.71));
    // Four beside one: 80% would be.
    assert!(!shared(4, 1, 0.89).contains("Mind that"), "{}", shared(4, 1, 0.89));
    assert!(shared(1, 1, 0.8).contains("where 50% would be equal"), "{}", shared(1, 1, 0.8));
}

#[test]
fn files_must_be_whole_and_calls_do_not_wait() {
    let lossy = || with(result("tfwc", 1.4, 0.12), "loss_rate", |_| 0.029);
    let worse = || with(result("tear-wireless", 1.45, 0.11), "loss_rate", |_| 0.12);
    let text = recommendation(Aim::Bulk, vec![lossy(), result("cubic", 0.8, 0.2)]);
    assert!(text.starts_with("Use cubic") && text.contains("Not considered: tfwc"), "{text}");
    let text = recommendation(Aim::Calls, vec![lossy(), worse(), result("cubic", 1.45, 0.2)]);
    assert!(
        text.starts_with("Use tfwc") && text.contains("but it loses 12% of its packets"),
        "{text}"
    );
    assert!(text.contains("Not considered: cubic"), "{text}");
    let text = recommendation(Aim::Bulk, vec![lossy()]);
    assert!(text.contains("None of these is made for bulk"), "{text}");
}

#[test]
fn what_can_be_had_comes_first() {
    let text =
        recommendation(Aim::Bulk, vec![result("stpd", 1.45, 0.11), result("bbr", 1.3, 0.15)]);
    assert!(text.starts_with("Use bbr"), "{text}");
    assert!(text.contains("tcp_congestion_control=bbr"), "{text}");
    assert!(text.contains("In simulation only, stpd is better: 1.450"), "{text}");
    let text = recommendation(Aim::Bulk, vec![result("stpd", 1.45, 0.11)]);
    assert!(text.starts_with("Use stpd") && text.contains("simulation only"), "{text}");
}

#[test]
fn one_trajectory_is_no_certainty() {
    let once = |name, goodput| {
        let mut r = result(name, goodput, 0.12);
        r.by_seed.truncate(1);
        (r.one_trajectory, r.seeds) = (true, 1);
        settle(&mut r);
        r
    };
    let text = recommendation(Aim::Bulk, vec![once("rrtp", 9.0), once("cubic", 5.0)]);
    assert!(text.contains("on one trajectory") && !text.contains('±'), "{text}");
}
