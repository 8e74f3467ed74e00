//! Parts of another crate, registered by name. A process of its own, since lists accept additions only once.

use narrows_base::{
    Descriptor, Duration, RandomKey, RandomStream, Rate, Settings, Spec, Status, Time,
};
use narrows_link::queue::{Discipline, QueueObserver, QueuedPacket};
use narrows_link::{LinkConfig, LinkPacket, LossSpec, QueueConfig, loss, queue};
use narrows_sim::endpoints::foreign::{ForeignDatagram, ForeignEnd, ForeignEntry};
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

/// Bytes of a datagram of [`Echoed`], and of its header.
const DATAGRAM: u32 = 972;
const HEADER: u32 = 28;

/// Another project's stack: keeps eight datagrams on the way, each of which the other end echoes in part. It
/// begins again after 300 ms without an echo.
#[derive(Default)]
struct Echoed {
    is_receiver: bool,
    left: u64,
    on_the_way: u32,
    echoes: u32,
    last: Time,
    bytes: u64,
    marks: u32,
}

impl ForeignEnd for Echoed {
    fn write(&mut self, _now: Time, bytes: u64) {
        self.left = self.left.saturating_add(bytes);
    }
    fn stop(&mut self, _now: Time) {
        self.left = 0;
    }
    fn handle(&mut self, now: Time, datagram: ForeignDatagram) {
        self.last = now;
        self.marks += u32::from(datagram.ecn == 3);
        self.bytes += datagram.payload.len() as u64;
        self.echoes += u32::from(self.is_receiver);
        self.on_the_way = self.on_the_way.saturating_sub(1);
    }
    fn poll(&mut self, now: Time) -> Option<ForeignDatagram> {
        let payload = if self.is_receiver {
            self.echoes = self.echoes.checked_sub(1)?;
            vec![1; 12]
        } else {
            if now >= self.next_timeout() {
                self.on_the_way = 0;
            }
            if self.on_the_way == 8 || self.left == 0 {
                return None;
            }
            self.last = now;
            self.on_the_way += 1;
            self.left -= u64::from(DATAGRAM).min(self.left);
            vec![0; DATAGRAM as usize]
        };
        let application_bytes = payload.len() as u32;
        Some(ForeignDatagram { payload, header_bytes: HEADER, application_bytes, ecn: 2 })
    }
    fn next_timeout(&mut self) -> Time {
        if self.on_the_way == 0 { Time::NEVER } else { self.last + Duration::from_millis(300) }
    }
    fn delivered(&self) -> u64 {
        self.bytes
    }
    fn variable(&self, name: &str) -> Option<f64> {
        (name == "lost").then_some(f64::from(self.marks))
    }
}

fn echoed(_name: &str, _seed: u64) -> [Box<dyn ForeignEnd>; 2] {
    let receiver = Echoed { is_receiver: true, ..Echoed::default() };
    [Box::new(Echoed::default()), Box::new(receiver)]
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

    let foreign = |name| Registry::new().foreign(ForeignEntry { name, build: echoed });
    assert!(refused(foreign("Echoed")).contains("a name is"));
    let twice = foreign("echoed").foreign(ForeignEntry { name: "echoed", build: echoed });
    assert!(refused(twice).contains("registered twice"));

    foreign("echoed")
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

    // Another project's stack, alone and beside a TCP that fills the queue.
    let parameters = Spec::parse("echoed(a=1)").unwrap();
    let e = FlowProtocol::read(&parameters, Preset::Rfc, 1000).unwrap_err().to_string();
    assert_eq!(e, "echoed has no parameters");
    let mut spec = dumbbell(1, 2, 20, read("echoed"));
    let alone = run(&spec, &mut |_| true).unwrap();
    let rate = |result: &narrows_sim::RunResult| {
        result.groups[0].flows[0].goodput_bytes as f64 * 8e-6 / result.span_s
    };
    assert!((1.9..1.95).contains(&rate(&alone)), "{}", rate(&alone));
    let rtt_ms = alone.groups[0].rtt.mean().unwrap() / 1e6;
    // The queue holds seven of the first eight, so that none waits later: 24 ms, 4 ms, and the echo's time.
    assert_eq!(alone.links[0].groups[0].dropped, 1);
    assert!((28.0..28.5).contains(&rtt_ms), "{rtt_ms}");
    let mut config = spec.links[0].config.as_ref().clone();
    config.queue = QueueConfig { aqm: Some(Spec::parse("codel(ecn=on)").unwrap()), ..config.queue };
    spec.links[0].config = Arc::new(config);
    let mut beside = spec.groups[0].clone();
    beside.name = "beside".into();
    beside.protocol = read("mine");
    spec.groups.push(beside);
    let result = run(&spec, &mut |_| true).unwrap();
    assert!(result.groups[1].flows[0].goodput_bytes > 100_000);
    assert!(rate(&result) < rate(&alone));
    assert!(result.links[0].groups[0].marked > 0);
    assert_eq!(result.digest, run(&spec, &mut |_| true).unwrap().digest);

    // From now on names are fixed.
    assert!(refused(Registry::new().queue(tiny(&RED))).contains("has a queue of that name"));
    const LATE: Descriptor = descriptor("late");
    assert!(refused(Registry::new().queue(tiny(&LATE))).contains("too late"));
    let over = protocol::ProtocolEntry::tcp("over", "tfrc", "sack", "needs datagrams");
    assert!(refused(Registry::new().protocol(over)).contains("too late"));
}
