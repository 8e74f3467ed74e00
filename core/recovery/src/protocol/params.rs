//! Parameters of the datagram endpoint: for media, and for a stream.

use super::config::{DatagramConfig, FeedbackConfig, OpeningExchange, StreamRecovery};
use super::{Family, ProtocolEntry};
use crate::loss_classifier::{ClassifierConfig, LOSS_CLASSIFIERS};
use narrows_base::descriptor::ParamKind;
use narrows_base::list::Listed as _;
use narrows_base::units::Unit;
use narrows_base::{Duration, Param, Rate, Settings, SpecError};
use narrows_congestion::{Environment, PathHints};

/// Parameters of the datagram endpoint: every media protocol accepts them in addition to its controller's own.
pub const DATAGRAM_PARAMS: &[Param] = &[
    Param {
        help: "packets per report at most; 0: only its receiver side requests reports",
        kind: ParamKind::Number { unit: Unit::Packets, min: 0.0, max: 1000.0, default: 32.0 },
        origin: "as a stream; preset ns2: 0, or 1 without a receiver side (RFC 5348, Choi 2006)",
        ..ACK_EVERY
    },
    MAX_ACK_DELAY,
    Param {
        name: "window-pacing",
        help: "a window without a rate is paced (RFC 9002 section 7.7), not clocked by reports alone",
        kind: ParamKind::Choice(&["preset", "on", "off"]),
        origin: "on, as over UDP; preset ns2: off (Choi 2006)",
    },
    Param {
        kind: ParamKind::Choice(&["off", "on"]),
        origin: "media are compared from the first packet on (Choi 2006, Jayaram 2001)",
        ..HANDSHAKE
    },
    CREDIT,
    Param {
        name: "expiry",
        help: "writes that waited longer are dropped, not sent; 0 keeps them",
        kind: ParamKind::Number { unit: Unit::Seconds, min: 0.0, max: 3600.0, default: 1.0 },
        origin: "late media are no use",
    },
    Param { kind: ParamKind::Choice(&["off", "on"]), origin: "off, as most paths", ..ECN },
];

/// Parameters of a stream over the datagram endpoint: every `rrtp+NAME` accepts them in addition to its controller's
/// own.
pub const STREAM_PARAMS: &[Param] = &[
    ACK_EVERY,
    MAX_ACK_DELAY,
    Param {
        name: "initial-window",
        help: "packets sent at once at the start",
        kind: ParamKind::Number { unit: Unit::Packets, min: 1.0, max: 1e6, default: 4.0 },
        origin: "as the TCP endpoint",
    },
    Param {
        name: "initial-ssthresh",
        help: "slow start ends here",
        kind: ParamKind::Number { unit: Unit::Packets, min: 2.0, max: 1e15, default: 1e15 },
        origin: "as the TCP endpoint",
    },
    HANDSHAKE,
    Param {
        name: "recovery",
        help: "whether the sender repairs losses by reports, or the receiver by NACKs with timers (simulation only)",
        kind: ParamKind::Choice(&["own", "rfc9002", "nack"]),
        origin: "rfc9002, except the RRTP thesis as printed: nack, its section 3.5",
    },
    Param {
        name: "classifier",
        help: "how the receiver distinguishes radio losses from congestion",
        kind: ParamKind::Choice(&["own", "none", "biaz", "spike", "zigzag"]),
        origin: "none, unless the protocol is made with one; the RRTP thesis, section 3.6",
    },
    Param {
        name: "biaz-sigma",
        help: "classifier=biaz: shortest gap of a radio loss, in spacings above the number missing",
        kind: ParamKind::Number { unit: Unit::None, min: 0.0, max: 100.0, default: 1.0 },
        origin: "the RRTP thesis, table 3.2",
    },
    Param {
        name: "biaz-phi",
        help: "classifier=biaz: longest gap of a radio loss, likewise",
        kind: ParamKind::Number { unit: Unit::None, min: 0.0, max: 100.0, default: 2.0 },
        origin: "the RRTP thesis, table 3.2",
    },
    Param {
        name: "rate",
        help: "hinted rate of the path, for controllers that use it; 0 is no hint",
        kind: ParamKind::Number { unit: Unit::BitsPerSecond, min: 0.0, max: 1e13, default: 0.0 },
        origin: "the RRTP thesis, section 3.3",
    },
    Param {
        name: "rtt",
        help: "its round-trip time, likewise",
        kind: ParamKind::Number { unit: Unit::Seconds, min: 0.0, max: 3600.0, default: 0.0 },
        origin: "the RRTP thesis, section 3.3",
    },
    Param {
        name: "loss",
        help: "the share of packets that it loses without congestion, likewise",
        kind: ParamKind::Number { unit: Unit::Fraction, min: 0.0, max: 1.0, default: 0.0 },
        origin: "the RRTP thesis, section 3.3",
    },
    CREDIT,
    ECN,
    Param {
        name: "repair",
        help: "repair packets behind the last data at 3% loss or more, if the peer supports them (over sockets only)",
        kind: ParamKind::Choice(&["auto", "off"]),
        origin: "docs/rrtp.md",
    },
    Param {
        name: "scheduler",
        help: "over several paths: how the path of each packet is chosen (simulation only)",
        kind: ParamKind::Choice(narrows_multipath::SCHEDULER_NAMES),
        origin: "docs/multipath.md",
    },
    Param {
        name: "coupling",
        help: "over several paths: how those over one bottleneck share it; lia, olia and balia: rrtp+reno in simulation only",
        kind: ParamKind::Choice(narrows_multipath::COUPLING_NAMES),
        origin: "docs/multipath.md",
    },
];

const ACK_EVERY: Param = Param {
    name: "ack-every",
    help: "packets that one report answers at most, the longer they come in order the more",
    kind: ParamKind::Number { unit: Unit::Packets, min: 1.0, max: 1000.0, default: 32.0 },
    origin: "the RRTP thesis's CACK; at first and after a hole 2 (RFC 9000 section 13.2.2)",
};
const MAX_ACK_DELAY: Param = Param {
    name: "max-ack-delay",
    help: "... or after this time, or a 32nd of the round trip",
    kind: ParamKind::Number { unit: Unit::Seconds, min: 0.0, max: 10.0, default: 0.025 },
    origin: "RFC 9000 section 18.2",
};
const HANDSHAKE: Param = Param {
    name: "handshake",
    help: "data wait for the handshake, one round trip: with probes of the rate (on), or as with an address token (token)",
    kind: ParamKind::Choice(&["on", "token", "off"]),
    origin: "as over UDP",
};
const CREDIT: Param = Param {
    name: "credit",
    help: "how far a paced sender that was late may catch up at once",
    kind: ParamKind::Number { unit: Unit::Seconds, min: 0.0, max: 10.0, default: 0.001 },
    origin: "RFC 5348 section 4.6; 0 in preset ns2",
};
const ECN: Param = Param {
    name: "ecn",
    help: "packets are ECN-capable: routers mark instead of dropping (RFC 3168)",
    kind: ParamKind::Choice(&["preset", "on", "off"]),
    origin: "off, unless the controller is made for it",
};

/// Whether a listed controller sets a rate in addition to its window, so that windows are not paced.
fn sets_rate(controller: &str) -> bool {
    // SCReAM does from its first report on.
    if controller == "scream" {
        return true;
    }
    let Ok(entry) = narrows_congestion::find(controller) else { return false };
    let settings = Settings::defaults(entry.descriptor.params);
    let limits = entry.first_limits(&settings, &Environment::default());
    limits.is_some_and(|l| l.pacing_rate.is_some())
}

/// Whether a controller may use a hint at the loss rate: of the listed ones only rrtp's controllers do.
fn hears_loss(controller: &str) -> bool {
    ["rrtp", "rrtp-lasthop"].contains(&controller)
        || narrows_congestion::CONTROLLERS.iter().all(|c| c.name() != controller)
}

/// Changes a configuration by the given parameters. Parameters without effect are errors.
pub(super) fn configure(
    entry: &ProtocolEntry,
    base: &DatagramConfig,
    given: &Settings,
) -> Result<DatagramConfig, SpecError> {
    let of = |given: &Settings| configured(entry, base, given);
    let c = of(given)?;
    given.refuse_unread(entry.name, entry.datagram_params(), |other| drop(of(other)))?;
    Ok(c)
}

fn configured(
    entry: &ProtocolEntry,
    base: &DatagramConfig,
    given: &Settings,
) -> Result<DatagramConfig, SpecError> {
    let mut c = base.clone();
    let packet_bytes = c.packet_bytes;
    let controller = narrows_congestion::find(entry.controller)?;
    if packet_bytes <= c.header_bytes || packet_bytes > 65_535 {
        return Err(SpecError::new(format!(
            "{}: packets of {packet_bytes} B: a packet is {} B to 65535 B, {} B of them headers",
            entry.name,
            c.header_bytes + 1,
            c.header_bytes
        )));
    }
    if given.given("credit") {
        c.credit = Duration::from_secs_f64(given.number("credit"));
    }
    c.ecn = match given.choice("ecn") {
        "on" => true,
        "off" => false,
        _ => controller.is_for_ecn() || entry.turns_on.contains(&"ecn"),
    };
    let mut ack_every = given.steps("ack-every", 1) as u32;
    let max_ack_delay = Duration::from_secs_f64(given.number("max-ack-delay"));
    if entry.family == Family::Media {
        let has_receiver_side = controller.receiver.is_some();
        if !given.given("ack-every") {
            ack_every = c.feedback.ack_every.max(u32::from(!has_receiver_side));
        }
        if ack_every == 0 && !has_receiver_side {
            return Err(SpecError::new(format!(
                "{}: ack-every=0 leaves reports to the controller's receiver side, and {} has none; ack-every=1 answers every packet",
                entry.name, entry.controller
            )));
        }
        if !sets_rate(entry.controller) {
            c.window_pacing = match given.choice("window-pacing") {
                "on" => true,
                "off" => false,
                _ => c.window_pacing,
            };
        }
    }
    c.feedback = FeedbackConfig { ack_every, max_ack_delay, ..c.feedback };
    c.handshake = match given.choice("handshake") {
        "on" => OpeningExchange::Full,
        "token" => OpeningExchange::Token,
        _ => OpeningExchange::None,
    };
    if entry.family == Family::Media {
        c.expiry = Duration::from_secs_f64(given.number("expiry"));
        return Ok(c);
    }
    let mut classifier = ClassifierConfig { name: entry.classifier, ..ClassifierConfig::default() };
    if given.choice("classifier") != "own" {
        classifier.name = given.choice("classifier");
    }
    if classifier.name == "biaz" {
        classifier.biaz = (given.number("biaz-sigma"), given.number("biaz-phi"));
    }
    LOSS_CLASSIFIERS.find(classifier.name)?;
    c.reliable = true;
    let recovery = given.choice("recovery");
    if recovery == "nack" || recovery == "own" && entry.recovery == "nack" {
        c.recovery = StreamRecovery::Nack;
    }
    c.feedback.classifier = classifier;
    c.repair = given.choice("repair") != "off";
    c.scheduler = given.choice("scheduler");
    c.coupling = given.choice("coupling");
    let given_value = |name: &str| Some(given.number(name)).filter(|x| *x > 0.0);
    c.hints = PathHints {
        rate: given_value("rate").map(Rate::from_bps_f64),
        rtt: given_value("rtt").map(Duration::from_secs_f64),
        loss: if hears_loss(entry.controller) { given_value("loss") } else { None },
    };
    if given.given("initial-window") {
        c.initial_window = given.number("initial-window");
    }
    if given.given("initial-ssthresh") {
        c.initial_ssthresh = given.number("initial-ssthresh");
    }
    Ok(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Protocol;
    use narrows_base::Spec;

    #[test]
    fn ack_every_zero_without_receiver_side_is_refused() {
        let read = |text: &str| Protocol::read(&Spec::parse(text).unwrap(), 1000);
        assert_eq!(read("tear(ack-every=0)").unwrap().config().feedback.ack_every, 0);
        let refused = read("tfwc(ack-every=0)").unwrap_err().to_string();
        assert!(refused.contains("ack-every=0"), "{refused}");
        let config = DatagramConfig {
            feedback: FeedbackConfig { ack_every: 0, ..FeedbackConfig::default() },
            ..DatagramConfig::default()
        };
        let cubic = read("rrtp+cubic").unwrap();
        let own = Protocol::custom("mine", config, move |e| cubic.controller(e), None).unwrap();
        assert_eq!(own.check().unwrap_err().field, "feedback.ack_every");
    }
}
