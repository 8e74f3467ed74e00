//! The list of protocols over the packet sender, one per line.

use super::entry::{ProtocolEntry, STREAM_PREFIX};
use narrows_base::list::List;
use narrows_congestion::CONTROLLERS;
use std::sync::LazyLock;

/// `rrtp+NAME` for every controller: a stream over the datagram endpoint under that controller.
pub static STREAMS: LazyLock<Vec<ProtocolEntry>> = LazyLock::new(|| {
    let entry = |e: &narrows_congestion::ControllerEntry| {
        // Leaked once per process.
        let name = String::leak(format!("{STREAM_PREFIX}{}", e.descriptor.name));
        ProtocolEntry::stream(name, e.descriptor.name, e.descriptor.summary)
    };
    CONTROLLERS.iter().map(entry).collect()
});

/// `rrtp+NAME` for controllers that a program lends at run time.
pub static LENT_STREAMS: List<ProtocolEntry> = List::new("protocol", &[]);

/// Every protocol name: the list, then `rrtp+NAME` for every controller. Lent controllers are not included.
pub fn every() -> impl Iterator<Item = &'static ProtocolEntry> + Clone {
    PROTOCOLS.iter().chain(STREAMS.iter())
}

/// Papers, as docs/papers.md names them.
const TFWC: &str = "Choi 2006";
const RRTP: &str = "the RRTP thesis";
const TEAR: &str = "Jayaram 2001";

/// The protocols with a name of their own that run over sockets and in simulations, in the order of tables.
pub static PROTOCOLS: List<ProtocolEntry> = List::new(
    "protocol",
    &[
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
