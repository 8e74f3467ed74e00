use super::*;
use crate::outcome::SeedValues;

const SEEDS: u64 = 10;
const BASIS: SimulationBasis = SimulationBasis { preset: Preset::Linux, packet: 1000, paths: 1 };
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

/// A protocol with goodput in Mbit/s and mean RTT; all seeds vary alike by a thousandth.
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

/// Computes means and intervals from each seed's values.
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

fn outcome(results: Vec<ProtocolOutcome>) -> Outcome {
    Outcome {
        command: "compare",
        command_line: String::new(),
        seed: 1,
        link: String::new(),
        path: String::new(),
        duration_s: 60.0,
        warmup_s: 0.0,
        capacity_bps: 1.5e6,
        results,
        recommendation: Recommendation::default(),
        notes: Vec::new(),
        variables: Vec::new(),
    }
}

fn recommendation(aim: Aim, results: Vec<ProtocolOutcome>) -> String {
    recommend(&outcome(results), aim, BASIS, &mut |_| None).to_string()
}

/// With a hint of 19 of 20 Mbit/s it leads every table of an otherwise empty link, but its users have competitors.
#[test]
fn protocol_that_never_backs_off_is_not_recommended() {
    let brutal = "rrtp+brutal(rate=19Mbit/s)";
    let text =
        recommendation(Aim::Bulk, vec![result(brutal, 19.0, 0.05), result("bbr", 18.0, 0.055)]);
    assert!(text.starts_with("Use bbr"), "{text}");
    assert!(text.contains("Not considered: rrtp+brutal"), "{text}");
    assert!(text.contains("which does not respond to congestion"), "{text}");
}

/// For bulk a per cent of goodput counts more than milliseconds; for web the quotient of both counts.
#[test]
fn bulk_within_one_percent_takes_less_delay() {
    let of = |name: &str, goodput, rtt| result(name, goodput, rtt);
    let text = recommendation(Aim::Bulk, vec![of("bbr3", 9.6, 0.166), of("rrtp", 9.55, 0.103)]);
    assert!(text.starts_with("Use rrtp"), "{text}");
    let text = recommendation(Aim::Bulk, vec![of("cubic", 9.6, 0.166), of("rrtp", 9.3, 0.103)]);
    assert!(text.starts_with("Use cubic"), "{text}");
    assert!(text.contains("rrtp would give 3.1% less, with 63 ms less delay."), "{text}");
    // A delay that is shorter only by chance is not named.
    let noisy = with(result("bbr", 9.5, 0.15), "rtt_s_mean", |s| 0.05 + 0.02 * s as f64);
    let text = recommendation(Aim::Bulk, vec![of("cubic", 9.6, 0.166), noisy]);
    assert!(text.starts_with("Use cubic") && text.contains("bbr gains nothing over it"), "{text}");
}

/// A mean that one seed of ten contradicts does not lead one that all seeds confirm; it is named with its own figures.
#[test]
fn ranking_by_uncertain_mean_names_the_certain_protocol() {
    let cubic = result("cubic", 8.0, 0.15);
    let uncertain =
        with(result("illinois", 0.0, 0.15), "goodput_bps", |s| if s == 7 { 5e6 } else { 10.2e6 });
    let text = recommendation(Aim::Bulk, vec![cubic, uncertain, result("bbr", 9.55, 0.15)]);
    assert!(text.starts_with("Use bbr"), "{text}");
    assert!(
        text.contains("illinois would give 1.4% more, which 10 seeds do not make sure"),
        "{text}"
    );
}

/// Each alternative has its own figures: none is said of several protocols.
#[test]
fn alternatives_are_named_one_by_one() {
    let all = vec![
        result("cubic", 9.0, 0.12),
        result("newreno", 9.2, 0.121),
        result("reno", 9.1, 0.15),
        result("vegas", 8.9, 0.1),
    ];
    let text = recommendation(Aim::Bulk, all);
    assert!(text.contains("newreno would give 2.2% more, with 1.0 ms more delay."), "{text}");
    assert!(text.contains("vegas would give 1.1% less, with 20 ms less delay."), "{text}");
    assert!(!text.contains("reno and"), "{text}");
}

/// A controller of Linux's TCP must keep its share beside CUBIC; rrtp is named with its share.
#[test]
fn linux_controllers_that_starve_are_not_recommended() {
    let all =
        || vec![result("cubic", 8.0, 0.15), result("vegas", 9.5, 0.1), result("bbr", 9.4, 0.12)];
    let recommend_with = |share: fn(&str) -> Option<f64>, results| {
        recommend(&outcome(results), Aim::Bulk, BASIS, &mut { share })
    };
    let advice = recommend_with(|name| Some(if name == "vegas" { 0.11 } else { 0.9 }), all());
    assert_eq!(advice.protocol, "bbr");
    assert_eq!(advice.command.as_deref(), Some("sysctl -w net.ipv4.tcp_congestion_control=bbr"));
    let text = advice.to_string();
    assert!(
        text.contains("Beside one CUBIC flow on this link it gets 90% of an equal share."),
        "{text}"
    );
    assert!(
        text.contains("less than 80% of an equal share beside one CUBIC flow: vegas (11.0%)."),
        "{text}"
    );
    // If all starve, the default remains.
    let advice = recommend_with(|_| Some(0.1), all());
    assert_eq!(advice.protocol, "cubic");
    assert_eq!(advice.command, None);
    let stream = vec![result("cubic", 8.0, 0.15), result("rrtp", 9.5, 0.1)];
    let advice = recommend_with(|_| Some(0.5), stream);
    assert_eq!(advice.protocol, "rrtp");
    assert!(advice.to_string().contains("it gets 50% of an equal share"), "{advice}");
}

/// A gain that the seeds do not make sure is no reason to change what one has.
#[test]
fn gain_within_its_interval_keeps_the_default() {
    let wide =
        with(result("ledbat++", 1.2, 0.11), "goodput_bps", |s| 1.2e6 + 3e5 * (s as f64 - 4.5));
    let text = recommendation(Aim::Bulk, vec![result("cubic", 1.0, 0.12), wide]);
    assert!(text.starts_with("Use cubic"), "{text}");
    assert!(
        text.contains("ledbat++ would give 20% more, which 10 seeds do not make sure"),
        "{text}"
    );
}

/// Seeds vary by 30%, in the same way for both: seed by seed one is always better.
#[test]
fn differences_are_paired_by_seed() {
    let of = |name, factor: f64| {
        with(result(name, 1.0, 0.12), "goodput_bps", move |s| {
            factor * 1e6 * (0.7 + 0.06 * s as f64)
        })
    };
    let text = recommendation(Aim::Bulk, vec![of("sack", 0.9), of("rrtp", 1.0)]);
    assert!(text.contains("gains 11% (95% interval, paired by seed: "), "{text}");
}

#[test]
fn a_share_is_held_against_the_number_of_flows() {
    let shared = |flows, rivals, share: f64| {
        let mut r = with(result("rrtp", 5.0, 0.12), "share", |_| share);
        r.flows = flows;
        r.rivals = rivals;
        recommendation(Aim::Bulk, vec![r])
    };
    // One flow with four others: 2.4 times as much as each. Twice is RFC 5348's "reasonably fair".
    let text = shared(1, 4, 0.38);
    assert!(text.starts_with("None of these suits bulk"), "{text}");
    assert!(text.contains("goodput over a competitor's is 2.5; this aim bears 2.0"), "{text}");
    assert!(shared(1, 4, 0.32).starts_with("Use rrtp"), "{}", shared(1, 4, 0.32));
    // Four flows with one other: 80% would be equal.
    assert!(shared(4, 1, 0.88).starts_with("Use rrtp"), "{}", shared(4, 1, 0.88));
    assert!(shared(1, 1, 0.75).contains("75% of what all deliver (50% is equal)"));
}

/// Losses, delay and variation beyond the aim's limits are refused, however the others perform.
#[test]
fn intolerable_protocol_is_not_recommended() {
    let lossy = |name, loss| with(result(name, 1.4, 0.12), "loss_rate", move |_| loss);
    let text = recommendation(Aim::Calls, vec![lossy("rap", 0.095), lossy("scream", 0.027)]);
    assert!(text.starts_with("Use scream"), "{text}");
    // Without any that is bearable, the nearest is named, with the bound and its source.
    let text = recommendation(Aim::Calls, vec![lossy("rap", 0.095), lossy("tfrc", 0.04)]);
    assert!(text.starts_with("None of these suits calls; the best of them is tfrc: "), "{text}");
    let why = "its loss is 4.0%; calls bear 3.0% (ITU-T G.1010, conversational voice)";
    assert!(text.contains(why) && !text.contains("Use"), "{text}");
    let bloated = result("illinois", 9.0, 1.166);
    let text = recommendation(Aim::Bulk, vec![bloated.clone(), result("vegas", 4.0, 0.12)]);
    assert!(text.starts_with("Use vegas: 4.000"), "{text}");
    assert!(text.contains("illinois would give 125% more, but its mean queueing delay is 1066 ms"));
    let text = recommendation(Aim::Bulk, vec![bloated]);
    assert!(text.starts_with("None of these suits bulk"), "{text}");
    assert!(text.contains("this aim bears 400 ms (ITU-T G.114, any application)"), "{text}");
    let rough = |name| with(result(name, 1.4, 0.12), "cov_1s", |_| 0.9);
    let text = recommendation(Aim::Calls, vec![rough("rap"), result("tfrc", 1.0, 0.12)]);
    assert!(text.starts_with("Use tfrc"), "{text}");
    // If all protocols vary, the link does.
    let text = recommendation(Aim::Calls, vec![rough("rap"), rough("tfrc")]);
    assert!(text.starts_with("Use "), "{text}");
    // Video bears fewer losses than voice, and more delay.
    let text = recommendation(Aim::Live, vec![lossy("rap", 0.02), result("cubic", 1.0, 0.5)]);
    assert!(text.starts_with("Use cubic") && text.contains("bears 1.0%"), "{text}");
}

/// CUBIC's long queue counts against it only if others give nearly as much.
#[test]
fn default_with_a_long_queue_gives_way_to_equals() {
    let bloated = || result("cubic", 9.0, 0.7);
    let text = recommendation(Aim::Bulk, vec![bloated(), result("rrtp", 8.8, 0.11)]);
    assert!(text.starts_with("Use rrtp"), "{text}");
    assert!(text.contains("cubic would give 2.3% more, but its mean queueing delay is "), "{text}");
    let text = recommendation(Aim::Bulk, vec![bloated(), result("rrtp", 8.0, 0.11)]);
    assert!(text.starts_with("Use cubic"), "{text}");
    assert!(text.contains("What shares its queue suffers: its mean queueing delay is "), "{text}");
}

/// On a path of 500 ms a queue of one BDP adds 500 ms.
#[test]
fn a_queue_of_one_bdp_is_bearable() {
    let long = |rtt| with(result("bbr", 9.0, rtt), "rtt_s_min", |_| 0.5);
    assert!(recommendation(Aim::Bulk, vec![long(0.98)]).starts_with("Use bbr"));
    assert!(recommendation(Aim::Bulk, vec![long(1.02)]).contains("bears 500 ms"));
}

#[test]
fn a_path_beyond_the_bounds_is_named() {
    let lossy = with(result("tear-wireless", 1.4, 0.12), "loss_rate", |_| 0.08);
    let text = recommendation(Aim::Calls, vec![with(lossy, "random_loss_rate", |_| 0.079)]);
    assert!(text.contains("The link itself loses 7.9%"), "{text}");
    let far = with(result("scream", 1.4, 0.52), "rtt_s_min", |_| 0.5);
    let far = with(far, "rtt_s_p95", |_| 0.55);
    let text = recommendation(Aim::Calls, vec![far]);
    assert!(text.starts_with("Use scream"), "{text}");
    assert!(text.contains("The path alone takes 250 ms one way"), "{text}");
}

#[test]
fn protocol_without_gain_over_linux_is_not_recommended() {
    let of = |name: &str, goodput| result(name, goodput, 0.12);
    let text = recommendation(Aim::Bulk, vec![of("cubic", 9.0), of("rrtp", 9.2)]);
    assert!(text.starts_with("Use cubic") && text.contains("rrtp would give 2.2% more"), "{text}");
    assert!(text.contains("It is Linux's default: nothing needs to be set"), "{text}");
    let text = recommendation(Aim::Bulk, vec![of("cubic", 9.0), of("rrtp", 9.9)]);
    assert!(text.starts_with("Use rrtp"), "{text}");
    assert!(text.contains("Over cubic, the best that Linux has here, it gains 10%"), "{text}");
    // For web pages delay alone is a gain.
    let quick = result("rrtp", 9.0, 0.1);
    let text = recommendation(Aim::Web, vec![of("cubic", 9.2), quick]);
    assert!(
        text.contains("Over cubic, the best that Linux has here, it gains 24 ms less delay"),
        "{text}"
    );
}

/// A shorter queue is part of the completion time and counts only there.
#[test]
fn completion_times_contain_the_delay() {
    let of = |name: &str, completion: f64, rtt| {
        let mut r = result(name, 1.0, rtt);
        let exact = |mean| Estimate::symmetric(mean, None);
        r.measures.extend([("completion_s", exact(completion)), ("finished", exact(1.0))]);
        r
    };
    let text = recommendation(Aim::Web, vec![of("cubic", 0.252, 0.12), of("bbr3", 0.258, 0.105)]);
    assert!(text.starts_with("Use cubic"), "{text}");
    let text = recommendation(Aim::Web, vec![of("cubic", 0.252, 0.12), of("bbr3", 0.2, 0.105)]);
    assert!(text.starts_with("Use bbr3"), "{text}");
}

#[test]
fn several_paths_name_no_command() {
    for paths in [1, 2] {
        let basis = SimulationBasis { paths, ..BASIS };
        let results = vec![result("rrtp", 9.5, 0.11)];
        let found = recommend(&outcome(results), Aim::Bulk, basis, &mut |_| None);
        assert_eq!(found.protocol, "rrtp");
        assert_eq!(found.command.is_some(), paths == 1, "{found:?}");
        assert_eq!(found.to_string().contains("narrows get"), paths == 1, "{found}");
    }
}

#[test]
fn limiting_buffer_is_named_with_its_remedy() {
    let mut bound = result("cubic", 83.0, 0.25);
    bound.measures.push(("sndbuf_limited", Estimate::symmetric(0.93, None)));
    let mut outcome = outcome(vec![bound, result("rrtp", 170.0, 0.26)]);
    outcome.capacity_bps = 200e6;
    let text = recommend(&outcome, Aim::Bulk, BASIS, &mut |_| None).to_string();
    assert!(text.contains("the send buffer binds cubic (93% of the time)"), "{text}");
    assert!(text.contains("sysctl net.ipv4.tcp_wmem='4096 16384 8388608'"), "{text}");
    assert!(text.contains("cubic(receive-window="), "{text}");
    outcome.results[0].measures.pop();
    let text = recommend(&outcome, Aim::Bulk, BASIS, &mut |_| None).to_string();
    assert!(!text.contains("tcp_wmem"), "{text}");
}

#[test]
fn files_must_be_whole_and_calls_do_not_wait() {
    let lossy = || with(result("tfwc", 1.4, 0.12), "loss_rate", |_| 0.029);
    let worse = || with(result("tear-wireless", 1.45, 0.11), "loss_rate", |_| 0.12);
    let text = recommendation(Aim::Bulk, vec![lossy(), result("cubic", 0.8, 0.2)]);
    assert!(text.starts_with("Use cubic") && text.contains("Not considered: tfwc"), "{text}");
    let text = recommendation(Aim::Calls, vec![lossy(), worse(), result("cubic", 1.45, 0.2)]);
    assert!(
        text.starts_with("Use tfwc") && text.contains("but its loss is 12%; calls bear 3.0%"),
        "{text}"
    );
    assert!(text.contains("Not considered: cubic, which waits for retransmissions"), "{text}");
    let text = recommendation(Aim::Calls, vec![lossy(), result("fixed", 1.0, 0.12)]);
    assert!(text.contains("fixed, which does not respond to congestion"), "{text}");
    let text = recommendation(Aim::Bulk, vec![lossy()]);
    assert!(text.contains("None of these is made for bulk"), "{text}");
}

/// `narrows kernel run` counts as available. Unavailable protocols do not compete, and the reason is given.
#[test]
fn only_obtainable_protocols_compete() {
    let text =
        recommendation(Aim::Bulk, vec![result("stpd", 1.45, 0.11), result("bbr", 1.3, 0.15)]);
    assert!(text.starts_with("Use stpd") && text.contains("narrows kernel run 'stpd'"), "{text}");
    let text =
        recommendation(Aim::Bulk, vec![result("tahoe", 1.45, 0.11), result("bbr", 1.3, 0.15)]);
    assert!(text.starts_with("Use bbr") && text.contains("tcp_congestion_control=bbr"), "{text}");
    assert!(text.contains("tahoe is better here, 1.450"), "{text}");
    assert!(text.contains("not to be had: Linux has no loss recovery as tahoe"), "{text}");
    let text = recommendation(Aim::Bulk, vec![result("tahoe", 1.45, 0.11)]);
    assert!(text.starts_with("None of these suits bulk"), "{text}");
}

#[test]
fn one_trajectory_is_no_certainty() {
    let once = |name, goodput| {
        let mut r = result(name, goodput, 0.12);
        r.by_seed.truncate(1);
        r.one_trajectory = true;
        r.seeds = 1;
        settle(&mut r);
        r
    };
    let text = recommendation(Aim::Bulk, vec![once("rrtp", 9.0), once("cubic", 5.0)]);
    assert!(text.contains("on one trajectory") && !text.contains('±'), "{text}");
}

#[test]
fn recommendation_without_delivery_names_the_cause() {
    let silent = || with(result("cubic", 0.0, 0.1), "goodput_bps", |_| 0.0);
    let lossy = |name| with(silent(), name, |_| 1.0);
    let cases = [
        (
            10.0,
            silent(),
            "A packet of 1000 bytes takes 800.0 s at 10.0 bit/s, and the run lasts 60 s",
        ),
        (0.0, silent(), "rate is 0"),
        (1e6, lossy("random_loss_rate"), "loses 100% of the packets at random"),
        (1e6, lossy("queue_loss_rate"), "queue drops 100%"),
        (1e6, silent(), "base RTT"),
    ];
    for (capacity_bps, result, cause) in cases {
        let outcome = Outcome { capacity_bps, ..outcome(vec![result]) };
        let text = recommend(&outcome, Aim::Bulk, BASIS, &mut |_| None).to_string();
        assert!(text.starts_with("None: ") && text.contains(cause), "{text}");
    }
}
