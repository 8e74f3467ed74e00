//! Lists of protocols: names with parameters, and families of them.

use narrows_base::spec::{nearest, split};
use narrows_base::{Spec, SpecError};
use narrows_sim::protocol::{Family, every, named};

/// Families that a list may name, each also as `family:NAME`. `rrtp` alone is the protocol.
const BARE: &[&str] = &["tcp", "media", "papers", "all"];
/// Name of the family of all controllers over the datagram endpoint.
const STREAMS: &str = "family:rrtp";
const PREFIX: &str = "family:";

/// The protocols of a family; `None` if the text is no family. `all` are the protocols with names of their own, and
/// `family:rrtp` is each controller over the datagram endpoint. The papers' printed forms are in `papers` only.
pub fn family(text: &str) -> Option<Vec<&'static str>> {
    let of = |wanted: Family| {
        every().filter(|p| p.family == wanted && !p.is_printed()).map(|p| p.name).collect()
    };
    let named = named();
    Some(match text.strip_prefix(PREFIX).unwrap_or(text) {
        "all" => named.filter(|p| !p.is_printed()).map(|p| p.name).collect(),
        "papers" => named.filter(|p| !p.paper.is_empty()).map(|p| p.name).collect(),
        "tcp" => of(Family::Tcp),
        "media" => of(Family::Media),
        "rrtp" if text == STREAMS => of(Family::Rrtp),
        _ => return None,
    })
}

/// Adds one entry of a list: a family's protocols that are not in the list yet, or one protocol.
///
/// # Errors
/// An empty name, an unknown family, or a protocol that is already in the list.
pub(crate) fn add(list: &mut Vec<Spec>, entry: &str) -> Result<(), SpecError> {
    let entry = entry.trim();
    if entry.is_empty() {
        return Err(SpecError::new(
            "a protocol's name is missing; narrows list protocols shows them",
        ));
    }
    if let Some(names) = family(entry) {
        for spec in names.into_iter().map(Spec::named) {
            if !list.contains(&spec) {
                list.push(spec);
            }
        }
        return Ok(());
    }
    if let Some(name) = entry.strip_prefix(PREFIX) {
        return Err(SpecError::unknown("family", name, &["tcp", "media", "rrtp", "papers", "all"]));
    }
    let spec = Spec::parse(entry)?;
    if spec.name.contains(|c: char| c.is_whitespace() || c == ';') {
        return Err(SpecError::new(format!("'{entry}': protocols are separated by commas")));
    }
    if list.contains(&spec) {
        return Err(SpecError::new(format!("'{spec}' is given twice")));
    }
    if narrows_sim::protocol::find(&spec.name).is_err()
        && let Some(near) = nearest(&spec.name, BARE)
        && !every().any(|p| nearest(&spec.name, &[p.name]).is_some())
    {
        let line = format!("unknown protocol or family '{}'; did you mean '{near}'?", spec.name);
        return Err(SpecError::new(line));
    }
    list.push(spec);
    Ok(())
}

/// `tcp`, `media`, `papers`, `all`, `family:NAME` and names with parameters, separated by commas that are not in
/// parentheses.
///
/// # Errors
/// As `add` for its first bad entry.
pub fn protocols(text: &str) -> Result<Vec<Spec>, SpecError> {
    let mut list = Vec::new();
    for entry in split(text)? {
        add(&mut list, entry)?;
    }
    Ok(list)
}

/// A name with parameters, for a command that takes one protocol.
///
/// # Errors
/// A list, a family, or an invalid specification.
pub fn one(text: &str) -> Result<Spec, SpecError> {
    let text = text.trim();
    if split(text)?.len() > 1 || family(text).is_some() {
        return Err(SpecError::new(format!("'{text}': one protocol is expected, not several")));
    }
    Spec::parse(text)
}

/// `NAME[:M]`: a protocol, which may have parameters in parentheses, and a number of flows.
///
/// # Errors
/// An invalid number of flows or specification.
pub fn several(text: &str, usual: usize) -> Result<(Spec, usize), SpecError> {
    let colon = text.rfind(':').filter(|c| !text[*c..].contains(')'));
    let (name, count) = match colon {
        None => (text, usual),
        Some(c) => {
            let number = text[c + 1..].trim();
            let count = number.parse().ok().filter(|n| *n > 0).ok_or_else(|| {
                SpecError::new(format!(
                    "'{text}': '{number}' is not a number of flows, as in reno:4"
                ))
            })?;
            (&text[..c], count)
        }
    };
    Ok((Spec::parse(name)?, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        protocols(text).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_name_is_a_protocol_and_families_stand_in_lists() {
        assert_eq!(names("rrtp"), ["rrtp"]);
        assert_eq!(names("rrtp,cubic"), ["rrtp", "cubic"]);
        let media = names("media");
        assert!(media.len() > 4 && media.contains(&"tfrc".to_string()));
        assert_eq!(names("family:media"), media);
        let mut both = media.clone();
        both.push("rrtp".into());
        assert_eq!(names("media, rrtp"), both);
        assert_eq!(names("tfrc,media").len(), media.len(), "what is there is not added again");
        let streams = names("family:rrtp");
        assert!(streams.contains(&"rrtp+cubic".to_string()) && streams.len() > 15, "{streams:?}");
        let papers = names("papers");
        assert!(papers.contains(&"stpd".to_string()) && papers.contains(&"rrtp".to_string()));
        assert!(!papers.contains(&"cubic".to_string()));
        assert_eq!(names("all").len(), named().count());
        assert_eq!(names("vegas(alpha=1,beta=2),tcp")[0], "vegas(alpha=1,beta=2)");
    }

    #[test]
    fn one_protocol_is_no_list() {
        assert_eq!(one(" vegas(alpha=1,beta=2)").unwrap().to_string(), "vegas(alpha=1,beta=2)");
        for several in ["cubic,reno", "reno,reno", "tcp", "family:media"] {
            let e = one(several).unwrap_err().to_string();
            assert_eq!(e, format!("'{several}': one protocol is expected, not several"));
        }
    }

    #[test]
    fn malformed_list_is_named() {
        for (bad, hint) in [
            ("reno,,cubic", "missing"),
            ("", "missing"),
            ("reno,reno", "twice"),
            ("reno cubic", "separated by commas"),
            ("reno;cubic", "separated by commas"),
            ("family:medai", "did you mean 'media'"),
            ("medai", "did you mean 'media'"),
            ("reno(", "')' is missing"),
        ] {
            let e = protocols(bad).unwrap_err().to_string();
            assert!(e.contains(hint), "{bad}: {e}");
        }
    }
}
