//! The keys of a link, one entry each: name, syntax, meaning, and how it is written. The one-line specification,
//! scenario files, sweeps, `--help` and `docs/scenarios.md` all use this table.

use crate::access_link::AccessLink;
use crate::jitter;
use crate::link::BottleneckLink;
use crate::link_direction::LinkDirection;
use crate::values;
use narrows_base::{Duration, SpecError, units};
use narrows_link::LossSpec;
use std::fmt::Write as _;
use std::path::Path;

/// A key of one direction of a link: `loss=1%`, in a file `loss = "1%"`. Each also exists for the
/// other direction: `reverse-loss=1%`, `reverse = { loss = "1%" }`.
#[derive(Debug)]
pub struct DirectionKey {
    /// As in specifications and files.
    pub name: &'static str,
    /// Syntax of its value.
    pub form: &'static str,
    /// Meaning and default, in one line.
    pub help: &'static str,
    /// Whether its value has parameters, which a sweep may vary alone: `aqm.target`.
    pub has_parameters: bool,
    /// Sets it; relative file names are resolved against the folder.
    pub set: fn(&mut LinkDirection, &str, &Path) -> Result<(), SpecError>,
    /// The value in a form that [`set`](DirectionKey::set) accepts; `None` for the default.
    pub text: fn(&LinkDirection) -> Option<String>,
}

/// All keys of one direction, in the order of writing. A specification begins with the first two, without their names.
pub const KEYS: [DirectionKey; 13] = [
    DirectionKey {
        name: "rate",
        form: "1.5Mbit/s|unlimited",
        help: "bits that leave in a second, headers included; unlimited is 1 Pbit/s",
        has_parameters: false,
        set: |way, text, _| values::rate(text).map(|rate| way.rate = rate),
        text: |way| Some(values::rate_text(way.rate)),
    },
    DirectionKey {
        name: "delay",
        form: "80ms",
        help: "propagation delay, one way",
        has_parameters: false,
        set: |way, text, _| values::delay(text).map(|delay| way.delay = delay),
        text: |way| Some(values::time_text(way.delay)),
    },
    DirectionKey {
        name: "queue",
        form: "30p|45kB|1bdp|max(1bdp,5p)|max(5p,45kB)|packets(1bdp,5p)|unlimited",
        help: "packets or bytes that wait, the one in service not counted; max is whichever holds more, packets counts any size; 1bdp is \
               rate x base RTT in bytes, or in full packets rounded up. By default max(1bdp,10p); in a scenario file unlimited",
        has_parameters: false,
        set: |way, text, _| values::queue_size(text).map(|size| way.queue_size = size),
        text: |way| Some(values::queue_text(way.queue_size)),
    },
    DirectionKey {
        name: "aqm",
        form: "NAME(...)",
        help: "queue management, see narrows list queues; by default droptail",
        has_parameters: true,
        set: |way, text, _| values::aqm(text).map(|aqm| way.aqm = aqm),
        text: |way| way.aqm.as_ref().map(ToString::to_string),
    },
    DirectionKey {
        name: "loss",
        form: "1%|0.01|ge(g=0.13%,h=12.5%)|list(2000,2001)|...",
        help: "packets lost after they were sent, see narrows list losses; + joins several. By default none",
        has_parameters: true,
        set: |way, text, _| LossSpec::parse_all(text).map(|loss| way.loss = loss),
        text: |way| (!way.loss.is_empty()).then(|| values::loss_text(&way.loss)),
    },
    DirectionKey {
        name: "policer",
        form: "10Mbit/s/15kB",
        help: "a token bucket behind the transmitter, of that rate and size, without a queue: drops what is sent \
               faster. By default none",
        has_parameters: false,
        set: |way, text, _| {
            values::policer(text).map(|policer| way.impairments.policer = Some(policer))
        },
        text: |way| way.impairments.policer.as_ref().map(values::policer_text),
    },
    DirectionKey {
        name: "trace",
        form: "FILE|cellular(mean=9Mbit/s,...)",
        help: "a Mahimahi trace (narrows trace convert makes one of other records), or a model of one, see narrows list traces; replaces the rate of this direction",
        has_parameters: true,
        set: |way, text, folder| values::trace(text, folder).map(|trace| way.trace = Some(trace)),
        text: |way| way.trace.as_ref().map(|(file, _)| file.display().to_string()),
    },
    DirectionKey {
        name: "trace-start",
        form: "TIME|random",
        help: "where a run enters its trace, which repeats; by default random, in a scenario file 0s",
        has_parameters: false,
        set: |way, text, _| values::trace_start(text).map(|start| way.trace_start = Some(start)),
        text: |way| way.trace_start.map(values::trace_start_text),
    },
    DirectionKey {
        name: "jitter",
        form: "TIME|normal(TIME,correlation=25%,order=mixed)|...",
        help: "each packet is up to so much later, drawn evenly; or so much earlier or later with uniform, normal, \
               pareto or paretonormal; wifi(MEAN) delays as a busy Wi-Fi channel. The order is kept unless it is mixed",
        has_parameters: false,
        set: |way, text, _| {
            let i = &mut way.impairments;
            jitter::read(text).map(|(size, form)| (i.jitter, i.jitter_form) = (size, form))
        },
        text: |way| {
            let i = &way.impairments;
            (i.jitter > Duration::ZERO).then(|| jitter::text(i.jitter, &i.jitter_form))
        },
    },
    DirectionKey {
        name: "reorder",
        form: "1%/5ms|early(25%,correlation=50%,gap=5)",
        help: "how often a packet is held back, and by how much: later ones overtake it; or the share that is sent \
               without delay and overtakes others",
        has_parameters: false,
        set: |way, text, _| jitter::set_reorder(&mut way.impairments, text),
        text: |way| jitter::reorder_text(&way.impairments),
    },
    DirectionKey {
        name: "duplicate",
        form: "1%",
        help: "how often a packet arrives twice",
        has_parameters: false,
        set: |way, text, _| units::share("duplicate", text).map(|p| way.impairments.duplicate = p),
        text: |way| share_text(way.impairments.duplicate),
    },
    DirectionKey {
        name: "corrupt",
        form: "1%",
        help: "how often a packet arrives damaged",
        has_parameters: false,
        set: |way, text, _| units::share("corrupt", text).map(|p| way.impairments.corrupt = p),
        text: |way| share_text(way.impairments.corrupt),
    },
    DirectionKey {
        name: "mtu",
        form: "1300B|unlimited",
        help: "packets with more bytes, headers included, are dropped before the queue; narrows link reports them to \
               their sender by ICMP, and gives its interfaces an MTU above 1500B. The other direction has the same; by default unlimited",
        has_parameters: false,
        set: |way, text, _| values::mtu(text).map(|mtu| way.impairments.mtu = Some(mtu)),
        text: |way| way.impairments.mtu.map(values::mtu_text),
    },
];

fn share_text(p: f64) -> Option<String> {
    (p > 0.0).then(|| units::share_text(p))
}

/// A key of the whole specification, for both directions. A scenario file has it at a group of flows.
#[derive(Debug)]
pub struct LinkKey {
    /// As in specifications and files.
    pub name: &'static str,
    /// Syntax of its value.
    pub form: &'static str,
    /// Meaning and default, in one line.
    pub help: &'static str,
    /// Sets it.
    pub set: fn(&mut BottleneckLink, &str) -> Result<(), SpecError>,
    /// The value in a form that [`set`](LinkKey::set) accepts; `None` for the default.
    pub text: fn(&BottleneckLink) -> Option<String>,
}

/// All keys of the whole specification.
pub const LINK_KEYS: [LinkKey; 3] = [
    LinkKey {
        name: "access",
        form: "RATE/DELAY",
        help: "each flow's own lossless link before the bottleneck; a range such as 0.5ms..2ms is drawn \
               per flow and side. By default none",
        set: |link, text| AccessLink::parse(text).map(|side| link.access = Some(side)),
        text: |link| link.access.as_ref().map(ToString::to_string),
    },
    LinkKey {
        name: "egress",
        form: "RATE/DELAY",
        help: "the same after the bottleneck",
        set: |link, text| AccessLink::parse(text).map(|side| link.egress = Some(side)),
        text: |link| link.egress.as_ref().map(ToString::to_string),
    },
    LinkKey {
        name: "host-delay",
        form: "TIME",
        help: "packets leave their host up to so much later, drawn for each, in order; by default one \
               packet's time at the rate, at most 10ms",
        set: |link, text| values::delay(text).map(|delay| link.host_delay = Some(delay)),
        text: |link| link.host_delay.map(values::time_text),
    },
];

/// The keys that every link has.
pub const REQUIRED: [&str; 2] = [KEYS[0].name, KEYS[1].name];

/// Prefix of a key of the other direction.
pub const REVERSE: &str = "reverse-";

/// Names of the keys of one direction.
pub const NAMES: [&str; KEYS.len()] = {
    let mut names = [""; KEYS.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = KEYS[i].name;
        i += 1;
    }
    names
};

/// The key of one direction with that name.
pub fn find(name: &str) -> Option<&'static DirectionKey> {
    const TABLE: &[DirectionKey] = &KEYS;
    TABLE.iter().find(|k| k.name == name)
}

/// The key of the whole specification with that name.
pub fn find_link_key(name: &str) -> Option<&'static LinkKey> {
    const TABLE: &[LinkKey] = &LINK_KEYS;
    TABLE.iter().find(|k| k.name == name)
}

impl LinkDirection {
    /// Sets a key of [`KEYS`]; relative file names are resolved against `folder`.
    ///
    /// # Errors
    /// An unknown key, or an invalid value.
    pub fn set(&mut self, key: &str, value: &str, folder: &Path) -> Result<(), SpecError> {
        match find(key) {
            Some(key) => (key.set)(self, value, folder),
            None => Err(SpecError::unknown("key", key, &NAMES)),
        }
    }

    /// Keys and values from which [`LinkDirection::set`] makes the same direction.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        KEYS.iter().filter_map(|k| Some((k.name, (k.text)(self)?))).collect()
    }
}

/// Whether a value of this key has parameters.
pub fn has_parameters(name: &str) -> bool {
    find(name).is_some_and(|k| k.has_parameters)
}

/// Every key that may follow the rate and the delay of a specification.
pub fn every_name() -> Vec<String> {
    let own = LINK_KEYS.iter().map(|k| k.name.to_string());
    let there = KEYS.iter().map(|k| k.name.to_string());
    own.chain(there).chain(KEYS.iter().map(|k| format!("{REVERSE}{}", k.name))).collect()
}

/// Names, forms and explanations of all keys that follow the rate and the delay.
fn rows() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let there: &'static [DirectionKey] = &KEYS;
    let whole: &'static [LinkKey] = &LINK_KEYS;
    let there = there.iter().skip(2).map(|k| (k.name, k.form, k.help));
    there.chain(whole.iter().map(|k| (k.name, k.form, k.help)))
}

/// The keys as `--help` shows them, in lines of at most 80 characters.
pub fn help() -> String {
    const INDENT: usize = 14;
    let mut out = String::new();
    let reverse = (
        "reverse-KEY",
        "...",
        "KEY of the other direction: same rate, delay, MTU, queue \
                    and management, and nothing else, unless given",
    );
    for (name, form, help) in rows().chain([reverse]) {
        let _ = write!(out, "  {name}={form}");
        let mut column = usize::MAX;
        for word in help.split_whitespace() {
            if column.saturating_add(1 + word.len()) > 80 {
                let _ = write!(out, "\n{:INDENT$}{word}", "");
                column = INDENT + word.len();
            } else {
                let _ = write!(out, " {word}");
                column += 1 + word.len();
            }
        }
        out.push('\n');
    }
    out
}

/// The keys as a table for the documentation.
pub fn table() -> String {
    let mut out = String::from("| key | value | what it says |\n|---|---|---|\n");
    let plain = |text: &str| text.replace('|', "\\|");
    for (i, key) in KEYS.iter().enumerate() {
        let always = if i < 2 { "; a specification begins with it, without its name" } else { "" };
        let _ = writeln!(out, "| `{}` | `{}` | {}{always} |", key.name, plain(key.form), key.help);
    }
    for key in &LINK_KEYS {
        let _ = writeln!(
            out,
            "| `{}` | `{}` | {}; in a file a key of a group of flows |",
            key.name,
            plain(key.form),
            key.help
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// `docs/scenarios.md` contains this table. To update it, put the text that this test prints between the two marks.
    #[test]
    fn the_documentation_has_every_key() {
        let docs = include_str!("../../../docs/scenarios.md");
        let (_, rest) = docs.split_once("<!-- keys of a link -->\n").expect("the first mark");
        let (page, _) = rest.split_once("<!-- end of keys -->").expect("the second mark");
        assert!(page == table(), "docs/scenarios.md should have\n{}", table());
    }

    /// The text of each key sets the same value again, and no two keys have the same effect, in both directions and in
    /// a file.
    #[test]
    fn every_key_reads_back_its_own_text() {
        let folder = std::env::temp_dir();
        let file = folder.join(format!("narrows-keys-{}.trace", std::process::id()));
        std::fs::write(&file, "1\n2\n3\n").unwrap();
        let samples = |name: &str| match name {
            "rate" => "7Mbit/s".to_string(),
            "delay" => "13ms".into(),
            "queue" => "max(2bdp,5p)".into(),
            "aqm" => "red(min=3,max=9)".into(),
            "loss" => "ge(g=1%,h=20%)".into(),
            "policer" => "10Mbit/s/15000B".into(),
            "trace" => file.display().to_string(),
            "trace-start" => "2s".into(),
            "jitter" => "normal(3ms,correlation=0.25,order=mixed)".into(),
            "reorder" => "0.02/5ms".into(),
            "duplicate" | "corrupt" => "12.5%".into(),
            "mtu" => "1300B".into(),
            other => panic!("a sample for '{other}' is missing"),
        };
        let parse = |text: &str| BottleneckLink::parse(text, Path::new("")).unwrap();
        let plain = parse("1Mbit/s,1ms");
        let mut seen = BTreeSet::new();
        for key in &KEYS {
            let value = samples(key.name);
            let there = parse(&format!("1Mbit/s,1ms,{}={value}", key.name));
            assert_eq!((key.text)(&there.forward), Some(value.clone()), "{}", key.name);
            assert_ne!((key.text)(&plain.forward), Some(value.clone()), "{}", key.name);
            assert!(seen.insert(format!("{:?}", there.forward)), "{}: as another key", key.name);
            let back = parse(&format!("1Mbit/s,1ms,{REVERSE}{}={value}", key.name));
            assert_eq!((key.text)(&back.reverse), Some(value.clone()), "{}", key.name);
            assert_eq!(parse(&there.to_string()).to_string(), there.to_string());
            assert_eq!(parse(&back.to_string()).to_string(), back.to_string());
            let rate = if key.name == "rate" { "" } else { "rate = '1Mbit/s'\n" };
            let delay = if key.name == "delay" { "" } else { "delay = '1ms'\n" };
            let toml = format!(
                "[[link]]\nfrom = 'a'\nto = 'b'\n{rate}{delay}{0} = '{value}'\n\
                 reverse = {{ {0} = '{value}' }}\n\
                 [[flows]]\nprotocol = 'reno'\nfrom = 'a'\nto = 'b'\n",
                key.name
            );
            let scenario = crate::scenario_file::parse(&toml, Path::new("")).unwrap();
            for way in [&scenario.links[0].forward, &scenario.links[0].reverse] {
                assert_eq!((key.text)(way), Some(value.clone()), "{}", key.name);
            }
        }
        for key in &LINK_KEYS {
            let value = if key.name == "host-delay" { "2ms" } else { "10Mbit/s/3ms" };
            let link = parse(&format!("1Mbit/s,1ms,{}={value}", key.name));
            assert_eq!((key.text)(&link).as_deref(), Some(value), "{}", key.name);
            assert_eq!((key.text)(&plain), None);
            assert_eq!(parse(&link.to_string()).to_string(), link.to_string());
        }
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn the_help_fits_eighty_columns() {
        for line in help().lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(KEYS.iter().skip(2).all(|k| help().contains(&format!("  {}=", k.name))));
    }
}
