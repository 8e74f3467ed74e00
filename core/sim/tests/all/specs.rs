//! Invalid specifications: an error that names the field, never a panic, a hang or unbounded memory.

use narrows_base::{Duration, FieldError, Rate, Spec, Time};
use narrows_link::{
    Distribution, EarlyConfig, Impairments, JitterForm, LinkChange, LinkConfig, LossSpec,
    QueueConfig, QueueLimit, Trace,
};
use narrows_recovery::rtt::{RtoConfig, RtoMethod};
use narrows_sim::protocol::{
    DatagramConfig, FlowProtocol, OpeningExchange, Preset, Protocol, RecoveryKind, TcpConfig,
};
use narrows_sim::{
    FlowSpec, GroupSpec, LinkSpec, NetworkSpec, SeriesSpec, SimError, SourceSpec, run,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;
use std::sync::Arc;

fn seconds(s: f64) -> Time {
    Time::from_secs_f64(s)
}

fn read(text: &str) -> FlowProtocol {
    FlowProtocol::read(&Spec::parse(text).unwrap(), Preset::Rfc, 1000).unwrap()
}

fn plain() -> LinkConfig {
    LinkConfig::plain(Rate::from_bps(2_000_000), Duration::from_millis(10))
}

fn link(name: &str, config: LinkConfig) -> LinkSpec {
    LinkSpec { name: name.into(), config: Arc::new(config), metered: true }
}

fn group(name: &str, protocol: FlowProtocol) -> GroupSpec {
    let start = Time::ZERO;
    let stop = Time::NEVER;
    let flow = FlowSpec { start, stop, forward: vec![0], back: vec![1], further: Vec::new() };
    GroupSpec { name: name.into(), protocol, source: SourceSpec::bulk(), flows: vec![flow] }
}

/// Two links, one flow, one second, sampled and changed once.
fn good() -> NetworkSpec {
    NetworkSpec {
        seed: 1,
        end: seconds(1.0),
        links: vec![link("there", LinkConfig { changes: true, ..plain() }), link("back", plain())],
        groups: vec![group("main", read("reno"))],
        changes: vec![(seconds(0.5), 0, LinkChange::Rate(Rate::from_bps(1_000_000)))],
        series: Some(SeriesSpec {
            interval: Duration::from_millis(10),
            from: Time::ZERO,
            links: vec![0],
            flows_per_group: 1,
        }),
        ..NetworkSpec::default()
    }
}

/// The good specification with a change.
fn bad(change: impl FnOnce(&mut NetworkSpec)) -> NetworkSpec {
    let mut spec = good();
    change(&mut spec);
    spec
}
fn first(spec: &mut NetworkSpec) -> &mut LinkConfig {
    Arc::make_mut(&mut spec.links[0].config)
}
fn series(spec: &mut NetworkSpec) -> &mut SeriesSpec {
    spec.series.as_mut().unwrap()
}
fn impaired(change: impl FnOnce(&mut Impairments)) -> NetworkSpec {
    bad(|s| change(&mut first(s).impairments))
}
fn speaking(protocol: FlowProtocol) -> NetworkSpec {
    bad(|s| s.groups[0].protocol = protocol)
}
fn tcp(change: impl FnOnce(&mut TcpConfig)) -> NetworkSpec {
    let mut config = TcpConfig::preset(Preset::Rfc);
    change(&mut config);
    speaking(FlowProtocol::custom("mine", config, |e| read("reno").controller(e)).unwrap())
}
fn media(change: impl FnOnce(&mut DatagramConfig)) -> NetworkSpec {
    let mut config = DatagramConfig { reliable: true, ..DatagramConfig::default() };
    change(&mut config);
    speaking(Protocol::custom("mine", config, |e| read("reno").controller(e), None).unwrap().into())
}

/// The error names every field with an invalid value.
#[test]
fn the_field_is_named() {
    let ns = Duration::from_nanos;
    assert!(run(&good(), &mut |_| true).is_ok());
    for (field, spec) in [
        ("end", bad(|s| s.end = Time::NEVER)),
        ("measure_from", bad(|s| s.measure_from = seconds(2.0))),
        ("measure_from", bad(|s| s.measure_from = s.end)),
        ("measure_from", bad(|s| s.end = Time::ZERO)),
        ("links[1].name", bad(|s| s.links[1].name = "there".into())),
        ("links[0].config.rate", bad(|s| first(s).rate = Rate::from_bps(0))),
        ("links[0].config.rate", bad(|s| first(s).rate = Rate::from_bps(u64::MAX))),
        ("links[0].config.delay", bad(|s| first(s).delay = Duration::MAX)),
        ("links[0].config.queue.aqm", bad(|s| first(s).queue.aqm = Some(Spec::named("rde")))),
        ("links[0].config.impairments.jitter", impaired(|i| i.jitter = Duration::MAX)),
        ("links[0].config.impairments.reorder", impaired(|i| i.reorder = f64::NAN)),
        ("links[0].config.impairments.reorder_by", impaired(|i| i.reorder_by = Duration::MAX)),
        ("links[0].config.impairments.duplicate", impaired(|i| i.duplicate = 7.0)),
        ("links[0].config.impairments.corrupt", impaired(|i| i.corrupt = -1.0)),
        ("groups[1].name", bad(|s| s.groups.push(group("main", read("reno"))))),
        ("groups[0].flows[0].forward.len()", bad(|s| s.groups[0].flows[0].forward.clear())),
        ("groups[0].flows[0].back.len()", bad(|s| s.groups[0].flows[0].back = vec![1; 201])),
        ("groups[0].flows[0].forward[1]", bad(|s| s.groups[0].flows[0].forward.push(2))),
        (
            "groups[0].flows[0].stop",
            bad(|s| {
                s.groups[0].flows[0].start = seconds(2.0);
                s.groups[0].flows[0].stop = seconds(1.0);
            }),
        ),
        (
            "groups[0].source",
            bad(|s| {
                let spec = Spec::parse("web(rate=1000000)").unwrap();
                s.groups[0].source = SourceSpec::read(&spec).unwrap();
                s.end = seconds(60.0);
                s.series = None;
            }),
        ),
        ("changes[0]", bad(|s| s.changes[0].1 = 9)),
        ("changes[0]", bad(|s| s.changes[0].1 = 1)),
        ("changes[0].rate", bad(|s| s.changes[0].2 = LinkChange::Rate(Rate::from_bps(0)))),
        ("changes[0].delay", bad(|s| s.changes[0].2 = LinkChange::Delay(Duration::MAX))),
        ("series.interval", bad(|s| series(s).interval = Duration::ZERO)),
        ("series.interval", bad(|s| series(s).interval = ns(1))),
        ("series.from", bad(|s| series(s).from = seconds(2.0))),
        ("series.links[1]", bad(|s| series(s).links.push(7))),
        ("series.links[1]", bad(|s| series(s).links.push(0))),
        (
            "series.links[0]",
            bad(|s| {
                s.links[1].metered = false;
                series(s).links = vec![1];
            }),
        ),
        ("groups[0].protocol.packet_bytes", tcp(|c| c.packet_bytes = 0)),
        ("groups[0].protocol.packet_bytes", tcp(|c| c.packet_bytes = 70_000)),
        ("groups[0].protocol.packet_bytes", tcp(|c| c.header_bytes = 1000)),
        ("groups[0].protocol.ack_bytes", tcp(|c| c.ack_bytes = 0)),
        ("groups[0].protocol.ack_bytes", tcp(|c| c.ack_bytes = 65_536)),
        ("groups[0].protocol.ack_every", tcp(|c| c.ack_every = 0)),
        ("groups[0].protocol.receive_window", tcp(|c| c.receive_window = 0)),
        ("groups[0].protocol.initial_window", tcp(|c| c.initial_window = f64::NAN)),
        ("groups[0].protocol.initial_window", tcp(|c| c.initial_window = 0.0)),
        ("groups[0].protocol.initial_ssthresh", tcp(|c| c.initial_ssthresh = f64::NAN)),
        ("groups[0].protocol.rto.initial", tcp(|c| c.rto.initial = Duration::ZERO)),
        ("groups[0].protocol.rto.min", tcp(|c| c.rto.min = Duration::MAX)),
        ("groups[0].protocol.rto.max", tcp(|c| c.rto.max = Duration::from_millis(500))),
        ("groups[0].protocol.rto.granularity", tcp(|c| c.rto.granularity = Duration::ZERO)),
        ("groups[0].protocol.delayed_ack", tcp(|c| c.delayed_ack = Duration::MAX)),
        ("groups[0].protocol.packet_bytes", media(|c| c.packet_bytes = 64)),
        ("groups[0].protocol.report_bytes", media(|c| c.report_bytes = 0)),
        ("groups[0].protocol.credit", media(|c| c.credit = Duration::MAX)),
        ("groups[0].protocol.hints.loss", media(|c| c.hints.loss = Some(f64::NAN))),
        ("groups[0].protocol.hints.rtt", media(|c| c.hints.rtt = Some(Duration::MAX))),
        ("groups[0].protocol.rto.granularity", media(|c| c.rto.granularity = Duration::ZERO)),
        ("groups[0].protocol.feedback.ack_every", media(|c| c.feedback.ack_every = 0)),
        (
            "groups[0].protocol.feedback.max_ack_delay",
            media(|c| c.feedback.max_ack_delay = Duration::MAX),
        ),
        (
            "groups[0].protocol.feedback.classifier",
            media(|c| c.feedback.classifier.name = "gut feeling"),
        ),
    ] {
        match run(&spec, &mut |_| true) {
            Err(e @ SimError::Spec(_)) => {
                let source = std::error::Error::source(&e).and_then(|s| s.downcast_ref());
                let Some(FieldError { field: named, why, .. }) = source else {
                    panic!("{field}: the error has no source")
                };
                assert_eq!(named, field, "{why}");
                assert!(!why.is_empty() && !why.contains('\n'));
            }
            other => panic!("{field}: {:?}", other.map(|r| r.events)),
        }
    }
}

/// Draws one of these, the usual ones more often than the odd ones.
fn any_of<T: Clone + std::fmt::Debug + 'static>(
    usual: &[T],
    odd: &[T],
) -> impl Strategy<Value = T> + use<T> {
    prop_oneof![80 => prop::sample::select(usual.to_vec()), 1 => prop::sample::select(odd.to_vec())]
}
fn time() -> impl Strategy<Value = Time> {
    any_of(
        &[0, 1, 1_000_000, 300_000_000, 1_000_000_000].map(Time::from_nanos),
        &[u64::MAX, u64::MAX - 1, 1 << 62].map(Time::from_nanos),
    )
}
fn duration() -> impl Strategy<Value = Duration> {
    any_of(
        &[0, 1_000, 1_000_000, 50_000_000].map(Duration::from_nanos),
        &[1, u64::MAX, 1 << 60].map(Duration::from_nanos),
    )
}
fn rate() -> impl Strategy<Value = Rate> {
    any_of(
        &[1_000, 1_000_000, 100_000_000, 1_000_000_000_000].map(Rate::from_bps),
        &[0, 1, 1_000_000_000_000_000, u64::MAX].map(Rate::from_bps),
    )
}
fn share() -> impl Strategy<Value = f64> {
    any_of(&[0.0, 0.0, 0.01, 1.0], &[7.0, -0.1, f64::NAN, f64::INFINITY])
}
fn number() -> impl Strategy<Value = usize> {
    any_of(&[0, 1], &[2, 9, usize::MAX])
}

fn limit() -> impl Strategy<Value = QueueLimit> {
    any_of(
        &[
            QueueLimit::Unlimited,
            QueueLimit::Packets(10),
            QueueLimit::Bytes(9_000),
            QueueLimit::Either { packets: 10, bytes: 9_000 },
        ],
        &[
            QueueLimit::Packets(0),
            QueueLimit::Bytes(0),
            QueueLimit::Packets(u64::MAX),
            QueueLimit::Bytes(u64::MAX),
        ],
    )
}

fn losses() -> impl Strategy<Value = Vec<LossSpec>> {
    let usual = ["none", "1%", "ge(g=1%,h=10%)"];
    let odd = [
        "100%",
        "fade(bad=1ns,good=1ns)",
        "burst(bad=0.000000001p,good=0.000000001p)",
        "outage(at=0s,for=0s,every=1ns,spacing=random)",
        "outage(at=0s,for=1ns,every=1ns)",
        "periodic(1)",
        "list(0,18446744073709551615)",
    ];
    any_of(&usual, &odd).prop_map(|text| LossSpec::parse_all(text).unwrap())
}

fn queue() -> impl Strategy<Value = QueueConfig> {
    let usual = ["droptail", "red", "codel", "pie", "cw", "fq-codel"];
    let odd = ["", "rde", "fq-codel(quantum=64B,flows=1)", "red(min=1p)", "pie(target=1ns)"];
    (limit(), any_of(&usual, &odd)).prop_map(|(limit, aqm)| {
        let aqm = (aqm != "droptail").then(|| match aqm {
            "" => Spec::named(""),
            text => Spec::parse(text).unwrap(),
        });
        QueueConfig { limit, aqm }
    })
}

fn config() -> impl Strategy<Value = LinkConfig> {
    let drawn_form =
        (share(), 0..3usize, any::<bool>()).prop_map(|(correlation, drawn, overtakes)| {
            let distribution =
                [Distribution::default(), Distribution::Pareto, Distribution::Wifi][drawn];
            JitterForm { distribution, correlation, overtakes }
        });
    let jitter_form = prop_oneof![6 => Just(JitterForm::default()), 1 => drawn_form];
    let drawn_early = (share(), share(), any_of(&[1, 5], &[0, u64::MAX]))
        .prop_map(|(share, correlation, gap)| Some(EarlyConfig { share, correlation, gap }));
    let early = prop_oneof![6 => Just(None), 1 => drawn_early];
    let mtu = prop_oneof![6 => Just(None), 1 => any_of(&[40, 1000], &[0, 1]).prop_map(Some)];
    let impairments = (duration(), jitter_form, early, share(), duration(), share(), share(), mtu)
        .prop_map(|(jitter, jitter_form, early, reorder, reorder_by, duplicate, corrupt, mtu)| {
            Impairments {
                jitter,
                jitter_form,
                reorder,
                reorder_by,
                early,
                duplicate,
                corrupt,
                policer: None,
                mtu,
            }
        });
    let trace = any_of(&["", ""], &["1\n", "0\n0\n5\n", "80000000\n"])
        .prop_map(|text| (!text.is_empty()).then(|| Arc::new(Trace::parse(text).unwrap())));
    (rate(), trace, duration(), queue(), losses(), impairments, any::<bool>()).prop_map(
        |(rate, trace, delay, queue, loss, impairments, changes)| LinkConfig {
            rate,
            trace,
            delay,
            queue,
            loss,
            impairments,
            changes,
        },
    )
}

fn protocol() -> impl Strategy<Value = FlowProtocol> {
    let listed = any_of(
        &["reno", "cubic", "bbr", "rrtp", "tfrc", "fixed", "tear"],
        &["fixed(rate=10Tbit/s)", "rrtp+fixed(rate=10Tbit/s)", "sack(initial-window=1000000)"],
    )
    .prop_map(read);
    let bytes = || any_of(&[40, 1000], &[0, 64, 65_535, 65_536, u32::MAX]);
    let window = || any_of(&[1.0, 10.0], &[0.0, f64::NAN, f64::INFINITY, 1e9, -1.0]);
    let times = || (duration(), duration(), duration(), duration(), duration());
    let timer = || (bytes(), bytes(), bytes(), window(), window(), times(), any::<[bool; 8]>());
    let timer = || {
        timer().prop_map(|(packet, header, ack, window, ssthresh, t, on)| TcpConfig {
            recovery: if on[0] { RecoveryKind::Sack } else { RecoveryKind::Reno },
            packet_bytes: packet,
            header_bytes: header,
            ack_bytes: ack,
            initial_window: window,
            initial_ssthresh: ssthresh,
            rto: RtoConfig {
                initial: t.0,
                min: t.1,
                max: t.2,
                granularity: t.3,
                method: if on[1] { RtoMethod::Ns2Ticks } else { RtoMethod::Rfc6298 },
            },
            delayed_ack: t.4,
            timestamps: on[2],
            ack_every: if on[3] { 0 } else { 2 },
            receive_window: if on[4] { 0 } else { u64::MAX },
            ecn: on[5],
            receiver_stamps: on[6],
            limited_transmit: on[7],
            ..TcpConfig::preset(Preset::Rfc)
        })
    };
    let tcp = timer().prop_map(|config| {
        FlowProtocol::custom("mine", config, |e| read("cubic").controller(e)).unwrap()
    });
    let openings = prop::sample::select(vec![
        OpeningExchange::None,
        OpeningExchange::Full,
        OpeningExchange::Token,
    ]);
    let streams = (any::<bool>(), openings);
    let media = (timer(), bytes(), bytes(), duration(), duration(), streams).prop_map(
        |(tcp, packet_bytes, report_bytes, credit, expiry, (reliable, opening))| {
            let config = DatagramConfig {
                packet_bytes,
                report_bytes,
                credit,
                expiry,
                reliable,
                handshake: if reliable { opening } else { OpeningExchange::None },
                initial_window: tcp.initial_window,
                initial_ssthresh: tcp.initial_ssthresh,
                rto: tcp.rto,
                ..DatagramConfig::default()
            };
            Protocol::custom("mine", config, |e| read("cubic").controller(e), None).unwrap().into()
        },
    );
    prop_oneof![4 => listed, 1 => tcp, 1 => media]
}

fn source() -> impl Strategy<Value = SourceSpec> {
    let usual = [
        "bulk",
        "transfer(size=1MB)",
        "cbr(rate=100kbit/s,size=200B)",
        "telnet",
        "web",
        "video",
        "layers",
        "multicast",
    ];
    let odd = [
        "cbr(rate=1Tbit/s,size=1B)",
        "cbr(rate=1Tbit/s,size=1B,on=1ns,off=1ns)",
        "transfer(size=1000000000GB)",
        "telnet(interval=1us)",
        "telnet(interval=1us,times=tcplib)",
        "web(rate=1000000,mean=1B)",
        "web(shape=1.01,mean=1000GB)",
        "video(fps=1000,max=1Tbit/s,key=1,key-size=100)",
        "layers(count=8,rate=1Tbit/s,fps=1000,latency=1ms,ahead=600s)",
        "layers(count=8,rate=1kbit/s,growth=0.1,fps=0.1,latency=600s,ahead=600s,backoffs=0)",
    ];
    any_of(&usual, &odd).prop_map(|text| SourceSpec::read(&Spec::parse(text).unwrap()).unwrap())
}

fn flows() -> impl Strategy<Value = Vec<FlowSpec>> {
    let route = || prop::collection::vec(any_of(&[0u32, 1], &[2, u32::MAX]), 1..4);
    let flow = (time(), time(), route(), route()).prop_map(|(a, b, forward, back)| {
        let start = a.min(b);
        let stop = if a == b { Time::NEVER } else { a.max(b) };
        FlowSpec { start, stop, forward, back, further: Vec::new() }
    });
    prop::collection::vec(flow, 0..4)
}

fn spec() -> impl Strategy<Value = NetworkSpec> {
    let name = |names: &[&str]| {
        any_of(
            &names.iter().map(ToString::to_string).collect::<Vec<_>>(),
            &["".into(), "there".into()],
        )
    };
    let links = (config(), config(), name(&["there"]), name(&["back"]), any::<bool>());
    let links = links.prop_map(|(a, b, first, second, metered)| {
        let second = LinkSpec { metered, ..link(&second, b) };
        vec![link(&first, a), second]
    });
    let group = (name(&["a", "b", "c"]), protocol(), source(), flows());
    let group = group.prop_map(|(name, protocol, source, flows)| GroupSpec {
        name,
        protocol,
        source,
        flows,
    });
    let change = prop_oneof![
        rate().prop_map(LinkChange::Rate),
        duration().prop_map(LinkChange::Delay),
        losses().prop_map(LinkChange::Loss)
    ];
    let changes = prop::collection::vec((time(), number(), change), 0..2);
    let series = (duration(), time(), prop::collection::vec(number(), 0..3), number()).prop_map(
        |(interval, from, links, flows_per_group)| SeriesSpec {
            interval,
            from,
            links,
            flows_per_group,
        },
    );
    let parts = (links, prop::collection::vec(group, 0..3), changes, prop::option::of(series));
    let end =
        any_of(&[300_000_000, 2_000_000_000].map(Time::from_nanos), &[Time::ZERO, Time::NEVER]);
    let from = any_of(&[0, 1].map(Time::from_nanos), &[Time::NEVER, Time::from_nanos(300_000_000)]);
    (any::<u64>(), end, from, parts).prop_map(|(seed, end, measure_from, parts)| NetworkSpec {
        seed,
        end,
        measure_from,
        links: parts.0,
        groups: parts.1,
        changes: parts.2,
        reconfigurations: Vec::new(),
        series: parts.3,
    })
}

/// Every specification gives a result or an error, and the work between two calls of the progress function is bounded.
#[test]
fn any_specification_gives_a_result_or_an_error() {
    let mut runner = TestRunner::new(ProptestConfig::with_cases(1500));
    let ran = Cell::new(0);
    let refused = Cell::new(0);
    let outcome = runner.run(&spec(), |spec| {
        let mut calls = 0;
        let result = run(&spec, &mut |_| {
            calls += 1;
            calls < 2
        });
        let count = if matches!(result, Err(SimError::Spec(_))) { &refused } else { &ran };
        count.set(count.get() + 1);
        if let Ok(result) = result {
            prop_assert!(result.span_s > 0.0);
            prop_assert_eq!(result.groups.len(), spec.groups.len());
        }
        Ok(())
    });
    outcome.unwrap();
    // Both must have occurred.
    assert!(ran.get() > 300 && refused.get() > 300, "{} ran, {} did not", ran.get(), refused.get());
}
