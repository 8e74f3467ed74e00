//! Changes and new hints at given times during a run: `--change` and `--reconfigure` on a command line, and the keys of
//! `[[reconfigure]]` in a scenario file.

use crate::change_keys;
use crate::scenario::{Reconfiguration, Scenario, Scheduled};
use crate::values;
use narrows_base::{Duration, SpecError, spec, units};
use narrows_congestion::PathHints;
use std::fmt;

/// A key of `[[reconfigure]]`: a hint that an application gives about its path.
#[derive(Debug)]
pub struct HintKey {
    /// As in files and on command lines.
    pub name: &'static str,
    /// Sets it.
    pub set: fn(&mut PathHints, &str) -> Result<(), SpecError>,
    /// The value in a form that [`set`](HintKey::set) accepts; `None` without this hint.
    pub text: fn(&PathHints) -> Option<String>,
}

/// All keys of `[[reconfigure]]` except `at` and `flows`.
pub const HINT_KEYS: &[HintKey] = &[
    HintKey {
        name: "rate",
        set: |hints, text| values::rate(text).map(|rate| hints.rate = Some(rate)),
        text: |hints| hints.rate.map(values::rate_text),
    },
    HintKey {
        name: "rtt",
        set: |hints, text| values::delay(text).map(|rtt| hints.rtt = Some(rtt)),
        text: |hints| hints.rtt.map(values::time_text),
    },
    HintKey {
        name: "loss",
        set: |hints, text| units::share("loss", text).map(|loss| hints.loss = Some(loss)),
        text: |hints| hints.loss.map(units::share_text),
    },
];

/// Changes and hints of a command line, with their times.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// In the form that [`Scenario::change`] reads.
    pub changes: Vec<String>,
    /// In the form that [`Scenario::reconfigure`] reads.
    pub reconfigurations: Vec<String>,
}

/// The text to append to a link's description, each part after a semicolon.
impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changes = &self.changes;
        let hints = &self.reconfigurations;
        for (what, texts) in [("changed at", changes), ("new hints at", hints)] {
            for (i, text) in texts.iter().enumerate() {
                write!(f, "{}{text}", if i == 0 { format!("; {what} ") } else { " and ".into() })?;
            }
        }
        Ok(())
    }
}

impl Timeline {
    /// Adds all of it to a scenario.
    ///
    /// # Errors
    /// One line that names the option and gives the expected form.
    pub fn add_to(&self, scenario: &mut Scenario) -> Result<(), SpecError> {
        for text in &self.changes {
            scenario.change(text).map_err(|e| e.at("--change"))?;
        }
        for text in &self.reconfigurations {
            scenario.reconfigure(text).map_err(|e| e.at("--reconfigure"))?;
        }
        Ok(())
    }
}

impl Scenario {
    /// Adds `TIME:[GROUP:]KEY=VALUE[,KEY=VALUE]*`; without a group, the hints are for all groups.
    ///
    /// # Errors
    /// An invalid text; the message gives the expected form.
    pub fn reconfigure(&mut self, text: &str) -> Result<(), SpecError> {
        const FORM: &str =
            "TIME:[GROUP:]KEY=VALUE[,KEY=VALUE]*, such as 30s:rate=384kbit/s,rtt=300ms";
        let TimelineEntry { at, name, pairs } = TimelineEntry::read(text, FORM)?;
        let hints = hints(pairs)?;
        let groups: Vec<String> = match name {
            Some(name) => vec![name.to_string()],
            None => self.flows.iter().map(|f| f.name.clone()).collect(),
        };
        for flows in groups {
            self.reconfigurations.push(Reconfiguration { at, flows, hints, line: 0 });
        }
        Ok(())
    }

    /// Adds `TIME:[LINK:]KEY=VALUE[,KEY=VALUE]*`. With a link's name it changes one direction, as `[[change]]` does.
    /// Without, it changes the only link as a whole: a rate or a delay that is equal in both directions stays equal.
    ///
    /// # Errors
    /// An invalid text; the message gives the expected form.
    pub fn change(&mut self, text: &str) -> Result<(), SpecError> {
        const FORM: &str =
            "TIME:[LINK:]KEY=VALUE[,KEY=VALUE]*, such as 30s:rate=384kbit/s,delay=150ms";
        let TimelineEntry { at, name, pairs } = TimelineEntry::read(text, FORM)?;
        for (key_name, value) in pairs {
            let key = change_keys::find(key_name)?;
            let change = (key.read)(value).map_err(|e| e.at(key_name))?;
            let links = match (name, self.links.as_slice()) {
                (Some(name), _) => vec![name.to_string()],
                (None, [link]) if (key.both_ways)(&link.forward, &link.reverse) => {
                    vec![link.name.clone(), format!("{}.back", link.name)]
                }
                (None, [link]) => vec![link.name.clone()],
                (None, links) => {
                    let names: Vec<&str> = links.iter().map(|l| l.name.as_str()).collect();
                    let e = format!("'{text}' does not say which link: {}", names.join(", "));
                    return Err(SpecError::new(e));
                }
            };
            for link in links {
                let change = change.clone();
                self.changes.push(Scheduled { at, link, change, line: 0 });
            }
        }
        Ok(())
    }
}

/// Hints that an application with one connection gives about its path, and their time: `TIME:KEY=VALUE[,KEY=VALUE]*`.
///
/// # Errors
/// An invalid text; the message gives the expected form.
pub fn path_hints_at(text: &str) -> Result<(Duration, PathHints), SpecError> {
    const FORM: &str = "TIME:KEY=VALUE[,KEY=VALUE]*, such as 30s:rate=384kbit/s,rtt=300ms";
    match TimelineEntry::read(text, FORM)? {
        TimelineEntry { at, name: None, pairs } => Ok((at, hints(pairs)?)),
        TimelineEntry { .. } => Err(SpecError::new(format!("'{text}': expected {FORM}"))),
    }
}

fn hints(pairs: Vec<(&str, &str)>) -> Result<PathHints, SpecError> {
    let mut hints = PathHints::default();
    for (name, value) in pairs {
        let names: Vec<&str> = HINT_KEYS.iter().map(|k| k.name).collect();
        let key = HINT_KEYS.iter().find(|k| k.name == name);
        let key = key.ok_or_else(|| SpecError::unknown("key", name, &names))?;
        (key.set)(&mut hints, value).map_err(|e| e.at(name))?;
    }
    Ok(hints)
}

/// An entry of a command line before its keys are read.
struct TimelineEntry<'a> {
    at: Duration,
    name: Option<&'a str>,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> TimelineEntry<'a> {
    fn read(text: &'a str, form: &str) -> Result<TimelineEntry<'a>, SpecError> {
        let wrong = || SpecError::new(format!("'{text}': expected {form}"));
        let (at, rest) = text.split_once(':').ok_or_else(wrong)?;
        // Text before the first key's name is the name of a group or link.
        let (keys, value) = rest.split_once('=').ok_or_else(wrong)?;
        let name = keys.rsplit_once(':').map(|(name, _)| name.trim());
        let start = rest.len() - value.len() - 1 - keys.rsplit(':').next().map_or(0, str::len);
        let pairs = spec::split(&rest[start..])?
            .into_iter()
            .map(|pair| pair.split_once('=').map(|(k, v)| (k.trim(), v.trim())).ok_or_else(wrong))
            .collect::<Result<Vec<_>, _>>()?;
        let mut names: Vec<&str> = pairs.iter().map(|p| p.0).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|w| w[0] == w[1]) {
            return Err(SpecError::new(format!("'{text}' has {} twice", twice[0])));
        }
        Ok(TimelineEntry { at: values::delay(at.trim())?, name, pairs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plan, scenario_file};
    use std::path::Path;

    const TWO_GROUPS: &str = r#"
        duration = "60s"
        [[link]]
        name = "path"
        from = "a"
        to = "b"
        rate = "1Mbit/s"
        delay = "10ms"
        reverse = { rate = "100kbit/s" }
        [[flows]]
        name = "files"
        protocol = "rrtp"
        from = "a"
        to = "b"
        [[flows]]
        name = "calls"
        protocol = "tfrc"
        from = "a"
        to = "b"
    "#;

    fn scenario() -> Scenario {
        scenario_file::parse(TWO_GROUPS, Path::new("")).unwrap()
    }

    /// An entry of a command line has the same effect as the same keys in a file.
    #[test]
    fn an_entry_is_as_the_same_keys_in_a_file() {
        let mut built = scenario();
        built.reconfigure("30s:files:rate=384kbit/s,rtt=0.3s,loss=1%").unwrap();
        built.change("20s:path.back:delay=3ms").unwrap();
        built.change("20s:path:rate=2Mbit/s,loss=ge(g=1%,h=20%)").unwrap();
        let file = format!(
            "{TWO_GROUPS}\n[[reconfigure]]\nat='30s'\nflows='files'\nrate='384kbit/s'\nrtt='300ms'\nloss='1%'\n\
             [[change]]\nat='20s'\nlink='path.back'\ndelay='3ms'\n\
             [[change]]\nat='20s'\nlink='path'\nrate='2Mbit/s'\nloss='ge(g=1%,h=20%)'\n"
        );
        let file = scenario_file::parse(&file, Path::new("")).unwrap();
        assert_eq!(scenario_file::text(&built), scenario_file::text(&file));
    }

    #[test]
    fn change_without_a_name_means_all_groups_and_link() {
        let mut s = scenario();
        s.reconfigure("30s:loss=1%").unwrap();
        let groups: Vec<&str> = s.reconfigurations.iter().map(|r| r.flows.as_str()).collect();
        assert_eq!(groups, ["files", "calls"]);
        s.change("30s:rate=2Mbit/s,delay=20ms,loss=1%").unwrap();
        let changed: Vec<&str> = s.changes.iter().map(|c| c.link.as_str()).collect();
        // The rates differed before.
        assert_eq!(changed, ["path", "path", "path.back", "path"]);
    }

    /// Hints for a real connection do not name a group.
    #[test]
    fn one_connection_is_told_as_a_group_is() {
        let mut s = scenario();
        s.reconfigure("30s:files:rate=384kbit/s,loss=1%").unwrap();
        let (at, hints) = path_hints_at("30s:rate=384kbit/s,loss=1%").unwrap();
        assert_eq!((at, hints), (s.reconfigurations[0].at, s.reconfigurations[0].hints));
        for (text, expected) in [
            ("30s:files:rate=1Mbit/s", "expected TIME:KEY=VALUE"),
            ("30s:", "expected TIME:KEY=VALUE"),
            ("30s:rat=1Mbit/s", "did you mean 'rate'?"),
            ("30:rate=1Mbit/s", "'30' has no unit"),
        ] {
            let e = path_hints_at(text).unwrap_err().to_string();
            assert!(e.contains(expected) && !e.contains('\n'), "{text}: {e}");
        }
    }

    #[test]
    fn wrong_change_names_fault_and_right_form() {
        type Add = fn(&mut Scenario, &str) -> Result<(), SpecError>;
        let cases: [(Add, &str, &str); 12] = [
            (Scenario::reconfigure, "30s", "'30s': expected TIME:[GROUP:]KEY=VALUE"),
            (Scenario::reconfigure, "rate=1Mbit/s", "expected TIME:[GROUP:]KEY=VALUE"),
            (Scenario::reconfigure, "30s:rate", "expected TIME:[GROUP:]KEY=VALUE"),
            (Scenario::reconfigure, "30s:rat=1Mbit/s", "unknown key 'rat'; did you mean 'rate'?"),
            (Scenario::reconfigure, "30s:rate=1", "rate: '1' has no unit"),
            (Scenario::reconfigure, "30:rate=1Mbit/s", "'30' has no unit"),
            (Scenario::reconfigure, "30s:fils:loss=1%", "did you mean 'files'?"),
            (Scenario::reconfigure, "90s:loss=1%", "comes after the end at 60"),
            (Scenario::reconfigure, "30s:loss=1%,loss=2%", "has loss twice"),
            (Scenario::change, "30s:rtt=10ms", "unknown key 'rtt'"),
            (Scenario::change, "30s:pth:rate=1Mbit/s", "unknown link 'pth'; did you mean 'path'?"),
            (Scenario::change, "90s:rate=1Mbit/s", "comes after the end at 60"),
        ];
        for (add, text, expected) in cases {
            let mut s = scenario();
            let e = add(&mut s, text).and_then(|()| Plan::new(s).map(drop)).unwrap_err();
            let e = e.to_string();
            assert!(e.contains(expected) && !e.contains('\n'), "{text}: {e}");
        }
    }
}
