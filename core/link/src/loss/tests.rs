use super::*;
use crate::link::tests::packet;
use narrows_base::Time;
use narrows_base::descriptor::ParamKind;

fn run(spec: &str, n: u32) -> Vec<u32> {
    let mut p = LossSpec::parse_all(spec).unwrap()[0].build(RandomKey::from_seed(5).named("loss"));
    (0..n)
        .filter(|i| p.strikes(Time::from_nanos(u64::from(*i) * 1_000_000), &packet(*i, 1000)))
        .collect()
}

#[test]
fn listed_and_periodic_losses_are_exact() {
    assert_eq!(run("list(20,7,21)", 100), [7, 20, 21]);
    assert_eq!(run("periodic(10)", 45), [10, 20, 30, 40]);
    assert_eq!(run("periodic(period=10,offset=3)", 30), [3, 13, 23]);
}

#[test]
fn one_packet_of_each_block_is_lost_anywhere_in_it() {
    let lost = run("periodic(10,place=random)", 10_000);
    let blocks: Vec<u32> = lost.iter().map(|n| n / 10).collect();
    // The very first packet is never lost, so the first block may have no loss.
    assert_eq!(blocks[1..], (blocks[1]..1000).collect::<Vec<_>>());
    for place in 0..10 {
        let hits = lost.iter().filter(|n| *n % 10 == place).count();
        assert!((60..140).contains(&hits), "place {place}: {hits} of 1000");
    }
}

#[test]
fn uniform_losses_are_binomial_in_mean_and_runs() {
    let lost = run("2%", 200_000);
    let mean = lost.len() as f64 / 200_000.0;
    assert!((mean - 0.02).abs() < 0.001, "{mean}");
    let adjacent = lost.windows(2).filter(|w| w[1] == w[0] + 1).count() as f64;
    // Independent: a loss follows a loss with probability 2%.
    assert!((adjacent / lost.len() as f64 - 0.02).abs() < 0.01);
}

#[test]
fn bursts_have_their_rate_and_length() {
    for spec in ["ge(g=0.126263%,h=12.5%)", "burst(bad=8p,good=792p)", "fade(bad=8ms,good=792ms)"] {
        let lost = run(spec, 2_000_000);
        let rate = lost.len() as f64 / 2e6;
        let bursts = 1 + lost.windows(2).filter(|w| w[1] != w[0] + 1).count();
        let length = lost.len() as f64 / bursts as f64;
        assert!((rate - 0.01).abs() < 0.0012, "{spec}: rate {rate}");
        assert!((length - 8.0).abs() < 0.8, "{spec}: mean burst {length}");
    }
}

#[test]
fn outages_lose_everything_for_a_while() {
    let lost = run("outage(at=2s,for=500ms)", 5_000);
    assert_eq!((lost[0], lost.len()), (2_000, 500));
    let lost = run("outage(at=1s,for=100ms,every=1s)", 5_000);
    assert_eq!(lost.len(), 400);
}

/// Every process on the list with its defaults and its choices, and one with required numbers.
fn all() -> Vec<String> {
    let mut out = Vec::new();
    for entry in LOSSES.iter() {
        let name = entry.descriptor.name;
        if entry.descriptor.params.iter().any(|p| matches!(p.kind, ParamKind::Integers)) {
            out.push(format!("{name}(0,3,17)"));
            continue;
        }
        out.push(name.to_string());
        for p in entry.descriptor.params {
            if let ParamKind::Choice(words) = p.kind {
                out.extend(words.iter().map(|w| format!("{name}({}={w})", p.name)));
            }
        }
    }
    out
}

/// Every list entry loses the same packets for the same seed and load, also with parameters at the ends of their
/// ranges. A packet never takes long.
#[test]
fn every_process_repeats_and_survives_its_own_limits() {
    let mut specs = all();
    for entry in LOSSES.iter() {
        for p in entry.descriptor.params {
            if let ParamKind::Number { unit, min, max, .. } = p.kind {
                for x in [min, max] {
                    specs.push(format!("{}({}={})", entry.descriptor.name, p.name, unit.show(x)));
                }
            }
        }
    }
    assert!(specs.len() > LOSSES.iter().count());
    for text in specs {
        let run = || -> Vec<bool> {
            let spec = LossSpec::parse(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
            let mut process = spec.build(RandomKey::from_seed(3).named("loss"));
            let mut at = Time::ZERO;
            (0..2000u32)
                .map(|i| {
                    at += narrows_base::Duration::from_nanos(u64::from(i % 7) * 40_000_000);
                    process.strikes(at, &packet(i, 1000))
                })
                .collect()
        };
        assert_eq!(run(), run(), "{text}");
    }
}

/// Detects a process that is listed but has no effect.
#[test]
fn every_process_but_none_loses_something_and_not_all() {
    for text in all() {
        let lost = {
            let mut process = LossSpec::parse(&text).unwrap().build(RandomKey::from_seed(9));
            (0..60_000u32)
                .filter(|i| {
                    let at = Time::from_nanos(u64::from(*i) * 1_000_000);
                    process.strikes(at, &packet(*i, 1000))
                })
                .count()
        };
        assert_eq!(lost > 0, text != "none", "{text}: {lost}");
        assert!(lost < 60_000, "{text}");
    }
}

#[test]
fn one_hundred_percent_is_everything_and_nonsense_is_refused() {
    assert_eq!(run("100%", 50).len(), 50);
    assert_eq!(LossSpec::parse_all("1%+outage(at=1s,for=1s)").unwrap().len(), 2);
    assert_eq!(LossSpec::parse_all("ge+fade+1e-2").unwrap().len(), 3, "names end in e");
    assert_eq!(LossSpec::parse_all("0.01e+0+ge").unwrap().len(), 2, "and so do numbers");
    assert!(LossSpec::parse_all("none").unwrap().is_empty());
    for bad in ["2", "-1%", "101%", "gee(g=1)", "ge(x=1)", "list()", "list(a)", "", "uniform(p=2)"]
    {
        assert!(LossSpec::parse_all(bad).is_err(), "{bad:?}");
    }
}

/// `loss=1` was meant as 1% more often than as 100%, and `loss=0.5` as 0.5%.
#[test]
fn loss_from_a_tenth_on_needs_its_percent_sign() {
    for (text, choice) in [("1", "1% or 100%"), ("0.5", "0.5% or 50%"), ("0.1", "0.1% or 10%")] {
        let e = LossSpec::parse_all(text).unwrap_err().to_string();
        assert!(e.contains(choice), "{e}");
    }
    for text in ["100%", "50%", "0.05", "uniform(0.5)"] {
        assert!(LossSpec::parse_all(text).is_ok(), "{text}");
    }
}
