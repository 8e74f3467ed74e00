//! Parameters of the TCP endpoint.

use super::preset::Preset;
use super::recovery::RECOVERIES;
use super::tcp_config::{RecoveryKind, TcpConfig};
use narrows_base::descriptor::ParamKind;
use narrows_base::list::Listed as _;
use narrows_base::units::Unit;
use narrows_base::{Duration, Param, Settings, SpecError};
use narrows_recovery::protocol::{Parameters, ProtocolEntry};

/// Parameters of the TCP endpoint: every protocol over TCP accepts them in addition to its controller's own.
pub const TCP_PARAMS: &[Param] = &[
    Param {
        name: "recovery",
        help: "how losses are repaired",
        kind: ParamKind::Choice(&[
            "default",
            "tahoe",
            "reno-1990",
            "newreno",
            "sack",
            "sack1",
            "vegas",
            "rack",
        ]),
        origin: "the protocol's own, rack in preset linux; see narrows list recoveries",
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
    number("ack-every", "packets per acknowledgement", Unit::Packets, 1.0, 1000.0, 1.0),
    number("delayed-ack", "… or after this time", Unit::Seconds, 0.0, 10.0, 0.1),
    number(
        "receive-window",
        "segments in flight at most, with a send buffer as large",
        Unit::Packets,
        1.0,
        1e15,
        1e15,
    ),
    switch("timestamps", "an RTT sample from every acknowledgement (RFC 7323)", RFC),
    switch("limited-transmit", "new data on the first two duplicates (RFC 3042)", RFC),
    switch("once-per-window", "one fast retransmit per window (RFC 6582; ns-2 bugFix_)", RFC),
    switch("ecn", "routers may mark instead of dropping (RFC 3168)", OWN),
    switch(
        "receiver-stamps",
        "acknowledgements carry the packet's arrival time, in place of a third SACK block (RFC 7323)",
        OWN,
    ),
];

const fn number(
    name: &'static str,
    help: &'static str,
    unit: Unit,
    min: f64,
    max: f64,
    default: f64,
) -> Param {
    Param { name, help, kind: ParamKind::Number { unit, min, max, default }, origin: "preset rfc" }
}
const RFC: &str = "on in preset rfc";
const OWN: &str = "off, unless the protocol is made for it";
const fn switch(name: &'static str, help: &'static str, origin: &'static str) -> Param {
    Param { name, help, kind: ParamKind::Choice(&["preset", "on", "off"]), origin }
}

/// Whether a controller with these settings may use the packets' arrival times: of the listed ones only New Jersey's
/// estimator does.
fn reads_arrival_times(controller: &str, own: &Settings) -> bool {
    match controller {
        "jersey" => own.choice("estimator") == "new-jersey",
        _ => narrows_congestion::CONTROLLERS.iter().all(|c| c.name() != controller),
    }
}

/// Builds a TCP endpoint's configuration from the given parameters. Parameters without effect are errors.
pub(super) fn configure(
    entry: &ProtocolEntry,
    preset: Preset,
    packet_bytes: u32,
    parameters: &Parameters,
) -> Result<TcpConfig, SpecError> {
    let own = &parameters.own;
    let of = |given: &Settings| configured(entry, preset, packet_bytes, own, given);
    let c = of(&parameters.endpoint)?;
    parameters.endpoint.refuse_unread(entry.name, TCP_PARAMS, |other| drop(of(other)))?;
    Ok(c)
}

fn configured(
    entry: &ProtocolEntry,
    preset: Preset,
    packet_bytes: u32,
    own: &Settings,
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
    if preset == Preset::Linux {
        c = c.with_linux_window();
    }
    let wanted = match given.choice("recovery") {
        // For Tahoe, Reno of 1990 and NewReno the recovery is part of the name.
        "default" if preset == Preset::Linux && matches!(entry.recovery, "sack" | "vegas") => {
            "rack"
        }
        "default" => entry.recovery,
        other => other,
    };
    c.recovery = RECOVERIES.find(wanted)?.kind;
    let set = |name: &str, f: &mut dyn FnMut(f64)| {
        if given.given(name) {
            f(given.number(name));
        }
    };
    set("initial-window", &mut |x| c.initial_window = x);
    set("initial-ssthresh", &mut |x| c.initial_ssthresh = x);
    set("initial-rto", &mut |x| c.rto.initial = Duration::from_secs_f64(x));
    set("min-rto", &mut |x| c.rto.min = Duration::from_secs_f64(x));
    set("max-rto", &mut |x| c.rto.max = Duration::from_secs_f64(x));
    set("granularity", &mut |x| c.rto.granularity = Duration::from_secs_f64(x));
    if given.given("ack-every") {
        c.ack_every = given.steps("ack-every", 1) as u32;
    }
    // If every packet is acknowledged, no acknowledgement is delayed.
    if c.ack_every > 1 {
        set("delayed-ack", &mut |x| c.delayed_ack = Duration::from_secs_f64(x));
    }
    if given.given("receive-window") {
        // The send buffer is then as large as the window.
        c.receive_window = given.steps("receive-window", 1);
        c.send_buffer = u64::MAX;
    }
    let switch = |name: &str, default: bool| match given.choice(name) {
        "on" => true,
        "off" => false,
        _ => default || entry.turns_on.contains(&name),
    };
    c.timestamps = switch("timestamps", c.timestamps);
    if c.recovery.is_without_sack() && c.recovery != RecoveryKind::Vegas {
        c.once_per_window = switch("once-per-window", c.once_per_window);
    }
    if c.recovery.is_without_sack() || c.recovery == RecoveryKind::Sack1 {
        c.limited_transmit = switch("limited-transmit", c.limited_transmit);
    }
    c.ecn = switch("ecn", narrows_congestion::find(entry.controller)?.is_for_ecn());
    c.receiver_stamps = if reads_arrival_times(entry.controller, own) {
        switch("receiver-stamps", c.receiver_stamps)
    } else {
        entry.turns_on.contains(&"receiver-stamps")
    };
    if c.rto.max < c.rto.min {
        return Err(SpecError::new(format!(
            "{}: max-rto {} is below min-rto {}",
            entry.name, c.rto.max, c.rto.min
        )));
    }
    Ok(c)
}
