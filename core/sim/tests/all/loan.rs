//! Controllers that are listed for a limited time.

use narrows_base::{Descriptor, Settings, Spec, Status, Time};
use narrows_congestion::{Controller, ControllerEntry, Environment, SimulationScope};
use narrows_link::LinkConfig;
use narrows_sim::protocol::ProtocolEntry;
use narrows_sim::protocol::{FlowProtocol, Preset};
use narrows_sim::{FlowSpec, GroupSpec, LinkSpec, Loan, NetworkSpec, SourceSpec, run};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

static ENTERED: AtomicUsize = AtomicUsize::new(0);
static BUILT_INSIDE: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static INSIDE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    static FAILED: std::cell::Cell<Option<&'static str>> = const { std::cell::Cell::new(None) };
}

const SCOPE: SimulationScope =
    SimulationScope { enter, failure: || FAILED.get().map(String::from) };
const OTHER_SCOPE: SimulationScope =
    SimulationScope { enter: |simulation| simulation(), failure: || None };

fn enter(simulation: &mut dyn FnMut()) {
    ENTERED.fetch_add(1, Ordering::Relaxed);
    INSIDE.set(true);
    simulation();
    INSIDE.set(false);
}

fn reno_by(_: &Settings, environment: &Environment) -> Box<dyn Controller> {
    if INSIDE.get() {
        BUILT_INSIDE.fetch_add(1, Ordering::Relaxed);
    }
    let reno = narrows_congestion::find("reno").unwrap();
    reno.build(&Settings::defaults(reno.descriptor.params), environment)
}

const DESCRIPTOR: Descriptor = Descriptor {
    name: "LentReno",
    summary: "as Reno",
    source: "-",
    senses: "loss",
    sets: "window",
    params: &[],
    status: Status::NotValidated,
};

static LENT: Descriptor = DESCRIPTOR;
static OTHER: Descriptor = Descriptor { name: "LentToo", ..DESCRIPTOR };

fn network(protocol: &str) -> NetworkSpec {
    let flow = FlowSpec::new(vec![0], vec![1]);
    let group = |name: &str| GroupSpec {
        name: name.into(),
        protocol: FlowProtocol::read(&Spec::parse(protocol).unwrap(), Preset::Rfc, 1000).unwrap(),
        source: SourceSpec::read(&Spec::named("bulk")).unwrap(),
        flows: vec![flow.clone()],
    };
    let config = LinkConfig::plain(
        narrows_base::Rate::from_bps_f64(2e6),
        narrows_base::Duration::from_millis(30),
    );
    let link =
        |name: &str| LinkSpec { name: name.into(), config: config.clone().into(), metered: true };
    NetworkSpec {
        seed: 7,
        end: Time::from_secs_f64(5.0),
        links: vec![link("there"), link("back")],
        groups: vec![group("one"), group("two")],
        ..NetworkSpec::default()
    }
}

/// A lent controller is a protocol like the listed ones: over TCP and over rrtp it has the results of the same
/// controller from the list. Its simulations run within its scope, entered once for any number of groups. A failure
/// that the scope reports is the simulation's error. Its version distinguishes it.
#[test]
fn lent_controller_acts_like_a_listed_one_within_scope() {
    let controller =
        ControllerEntry::from_closure(&LENT, &reno_by).with_scope(SCOPE).with_version(5);
    let controller = Box::leak(Box::new(controller));
    let tcp = Box::leak(Box::new(ProtocolEntry::tcp("LentReno", "LentReno", "sack", "as Reno")));
    let name = "rrtp+LentReno";
    let stream = Box::leak(Box::new(ProtocolEntry::stream(name, "LentReno", "as Reno")));
    let loan = Loan::new(controller, tcp, stream).unwrap();
    for (lent, listed) in [("LentReno", "sack"), (name, "rrtp+reno")] {
        let spec = network(lent);
        assert_eq!((spec.groups[0].protocol.version(), ENTERED.swap(0, Ordering::Relaxed)), (5, 0));
        BUILT_INSIDE.store(0, Ordering::Relaxed);
        let result = run(&spec, &mut |_| true).unwrap();
        assert_eq!(ENTERED.swap(0, Ordering::Relaxed), 1);
        assert_eq!(BUILT_INSIDE.load(Ordering::Relaxed), 2, "its controllers are made inside");
        assert_eq!(result.digest, run(&network(listed), &mut |_| true).unwrap().digest);
        assert_eq!(ENTERED.load(Ordering::Relaxed), 0, "others run without");
    }
    let other = Box::leak(Box::new(
        ControllerEntry::from_closure(&OTHER, &reno_by).with_scope(OTHER_SCOPE),
    ));
    let other_tcp =
        Box::leak(Box::new(ProtocolEntry::tcp("LentToo", "LentToo", "sack", "as Reno")));
    let other_stream =
        Box::leak(Box::new(ProtocolEntry::stream("rrtp+LentToo", "LentToo", "as Reno")));
    let other = Loan::new(other, other_tcp, other_stream).unwrap();
    let mut between = network("LentReno");
    let too = GroupSpec { name: "between".into(), ..network("LentToo").groups.remove(0) };
    between.groups.insert(1, too);
    run(&between, &mut |_| true).unwrap();
    assert_eq!(ENTERED.swap(0, Ordering::Relaxed), 1, "whatever stands between its groups");
    drop(other);
    FAILED.set(Some("it gave up"));
    let failed = run(&network("LentReno"), &mut |_| true).unwrap_err().to_string();
    assert_eq!(failed, "it gave up");
    let second = Loan::new(controller, tcp, stream).unwrap_err().to_string();
    assert!(second.contains("in use"), "{second}");
    drop(loan);
    assert!(FlowProtocol::read(&Spec::named(name), Preset::Rfc, 1000).is_err());
}
