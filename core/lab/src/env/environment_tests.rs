//! One environment: effects of actions, observations, and refused input.

use super::Environment;
use crate::env::{
    ACTIONS, EnvError, EnvironmentSettings, OBSERVATIONS, REWARDS, StepLength, Task, Transport,
};
use narrows_sim::protocol::Preset;

fn settings(link: &str) -> EnvironmentSettings {
    EnvironmentSettings {
        link: link.into(),
        packet: 1500,
        actions: vec!["window".into()],
        steps: 100,
        ..EnvironmentSettings::default()
    }
}

fn environment(settings: &EnvironmentSettings) -> Environment {
    Environment::new(Task::new(settings).unwrap().into())
}

/// Plays an episode with one action and returns the means of the measures.
fn means(settings: &EnvironmentSettings, action: f32) -> [f64; 4] {
    let mut e = environment(settings);
    let mut seen = vec![0.0; settings.observations.len()];
    e.reset(1, &mut seen).unwrap();
    for _ in 0..settings.steps {
        e.step(&[action], &mut seen).unwrap();
    }
    e.means()
}

/// Protects: the window that an action sets is the window. Below one BDP, throughput is proportional to it. At two, the
/// queue holds one. Beyond the queue, packets are lost.
#[test]
fn action_sets_the_window() {
    // An acknowledgement for each packet, without delayed or combined acknowledgements.
    let rfc = |link| EnvironmentSettings { preset: Preset::Rfc, ..settings(link) };
    // 20 ms + a packet of 1.2 ms: 17.7 packets.
    let link = rfc("10Mbit/s,10ms,queue=40p");
    for (window, throughput, rtt) in [(6.0, 6.0 / 17.7, 1.0), (30.0, 1.0, 30.0 / 17.7)] {
        let [t, r, loss, _] = means(&link, window);
        assert!((t / throughput - 1.0).abs() < 0.06, "window {window}: throughput {t}");
        assert!((r / rtt - 1.0).abs() < 0.06, "window {window}: RTT {r}");
        assert_eq!(loss, 0.0);
    }
    // Retransmissions are lost, too: RACK finds them.
    let [t, r, loss, _] = means(&settings("10Mbit/s,10ms,queue=17p"), 60.0);
    assert!(t > 0.95 && r < 2.2 && loss > 0.01, "{t} {r} {loss}");
}

/// Protects: a pacing rate is the rate, over either transport.
#[test]
fn action_sets_the_pacing_rate() {
    for transport in [Transport::Tcp, Transport::Rrtp] {
        let mut link = settings("10Mbit/s,10ms");
        link.actions = vec!["rate".into()];
        link.transport = transport;
        let [t, r, loss, _] = means(&link, 4.0);
        assert!((t / 0.4 - 1.0).abs() < 0.06 && loss == 0.0, "{transport:?}: {t} {loss}");
        assert!(r < 1.3, "{transport:?}: nothing waits at less than half of the rate: {r}");
    }
}

/// Protects: changes multiply, a gain follows the window, and a finite action beyond its bounds counts as the bound.
#[test]
fn actions_have_their_listed_effects() {
    let mut link = settings("10Mbit/s,10ms");
    link.actions = vec!["window_change".into(), "pacing_gain".into()];
    let mut e = environment(&link);
    let mut seen = vec![0.0; link.observations.len()];
    e.reset(1, &mut seen).unwrap();
    let begin = e.last_step().window();
    e.step(&[1.0, 1.0], &mut seen).unwrap();
    assert_eq!(e.last_step().window(), 2.0 * begin);
    assert_eq!(e.last_step().change(), 1.0);
    e.step(&[-7.0, 2.0], &mut seen).unwrap();
    assert_eq!(e.last_step().window(), begin);
    let paced = e.last_step().pacing_rate();
    let rate = 2.0 * begin * 0.012 / 0.0212;
    assert!((paced / rate - 1.0).abs() < 0.4, "{paced} instead of about {rate} Mbit/s");
    for _ in 0..40 {
        e.step(&[1.0, 1.0], &mut seen).unwrap();
    }
    // Four times the capacity of link and queue.
    assert!(e.last_step().window() <= 4.0 * (17.7 + 18.0), "{}", e.last_step().window());
}

/// Protects: every observation and reward is finite and within its bounds in all conditions: an outage, a rate close to
/// zero, windows that jump, with and without competitors.
#[test]
fn observations_stay_within_their_bounds() {
    let all = |link: &str| EnvironmentSettings {
        observations: OBSERVATIONS.iter().map(|o| o.name.to_string()).collect(),
        rewards: REWARDS.iter().map(|r| (r.name.to_string(), 1.0)).collect(),
        ..settings(link)
    };
    let mut tasks = vec![
        all("1Mbit/s..50Mbit/s log,5ms..50ms,loss=0..20%,queue=5p..50p"),
        all("10Mbit/s,10ms,loss=100%"),
        all("10Mbit/s,10ms,aqm=codel,jitter=3ms"),
        EnvironmentSettings { against: Some("cubic:2".into()), ..all("10Mbit/s,10ms") },
        EnvironmentSettings { transport: Transport::Rrtp, ..all("10Mbit/s,10ms,loss=5%") },
        EnvironmentSettings { protocol: Some("bbr".into()), ..all("10Mbit/s,10ms,loss=2%") },
        EnvironmentSettings { step: StepLength::parse("3ms").unwrap(), ..all("10Mbit/s,10ms") },
    ];
    tasks.extend(ACTIONS.iter().filter(|a| a.name != "pacing_gain").map(|a| EnvironmentSettings {
        actions: vec![a.name.into()],
        ..all("10Mbit/s,10ms,loss=1%")
    }));
    for settings in tasks {
        let mut e = environment(&settings);
        let mut seen = vec![0.0; OBSERVATIONS.len()];
        for seed in 0..3 {
            e.reset(seed, &mut seen).unwrap();
            for i in 0..settings.steps {
                let jump = [1e9, -1e9, 0.3, 20.0][i as usize / 7 % 4];
                let out = e.step(&[jump], &mut seen).unwrap();
                assert!(out.reward.is_finite(), "{settings:?}");
                assert_eq!(out.truncated, i + 1 == settings.steps);
                for (x, of) in seen.iter().zip(&OBSERVATIONS) {
                    assert!((of.low..=of.high).contains(x), "{} is {x}: {settings:?}", of.name);
                }
            }
        }
    }
}

/// Protects: a listed protocol in the actions' place is that protocol: the same run, to the packet, as without an
/// environment around it.
#[test]
fn a_listed_protocol_is_not_disturbed() {
    for name in ["cubic", "bbr", "rrtp", "vegas"] {
        let settings = EnvironmentSettings {
            protocol: Some(name.into()),
            packet: 1000,
            steps: 200,
            ..settings("10Mbit/s,10ms,loss=0.5%")
        };
        let mut e = environment(&settings);
        let mut seen = vec![0.0; settings.observations.len()];
        e.reset(5, &mut seen).unwrap();
        for _ in 0..settings.steps {
            e.step(&[0.7], &mut seen).unwrap();
        }
        let mut network = e.task().network(5).unwrap();
        let spec = narrows_base::Spec::parse(name).unwrap();
        network.groups[0].protocol =
            narrows_sim::protocol::FlowProtocol::read(&spec, Preset::Linux, 1000).unwrap();
        let alone = narrows_sim::run(&network, &mut |_| true).unwrap();
        let running = e.running.unwrap();
        assert_eq!(running.simulation.finish().digest, alone.digest, "{name}");
    }
}

/// Protects: an invalid setting is refused in one line that names it, before the simulation starts.
#[test]
fn bad_settings_are_refused_by_name() {
    let good = || settings("10Mbit/s,10ms");
    let cases: [(EnvironmentSettings, &str); 14] = [
        (EnvironmentSettings { link: "10Mbit,5".into(), ..good() }, "link: "),
        (EnvironmentSettings { packet: 3, ..good() }, "packet"),
        (EnvironmentSettings { protocol: Some("cubik".into()), ..good() }, "did you mean 'cubic'"),
        (EnvironmentSettings { against: Some("cubic:0".into()), ..good() }, "against: "),
        (
            EnvironmentSettings { against: Some("cubic:1000000000".into()), ..good() },
            "against: 1000000000 flows",
        ),
        (EnvironmentSettings { actions: vec!["windw".into()], ..good() }, "did you mean 'window'"),
        (EnvironmentSettings { actions: vec![], ..good() }, "actions: there is none"),
        (
            EnvironmentSettings {
                actions: vec!["window".into(), "window_change".into()],
                ..good()
            },
            "two set the window",
        ),
        (
            EnvironmentSettings { actions: vec!["pacing_gain".into()], ..good() },
            "pacing_gain needs",
        ),
        (EnvironmentSettings { observations: vec!["los".into()], ..good() }, "did you mean 'loss'"),
        (EnvironmentSettings { observations: vec![], ..good() }, "observations: there is none"),
        (
            EnvironmentSettings { rewards: vec![("thruput".into(), 1.0)], ..good() },
            "unknown reward",
        ),
        (EnvironmentSettings { rewards: vec![("loss".into(), f64::NAN)], ..good() }, "NaN"),
        (EnvironmentSettings { steps: 0, ..good() }, "steps: 0"),
    ];
    for (settings, hint) in cases {
        let e = Task::new(&settings).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(e.contains(hint) && !e.contains('\n'), "{hint:?}: {e:?}");
    }
    for bad in ["", "1", "0rtt", "-1rtt", "nanrtt", "infrtt", "0s", "2h", "1e9rtt"] {
        assert!(StepLength::parse(bad).is_err(), "{bad}");
    }
}

/// Protects: an invalid action does not change the state, and a step without an episode is refused.
#[test]
fn bad_actions_are_refused() {
    let mut e = environment(&settings("10Mbit/s,10ms"));
    let mut seen = vec![0.0; 6];
    assert_eq!(e.step(&[1.0], &mut seen), Err(EnvError::NotReset(0)));
    e.reset(1, &mut seen).unwrap();
    let before = e.last_step().time_s();
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let error = e.step(&[bad], &mut seen).unwrap_err().to_string();
        assert!(error.contains("action 'window'") && error.contains("finite"), "{error}");
    }
    assert!(e.step(&[1.0, 2.0], &mut seen).is_err() && e.step(&[], &mut seen).is_err());
    assert!(e.step(&[1.0], &mut seen[1..]).is_err());
    assert_eq!(e.last_step().time_s(), before, "nothing was played");
    for _ in 0..100 {
        e.step(&[1.0], &mut seen).unwrap();
    }
    assert_eq!(e.step(&[1.0], &mut seen), Err(EnvError::Ended(0)));
}
