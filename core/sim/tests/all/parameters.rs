//! Every parameter of every protocol has an effect in every preset, or is refused.

use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Duration, Param, Rate, Spec, Time};
use narrows_link::{LinkChange, LinkConfig, LossSpec, PolicerConfig, QueueConfig, QueueLimit};
use narrows_sim::protocol::{self, endpoint_params, named};
use narrows_sim::protocol::{FlowProtocol, Preset};
use narrows_sim::{ClassifierCounts, FlowSpec, GroupSpec, LinkSpec, NetworkSpec, SourceSpec, run};
use std::collections::BTreeMap;

const PRESETS: [(&str, Preset); 3] =
    [("rfc", Preset::Rfc), ("ns2", Preset::Ns2), ("linux", Preset::Linux)];

/// A path on which parameters may have an effect.
struct Path {
    bps: u64,
    return_bps: u64,
    delay_ms: u64,
    queue: u64,
    aqm: Option<&'static str>,
    loss: &'static str,
    return_loss: &'static str,
    /// Standard deviation of the additional delay of packets on the forward link, which reorders them.
    jitter_ms: u64,
    source: &'static str,
    rival: Option<&'static str>,
    policer: Option<PolicerConfig>,
    /// No packets arrive from 4 s to 8 s.
    outage: bool,
}

const PLAIN: Path = Path {
    bps: 2_000_000,
    return_bps: 2_000_000,
    delay_ms: 20,
    queue: 20,
    aqm: None,
    loss: "none",
    return_loss: "none",
    jitter_ms: 0,
    source: "bulk",
    rival: None,
    policer: None,
    outage: false,
};

const POLICER: PolicerConfig = PolicerConfig { rate: Rate::from_bps(4_000_000), burst: 20_000 };

/// The first path with an effect ends the search, so common ones come first.
const PATHS: [Path; 19] = [
    Path { loss: "1%", ..PLAIN },
    PLAIN,
    Path { bps: 20_000_000, queue: 2000, delay_ms: 50, ..PLAIN },
    Path { rival: Some("cubic"), queue: 60, ..PLAIN },
    Path { aqm: Some("codel(ecn=on)"), queue: 100, rival: Some("sack(ecn=on)"), ..PLAIN },
    // Timeouts and their back-off.
    Path { loss: "40%", return_loss: "40%", ..PLAIN },
    Path { loss: "97%", ..PLAIN },
    Path { outage: true, ..PLAIN },
    Path { loss: "30%", delay_ms: 300, ..PLAIN },
    Path { loss: "10%", delay_ms: 300, ..PLAIN },
    Path { bps: 20_000_000, delay_ms: 5, loss: "4%", return_loss: "4%", ..PLAIN },
    Path { jitter_ms: 8, loss: "2%", ..PLAIN },
    // Packets arrive after they count as lost.
    Path { jitter_ms: 60, loss: "none", ..PLAIN },
    // Acknowledgements are delayed and lost.
    Path { bps: 5_000_000, return_bps: 20_000, return_loss: "10%", ..PLAIN },
    // The application writes more, and less, than the path carries.
    Path { source: "cbr(rate=4Mbit/s)", loss: "1%", ..PLAIN },
    Path { source: "cbr(rate=500kbit/s,on=1s,off=1s)", loss: "1%", ..PLAIN },
    // Marks, and delayed acknowledgements.
    Path { aqm: Some("codel(ecn=on)"), queue: 100, return_bps: 60_000, ..PLAIN },
    Path { bps: 20_000_000, queue: 500, policer: Some(POLICER), ..PLAIN },
    // Windows of thousands of packets, so that a report may acknowledge many.
    Path { bps: 200_000_000, return_bps: 200_000_000, delay_ms: 200, queue: 50_000, ..PLAIN },
];

/// The outcome of a run: a digest of all arrivals, and the receiver's classification of losses.
type Trace = (u64, ClassifierCounts);

fn digest(path: &Path, protocol: &FlowProtocol, preset: Preset) -> Trace {
    let link = |name: &str, bps, loss, metered, jitter| {
        let mut config =
            LinkConfig::plain(Rate::from_bps(bps), Duration::from_millis(path.delay_ms));
        let aqm = path.aqm.filter(|_| metered).map(|text| Spec::parse(text).unwrap());
        config.queue = QueueConfig { limit: QueueLimit::Packets(path.queue), aqm };
        config.loss = LossSpec::parse_all(loss).unwrap();
        config.changes = path.outage && metered;
        config.impairments.policer = path.policer.filter(|_| metered);
        config.impairments.jitter = Duration::from_millis(jitter);
        config.impairments.reorder = if jitter > 0 { 0.02 } else { 0.0 };
        config.impairments.reorder_by = Duration::from_millis(jitter);
        LinkSpec { name: name.into(), config: config.into(), metered }
    };
    let flow = FlowSpec::new(vec![0], vec![1]);
    let group = |name: &str, protocol, source: &str| GroupSpec {
        name: name.into(),
        protocol,
        source: SourceSpec::read(&Spec::parse(source).unwrap()).unwrap(),
        flows: vec![flow.clone()],
    };
    let mut groups = vec![group("main", protocol.clone(), path.source)];
    groups.extend(path.rival.map(|rival| {
        let rival = FlowProtocol::read(&Spec::parse(rival).unwrap(), preset, 1000).unwrap();
        group("rival", rival, "bulk")
    }));
    let spec = NetworkSpec {
        seed: 5,
        end: Time::from_secs_f64(12.0),
        links: vec![
            link("forward", path.bps, path.loss, true, path.jitter_ms),
            link("return", path.return_bps, path.return_loss, false, 0),
        ],
        groups,
        changes: if path.outage {
            let loss = |text| LinkChange::Loss(LossSpec::parse_all(text).unwrap());
            let at = Time::from_secs_f64;
            vec![(at(4.0), 0, loss("100%")), (at(8.0), 0, loss("none"))]
        } else {
            Vec::new()
        },
        ..NetworkSpec::default()
    };
    let result = run(&spec, &mut |_| true).unwrap();
    (result.digest, result.groups[0].flows[0].classifier_counts.unwrap_or_default())
}

fn read(name: &str, arguments: &[String], preset: Preset) -> Result<FlowProtocol, String> {
    let text =
        if arguments.is_empty() { name.into() } else { format!("{name}({})", arguments.join(",")) };
    FlowProtocol::read(&Spec::parse(&text).unwrap(), preset, 1000).map_err(|e| e.to_string())
}

/// Outcomes of the protocols to compare with, by their specification, per path.
type Baselines = BTreeMap<(String, usize), Trace>;

/// Whether the argument, in addition to others that are always present, changes a packet on a path.
fn acts(
    (name, fixed, argument): (&str, &[String], &str),
    preset: Preset,
    baselines: &mut Baselines,
) -> Result<bool, String> {
    let mut arguments = fixed.to_vec();
    let without = read(name, fixed, preset)?;
    arguments.push(argument.into());
    let with = read(name, &arguments, preset)?;
    Ok(PATHS.iter().enumerate().any(|(i, path)| {
        let key = (format!("{name} {fixed:?} {preset:?}"), i);
        let before = *baselines.entry(key).or_insert_with(|| digest(path, &without, preset));
        before != digest(path, &with, preset)
    }))
}

/// Values on either side of a number's default, nearest first; every word but the default, each on its own.
fn values(param: &Param) -> Vec<Vec<String>> {
    let written = |x: f64| format!("{}={x}", param.name);
    match param.kind {
        ParamKind::Number { unit, min, max, default } => {
            let whole = |x: f64| if unit == Unit::Packets { x.round() } else { x };
            let first = match (default, unit) {
                (0.0, Unit::BitsPerSecond) => 1e6,
                (0.0, Unit::Seconds) => 0.1,
                (0.0, _) => 0.5,
                _ => default,
            };
            // A value above an infinite default has no effect.
            let below = if default >= 1e15 { [50.0, 5.0] } else { [default / 4.0, default / 16.0] };
            let sides = [below, [first * if default == 0.0 { 1.0 } else { 4.0 }, first * 16.0]];
            let within = |side: [f64; 2]| -> Vec<String> {
                let values = side.map(|x| whole(x.clamp(min, max)));
                values.into_iter().filter(|x| *x != default).map(written).collect()
            };
            sides.into_iter().map(within).filter(|side| !side.is_empty()).collect()
        }
        ParamKind::Choice(words) => {
            words[1..].iter().map(|word| vec![format!("{}={word}", param.name)]).collect()
        }
        ParamKind::Integers => Vec::new(),
    }
}

/// Protocol, and an argument that is always present.
const BESIDE: [(&str, &str); 2] = [
    // Without a rate it sends only the initial window; it ignores acknowledgements.
    ("brutal", "rate=20Mbit/s"),
    ("fixed", "rate=20Mbit/s"),
];

/// Values on one side of a default that have no effect, and the reason. The protocol may be any (`*`).
const SILENT: [(&str, &str, &str); 8] = [
    ("tfrc", "reorder=1", "ns-2's numPkts_ is 1"),
    ("*", "biaz-sigma=0.25", "packets around n lost ones are n + 1 spacings apart at least"),
    ("rap", "ack-every=128", SLOW),
    ("tear", "ack-every=128", SLOW),
    ("tear-wireless", "ack-every=128", SLOW),
    ("tear-reliable", "ack-every=128", SLOW),
    ("scream", "ack-every=128", SLOW),
    ("fixed", "ack-every=128", SLOW),
];
const SLOW: &str = "fewer packets come in a 32nd of a round trip on all paths";

/// The fault of a protocol's parameter in a preset, if any.
fn fault(name: &str, param: &Param, preset: Preset, baselines: &mut Baselines) -> Option<String> {
    let beside: Vec<String> = (BESIDE.iter())
        .filter(|b| b.0 == name && !b.1.starts_with(&format!("{}=", param.name)))
        .map(|b| b.1.to_string())
        .collect();
    let mut silent = Vec::new();
    let is_known =
        |side: &[String]| SILENT.iter().any(|s| ["*", name].contains(&s.0) && s.1 == side[0]);
    for side in values(param).into_iter().filter(|side| !is_known(side)) {
        let mut has_effect = false;
        for argument in &side {
            let outcome = acts((name, &beside, argument), preset, baselines).or_else(|refusal| {
                // The error names arguments beside which the parameter has an effect: test those.
                let Some((_, with)) = refusal.split_once("; it does with ") else {
                    return Ok::<bool, String>(true);
                };
                for with in with.split(" or ") {
                    let beside: Vec<String> =
                        beside.iter().cloned().chain([with.to_string()]).collect();
                    if acts((name, &beside, argument), preset, baselines)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            });
            match outcome {
                Ok(acts) => has_effect |= acts,
                Err(refusal) => return Some(format!("{name}({argument}): {refusal}")),
            }
            if has_effect {
                break;
            }
        }
        if !has_effect {
            silent.push(side[0].clone());
        }
    }
    // One word equals the meaning of `preset`, `own`, `default` or `auto`.
    let stands_for = match param.kind {
        ParamKind::Choice(words) => {
            usize::from(["preset", "own", "default", "auto"].contains(&words[0]))
        }
        _ => 0,
    };
    (silent.len() > stands_for).then(|| format!("{name}: {silent:?}"))
}

fn walk(preset: (&str, Preset)) -> Vec<String> {
    let mut baselines = Baselines::new();
    let mut faults = Vec::new();
    for entry in named() {
        let controller = narrows_congestion::find(entry.controller).unwrap();
        for param in controller.descriptor.params {
            faults.extend(fault(entry.name, param, preset.1, &mut baselines));
        }
    }
    faults.into_iter().map(|f| format!("preset {}: {f}", preset.0)).collect()
}

fn walk_endpoints(preset: (&str, Preset)) -> Vec<String> {
    let mut baselines = Baselines::new();
    let mut faults = Vec::new();
    let streams = ["rrtp+cubic", "rrtp+reno", "rrtp+bbr"].map(|name| protocol::find(name).unwrap());
    for entry in named().chain(streams) {
        // These act over several paths: see `multipath`.
        let acts = |p: &&Param| !["scheduler", "coupling"].contains(&p.name);
        for param in endpoint_params(entry).iter().filter(acts) {
            faults.extend(fault(entry.name, param, preset.1, &mut baselines));
        }
    }
    faults.into_iter().map(|f| format!("preset {}: {f}", preset.0)).collect()
}

fn on_all_presets(walk: fn((&'static str, Preset)) -> Vec<String>) -> String {
    let faults: Vec<String> = std::thread::scope(|scope| {
        let threads = PRESETS.map(|preset| scope.spawn(move || walk(preset)));
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    faults.join("\n")
}

#[test]
fn every_parameter_of_a_controller_acts_or_is_refused() {
    assert_eq!(on_all_presets(walk), "");
}

#[test]
fn every_parameter_of_an_endpoint_acts_or_is_refused() {
    assert_eq!(on_all_presets(walk_endpoints), "");
}
