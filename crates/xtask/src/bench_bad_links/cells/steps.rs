//! Links that change while they are used.

use super::super::figure::GoalFigure;
use super::Goal::{AtMost, OfBest, OfLeast};
use super::{BadLinkCell, RIVALS, cell};
use narrows_base::{Duration, Rate};
use narrows_link::LinkChange;

pub(super) fn steps() -> Result<Vec<BadLinkCell>, String> {
    let rate = |mbps: f64| LinkChange::Rate(Rate::from_bps_f64(mbps * 1e6));
    let delay = |ms: u64| LinkChange::Delay(Duration::from_millis(ms));
    let link = "20Mbit/s,25ms,queue=125kB";
    // Ten round trips, and no less than a second.
    let recovered = |base_rtt_s: f64| AtMost(GoalFigure::Recovered, (10.0 * base_rtt_s).max(1.0));
    // The packets in flight after a step by a factor of ten must drain: 9 base round trips at least.
    let drained = |base_rtt_s: f64| AtMost(GoalFigure::Drained, 13.0 * base_rtt_s);
    let mut cells = vec![
        cell("steps", "20 to 2 Mbit/s", link, vec![drained(0.05)])
            .change(10.0, rate(2.0))
            .step(10.0, 2e6, 0.05)
            .seconds(25),
        cell(
            "steps",
            "20 to 2 Mbit/s, 1 MB of queue",
            "20Mbit/s,25ms,queue=1MB",
            vec![drained(0.05)],
        )
        .change(10.0, rate(2.0))
        .step(10.0, 2e6, 0.05)
        .seconds(25),
        cell("steps", "2 to 20 Mbit/s", "2Mbit/s,25ms,queue=125kB", vec![recovered(0.05)])
            .change(10.0, rate(20.0))
            .step(10.0, 20e6, 0.05)
            .quick(),
        cell("steps", "RTT times 3", link, vec![recovered(0.15)])
            .change(10.0, delay(125))
            .step(10.0, 20e6, 0.15)
            .seconds(25)
            .quick(),
        cell("steps", "RTT a third", "20Mbit/s,75ms,queue=375kB", vec![recovered(0.05)])
            .change(10.0, delay(25))
            .step(10.0, 20e6, 0.1),
    ];
    // Probes are sent every 2 s at least; measurement begins with the first packet that passes.
    let outage = |name: &str, link: &str, for_s: f64, base_rtt_s: f64| {
        // `link` may end in losses of its own.
        let (plus, text) = (if link.contains("loss=") { "+" } else { ",loss=" }, "outage(at=10s");
        let link = format!("{link}{plus}{text},for={for_s}s),reverse-loss={text},for={for_s}s)");
        let end = 10.0 + for_s;
        let goals = vec![AtMost(GoalFigure::Resumed, 2.1), recovered(base_rtt_s)];
        cell("steps", name, &link, goals).seconds(end as u64 + 15).step(end, 20e6, base_rtt_s)
    };
    for seconds in [1, 5, 20] {
        let name = format!("outage of {seconds} s");
        cells.push(outage(&name, link, f64::from(seconds), 0.05).quick_if(seconds == 5));
    }
    let lossy = format!("{link},loss=1%");
    cells.push(outage("outage of 5 s, 1% loss", &lossy, 5.0, 0.05));
    let long = "20Mbit/s,250ms,queue=1250kB";
    cells.push(outage("outage of 5 s, RTT 500 ms", long, 5.0, 0.5));
    let handover = outage("outage of 1 s, then RTT times 3", link, 1.0, 0.15);
    cells.push(handover.change(10.5, delay(125)));
    let slower = outage("outage of 1 s, then a tenth of the rate", link, 1.0, 0.05);
    cells.push(slower.change(10.5, rate(2.0)).step(11.0, 2e6, 0.05));
    // Packets in flight are held for this time and then delivered at once, as in a base station's hand-over.
    for (seconds, base_rtt_s) in [(1.0, 0.05), (3.0, 0.05)] {
        let held = LinkChange::Delay(Duration::from_secs_f64(seconds));
        let goals = vec![recovered(base_rtt_s)];
        let c = cell("steps", format!("a stall of {seconds} s, nothing lost"), link, goals)
            .change(10.0, held)
            .change(10.1, delay(25))
            .step(10.0 + seconds, 20e6, base_rtt_s)
            .seconds(25);
        cells.push(c);
    }
    // A cellular trace as a random walk in factors of 1.4 between 0.5 and 20 Mbit/s, a step each 0.2 s.
    let mut walk = cell(
        "steps",
        "walk from 0.5 to 20 Mbit/s",
        "6Mbit/s,25ms,queue=500kB",
        vec![
            OfBest(GoalFigure::Goodput, 0.85, RIVALS),
            OfLeast(GoalFigure::Rtt, 1.5, &["rrtp+stpd"]),
        ],
    )
    .seconds(60)
    .quick();
    let (mut mbps, mut state) = (6.0f64, 0x9e37_79b9_7f4a_7c15_u64);
    for i in 1..290 {
        state = narrows_base::random::mix(state);
        let up = state & 1 == 1;
        mbps = (if up { mbps * 1.4 } else { mbps / 1.4 }).clamp(0.5, 20.0);
        walk = walk.change(0.2 * f64::from(i), rate(mbps));
    }
    cells.push(walk);
    Ok(cells)
}
