//! Writes a scenario as TOML, for `compare --save`.

use crate::change_keys::CHANGE_KEYS;
use crate::scenario::{DuplexLink, Flows, GroupProtocol, OwnLink, Scenario};
use crate::timeline::HINT_KEYS;
use crate::values::time_text;
use narrows_base::Duration;
use std::fmt::Write as _;

/// The scenario as a file; when read back, it gives the same runs.
pub fn text(s: &Scenario) -> String {
    let mut out =
        String::from("# A scenario of Narrows; `narrows run` executes it (docs/scenarios.md).\n");
    put(&mut out, "name", &s.name);
    let _ = writeln!(out, "seed = {}", s.seed);
    let _ = writeln!(out, "seeds = {}", s.seeds);
    put(&mut out, "duration", &time_text(s.duration));
    put(&mut out, "warmup", &time_text(s.warmup));
    put(&mut out, "preset", s.preset.name());
    put(&mut out, "packet", &format!("{}B", s.packet));
    if let Some(name) = &s.bottleneck {
        put(&mut out, "bottleneck", name);
    }
    if !s.protocols.is_empty() {
        let list: Vec<String> = s.protocols.iter().map(|p| quoted(&p.to_string())).collect();
        let _ = writeln!(
            out,
            "# Flows whose protocol is \"each\" speak these in turn, each in runs of its own."
        );
        let _ = writeln!(out, "protocols = [{}]", list.join(", "));
    }
    for wire in &s.links {
        link(&mut out, wire);
    }
    for group in &s.flows {
        flows(&mut out, group);
    }
    for c in &s.changes {
        out.push_str("\n[[change]]\n");
        put(&mut out, "at", &time_text(c.at));
        put(&mut out, "link", &c.link);
        for key in CHANGE_KEYS {
            if let Some(value) = (key.text)(&c.change) {
                put(&mut out, key.name, &value);
            }
        }
    }
    for r in &s.reconfigurations {
        out.push_str("\n[[reconfigure]]\n");
        put(&mut out, "at", &time_text(r.at));
        put(&mut out, "flows", &r.flows);
        for key in HINT_KEYS {
            if let Some(value) = (key.text)(&r.hints) {
                put(&mut out, key.name, &value);
            }
        }
    }
    if s.probe.interval.is_some() || !s.probe.links.is_empty() {
        out.push_str("\n[probe]\n");
        if let Some(interval) = s.probe.interval {
            put(&mut out, "interval", &time_text(interval));
        }
        let list: Vec<String> = s.probe.links.iter().map(|l| quoted(l)).collect();
        let _ = writeln!(out, "links = [{}]", list.join(", "));
        let _ = writeln!(out, "flows = {}", s.probe.flows);
    }
    out
}

fn link(out: &mut String, wire: &DuplexLink) {
    out.push_str("\n[[link]]\n");
    put(out, "name", &wire.name);
    put(out, "from", &wire.from);
    put(out, "to", &wire.to);
    for (key, value) in wire.forward.pairs() {
        put(out, key, &value);
    }
    let same = wire.forward.mirrored().pairs();
    let other: Vec<String> = (wire.reverse.pairs().into_iter())
        .filter(|pair| !same.contains(pair))
        .map(|(key, value)| format!("{key} = {}", quoted(&value)))
        .collect();
    if !other.is_empty() {
        let _ = writeln!(out, "reverse = {{ {} }}", other.join(", "));
    }
}

fn flows(out: &mut String, f: &Flows) {
    out.push_str("\n[[flows]]\n");
    put(out, "name", &f.name);
    let protocol = match &f.speaks {
        GroupProtocol::Each => "each".to_string(),
        GroupProtocol::One(spec) => spec.to_string(),
    };
    put(out, "protocol", &protocol);
    let _ = writeln!(out, "count = {}", f.count);
    put(out, "from", &f.from);
    put(out, "to", &f.to);
    if !f.paths.is_empty() {
        let list = |names: &Vec<String>| {
            let names: Vec<String> = names.iter().map(|n| quoted(n)).collect();
            format!("[{}]", names.join(", "))
        };
        let paths: Vec<String> = f.paths.iter().map(list).collect();
        let _ = writeln!(out, "paths = [{}]", paths.join(", "));
    }
    for (key, time) in [("start", f.start), ("stagger", f.stagger)] {
        if time > Duration::ZERO {
            put(out, key, &time_text(time));
        }
    }
    if let Some(stop) = f.stop {
        put(out, "stop", &time_text(stop));
    }
    if f.source.text() != "bulk" {
        put(out, "source", f.source.text());
    }
    if f.host_delay > Duration::ZERO {
        put(out, "host-delay", &time_text(f.host_delay));
    }
    for (key, own) in [("access", &f.access), ("egress", &f.egress)] {
        if let Some(own) = own {
            put(out, key, &own.side.to_string());
        }
    }
    let mirrored = |own: &Option<OwnLink>, usual| own.is_some_and(|o| o.stream != usual);
    if mirrored(&f.access, "access") || mirrored(&f.egress, "egress") {
        out.push_str("mirrored = true\n");
    }
}

fn put(out: &mut String, key: &str, value: &str) {
    let _ = writeln!(out, "{key} = {}", quoted(value));
}

/// A basic TOML string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out + "\""
}
