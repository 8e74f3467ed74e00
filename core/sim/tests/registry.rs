//! Parts of another crate, registered by name. A process of its own, since lists accept additions only once.

use narrows_base::{
    Descriptor, Duration, RandomKey, RandomStream, Rate, Settings, Spec, Status, Time,
};
use narrows_link::queue::{Discipline, QueueObserver, QueuedPacket};
use narrows_link::{LinkConfig, LinkPacket, LossSpec, QueueConfig, loss, queue};
use narrows_sim::protocol::{self, FlowProtocol, Preset};
use narrows_sim::source::{self, Pattern, Source};
use narrows_sim::{Registry, SourceSpec, dumbbell, run};
use std::sync::Arc;

const fn descriptor(name: &'static str) -> Descriptor {
    Descriptor {
        name,
        summary: "a test's",
        source: "-",
        senses: "-",
        sets: "-",
        params: &[],
        status: Status::NotValidated,
    }
}
const TINY: Descriptor = descriptor("tiny");
const EVERY_TENTH: Descriptor = descriptor("every-tenth");
const DRIP: Descriptor = descriptor("drip");

/// Room for one packet.
struct Tiny(Option<(Time, QueuedPacket)>);
impl Discipline for Tiny {
    fn enqueue(
        &mut self,
        now: Time,
        p: QueuedPacket,
        _: bool,
        observer: &mut dyn QueueObserver,
    ) -> bool {
        if self.0.is_some() {
            observer.dropped(&p);
            return false;
        }
        self.0 = Some((now, p));
        true
    }
    fn dequeue(&mut self, _: Time, _: &mut dyn QueueObserver) -> Option<(Time, QueuedPacket)> {
        self.0.take()
    }
    fn waiting(&self) -> usize {
        usize::from(self.0.is_some())
    }
}

struct EveryTenth(u64);
impl loss::LossProcess for EveryTenth {
    fn strikes(&mut self, _: Time, packet: &dyn LinkPacket) -> bool {
        self.0 += u64::from(packet.is_data());
        packet.is_data() && self.0.is_multiple_of(10)
    }
}

/// A thousand bytes every tenth of a second.
#[derive(Debug)]
struct Drip;
impl Source for Drip {
    fn write(&mut self, now: Time, _: &dyn Fn() -> f64) -> (u64, Time) {
        (1000, now + Duration::from_millis(100))
    }
}
fn drip(_: &Settings, _: RandomStream) -> Box<dyn Source> {
    Box::new(Drip)
}

fn refused(registry: Registry) -> String {
    let line = registry.install().unwrap_err().to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}

#[test]
fn registered_parts_are_built_by_name_without_replacing_others() {
    // A refused addition leaves the lists unchanged.
    const RED: Descriptor = descriptor("red");
    const ODD: Descriptor = descriptor("a,b");
    let tiny = |descriptor| queue::QueueEntry::new(descriptor, |_| Box::new(Tiny(None)));
    assert!(refused(Registry::new().queue(tiny(&RED))).contains("has a queue of that name"));
    assert!(refused(Registry::new().queue(tiny(&ODD))).contains("a name is"));
    let twice = Registry::new().queue(tiny(&TINY)).queue(tiny(&TINY));
    assert!(refused(twice).contains("registered twice"));

    Registry::new()
        .queue(tiny(&TINY))
        .loss(loss::LossEntry::new(&EVERY_TENTH, |_, _: RandomKey| Box::new(EveryTenth(0))))
        .source(source::SourceEntry::new(&DRIP, Pattern::Ongoing(drip)))
        .protocol(protocol::ProtocolEntry::tcp(
            "mine",
            "reno",
            "newreno",
            "a combination of one's own",
        ))
        .install()
        .unwrap();

    let read = |name: &str| FlowProtocol::read(&Spec::named(name), Preset::Rfc, 1000).unwrap();
    let network = |aqm: Option<&str>, loss: &str, source: &str| {
        let mut spec = dumbbell(1, 2, 20, read("mine"));
        let mut config = LinkConfig::plain(Rate::from_bps(2_000_000), Duration::from_millis(10));
        config.queue = QueueConfig { aqm: aqm.map(Spec::named), ..config.queue };
        config.loss = LossSpec::parse_all(loss).unwrap();
        spec.links[0].config = Arc::new(config);
        spec.groups[0].source = SourceSpec::read(&Spec::named(source)).unwrap();
        run(&spec, &mut |_| true).unwrap()
    };
    let queued = network(Some("tiny"), "none", "bulk");
    assert_eq!(queued.links[0].queue_max, 1);
    assert!(queued.links[0].groups[0].dropped > 0);
    let lossy = network(None, "every-tenth", "bulk");
    let link = &lossy.links[0].groups[0];
    let share = link.lost as f64 / link.offered as f64;
    assert!((share - 0.1).abs() < 0.01, "{share}");
    let dripped = network(None, "none", "drip");
    let rate = dripped.groups[0].flows[0].goodput_bytes as f64 / dripped.span_s;
    assert!((rate - 10_000.0).abs() < 1000.0, "{rate} bytes a second");

    // From now on names are fixed.
    assert!(refused(Registry::new().queue(tiny(&RED))).contains("has a queue of that name"));
    const LATE: Descriptor = descriptor("late");
    assert!(refused(Registry::new().queue(tiny(&LATE))).contains("too late"));
    let over = protocol::ProtocolEntry::tcp("over", "tfrc", "sack", "needs datagrams");
    assert!(refused(Registry::new().protocol(over)).contains("too late"));
}
