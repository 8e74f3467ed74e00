//! One flow on links with loss, delay, reordering, policers or large queues.

use super::super::figure::GoalFigure;
use super::Goal::{AtLeast, AtMost, OfBest};
use super::{BadLinkCell, RIVALS, cell};

pub(super) fn losses() -> Vec<BadLinkCell> {
    let mut cells = Vec::new();
    for told in [false, true] {
        for bursts in [false, true] {
            for percent in [1.0, 5.0, 10.0, 15.0, 20.0, 30.0] {
                let loss = percent / 100.0;
                let how = if bursts {
                    format!("ge(g={:.9},h=0.25)", 0.25 * loss / (1.0 - loss))
                } else {
                    format!("{percent}%")
                };
                let link = format!("20Mbit/s,25ms,queue=125kB,loss={how}");
                let goals = vec![
                    AtLeast(GoalFigure::Rate, if told { 0.95 } else { 0.90 }),
                    AtMost(GoalFigure::Wire, 1.1),
                    AtMost(GoalFigure::Queue, 10.0),
                ];
                let kind = if bursts { "bursts of 4" } else { "uniform" };
                let what = if told { ", given the rate" } else { "" };
                let mut cell = cell("loss", format!("{percent}% {kind}{what}"), &link, goals)
                    .quick_if(!bursts || !told);
                cell.loss = loss;
                if told {
                    cell.told = "rate=20Mbit/s";
                }
                cells.push(cell);
            }
        }
    }
    cells
}

pub(super) fn delays() -> Vec<BadLinkCell> {
    let mut cells = Vec::new();
    for jitter in [2, 5, 10, 20, 40] {
        let link = format!("50Mbit/s,25ms,jitter={jitter}ms");
        cells.push(
            cell(
                "delay",
                format!("jitter {jitter} ms"),
                &link,
                vec![AtLeast(GoalFigure::Rate, 0.90)],
            )
            .quick(),
        );
    }
    let reorder = vec![AtLeast(GoalFigure::Rate, 0.90), AtMost(GoalFigure::Spurious, 0.01)];
    cells.push(
        cell("delay", "reorder 25% by 10 ms", "20Mbit/s,25ms,reorder=25%/10ms", reorder).quick(),
    );
    let both = "50Mbit/s,25ms,jitter=7ms,loss=1%";
    let mut c =
        cell("delay", "jitter 7 ms, loss 1%", both, vec![AtLeast(GoalFigure::Rate, 0.88)]).quick();
    c.loss = 0.01;
    cells.push(c);
    for jitter in [20, 50, 100] {
        let link = format!("20Mbit/s,25ms,jitter={jitter}ms,reverse-jitter={jitter}ms,loss=1%");
        let goals = vec![OfBest(GoalFigure::Goodput, 0.97, RIVALS)];
        let mut c = cell("delay", format!("jitter {jitter} ms both ways, loss 1%"), &link, goals);
        c.loss = 0.01;
        cells.push(c);
    }
    cells
}

pub(super) fn named() -> Vec<BadLinkCell> {
    let mut cells: Vec<BadLinkCell> = narrows_scenario::links::LINKS
        .iter()
        .map(|l| {
            let name = l.descriptor.name;
            cell("named links", name, name, vec![OfBest(GoalFigure::Goodput, 0.97, RIVALS)])
        })
        .collect();
    for (name, link) in [
        ("i", "20Mbit/s,25ms,queue=125kB,loss=1%"),
        ("ii", "1.5Mbit/s,250ms,queue=93750B,loss=1%"),
        ("iii", "144kbit/s,75ms,queue=2700B,loss=1%"),
        ("iv", "100Mbit/s,50ms,queue=1250kB,loss=0.1%"),
    ] {
        let goals = vec![OfBest(GoalFigure::Goodput, 0.97, RIVALS)];
        cells.push(cell("named links", name, link, goals).seconds(60).quick());
    }
    let bloat = "20Mbit/s,25ms,queue=12500kB";
    let goals = vec![AtLeast(GoalFigure::Rate, 0.9), AtMost(GoalFigure::Queue, 10.0)];
    cells.push(cell("named links", "5 s of bloat", bloat, goals).quick());
    cells
}

pub(super) fn queues() -> Vec<BadLinkCell> {
    let mut cells = Vec::new();
    for aqm in ["codel", "fq-codel", "pie", "red"] {
        let link = format!("20Mbit/s,25ms,queue=1000p,aqm={aqm}");
        cells.push(cell("AQM", aqm, &link, vec![OfBest(GoalFigure::Goodput, 0.9, RIVALS)]).quick());
    }
    cells
}

/// A policer has no queue, so its drops are the only signal to a sender.
pub(super) fn policers() -> Vec<BadLinkCell> {
    let mut cells = Vec::new();
    // 62.5 kB are a BDP at the policer's rate, 625 kB at the link's.
    for burst in ["15kB", "60kB", "625kB"] {
        let link = format!("100Mbit/s,25ms,policer=10Mbit/s/{burst}");
        // Headers are 1/21 of the wire's bytes.
        let goals = vec![
            AtLeast(GoalFigure::Goodput, 0.9 * 10.0 / 1.05),
            AtMost(GoalFigure::Dropped, 0.03),
        ];
        cells.push(cell("policers", format!("10 Mbit/s, {burst}"), &link, goals).from(2).quick());
    }
    cells
}

pub(super) fn tiny() -> Vec<BadLinkCell> {
    let mut cells = Vec::new();
    for (rate, delay, packets) in [
        ("100Mbit/s", "0.05ms", 1),
        ("24Mbit/s", "0.5ms", 1),
        ("24Mbit/s", "0.5ms", 10),
        ("1Gbit/s", "0.05ms", 10),
        ("1Gbit/s", "0.5ms", 10),
    ] {
        let link = format!("{rate},{delay},queue={packets}p");
        let goals =
            vec![OfBest(GoalFigure::Goodput, 0.9, RIVALS), AtMost(GoalFigure::Dropped, 0.02)];
        let name = format!("{rate}, {delay}, {packets} packets");
        let seconds = if rate == "1Gbit/s" { 3 } else { 10 };
        cells.push(cell("tiny queues", name, &link, goals).seconds(seconds).quick());
    }
    cells
}
