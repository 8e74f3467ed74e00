//! `narrows list`: all parts of the lists.

use crate::measure::{Better, MEASURES, Measure};
use narrows_base::descriptor::ParamKind;
use narrows_base::spec::nearest;
use narrows_base::{Descriptor, Param, SpecError, Status, Variable};
use narrows_congestion::CONTROLLERS;
use narrows_link::{LOSSES, QUEUES, cellular};
use narrows_recovery::loss_classifier::LOSS_CLASSIFIERS;
use narrows_scenario::links::LINKS;
use narrows_scenario::user_links;
use narrows_sim::SOURCES;
use narrows_sim::protocol::{
    Family, PRINTED, ProtocolEntry, RECOVERIES, STREAM_PARAMS, STREAMS, endpoint_params,
};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Names of the lists, in the order of output.
pub const KINDS: &[&str] = &[
    "protocols",
    "controllers",
    "recoveries",
    "classifiers",
    "queues",
    "losses",
    "traces",
    "sources",
    "links",
    "measures",
];

/// One entry of a list of any kind.
pub struct CatalogueEntry {
    /// One of [`KINDS`].
    pub kind: &'static str,
    /// As in specifications.
    pub name: Cow<'static, str>,
    /// A description of one line.
    pub summary: &'static str,
    /// Its descriptor; for a protocol its controller's.
    pub descriptor: Descriptor,
    /// Facts that are not in the descriptor.
    pub facts: Vec<(&'static str, Cow<'static, str>)>,
    /// Parameters in addition to its descriptor's.
    pub also: &'static [Param],
    /// A controller's variables over time: columns of `series.parquet`.
    pub variables: &'static [Variable],
}

impl CatalogueEntry {
    /// Whether it is a paper's part as printed. Lists in one line each leave these out.
    fn is_printed(&self) -> bool {
        self.name.ends_with(PRINTED)
    }
    /// The paper of which a protocol is.
    fn paper(&self) -> Option<&str> {
        self.facts.iter().find(|(fact, _)| *fact == "paper").map(|(_, paper)| &**paper)
    }
}

/// All entries of a kind, except the user's own links.
pub fn items(kind: &str) -> Vec<CatalogueEntry> {
    let plain = |kind, descriptor: &Descriptor| CatalogueEntry {
        kind,
        name: descriptor.name.into(),
        summary: descriptor.summary,
        descriptor: *descriptor,
        facts: Vec::new(),
        also: &[],
        variables: &[],
    };
    match kind {
        "protocols" => {
            let any = CatalogueEntry {
                facts: vec![("family", "rrtp".into()), ("controller", "NAME".into())],
                also: STREAM_PARAMS,
                ..plain("protocols", &ANY)
            };
            narrows_sim::protocol::named().filter_map(protocol).chain([any]).collect()
        }
        "controllers" => CONTROLLERS
            .iter()
            .map(|e| CatalogueEntry {
                variables: e.variables,
                ..plain("controllers", e.descriptor)
            })
            .collect(),
        "recoveries" => RECOVERIES.iter().map(|r| plain("recoveries", r.descriptor)).collect(),
        "classifiers" => {
            LOSS_CLASSIFIERS.iter().map(|c| plain("classifiers", c.descriptor)).collect()
        }
        "queues" => QUEUES.iter().map(|e| plain("queues", e.descriptor)).collect(),
        "losses" => LOSSES.iter().map(|e| plain("losses", e.descriptor)).collect(),
        "traces" => vec![plain("traces", &cellular::DESCRIPTOR)],
        "sources" => SOURCES.iter().map(|e| plain("sources", e.descriptor)).collect(),
        "links" => LINKS
            .iter()
            .map(|e| CatalogueEntry {
                facts: vec![("specification", e.spec.into())],
                ..plain("links", &e.descriptor)
            })
            .collect(),
        "measures" => MEASURES.iter().map(measure).collect(),
        _ => Vec::new(),
    }
}

/// Descriptor of all protocols `rrtp+NAME`.
const ANY: Descriptor = Descriptor {
    name: "rrtp+NAME",
    summary: "a reliable stream over our endpoint under any controller NAME, as in rrtp+bbr",
    source: "RFC 9002",
    senses: "the controller's inputs",
    sets: "what the controller sets",
    params: &[],
    status: Status::NotValidated,
};

fn protocol(p: &ProtocolEntry) -> Option<CatalogueEntry> {
    let family = match p.family {
        Family::Tcp => "tcp",
        Family::Media => "media",
        Family::Rrtp => "rrtp",
    };
    let mut facts = vec![
        ("family", family.into()),
        ("controller", p.controller.into()),
        ("recovery", p.recovery.into()),
    ];
    if !p.paper.is_empty() {
        facts.push(("paper", p.paper.into()));
    }
    let name = p.name.into();
    let summary = p.summary;
    let descriptor = p.descriptor().ok()?;
    let also = endpoint_params(p);
    Some(CatalogueEntry {
        kind: "protocols",
        name,
        summary,
        descriptor,
        facts,
        also,
        variables: &[],
    })
}

/// Descriptor of the user's own links, saved by `narrows probe --save`.
const OWN: Descriptor = Descriptor {
    name: "NAME",
    summary: "a link of your own",
    source: "-",
    senses: "-",
    sets: "-",
    params: &[],
    status: Status::NotValidated,
};

/// All entries of a kind, including the user's own links.
///
/// # Errors
/// The user's file of links cannot be read.
fn listed(kind: &str) -> Result<Vec<CatalogueEntry>, SpecError> {
    let mut all = items(kind);
    if kind == "links" {
        all.extend(user_links::all()?.into_iter().map(|(name, specification)| CatalogueEntry {
            kind: "links",
            name: name.into(),
            summary: OWN.summary,
            descriptor: OWN,
            facts: vec![("specification", specification.into())],
            also: &[],
            variables: &[],
        }));
    }
    Ok(all)
}

/// Entries of a list with this name, including those that the list shows in one common line.
fn named(kind: &str, name: &str) -> Result<Vec<CatalogueEntry>, SpecError> {
    let one = STREAMS.iter().filter(|p| kind == "protocols" && p.name == name);
    let all = listed(kind)?.into_iter().filter(|i| i.name == name);
    Ok(all.chain(one.filter_map(protocol)).collect())
}

/// Entries of all kinds.
fn of_kinds(
    of: impl Fn(&str) -> Result<Vec<CatalogueEntry>, SpecError>,
) -> Result<Vec<CatalogueEntry>, SpecError> {
    let all: Result<Vec<_>, _> = KINDS.iter().map(|kind| of(kind)).collect();
    Ok(all?.into_iter().flatten().collect())
}

fn measure(m: &'static Measure) -> CatalogueEntry {
    let descriptor = Descriptor {
        name: m.name,
        summary: m.doc,
        source: "-",
        senses: "-",
        sets: "-",
        params: &[],
        status: Status::Validated("computed as docs/scenarios.md defines it, by test"),
    };
    let better = match m.better {
        Better::More => "more",
        Better::Less => "less",
        Better::Neither => "-",
    };
    let of = if m.per_flow.is_some() { "a group and each flow" } else { "a group" };
    let facts = [("title", m.title), ("unit", unit(m)), ("better", better), ("of", of)];
    let facts = facts.map(|(fact, value)| (fact, value.into())).to_vec();
    let name = m.name.into();
    let summary = m.doc;
    CatalogueEntry { kind: "measures", name, summary, descriptor, facts, also: &[], variables: &[] }
}

/// A count has no unit.
fn unit(m: &Measure) -> &'static str {
    if m.unit.is_empty() { "-" } else { m.unit }
}

/// The entries for the words after `list`: whole lists, or single entries in detail.
///
/// # Errors
/// An unknown list or name, with a suggestion.
pub fn chosen(
    kind: Option<&str>,
    name: Option<&str>,
) -> Result<(Vec<CatalogueEntry>, bool), SpecError> {
    let Some(kind) = kind else {
        return Ok((of_kinds(listed)?, false));
    };
    if let Some(known) = KINDS.iter().find(|k| **k == kind || k.strip_suffix('s') == Some(kind)) {
        let all = listed(known)?;
        let Some(name) = name else { return Ok((all, false)) };
        // As `protocol::find` does.
        let name = if (*known, name) == ("protocols", "sack") { "reno" } else { name };
        let found = named(known, name)?;
        if found.is_empty() {
            let mut names: Vec<&str> = all.iter().map(|i| &*i.name).collect();
            // Suggestions include names that the list shows in one common line.
            let many = STREAMS.iter().filter(|_| *known == "protocols").map(|p| p.name);
            let all: Vec<&str> = names.iter().copied().chain(many).collect();
            if nearest(name, &all).is_some() {
                names = all;
            }
            let what = known.strip_suffix("ies").map(|k| format!("{k}y"));
            let what = what.unwrap_or_else(|| match *known {
                "losses" => "loss process".into(),
                other => other.trim_end_matches('s').to_string(),
            });
            return Err(SpecError::unknown(&what, name, &names));
        }
        return Ok((found, true));
    }
    // `narrows list vegas`: a name alone, in all lists.
    let found = of_kinds(|k| named(k, kind))?;
    if name.is_none() && !found.is_empty() {
        return Ok((found, true));
    }
    Err(SpecError::unknown("list", kind, KINDS))
}

/// The protocols of the five papers: Narrows' forms, and the printed ones.
pub fn of_papers() -> Vec<CatalogueEntry> {
    items("protocols").into_iter().filter(|i| i.paper().is_some()).collect()
}

/// Text for a terminal. A list without details leaves out the papers' printed forms.
pub fn list_text(items: Vec<CatalogueEntry>) -> String {
    let (printed, items): (Vec<_>, Vec<_>) =
        items.into_iter().partition(CatalogueEntry::is_printed);
    let mut out = text(&items, false);
    if printed.iter().any(|i| i.kind == "protocols") {
        out.push_str("\nThe papers' protocols as printed: narrows list --papers\n");
    }
    out
}

/// Text for a terminal, of all these entries.
pub fn text(items: &[CatalogueEntry], detailed: bool) -> String {
    let mut out = String::new();
    let width = items.iter().map(|i| i.name.chars().count()).max().unwrap_or(0);
    let mixed = items.iter().any(|i| i.kind != items[0].kind);
    let mut kind = "";
    for item in items {
        if detailed {
            detail(&mut out, item);
            continue;
        }
        if mixed && item.kind != kind {
            let gap = if kind.is_empty() { "" } else { "\n" };
            let _ = writeln!(out, "{gap}{}:", item.kind);
            kind = item.kind;
        }
        let mark =
            if item.descriptor.status == Status::NotValidated { " [not validated]" } else { "" };
        let paper = item.paper().filter(|_| !item.is_printed());
        let paper = paper.map(|p| format!(" ({p})")).unwrap_or_default();
        let indent = if mixed { "  " } else { "" };
        let _ = writeln!(out, "{indent}{:<width$}  {}{paper}{mark}", item.name, item.summary);
    }
    out
}

fn detail(out: &mut String, item: &CatalogueEntry) {
    let descriptor = &item.descriptor;
    let gap = if out.is_empty() { "" } else { "\n" };
    let kind = item.kind.strip_suffix("ies").map_or_else(
        || {
            item.kind
                .strip_suffix("es")
                .filter(|k| k.ends_with("ss"))
                .unwrap_or(item.kind.trim_end_matches('s'))
                .to_string()
        },
        |k| format!("{k}y"),
    );
    let _ = writeln!(out, "{gap}{} ({kind}): {}", item.name, item.summary);
    let mut row = |name: &str, value: &str| {
        if value != "-" {
            let _ = writeln!(out, "  {name:<14} {value}");
        }
    };
    for (name, value) in &item.facts {
        row(name, value);
    }
    row("source", descriptor.source);
    row("senses", descriptor.senses);
    row("sets", descriptor.sets);
    row("status", &descriptor.status.to_string());
    params(out, "parameters", descriptor.params);
    params(out, "parameters of the endpoint", item.also);
    if !item.variables.is_empty() {
        let _ = writeln!(out, "  shows over time:");
    }
    let width = item.variables.iter().map(|v| v.name.len()).max().unwrap_or(0);
    for v in item.variables {
        let unit = if v.unit.is_empty() { String::new() } else { format!(" [{}]", v.unit) };
        let _ = writeln!(out, "    {:<width$}  {}{unit}", v.name, v.explained());
    }
}

fn params(out: &mut String, title: &str, list: &[Param]) {
    if list.is_empty() {
        return;
    }
    let _ = writeln!(out, "  {title}:");
    let width = list.iter().map(|p| p.name.len()).max().unwrap_or(0);
    for p in list {
        let values = match p.kind {
            ParamKind::Number { unit, min, max, default } => {
                format!("{} in {}..{}", unit.show(default), unit.show(min), unit.show(max))
            }
            ParamKind::Choice(words) => format!("{}, of {}", words[0], words.join("|")),
            ParamKind::Integers => "whole numbers".into(),
        };
        let _ = writeln!(out, "    {:<width$}  {}", p.name, p.help);
        let _ = writeln!(out, "    {:<width$}  default {values} [{}]", "", p.origin);
    }
}

/// The entries as JSON.
pub fn json(items: &[CatalogueEntry]) -> Value {
    items
        .iter()
        .map(|i| {
            let mut v = json!({
                "kind": i.kind,
                "name": i.name,
                "summary": i.summary,
                "source": i.descriptor.source,
                "senses": i.descriptor.senses,
                "sets": i.descriptor.sets,
                "status": i.descriptor.status.to_string(),
                "validated": matches!(i.descriptor.status, Status::Validated(_)),
                "params": i.descriptor.params.iter().chain(i.also).map(param).collect::<Vec<_>>(),
            });
            for (name, value) in &i.facts {
                v[*name] = json!(value);
            }
            if !i.variables.is_empty() {
                v["variables"] = i.variables.iter().map(variable).collect();
            }
            v
        })
        .collect()
}

fn variable(v: &Variable) -> Value {
    json!({ "name": v.name, "unit": v.unit, "meaning": v.meaning, "states": v.states })
}

fn param(p: &Param) -> Value {
    let mut v = json!({ "name": p.name, "help": p.help, "origin": p.origin });
    match p.kind {
        ParamKind::Number { unit, min, max, default } => {
            v["unit"] = json!(unit.name());
            v["min"] = json!(min);
            v["max"] = json!(max);
            v["default"] = json!(default);
        }
        ParamKind::Choice(words) => {
            v["unit"] = json!("");
            v["choices"] = json!(words);
            v["default"] = json!(words[0]);
        }
        ParamKind::Integers => {
            v["unit"] = json!("");
            v["list"] = json!(true);
            v["default"] = json!([]);
        }
    }
    v
}
