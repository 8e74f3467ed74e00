//! The networks of `bench paths`, and means of runs over them.

use narrows_base::{Spec, Time};
use narrows_scenario::BottleneckLink;
use narrows_sim::protocol::{FlowProtocol, Preset};
use narrows_sim::{
    FlowResult, FlowSpec, GroupSpec, LinkSpec, NetworkSpec, PathSpec, RunResult, SourceSpec, run,
};
use std::path::{Path, PathBuf};

/// The protocol and the links of a run.
#[derive(Clone)]
pub struct Bench {
    /// The protocol under test.
    pub ours: String,
    /// Seeds, from 1 on.
    pub seeds: u64,
    /// Beginnings of the names of rows; all if empty.
    pub rows: Vec<String>,
    /// Recorded links.
    pub traces: Vec<PathBuf>,
}

impl Bench {
    pub fn wants(&self, name: &str) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|r| name.starts_with(r.as_str()))
    }
}

/// Bytes of a packet on the wire.
pub const PACKET: u32 = 1500;
/// Simulated time, and the part at the start that is not measured, in seconds.
pub const SECONDS: f64 = 60.0;
pub const START_S: f64 = 5.0;

/// Two paths: rate, one-way delay, standard deviation of a normal jitter, and loss of each.
pub struct Profile {
    pub name: &'static str,
    pub paths: [PathText; 2],
}

pub struct PathText {
    pub mbps: f64,
    pub delay_ms: u32,
    pub jitter_ms: u32,
    pub loss: f64,
}

pub const fn path(mbps: f64, delay_ms: u32, jitter_ms: u32, loss: f64) -> PathText {
    PathText { mbps, delay_ms, jitter_ms, loss }
}

/// Of mqvpn's benchmark of 2026-06-18.
pub const PROFILES: [Profile; 16] = [
    Profile { name: "baseline", paths: [path(50.0, 20, 0, 0.0), path(50.0, 20, 0, 0.0)] },
    Profile { name: "rtt_40", paths: [path(50.0, 20, 0, 0.0), path(50.0, 40, 0, 0.0)] },
    Profile { name: "rtt_70", paths: [path(50.0, 20, 0, 0.0), path(50.0, 70, 0, 0.0)] },
    Profile { name: "rtt_120", paths: [path(50.0, 20, 0, 0.0), path(50.0, 120, 0, 0.0)] },
    Profile { name: "rtt_320", paths: [path(50.0, 20, 0, 0.0), path(50.0, 320, 0, 0.0)] },
    Profile { name: "jit_5", paths: [path(50.0, 20, 5, 0.0), path(50.0, 20, 5, 0.0)] },
    Profile { name: "jit_20", paths: [path(50.0, 20, 20, 0.0), path(50.0, 20, 20, 0.0)] },
    Profile { name: "loss_05", paths: [path(50.0, 20, 0, 0.005), path(50.0, 20, 0, 0.005)] },
    Profile { name: "loss_2", paths: [path(50.0, 20, 0, 0.02), path(50.0, 20, 0, 0.02)] },
    Profile { name: "bw_4to1", paths: [path(50.0, 20, 0, 0.0), path(12.0, 20, 0, 0.0)] },
    Profile { name: "bw_10to1", paths: [path(100.0, 20, 0, 0.0), path(10.0, 20, 0, 0.0)] },
    Profile { name: "dual_lte", paths: [path(40.0, 30, 5, 0.005), path(25.0, 45, 8, 0.005)] },
    Profile { name: "fiber_lte", paths: [path(300.0, 8, 0, 0.0), path(30.0, 40, 8, 0.005)] },
    Profile { name: "lte_starlink", paths: [path(40.0, 35, 8, 0.0), path(100.0, 50, 25, 0.01)] },
    Profile { name: "lte_geo", paths: [path(40.0, 35, 0, 0.0), path(20.0, 320, 20, 0.005)] },
    Profile { name: "congested", paths: [path(20.0, 50, 20, 0.02), path(15.0, 60, 25, 0.02)] },
];

impl PathText {
    /// The link's keys with their values.
    fn parts(&self, order: &str) -> Vec<(&'static str, String)> {
        let mut parts = vec![
            ("rate", format!("{}Mbit/s", self.mbps)),
            ("delay", format!("{}ms", self.delay_ms)),
        ];
        if self.jitter_ms > 0 {
            parts.push(("jitter", format!("normal({}ms,order={order})", self.jitter_ms)));
        }
        if self.loss > 0.0 {
            parts.push(("loss", format!("{:.2}%", self.loss * 100.0)));
        }
        parts
    }
    pub fn link(&self, order: &str) -> String {
        let text = |(n, (key, value)): (usize, (&str, String))| match n {
            0 | 1 => value,
            _ => format!("{key}={value}"),
        };
        self.parts(order).into_iter().enumerate().map(text).collect::<Vec<_>>().join(",")
    }
    /// The link's keys in a scenario file.
    pub fn keys(&self) -> String {
        self.parts("kept").iter().map(|(key, value)| format!("{key} = \"{value}\"\n")).collect()
    }
    /// Rate times (1 - loss), in Mbit/s.
    pub fn capacity(&self) -> f64 {
        self.mbps * (1.0 - self.loss)
    }
}

pub fn links(paths: &[PathText], order: &str) -> Vec<String> {
    paths.iter().map(|path| path.link(order)).collect()
}

/// The sum of all paths' capacities.
pub fn capacity(paths: &[PathText]) -> f64 {
    paths.iter().map(PathText::capacity).sum()
}

pub fn source(text: &str) -> Result<SourceSpec, String> {
    Spec::parse(text).and_then(|spec| SourceSpec::read(&spec)).map_err(|e| e.to_string())
}

/// A stream without end over some links.
pub fn stream(links: &[String], protocol: &str, seed: u64) -> Result<NetworkSpec, String> {
    network(links, &[("main", protocol, SourceSpec::bulk())], seed)
}

pub fn result(spec: &NetworkSpec) -> Result<RunResult, String> {
    run(spec, &mut |_| true).map_err(|e| e.to_string())
}

/// A run's network: two directed links per path, all groups over all paths.
pub fn network(
    links: &[String],
    groups: &[(&str, &str, SourceSpec)],
    seed: u64,
) -> Result<NetworkSpec, String> {
    let mut list = Vec::new();
    for (n, text) in links.iter().enumerate() {
        let link = BottleneckLink::parse(text, Path::new("")).map_err(|e| e.to_string())?;
        let rtt = link.base_rtt();
        for (side, way, metered) in [("there", &link.forward, true), ("back", &link.reverse, false)]
        {
            let config = way.config(rtt, PACKET, true).into();
            list.push(LinkSpec { name: format!("{side}.{n}"), config, metered });
        }
    }
    let paths = |n: usize| (vec![2 * n as u32], vec![2 * n as u32 + 1]);
    let mut made = Vec::new();
    for (name, protocol, source) in groups {
        let (forward, back) = paths(0);
        let further = (1..links.len()).map(paths);
        let further = further.map(|(forward, back)| PathSpec { forward, back }).collect();
        let flow = FlowSpec { further, ..FlowSpec::new(forward, back) };
        let protocol = Spec::parse(protocol)
            .and_then(|spec| FlowProtocol::read(&spec, Preset::Linux, PACKET))
            .map_err(|e| e.to_string())?;
        made.push(GroupSpec {
            name: (*name).into(),
            protocol,
            source: source.clone(),
            flows: vec![flow],
        });
    }
    Ok(NetworkSpec {
        seed,
        end: Time::from_secs_f64(SECONDS),
        measure_from: Time::from_secs_f64(START_S),
        links: list,
        groups: made,
        ..NetworkSpec::default()
    })
}

/// Means over seeds of one protocol over some links.
#[derive(Clone, Copy, Default)]
pub struct Measured {
    pub mbps: f64,
    /// Share of the bytes on the first path.
    pub first: f64,
    /// Mean queueing delay of all links, weighted by their bits, in ms.
    pub queue_ms: f64,
    /// Largest of all seeds, in KiB.
    pub reorder_kib: f64,
    /// Bytes that arrived more than once, as a share of those delivered.
    pub extra: f64,
}

pub fn measured(result: &RunResult, links: &[f64]) -> Measured {
    let flow: &FlowResult = &result.groups[0].flows[0];
    let bits: f64 = result.links.iter().map(|l| l.served_bits).sum();
    let queue = |(link, mbps): (&narrows_sim::LinkResult, &f64)| {
        link.queue_mean * f64::from(PACKET) * 8.0 / (mbps * 1e3) * link.served_bits / bits.max(1.0)
    };
    let mut measured = Measured {
        mbps: flow.goodput_bytes as f64 * 8.0 / result.span_s / 1e6,
        queue_ms: result.links.iter().zip(links).map(queue).sum(),
        first: 1.0,
        ..Measured::default()
    };
    if let Some(paths) = &flow.multipath {
        let sent: u64 = paths.paths.iter().map(|p| p.sent_bytes).sum();
        measured.first = paths.paths[0].sent_bytes as f64 / sent.max(1) as f64;
        measured.reorder_kib = paths.max_reorder_bytes as f64 / 1024.0;
        let delivered = flow.goodput_bytes as f64 * SECONDS / (SECONDS - START_S);
        measured.extra = paths.duplicate_bytes as f64 / delivered.max(1.0);
    }
    measured
}

fn mean(all: &[Measured]) -> Measured {
    let n = all.len().max(1) as f64;
    let of = |f: fn(&Measured) -> f64| all.iter().map(f).sum::<f64>() / n;
    Measured {
        mbps: of(|m| m.mbps),
        first: of(|m| m.first),
        queue_ms: of(|m| m.queue_ms),
        reorder_kib: all.iter().map(|m| m.reorder_kib).fold(0.0, f64::max),
        extra: of(|m| m.extra),
    }
}

/// A protocol over some links with seeds 1 to `seeds`.
pub fn over(
    links: &[String],
    rates: &[f64],
    protocol: &str,
    seeds: u64,
) -> Result<Measured, String> {
    let one = |seed| Ok(measured(&result(&stream(links, protocol, seed)?)?, rates));
    Ok(mean(&(1..=seeds).map(one).collect::<Result<Vec<_>, String>>()?))
}
