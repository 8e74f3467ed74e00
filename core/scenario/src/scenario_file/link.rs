//! A `[[link]]` of a scenario file: its two nodes, and the keys of [`keys::KEYS`].

use super::Text;
use crate::keys::{self, DirectionKey, KEYS, NAMES};
use serde::de::{DeserializeSeed, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// Values of keys of one direction, as the file has them.
#[derive(Clone, Default)]
pub(super) struct Keys([Option<Text>; KEYS.len()]);

impl Keys {
    /// The keys that are given, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (&'static DirectionKey, &Text)> {
        const TABLE: &[DirectionKey] = &KEYS;
        TABLE.iter().zip(&self.0).filter_map(|(key, value)| Some((key, value.as_ref()?)))
    }
    /// The slot of a key's value; `None` for an unknown key.
    pub fn slot(&mut self, name: &str) -> Option<&mut Option<Text>> {
        self.0.get_mut(NAMES.iter().position(|n| *n == name)?)
    }
}

#[derive(Clone)]
pub(super) struct LinkEntry {
    pub name: Option<String>,
    pub from: String,
    pub to: String,
    pub keys: Keys,
    pub reverse: Option<Keys>,
}

/// Entries of a link other than the keys.
const OWN: [&str; 4] = ["name", "from", "to", "reverse"];

/// All entries of a link, for the message about an unknown one.
const EXPECTED: [&str; OWN.len() + NAMES.len()] = {
    let mut all = [""; OWN.len() + NAMES.len()];
    let mut i = 0;
    while i < all.len() {
        all[i] = if i < OWN.len() { OWN[i] } else { NAMES[i - OWN.len()] };
        i += 1;
    }
    all
};

/// A key that is one of these. It is checked while the key is read, so that an error has the key's line.
struct OneOf(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for OneOf {
    type Value = &'static str;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<&'static str, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for OneOf {
    type Value = &'static str;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }
    fn visit_str<E: Error>(self, name: &str) -> Result<&'static str, E> {
        self.0.iter().find(|k| **k == name).copied().ok_or_else(|| unknown(name, self.0))
    }
}

fn unknown<E: Error>(name: &str, known: &'static [&'static str]) -> E {
    E::unknown_field(name, known)
}

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Keys, D::Error> {
        struct KeysVisitor;
        impl<'de> Visitor<'de> for KeysVisitor {
            type Value = Keys;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("keys of a link")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Keys, M::Error> {
                let mut keys = Keys::default();
                while let Some(name) = map.next_key_seed(OneOf(&NAMES))? {
                    let slot = keys.slot(name).ok_or_else(|| unknown(name, &NAMES))?;
                    *slot = Some(map.next_value()?);
                }
                Ok(keys)
            }
        }
        deserializer.deserialize_map(KeysVisitor)
    }
}

impl<'de> Deserialize<'de> for LinkEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LinkEntry, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = LinkEntry;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a link")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<LinkEntry, M::Error> {
                let mut name = None;
                let mut from = None;
                let mut to = None;
                let mut keys = Keys::default();
                let mut reverse = None;
                while let Some(key) = map.next_key_seed(OneOf(&EXPECTED))? {
                    match key {
                        "name" => name = Some(map.next_value()?),
                        "from" => from = Some(map.next_value()?),
                        "to" => to = Some(map.next_value()?),
                        "reverse" => reverse = Some(map.next_value()?),
                        other => {
                            let slot = keys.slot(other).ok_or_else(|| unknown(other, &EXPECTED))?;
                            *slot = Some(map.next_value()?);
                        }
                    }
                }
                // The first keys of a specification are required in a file.
                for required in keys::REQUIRED {
                    if keys.slot(required).is_none_or(|slot| slot.is_none()) {
                        return Err(M::Error::missing_field(required));
                    }
                }
                let from = from.ok_or_else(|| M::Error::missing_field("from"))?;
                let to = to.ok_or_else(|| M::Error::missing_field("to"))?;
                Ok(LinkEntry { name, from, to, keys, reverse })
            }
        }
        deserializer.deserialize_map(Visit)
    }
}
