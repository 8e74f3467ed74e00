//! TFRC through the engine: it fills a link alone, and keeps to its equation under random loss.

use crate::two_links::{group, link, network};
use narrows_base::{Duration, Spec, Time};
use narrows_link::QueueLimit;
use narrows_sim::protocol::{FlowProtocol, Preset};
use narrows_sim::{RunResult, SeriesSpec, SourceSpec, run};

/// One flow over a link of that rate and delay each way; measured from `from` s.
struct Alone<'a> {
    protocol: &'a str,
    preset: Preset,
    mbps: f64,
    ms: u64,
    room: u64,
    loss: &'a str,
    source: &'a str,
    from: f64,
    seconds: f64,
    seed: u64,
}

const DSL: Alone = Alone {
    protocol: "tfrc",
    preset: Preset::Rfc,
    mbps: 1.5,
    ms: 30,
    room: 12,
    loss: "none",
    source: "bulk",
    from: 20.0,
    seconds: 120.0,
    seed: 1,
};

impl Alone<'_> {
    fn run(&self) -> RunResult {
        let link = |room, loss| {
            let delay = Duration::from_millis(self.ms);
            link(self.mbps * 1e6, delay, QueueLimit::Packets(room), None, loss)
        };
        let mut group = group("media", self.protocol, 1000, [0.0]);
        let protocol = Spec::parse(self.protocol).unwrap();
        group.protocol = FlowProtocol::read(&protocol, self.preset, 1000).unwrap();
        group.source = SourceSpec::read(&Spec::parse(self.source).unwrap()).unwrap();
        let links = [link(self.room, self.loss), link(1000, "none")];
        let mut spec = network(links, vec![group], (self.from, self.seconds), self.seed);
        spec.series = Some(SeriesSpec {
            interval: Duration::from_millis(100),
            from: Time::from_secs_f64(self.from),
            links: vec![0],
            flows_per_group: 1,
        });
        run(&spec, &mut |_| true).unwrap()
    }
}

fn utilisation(r: &RunResult) -> f64 {
    r.links[0].served_bits / r.links[0].capacity_bits
}

#[test]
fn alone_it_fills_the_link() {
    for preset in [Preset::Rfc, Preset::Ns2] {
        let r = Alone { preset, ..DSL }.run();
        let u = utilisation(&r);
        let loss = r.links[0].groups[0].dropped as f64 / r.links[0].groups[0].offered as f64;
        assert!(u > 0.99, "{preset:?}: {u}");
        assert!(loss < 0.01, "{preset:?}: {loss}");
    }
}

/// A fast link loses 1% at random. Over 3000 s the rate is the equation's at the measured loss event rates and RTTs,
/// and those are the link's.
#[test]
fn under_random_loss_it_keeps_to_its_equation() {
    for preset in [Preset::Rfc, Preset::Ns2] {
        let r = Alone { preset, mbps: 100.0, room: 1000, loss: "1%", seconds: 3020.0, ..DSL }.run();
        let got = r.links[0].groups[0].served_bits / r.span_s;
        let table = r.series.iter().find(|t| t.kind == "flow").unwrap();
        let column = |name| table.column(name).unwrap();
        let ps = column("loss_event_rate");
        let rtts = column("srtt_s");
        let n = ps.len() as f64;
        let fair = |p: f64, rtt: f64| {
            let rto = if preset == Preset::Ns2 { 0.3 } else { 4.0 * rtt };
            let timeouts = 3.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p);
            8000.0 / (rtt * (2.0 * p / 3.0).sqrt() + rto * timeouts)
        };
        // The mean of the equation, not the equation of the mean: it is convex.
        let expected = ps.iter().zip(rtts).map(|(p, rtt)| fair(*p, *rtt)).sum::<f64>() / n;
        let p = ps.iter().sum::<f64>() / n;
        let rtt = rtts.iter().sum::<f64>() / n;
        assert!((got / expected - 1.0).abs() < 0.03, "{preset:?}: {got} {expected}");
        assert!((p / 0.01 - 1.0).abs() < 0.1, "{preset:?}: {p}");
        assert!((rtt / 0.06015 - 1.0).abs() < 0.01, "{preset:?}: {rtt}");
    }
}

/// An application that needs less than its share gets it, without a queue.
#[test]
fn a_modest_application_is_served_at_once() {
    for preset in [Preset::Rfc, Preset::Ns2] {
        let source = "cbr(rate=200kbit/s,size=500B)";
        let r = Alone { preset, source, ..DSL }.run();
        let bytes = r.groups[0].flows[0].goodput_bytes as f64;
        assert!((bytes / (25_000.0 * r.span_s) - 1.0).abs() < 0.01, "{preset:?}: {bytes}");
        assert_eq!(r.links[0].groups[0].dropped, 0);
    }
}
