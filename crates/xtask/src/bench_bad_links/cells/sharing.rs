//! Several flows on one link: beside other protocols, beside one's own, one later or farther than the other.

use super::super::figure::GoalFigure;
use super::Goal::{AsEqual, AtLeast, AtMost, Between, OfBest, OfLeast};
use super::{BadLinkCell, CUBIC, cell};
use narrows_base::Duration;

pub(super) fn sharing() -> Vec<BadLinkCell> {
    let mut cells = Vec::new();
    for other in ["reno-1990", "reno", "cubic", "bbr"] {
        for (rate, delay, link) in [("10Mbit/s", "20ms", "10M"), ("50Mbit/s", "40ms", "50M")] {
            for n in [1, 4] {
                for buffer in ["0.5bdp", "1bdp", "2bdp", "4bdp"] {
                    let least = if other == "bbr" { 0.3 } else { 0.4 };
                    let goals = vec![Between(GoalFigure::Theta, least, 0.6)];
                    let name = format!("{n}+{n} {other}, {link}, {buffer}");
                    let spec = format!("{rate},{delay},queue={buffer}");
                    let c = cell("sharing", name, &spec, goals)
                        .flows(n)
                        .against(format!("{other}:{n}"))
                        .seconds(60)
                        .from(5)
                        .quick_if(n == 1 && rate == "10Mbit/s" || n == 4 && buffer == "1bdp");
                    cells.push(c);
                }
            }
        }
        for loss in ["1%", "5%"] {
            let spec = format!("10Mbit/s,20ms,queue=1bdp,loss={loss}");
            // The rival is the same protocol as the neighbour.
            let itself: &'static [&'static str] = match other {
                "reno-1990" => &["reno-1990"],
                "reno" => &["reno"],
                "cubic" => &["cubic"],
                _ => &["bbr"],
            };
            let goals = vec![OfBest(GoalFigure::Others, 0.9, itself)];
            let c = cell("sharing", format!("{other}, loss {loss}"), &spec, goals)
                .against(format!("{other}:1"))
                .seconds(60)
                .from(5);
            cells.push(c);
        }
        let spec = |buffer: &str| format!("10Mbit/s,20ms,queue={buffer}");
        for buffer in ["0.1bdp", "16bdp"] {
            // As equal as CUBIC is beside CUBIC there.
            let goals = vec![AsEqual(&["cubic"])];
            let name = format!("1+1 {other}, 10M, {buffer}");
            let mut c = cell("sharing", name, &spec(buffer), goals).against(format!("{other}:1"));
            c.neighbour.beside_rivals = Some("cubic:1");
            cells.push(c.seconds(60).from(5));
        }
    }
    cells
}

pub(super) fn several() -> Vec<BadLinkCell> {
    let link = "20Mbit/s,25ms,queue=125kB";
    let mut cells = Vec::new();
    for n in [2, 4] {
        let goals = vec![
            AtLeast(GoalFigure::Jain, 0.98),
            AtMost(GoalFigure::Queue, 15.0),
            AtLeast(GoalFigure::Rate, 0.9),
        ];
        let c = cell("several", format!("{n} flows, 20 Mbit/s"), link, goals).flows(n);
        cells.push(c.seconds(60).from(5).quick());
    }
    let wide = "100Mbit/s,45ms,queue=1bdp";
    for n in [10, 30, 100] {
        let c = cell(
            "several",
            format!("{n} flows, 100 Mbit/s"),
            wide,
            vec![AtMost(GoalFigure::Dropped, 0.02)],
        );
        cells.push(c.flows(n).seconds(30).quick_if(n == 30));
    }
    let quarter = "100Mbit/s,45ms,queue=0.25bdp";
    let c = cell(
        "several",
        "30 flows, a quarter of the buffer",
        quarter,
        vec![OfLeast(GoalFigure::Dropped, 1.0, CUBIC)],
    );
    cells.push(c.flows(30).seconds(30));
    cells
}

/// Half of an equal share from the fifth to the tenth second after the start.
pub(super) fn late_comers() -> Vec<BadLinkCell> {
    let mut cells = Vec::new();
    for (link, rate) in [("20Mbit/s,25ms,queue=1bdp", "20M"), ("100Mbit/s,50ms,queue=1bdp", "100M")]
    {
        for before in [1, 4] {
            let least = 0.5 / (before + 1) as f64;
            let goals = || vec![AtLeast(GoalFigure::Theta, least)];
            let late = |c: BadLinkCell| {
                let mut c = c.flows(before).seconds(30).from(25);
                c.neighbour.start = Duration::from_secs(20);
                c
            };
            let name = format!("late beside {before} of its own, {rate}");
            cells.push(late(cell("late comers", name, link, goals()).beside_itself(1)));
        }
        // The other way round: the protocol under test is the late one.
        for other in ["reno", "cubic", "bbr"] {
            let goals = vec![AtMost(GoalFigure::Theta, 0.75)];
            let name = format!("late beside {other}, {rate}");
            let mut c = cell("late comers", name, link, goals).against(format!("{other}:1"));
            c.start = Duration::from_secs(20);
            cells.push(c.seconds(30).from(25));
        }
    }
    cells
}

/// A flow of 20 ms beside one of 100 ms has at most three times its rate.
pub(super) fn round_trips() -> Vec<BadLinkCell> {
    let mut cells = Vec::new();
    // Products of the shorter and of the longer round trip.
    for (queue, what) in [("50kB", "of 20 ms"), ("250kB", "of 100 ms")] {
        let link = format!("20Mbit/s,10ms,queue={queue}");
        let name = format!("20 beside 100 ms, a product {what}");
        let goals = vec![AtLeast(GoalFigure::Theta, 0.25)];
        let mut c = cell("round trips", name, &link, goals).beside_itself(1);
        c.neighbour.access = Some("1Gbit/s/40ms");
        cells.push(c.seconds(60).from(20));
    }
    cells
}
