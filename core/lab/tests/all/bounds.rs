//! Measures that are fractions, and goodput, stay within their bounds: over all protocols, bad links, and rates that
//! change.

use narrows_base::RandomKey;
use narrows_lab::measure::{FlowInputs, GroupInputs, MEASURES};
use narrows_lab::response::Response;
use narrows_scenario::{Plan, scenario_file};
use narrows_sim::RunResult;
use narrows_sim::protocol;
use std::path::Path;

fn run(text: &str, seed: u64) -> (Plan, RunResult) {
    let scenario = scenario_file::parse(text, Path::new("")).unwrap();
    let plan = Plan::new(scenario).unwrap_or_else(|e| panic!("{e}: {text}"));
    let result = narrows_sim::run(&plan.network(0, seed, true), &mut |_| true).unwrap();
    (plan, result)
}

/// Measure `name` of a group.
fn measure(plan: &Plan, run: &RunResult, group: usize, name: &str) -> f64 {
    let others = plan.others(group);
    let response = Response::of(plan, 0, run, group);
    let link = &run.links[plan.bottleneck(group)];
    let view = GroupInputs { run, group, link, others: &others, response: &response };
    let found = MEASURES.iter().find(|m| m.name == name).unwrap();
    (found.of)(&view)
}

/// A link of 1.5 Mbit/s; the rate falls to 200 kbit/s at the start of the measured span.
fn falls(protocol: &str, second: &str) -> String {
    format!(
        "duration = \"34s\"\nwarmup = \"30s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1.5Mbit/s\"\n\
         delay = \"80ms\"\nqueue = \"1bdp\"\n{second}[[flows]]\nname = \"main\"\nprotocol = \"{protocol}\"\n\
         from = \"a\"\nto = \"c\"\n[[change]]\nat = \"30s\"\nlink = \"a-b\"\nrate = \"200kbit/s\"\n"
    )
}

const SECOND: &str = "[[link]]\nfrom = \"b\"\nto = \"c\"\nrate = \"100Mbit/s\"\ndelay = \"40ms\"\n";

#[test]
fn goodput_after_a_rate_drop_stays_within_limit() {
    let mut max = 0.0f64;
    for protocol in ["sack", "cubic", "rrtp", "fixed(rate=1.4Mbit/s)"] {
        let (plan, r) = run(&falls(protocol, SECOND), 1);
        let of = |name| measure(&plan, &r, 0, name);
        let goodput = of("goodput_bps");
        let limit = of("goodput_limit_bps");
        // At the start of the measured span 120 ms of the old rate are behind the bottleneck.
        assert!((limit - (200e3 + 1.3e6 * 0.12 / 4.0)).abs() < 1.0, "{protocol}: {limit}");
        assert!(goodput <= limit, "{protocol}: {goodput} of {limit}");
        max = goodput.max(max);
    }
    assert!(max > 205e3, "else this test shows nothing: {max}");
}

#[test]
fn a_constant_rate_is_the_limit_itself() {
    let text = falls("sack", SECOND);
    let (plan, r) = run(text.split("[[change]]").next().unwrap(), 1);
    assert_eq!(measure(&plan, &r, 0, "goodput_limit_bps"), 1.5e6);
}

/// Every protocol of the list on links drawn at random: slow, lossy, with outages, with a rate that falls.
#[test]
fn fractions_are_fractions_whatever_the_link_and_the_protocol() {
    let mut random_key = RandomKey::from_seed(13).named("bounds").stream();
    let mut draw = |of: &[&'static str]| of[(random_key.unit() * of.len() as f64) as usize];
    for entry in protocol::named() {
        for seed in 1..=3 {
            let text = format!(
                "duration = \"{}\"\nwarmup = \"{}\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"{}\"\n\
                 delay = \"{}\"\nqueue = \"{}\"\nloss = \"{}\"\nreverse = {{ loss = \"{}\" }}\n[[flows]]\n\
                 name = \"main\"\nprotocol = \"{}\"\ncount = 3\nfrom = \"a\"\nto = \"b\"\nstagger = \"5s\"\n\
                 [[change]]\nat = \"9.9s\"\nlink = \"a-b\"\nrate = \"{}\"\n",
                draw(&["12s", "20s", "40s"]),
                draw(&["0s", "8s", "10s"]),
                draw(&["30kbit/s", "500kbit/s", "8Mbit/s"]),
                draw(&["1ms", "60ms", "400ms"]),
                draw(&["2p", "1bdp", "30p"]),
                draw(&["0%", "5%", "40%", "90%"]),
                draw(&["0%", "30%", "95%"]),
                entry.name,
                draw(&["9kbit/s", "100kbit/s", "8Mbit/s"]),
            );
            let (plan, r) = run(&text, seed);
            let shown = || format!("{}, seed {seed}: {text}", entry.name);
            for m in MEASURES.iter().filter(|m| m.unit == "fraction") {
                let x = measure(&plan, &r, 0, m.name);
                let max = match m.name {
                    // Many packets sent before the measured span may be counted as lost in it.
                    "sender_loss_rate" => f64::INFINITY,
                    // A packet in transmission when the rate falls finishes at the old rate.
                    "utilisation" => 1.0 + 1500.0 * 8.0 / r.links[0].capacity_bits,
                    _ => 1.0,
                };
                assert!(x.is_nan() || (0.0..=max).contains(&x), "{} = {x}, {}", m.name, shown());
            }
            let goodput = measure(&plan, &r, 0, "goodput_bps");
            let limit = measure(&plan, &r, 0, "goodput_limit_bps");
            // Except for the packet in transmission when the rate fell.
            let limit = limit + 1500.0 * 8.0 / r.span_s;
            assert!(goodput <= limit, "{goodput} of {limit}, {}", shown());
            let rate = MEASURES.iter().find(|m| m.name == "loss_event_rate").unwrap();
            for result in &r.groups[0].flows {
                let one = (rate.per_flow.unwrap())(&FlowInputs { result, convergence_s: 0.0 }, 1.0);
                assert!(one.is_nan() || (0.0..=1.0).contains(&one), "{one}, {}", shown());
            }
            // Variables of controllers and receiver sides.
            for table in &r.series {
                for name in ["loss_event_rate", "receiver_loss_event_rate", "loss_rate"] {
                    let values = table.column(name).unwrap_or_default();
                    let wrong = values.iter().find(|x| x.is_finite() && !(0.0..=1.0).contains(*x));
                    assert_eq!(wrong, None, "{name} of {}, {}", table.name, shown());
                }
            }
        }
    }
}
