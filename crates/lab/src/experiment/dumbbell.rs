//! The four dumbbells of the reference measurements: N SACK flows from as many sources to as many
//! sinks over one link. Flow i starts at i/N seconds, which no scenario file can say.

use narrows_base::{Duration, Rate, Spec, Time};
use narrows_flow::{Preset, Protocol};
use narrows_path::{Limit, LinkConfig, QueueConfig};
use narrows_sim::{FlowSpec, GroupSpec, LinkSpec, NetworkSpec, SourceSpec};

/// N flows over `mbps` Mbit/s and 10 ms with a buffer of one BDP (24 ms), access links of 1 Gbit/s
/// and 1 ms, 1000-byte packets, preset `ns2`.
///
/// # Errors
/// A protocol that is not in the list.
pub fn dumbbell(
    flows: u32,
    mbps: u64,
    seconds: u64,
    protocol: &str,
) -> Result<NetworkSpec, String> {
    let read = Spec::parse(protocol).and_then(|spec| Protocol::read(&spec, Preset::Ns2, 1000));
    let protocol = read.map_err(|e| e.to_string())?;
    let room = (mbps * 24_000).div_ceil(8_000);
    let gigabit = LinkConfig::plain(Rate::from_bps(1_000_000_000), Duration::from_millis(1));
    let back = LinkConfig::plain(Rate::from_bps(mbps * 1_000_000), Duration::from_millis(10));
    let mut there = back.clone();
    there.queue = QueueConfig { limit: Limit::Packets(room), aqm: None };
    let link = |name: String, config: LinkConfig, metered| LinkSpec {
        name,
        config: config.into(),
        metered,
    };
    let mut links = vec![link("there".into(), there, true), link("back".into(), back, false)];
    let mut list = Vec::new();
    for i in 0..flows {
        let first = links.len() as u32;
        for side in ["in", "out", "ack-in", "ack-out"] {
            links.push(link(format!("{side}.{i}"), gigabit.clone(), false));
        }
        list.push(FlowSpec {
            start: Time::from_secs_f64(f64::from(i) / f64::from(flows)),
            stop: Time::NEVER,
            forward: vec![first, 0, first + 1],
            back: vec![first + 2, 1, first + 3],
        });
    }
    let main = GroupSpec { name: "main".into(), protocol, source: SourceSpec::bulk(), flows: list };
    Ok(NetworkSpec {
        seed: 1,
        end: Time::from_secs_f64(seconds as f64),
        measure_from: Time::ZERO,
        links,
        groups: vec![main],
        changes: Vec::new(),
        series: None,
    })
}
