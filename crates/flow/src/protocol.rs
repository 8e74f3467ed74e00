//! The list of protocols, and how one is read from what a user wrote.

use crate::tcp::{Preset, Receiver, RecoveryKind, Sender, TcpConfig};
use narrows_base::card::Kind;
use narrows_base::units::Unit;
use narrows_base::{Card, Duration, Luck, Param, Settings, Spec, SpecError, Status};
use narrows_control::{Controller, Environment};
use std::sync::Arc;

/// A named combination of endpoint, controller and recovery.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// As the user writes it.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// The controller's name.
    pub controller: &'static str,
    /// How it repairs losses unless told otherwise.
    pub recovery: &'static str,
}

const fn entry(
    name: &'static str,
    controller: &'static str,
    recovery: &'static str,
    summary: &'static str,
) -> Entry {
    Entry { name, summary, controller, recovery }
}

/// All protocols, in the order in which tables show them.
pub const PROTOCOLS: &[Entry] = &[
    entry("tahoe", "reno", "tahoe", "slow start anew at every loss (1988)"),
    entry("reno", "reno", "reno", "fast retransmit and fast recovery (1990)"),
    entry("newreno", "reno", "newreno", "repairs several losses in one window (RFC 6582)"),
    entry("sack", "reno", "sack", "Reno's window with selective acknowledgements (RFC 6675)"),
    entry("vegas", "vegas", "vegas", "keeps one to three packets queued, senses delay"),
    entry("veno", "veno", "sack", "Reno that asks Vegas whether a loss was congestion"),
    entry("westwood", "westwood", "newreno", "sets the window to the measured bandwidth at a loss"),
    entry("westwood+", "westwood+", "sack", "Westwood with one bandwidth sample per round trip"),
    entry("stpd", "stpd", "sack", "a self-tuning PD controller keeps one packet queued (S0)"),
    entry("cubic", "cubic", "sack", "today's default: a cubic window between losses (RFC 9438)"),
    entry("bbr", "bbr", "sack", "models bandwidth and RTT, paces; version 1 as in Linux"),
];

/// All ways to repair losses.
pub const RECOVERIES: &[(&Card, RecoveryKind)] = &[
    (&TAHOE, RecoveryKind::Tahoe),
    (&RENO, RecoveryKind::Reno),
    (&NEWRENO, RecoveryKind::NewReno),
    (&SACK, RecoveryKind::Sack),
    (&VEGAS, RecoveryKind::Vegas),
];

const fn recovery(
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    status: Status,
) -> Card {
    Card {
        name,
        summary,
        source,
        senses: "acknowledgements",
        sets: "which segments are sent again, and how many are outstanding",
        params: &[],
        status,
    }
}

const AGAINST_NS2: Status = Status::Validated("ns-2.35 (docs/validation.md)");
const TAHOE: Card = recovery(
    "tahoe",
    "the third duplicate starts the window anew and goes back to the hole",
    "Jacobson 1988; RFC 5681 section 3.1",
    AGAINST_NS2,
);
const RENO: Card = recovery(
    "reno",
    "fast retransmit; any advance ends fast recovery",
    "RFC 5681 section 3.2",
    AGAINST_NS2,
);
const NEWRENO: Card =
    recovery("newreno", "one hole per partial acknowledgement", "RFC 6582", AGAINST_NS2);
const SACK: Card = recovery(
    "sack",
    "selective acknowledgements, pipe and scoreboard",
    "RFC 2018, RFC 6675",
    AGAINST_NS2,
);
const VEGAS: Card = recovery(
    "vegas",
    "Reno that also checks a segment's age at the first duplicates",
    "Brakmo and Peterson 1995; ns-2 Vegas",
    AGAINST_NS2,
);

/// Parameters of the TCP endpoint: every protocol takes them beside its controller's own.
pub const ENDPOINT_PARAMS: &[Param] = &[
    Param {
        name: "recovery",
        help: "how losses are repaired",
        kind: Kind::Choice(&["default", "tahoe", "reno", "newreno", "sack", "vegas"]),
        origin: "the protocol's own, see narrows list recoveries",
    },
    number("initial-window", "segments sent at once at the start", Unit::Packets, 1.0, 1e6, 4.0),
    number("initial-ssthresh", "slow start ends here", Unit::Packets, 2.0, 1e15, 1e15),
    number(
        "initial-rto",
        "retransmission timeout before the first sample",
        Unit::Seconds,
        1e-3,
        3600.0,
        1.0,
    ),
    number("min-rto", "smallest retransmission timeout", Unit::Seconds, 0.0, 3600.0, 1.0),
    number("max-rto", "largest retransmission timeout", Unit::Seconds, 1e-3, 36_000.0, 60.0),
    number("granularity", "clock granularity of the timer", Unit::Seconds, 1e-9, 10.0, 0.001),
    number(
        "ack-every",
        "the receiver acknowledges every so many packets",
        Unit::Packets,
        1.0,
        1000.0,
        1.0,
    ),
    number("delayed-ack", "… or after this time", Unit::Seconds, 0.0, 10.0, 0.1),
    number("receive-window", "segments in flight at most", Unit::Packets, 1.0, 1e15, 1e15),
    switch("timestamps", "an RTT sample from every acknowledgement (RFC 7323)"),
    switch("limited-transmit", "new data on the first two duplicates (RFC 3042)"),
    switch("once-per-window", "one fast retransmit per window at most (RFC 6582; ns-2 bugFix_)"),
];

const fn number(
    name: &'static str,
    help: &'static str,
    unit: Unit,
    min: f64,
    max: f64,
    default: f64,
) -> Param {
    Param { name, help, kind: Kind::Number { unit, min, max, default }, origin: "preset rfc" }
}
const fn switch(name: &'static str, help: &'static str) -> Param {
    Param { name, help, kind: Kind::Choice(&["preset", "on", "off"]), origin: "on in preset rfc" }
}

/// Makes a controller for one flow.
pub type MakeController = dyn Fn(&Environment) -> Box<dyn Controller> + Send + Sync;

/// A protocol that has been read and checked, ready to make endpoints.
#[derive(Clone)]
pub struct Protocol {
    label: String,
    config: TcpConfig,
    make: Arc<MakeController>,
}

impl std::fmt::Debug for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Protocol({}, {:?})", self.label, self.config)
    }
}

impl Protocol {
    /// Reads `vegas(alpha=1,beta=3)` for packets of `packet_bytes` on the wire.
    ///
    /// # Errors
    /// An unknown protocol or parameter, a value out of range, or a packet that does not fit
    /// its own headers.
    pub fn read(spec: &Spec, preset: Preset, packet_bytes: u32) -> Result<Protocol, SpecError> {
        let names: Vec<&str> = PROTOCOLS.iter().map(|p| p.name).collect();
        let entry = PROTOCOLS
            .iter()
            .find(|p| p.name == spec.name)
            .ok_or_else(|| SpecError::unknown("protocol", &spec.name, &names))?;
        let controller = narrows_control::find(entry.controller)?;
        let (mut own, mut endpoint) = (Spec::named(entry.name), Spec::named(entry.name));
        for (key, value) in &spec.args {
            let is_own =
                key.as_ref().is_none_or(|k| controller.card.params.iter().any(|p| p.name == k));
            let is_endpoint =
                key.as_ref().is_some_and(|k| ENDPOINT_PARAMS.iter().any(|p| p.name == k));
            if !is_own && !is_endpoint {
                let mut known: Vec<&str> = controller.card.params.iter().map(|p| p.name).collect();
                known.extend(ENDPOINT_PARAMS.iter().map(|p| p.name));
                let key = key.as_deref().unwrap_or_default();
                return Err(SpecError::unknown(
                    &format!("parameter of {}", entry.name),
                    key,
                    &known,
                ));
            }
            let side = if is_own { &mut own } else { &mut endpoint };
            side.args.push((key.clone(), value.clone()));
        }
        let settings = Settings::read(&own, controller.card.params)?;
        let ends = Settings::read(&endpoint, ENDPOINT_PARAMS)?;
        let config = configure(entry, preset, packet_bytes, &ends)?;
        let build = controller.build;
        let make = Arc::new(move |environment: &Environment| build(&settings, environment));
        Ok(Protocol { label: spec.to_string(), config, make })
    }

    /// A TCP endpoint with a controller that is in no list: somebody's idea, being tried.
    pub fn custom(
        label: &str,
        config: TcpConfig,
        make: impl Fn(&Environment) -> Box<dyn Controller> + Send + Sync + 'static,
    ) -> Protocol {
        Protocol { label: label.to_string(), config, make: Arc::new(make) }
    }

    /// As the user wrote it.
    pub fn label(&self) -> &str {
        &self.label
    }
    /// The endpoint's parameters.
    pub fn config(&self) -> &TcpConfig {
        &self.config
    }

    /// A sender and a receiver for flow number `flow`, whose key is `luck`.
    pub fn endpoints(&self, flow: u32, luck: Luck) -> (Sender, Receiver) {
        let environment = Environment {
            initial_window: self.config.initial_window,
            initial_ssthresh: self.config.initial_ssthresh,
            packet_bytes: self.config.packet_bytes,
            halve: self.config.halve,
            luck: luck.named("controller"),
        };
        let controller = (self.make)(&environment);
        let sender = Sender::new(&self.config, controller, flow, luck.named("data").bits());
        (sender, Receiver::new(&self.config, flow, luck.named("acks").bits()))
    }
}

fn configure(
    entry: &Entry,
    preset: Preset,
    packet_bytes: u32,
    given: &Settings,
) -> Result<TcpConfig, SpecError> {
    let mut c = TcpConfig::preset(preset);
    c.packet_bytes = packet_bytes;
    if packet_bytes <= c.header_bytes || packet_bytes > 65_535 {
        return Err(SpecError::new(format!(
            "packets of {packet_bytes} B: a packet is {} B to 65535 B, {} B of them headers",
            c.header_bytes + 1,
            c.header_bytes
        )));
    }
    let wanted = match given.choice("recovery") {
        "default" => entry.recovery,
        other => other,
    };
    if let Some((_, kind)) = RECOVERIES.iter().find(|(card, _)| card.name == wanted) {
        c.recovery = *kind;
    }
    let set = |name: &str, f: &mut dyn FnMut(f64)| {
        if given.given(name) {
            f(given.number(name));
        }
    };
    set("initial-window", &mut |x| c.initial_window = x);
    set("initial-ssthresh", &mut |x| c.initial_ssthresh = x);
    set("initial-rto", &mut |x| c.initial_rto = Duration::from_secs_f64(x));
    set("min-rto", &mut |x| c.min_rto = Duration::from_secs_f64(x));
    set("max-rto", &mut |x| c.max_rto = Duration::from_secs_f64(x));
    set("granularity", &mut |x| c.tick = Duration::from_secs_f64(x));
    set("ack-every", &mut |x| c.ack_every = x as u32);
    set("delayed-ack", &mut |x| c.delayed_ack = Duration::from_secs_f64(x));
    set("receive-window", &mut |x| c.receive_window = x as u64);
    let switch = |name: &str, default: bool| match given.choice(name) {
        "on" => true,
        "off" => false,
        _ => default,
    };
    c.timestamps = switch("timestamps", c.timestamps);
    c.limited_transmit = switch("limited-transmit", c.limited_transmit);
    c.once_per_window = switch("once-per-window", c.once_per_window);
    if c.max_rto < c.min_rto {
        return Err(SpecError::new(format!(
            "{}: max-rto {} is below min-rto {}",
            entry.name, c.max_rto, c.min_rto
        )));
    }
    Ok(c)
}
