//! Rows of `bench paths` beside the profiles: a shared bottleneck, recorded links.

use super::runs::{Bench, PACKET, network, over, result};
use crate::files::name;
use narrows_base::{RandomKey, Time, math};
use narrows_sim::{PathSpec, SourceSpec};
use std::path::PathBuf;

/// One bottleneck under two paths of a connection.
struct Bottleneck {
    link: String,
    /// Additional one-way delay of the second path, in ms.
    later_ms: u32,
    /// Flows beside the connection.
    flows: u32,
    /// Paths of the connection, 1 or 2.
    paths: u32,
}

/// A bottleneck drawn by a seed: 4 to 100 Mbit/s, 5 to 60 ms one way and queues of 0.25 to 4 BDP, log-uniform; loss to 2%
/// in three of ten, jitter to a quarter of the delay in one of four, a longer second path in half; one to three flows
/// beside.
fn drawn_bottleneck(seed: u64) -> Bottleneck {
    let mut stream = RandomKey::from_seed(seed).named("bottlenecks").stream();
    let mut unit = || stream.unit();
    let mut between = |low: f64, high: f64| low * math::pow(high / low, unit());
    let mbps = between(4.0, 100.0);
    let delay_ms = between(5.0, 60.0).round();
    let bdp = mbps * 1e3 * 2.0 * delay_ms / (8.0 * f64::from(PACKET));
    let queue = (bdp * between(0.25, 4.0)).max(10.0);
    let later_ms = between(2.0, 60.0) as u32;
    let mut link = format!("{mbps:.1}Mbit/s,{delay_ms}ms,queue={queue:.0}p");
    if unit() < 0.3 {
        link += &format!(",loss={:.2}%", 2.0 * unit());
    }
    if unit() < 0.25 {
        link += &format!(",jitter=normal({:.1}ms)", delay_ms / 4.0 * unit());
    }
    let is_longer = unit() < 0.5;
    let flows = 1 + (3.0 * unit()) as u32;
    Bottleneck { link, later_ms: if is_longer { later_ms } else { 0 }, flows, paths: 2 }
}

/// The logarithm of the goodput of a connection over a bottleneck, over that of a flow beside them. The flows beside begin
/// at drawn times of the first second.
fn ratio(bottleneck: &Bottleneck, protocol: &str, seed: u64) -> Result<f64, String> {
    let access = format!("1000Mbit/s,{}ms,queue=1000p", bottleneck.later_ms);
    let links = [bottleneck.link.clone(), access];
    let mut groups = vec![("both", protocol, SourceSpec::bulk())];
    groups.extend((0..bottleneck.flows).map(|_| ("beside", protocol, SourceSpec::bulk())));
    let mut spec = network(&links, &groups, seed)?;
    let mut stream = RandomKey::from_seed(seed).named("starts").stream();
    for (n, group) in spec.groups.iter_mut().enumerate() {
        let flow = &mut group.flows[0];
        flow.further.clear();
        if n == 0 && bottleneck.paths == 2 {
            flow.further.push(PathSpec { forward: vec![2, 0], back: vec![1, 3] });
        } else if n > 0 {
            group.name = format!("beside {n}");
            flow.start = Time::from_secs_f64(stream.unit());
        }
    }
    let result = result(&spec)?;
    let goodput = |n: usize| result.groups[n].flows[0].goodput_bytes as f64;
    let beside = (1..result.groups.len()).map(goodput).sum::<f64>() / f64::from(bottleneck.flows);
    Ok(math::ln(goodput(0).max(1.0) / beside.max(1.0)))
}

/// Two paths over one bottleneck: their goodput over that of a flow beside them, as geometric means. The first row has one
/// path.
pub(super) fn shared(bench: &Bench) -> Result<(), String> {
    println!("\n| two paths | 20 Mbit/s, 40 ms | drawn bottlenecks |\n|---|---|---|");
    shared_row(bench, &bench.ours, 1)?;
    let uncoupled = format!("{}(coupling=uncoupled)", bench.ours);
    for protocol in [bench.ours.as_str(), &uncoupled, "rrtp+reno", "rrtp+reno(coupling=lia)"] {
        shared_row(bench, protocol, 2)?;
    }
    Ok(())
}

fn shared_row(bench: &Bench, protocol: &str, paths: u32) -> Result<(), String> {
    let name = if paths == 1 { "one path of " } else { "" };
    let mut row = format!("| {name}{protocol} |");
    for is_drawn in [false, true] {
        let mut ratios = Vec::new();
        for seed in 1..=bench.seeds {
            let fixed = Bottleneck { link: "20Mbit/s,40ms".into(), later_ms: 0, flows: 1, paths };
            let drawn = Bottleneck { paths, ..drawn_bottleneck(seed) };
            ratios.push(ratio(if is_drawn { &drawn } else { &fixed }, protocol, seed)?);
        }
        let n = ratios.len() as f64;
        let mean = ratios.iter().sum::<f64>() / n;
        let squares = ratios.iter().map(|r| (r - mean) * (r - mean)).sum::<f64>();
        let error = 1.96 * (squares / (n - 1.0).max(1.0) / n).sqrt();
        row += &format!(" {:.2} ×/÷ {:.2} |", math::exp(mean), math::exp(error));
    }
    println!("{row}");
    Ok(())
}

/// All pairs of recorded links: the share of what each carries alone.
pub(super) fn recorded(bench: &Bench) -> Result<(), String> {
    if bench.traces.is_empty() {
        return Ok(());
    }
    println!(
        "\n| recorded links | share of what each carries alone | better one alone |\n|---|---|---|"
    );
    let mut shares = Vec::new();
    for (n, first) in bench.traces.iter().enumerate() {
        for second in bench.traces.iter().skip(n + 1) {
            let link =
                |trace: &PathBuf| format!("12Mbit/s,30ms,queue=500p,trace={}", trace.display());
            let links = [link(first), link(second)];
            let mut alone = [0.0; 2];
            for (mbps, link) in alone.iter_mut().zip(&links) {
                let one = std::slice::from_ref(link);
                *mbps = over(one, &[12.0], &bench.ours, bench.seeds)?.mbps;
            }
            let both = over(&links, &[12.0; 2], &bench.ours, bench.seeds)?.mbps;
            let sum: f64 = alone.iter().sum();
            let better = alone.iter().copied().fold(0.0, f64::max);
            println!(
                "| {}, {} | {:.2} | {:.2} |",
                name(first),
                name(second),
                both / sum,
                better / sum
            );
            shares.push(both / sum);
        }
    }
    shares.sort_by(f64::total_cmp);
    if let (Some(least), Some(median)) = (shares.first(), shares.get(shares.len() / 2)) {
        println!("\nleast {least:.2}, median {median:.2} of {} pairs", shares.len());
    }
    Ok(())
}
