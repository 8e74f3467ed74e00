//! The base of a sweep: a scenario file, or the comparison that `--link` describes.

use crate::compare::{Question, source};
use crate::measure;
use narrows_base::SpecError;
use narrows_base::spec::nearest;
use narrows_scenario::families;
use narrows_scenario::keys::{self, LINK_KEYS, REVERSE};
use narrows_scenario::link::BottleneckLink;
use narrows_scenario::scenario::Scenario;
use narrows_scenario::scenario_file::{
    self, Template, TemplateTarget, split_key, taken, with_parameter,
};
use narrows_scenario::timeline::Timeline;
use narrows_scenario::values;
use std::path::Path;

/// Keys of a comparison, except those of its link.
const QUESTION: &[&str] = &[
    "protocol", "source", "flows", "against", "reverse", "duration", "warmup", "stagger", "packet",
    "preset",
];

/// The scenario that is varied.
#[derive(Clone)]
pub enum Base {
    /// A scenario file.
    File(Box<Template>),
    /// A bottleneck as `narrows compare` builds it.
    Link(Box<Question>),
}

/// A value of the base that a sweep can set.
#[derive(Clone, PartialEq, Debug)]
pub enum Knob {
    /// A value in a scenario file.
    File(TemplateTarget),
    /// A key of the link, and a parameter in its value.
    Link(String, Option<String>),
    /// A flag of `compare`, and a parameter in its value.
    Question(&'static str, Option<String>),
}

impl Knob {
    /// Whether the value must be a whole number.
    pub fn is_whole(&self) -> bool {
        match self {
            Knob::File(target) => target.is_whole(),
            Knob::Link(..) => false,
            Knob::Question(key, _) => *key == "flows",
        }
    }
    fn is_inside(&self) -> bool {
        match self {
            Knob::File(target) => target.parameter.is_some(),
            Knob::Link(_, p) | Knob::Question(_, p) => p.is_some(),
        }
    }
}

impl Base {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// As [`Template::load`]; a variable with the name of a measure, which is a column's name.
    pub fn load(path: &Path) -> Result<Base, SpecError> {
        let template = Template::load(path)?;
        if let Some(name) = template.variables().find(|name| measure::find(name).is_some()) {
            return Err(taken(name).at(&path.display().to_string()));
        }
        Ok(Base::File(Box::new(template)))
    }

    /// The same, with these changes and hints in each run.
    #[must_use]
    pub fn with_timeline(self, timeline: Timeline) -> Base {
        match self {
            Base::File(template) => Base::File(Box::new(template.with_timeline(timeline))),
            Base::Link(question) => Base::Link(Box::new(Question { timeline, ..*question })),
        }
    }

    /// The value that a name refers to.
    ///
    /// # Errors
    /// An unknown name, with a suggestion and the known names.
    pub fn knob(&self, name: &str) -> Result<Knob, SpecError> {
        if let Base::File(template) = self {
            return template.target(name).map(Knob::File);
        }
        if let Some((key, parameter)) = split_key(name, QUESTION) {
            return Ok(Knob::Question(key, parameter));
        }
        let bare = name.strip_prefix(REVERSE).unwrap_or(name);
        if let Some((key, parameter)) = split_key(bare, &keys::NAMES) {
            let prefix = &name[..name.len() - bare.len()];
            return Ok(Knob::Link(format!("{prefix}{key}"), parameter));
        }
        if keys::find_link_key(name).is_some() {
            return Ok(Knob::Link(name.to_string(), None));
        }
        let own = LINK_KEYS.iter().map(|k| k.name);
        let all: Vec<&str> =
            keys::NAMES.into_iter().chain(own).chain(QUESTION.iter().copied()).collect();
        let near = nearest(name, &all).map(|n| format!("did you mean '{n}'? ")).unwrap_or_default();
        Err(SpecError::new(format!(
            "unknown parameter '{name}'; {near}What can vary: {}, reverse-rate, reverse-delay, …, \
             protocol.PARAMETER, {}",
            all.join(", "),
            keys::NAMES
                .into_iter()
                .filter(|k| keys::has_parameters(k))
                .map(|k| format!("{k}.PARAMETER"))
                .collect::<Vec<_>>()
                .join(", ")
        )))
    }

    /// Protocols that take turns, if there are several: they are varied, too.
    pub fn turns(&self) -> Result<Option<(&'static str, Vec<String>)>, SpecError> {
        let (name, list) = match self {
            Base::File(template) => {
                let scenario = template.scenario(&[])?;
                ("protocols", scenario.protocols.iter().map(ToString::to_string).collect())
            }
            Base::Link(question) => {
                let list =
                    families::protocols(&question.protocols).map_err(|e| e.at("--protocols"))?;
                let list: Vec<String> = list.iter().map(ToString::to_string).collect();
                ("protocol", list)
            }
        };
        Ok(Some((name, list)).filter(|t: &(_, Vec<String>)| t.1.len() > 1))
    }

    /// The scenario with these values.
    ///
    /// # Errors
    /// An invalid value.
    pub fn scenario(&self, values: &[(&Knob, &str)]) -> Result<Scenario, SpecError> {
        match self {
            Base::File(template) => {
                let targets = values.iter().filter_map(|(knob, value)| match knob {
                    Knob::File(target) => Some((target, *value)),
                    _ => None,
                });
                template.scenario(&targets.collect::<Vec<_>>())
            }
            Base::Link(question) => of_link(question, values),
        }
    }
}

fn of_link(question: &Question, values: &[(&Knob, &str)]) -> Result<Scenario, SpecError> {
    let folder = Path::new("");
    let mut q = question.clone();
    let mut keys: Vec<(String, String)> = Vec::new();
    // A parameter is set in the final value of its key.
    for inside in [false, true] {
        for (knob, value) in values.iter().filter(|v| v.0.is_inside() == inside) {
            match knob {
                Knob::Link(key, None) => keys.push((key.clone(), (*value).to_string())),
                Knob::Link(key, Some(name)) => {
                    let there = match keys.iter().find(|k| k.0 == *key) {
                        Some(pair) => pair.1.clone(),
                        None => own(&q.link, key, folder)?,
                    };
                    let text = with_parameter(&there, name, value).map_err(|e| e.at(key))?;
                    keys.retain(|k| k.0 != *key);
                    keys.push((key.clone(), text));
                }
                Knob::Question(key, name) => ask(&mut q, key, name.as_deref(), value)?,
                Knob::File(_) => {}
            }
        }
    }
    let keys: Vec<(&str, &str)> = keys.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let (mut scenario, _) = q.varied(&keys, folder)?;
    scenario.name = q.link;
    Ok(scenario)
}

/// The link's own value of a key.
fn own(link: &str, key: &str, folder: &Path) -> Result<String, SpecError> {
    let link = BottleneckLink::parse(link, folder)?;
    let (way, bare) = match key.strip_prefix(REVERSE) {
        Some(bare) => (&link.reverse, bare),
        None => (&link.forward, key),
    };
    let found = way.pairs().into_iter().find(|p| p.0 == bare).map(|p| p.1);
    found
        .ok_or_else(|| SpecError::new(format!("the link has no {bare} whose parameter could vary")))
}

fn ask(
    q: &mut Question,
    key: &'static str,
    parameter: Option<&str>,
    value: &str,
) -> Result<(), SpecError> {
    let text = value.to_string();
    match (key, parameter) {
        ("protocol", None) if families::family(value).is_some() => {
            let e =
                format!("protocol: '{value}' is several; --protocols {value} takes them in turn");
            return Err(SpecError::new(e));
        }
        ("protocol", None) => q.protocols = text,
        ("protocol", Some(name)) => q.protocols = with_parameter(&q.protocols, name, value)?,
        ("source", None) => q.source = source(value).map_err(|e| e.at(key))?,
        ("source", Some(name)) => {
            let text = with_parameter(q.source.text(), name, value)?;
            q.source = source(&text).map_err(|e| e.at(key))?;
        }
        ("flows", _) => {
            let n = value.parse().ok().filter(|n| (1..=1_000_000).contains(n));
            q.flows = n.ok_or_else(|| {
                SpecError::new(format!("flows: '{value}' is not a number from 1 to 1000000"))
            })?;
        }
        ("against", _) => q.against = Some(text),
        ("reverse", _) => q.reverse = Some(text),
        ("duration", _) => q.duration = values::delay(value).map_err(|e| e.at(key))?,
        ("warmup", _) => q.warmup = values::delay(value).map_err(|e| e.at(key))?,
        ("stagger", _) => q.stagger = Some(values::delay(value).map_err(|e| e.at(key))?),
        ("packet", _) => q.packet = scenario_file::packet(value).map_err(|e| e.at(key))?,
        ("preset", _) => q.preset = scenario_file::preset(value).map_err(|e| e.at(key))?,
        _ => return Err(SpecError::unknown("parameter", key, QUESTION)),
    }
    Ok(())
}
