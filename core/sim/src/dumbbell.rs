//! The dumbbell of the reference measurements: N flows between N pairs of hosts over one
//! bottleneck. Flow i starts at i/N seconds, which scenario files cannot express.

use crate::protocol::FlowProtocol;
use crate::{FlowSpec, GroupSpec, LinkSpec, NetworkSpec, SourceSpec};
use narrows_base::{Duration, Rate, Time};
use narrows_link::{LinkConfig, QueueConfig, QueueLimit};
use std::sync::Arc;

/// `flows` endless flows over `mbps` Mbit/s and 10 ms with a buffer of one BDP (24 ms) in packets of 1000 bytes; access
/// links of 1 Gbit/s and 1 ms; seed 1. The first link is the bottleneck, metered; the group is `main`.
pub fn dumbbell(flows: u32, mbps: u64, seconds: u64, protocol: FlowProtocol) -> NetworkSpec {
    let room = mbps.saturating_mul(24_000).div_ceil(8_000);
    let gigabit = LinkConfig::plain(Rate::from_bps(1_000_000_000), Duration::from_millis(1));
    let gigabit = Arc::new(gigabit);
    let rate = Rate::from_bps(mbps.saturating_mul(1_000_000));
    let back = LinkConfig::plain(rate, Duration::from_millis(10));
    let mut there = back.clone();
    there.queue = QueueConfig { limit: QueueLimit::Packets(room), aqm: None };
    let link = |name: String, config: Arc<LinkConfig>, metered| LinkSpec { name, config, metered };
    let mut links =
        vec![link("there".into(), there.into(), true), link("back".into(), back.into(), false)];
    let mut list = Vec::new();
    for i in 0..flows {
        let first = links.len() as u32;
        for side in ["in", "out", "ack-in", "ack-out"] {
            links.push(link(format!("{side}.{i}"), gigabit.clone(), false));
        }
        list.push(FlowSpec {
            start: Time::from_secs_f64(f64::from(i) / f64::from(flows)),
            ..FlowSpec::new(vec![first, 0, first + 1], vec![first + 2, 1, first + 3])
        });
    }
    let main = GroupSpec { name: "main".into(), protocol, source: SourceSpec::bulk(), flows: list };
    NetworkSpec {
        seed: 1,
        end: Time::from_secs_f64(seconds as f64),
        links,
        groups: vec![main],
        ..NetworkSpec::default()
    }
}
