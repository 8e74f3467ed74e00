//! A network of two links: data over the first, acknowledgements over the second.

use narrows_base::{Duration, Rate, Spec, Time};
use narrows_link::{LinkConfig, LossSpec, QueueConfig, QueueLimit};
use narrows_sim::protocol::{FlowProtocol, Preset};
use narrows_sim::{FlowSpec, GroupSpec, LinkSpec, NetworkSpec, SourceSpec};

/// A link with a rate in bit/s.
pub fn link(
    bps: f64,
    delay: Duration,
    limit: QueueLimit,
    aqm: Option<&str>,
    loss: &str,
) -> LinkConfig {
    let mut config = LinkConfig::plain(Rate::from_bps_f64(bps), delay);
    config.queue = QueueConfig { limit, aqm: aqm.map(|aqm| Spec::parse(aqm).unwrap()) };
    config.loss = LossSpec::parse_all(loss).unwrap();
    config
}

/// Bulk flows that begin at these times (s), with packets of so many bytes.
pub fn group(
    name: &str,
    protocol: &str,
    packet: u32,
    starts_s: impl IntoIterator<Item = f64>,
) -> GroupSpec {
    let flow = |start_s| FlowSpec {
        start: Time::from_secs_f64(start_s),
        ..FlowSpec::new(vec![0], vec![1])
    };
    GroupSpec {
        name: name.into(),
        protocol: FlowProtocol::read(&Spec::parse(protocol).unwrap(), Preset::Rfc, packet).unwrap(),
        source: SourceSpec::bulk(),
        flows: starts_s.into_iter().map(flow).collect(),
    }
}

/// Groups that share both links, measured from `from` to `end` (s).
pub fn network(
    [there, back]: [LinkConfig; 2],
    groups: Vec<GroupSpec>,
    (from, end): (f64, f64),
    seed: u64,
) -> NetworkSpec {
    let link = |name: &str, config: LinkConfig| LinkSpec {
        name: name.into(),
        config: config.into(),
        metered: true,
    };
    NetworkSpec {
        seed,
        end: Time::from_secs_f64(end),
        measure_from: Time::from_secs_f64(from),
        links: vec![link("there", there), link("back", back)],
        groups,
        ..NetworkSpec::default()
    }
}
