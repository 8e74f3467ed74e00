//! Networks and scripts as TOML.

use crate::ids::{LinkId, NodeId};
use crate::nat::NatKind;
use crate::network::Network;
use crate::script::{Script, When};
use narrows_base::{SpecError, units};
use narrows_scenario::values;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// A network and a script as TOML:
///
/// ```
/// let text = r#"
///     [[host]]
///     name = "phone"
///     address = "10.0.0.2"
///     [[nat]]
///     name = "home"
///     address = "203.0.113.1"
///     kind = "port-restricted"
///     [[host]]
///     name = "server"
///     address = ["192.0.2.1"]
///     [[link]]
///     from = "phone"
///     to = "home"
///     link = "100Mbit/s,2ms"
///     [[link]]
///     name = "access"
///     from = "home"
///     to = "server"
///     link = "20Mbit/s,25ms,loss=1%"
///     [[event]]
///     at = "5s"
///     link = "access"
///     change = "rate=5Mbit/s"
///     [[event]]
///     at = "6s"
///     rebind = "home"
///     [[event]]
///     at = "9s"
///     node = "phone"
///     command = "close"
///     [[expect]]
///     node = "server"
///     variable = "bytes"
///     by = "10s"
///     at-least = 1000000
/// "#;
/// let description = narrows_testnet::Description::parse(text, 1)?;
/// assert!(description.node("phone").is_ok());
/// # Ok::<(), narrows_testnet::SpecError>(())
/// ```
///
/// Times of expectations are `at`, `by`, or `from` and `to`; values are `at-least`, `at-most` or both. A link's first end
/// is inside, seen from an address translator. Routers are `[[router]]` with a name.
#[derive(Debug)]
pub struct Description {
    /// The network with its events.
    pub network: Network,
    /// Commands and expectations.
    pub script: Script,
    nodes: BTreeMap<String, NodeId>,
    links: BTreeMap<String, LinkId>,
}

impl Description {
    /// Reads a network and a script. A text of one line without `=` signs at its beginning is a link between two hosts,
    /// `a` (10.0.0.1) and `b` (10.0.0.2).
    ///
    /// # Errors
    /// One line with the place, the error and the right form.
    pub fn parse(text: &str, seed: u64) -> Result<Description, SpecError> {
        let mut description = Description {
            network: Network::new(seed),
            script: Script::new(),
            nodes: BTreeMap::new(),
            links: BTreeMap::new(),
        };
        if !text.contains('[') && !text.trim().contains('\n') {
            description.add_pair(text)?;
            return Ok(description);
        }
        let table: toml::Table = text.parse().map_err(|e: toml::de::Error| {
            let line = e.span().map_or(1, |s| text[..s.start].lines().count().max(1));
            SpecError::new(format!("line {line}: {}", e.message().replace('\n', " ")))
        })?;
        const PARTS: [&str; 6] = ["host", "router", "nat", "link", "event", "expect"];
        if let Some(other) = table.keys().find(|key| !PARTS.contains(&key.as_str())) {
            return Err(SpecError::unknown("part", other, &PARTS));
        }
        for part in PARTS {
            let Some(entries) = table.get(part) else { continue };
            let entries = entries.as_array();
            let entries = entries
                .ok_or_else(|| SpecError::new(format!("{part} is a list: write [[{part}]]")))?;
            for (number, entry) in entries.iter().enumerate() {
                let entry = Entry { part, table: entry.as_table() };
                let added = description.add(&entry);
                added.map_err(|e| e.at(&format!("[[{part}]] {}", number + 1)))?;
            }
        }
        Ok(description)
    }

    fn add_pair(&mut self, link: &str) -> Result<(), SpecError> {
        for (name, last) in [("a", 1), ("b", 2)] {
            let host = self.network.add_host(&[IpAddr::from([10, 0, 0, last])])?;
            self.nodes.insert(name.into(), host);
        }
        let link = self.network.add_link(self.node("a")?, self.node("b")?, link)?;
        self.links.insert("link".into(), link);
        Ok(())
    }

    /// The host, router or translator of this name.
    ///
    /// # Errors
    /// An unknown name, with a suggestion.
    pub fn node(&self, name: &str) -> Result<NodeId, SpecError> {
        let names: Vec<&str> = self.nodes.keys().map(String::as_str).collect();
        self.nodes.get(name).copied().ok_or_else(|| SpecError::unknown("node", name, &names))
    }

    /// The link of this name; one without a name is `from-to`.
    ///
    /// # Errors
    /// An unknown name, with a suggestion.
    pub fn link(&self, name: &str) -> Result<LinkId, SpecError> {
        let names: Vec<&str> = self.links.keys().map(String::as_str).collect();
        self.links.get(name).copied().ok_or_else(|| SpecError::unknown("link", name, &names))
    }

    fn add(&mut self, entry: &Entry<'_>) -> Result<(), SpecError> {
        match entry.part {
            "host" => {
                entry.only(&["name", "address"])?;
                let host = self.network.add_host(&entry.addresses()?)?;
                self.name(entry, host)
            }
            "router" => {
                entry.only(&["name"])?;
                let router = self.network.add_router();
                self.name(entry, router)
            }
            "nat" => self.add_nat(entry),
            "link" => self.add_link(entry),
            "event" => self.add_event(entry),
            _ => self.add_expectation(entry),
        }
    }

    fn name(&mut self, entry: &Entry<'_>, node: NodeId) -> Result<(), SpecError> {
        let name = entry.text("name")?;
        match self.nodes.insert(name.into(), node) {
            Some(_) => Err(SpecError::new(format!("two nodes have the name '{name}'"))),
            None => Ok(()),
        }
    }

    fn add_nat(&mut self, entry: &Entry<'_>) -> Result<(), SpecError> {
        entry.only(&["name", "address", "kind", "timeout"])?;
        let kinds = NatKind::NAMES.map(|(name, _)| name);
        let kind = entry.text("kind")?;
        let found = NatKind::NAMES.iter().find(|(name, _)| *name == kind);
        let (_, kind) = found.ok_or_else(|| SpecError::unknown("kind", kind, &kinds))?;
        let nat = match entry.addresses()?.as_slice() {
            [address] => self.network.add_nat(*address, *kind)?,
            _ => return Err(SpecError::new("a translator has one address")),
        };
        if let Some(timeout) = entry.time("timeout")? {
            self.network.set_nat_timeout(nat, timeout);
        }
        self.name(entry, nat)
    }

    fn add_link(&mut self, entry: &Entry<'_>) -> Result<(), SpecError> {
        entry.only(&["name", "from", "to", "link", "address"])?;
        let from = entry.text("from")?;
        let to = entry.text("to")?;
        let a = self.node(from)?;
        let b = self.node(to)?;
        let text = entry.text("link")?;
        let link = match entry.get("address") {
            None => self.network.add_link(a, b, text)?,
            Some(_) => match entry.addresses()?.as_slice() {
                [address] => self.network.add_interface(a, *address, b, text)?,
                _ => return Err(SpecError::new("an interface has one address")),
            },
        };
        let name = match entry.get("name") {
            Some(_) => entry.text("name")?.to_string(),
            None => format!("{from}-{to}"),
        };
        match self.links.insert(name.clone(), link) {
            Some(_) => Err(SpecError::new(format!("two links have the name '{name}'"))),
            None => Ok(()),
        }
    }

    fn add_event(&mut self, entry: &Entry<'_>) -> Result<(), SpecError> {
        entry.only(&["at", "link", "change", "rebind", "node", "command"])?;
        let at =
            entry.time("at")?.ok_or_else(|| SpecError::new("at is missing, such as \"5s\""))?;
        if entry.get("rebind").is_some() {
            let nat = self.node(entry.text("rebind")?)?;
            self.network.rebind_at(at, nat);
        } else if entry.get("link").is_some() {
            let link = self.link(entry.text("link")?)?;
            self.network.change_at(at, link, entry.text("change")?)?;
        } else {
            let node = self.node(entry.text("node")?)?;
            let script = std::mem::take(&mut self.script);
            self.script = script.command(at, node, entry.text("command")?);
        }
        Ok(())
    }

    fn add_expectation(&mut self, entry: &Entry<'_>) -> Result<(), SpecError> {
        entry.only(&["node", "variable", "at", "by", "from", "to", "at-least", "at-most"])?;
        let from = entry.time("from")?;
        let to = entry.time("to")?;
        let when = match (entry.time("at")?, entry.time("by")?, from.zip(to)) {
            (Some(at), None, None) => When::At(at),
            (None, Some(by), None) => When::By(by),
            (None, None, Some((from, to))) if from <= to => When::During(from, to),
            _ => return Err(SpecError::new("give at, or by, or from and to, one of these")),
        };
        let low = entry.number("at-least")?;
        let high = entry.number("at-most")?;
        if low.is_none() && high.is_none() {
            return Err(SpecError::new("at-least or at-most is missing"));
        }
        let range = low.unwrap_or(f64::NEG_INFINITY)..=high.unwrap_or(f64::INFINITY);
        let node = self.node(entry.text("node")?)?;
        let variable = entry.text("variable")?;
        let script = std::mem::take(&mut self.script);
        self.script = script.expect(node, variable, when, range);
        Ok(())
    }
}

/// An entry of a list in a description.
struct Entry<'a> {
    part: &'a str,
    table: Option<&'a toml::Table>,
}

impl Entry<'_> {
    fn only(&self, keys: &[&str]) -> Result<(), SpecError> {
        let table = self.table.ok_or_else(|| SpecError::new("not a table"))?;
        match table.keys().find(|key| !keys.contains(&key.as_str())) {
            Some(key) => Err(SpecError::unknown("key", key, keys)),
            None => Ok(()),
        }
    }

    fn get(&self, key: &str) -> Option<&toml::Value> {
        self.table?.get(key)
    }

    fn text(&self, key: &str) -> Result<&str, SpecError> {
        let value = self.get(key).ok_or_else(|| SpecError::new(format!("{key} is missing")))?;
        value.as_str().ok_or_else(|| SpecError::new(format!("{key} is a text in quotes")))
    }

    fn time(&self, key: &str) -> Result<Option<Duration>, SpecError> {
        if self.get(key).is_none() {
            return Ok(None);
        }
        let delay = values::delay(self.text(key)?).map_err(|e| e.at(key))?;
        Ok(Some(Duration::from_nanos(delay.as_nanos())))
    }

    /// A number, also as a text with a unit of rates or times: `10Mbit/s`, `40ms` (in bit/s and seconds).
    fn number(&self, key: &str) -> Result<Option<f64>, SpecError> {
        let wrong = || SpecError::new(format!("{key} is a number, a rate or a time"));
        match self.get(key) {
            None => Ok(None),
            Some(toml::Value::Integer(n)) => Ok(Some(*n as f64)),
            Some(toml::Value::Float(x)) if !x.is_nan() => Ok(Some(*x)),
            Some(toml::Value::String(text)) => {
                let rate = units::rate(text).map(|rate| rate.as_bps() as f64);
                let number = rate.or_else(|_| units::duration(text).map(|d| d.as_secs_f64()));
                number.map(Some).map_err(|_| wrong())
            }
            Some(_) => Err(wrong()),
        }
    }

    fn addresses(&self) -> Result<Vec<IpAddr>, SpecError> {
        let value = self.get("address").ok_or_else(|| SpecError::new("address is missing"))?;
        let texts: Vec<&toml::Value> = match value {
            toml::Value::Array(several) => several.iter().collect(),
            one => vec![one],
        };
        let read = |value: &toml::Value| {
            let text = value.as_str().unwrap_or_default();
            let wrong = || SpecError::new(format!("address '{text}': expected as \"192.0.2.1\""));
            text.parse::<IpAddr>().map_err(|_| wrong())
        };
        texts.into_iter().map(read).collect()
    }
}
