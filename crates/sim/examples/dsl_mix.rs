//! TCP against TFRC over a DSL-like link: N SACK and N TFRC flows share a drop-tail bottleneck
//! with the acknowledgements of N reverse SACK flows, as ns-2 ran it (TFWC report, S1 section 6.2).
//!
//! Each flow has access links of its own on both sides, 15 Mbit/s with a delay drawn from 0.5 to
//! 2 ms; starts are drawn from 0 to 1 s. theta is TCP's share of what leaves the bottleneck's
//! queue from t = 0. `limit` is ns-2's: one more than may wait.
//!
//! Arguments: flows, Mbit/s, limit, seconds, first seed, reverse (0 or 1), seeds, the media
//! protocol, the TCP protocol (by default with ns-2's way of using SACK).
//!
//! `cargo run --release -p narrows-sim --example dsl_mix -- 4 1 5 200 1 1 24`

use narrows_base::{Duration, Luck, Rate, Spec, Time};
use narrows_flow::{Preset, Protocol};
use narrows_path::{Limit, LinkConfig, QueueConfig};
use narrows_sim::{FlowSpec, GroupSpec, LinkSpec, NetworkSpec, RunResult, SourceSpec};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: f64| {
        args.get(i).map_or(default, |a| a.parse().expect("a number for each argument"))
    };
    let (n, mbps, limit, seconds) =
        (number(0, 4.0) as usize, number(1, 1.0), number(2, 5.0) as u64, number(3, 200.0));
    let (first, reverse, seeds) = (number(4, 1.0) as u64, number(5, 1.0) > 0.0, number(6, 1.0));
    let media = args.get(7).map_or("tfrc", String::as_str);
    let tcp = args.get(8).map_or("sack(recovery=sack1)", String::as_str);
    let mut thetas = Vec::new();
    for seed in first..first + seeds as u64 {
        let mix = Mix { n, mbps, limit, seconds, seed, reverse, media, tcp };
        let result = narrows_sim::run(&mix.network(), &mut |_| true).expect("a legal network");
        let theta = theta(&result);
        println!("seed={seed} theta={theta:.4} {}", mix.describe(&result));
        thetas.push(theta);
    }
    let k = thetas.len() as f64;
    let mean = thetas.iter().sum::<f64>() / k;
    let sd = (thetas.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / (k - 1.0)).sqrt();
    println!(
        "N={n} B={mbps} limit={limit} T={seconds} seeds={k} theta={mean:.4} sd={sd:.4} half={:.4}",
        student(thetas.len()) * sd / k.sqrt()
    );
}

/// Two-sided 95 % quantile of Student's t for `n` values.
fn student(n: usize) -> f64 {
    match n {
        0..=2 => 12.706,
        3 => 4.303,
        4 => 3.182,
        5 => 2.776,
        6..=9 => 2.4,
        10..=19 => 2.15,
        20..=30 => 2.069,
        _ => 1.97,
    }
}

struct Mix<'a> {
    n: usize,
    mbps: f64,
    limit: u64,
    seconds: f64,
    seed: u64,
    reverse: bool,
    media: &'a str,
    tcp: &'a str,
}

/// TCP's share of the data that left the bottleneck.
fn theta(r: &RunResult) -> f64 {
    let bits = |g: usize| r.links[0].groups[g].served_bits;
    bits(0) / (bits(0) + bits(1))
}

impl Mix<'_> {
    fn describe(&self, r: &RunResult) -> String {
        let there = &r.links[0];
        let mbps = |g: usize| there.groups[g].served_bits / self.seconds / 1e6;
        let loss = |g: usize| there.groups[g].dropped as f64 / there.groups[g].offered as f64;
        let good = |g: usize| {
            let bytes = r.groups[g].flows.iter().map(|f| f.goodput_bytes).sum::<u64>();
            bytes as f64 * 8.0 / self.seconds / 1e6
        };
        let flows = |g: usize| {
            let each = r.groups[g].flows.iter();
            each.map(|f| format!("{:.4}", f.goodput_bytes as f64 * 8.0 / self.seconds / 1e6))
                .collect::<Vec<_>>()
                .join(" ")
        };
        format!(
            "tcp={:.5} tfrc={:.5} tcpgoodput={:.5} revgoodput={:.5} util={:.4} meanq={:.3} \
             tcploss={:.5} tfrcloss={:.5} timeouts={} TCP={{{}}} TFRC={{{}}}",
            mbps(0),
            mbps(1),
            good(0),
            if self.reverse { good(2) } else { 0.0 },
            there.served_bits / there.capacity_bits,
            there.queue_mean,
            loss(0),
            loss(1),
            r.groups[0].flows.iter().map(|f| f.timeouts).sum::<u64>(),
            flows(0),
            flows(1),
        )
    }

    fn network(&self) -> NetworkSpec {
        let mut draws = Luck::seed(self.seed).named("dsl_mix").stream();
        let rate = Rate::from_bps_f64(self.mbps * 1e6);
        let mut config = LinkConfig::plain(rate, Duration::from_millis(10));
        config.queue =
            QueueConfig { limit: Limit::Packets(self.limit.saturating_sub(1)), aqm: None };
        let back = if self.reverse {
            config.clone()
        } else {
            LinkConfig::plain(rate, Duration::from_millis(10))
        };
        let mut links = vec![link("there", config, true), link("back", back, true)];
        let mut groups = vec![group("tcp", self.tcp), group("media", self.media)];
        if self.reverse {
            groups.push(group("reverse", self.tcp));
        }
        for i in 0..self.n {
            for (g, group) in groups.iter_mut().enumerate() {
                // A link each way for the source's side and the sink's, alike in delay.
                let first = links.len() as u32;
                for side in ["source", "sink"] {
                    let delay = Duration::from_secs_f64(draws.uniform(0.5e-3, 2e-3));
                    for way in ["up", "down"] {
                        let access = LinkConfig::plain(Rate::from_bps(15_000_000), delay);
                        links.push(link(&format!("{side}.{way}.{g}.{i}"), access, false));
                    }
                }
                let (ahead, behind) = if g == 2 { (1, 0) } else { (0, 1) };
                group.flows.push(FlowSpec {
                    start: Time::from_secs_f64(draws.unit()),
                    stop: Time::NEVER,
                    forward: vec![first, ahead, first + 3],
                    back: vec![first + 2, behind, first + 1],
                });
            }
        }
        NetworkSpec {
            seed: self.seed,
            end: Time::from_secs_f64(self.seconds),
            measure_from: Time::ZERO,
            links,
            groups,
            changes: Vec::new(),
            series: None,
        }
    }
}

fn link(name: &str, config: LinkConfig, metered: bool) -> LinkSpec {
    LinkSpec { name: name.into(), config: config.into(), metered }
}

fn group(name: &str, protocol: &str) -> GroupSpec {
    let spec = Spec::parse(protocol).expect("a protocol");
    GroupSpec {
        name: name.into(),
        protocol: Protocol::read(&spec, Preset::Ns2, 1000).expect("a listed protocol"),
        source: SourceSpec::bulk(),
        flows: Vec::new(),
    }
}
