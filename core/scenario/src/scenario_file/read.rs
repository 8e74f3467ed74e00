//! Reads a scenario from TOML.

use super::Text;
use super::count::CountExpression;
use super::link::{Keys, LinkEntry};
use crate::access_link::AccessLink;
use crate::change_keys::CHANGE_KEYS;
use crate::families;
use crate::link_direction::{LinkDirection, QueueSize};
use crate::scenario::at_line;
use crate::scenario::{
    DuplexLink, Flows, GroupProtocol, OwnLink, Reconfiguration, Scenario, Scheduled,
    SeriesSelection,
};
use crate::timeline::HINT_KEYS;
use crate::{text_file, values};
use narrows_base::spec::nearest;
use narrows_base::units::{self, Unit};
use narrows_base::{Duration, Rate, Spec, SpecError};
use narrows_congestion::PathHints;
use narrows_link::QueueLimit;
use narrows_sim::SourceSpec;
use narrows_sim::protocol::Preset;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use toml::Spanned;

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioFile {
    name: Option<String>,
    seed: Option<Spanned<i64>>,
    seeds: Option<Spanned<i64>>,
    pub duration: Option<Text>,
    pub warmup: Option<Text>,
    pub preset: Option<Text>,
    pub packet: Option<Text>,
    pub protocols: Option<Vec<Text>>,
    pub bottleneck: Option<Text>,
    #[serde(default)]
    pub variables: BTreeMap<String, Spanned<i64>>,
    #[serde(default)]
    pub link: Vec<Spanned<LinkEntry>>,
    #[serde(default)]
    pub flows: Vec<Spanned<FlowGroup>>,
    #[serde(default)]
    change: Vec<Spanned<ChangeAt>>,
    #[serde(default)]
    reconfigure: Vec<Spanned<ReconfigureAt>>,
    probe: Option<Spanned<Probes>>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FlowGroup {
    pub name: Option<String>,
    pub protocol: Text,
    pub count: Option<Spanned<CountExpression>>,
    pub from: String,
    pub to: String,
    pub paths: Option<Vec<Vec<String>>>,
    pub start: Option<Text>,
    pub stagger: Option<Text>,
    pub stop: Option<Text>,
    pub source: Option<Text>,
    #[serde(rename = "host-delay")]
    pub host_delay: Option<Text>,
    pub access: Option<Text>,
    pub egress: Option<Text>,
    /// If true, a range in `access` is drawn from the stream `egress`, and one in `egress` from `access`.
    pub mirrored: Option<bool>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeAt {
    at: Text,
    link: String,
    rate: Option<Text>,
    delay: Option<Text>,
    loss: Option<Text>,
    mtu: Option<Text>,
}

impl ChangeAt {
    /// The value of a key of [`CHANGE_KEYS`].
    fn value(&self, key: &str) -> Option<&Text> {
        let ChangeAt { at: _, link: _, rate, delay, loss, mtu } = self;
        match key {
            "rate" => rate.as_ref(),
            "delay" => delay.as_ref(),
            "loss" => loss.as_ref(),
            "mtu" => mtu.as_ref(),
            _ => None,
        }
    }
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReconfigureAt {
    at: Text,
    flows: String,
    rate: Option<Text>,
    rtt: Option<Text>,
    loss: Option<Text>,
}

impl ReconfigureAt {
    /// The value of a key of [`HINT_KEYS`].
    fn value(&self, key: &str) -> Option<&Text> {
        let ReconfigureAt { at: _, flows: _, rate, rtt, loss } = self;
        match key {
            "rate" => rate.as_ref(),
            "rtt" => rtt.as_ref(),
            "loss" => loss.as_ref(),
            _ => None,
        }
    }
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Probes {
    interval: Option<Text>,
    #[serde(default)]
    links: Vec<String>,
    flows: Option<Spanned<i64>>,
}

/// Limit on a scenario's size: 4 MB, about thirty thousand links. Reading it takes 48 bytes of memory per byte.
pub(super) const MAX_FILE: u64 = 4_000_000;

/// Reads a scenario file. Its traces are found from its own folder.
///
/// # Errors
/// One line with the file, the line in it, and the expected form.
pub fn load(path: &Path) -> Result<Scenario, SpecError> {
    let shown = path.display().to_string();
    let text = text_file::read(path, MAX_FILE, "scenario")?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut scenario = parse(&text, folder).map_err(|e| e.at(&shown))?;
    if scenario.name.is_empty() {
        scenario.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    }
    Ok(scenario)
}

/// Reads a scenario from its text.
///
/// # Errors
/// One line with the line in the text and the expected form.
pub fn parse(text: &str, folder: &Path) -> Result<Scenario, SpecError> {
    scenario(text, folder, &file(text)?)
}

/// Parses the file's parts without interpreting their values.
pub(super) fn file(text: &str) -> Result<ScenarioFile, SpecError> {
    if text.len() as u64 > MAX_FILE {
        let megabytes = MAX_FILE / 1_000_000;
        return Err(SpecError::new(format!("the scenario is longer than {megabytes} MB")));
    }
    toml::from_str(text).map_err(|e| syntax(text, &e))
}

/// The scenario of a file's parts; `text` is for the lines in messages.
pub(super) fn scenario(
    text: &str,
    folder: &Path,
    file: &ScenarioFile,
) -> Result<Scenario, SpecError> {
    let reader = ScenarioReader { lines: Lines::of(text), folder, variables: &file.variables };
    let mut s = Scenario::named(file.name.as_deref().unwrap_or_default());
    if let Some(x) = &file.seed {
        s.seed = reader.whole(x, "seed", 0, i64::MAX)? as u64;
    }
    if let Some(x) = &file.seeds {
        s.seeds = reader.whole(x, "seeds", 1, 100_000)? as u32;
    }
    reader.set(&mut s.duration, &file.duration, "duration", values::delay)?;
    reader.set(&mut s.warmup, &file.warmup, "warmup", values::delay)?;
    reader.set(&mut s.preset, &file.preset, "preset", preset)?;
    reader.set(&mut s.packet, &file.packet, "packet", packet)?;
    for p in file.protocols.iter().flatten() {
        reader.read(p, "protocols", |text| families::add(&mut s.protocols, text))?;
    }
    s.bottleneck = file.bottleneck.as_ref().map(|b| b.get_ref().clone());
    for link in &file.link {
        s.links.push(reader.wire(link.get_ref(), reader.line(link))?);
    }
    for (i, flows) in file.flows.iter().enumerate() {
        let group = reader.flows(flows.get_ref(), reader.line(flows), i, &s.flows)?;
        s.flows.push(group);
    }
    for change in &file.change {
        s.changes.extend(reader.changes(change.get_ref(), reader.line(change))?);
    }
    for entry in &file.reconfigure {
        s.reconfigurations.push(reader.reconfiguration(entry.get_ref(), reader.line(entry))?);
    }
    if let Some(probe) = &file.probe {
        s.probe = reader.probe(probe.get_ref(), reader.line(probe))?;
    }
    Ok(s)
}

/// `rfc`, `ns2` or `linux`.
///
/// # Errors
/// Anything else.
pub fn preset(text: &str) -> Result<Preset, SpecError> {
    match text {
        "rfc" => Ok(Preset::Rfc),
        "ns2" => Ok(Preset::Ns2),
        "linux" => Ok(Preset::Linux),
        other => Err(SpecError::unknown("preset", other, &["rfc", "ns2", "linux"])),
    }
}

/// A packet's size in whole bytes.
///
/// # Errors
/// An invalid size, or one that no packet can have.
pub fn packet(text: &str) -> Result<u32, SpecError> {
    let bytes = units::number(text, Unit::Bytes)?;
    if !(1.0..=65_535.0).contains(&bytes) {
        return Err(SpecError::new(format!(
            "'{text}': a packet has 41B to 65535B (40B are headers)"
        )));
    }
    Ok(bytes.round() as u32)
}

/// The position of a value that is not in a file.
pub(super) const ELSEWHERE: std::ops::Range<usize> = usize::MAX..usize::MAX;

struct ScenarioReader<'a> {
    lines: Lines,
    folder: &'a Path,
    variables: &'a BTreeMap<String, Spanned<i64>>,
}

impl ScenarioReader<'_> {
    fn line<T>(&self, x: &Spanned<T>) -> usize {
        if x.span() == ELSEWHERE { 0 } else { self.lines.at(x.span().start) }
    }

    fn read<T>(
        &self,
        x: &Text,
        key: &str,
        read: impl FnOnce(&str) -> Result<T, SpecError>,
    ) -> Result<T, SpecError> {
        read(x.get_ref().trim()).map_err(|e| at_line(self.line(x), e.at(key)))
    }

    fn set<T>(
        &self,
        slot: &mut T,
        x: &Option<Text>,
        key: &str,
        read: impl FnOnce(&str) -> Result<T, SpecError>,
    ) -> Result<(), SpecError> {
        if let Some(x) = x {
            *slot = self.read(x, key, read)?;
        }
        Ok(())
    }

    fn whole(&self, x: &Spanned<i64>, key: &str, min: i64, max: i64) -> Result<i64, SpecError> {
        let n = *x.get_ref();
        if (min..=max).contains(&n) {
            return Ok(n);
        }
        let e = SpecError::new(format!("{key} = {n} must be between {min} and {max}"));
        Err(at_line(self.line(x), e))
    }

    fn wire(&self, link: &LinkEntry, line: usize) -> Result<DuplexLink, SpecError> {
        // Every file has both; they are set with the other keys.
        let unset = (Rate::from_bps(1), Duration::ZERO);
        let mut forward =
            LinkDirection::new(unset.0, unset.1, QueueSize::Fixed(QueueLimit::Unlimited));
        self.fill(&mut forward, &link.keys)?;
        let mut reverse = forward.mirrored();
        if let Some(keys) = &link.reverse {
            self.fill(&mut reverse, keys)?;
        }
        let name = link.name.clone().unwrap_or_else(|| format!("{}-{}", link.from, link.to));
        let from = link.from.clone();
        let to = link.to.clone();
        Ok(DuplexLink { name, from, to, forward, reverse, line })
    }

    fn fill(&self, way: &mut LinkDirection, given: &Keys) -> Result<(), SpecError> {
        for (key, value) in given.iter() {
            self.read(value, key.name, |text| (key.set)(way, text, self.folder))?;
        }
        Ok(())
    }

    fn flows(
        &self,
        g: &FlowGroup,
        line: usize,
        index: usize,
        before: &[Flows],
    ) -> Result<Flows, SpecError> {
        let speaks = match g.protocol.get_ref().trim() {
            "each" => GroupProtocol::Each,
            _ => GroupProtocol::One(self.read(&g.protocol, "protocol", Spec::parse)?),
        };
        let mut name = g.name.clone().unwrap_or_else(|| match &speaks {
            GroupProtocol::Each => "main".into(),
            GroupProtocol::One(spec) => spec.name.clone(),
        });
        if g.name.is_none() && before.iter().any(|f| f.name == name) {
            name = format!("{name}-{}", index + 1);
        }
        let count = g.count.as_ref().map_or(Ok(1), |n| {
            let value = n.get_ref().value(self.variables).map_err(|e| at_line(self.line(n), e))?;
            self.whole(&Spanned::new(n.span(), value), "count", 1, 1_000_000)
        })?;
        let mut start = Duration::ZERO;
        self.set(&mut start, &g.start, "start", values::delay)?;
        let mut stagger = Duration::ZERO;
        self.set(&mut stagger, &g.stagger, "stagger", values::delay)?;
        let mut host_delay = Duration::ZERO;
        self.set(&mut host_delay, &g.host_delay, "host-delay", values::delay)?;
        let stop = g.stop.as_ref().map(|x| self.read(x, "stop", values::delay)).transpose()?;
        let mut source = SourceSpec::bulk();
        self.set(&mut source, &g.source, "source", |t| SourceSpec::read(&Spec::parse(t)?))?;
        // A mirrored group in the other direction draws the same ranges for the same hosts.
        let streams = match g.mirrored {
            Some(true) => ["egress", "access"],
            _ => ["access", "egress"],
        };
        let own = |x: &Option<Text>, key: &str, stream| {
            let side = x.as_ref().map(|x| self.read(x, key, AccessLink::parse)).transpose()?;
            Ok::<_, SpecError>(side.map(|side| OwnLink { side, stream }))
        };
        Ok(Flows {
            name,
            speaks,
            count: count as usize,
            from: g.from.clone(),
            to: g.to.clone(),
            paths: g.paths.clone().unwrap_or_default(),
            start,
            stagger,
            stop,
            source,
            host_delay,
            access: own(&g.access, "access", streams[0])?,
            egress: own(&g.egress, "egress", streams[1])?,
            line,
        })
    }

    fn changes(&self, c: &ChangeAt, line: usize) -> Result<Vec<Scheduled>, SpecError> {
        let at = self.read(&c.at, "at", values::delay)?;
        let mut out = Vec::new();
        for key in CHANGE_KEYS {
            if let Some(x) = c.value(key.name) {
                let change = self.read(x, key.name, key.read)?;
                out.push(Scheduled { at, link: c.link.clone(), change, line });
            }
        }
        if out.is_empty() {
            let e = "this change changes nothing; it needs rate, delay, loss or mtu";
            return Err(at_line(line, SpecError::new(e)));
        }
        Ok(out)
    }

    fn reconfiguration(
        &self,
        r: &ReconfigureAt,
        line: usize,
    ) -> Result<Reconfiguration, SpecError> {
        let mut hints = PathHints::default();
        for key in HINT_KEYS {
            if let Some(x) = r.value(key.name) {
                self.read(x, key.name, |text| (key.set)(&mut hints, text))?;
            }
        }
        if hints == PathHints::default() {
            let e = "this reconfigures nothing; it needs rate, rtt or loss";
            return Err(at_line(line, SpecError::new(e)));
        }
        let at = self.read(&r.at, "at", values::delay)?;
        Ok(Reconfiguration { at, flows: r.flows.clone(), hints, line })
    }

    fn probe(&self, p: &Probes, line: usize) -> Result<SeriesSelection, SpecError> {
        let interval = p.interval.as_ref().map(|x| self.read(x, "interval", values::delay));
        let flows = p.flows.as_ref().map_or(Ok(4), |n| self.whole(n, "flows", 0, 10_000))?;
        Ok(SeriesSelection {
            interval: interval.transpose()?,
            links: p.links.clone(),
            flows: flows as usize,
            line,
        })
    }
}

/// The ends of a text's lines.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Lines {
        Lines(text.match_indices('\n').map(|(at, _)| at).collect())
    }
    /// The number of the line with this byte.
    fn at(&self, offset: usize) -> usize {
        1 + self.0.partition_point(|end| *end < offset)
    }
}

/// A TOML error as one line.
fn syntax(text: &str, e: &toml::de::Error) -> SpecError {
    let line = e.span().map_or(0, |span| Lines::of(text).at(span.start));
    let message = e.message().lines().collect::<Vec<_>>().join("; ");
    at_line(line, SpecError::new(suggested(&message)))
}

/// serde's "unknown field `a`, expected one of `b`, `c`" with the nearest name.
fn suggested(message: &str) -> String {
    let Some(rest) = message.strip_prefix("unknown field `") else {
        let number = ["integer", "floating point"].map(|n| format!("invalid type: {n}"));
        if number.iter().any(|n| message.starts_with(n)) && message.ends_with("expected a string") {
            return "values with units are text: \"60s\", \"1.5Mbit/s\", \"1%\"".into();
        }
        return message.replace('`', "'");
    };
    let mut quoted = rest.split('`');
    let name = quoted.next().unwrap_or_default();
    let known: Vec<&str> = quoted.skip(1).step_by(2).collect();
    match nearest(name, &known) {
        Some(near) => format!("unknown key '{name}'; did you mean '{near}'?"),
        None => format!("unknown key '{name}'; expected one of: {}", known.join(", ")),
    }
}
