use super::*;
use narrows_scenario::scenario_file;
use narrows_sim::result::Roughness;
use narrows_sim::{FlowDetail, GroupResult, LinkResult, LinkTicks};
use std::path::Path;

/// Two groups on 8 Mbit/s: the first always, `second` from 30 s to 60 s of 100 s.
fn plan(warmup: &str) -> Plan {
    let text = format!(
        r#"
        duration = "100s"
        warmup = "{warmup}"
        [[link]]
        from = "a"
        to = "b"
        rate = "8Mbit/s"
        delay = "10ms"
        [[flows]]
        name = "first"
        protocol = "sack"
        from = "a"
        to = "b"
        [[flows]]
        name = "second"
        protocol = "sack"
        from = "a"
        to = "b"
        start = "30s"
        stop = "60s"
        "#
    );
    Plan::new(scenario_file::parse(&text, Path::new("")).unwrap()).unwrap()
}

/// A flow that started at `start` and received these bytes in each second from `first` on.
fn flow(start: f64, first: usize, seconds: Vec<u64>) -> FlowResult {
    let roughness = [Roughness::NONE; 7];
    let mut flow = FlowResult::default();
    flow.start = Time::from_secs_f64(start);
    flow.detail = Some(Box::new(FlowDetail { roughness, first, seconds }));
    flow
}

/// A run in which groups offered and were served these bits in each tick.
fn run(ticks: Vec<(Vec<f64>, Vec<f64>)>, flows: Vec<Vec<FlowResult>>) -> RunResult {
    let group = |flows| {
        let mut group = GroupResult::default();
        group.flows = flows;
        group
    };
    let mut link = LinkResult::default();
    link.capacity_bits = 8e8;
    link.ticks = ticks.into_iter().map(|(offered, served)| LinkTicks { offered, served }).collect();
    let mut run = RunResult::default();
    run.span_s = 100.0;
    run.groups = flows.into_iter().map(group).collect();
    run.links = vec![link];
    run
}

/// Bits per tick: pairs of (ticks, Mbit/s).
fn ticks(parts: &[(usize, f64)]) -> Vec<f64> {
    parts.iter().flat_map(|(n, mbps)| std::iter::repeat_n(mbps * 1e5, *n)).collect()
}

#[test]
fn halving_and_taking_up_are_read_off_the_ticks() {
    // Offers 8 until 0.7 s after the second group starts, then 6, and from 2 s after on 4.
    let offered = ticks(&[(307, 8.0), (13, 6.0), (280, 4.0), (400, 8.0)]);
    // Served 4 until 3 s after the second stopped, then 6, and from 5 s on 7.
    let served = ticks(&[(300, 8.0), (330, 4.0), (20, 6.0), (350, 7.0)]);
    let flows = || vec![vec![flow(0.0, 0, vec![])], vec![]];
    let none = (ticks(&[]), ticks(&[]));
    let r = run(vec![(offered.clone(), served.clone()), none.clone()], flows());
    let response = Response::of(&plan("0s"), 0, &r, 0);
    // The target is 1.2 x 4 = 4.8: the first window that reaches it has four ticks of 6 and six of 4.
    assert!((response.halving_s - 1.6).abs() < 1e-9, "{}", response.halving_s);
    // 80% of 8 is 6.4: six ticks of 6 and four of 7 reach it.
    assert!((response.takeup_s - 4.4).abs() < 1e-9, "{}", response.takeup_s);

    // The same, measured from 25 s on: the mean before the step is that of five seconds.
    let later = |x: &[f64]| x[250..].to_vec();
    let r = run(vec![(later(&offered), later(&served)), none.clone()], flows());
    let response = Response::of(&plan("25s"), 0, &r, 0);
    assert!((response.halving_s - 1.6).abs() < 1e-9, "{}", response.halving_s);
    // Measured from 29.5 s on, the time before the step is too short for a mean.
    let r = run(vec![(offered[295..].to_vec(), served[295..].to_vec()), none.clone()], flows());
    let response = Response::of(&plan("29.5s"), 0, &r, 0);
    assert!(response.halving_s.is_nan() && (response.takeup_s - 4.4).abs() < 1e-9);

    // A group that never backs off has no time; neither has one that was below the new share all along.
    for mbps in [8.0, 3.0] {
        let still = ticks(&[(1000, mbps)]);
        let r = run(vec![(still.clone(), still), none.clone()], flows());
        assert!(Response::of(&plan("0s"), 0, &r, 0).halving_s.is_nan(), "{mbps}");
    }
    // Backing off after the other group has gone is no response to its start.
    let late = ticks(&[(605, 8.0), (395, 1.0)]);
    let r = run(vec![(late.clone(), late), none], flows());
    assert!(Response::of(&plan("0s"), 0, &r, 0).halving_s.is_nan());
}

#[test]
fn a_flow_converges_when_it_stays_near_its_share() {
    // The second group's time is 30 s to 60 s, so its share is that of 45 s to 60 s: the two
    // deliver 600 and 400 there, which makes 500 each.
    let first = flow(0.0, 0, vec![600; 100]);
    let mut seconds = vec![100, 200, 420, 450, 399, 410, 420, 430, 500, 590, 601];
    seconds.resize(15, 400);
    seconds.resize(30, 400);
    let second = flow(30.0, 30, seconds);
    let empty = (vec![], vec![]);
    let r = run(vec![empty.clone(), empty.clone()], vec![vec![first], vec![second]]);
    // Seconds 2 and 3 are near, second 4 is not (399), 5 to 9 are: five in a row.
    assert_eq!(Response::of(&plan("0s"), 0, &r, 1).convergence_s, [5.0]);
    // Alone until 30 s, the first flow is its own share at once.
    assert_eq!(Response::of(&plan("0s"), 0, &r, 0).convergence_s, [0.0]);
    // A flow that started before the measured span has no convergence time. A flow that gets ten times as much as the
    // other never reaches an equal share.
    let flows = vec![vec![flow(0.0, 0, vec![600; 100])], vec![flow(30.0, 30, vec![60; 30])]];
    let r = run(vec![empty.clone(), empty], flows);
    assert!(Response::of(&plan("0s"), 0, &r, 1).convergence_s[0].is_nan());
    assert!(Response::of(&plan("20s"), 0, &r, 0).convergence_s[0].is_nan());
}

#[test]
fn theta_and_jain_over_time_are_those_of_each_second() {
    let mut plan = plan("0s");
    plan.scenario.flows[0].count = 2;
    let own = ticks(&[(20, 6.0), (10, 0.0)]);
    let other = ticks(&[(10, 2.0), (20, 0.0)]);
    let flows = vec![flow(0.0, 0, vec![300, 100]), flow(0.5, 1, vec![300, 0])];
    let r = run(vec![(vec![], own), (vec![], other)], vec![flows, vec![]]);
    let table = over_time(&plan, &r, 0).unwrap();
    assert_eq!((table.kind, table.name.as_str()), ("group", "first"));
    assert_eq!(table.time_s, [1.0, 2.0, 3.0]);
    assert_eq!(table.column("throughput_bps").unwrap(), [6e6, 6e6, 0.0]);
    let theta = table.column("theta").unwrap();
    assert!(theta[..2] == [0.25, 0.0] && theta[2].is_nan());
    // In the first second only one flow was active for all of it; in the second 100 and 300.
    let equality = table.column("jain").unwrap();
    assert!(equality[0].is_nan() && equality[2].is_nan());
    assert!((equality[1] - 160_000.0 / (2.0 * 100_000.0)).abs() < 1e-12);
}
