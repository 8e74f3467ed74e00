//! Rows of `bench paths` beside the profiles: short files, a shared bottleneck, recorded links.

use super::{Bench, PROFILES, PathText, network, over};
use narrows_base::{Spec, Time};
use narrows_sim::{PathSpec, SourceSpec, run};
use std::path::PathBuf;

/// Bytes of a short file.
const FILE: u64 = 20 << 20;

/// A file of 20 MiB over both paths of each profile, start included: its share of the sum of rate times (1 - loss).
pub(super) fn short_files(bench: &Bench) -> Result<(), String> {
    println!("\n| a file of 20 MiB over | share of the sum, mean | least |\n|---|---|---|");
    let transfer = Spec::parse(&format!("transfer(size={FILE}B)"));
    let source = transfer.and_then(|spec| SourceSpec::read(&spec)).map_err(|e| e.to_string())?;
    for profile in &PROFILES {
        let links: Vec<String> = profile.paths.iter().map(|p| p.link("kept")).collect();
        let sum: f64 = profile.paths.iter().map(PathText::capacity).sum();
        let mut shares = Vec::new();
        for seed in 1..=bench.seeds {
            let groups = [("main", bench.ours.as_str(), source.clone())];
            let mut spec = network(&links, &groups, seed).map_err(|e| e.to_string())?;
            spec.measure_from = Time::ZERO;
            let result = run(&spec, &mut |_| true).map_err(|e| e.to_string())?;
            let flow = &result.groups[0].flows[0];
            let took = flow.done.map_or(f64::INFINITY, |done| done.since(flow.start).as_secs_f64());
            shares.push(FILE as f64 * 8.0 / took / 1e6 / sum);
        }
        let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
        println!("| {} | {mean:.2} | {least:.2} |", profile.name);
    }
    Ok(())
}

/// Two paths over one link, beside a flow over it: the goodput of the flow with two paths over that of the other.
pub(super) fn shared(bench: &Bench) -> Result<(), String> {
    println!(
        "\n| one link of 20 Mbit/s, 40 ms | goodput of two paths over that of a flow beside |\n|---|---|"
    );
    let links = ["20Mbit/s,40ms".to_string()];
    for protocol in [bench.ours.as_str(), "rrtp+reno", "rrtp+reno(coupling=lia)"] {
        let mut both = 0.0;
        let mut beside = 0.0;
        for seed in 1..=bench.seeds {
            let groups =
                [("both", protocol, SourceSpec::bulk()), ("one", protocol, SourceSpec::bulk())];
            let mut spec = network(&links, &groups, seed).map_err(|e| e.to_string())?;
            let flow = &mut spec.groups[0].flows[0];
            flow.further =
                vec![PathSpec { forward: flow.forward.clone(), back: flow.back.clone() }];
            let result = run(&spec, &mut |_| true).map_err(|e| e.to_string())?;
            both += result.groups[0].flows[0].goodput_bytes as f64;
            beside += result.groups[1].flows[0].goodput_bytes as f64;
        }
        println!("| {protocol} | {:.2} |", both / beside.max(1.0));
    }
    Ok(())
}

/// All pairs of recorded links: the share of what each carries alone.
pub(super) fn recorded(traces: &[PathBuf], bench: &Bench) -> Result<(), String> {
    println!(
        "\n| recorded links | share of what each carries alone | better one alone |\n|---|---|---|"
    );
    let mut shares = Vec::new();
    for (n, first) in traces.iter().enumerate() {
        for second in traces.iter().skip(n + 1) {
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
            let name = |trace: &PathBuf| {
                trace.file_name().unwrap_or_default().to_string_lossy().into_owned()
            };
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
