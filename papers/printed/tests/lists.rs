//! The printed forms in the lists of a process that has added them.

use narrows_base::{Duration, Rate, Spec, Time};
use narrows_congestion::PathHints;
use narrows_link::{LinkConfig, LossSpec};
use narrows_scenario::families::protocols;
use narrows_sim::protocol::{Family, ProtocolEntry, every};
use narrows_sim::protocol::{FlowProtocol, Preset, named};
use narrows_sim::{NetworkSpec, Registry, SourceSpec, dumbbell, run};
use std::sync::{Arc, Once};

fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| narrows_printed::add(Registry::new()).install().unwrap());
}

fn network(protocol: &str, seconds: u64, loss: &str) -> NetworkSpec {
    let spec = Spec::parse(protocol).unwrap();
    let mut network =
        dumbbell(1, 2, seconds, FlowProtocol::read(&spec, Preset::Rfc, 1000).unwrap());
    for link in &mut network.links[..2] {
        let mut config = LinkConfig::clone(&link.config);
        config.loss = LossSpec::parse_all(loss).unwrap();
        link.config = Arc::new(config);
    }
    network
}

/// A printed form is Narrows' form with these options, packet by packet.
#[test]
fn a_printed_form_is_our_form_with_these_options() {
    install();
    let of = [
        ("stpd-paper", "stpd(startup=slow)"),
        ("tfwc-paper", "tfwc(rate-mode=on,t0=variance,spread=0)"),
        ("jersey-paper", "jersey(unmarked=radio)"),
        ("rrtp-paper", "rrtp+limd(rise=printed,classifier=spike,recovery=nack)"),
        ("tear-paper", "tear(discount=off,yield=off,undo=off)"),
        ("tear-wireless-paper", "tear-wireless(thresholds=fixed,discount=off,bound=off)"),
    ];
    for (printed, own) in of {
        let digest = |name| run(&network(name, 20, "1%"), &mut |_| true).unwrap().digest;
        assert_eq!(digest(printed), digest(own), "{printed}");
    }
    let printed = named().filter(|p| p.is_printed());
    assert_eq!(printed.count(), of.len() + 1, "and rrtp-lasthop-paper");
}

#[test]
fn printed_forms_are_in_the_family_of_papers_only() {
    install();
    let names = |family| -> Vec<String> {
        protocols(family).unwrap().iter().map(ToString::to_string).collect()
    };
    for printed in named().filter(|p| p.is_printed()) {
        assert!(names("papers").contains(&printed.name.to_string()), "{}", printed.name);
        assert!(!printed.paper.is_empty(), "{}", printed.name);
    }
    for family in ["all", "tcp", "media", "family:rrtp"] {
        assert!(names(family).iter().all(|n| !n.ends_with("-paper")), "{family}");
    }
}

/// Streams are complete after losses in both directions; media go on.
#[test]
fn faults_on_the_way_stop_no_printed_form() {
    install();
    let added = |p: &&ProtocolEntry| p.name.contains("limd") || p.is_printed();
    for p in every().filter(added) {
        let mut network = network(p.name, 900, "3%+outage(at=2s,for=300ms)");
        if p.family == Family::Media {
            network.end = Time::from_secs_f64(60.0);
            let result = run(&network, &mut |_| true).unwrap();
            let bytes = result.groups[0].flows[0].goodput_bytes;
            assert!(bytes > 200_000, "{}: {bytes}", p.name);
        } else {
            let transfer = Spec::parse("transfer(size=300kB)").unwrap();
            network.groups[0].source = SourceSpec::read(&transfer).unwrap();
            let flow = &run(&network, &mut |_| true).unwrap().groups[0].flows[0];
            assert_eq!(flow.goodput_bytes, 300_000, "{}", p.name);
            assert!(flow.done.is_some());
        }
    }
}

/// A sender that cannot raise its rate by itself gets the hint during the run that its path became ten times as fast.
#[test]
fn hint_during_the_run_raises_a_stuck_rate() {
    install();
    let hints = PathHints { rate: Some(Rate::from_bps(1_800_000)), ..PathHints::default() };
    let goodput = |hinted: bool| {
        let limd = "rrtp+limd(rise=printed,rate=180kbit/s)";
        let mut network = network(limd, 20, "none");
        network.measure_from = Time::ZERO + Duration::from_secs(10);
        if hinted {
            network.reconfigurations.push((network.measure_from, 0, hints));
        }
        run(&network, &mut |_| true).unwrap().groups[0].flows[0].goodput_bytes as f64 * 0.8
    };
    let before = goodput(false);
    let after = goodput(true);
    assert!(before < 0.18e6 && after > 1.6e6, "{before} {after}");
}
