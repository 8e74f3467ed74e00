//! A scenario file with some values replaced, for sweeps.
//!
//! Values are replaced before the file is interpreted, so that derived values (the other direction's rate, a queue of
//! one BDP, a group's count) follow.

use super::Text;
use super::count::CountExpression;
use super::read::{self, ELSEWHERE, ScenarioFile};
use crate::keys::{self, NAMES};
use crate::scenario::Scenario;
use crate::text_file;
use crate::timeline::Timeline;
use narrows_base::spec::nearest;
use narrows_base::{Spec, SpecError};
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Keys at the top of a file.
const TOP: &[&str] = &["duration", "warmup", "preset", "packet", "bottleneck", "protocols"];
/// Names that variables cannot have: columns of a sweep's tables.
const RESERVED: &[&str] = &["point", "seed", "seeds", "group", "group_protocol", "group_flows"];
/// Keys of a group of flows.
const FLOWS: &[&str] =
    &["protocol", "count", "start", "stagger", "stop", "source", "host-delay", "access", "egress"];
/// Keys, except those of links, with a value that has parameters: `flows.main.protocol.alpha`.
const WITH_PARAMETERS: &[&str] = &["protocol", "source"];

/// A parsed scenario file that is not interpreted yet.
#[derive(Clone)]
pub struct Template {
    text: String,
    folder: PathBuf,
    file: ScenarioFile,
    name: String,
    timeline: Timeline,
}

/// A value of a scenario file that a sweep can replace.
#[derive(Clone, PartialEq, Debug)]
pub struct TemplateTarget {
    place: TemplatePath,
    /// The key of the value.
    pub key: &'static str,
    /// A parameter inside the key's value.
    pub parameter: Option<String>,
}

#[derive(Clone, PartialEq, Debug)]
enum TemplatePath {
    Top,
    Variable(String),
    Link(usize),
    Reverse(usize),
    Flows(usize),
}

impl Template {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// As [`super::load`].
    pub fn load(path: &Path) -> Result<Template, SpecError> {
        let shown = path.display().to_string();
        let text = text_file::read(path, read::MAX_FILE, "scenario")?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut template = Template::parse(&text, folder).map_err(|e| e.at(&shown))?;
        if template.name.is_empty() {
            template.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        }
        Ok(template)
    }

    /// Reads a scenario file's text; traces are found from `folder`.
    ///
    /// # Errors
    /// As [`super::parse`].
    pub fn parse(text: &str, folder: &Path) -> Result<Template, SpecError> {
        let mut file = read::file(text)?;
        for name in file.variables.keys() {
            let odd = |c: char| !(c.is_alphanumeric() || c == '-' || c == '_');
            let known = TOP.contains(&name.as_str()) || RESERVED.contains(&name.as_str());
            if known || name.is_empty() || name.contains(odd) {
                return Err(taken(name));
            }
        }
        let scenario = read::scenario(text, folder, &file)?;
        // Random draws depend on names, which must not depend on a varied protocol.
        for (group, flows) in file.flows.iter_mut().zip(&scenario.flows) {
            group.get_mut().name = Some(flows.name.clone());
        }
        for (link, wire) in file.link.iter_mut().zip(&scenario.links) {
            link.get_mut().name = Some(wire.name.clone());
        }
        let text = text.to_string();
        let folder = folder.to_path_buf();
        Ok(Template { text, folder, file, name: scenario.name, timeline: Timeline::default() })
    }

    /// The same, with these changes and hints in addition to the file's.
    #[must_use]
    pub fn with_timeline(self, timeline: Timeline) -> Template {
        Template { timeline, ..self }
    }

    /// The scenario with these values in place of the file's own.
    ///
    /// # Errors
    /// A value that is invalid for its key.
    pub fn scenario(&self, values: &[(&TemplateTarget, &str)]) -> Result<Scenario, SpecError> {
        let mut file = self.file.clone();
        // A parameter is set in the final value of its key.
        for inside in [false, true] {
            for (target, value) in values.iter().filter(|v| v.0.parameter.is_some() == inside) {
                target.set(&mut file, value).map_err(|e| e.at(target.key))?;
            }
        }
        let mut scenario = read::scenario(&self.text, &self.folder, &file)?;
        scenario.name.clone_from(&self.name);
        self.timeline.add_to(&mut scenario)?;
        Ok(scenario)
    }

    /// The value that `link.NAME.KEY`, `flows.NAME.KEY`, a key at the top or a variable refers to.
    ///
    /// # Errors
    /// An unknown name, with a suggestion and the known names.
    pub fn target(&self, name: &str) -> Result<TemplateTarget, SpecError> {
        self.find(name).ok_or_else(|| self.unknown(name))
    }

    fn find(&self, name: &str) -> Option<TemplateTarget> {
        let target = |place, key, parameter| Some(TemplateTarget { place, key, parameter });
        if self.file.variables.contains_key(name) {
            return target(TemplatePath::Variable(name.into()), "count", None);
        }
        if let Some(key) = TOP.iter().find(|k| **k == name) {
            return target(TemplatePath::Top, key, None);
        }
        if let Some(rest) = name.strip_prefix("flows.") {
            let names = self.flows();
            let (at, rest) = begins(rest, &names)?;
            let (key, parameter) = split_key(rest, FLOWS)?;
            return target(TemplatePath::Flows(at), key, parameter);
        }
        let names = self.links();
        let (at, rest) = begins(name.strip_prefix("link.")?, &names)?;
        match rest.strip_prefix("reverse.") {
            Some(rest) => {
                let (key, parameter) = split_key(rest, &NAMES)?;
                target(TemplatePath::Reverse(at), key, parameter)
            }
            None => {
                let (key, parameter) = split_key(rest, &NAMES)?;
                target(TemplatePath::Link(at), key, parameter)
            }
        }
    }

    /// Names of its variables.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.file.variables.keys().map(String::as_str)
    }

    fn links(&self) -> Vec<&str> {
        self.file.link.iter().filter_map(|l| l.get_ref().name.as_deref()).collect()
    }
    fn flows(&self) -> Vec<&str> {
        self.file.flows.iter().filter_map(|f| f.get_ref().name.as_deref()).collect()
    }

    fn unknown(&self, name: &str) -> SpecError {
        let variables: Vec<&str> = self.file.variables.keys().map(String::as_str).collect();
        let mut all: Vec<String> = TOP.iter().chain(&variables).map(ToString::to_string).collect();
        for l in self.links() {
            all.extend(NAMES.iter().map(|k| format!("link.{l}.{k}")));
            all.extend(NAMES.iter().map(|k| format!("link.{l}.reverse.{k}")));
        }
        for f in self.flows() {
            all.extend(FLOWS.iter().map(|k| format!("flows.{f}.{k}")));
        }
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let near = nearest(name, &all).map(|n| format!("did you mean '{n}'? ")).unwrap_or_default();
        let tops: Vec<&str> = variables.iter().chain(TOP).copied().collect();
        SpecError::new(format!(
            "unknown parameter '{name}'; {near}What can vary: {}; link.{{{}}}.{{{}}}; \
             flows.{{{}}}.{{{}}}",
            tops.join(", "),
            self.links().join(","),
            NAMES.join(","),
            self.flows().join(","),
            FLOWS.join(",")
        ))
    }
}

/// The name that the text begins with, before a dot, and the rest. Names may contain dots.
fn begins<'a>(text: &'a str, names: &[&str]) -> Option<(usize, &'a str)> {
    let after = |name: &str| text.strip_prefix(name)?.strip_prefix('.');
    let found = names.iter().enumerate().filter_map(|(i, n)| Some((i, n.len(), after(n)?)));
    found.max_by_key(|f| f.1).map(|f| (f.0, f.2))
}

/// Splits `key` or `key.parameter`, for the names of a sweep's parameters. The latter form requires a key with
/// parameters.
pub fn split_key(text: &str, known: &[&'static str]) -> Option<(&'static str, Option<String>)> {
    let (key, parameter) = match text.split_once('.') {
        Some((key, parameter)) => (key, Some(parameter.to_string())),
        None => (text, None),
    };
    let key = known.iter().find(|k| **k == key)?;
    let has_parameters = keys::has_parameters(key) || WITH_PARAMETERS.contains(key);
    let may = parameter.as_ref().is_none_or(|p| !p.is_empty() && has_parameters);
    may.then_some((*key, parameter))
}

/// `name(a=1)` with another parameter, or another value of one.
///
/// # Errors
/// A text that is no specification.
pub fn with_parameter(text: &str, name: &str, value: &str) -> Result<String, SpecError> {
    let mut spec = Spec::parse(text)?;
    match spec.args.iter_mut().find(|a| a.0.as_deref() == Some(name)) {
        Some(arg) => arg.1 = value.to_string(),
        None => spec.args.push((Some(name.to_string()), value.to_string())),
    }
    Ok(spec.to_string())
}

/// The error for a variable's name that is already in use.
pub fn taken(name: &str) -> SpecError {
    SpecError::new(format!("a variable cannot be called '{name}'; choose another name"))
}

fn given(value: &str) -> Text {
    Spanned::new(ELSEWHERE, value.to_string())
}

impl TemplateTarget {
    /// Whether the value must be a whole number.
    pub fn is_whole(&self) -> bool {
        self.key == "count"
    }

    fn set(&self, file: &mut ScenarioFile, value: &str) -> Result<(), SpecError> {
        let whole = || {
            let not = || SpecError::new(format!("'{value}' is not a whole number"));
            value.trim().parse::<i64>().map_err(|_| not())
        };
        match &self.place {
            TemplatePath::Variable(name) => {
                file.variables.insert(name.clone(), Spanned::new(ELSEWHERE, whole()?));
                return Ok(());
            }
            TemplatePath::Flows(at) if self.key == "count" => {
                let count = Some(Spanned::new(ELSEWHERE, CountExpression::Number(whole()?)));
                if let Some(group) = file.flows.get_mut(*at) {
                    group.get_mut().count = count;
                }
                return Ok(());
            }
            TemplatePath::Top if self.key == "protocols" => {
                file.protocols = Some(vec![given(value)]);
                return Ok(());
            }
            _ => {}
        }
        let there = self.slot(file).map(|slot| slot.get().cloned());
        let value = match (&self.parameter, there.flatten()) {
            (None, _) => value.to_string(),
            (Some(name), Some(there)) => with_parameter(there.get_ref(), name, value)?,
            (Some(name), None) => {
                let e = format!("there is none whose parameter '{name}' could vary");
                return Err(SpecError::new(e));
            }
        };
        if let Some(slot) = self.slot(file) {
            slot.put(given(&value));
        }
        Ok(())
    }

    /// The position of the value.
    fn slot<'a>(&self, file: &'a mut ScenarioFile) -> Option<ValueSlot<'a>> {
        let slot = match self.place {
            TemplatePath::Top => match self.key {
                "duration" => &mut file.duration,
                "warmup" => &mut file.warmup,
                "preset" => &mut file.preset,
                "packet" => &mut file.packet,
                _ => &mut file.bottleneck,
            },
            TemplatePath::Variable(_) => return None,
            TemplatePath::Flows(at) => {
                let g = file.flows.get_mut(at)?.get_mut();
                match self.key {
                    "start" => &mut g.start,
                    "stagger" => &mut g.stagger,
                    "stop" => &mut g.stop,
                    "source" => &mut g.source,
                    "host-delay" => &mut g.host_delay,
                    "access" => &mut g.access,
                    "egress" => &mut g.egress,
                    _ => return Some(ValueSlot::Must(&mut g.protocol)),
                }
            }
            TemplatePath::Link(at) => {
                let link = file.link.get_mut(at)?.get_mut();
                link.keys.slot(self.key)?
            }
            TemplatePath::Reverse(at) => {
                let link = file.link.get_mut(at)?.get_mut();
                link.reverse.get_or_insert_default().slot(self.key)?
            }
        };
        Some(ValueSlot::May(slot))
    }
}

/// A position of a value.
enum ValueSlot<'a> {
    /// Required in a file.
    Must(&'a mut Text),
    /// Optional.
    May(&'a mut Option<Text>),
}

impl ValueSlot<'_> {
    fn get(&self) -> Option<&Text> {
        match self {
            ValueSlot::Must(text) => Some(text),
            ValueSlot::May(text) => text.as_ref(),
        }
    }
    fn put(self, value: Text) {
        match self {
            ValueSlot::Must(text) => *text = value,
            ValueSlot::May(text) => *text = Some(value),
        }
    }
}
