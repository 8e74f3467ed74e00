//! Cells about the ends of a transfer: short transfers, and the path of acknowledgements.

use super::super::figure::GoalFigure;
use super::Goal::{AtLeast, AtMost, OfBest, OfLeast};
use super::{BadLinkCell, CUBIC, CUBIC_10, cell};
use narrows_lab::compare::source;

pub(super) fn short() -> Result<Vec<BadLinkCell>, String> {
    let mut cells = Vec::new();
    for (name, link) in [
        ("i", "20Mbit/s,25ms,queue=125kB,loss=1%"),
        ("ii", "1.5Mbit/s,250ms,queue=93750B,loss=1%"),
        ("iv", "100Mbit/s,50ms,queue=1250kB,loss=0.1%"),
    ] {
        for size in ["10kB", "100kB", "1MB"] {
            let goals = vec![OfLeast(GoalFigure::Completion, 1.0, CUBIC_10)];
            let mut c = cell("short", format!("{size} on {name}"), link, goals).seconds(60).quick();
            c.question.source =
                source(&format!("transfer(size={size})")).map_err(|e| e.to_string())?;
            cells.push(c);
        }
    }
    Ok(cells)
}

pub(super) fn return_paths() -> Vec<BadLinkCell> {
    let of_cubic = || vec![OfBest(GoalFigure::Goodput, 0.9, CUBIC)];
    let mut cells = vec![
        cell("return path", "lte, cubic upload", "lte", of_cubic()).reverse("cubic:1").quick(),
        cell("return path", "cable, cubic upload", "cable", of_cubic()).reverse("cubic:1").quick(),
    ];
    for percent in [10, 30, 50] {
        let link = format!("20Mbit/s,25ms,queue=125kB,reverse-loss={percent}%");
        let name = format!("{percent}% of the ACKs lost");
        let goals = vec![AtLeast(GoalFigure::Rate, 0.9), AtMost(GoalFigure::Queue, 10.0)];
        cells.push(cell("return path", name, &link, goals).quick_if(percent == 50));
    }
    // A tenth of the return path, or a report of 64 bytes in a base RTT.
    let acks = |most: f64| AtMost(GoalFigure::Acks, most.max(0.1));
    let upload = "20Mbit/s,20ms,queue=100kB,reverse-rate=1Mbit/s";
    let goals = || vec![OfBest(GoalFigure::Goodput, 0.9, CUBIC), acks(0.0)];
    for queue in ["", ",reverse-queue=20p"] {
        let name = format!("1 Mbit/s{queue}, cubic upload").replace("reverse-queue=", "queue of ");
        let link = format!("{upload}{queue}");
        cells.push(cell("return path", name, &link, goals()).reverse("cubic:1").quick());
    }
    for (name, rate, kbps) in
        [("a hundredth", "200kbit/s", 200.0), ("a three hundredth", "66kbit/s", 66.0)]
    {
        for loss in ["", ",loss=1%"] {
            let queue = "queue=100kB,reverse-queue=20p";
            let link = format!("20Mbit/s,20ms,{queue},reverse-rate={rate}{loss}");
            let goals =
                vec![OfBest(GoalFigure::Goodput, 0.9, CUBIC), acks(64.0 * 8.0 / 40.0 / kbps)];
            cells.push(cell("return path", format!("{name}{loss}"), &link, goals).quick());
        }
    }
    cells
}
