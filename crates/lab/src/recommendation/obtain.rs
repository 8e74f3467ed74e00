//! Where a protocol is available today.

use narrows_transport::protocol::{self, Family, STREAM_PREFIX};

/// Where a protocol can be had.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Obtain {
    /// As Linux's congestion control of this name; `true` where selective acknowledgements must be
    /// off.
    Linux(&'static str, bool),
    /// As a stream over UDP: `narrows serve` and `get`, or the library.
    Stream(String),
    /// As messages of the library, paced by this protocol over UDP.
    Messages(String),
    /// Nowhere yet; the same controller runs over UDP under this name, if it does.
    Simulation(Option<String>),
}

/// What Linux calls the protocols of ours that it has. Not there: Tahoe, Reno without NewReno's
/// repair, Westwood of 2001 (its `westwood` is Westwood+), Jersey, ST-PD.
const LINUX: [(&str, &str, bool); 8] = [
    ("sack", "reno", false),
    ("newreno", "reno", true),
    ("cubic", "cubic", false),
    ("bbr", "bbr", false),
    ("vegas", "vegas", false),
    ("veno", "veno", false),
    ("westwood+", "westwood", false),
    ("illinois", "illinois", false),
];

/// The protocol's entry in the list, whatever its parameters.
pub fn entry(label: &str) -> Option<&'static protocol::ProtocolEntry> {
    let name = label.split('(').next().unwrap_or(label);
    protocol::find(name).ok()
}

impl Obtain {
    /// Of the protocol with this label.
    pub fn of(label: &str) -> Obtain {
        let Some(entry) = entry(label) else { return Obtain::Simulation(None) };
        let linux = LINUX.iter().find(|l| l.0 == entry.name);
        let parameters = &label[entry.name.len().min(label.len())..];
        let ours = || format!("{STREAM_PREFIX}{}{parameters}", entry.controller);
        match entry.family {
            Family::Rrtp => Obtain::Stream(label.to_string()),
            Family::Media => Obtain::Messages(ours()),
            Family::Tcp => match linux {
                Some((_, name, without_sack)) => Obtain::Linux(name, *without_sack),
                // Parameters of a TCP endpoint may not be ours.
                None if parameters.is_empty() => Obtain::Simulation(Some(ours())),
                None => Obtain::Simulation(None),
            },
        }
    }

    /// Whether anybody can use it today.
    pub fn is_deployable(&self) -> bool {
        !matches!(self, Obtain::Simulation(_))
    }

    /// One sentence that says where and how.
    pub fn sentence(&self, label: &str) -> String {
        match self {
            Obtain::Linux(name, without_sack) => {
                let also = if *without_sack { ", with net.ipv4.tcp_sack=0" } else { "" };
                format!(
                    "Linux has it: sysctl net.ipv4.tcp_congestion_control={name}{also}, or \
                     TCP_CONGESTION on a socket."
                )
            }
            Obtain::Stream(name) if name == "rrtp" => {
                "It runs over UDP: narrows serve and narrows get, or the library.".into()
            }
            Obtain::Stream(name) => {
                format!("It runs over UDP: narrows get --protocol '{name}', or the library.")
            }
            Obtain::Messages(name) => format!(
                "It runs over UDP: messages of the library's connections under {name} (narrows speed \
                 --messages 1150B --protocol '{name}')."
            ),
            Obtain::Simulation(None) => format!("{label} exists in simulation only."),
            Obtain::Simulation(Some(ours)) => format!(
                "{label} exists in simulation only; its controller runs over UDP as {ours}, which is \
                 another comparison."
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::Spec;
    use narrows_transport::{PROTOCOLS, Preset, Protocol};

    #[test]
    fn linux_names_belong_to_protocols_of_the_list() {
        for (ours, ..) in LINUX {
            assert!(entry(ours).is_some_and(|e| e.family == Family::Tcp), "{ours}");
        }
        assert_eq!(Obtain::of("westwood+"), Obtain::Linux("westwood", false));
        assert!(!Obtain::of("westwood").is_deployable());
        assert_eq!(Obtain::of("cubic(beta=0.8)"), Obtain::Linux("cubic", false));
    }

    /// What is offered as another way to have a controller can be read as a protocol.
    #[test]
    fn every_name_that_a_sentence_gives_exists() {
        for p in PROTOCOLS.iter() {
            let name = match Obtain::of(p.name) {
                Obtain::Stream(name) | Obtain::Messages(name) => name,
                Obtain::Simulation(name) => name.unwrap(),
                Obtain::Linux(..) => continue,
            };
            let spec = Spec::parse(&name).unwrap();
            assert!(Protocol::read(&spec, Preset::Rfc, 1000).is_ok(), "{name}");
        }
    }
}
