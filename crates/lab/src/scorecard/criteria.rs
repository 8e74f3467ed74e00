//! RFC 9743's criteria as networks and figures.

use crate::compare::{Question, source};
use crate::measure::{self, Better};
use narrows_base::{Duration, Rate, SpecError};
use narrows_link::{Change, LossSpec};
use narrows_scenario::Scenario;
use narrows_scenario::access_link::AccessLink;
use narrows_scenario::scenario::{GroupProtocol, OwnLink, Scheduled};
use narrows_sim::SourceSpec;
use std::path::Path;

/// Sections of the RFC that are measured.
pub const SECTIONS: [(&str, &str); 17] = [
    ("5.1.1", "Protection against congestion collapse"),
    ("5.1.2", "Protection against bufferbloat"),
    ("5.1.3", "Protection against high packet loss"),
    ("5.1.4", "Fairness within the proposed algorithm"),
    ("5.1.5", "Short flows"),
    ("5.2.1", "Existing general-purpose congestion control"),
    ("5.2.2", "Real-time congestion control"),
    ("5.2.3", "Short and long flows"),
    ("6.1", "Paths with tail-drop queues"),
    ("6.4", "Wireless paths"),
    ("7.1", "Active queue management"),
    ("7.2", "Paths with varying delay"),
    ("7.3", "Internet of Things"),
    ("7.4", "Paths with high delay"),
    ("7.6", "Extreme packet reordering"),
    ("7.7", "Transient events"),
    ("7.9", "Data centers"),
];

/// Sections that no simulation answers, and what does.
pub const NOT_SIMULATED: [(&str, &str, &str); 5] = [
    ("5.3.1", "Differences with congestion control principles", "for the author to explain"),
    ("5.3.2", "Incremental deployment", "for the author to explain"),
    ("6.2", "Tunnel behavior", "nothing here depends on signals of routers but ECN's"),
    ("7.5", "Misbehaving nodes", "depends on the transport; for rrtp see docs/security.md"),
    ("7.8", "Multipath transport", "one path only"),
];

/// Something that is measured of a group of flows.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What it says, for tables.
    pub title: &'static str,
    /// Whose: 0 is the controller's flows, 1 the others.
    pub group: usize,
    /// A measure's name.
    pub measure: &'static str,
    /// Divided by the measured time.
    pub per_second: bool,
    /// If the measure itself has no better direction.
    less: bool,
}

impl Figure {
    /// Which direction is better.
    pub fn more_is_better(&self) -> bool {
        !self.less && measure::find(self.measure).is_none_or(|m| m.better != Better::Less)
    }
    /// Whether it is a time until something happened.
    pub fn is_a_time(&self) -> bool {
        matches!(self.measure, "completion_s" | "takeup_s" | "halving_s")
    }
    /// Its value with a unit.
    pub fn text(&self, x: f64) -> String {
        let unit = measure::find(self.measure).map_or("", |m| m.unit);
        match (unit, self.per_second) {
            _ if !x.is_finite() => "-".into(),
            (_, true) => format!("{x:.1}/s"),
            ("bit/s", _) if x.abs() >= 9.95e7 => format!("{:.1} Mbit/s", x * 1e-6),
            ("bit/s", _) if x.abs() >= 9.95e5 => format!("{:.2} Mbit/s", x * 1e-6),
            ("bit/s", _) => format!("{:.1} kbit/s", x * 1e-3),
            ("s", _) if x < 0.00995 => format!("{:.2} ms", x * 1e3),
            ("s", _) if x < 10.0 => format!("{:.0} ms", x * 1e3),
            ("s", _) => format!("{x:.1} s"),
            ("fraction", _) if self.measure.ends_with("rate") => format!("{:.2}%", x * 100.0),
            _ => format!("{x:.3}"),
        }
    }
}

const fn own(title: &'static str, measure: &'static str) -> Figure {
    Figure { title, group: 0, measure, per_second: false, less: false }
}
const fn others(title: &'static str, measure: &'static str) -> Figure {
    Figure { group: 1, ..own(title, measure) }
}

const GOODPUT: Figure = own("goodput", "goodput_bps");
const RTT: Figure = own("mean RTT", "rtt_s_mean");
const DROPS: Figure = own("dropped by the queue", "queue_loss_rate");
const THEIRS: Figure = others("the others' goodput", "goodput_bps");
const THEIR_RTT: Figure = others("their mean RTT", "rtt_s_mean");
const THEIR_DROPS: Figure = others("dropped of theirs", "queue_loss_rate");

/// A network, and what is measured on it.
#[derive(Clone, Debug)]
pub struct Criterion {
    /// Section of RFC 9743.
    pub section: &'static str,
    /// The network in words.
    pub what: String,
    /// What is measured.
    pub figures: Vec<Figure>,
    question: Question,
    changes: Vec<(Duration, Change, bool)>,
    second: Second,
}

/// What differs between the second group and the flows under test.
#[derive(Clone, Debug, Default)]
struct Second {
    /// Speaks what the flows under test speak.
    same: bool,
    start: Duration,
    source: Option<SourceSpec>,
    access: Option<&'static str>,
}

impl Criterion {
    /// Its scenario with these protocols in turn.
    ///
    /// # Errors
    /// Protocols that do not exist.
    pub fn scenario(
        &self,
        protocols: String,
        seeds: u32,
        seed: u64,
    ) -> Result<Scenario, SpecError> {
        let question = Question { protocols, seeds, seed, ..self.question.clone() };
        let (mut scenario, _) = question.scenario(Path::new(""))?;
        for (at, change, both_ways) in &self.changes {
            let links = ["bottleneck", "bottleneck.back"];
            for link in links.into_iter().take(if *both_ways { 2 } else { 1 }) {
                let (at, change) = (*at, change.clone());
                scenario.changes.push(Scheduled { at, link: link.into(), change, line: 0 });
            }
        }
        if let Some(group) = scenario.flows.get_mut(1) {
            if self.second.same {
                group.speaks = GroupProtocol::Each;
            }
            group.start = self.second.start;
            if let Some(source) = &self.second.source {
                group.source = source.clone();
            }
            if let Some(text) = self.second.access {
                let side = AccessLink::parse(text)?;
                group.access = Some(OwnLink { side, stream: "access" });
            }
        }
        Ok(scenario)
    }

    fn flows(mut self, flows: usize) -> Criterion {
        self.question.flows = flows;
        self
    }
    fn beside(mut self, who: &str) -> Criterion {
        self.question.against = Some(who.into());
        self
    }
    /// Beside flows of the same controller that begin later, or have links of their own.
    fn beside_itself(
        mut self,
        flows: usize,
        start_s: u64,
        access: Option<&'static str>,
    ) -> Criterion {
        self.question.against = Some(format!("reno:{flows}"));
        self.second =
            Second { same: true, start: Duration::from_secs(start_s), source: None, access };
        self
    }
    fn others_send(mut self, source: SourceSpec) -> Criterion {
        self.second.source = Some(source);
        self
    }
    fn others_start(mut self, start_s: u64) -> Criterion {
        self.second.start = Duration::from_secs(start_s);
        self
    }
    fn sends(mut self, source: SourceSpec) -> Criterion {
        self.question.source = source;
        self
    }
    fn seconds(mut self, from: u64, until: u64) -> Criterion {
        self.question.warmup = Duration::from_secs(from);
        self.question.duration = Duration::from_secs(until);
        self
    }
    fn change(mut self, at_s: u64, change: Change) -> Criterion {
        self.changes.push((Duration::from_secs(at_s), change, false));
        self
    }
    fn change_both(mut self, at_s: u64, change: Change) -> Criterion {
        self.changes.push((Duration::from_secs(at_s), change, true));
        self
    }
}

fn on(section: &'static str, what: &str, link: &str, figures: &[Figure]) -> Criterion {
    let question = Question {
        link: link.into(),
        duration: Duration::from_secs(30),
        packet: 1500,
        ..Question::default()
    };
    Criterion {
        section,
        what: what.into(),
        figures: figures.to_vec(),
        question,
        changes: Vec::new(),
        second: Second::default(),
    }
}

/// Where nothing else is said.
const LINK: &str = "20Mbit/s,25ms,queue=1bdp";

/// All of them, in the RFC's order.
///
/// # Errors
/// A part of a specification that does not parse.
pub fn all() -> Result<Vec<Criterion>, String> {
    let mut list = alone()?;
    list.extend(mixed()?);
    list.extend(paths()?);
    list.extend(events()?);
    Ok(list)
}

/// Section 5.1.
fn alone() -> Result<Vec<Criterion>, String> {
    let dead = LossSpec::parse_all("100%").map_err(|e| e.to_string())?;
    let sent = Figure { per_second: true, less: true, ..own("packets sent", "sent_packets") };
    let file = |size: &str| source(&format!("transfer(size={size})")).map_err(|e| e.to_string());
    let completion = own("completion", "completion_s");
    let mut list = vec![
        on("5.1.1", "nothing arrives any more: from 3 s after the path died", LINK, &[sent])
            .change_both(10, Change::Loss(dead))
            .seconds(13, 43),
        on(
            "5.1.1",
            "100 flows where each has 10 kbit/s",
            "1Mbit/s,25ms,queue=20p",
            &[GOODPUT, DROPS],
        )
        .flows(100)
        .seconds(10, 60),
    ];
    for (what, link) in [
        ("a buffer of 2 s", "20Mbit/s,25ms,queue=5MB"),
        ("a buffer of 4 products", "20Mbit/s,25ms,queue=4bdp"),
        ("a buffer of 1 s at 1 Mbit/s", "1Mbit/s,25ms,queue=125kB"),
    ] {
        list.push(on("5.1.2", what, link, &[RTT, GOODPUT]));
    }
    for (what, link, flows) in [
        ("one flow, a buffer of a tenth of the product", "20Mbit/s,25ms,queue=0.1bdp", 1),
        ("10 flows, half a product", "50Mbit/s,25ms,queue=0.5bdp", 10),
        ("50 flows, one product", "50Mbit/s,25ms,queue=1bdp", 50),
    ] {
        list.push(on("5.1.3", what, link, &[DROPS, GOODPUT]).flows(flows).seconds(5, 30));
    }
    let jain = own("Jain's index", "jain");
    for flows in [2, 4, 16] {
        let c = on("5.1.4", &format!("{flows} flows"), LINK, &[jain.clone(), RTT]);
        list.push(c.flows(flows).seconds(10, 60));
    }
    let late = others("the newcomer's part", "share");
    list.push(
        on("5.1.4", "a newcomer, 5 to 10 s after its start", LINK, &[late])
            .beside_itself(1, 20, None)
            .seconds(25, 30),
    );
    // A product for the longer of the two.
    let far = others("part of the flow of 150 ms", "share");
    list.push(
        on(
            "5.1.4",
            "beside itself with an RTT of 150 ms instead of 50",
            "20Mbit/s,25ms,queue=2bdp",
            &[far],
        )
        .beside_itself(1, 0, Some("1Gbit/s/50ms"))
        .seconds(20, 120),
    );
    for size in ["10kB", "100kB", "1MB"] {
        let c = on(
            "5.1.5",
            &format!("{size} on an idle path"),
            LINK,
            std::slice::from_ref(&completion),
        );
        list.push(c.sends(file(size)?));
    }
    list.push(
        on(
            "5.1.5",
            "100 kB beside a long flow of its own",
            LINK,
            &[others("completion", "completion_s")],
        )
        .beside_itself(1, 15, None)
        .others_send(file("100kB")?),
    );
    Ok(list)
}

/// Section 5.2.
fn mixed() -> Result<Vec<Criterion>, String> {
    let mut list = Vec::new();
    for (who, name) in [("sack", "Reno"), ("cubic", "CUBIC"), ("bbr", "BBR")] {
        for buffer in ["0.5bdp", "1bdp", "4bdp"] {
            let what = format!("beside one {name}, buffer {buffer}");
            let link = format!("20Mbit/s,25ms,queue={buffer}");
            let c = on("5.2.1", &what, &link, &[THEIRS, GOODPUT, THEIR_DROPS]);
            list.push(c.beside(&format!("{who}:1")).seconds(10, 60));
        }
    }
    let c = on("5.2.1", "one beside 8 CUBIC", "50Mbit/s,25ms,queue=1bdp", &[THEIRS, GOODPUT]);
    list.push(c.beside("cubic:8").seconds(10, 60));
    let c = on("5.2.1", "8 beside one CUBIC", "50Mbit/s,25ms,queue=1bdp", &[THEIRS, GOODPUT]);
    list.push(c.flows(8).beside("cubic:1").seconds(10, 60));
    let media = source("cbr(rate=1Mbit/s)").map_err(|e| e.to_string())?;
    for buffer in ["1bdp", "4bdp"] {
        let what = format!("beside a call of 1 Mbit/s (TFRC), buffer {buffer}");
        let link = format!("20Mbit/s,25ms,queue={buffer}");
        let c = on("5.2.2", &what, &link, &[THEIRS, THEIR_RTT, THEIR_DROPS]);
        list.push(c.beside("tfrc:1").others_send(media.clone()).seconds(10, 60));
    }
    let web = source("transfer(size=100kB)").map_err(|e| e.to_string())?;
    let theirs = others("their completion", "completion_s");
    list.push(
        on("5.2.3", "10 CUBIC flows of 100 kB beside one of it", LINK, &[theirs, GOODPUT])
            .beside("cubic:10")
            .others_send(web)
            .others_start(15),
    );
    let own_completion = own("completion", "completion_s");
    list.push(
        on("5.2.3", "its 100 kB beside a long CUBIC", LINK, &[own_completion])
            .sends(source("transfer(size=100kB)").map_err(|e| e.to_string())?)
            .beside("cubic:1"),
    );
    Ok(list)
}

/// Sections 6 and 7 as far as they are about how a path is.
fn paths() -> Result<Vec<Criterion>, String> {
    let mut list = Vec::new();
    for (what, link) in [
        ("1 Mbit/s, 100 ms RTT", "1Mbit/s,50ms,queue=1bdp"),
        ("10 Mbit/s, 20 ms RTT", "10Mbit/s,10ms,queue=1bdp"),
        ("100 Mbit/s, 100 ms RTT", "100Mbit/s,50ms,queue=1bdp"),
        ("100 Mbit/s, 100 ms RTT, a quarter of the product", "100Mbit/s,50ms,queue=0.25bdp"),
    ] {
        list.push(on("6.1", what, link, &[GOODPUT, RTT, DROPS]));
    }
    for (what, link) in [
        ("1% random loss", "20Mbit/s,25ms,queue=1bdp,loss=1%"),
        ("5% loss in bursts of 4", "20Mbit/s,25ms,queue=1bdp,loss=ge(g=0.013157895,h=0.25)"),
        ("Wi-Fi", "wifi"),
        ("LTE", "lte"),
    ] {
        list.push(on("6.4", what, link, &[GOODPUT, RTT]));
    }
    for aqm in ["codel", "fq-codel", "pie", "red"] {
        let link = format!("20Mbit/s,25ms,queue=1000p,aqm={aqm}");
        list.push(on("7.1", aqm, &link, &[GOODPUT, RTT, DROPS]));
    }
    let c = on(
        "7.1",
        "beside one CUBIC, fq-codel",
        "20Mbit/s,25ms,queue=1000p,aqm=fq-codel",
        &[THEIRS, GOODPUT],
    );
    list.push(c.beside("cubic:1").seconds(10, 60));
    list.push(on(
        "7.2",
        "20 ms of jitter",
        "20Mbit/s,25ms,queue=1bdp,jitter=20ms",
        &[GOODPUT, RTT],
    ));
    let delay = |ms| Change::Delay(Duration::from_millis(ms));
    list.push(
        on(
            "7.2",
            "RTT from 50 to 150 ms at 10 s, from then on",
            "20Mbit/s,25ms,queue=2bdp",
            &[GOODPUT, DROPS],
        )
        .change(10, delay(125))
        .seconds(10, 30),
    );
    list.push(
        on(
            "7.2",
            "RTT from 150 to 50 ms at 10 s, from then on",
            "20Mbit/s,75ms,queue=1bdp",
            &[GOODPUT, RTT],
        )
        .change(10, delay(0))
        .seconds(10, 30),
    );
    list.push(
        on("7.3", "50 kbit/s, 300 ms RTT, 5 packets", "50kbit/s,150ms,queue=5p", &[GOODPUT, DROPS])
            .seconds(0, 120),
    );
    list.push(on("7.4", "a geostationary satellite", "geo", &[GOODPUT, RTT]).seconds(0, 60));
    list.push(on(
        "7.6",
        "a quarter of the packets 10 ms late",
        "20Mbit/s,25ms,queue=1bdp,reorder=25%/10ms",
        &[GOODPUT, own("packets sent twice", "retransmissions")],
    ));
    let c = on(
        "7.9",
        "1 Gbit/s, 0.2 ms RTT, 8 flows",
        "1Gbit/s,0.1ms,queue=100p",
        &[GOODPUT, RTT, DROPS],
    );
    list.push(c.flows(8).seconds(0, 3));
    Ok(list)
}

/// Section 7.7.
fn events() -> Result<Vec<Criterion>, String> {
    let rate = |mbps: f64| Change::Rate(Rate::from_bps_f64(mbps * 1e6));
    let list = vec![
        on("7.7", "from 20 to 2 Mbit/s at 10 s, the 10 s after", LINK, &[RTT, DROPS])
            .change(10, rate(2.0))
            .seconds(10, 20),
        on("7.7", "from 2 to 20 Mbit/s at 10 s", "2Mbit/s,25ms,queue=125kB", &[own("until 80% is used", "takeup_s")])
            .change(10, rate(20.0))
            .seconds(0, 40),
        on(
            "7.7",
            "10 CUBIC flows begin at 10 s, the 5 s after",
            LINK,
            &[THEIRS, others("dropped of theirs", "queue_loss_rate"), DROPS],
        )
        .beside("cubic:10")
        .others_start(10)
        .seconds(10, 15),
        on(
            "7.7",
            "no packet for 5 s from 10 s on, the 5 s after",
            "20Mbit/s,25ms,queue=1bdp,loss=outage(at=10s,for=5s),reverse-loss=outage(at=10s,for=5s)",
            &[GOODPUT],
        )
        .seconds(15, 20),
    ];
    Ok(list)
}
