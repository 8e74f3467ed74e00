//! The networks of each section, and their figures.

use super::criteria::{Criterion, CriterionMeasure, on, others, own};
use crate::compare::source;
use narrows_base::{Duration, Rate};
use narrows_link::{LinkChange, LossSpec};

const GOODPUT: CriterionMeasure = own("goodput", "goodput_bps");
const RTT: CriterionMeasure = own("mean RTT", "rtt_s_mean");
const DROPS: CriterionMeasure = own("dropped by the queue", "queue_loss_rate");
const THEIRS: CriterionMeasure = others("the others' goodput", "goodput_bps");
const THEIR_RTT: CriterionMeasure = others("their mean RTT", "rtt_s_mean");
const THEIR_DROPS: CriterionMeasure = others("dropped of theirs", "queue_loss_rate");

/// The default link.
const LINK: &str = "20Mbit/s,25ms,queue=1bdp";

/// All criteria, in the RFC's order.
///
/// # Errors
/// A part of a specification that is invalid.
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
    let sent =
        CriterionMeasure { per_second: true, less: true, ..own("packets sent", "sent_packets") };
    let file = |size: &str| source(&format!("transfer(size={size})")).map_err(|e| e.to_string());
    let completion = own("completion", "completion_s");
    let mut list = vec![
        on("5.1.1", "a dead path: from 3 s after it died", LINK, &[sent])
            .change_both(10, LinkChange::Loss(dead))
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
        ("10 flows, 0.5 BDP", "50Mbit/s,25ms,queue=0.5bdp", 10),
        ("50 flows, 1 BDP", "50Mbit/s,25ms,queue=1bdp", 50),
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
    // One BDP for the longer of the two.
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
    for (rival, name) in [("reno", "Reno"), ("cubic", "CUBIC"), ("bbr", "BBR")] {
        for buffer in ["0.5bdp", "1bdp", "4bdp"] {
            let what = format!("beside one {name}, buffer {buffer}");
            let link = format!("20Mbit/s,25ms,queue={buffer}");
            let c = on("5.2.1", &what, &link, &[THEIRS, GOODPUT, THEIR_DROPS]);
            list.push(c.beside(&format!("{rival}:1")).seconds(10, 60));
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
    let other_completion = others("their completion", "completion_s");
    list.push(
        on(
            "5.2.3",
            "10 CUBIC flows of 100 kB beside one of it",
            LINK,
            &[other_completion, GOODPUT],
        )
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

/// Sections 6 and 7, as far as they concern properties of paths.
fn paths() -> Result<Vec<Criterion>, String> {
    let mut list = Vec::new();
    for (what, link) in [
        ("1 Mbit/s, 100 ms RTT", "1Mbit/s,50ms,queue=1bdp"),
        ("10 Mbit/s, 20 ms RTT", "10Mbit/s,10ms,queue=1bdp"),
        ("100 Mbit/s, 100 ms RTT", "100Mbit/s,50ms,queue=1bdp"),
        ("100 Mbit/s, 100 ms RTT, 0.25 BDP", "100Mbit/s,50ms,queue=0.25bdp"),
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
    let delay = |ms| LinkChange::Delay(Duration::from_millis(ms));
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
    let rate = |mbps: f64| LinkChange::Rate(Rate::from_bps_f64(mbps * 1e6));
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
