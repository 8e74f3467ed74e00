//! The list of protocols, one per line.

use super::entry::{ProtocolEntry, STREAM_PREFIX};
use narrows_base::list::List;
use narrows_congestion::CONTROLLERS;
use std::sync::LazyLock;

/// `rrtp+NAME` for every controller: a stream over the datagram endpoint under that controller.
pub static STREAMS: LazyLock<Vec<ProtocolEntry>> = LazyLock::new(|| {
    let entry = |e: &narrows_congestion::ControllerEntry| {
        // Leaked once per process.
        let name = String::leak(format!("{STREAM_PREFIX}{}", e.descriptor.name));
        let tcp = PROTOCOLS.iter().find(|p| p.controller == e.descriptor.name);
        ProtocolEntry::stream(name, e.descriptor.name, e.descriptor.summary)
            .with(tcp.map_or(&[], |p| p.turns_on))
    };
    CONTROLLERS.iter().map(entry).collect()
});

/// `rrtp+NAME` for controllers that a program lends at run time.
pub static LENT_STREAMS: List<ProtocolEntry> = List::new("protocol", &[]);

/// Every protocol name: the list, then `rrtp+NAME` for every controller. Lent controllers are not included.
pub fn every() -> impl Iterator<Item = &'static ProtocolEntry> + Clone {
    PROTOCOLS.iter().chain(STREAMS.iter())
}

/// The five papers, as docs/papers.md names them.
const STPD: &str = "the ST-PD thesis";
const TFWC: &str = "Choi 2006";
const WESTWOOD: &str = "Hu and Zha";
const RRTP: &str = "the RRTP thesis";
const TEAR: &str = "Jayaram 2001";

/// All protocols with a name of their own, in the order of tables.
pub static PROTOCOLS: List<ProtocolEntry> = List::new(
    "protocol",
    &[
        ProtocolEntry::tcp("tahoe", "reno", "tahoe", "slow start anew at every loss (1988)"),
        ProtocolEntry::tcp(
            "reno-1990",
            "reno",
            "reno-1990",
            "waits for its timer after several losses in a window",
        ),
        ProtocolEntry::tcp(
            "newreno",
            "reno",
            "newreno",
            "repairs several losses in one window (RFC 6582)",
        )
        .in_linux("reno"),
        ProtocolEntry::tcp(
            "reno",
            "reno",
            "sack",
            "Linux's reno: halves at a loss, repairs by SACK; also called sack",
        )
        .compared_with_linux("reno"),
        ProtocolEntry::tcp(
            "vegas",
            "vegas",
            "vegas",
            "keeps one to three packets queued, senses delay",
        )
        .compared_with_linux("vegas"),
        ProtocolEntry::tcp(
            "veno",
            "veno",
            "sack",
            "Reno with Vegas' estimate whether a loss was congestion",
        )
        .compared_with_linux("veno"),
        ProtocolEntry::tcp(
            "westwood",
            "westwood",
            "newreno",
            "sets the window to the measured bandwidth at a loss",
        )
        .of_paper(WESTWOOD),
        ProtocolEntry::tcp(
            "westwood+",
            "westwood+",
            "sack",
            "Westwood with one bandwidth sample per round trip",
        )
        .compared_with_linux("westwood"),
        ProtocolEntry::tcp(
            "jersey",
            "jersey",
            "newreno",
            "a mark sets the measured rate, a loss alone has no effect",
        )
        .with(&["ecn", "receiver-stamps"])
        .of_paper(WESTWOOD),
        ProtocolEntry::tcp(
            "stpd",
            "stpd",
            "sack",
            "a self-tuning PD controller keeps one packet queued",
        )
        // It measures every packet's delay, for which the ST-PD thesis refines the timestamps (section 5.2.2).
        .with(&["timestamps"])
        .of_paper(STPD),
        ProtocolEntry::tcp(
            "cubic",
            "cubic",
            "sack",
            "today's default: a cubic window between losses (RFC 9438)",
        )
        .compared_with_linux("cubic"),
        ProtocolEntry::tcp(
            "bbr",
            "bbr",
            "sack",
            "models bandwidth and RTT, paces; version 1 as in Linux",
        )
        .compared_with_linux("bbr"),
        ProtocolEntry::tcp(
            "bbr3",
            "bbr3",
            "sack",
            "BBR that bounds its losses and leaves others capacity (IETF draft)",
        ),
        ProtocolEntry::tcp(
            "illinois",
            "illinois",
            "sack",
            "Reno with steps that the queueing delay sets",
        )
        .in_linux("illinois"),
        ProtocolEntry::tcp(
            "copa",
            "copa",
            "sack",
            "two packets queued by delay; competes where others fill queues (2018)",
        ),
        ProtocolEntry::tcp(
            "ledbat++",
            "ledbat++",
            "sack",
            "a background transfer that gives way to everybody",
        ),
        ProtocolEntry::media(
            "rap",
            "rap",
            "TCP's additive increase and halving as a rate, without a window",
        ),
        ProtocolEntry::media(
            "fixed",
            "fixed",
            "a constant bit rate without feedback: the baseline",
        ),
        ProtocolEntry::media(
            "tfrc",
            "tfrc",
            "the rate TCP would have, by equation: RFC 5348, or as in ns-2",
        ),
        ProtocolEntry::media(
            "tfwc",
            "tfwc",
            "a window from TCP's equation and average loss interval: smooth",
        )
        .of_paper(TFWC),
        ProtocolEntry::media(
            "tear",
            "tear",
            "the receiver emulates TCP; its averaged window sets the rate",
        )
        .of_paper(TEAR),
        ProtocolEntry::media(
            "tear-wireless",
            "tear-wireless",
            "TEAR by delay instead of loss, for radio links",
        )
        .of_paper(TEAR),
        ProtocolEntry::media(
            "scream",
            "scream",
            "video's rate by delay, loss and marks, with a window (SCReAM v2)",
        ),
        ProtocolEntry::stream(
            "rrtp",
            "rrtp",
            "short queues where it is alone, a fair share where not",
        )
        .with_classifier("spike")
        .of_paper(RRTP),
        ProtocolEntry::stream(
            "rrtp-lasthop",
            "rrtp-lasthop",
            "keeps to the rate of a radio channel of its own",
        )
        .with_classifier("biaz")
        .of_paper(RRTP),
        ProtocolEntry::stream(
            "brutal",
            "brutal",
            "sends at the given rate, unfair to others (Hysteria 2)",
        ),
        ProtocolEntry::stream("tear-reliable", "tear", "a reliable stream at TEAR's rate")
            .of_paper(TEAR),
    ],
);
