//! Named links: typical paths, with the sources of their figures.

use narrows_base::{Descriptor, SpecError, Status};

/// A built-in link with a name.
#[derive(Clone, Copy, Debug)]
pub struct NamedLink {
    /// Name, summary, source and validation status.
    pub descriptor: Descriptor,
    /// Its specification in full.
    pub spec: &'static str,
}

/// The default link of `compare`.
pub const DEFAULT: &str = "wireless";

const fn entry(
    name: &'static str,
    spec: &'static str,
    source: &'static str,
    summary: &'static str,
    status: Status,
) -> NamedLink {
    let descriptor =
        Descriptor { name, summary, source, senses: "-", sets: "-", params: &[], status };
    NamedLink { descriptor, spec }
}

/// The numbers are those of a paper.
const fn stated(by: &'static str) -> Status {
    Status::Validated(by)
}
const TYPICAL: &str = "round numbers, typical of such paths; not a measurement";

/// All named links.
pub const LINKS: &[NamedLink] = &[
    entry(
        "wireless",
        "1.5Mbit/s,80ms,queue=30p,loss=1%,access=10Mbit/s/0.1ms",
        "the ST-PD thesis, section 4.4",
        "the default: a lossy radio link behind a router",
        stated("the paper's own numbers"),
    ),
    entry(
        "geo",
        "1.5Mbit/s,250ms,queue=94p,access=10Mbit/s/0.2ms",
        "the ST-PD thesis, figure 4.19; the queue is one bandwidth-delay product, ours",
        "a geostationary satellite",
        stated("rate and delays are the paper's own"),
    ),
    entry(
        "geo-slow",
        "20kbit/s,300ms,queue=20p,loss=1%",
        "the RRTP thesis, table 4.2; the queue is ours",
        "a narrow satellite channel",
        stated("rate, delay and loss are the paper's own"),
    ),
    entry(
        "cdma",
        "144kbit/s,75ms,queue=30p,loss=1%",
        "the RRTP thesis, table 4.2 (CDMA 1xRTT); the queue is ours",
        "a third-generation cellular link",
        stated("rate, delay and loss are the paper's own"),
    ),
    entry(
        "wifi",
        "11Mbit/s,5ms,queue=100p,loss=1%",
        "the RRTP thesis, table 4.2 (WLAN); the queue is ours",
        "an 802.11b network",
        stated("rate, delay and loss are the paper's own"),
    ),
    entry(
        "base-station",
        "2Mbit/s,1ms,queue=20p,loss=1%,access=20Mbit/s/25ms",
        "Hu and Zha, topology F2; loss and queue are ours (the paper varies the loss)",
        "a lossy last hop behind a wide wired path",
        stated("rates and delays are the paper's own"),
    ),
    entry(
        "dsl",
        "1Mbit/s,10ms,queue=5p,access=15Mbit/s/0.5ms..2ms,egress=15Mbit/s/0.5ms..2ms",
        "Choi 2006, figure 3.2a",
        "a narrow wired line with a small buffer",
        stated("the paper's own numbers"),
    ),
    entry(
        "lan",
        "100Mbit/s,1ms,queue=100p,loss=0.1%",
        "the RRTP thesis, table 4.2; the queue is ours",
        "a local network with a faulty cable",
        stated("rate, delay and loss are the paper's own"),
    ),
    entry(
        "lte",
        "12Mbit/s,30ms,queue=500p,trace=cellular(mean=12Mbit/s),\
         reverse-rate=5Mbit/s,reverse-trace=cellular(mean=5Mbit/s,seed=2)",
        "rates, delay and queue are round numbers; the rate varies as the model `narrows list traces cellular`",
        "fourth-generation cellular: a rate that varies, losses hidden by retransmission, deep buffers",
        Status::NotValidated,
    ),
    entry(
        "cable",
        "20Mbit/s,10ms,queue=256kB,reverse-rate=2Mbit/s",
        TYPICAL,
        "a home's cable modem with a bloated buffer",
        Status::NotValidated,
    ),
    entry(
        "leo",
        "50Mbit/s,20ms,queue=250p,trace=cellular(mean=50Mbit/s,variation=0.3,every=0s),\
         loss=outage(at=15s,for=50ms,every=15s),\
         reverse-rate=10Mbit/s,reverse-trace=cellular(mean=10Mbit/s,variation=0.3,every=0s,seed=2)",
        TYPICAL,
        "a low-orbit satellite: a rate that varies, and losses at every handover",
        Status::NotValidated,
    ),
    entry(
        "lfn",
        "45Mbit/s,200ms,queue=1bdp,loss=0.01%",
        TYPICAL,
        "a long fat network (RFC 1323's sense): 2250 packets in flight",
        Status::NotValidated,
    ),
];

/// The link of that name.
///
/// # Errors
/// An unknown name, with a suggestion, and how a link is written.
pub fn find(name: &str) -> Result<&'static NamedLink, SpecError> {
    find_among(name, &[])
}

/// The same; the error may suggest one of the user's own names, which are not searched.
pub(crate) fn find_among(name: &str, own: &[String]) -> Result<&'static NamedLink, SpecError> {
    LINKS.iter().find(|e| e.descriptor.name == name).ok_or_else(|| {
        let own = own.iter().map(String::as_str);
        let names: Vec<&str> = LINKS.iter().map(|e| e.descriptor.name).chain(own).collect();
        let e = SpecError::unknown("link", name, &names).to_string();
        SpecError::new(format!("{e} (or write RATE,DELAY, such as 1.5Mbit/s,80ms)"))
    })
}
