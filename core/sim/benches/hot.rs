//! Micro-benchmarks of the hot paths: run with `cargo bench -p narrows-sim`. The example
//! `dumbbell` times whole processes.

use divan::{Bencher, counter::ItemsCount};
use narrows_base::{Duration, Machine, Packet, RandomKey, Rate, Spec, Time};
use narrows_link::{Link, LinkConfig, QueueConfig, QueueLimit};
use narrows_sim::calendar::{Calendar, EventKind, SimEvent};
use narrows_sim::endpoints::{SenderInput, SenderOutput};
use narrows_sim::protocol::{FlowProtocol, Preset};
use std::collections::VecDeque;

fn main() {
    divan::main();
}

/// A pop and a push with `pending` events in the queue, due up to 30 ms ahead.
#[divan::bench(args = [4, 400, 4_000])]
fn calendar(bencher: Bencher, pending: u32) {
    let mut random = RandomKey::from_seed(1).named("bench").stream();
    let mut calendar = Calendar::new();
    let ahead = |now: Time, bits: u64| now + Duration::from_nanos(bits % 30_000_000);
    for i in 0..pending {
        calendar.push(SimEvent::new(ahead(Time::ZERO, random.bits()), EventKind::Link, i));
    }
    const N: u32 = 100_000;
    bencher.counter(ItemsCount::new(N)).bench_local(|| {
        for _ in 0..N {
            let event = calendar.pop(Time::NEVER).expect("as many pushes as pops");
            calendar.push(SimEvent::new(
                ahead(event.time, random.bits()),
                EventKind::Link,
                event.number(),
            ));
        }
    });
}

/// A data packet of 1000 bytes.
fn data() -> Packet {
    Packet { size: 1000, ..Packet::default() }
}

/// A packet through a drop-tail link: pass, hold, poll.
#[divan::bench]
fn link(bencher: Bencher) {
    let mut config = LinkConfig::plain(Rate::from_bps(1_000_000_000), Duration::from_millis(1));
    config.queue = QueueConfig { limit: QueueLimit::Packets(100), aqm: None };
    let mut link = Link::new(&config, RandomKey::from_seed(1)).expect("a legal link");
    let mut packet = data();
    let mut now = Time::ZERO;
    const N: u32 = 100_000;
    bencher.counter(ItemsCount::new(N)).bench_local(|| {
        for _ in 0..N {
            now += Duration::from_micros(8);
            if let Some(due) = link.pass(now, &mut packet, &mut ()) {
                link.hold(due, packet);
            }
            divan::black_box(link.poll(now, &mut ()));
        }
    });
}

/// A packet through a link that serves packet by packet, for every queue; pairs of packets arrive as fast as they
/// leave. Drop-tail shows the minimum cost of such a link.
#[divan::bench(args = ["droptail", "red", "cw", "codel", "fq-codel", "pie"])]
fn served(bencher: Bencher, queue: &str) {
    let mut config = LinkConfig::plain(Rate::from_bps(1_000_000_000), Duration::from_millis(1));
    config.queue = QueueConfig { limit: QueueLimit::Packets(100), aqm: Some(Spec::named(queue)) };
    config.changes = true;
    let mut link = Link::new(&config, RandomKey::from_seed(1)).expect("a legal link");
    let mut packet = data();
    let mut now = Time::ZERO;
    const N: u32 = 100_000;
    bencher.counter(ItemsCount::new(N)).bench_local(|| {
        for i in 0..N {
            if i % 2 == 0 {
                now += Duration::from_micros(16);
            }
            packet.flow = i % 16;
            link.accept(now, packet, &mut ());
            divan::black_box(link.poll(now, &mut ()));
        }
    });
}

/// A data packet and its acknowledgement through both endpoints without a link, with a window of 64 and one loss in a
/// thousand.
#[divan::bench(args = ["reno", "newreno", "stpd", "cubic", "bbr"])]
fn endpoints(bencher: Bencher, name: &str) {
    let spec =
        Spec { args: vec![(Some("receive-window".into()), "64".into())], ..Spec::named(name) };
    let protocol = FlowProtocol::read(&spec, Preset::Rfc, 1000).expect("a listed protocol");
    let (mut sender, mut receiver) =
        narrows_sim::endpoints::build(&protocol, 0, RandomKey::from_seed(1), 1);
    let mut now = Time::ZERO;
    let mut wire: VecDeque<Packet> = VecDeque::new();
    sender.handle(now, SenderInput::Open);
    sender.handle(now, SenderInput::Data(u64::MAX));
    const N: u32 = 100_000;
    bencher.counter(ItemsCount::new(N)).bench_local(|| {
        for i in 0..N {
            now += Duration::from_micros(300);
            loop {
                match sender.poll(now) {
                    SenderOutput::Send(packet) => wire.push_back(packet),
                    SenderOutput::Wait(due) => {
                        if wire.is_empty() {
                            now = due;
                            sender.handle(now, SenderInput::Timeout);
                            continue;
                        }
                        break;
                    }
                }
            }
            let Some(packet) = wire.pop_front() else { continue };
            if i % 1000 != 999
                && let Some(ack) = receiver.on_packet(now, &packet)
            {
                sender.handle(now, SenderInput::Packet(ack));
            }
        }
    });
}
