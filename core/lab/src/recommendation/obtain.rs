//! Where a simulated protocol is available today, and the command to use it.

use crate::buffers;
use narrows_base::{Settings, Spec};
use narrows_congestion::{Dialect, Environment};
use narrows_recovery::protocol::{PACKET_BYTES, Protocol};
use narrows_sim::protocol::{self, Family, Preset, ProtocolEntry, STREAM_PREFIX};

/// Where a protocol with its parameters is available.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Obtain {
    /// As Linux's congestion control of this name, with these sysctls.
    Linux(&'static str, Vec<String>),
    /// In Linux's TCP by `narrows kernel run` with this controller, and these sysctls.
    Kernel(String, Vec<String>),
    /// As a stream over UDP: `narrows serve` and `get`, or the library.
    Stream(String),
    /// As messages of the library, paced by this protocol over UDP.
    Messages(String),
    /// Not available, for this reason.
    Nowhere(String),
}

/// The protocol's entry in the list, for any parameters.
pub fn entry(label: &str) -> Option<&'static ProtocolEntry> {
    let name = label.split('(').next().unwrap_or(label);
    protocol::find(name).ok()
}

impl Obtain {
    /// For the protocol with this label, as simulated in this preset.
    pub fn of(label: &str, preset: Preset) -> Obtain {
        let (Some(entry), Ok(spec)) = (entry(label), Spec::parse(label)) else {
            return Obtain::Nowhere("it is no listed protocol".into());
        };
        if narrows_congestion::CONTROLLERS.iter().all(|c| c.descriptor.name != entry.controller) {
            return Obtain::Nowhere("it is part of this program alone".into());
        }
        let stream = |name: String| {
            let spec = Spec { name, args: spec.args.clone() };
            let over_sockets = spec.args.iter().all(|a| a.1 != "nack");
            let read = Protocol::read(&spec, PACKET_BYTES);
            (over_sockets && read.is_ok()).then(|| spec.to_string())
        };
        let no_sockets = || Obtain::Nowhere("these parameters are simulated only".into());
        match entry.family {
            Family::Rrtp => stream(spec.name.clone()).map_or_else(no_sockets, Obtain::Stream),
            Family::Media => stream(format!("{STREAM_PREFIX}{}", entry.controller))
                .map_or_else(no_sockets, Obtain::Messages),
            Family::Tcp if preset != Preset::Linux => Obtain::Nowhere(format!(
                "{} is simulated only; --preset linux simulates Linux's TCP",
                preset.describe()
            )),
            Family::Tcp => in_linux(entry, &spec).unwrap_or_else(Obtain::Nowhere),
        }
    }

    /// Whether it can be used today.
    pub fn is_deployable(&self) -> bool {
        !matches!(self, Obtain::Nowhere(_))
    }

    /// Whether it is a controller of Linux's TCP, of the whole machine or of a command.
    pub fn is_of_linux(&self) -> bool {
        matches!(self, Obtain::Linux(..) | Obtain::Kernel(..))
    }

    /// The command that uses it; `None` for Linux's default and for what is not available.
    pub fn command(&self) -> Option<String> {
        match self {
            Obtain::Linux("cubic", settings) if settings.is_empty() => None,
            Obtain::Linux(name, _) => {
                Some(format!("sysctl -w net.ipv4.tcp_congestion_control={name}"))
            }
            Obtain::Kernel(controller, _) => {
                Some(format!("narrows kernel run '{controller}' -- COMMAND"))
            }
            Obtain::Stream(name) if name == "rrtp" => {
                Some("narrows get rrtp://HOST/FILE".to_string())
            }
            Obtain::Stream(name) => {
                Some(format!("narrows get --protocol '{name}' rrtp://HOST/FILE"))
            }
            Obtain::Messages(name) => {
                Some(format!("narrows media send --protocol '{name}' rrtp://KEY@HOST --from PORT"))
            }
            Obtain::Nowhere(_) => None,
        }
    }

    /// One sentence with the place and the command.
    pub fn sentence(&self, label: &str) -> String {
        let with = |settings: &[String]| match settings {
            [] => String::new(),
            all => format!(", with {}", all.join(", ")),
        };
        match self {
            Obtain::Linux("cubic", settings) if settings.is_empty() => {
                "It is Linux's default: nothing needs to be set.".into()
            }
            Obtain::Linux(name, settings) => format!(
                "Linux has it: sysctl net.ipv4.tcp_congestion_control={name}{}, or TCP_CONGESTION on a \
                 socket.",
                with(settings)
            ),
            Obtain::Kernel(controller, settings) => format!(
                "Linux's TCP does it by: narrows kernel run '{controller}' -- COMMAND{} (eBPF: root, \
                 Linux 6.4 or newer).",
                with(settings)
            ),
            Obtain::Stream(name) if name == "rrtp" => {
                "It runs over UDP: narrows serve and narrows get, or the library.".into()
            }
            Obtain::Stream(name) => {
                format!("It runs over UDP: narrows get --protocol '{name}', or the library.")
            }
            Obtain::Messages(name) => format!(
                "It runs over UDP: narrows media send --protocol '{name}', or messages of the library's \
                 connections."
            ),
            Obtain::Nowhere(why) => format!("{label} is not to be had: {why}."),
        }
    }
}

/// How Linux provides a TCP of preset `linux`; the error is the reason why it does not.
fn in_linux(entry: &'static ProtocolEntry, spec: &Spec) -> Result<Obtain, String> {
    let controller = narrows_congestion::find(entry.controller).map_err(|e| e.to_string())?;
    let own_params = controller.descriptor.params;
    let mut own = Spec::named(controller.descriptor.name);
    let mut settings = Vec::new();
    let mut recovery = entry.recovery;
    let mut is_marked = controller.is_for_ecn() || entry.turns_on.contains(&"ecn");
    for (key, value) in &spec.args {
        match key.as_deref() {
            Some("recovery") => recovery = if value == "default" { recovery } else { value },
            Some("ecn") => is_marked = value == "on" || (is_marked && value == "preset"),
            Some(key) if own_params.iter().all(|p| p.name != key) => {
                settings.extend(setting(key, value)?);
            }
            _ => own.args.push((key.clone(), value.clone())),
        }
    }
    match recovery {
        "sack" | "vegas" if spec.args.iter().all(|a| a.0.as_deref() != Some("recovery")) => {}
        "rack" => {}
        // Without SACK the kernel recovers as NewReno does.
        "newreno" => settings.push("net.ipv4.tcp_sack=0".into()),
        other => return Err(format!("Linux has no loss recovery as {other}")),
    }
    if is_marked {
        settings.push("net.ipv4.tcp_ecn=1 and routers that mark".into());
    }
    if let Some(linux) = entry.linux.filter(|_| own.args.is_empty()) {
        return Ok(Obtain::Linux(linux.name, settings));
    }
    if own.args.iter().any(|a| a.1 == "new-jersey") {
        return Err("Linux's acknowledgements do not tell when packets arrived".into());
    }
    let read: Settings = controller.read(&own).map_err(|e| e.to_string())?;
    let environment = Environment { dialect: Dialect::Linux, ..Environment::default() };
    if controller.needs_rrtp(&read, &environment) || controller.is_unresponsive() {
        return Err("the kernel's TCP lacks its input signals".into());
    }
    Ok(Obtain::Kernel(own.to_string(), settings))
}

/// The sysctl for this parameter of the TCP endpoint, if it needs one.
fn setting(key: &str, value: &str) -> Result<Option<String>, String> {
    Ok(match (key, value) {
        (_, "preset") | ("timestamps", "on") => None,
        ("timestamps", "off") => Some("net.ipv4.tcp_timestamps=0".into()),
        ("initial-window", n) => Some(format!("`ip route change ROUTE initcwnd {n}`")),
        ("min-rto", t) => Some(format!("`ip route change ROUTE rto_min {t}`")),
        ("receive-window", n) => {
            let segments: f64 = n.trim_end_matches('p').parse().unwrap_or(f64::NAN);
            if !segments.is_finite() {
                return Err(format!("receive-window={n} is not a number of segments"));
            }
            Some(buffers::sysctls(segments * buffers::SEGMENT))
        }
        _ => return Err(format!("Linux has no setting as {key}={value}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_sim::protocol::named;

    fn sentence(label: &str) -> String {
        Obtain::of(label, Preset::Linux).sentence(label)
    }

    #[test]
    fn linux_names_belong_to_protocols_of_the_list() {
        for entry in named().filter(|entry| entry.linux.is_some()) {
            assert_eq!(entry.family, Family::Tcp, "{}", entry.name);
        }
        assert_eq!(Obtain::of("westwood+", Preset::Linux), Obtain::Linux("westwood", vec![]));
        assert!(!Obtain::of("tahoe", Preset::Linux).is_deployable());
    }

    /// The printed command equals the simulated protocol: each parameter is in the command or a sysctl, or no command
    /// is printed.
    #[test]
    fn parameters_are_part_of_the_command() {
        let text = sentence("cubic(receive-window=20000)");
        assert!(text.contains("tcp_congestion_control=cubic"), "{text}");
        // 29 MB in flight: 1.53 and 2 bytes of buffer for each, in whole MiB.
        assert!(text.contains("tcp_wmem='4096 16384 45088768'"), "{text}");
        assert!(text.contains("tcp_rmem='4096 131072 58720256'"), "{text}");
        let text = sentence("cubic(hystart=off)");
        assert!(text.contains("narrows kernel run 'cubic(hystart=off)' -- COMMAND"), "{text}");
        assert!(!text.contains("tcp_congestion_control"), "{text}");
        let text = sentence("stpd(reference=2)");
        assert!(text.contains("narrows kernel run 'stpd(reference=2)'"), "{text}");
        let text = sentence("vegas(alpha=3,initial-window=20)");
        assert!(text.contains("run 'vegas(alpha=3)'") && text.contains("initcwnd 20"), "{text}");
        for (label, why) in [
            ("cubic(delayed-ack=100ms)", "no setting as delayed-ack=100ms"),
            ("cubic(recovery=tahoe)", "no loss recovery as tahoe"),
            ("jersey(estimator=new-jersey)", "do not tell when packets arrived"),
            ("rrtp(recovery=nack)", "simulated only"),
            ("tfrc(expiry=2s)", "simulated only"),
        ] {
            let text = sentence(label);
            assert!(text.contains("not to be had") && text.contains(why), "{text}");
        }
        assert!(!Obtain::of("cubic", Preset::Rfc).is_deployable());
    }

    #[test]
    fn kernel_runs_controllers_are_obtainable() {
        for label in ["stpd", "westwood", "jersey", "bbr3", "copa", "ledbat++"] {
            let obtain = Obtain::of(label, Preset::Linux);
            assert!(matches!(&obtain, Obtain::Kernel(name, _) if name == label), "{obtain:?}");
        }
        assert!(sentence("jersey").contains("tcp_ecn=1 and routers that mark"));
        assert!(sentence("newreno").contains("tcp_sack=0"));
    }

    /// The commands accept the names that sentences contain.
    #[test]
    fn every_name_that_a_sentence_gives_exists() {
        for p in named() {
            match Obtain::of(p.name, Preset::Linux) {
                Obtain::Stream(name) | Obtain::Messages(name) => {
                    let spec = Spec::parse(&name).unwrap();
                    assert!(Protocol::read(&spec, PACKET_BYTES).is_ok(), "{name}");
                }
                Obtain::Kernel(name, _) => {
                    let spec = Spec::parse(&name).unwrap();
                    let entry = narrows_congestion::find(&spec.name).unwrap();
                    assert!(entry.read(&spec).is_ok(), "{name}");
                }
                Obtain::Linux(..) => {}
                Obtain::Nowhere(why) => assert!(["tahoe", "reno-1990"].contains(&p.name), "{why}"),
            }
        }
    }
}
