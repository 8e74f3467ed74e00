//! The list of TCP's protocols, one per line, and the names of all protocols.

use narrows_base::SpecError;
use narrows_base::list::List;
use narrows_recovery::protocol::{self, LENT_STREAMS, PROTOCOLS, ProtocolEntry, STREAMS};

/// Papers, as docs/papers.md names them.
const STPD: &str = "the ST-PD thesis";
const WESTWOOD: &str = "Hu and Zha";

/// The protocols over TCP, in the order of tables.
pub static TCP_PROTOCOLS: List<ProtocolEntry> = List::new(
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
        .with(&["receiver-stamps"])
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
    ],
);

/// The protocols with a name of their own: Narrows' own first, and of these and of the added ones those over TCP first.
pub fn named() -> impl Iterator<Item = &'static ProtocolEntry> + Clone {
    let added = |list: &'static List<ProtocolEntry>| list.iter().skip(list.built_in().len());
    let own = TCP_PROTOCOLS.built_in().iter().chain(PROTOCOLS.built_in());
    own.chain(added(&TCP_PROTOCOLS)).chain(added(&PROTOCOLS))
}

/// The named protocols of Narrows itself. Does not end the time in which protocols can be added.
pub fn built_in() -> impl Iterator<Item = &'static ProtocolEntry> {
    TCP_PROTOCOLS.built_in().iter().chain(PROTOCOLS.built_in())
}

/// Every protocol name: the named ones, then `rrtp+NAME` for every controller. Lent controllers are not included.
pub fn every() -> impl Iterator<Item = &'static ProtocolEntry> + Clone {
    named().chain(STREAMS.iter())
}

/// Finds a listed protocol by its name. Papers call `reno` SACK TCP: it is also found as `sack`.
///
/// # Errors
/// An unknown name, with a suggestion.
pub fn find(name: &str) -> Result<&'static ProtocolEntry, SpecError> {
    let lent = TCP_PROTOCOLS.lent().into_iter().chain(PROTOCOLS.lent()).chain(LENT_STREAMS.lent());
    let entry_name = if name == "sack" { "reno" } else { name };
    protocol::find_among(entry_name, every().chain(lent.collect::<Vec<_>>()), named())
}
