//! A case: a network with impairments, how it is drawn, changed and written.

use narrows_base::{Duration, Rate, random::RandomStream};
use narrows_scenario::values;
use std::fmt::Write as _;

/// Ranges from which cases are drawn, uniformly in the logarithm.
const RATE_BPS: (f64, f64) = (0.5e6, 200e6);
const DELAY_S: (f64, f64) = (0.1e-3, 0.3);
/// Buffer in BDPs.
const QUEUE_BDP: (f64, f64) = (0.02, 16.0);
const LOSS: (f64, f64) = (0.0003, 0.3);
const JITTER_S: (f64, f64) = (0.5e-3, 0.1);
const REORDERED: (f64, f64) = (0.001, 0.3);
/// The return path's rate relative to the rate.
const BACK: (f64, f64) = (0.003, 1.0);
const STEP: (f64, f64) = (0.05, 20.0);
/// Each impairment is present with this probability.
const LIKELY: f64 = 0.3;
/// Protocols of competitors and of reverse flows.
const NEIGHBOURS: [&str; 3] = ["cubic", "reno", "bbr"];

/// A change at a third of the run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum AttackChange {
    /// The rate is multiplied.
    RateStep(f64),
    /// The one-way delay is multiplied: a handover.
    DelayStep(f64),
    /// No packet passes for this many seconds.
    Outage(f64),
}

/// A network of one bottleneck.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// Bit/s of the bottleneck.
    pub rate_bps: f64,
    /// Seconds, one way.
    pub delay_s: f64,
    /// Buffer in BDPs.
    pub queue_bdp: f64,
    /// Share of packets lost after the queue, and the mean length of a burst.
    pub loss: Option<(f64, f64)>,
    /// Jitter in seconds, as `jitter=` of a link.
    pub jitter_s: Option<f64>,
    /// Share of packets held back, and their additional delay in seconds.
    pub reorder: Option<(f64, f64)>,
    /// Rate of the return path over the rate.
    pub back: Option<f64>,
    /// A change during the run.
    pub event: Option<AttackChange>,
    /// Competitors: protocol and number of flows.
    pub against: Option<(&'static str, usize)>,
    /// Protocol of a flow in the reverse direction.
    pub reverse: Option<&'static str>,
    /// Flows of the protocol under attack.
    pub flows: usize,
}

fn between(random: &mut RandomStream, (low, high): (f64, f64)) -> f64 {
    low * (high / low).powf(random.unit())
}

fn maybe<T>(random: &mut RandomStream, draw: impl FnOnce(&mut RandomStream) -> T) -> Option<T> {
    random.chance(LIKELY).then(|| draw(random))
}

fn neighbour(random: &mut RandomStream) -> &'static str {
    NEIGHBOURS[(random.bits() % NEIGHBOURS.len() as u64) as usize]
}

fn event(random: &mut RandomStream) -> AttackChange {
    match random.bits() % 3 {
        0 => AttackChange::RateStep(between(random, STEP)),
        1 => AttackChange::DelayStep(between(random, (0.2, 5.0))),
        _ => AttackChange::Outage(between(random, (0.2, 3.0))),
    }
}

fn bursty(random: &mut RandomStream) -> (f64, f64) {
    let burst = if random.chance(0.5) { 1.0 } else { between(random, (2.0, 20.0)) };
    (between(random, LOSS), burst)
}

fn held_back(random: &mut RandomStream) -> (f64, f64) {
    (between(random, REORDERED), between(random, (1e-3, 0.05)))
}

impl Case {
    /// A clean link of 20 Mbit/s and 25 ms with a buffer of one BDP.
    pub fn plain() -> Case {
        Case {
            rate_bps: 20e6,
            delay_s: 0.025,
            queue_bdp: 1.0,
            loss: None,
            jitter_s: None,
            reorder: None,
            back: None,
            event: None,
            against: None,
            reverse: None,
            flows: 1,
        }
    }

    /// A random case.
    pub fn draw(random: &mut RandomStream) -> Case {
        let case = Case {
            rate_bps: between(random, RATE_BPS),
            delay_s: between(random, DELAY_S),
            queue_bdp: between(random, QUEUE_BDP),
            loss: maybe(random, bursty),
            jitter_s: maybe(random, |r| between(r, JITTER_S)),
            reorder: maybe(random, held_back),
            back: maybe(random, |r| between(r, BACK)),
            event: maybe(random, event),
            against: maybe(random, |r| (neighbour(r), 1 + (r.bits() % 4) as usize)),
            reverse: maybe(random, neighbour),
            flows: if random.chance(0.8) { 1 } else { 2 + (random.bits() % 9) as usize },
        };
        case.rounded()
    }

    /// A copy with one or two changes: a value scaled a little, or drawn again.
    pub fn changed(&self, random: &mut RandomStream) -> Case {
        let mut case = self.clone();
        for _ in 0..=(random.bits() % 2) {
            let by = between(random, (0.4, 2.5));
            let within = |x: f64, (low, high): (f64, f64)| (x * by).clamp(low, high);
            match random.bits() % 11 {
                0 => case.rate_bps = within(case.rate_bps, RATE_BPS),
                1 => case.delay_s = within(case.delay_s, DELAY_S),
                2 => case.queue_bdp = within(case.queue_bdp, QUEUE_BDP),
                3 => {
                    case.loss = match case.loss {
                        Some((p, burst)) => Some((within(p, LOSS), burst)),
                        None => Some(bursty(random)),
                    }
                }
                4 => {
                    let x = case.jitter_s.unwrap_or_else(|| between(random, JITTER_S));
                    case.jitter_s = Some(within(x, JITTER_S));
                }
                5 => case.reorder = maybe(random, held_back),
                6 => {
                    let x = case.back.unwrap_or_else(|| between(random, BACK));
                    case.back = Some(within(x, BACK));
                }
                7 => case.event = maybe(random, event),
                8 => {
                    case.against = maybe(random, |r| (neighbour(r), 1 + (r.bits() % 4) as usize));
                }
                9 => case.reverse = maybe(random, neighbour),
                _ => case.flows = 1 + (random.bits() % 10) as usize,
            }
        }
        case.rounded()
    }

    /// Rounded to two significant figures, which is precise enough and readable.
    pub fn rounded(mut self) -> Case {
        let of = |x: &mut f64| *x = two_figures(*x);
        of(&mut self.rate_bps);
        of(&mut self.delay_s);
        of(&mut self.queue_bdp);
        if let Some((p, burst)) = &mut self.loss {
            of(p);
            of(burst);
        }
        if let Some((p, by)) = &mut self.reorder {
            of(p);
            of(by);
        }
        self.jitter_s.as_mut().into_iter().chain(&mut self.back).for_each(of);
        match &mut self.event {
            Some(
                AttackChange::RateStep(x) | AttackChange::DelayStep(x) | AttackChange::Outage(x),
            ) => of(x),
            None => {}
        }
        self
    }

    /// The link as `--link` takes it.
    pub fn link(&self) -> String {
        let mut text =
            format!("{},{},queue={}", rate(self.rate_bps), time(self.delay_s), self.queue_text());
        if let Some(loss) = self.loss_text() {
            let _ = write!(text, ",loss={loss}");
        }
        if let Some(jitter) = self.jitter_s {
            let _ = write!(text, ",jitter={}", time(jitter));
        }
        if let Some((p, by)) = self.reorder {
            let _ = write!(text, ",reorder={}%/{}", two_figures(100.0 * p), time(by));
        }
        if let Some(back) = self.back {
            let _ = write!(text, ",reverse-rate={}", rate(two_figures(self.rate_bps * back)));
        }
        text
    }

    /// At least a packet: a queue for no packets is invalid.
    fn queue_text(&self) -> String {
        format!("max({}bdp,1p)", self.queue_bdp)
    }

    /// Its changes in a run of this length, as `--change` takes them.
    pub fn changes(&self, duration: Duration) -> Vec<String> {
        let third = Duration::from_nanos(duration.as_nanos() / 3);
        let at = values::time_text(third);
        match self.event {
            None => Vec::new(),
            Some(AttackChange::RateStep(factor)) => {
                let rate = rate((self.rate_bps * factor).clamp(50e3, 500e6));
                vec![format!("{at}:bottleneck:rate={rate}")]
            }
            Some(AttackChange::DelayStep(factor)) => {
                let delay = values::time_text(Duration::from_secs_f64(self.delay_s * factor));
                let change = |link: &str| format!("{at}:{link}:delay={delay}");
                ["bottleneck", "bottleneck.back"].map(change).into()
            }
            Some(AttackChange::Outage(seconds)) => {
                let over = values::time_text(third + Duration::from_secs_f64(seconds));
                let usual = self.loss_text().unwrap_or_else(|| "none".into());
                vec![
                    format!("{at}:bottleneck:loss=100%"),
                    format!("{at}:bottleneck.back:loss=100%"),
                    format!("{over}:bottleneck:loss={usual}"),
                    format!("{over}:bottleneck.back:loss=none"),
                ]
            }
        }
    }

    fn loss_text(&self) -> Option<String> {
        let (p, burst) = self.loss?;
        // Gilbert: bursts of mean length 1/h, and g/(g + h) of all packets in them.
        let h = 1.0 / burst;
        Some(match burst > 1.0 {
            true => format!("ge(g={},h={h})", two_figures(p * h / (1.0 - p))),
            false => format!("uniform({p})"),
        })
    }

    /// Share of the run's capacity without the outage.
    pub fn open_share(&self, duration_s: f64) -> f64 {
        match self.event {
            Some(AttackChange::Outage(seconds)) => 1.0 - (seconds / duration_s).min(1.0),
            _ => 1.0,
        }
    }

    /// Names of its impairments: cases of the same kind are one finding.
    pub fn kind(&self) -> Vec<&'static str> {
        let event = self.event.map(|e| match e {
            AttackChange::RateStep(f) if f < 1.0 => "rate falls",
            AttackChange::RateStep(_) => "rate rises",
            AttackChange::DelayStep(f) if f < 1.0 => "delay falls",
            AttackChange::DelayStep(_) => "delay rises",
            AttackChange::Outage(_) => "outage",
        });
        let there = [
            self.loss.map(|(_, burst)| if burst > 1.0 { "bursts of loss" } else { "loss" }),
            self.jitter_s.map(|_| "jitter"),
            self.reorder.map(|_| "reordering"),
            self.back.map(|_| "thin return path"),
            event,
            self.against.map(|(name, _)| name),
            self.reverse.map(|_| "data the other way"),
            (self.flows > 1).then_some("many flows"),
        ];
        there.into_iter().flatten().collect()
    }

    /// The case in words, for tables.
    pub fn describe(&self) -> String {
        let mut text = self.link();
        match self.event {
            Some(AttackChange::RateStep(f)) => {
                let _ = write!(text, "; rate x {f} at a third of the run");
            }
            Some(AttackChange::DelayStep(f)) => {
                let _ = write!(text, "; delay x {f} at a third of the run");
            }
            Some(AttackChange::Outage(s)) => {
                let _ = write!(text, "; an outage of {s} s at a third of the run");
            }
            None => {}
        }
        if let Some((name, flows)) = self.against {
            let _ = write!(text, "; beside {name}:{flows}");
        }
        if let Some(name) = self.reverse {
            let _ = write!(text, "; {name}:1 the other way");
        }
        if self.flows > 1 {
            let _ = write!(text, "; {} flows", self.flows);
        }
        text
    }
}

fn rate(bps: f64) -> String {
    values::rate_text(Rate::from_bps_f64(bps))
}

/// In whole microseconds, at least one.
fn time(seconds: f64) -> String {
    values::time_text(Duration::from_micros((seconds * 1e6).round().max(1.0) as u64))
}

/// `x` with two significant figures.
fn two_figures(x: f64) -> f64 {
    format!("{x:.1e}").parse().unwrap_or(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::RandomKey;
    use narrows_scenario::link::BottleneckLink;
    use std::path::Path;

    #[test]
    fn every_case_can_be_written_as_a_link() {
        let mut random = RandomKey::from_seed(7).stream();
        for _ in 0..300 {
            let case = Case::draw(&mut random);
            let case = if random.chance(0.5) { case.changed(&mut random) } else { case };
            let link = BottleneckLink::parse(&case.link(), Path::new(""));
            assert!(link.is_ok(), "{}: {:?}", case.link(), link.err());
        }
    }

    #[test]
    fn usual_losses_return_after_an_outage() {
        for (loss, text) in
            [(0.02, 1.0), (0.02, 4.0)].map(Some).iter().zip(["uniform(0.02)", "ge("])
        {
            let event = Some(AttackChange::Outage(1.0));
            let case = Case { loss: *loss, event, ..Case::plain() };
            let changes = case.changes(Duration::from_secs(9));
            assert!(changes[2].starts_with(&format!("4s:bottleneck:loss={text}")), "{changes:?}");
        }
    }
}
