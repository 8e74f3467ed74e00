//! The cells: links, what shares them, what happens on them, and how good it must be.

use super::figure::Figure;
use narrows_base::{Duration, Rate};
use narrows_lab::Question;
use narrows_lab::compare::source;
use narrows_link::Change;

/// What a figure must be.
#[derive(Clone, Debug)]
pub enum Goal {
    /// At least this.
    AtLeast(Figure, f64),
    /// At most this.
    AtMost(Figure, f64),
    /// Between these.
    Between(Figure, f64, f64),
    /// At least this part of the best of these protocols' medians in the same cell.
    OfBest(Figure, f64, &'static [&'static str]),
    /// At most this multiple of the least of these protocols' medians.
    OfLeast(Figure, f64, &'static [&'static str]),
}

impl Goal {
    pub fn figure(&self) -> Figure {
        match self {
            Goal::AtLeast(f, _)
            | Goal::AtMost(f, _)
            | Goal::Between(f, ..)
            | Goal::OfBest(f, ..)
            | Goal::OfLeast(f, ..) => *f,
        }
    }
    pub fn rivals(&self) -> &'static [&'static str] {
        match self {
            Goal::OfBest(_, _, rivals) | Goal::OfLeast(_, _, rivals) => rivals,
            _ => &[],
        }
    }
}

/// The last change of a run: when, and what there is after it.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub at_s: f64,
    pub rate_bps: f64,
    pub base_rtt_s: f64,
}

/// A link under some conditions, and its goals.
#[derive(Clone, Debug)]
pub struct Cell {
    pub table: &'static str,
    pub name: String,
    pub question: Question,
    /// What the protocol under test is told: parameters in parentheses.
    pub told: &'static str,
    /// Share of packets that the link loses.
    pub loss: f64,
    pub changes: Vec<(Duration, Change)>,
    pub step: Option<Step>,
    pub goals: Vec<Goal>,
    /// Measured by `--quick`.
    pub quick: bool,
}

use Goal::{AtLeast, AtMost, Between, OfBest, OfLeast};

/// What a named link is compared with.
const RIVALS: &[&str] = &["rrtp+cubic", "rrtp+bbr", "rrtp+stpd"];
const CUBIC: &[&str] = &["rrtp+cubic"];

fn cell(table: &'static str, name: impl Into<String>, link: &str, goals: Vec<Goal>) -> Cell {
    let question = Question {
        link: link.into(),
        protocols: "rrtp".into(),
        duration: Duration::from_secs(20),
        packet: 1500,
        ..Question::default()
    };
    Cell {
        table,
        name: name.into(),
        question,
        told: "",
        loss: 0.0,
        changes: Vec::new(),
        step: None,
        goals,
        quick: false,
    }
}

impl Cell {
    fn quick(mut self) -> Cell {
        self.quick = true;
        self
    }
    fn quick_if(mut self, quick: bool) -> Cell {
        self.quick = quick;
        self
    }
    fn seconds(mut self, seconds: u64) -> Cell {
        self.question.duration = Duration::from_secs(seconds);
        self
    }
    fn from(mut self, seconds: u64) -> Cell {
        self.question.warmup = Duration::from_secs(seconds);
        self
    }
    fn flows(mut self, flows: usize) -> Cell {
        self.question.flows = flows;
        self
    }
    fn against(mut self, who: String) -> Cell {
        self.question.against = Some(who);
        self
    }
    fn reverse(mut self, who: &str) -> Cell {
        self.question.reverse = Some(who.into());
        self
    }
    fn change(mut self, at_s: f64, change: Change) -> Cell {
        self.changes.push((Duration::from_secs_f64(at_s), change));
        self
    }
    fn step(mut self, at_s: f64, rate_bps: f64, base_rtt_s: f64) -> Cell {
        self.step = Some(Step { at_s, rate_bps, base_rtt_s });
        self
    }
}

/// All of them.
///
/// # Errors
/// A specification that does not parse.
pub fn all() -> Result<Vec<Cell>, String> {
    let mut cells = losses();
    cells.extend(delays());
    cells.extend(named());
    cells.extend(queues());
    cells.extend(steps()?);
    cells.extend(sharing());
    cells.extend(several());
    cells.extend(short()?);
    cells.extend(return_paths());
    cells.extend(tiny());
    Ok(cells)
}

fn losses() -> Vec<Cell> {
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
                    AtLeast(Figure::Rate, if told { 0.95 } else { 0.90 }),
                    AtMost(Figure::Wire, 1.1),
                    AtMost(Figure::Queue, 10.0),
                ];
                let kind = if bursts { "bursts of 4" } else { "uniform" };
                let what = if told { ", told the rate" } else { "" };
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

fn delays() -> Vec<Cell> {
    let mut cells = Vec::new();
    for jitter in [2, 5, 10, 20, 40] {
        let link = format!("50Mbit/s,25ms,jitter={jitter}ms");
        cells.push(
            cell("delay", format!("jitter {jitter} ms"), &link, vec![AtLeast(Figure::Rate, 0.90)])
                .quick(),
        );
    }
    let reorder = vec![AtLeast(Figure::Rate, 0.90), AtMost(Figure::Spurious, 0.01)];
    cells.push(
        cell("delay", "reorder 25% by 10 ms", "20Mbit/s,25ms,reorder=25%/10ms", reorder).quick(),
    );
    let both = "50Mbit/s,25ms,jitter=7ms,loss=1%";
    let mut c =
        cell("delay", "jitter 7 ms, loss 1%", both, vec![AtLeast(Figure::Rate, 0.88)]).quick();
    c.loss = 0.01;
    cells.push(c);
    for jitter in [20, 50, 100] {
        let link = format!("20Mbit/s,25ms,jitter={jitter}ms,reverse-jitter={jitter}ms,loss=1%");
        let goals = vec![OfBest(Figure::Goodput, 0.97, RIVALS)];
        let mut c = cell("delay", format!("jitter {jitter} ms both ways, loss 1%"), &link, goals);
        c.loss = 0.01;
        cells.push(c);
    }
    cells
}

fn named() -> Vec<Cell> {
    let mut cells: Vec<Cell> = narrows_scenario::links::LINKS
        .iter()
        .map(|l| {
            let name = l.descriptor.name;
            cell("named links", name, name, vec![OfBest(Figure::Goodput, 0.97, RIVALS)])
        })
        .collect();
    for (name, link) in [
        ("i", "20Mbit/s,25ms,queue=125kB,loss=1%"),
        ("ii", "1.5Mbit/s,250ms,queue=93750B,loss=1%"),
        ("iii", "144kbit/s,75ms,queue=2700B,loss=1%"),
        ("iv", "100Mbit/s,50ms,queue=1250kB,loss=0.1%"),
    ] {
        let goals = vec![OfBest(Figure::Goodput, 0.97, RIVALS)];
        cells.push(cell("named links", name, link, goals).seconds(60).quick());
    }
    let bloat = "20Mbit/s,25ms,queue=12500kB";
    let goals = vec![AtLeast(Figure::Rate, 0.9), AtMost(Figure::Queue, 10.0)];
    cells.push(cell("named links", "5 s of bloat", bloat, goals).quick());
    cells
}

fn queues() -> Vec<Cell> {
    let mut cells = Vec::new();
    for aqm in ["codel", "fq-codel", "pie", "red"] {
        let link = format!("20Mbit/s,25ms,queue=1000p,aqm={aqm}");
        cells.push(cell("AQM", aqm, &link, vec![OfBest(Figure::Goodput, 0.9, RIVALS)]).quick());
    }
    cells
}

fn steps() -> Result<Vec<Cell>, String> {
    let rate = |mbps: f64| Change::Rate(Rate::from_bps_f64(mbps * 1e6));
    let delay = |ms: u64| Change::Delay(Duration::from_millis(ms));
    let link = "20Mbit/s,25ms,queue=125kB";
    // Ten round trips, and no less than a second.
    let recovered = |base_rtt_s: f64| AtMost(Figure::Recovered, (10.0 * base_rtt_s).max(1.0));
    // What is in flight after a step by a factor of ten must drain: 9 base round trips at least.
    let drained = |base_rtt_s: f64| AtMost(Figure::Drained, 13.0 * base_rtt_s);
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
    // Probes come every 2 s at least; what counts begins with the first packet that passes.
    let outage = |name: &str, link: &str, for_s: f64, base_rtt_s: f64| {
        // `link` may end in losses of its own.
        let (plus, text) = (if link.contains("loss=") { "+" } else { ",loss=" }, "outage(at=10s");
        let link = format!("{link}{plus}{text},for={for_s}s),reverse-loss={text},for={for_s}s)");
        let end = 10.0 + for_s;
        let goals = vec![AtMost(Figure::Resumed, 2.1), recovered(base_rtt_s)];
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
    // What is on its way is held for so long and then comes at once, as a base station's hand-over does it.
    for (seconds, base_rtt_s) in [(1.0, 0.05), (3.0, 0.05)] {
        let held = Change::Delay(Duration::from_secs_f64(seconds));
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
        vec![OfBest(Figure::Goodput, 0.85, RIVALS), OfLeast(Figure::Rtt, 1.5, &["rrtp+stpd"])],
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

fn sharing() -> Vec<Cell> {
    let mut cells = Vec::new();
    for other in ["reno", "cubic", "bbr"] {
        for (rate, delay, link) in [("10Mbit/s", "20ms", "10M"), ("50Mbit/s", "40ms", "50M")] {
            for n in [1, 4] {
                for buffer in ["0.5bdp", "1bdp", "2bdp", "4bdp"] {
                    let least = if other == "bbr" { 0.3 } else { 0.4 };
                    let goals = vec![Between(Figure::Theta, least, 0.6)];
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
            // Beside themselves: the same flow in our place.
            let itself: &'static [&'static str] = match other {
                "reno" => &["reno"],
                "cubic" => &["cubic"],
                _ => &["bbr"],
            };
            let goals = vec![OfBest(Figure::Others, 0.9, itself)];
            let c = cell("sharing", format!("{other}, loss {loss}"), &spec, goals)
                .against(format!("{other}:1"))
                .seconds(60)
                .from(5);
            cells.push(c);
        }
        let spec = |buffer: &str| format!("10Mbit/s,20ms,queue={buffer}");
        for buffer in ["0.1bdp", "16bdp"] {
            let goals = vec![Between(Figure::Theta, 0.3, 0.7)];
            let name = format!("1+1 {other}, 10M, {buffer}");
            let c = cell("sharing", name, &spec(buffer), goals).against(format!("{other}:1"));
            cells.push(c.seconds(60).from(5));
        }
    }
    cells
}

fn several() -> Vec<Cell> {
    let link = "20Mbit/s,25ms,queue=125kB";
    let mut cells = Vec::new();
    for n in [2, 4] {
        let goals = vec![
            AtLeast(Figure::Jain, 0.98),
            AtMost(Figure::Queue, 15.0),
            AtLeast(Figure::Rate, 0.9),
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
            vec![AtMost(Figure::Dropped, 0.02)],
        );
        cells.push(c.flows(n).seconds(30).quick_if(n == 30));
    }
    let quarter = "100Mbit/s,45ms,queue=0.25bdp";
    let c = cell(
        "several",
        "30 flows, a quarter of the buffer",
        quarter,
        vec![OfLeast(Figure::Dropped, 1.0, CUBIC)],
    );
    cells.push(c.flows(30).seconds(30));
    cells
}

fn short() -> Result<Vec<Cell>, String> {
    let mut cells = Vec::new();
    for (name, link) in [
        ("i", "20Mbit/s,25ms,queue=125kB,loss=1%"),
        ("ii", "1.5Mbit/s,250ms,queue=93750B,loss=1%"),
        ("iv", "100Mbit/s,50ms,queue=1250kB,loss=0.1%"),
    ] {
        for size in ["10kB", "100kB", "1MB"] {
            let goals = vec![OfLeast(Figure::Completion, 1.0, CUBIC)];
            let mut c = cell("short", format!("{size} on {name}"), link, goals).seconds(60).quick();
            c.question.source =
                source(&format!("transfer(size={size})")).map_err(|e| e.to_string())?;
            cells.push(c);
        }
    }
    Ok(cells)
}

fn return_paths() -> Vec<Cell> {
    let of_cubic = || vec![OfBest(Figure::Goodput, 0.9, CUBIC)];
    let mut cells = vec![
        cell("return path", "lte, cubic upload", "lte", of_cubic()).reverse("cubic:1").quick(),
        cell("return path", "cable, cubic upload", "cable", of_cubic()).reverse("cubic:1").quick(),
    ];
    for percent in [10, 30, 50] {
        let link = format!("20Mbit/s,25ms,queue=125kB,reverse-loss={percent}%");
        let name = format!("{percent}% of the ACKs lost");
        let goals = vec![AtLeast(Figure::Rate, 0.9), AtMost(Figure::Queue, 10.0)];
        cells.push(cell("return path", name, &link, goals).quick_if(percent == 50));
    }
    // A tenth of the way back, or a report of 64 bytes in a base RTT.
    let acks = |most: f64| AtMost(Figure::Acks, most.max(0.1));
    let upload = "20Mbit/s,20ms,queue=100kB,reverse-rate=1Mbit/s";
    let goals = || vec![OfBest(Figure::Goodput, 0.9, CUBIC), acks(0.0)];
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
            let goals = vec![OfBest(Figure::Goodput, 0.9, CUBIC), acks(64.0 * 8.0 / 40.0 / kbps)];
            cells.push(cell("return path", format!("{name}{loss}"), &link, goals).quick());
        }
    }
    cells
}

fn tiny() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (rate, delay, packets) in [
        ("100Mbit/s", "0.05ms", 1),
        ("24Mbit/s", "0.5ms", 1),
        ("24Mbit/s", "0.5ms", 10),
        ("1Gbit/s", "0.05ms", 10),
        ("1Gbit/s", "0.5ms", 10),
    ] {
        let link = format!("{rate},{delay},queue={packets}p");
        let goals = vec![OfBest(Figure::Goodput, 0.9, RIVALS), AtMost(Figure::Dropped, 0.02)];
        let name = format!("{rate}, {delay}, {packets} packets");
        let seconds = if rate == "1Gbit/s" { 3 } else { 10 };
        cells.push(cell("tiny queues", name, &link, goals).seconds(seconds).quick());
    }
    cells
}
