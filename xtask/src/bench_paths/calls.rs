//! Rows of `bench paths`: a call beside an endless stream, both over the same two paths.

use super::runs::*;
use narrows_base::Time;
use narrows_sim::{Simulation, SourceSpec};

/// A call's rate in bits per second, and bytes of a message.
struct Call {
    rate: f64,
    size: u64,
}

/// Speech with a message each 20 ms, and a small video.
const CALLS: [Call; 2] = [Call { rate: 80e3, size: 200 }, Call { rate: 1e6, size: 1000 }];
/// Two paths of which the better one alone is enough for a call.
const FITS: Profile = Profile {
    name: "100 Mbit/s, 10 ms + 10 Mbit/s, 100 ms",
    paths: [path(100.0, 10, 0, 0.0), path(10.0, 100, 0, 0.0)],
};
/// Seconds between looks at the delivered bytes.
const LOOK_S: f64 = 0.001;

/// Calls beside an endless stream over both paths of each profile, and over a pair of which the better path is enough.
pub(super) fn calls(bench: &Bench) -> Result<(), String> {
    println!(
        "\n| call beside a stream | kbit/s | p99 of the delay, ms | alone on the better path | share of the stream | \
         extra bytes, % |\n|---|---|---|---|---|---|"
    );
    for profile in [&FITS].into_iter().chain(&PROFILES) {
        let links = links(&profile.paths, "kept");
        for call in &CALLS {
            let both = beside(&links, call, false, bench)?;
            let mut alone = f64::INFINITY;
            for link in &links {
                alone = alone.min(beside(std::slice::from_ref(link), call, true, bench)?.p99_ms);
            }
            println!(
                "| {} | {:.0} | {:.0} | {alone:.0} | {:.2} | {:.2} |",
                profile.name,
                call.rate / 1e3,
                both.p99_ms,
                (both.bulk_mbps + call.rate / 1e6) / capacity(&profile.paths),
                both.extra * 100.0
            );
        }
    }
    Ok(())
}

/// A call over some links, with an endless stream beside it or alone.
struct CallResult {
    /// 99th percentile of the time from a message's write to its arrival, in milliseconds.
    p99_ms: f64,
    /// Goodput of the stream, in Mbit/s.
    bulk_mbps: f64,
    /// Bytes of the call that arrived more than once, as a share of it.
    extra: f64,
}

fn beside(
    links: &[String],
    call: &Call,
    is_alone: bool,
    bench: &Bench,
) -> Result<CallResult, String> {
    let Call { rate, size } = *call;
    let source = source(&format!("cbr(rate={rate}bit/s,size={size}B)"))?;
    let mut delays = Vec::new();
    let mut bulk_mbps = 0.0;
    let mut copies = 0;
    for seed in 1..=bench.seeds {
        let mut groups = vec![("call", bench.ours.as_str(), source.clone())];
        if !is_alone {
            groups.push(("bulk", bench.ours.as_str(), SourceSpec::bulk()));
        }
        let spec = network(links, &groups, seed)?;
        let mut simulation = Simulation::new(&spec).map_err(|e| e.to_string())?;
        let gap_s = size as f64 * 8.0 / rate;
        let mut message = 0;
        for look in 1..=(SECONDS / LOOK_S) as u32 {
            let now = f64::from(look) * LOOK_S;
            simulation
                .advance(Time::from_secs_f64(now), &mut |_| true)
                .map_err(|e| e.to_string())?;
            while simulation.delivered(0) >= (message + 1) * size {
                let written = message as f64 * gap_s;
                if written >= START_S {
                    delays.push((now - written) * 1e3);
                }
                message += 1;
            }
        }
        let result = simulation.finish();
        copies += result.groups[0].flows[0].multipath.as_ref().map_or(0, |m| m.duplicate_bytes);
        if let Some(bulk) = result.groups.get(1) {
            let bits = bulk.flows[0].goodput_bytes as f64 * 8.0;
            bulk_mbps += bits / result.span_s / 1e6 / bench.seeds as f64;
        }
    }
    delays.sort_by(f64::total_cmp);
    let p99_ms = delays.get(delays.len() * 99 / 100).copied().unwrap_or(f64::INFINITY);
    let sent = bench.seeds as f64 * rate / 8.0 * SECONDS;
    Ok(CallResult { p99_ms, bulk_mbps, extra: copies as f64 / sent })
}
