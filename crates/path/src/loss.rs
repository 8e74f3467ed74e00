//! Loss processes: which packets a link loses after it has sent them.
//!
//! The list, the reading of specifications, and the processes without memory; those with memory
//! have files of their own. `docs/sources.md` has the definitions.

use crate::{Parcel, loss_burst, loss_outage};
use narrows_base::card::Kind;
use narrows_base::units::{self, Unit};
use narrows_base::{Card, Luck, Param, Settings, Spec, SpecError, Status, Time, luck};

/// Decides packet by packet. Packets come in the order in which they leave the link.
pub trait LossProcess<P>: Send {
    /// Whether this packet, whose transmission ended at `at`, is lost.
    fn strikes(&mut self, at: Time, packet: &P) -> bool;
}

/// A loss process: its card, and how to build it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What it says of itself.
    pub card: &'static Card,
    model: Model,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Model {
    None,
    Uniform,
    Periodic,
    List,
    GilbertElliott,
    Burst,
    Fade,
    Outage,
}

/// All loss processes.
pub const LOSSES: &[Entry] = &[
    Entry { card: &NONE, model: Model::None },
    Entry { card: &UNIFORM, model: Model::Uniform },
    Entry { card: &PERIODIC, model: Model::Periodic },
    Entry { card: &LIST, model: Model::List },
    Entry { card: &loss_burst::GILBERT_ELLIOTT, model: Model::GilbertElliott },
    Entry { card: &loss_burst::BURST, model: Model::Burst },
    Entry { card: &loss_burst::FADE, model: Model::Fade },
    Entry { card: &loss_outage::OUTAGE, model: Model::Outage },
];

const NONE: Card = Card {
    name: "none",
    summary: "no loss",
    source: "-",
    senses: "-",
    sets: "-",
    params: &[],
    status: Status::Validated("loses nothing, by test"),
};

const UNIFORM: Card = Card {
    name: "uniform",
    summary: "each packet independently with probability p; also written 1% or 0.01",
    source: "S0 section 4.4; ns-2 ErrorModel",
    senses: "seed, link, flow and packet number",
    sets: "loss",
    params: &[Param {
        name: "p",
        help: "probability of loss",
        kind: Kind::Number { unit: Unit::Fraction, min: 0.0, max: 1.0, default: 0.01 },
        origin: "S0 section 4.4",
    }],
    status: Status::Validated("binomial in its mean and runs, by test"),
};

const PERIODIC: Card = Card {
    name: "periodic",
    summary: "every N-th data packet",
    source: "S1 section 6.1",
    senses: "data packets counted at the link, from 0 (the first SYN)",
    sets: "loss",
    params: &[
        Param {
            name: "period",
            help: "N: one loss in so many packets",
            kind: Kind::Number { unit: Unit::Packets, min: 1.0, max: 1e15, default: 100.0 },
            origin: "S1 section 6.1",
        },
        Param {
            name: "offset",
            help: "packet k is lost when k mod N is this",
            kind: Kind::Number { unit: Unit::Packets, min: 0.0, max: 1e15, default: 0.0 },
            origin: "the N-th, 2N-th, … data packet after the SYN",
        },
        Param {
            name: "place",
            help: "in each block of N: at the offset, or drawn anew",
            kind: Kind::Choice(&["fixed", "random"]),
            origin: "S1 figure 6.2; random: figure 6.5",
        },
    ],
    status: Status::Validated("exact, by test"),
};

const LIST: Card = Card {
    name: "list",
    summary: "the listed data packets, as in list(2000,2001)",
    source: "S0 section 4.6",
    senses: "data packets counted at the link, retransmissions included, from 0 (the first SYN)",
    sets: "loss",
    params: &[Param {
        name: "packets",
        help: "numbers of the packets to lose",
        kind: Kind::Integers,
        origin: "S0 figure 4.18",
    }],
    status: Status::Validated("exact, by test"),
};

/// A loss process that has been read and checked, ready to be built for any link.
#[derive(Clone, Debug, PartialEq)]
pub struct LossSpec {
    spec: Spec,
    model: Model,
    settings: Settings,
}

impl LossSpec {
    /// Reads `1%`, `0.01`, `ge(g=0.13%,h=12.5%)`, or several joined by `+`.
    ///
    /// # Errors
    /// An unknown process, or a parameter that is unknown or out of range.
    pub fn parse_all(text: &str) -> Result<Vec<LossSpec>, SpecError> {
        let mut out = Vec::new();
        for piece in split_plus(text) {
            let one = LossSpec::parse(piece.trim())?;
            if one.spec.name != "none" {
                out.push(one);
            }
        }
        Ok(out)
    }

    fn parse(text: &str) -> Result<LossSpec, SpecError> {
        let spec = if text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
            let p = units::number(text, Unit::Fraction)?;
            if !(0.0..=1.0).contains(&p) {
                return Err(SpecError::new(format!(
                    "loss '{text}' must be between 0 and 1 (100%); 1 means every packet"
                )));
            }
            Spec { name: "uniform".into(), args: vec![(None, text.to_string())] }
        } else {
            Spec::parse(text)?
        };
        let entry = find(&spec.name)?;
        let settings = Settings::read(&spec, entry.card.params)?;
        if matches!(entry.model, Model::List) && settings.integers().is_empty() {
            return Err(SpecError::new("list needs packet numbers, as in list(2000,2001)"));
        }
        Ok(LossSpec { spec, model: entry.model, settings })
    }

    /// As the user wrote it, in full.
    pub fn text(&self) -> String {
        self.spec.to_string()
    }

    /// Builds the process for the link whose key is `luck`.
    pub fn build<P: Parcel>(&self, luck: Luck) -> Box<dyn LossProcess<P>> {
        let s = &self.settings;
        match self.model {
            Model::None => Box::new(Uniform { key: luck.bits(), p: 0.0 }),
            Model::Uniform => Box::new(Uniform { key: luck.bits(), p: s.number("p") }),
            Model::Periodic => Box::new(Periodic {
                period: s.number("period") as u64,
                offset: s.number("offset") as u64,
                random: (s.choice("place") == "random").then(|| luck.named("periodic")),
                count: 0,
            }),
            Model::List => {
                let mut numbers = s.integers().to_vec();
                numbers.sort_unstable();
                Box::new(List { numbers, count: 0, next: 0 })
            }
            Model::GilbertElliott => Box::new(loss_burst::GilbertElliott::new(s, luck)),
            Model::Burst => Box::new(loss_burst::TwoState::in_packets(s, luck)),
            Model::Fade => Box::new(loss_burst::TwoState::in_time(s, luck)),
            Model::Outage => Box::new(loss_outage::Outage::new(s, luck)),
        }
    }
}

fn find(name: &str) -> Result<&'static Entry, SpecError> {
    LOSSES.iter().find(|e| e.card.name == name).ok_or_else(|| {
        let names: Vec<&str> = LOSSES.iter().map(|e| e.card.name).collect();
        SpecError::unknown("loss process", name, &names)
    })
}

/// Splits at `+` outside parentheses and outside exponents such as `1e+3`.
fn split_plus(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut out) = (0i32, 0, Vec::new());
    let bytes = text.as_bytes();
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            '+' if depth == 0 && i > from && !matches!(bytes[i - 1], b'e' | b'E') => {
                out.push(&text[from..i]);
                from = i + 1;
            }
            _ => {}
        }
    }
    out.push(&text[from..]);
    out
}

/// Independent losses, a function of the packet itself.
struct Uniform {
    key: u64,
    p: f64,
}
impl<P: Parcel> LossProcess<P> for Uniform {
    fn strikes(&mut self, _at: Time, packet: &P) -> bool {
        luck::unit(luck::mix(self.key ^ luck::mix(packet.luck()))) < self.p
    }
}

struct Periodic {
    period: u64,
    offset: u64,
    /// Where the place in a block is drawn from, if it is.
    random: Option<Luck>,
    count: u64,
}
impl<P: Parcel> LossProcess<P> for Periodic {
    fn strikes(&mut self, _at: Time, packet: &P) -> bool {
        if !packet.is_data() {
            return false;
        }
        // The very first packet opens the connection: number 0 is spared.
        let (block, place) = (self.count / self.period, self.count % self.period);
        let offset = match self.random {
            Some(luck) => (luck.draw(block) * self.period as f64) as u64,
            None => self.offset % self.period,
        };
        let hit = self.count > 0 && place == offset;
        self.count += 1;
        hit
    }
}

struct List {
    numbers: Vec<u64>,
    count: u64,
    next: usize,
}
impl<P: Parcel> LossProcess<P> for List {
    fn strikes(&mut self, _at: Time, packet: &P) -> bool {
        if !packet.is_data() {
            return false;
        }
        let n = self.count;
        self.count += 1;
        let mut hit = false;
        while self.numbers.get(self.next).is_some_and(|k| *k <= n) {
            hit |= self.numbers[self.next] == n;
            self.next += 1;
        }
        hit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::tests::packet;

    fn run(spec: &str, n: u32) -> Vec<u32> {
        let mut p = LossSpec::parse_all(spec).unwrap()[0].build(Luck::seed(5).named("loss"));
        (0..n)
            .filter(|i| p.strikes(Time::from_nanos(u64::from(*i) * 1_000_000), &packet(*i, 1000)))
            .collect()
    }

    #[test]
    fn listed_and_periodic_losses_are_exact() {
        assert_eq!(run("list(20,7,21)", 100), [7, 20, 21]);
        assert_eq!(run("periodic(10)", 45), [10, 20, 30, 40]);
        assert_eq!(run("periodic(period=10,offset=3)", 30), [3, 13, 23]);
    }

    #[test]
    fn one_packet_of_each_block_is_lost_anywhere_in_it() {
        let lost = run("periodic(10,place=random)", 10_000);
        let blocks: Vec<u32> = lost.iter().map(|n| n / 10).collect();
        // The very first packet is spared, so the first block may have none.
        assert_eq!(blocks[1..], (blocks[1]..1000).collect::<Vec<_>>());
        for place in 0..10 {
            let hits = lost.iter().filter(|n| *n % 10 == place).count();
            assert!((60..140).contains(&hits), "place {place}: {hits} of 1000");
        }
    }

    #[test]
    fn uniform_losses_are_binomial_in_mean_and_runs() {
        let lost = run("2%", 200_000);
        let mean = lost.len() as f64 / 200_000.0;
        assert!((mean - 0.02).abs() < 0.001, "{mean}");
        let adjacent = lost.windows(2).filter(|w| w[1] == w[0] + 1).count() as f64;
        // Independent: a loss follows a loss with probability 2%.
        assert!((adjacent / lost.len() as f64 - 0.02).abs() < 0.01);
    }

    #[test]
    fn bursts_have_their_rate_and_length() {
        for spec in
            ["ge(g=0.126263%,h=12.5%)", "burst(bad=8p,good=792p)", "fade(bad=8ms,good=792ms)"]
        {
            let lost = run(spec, 2_000_000);
            let rate = lost.len() as f64 / 2e6;
            let bursts = 1 + lost.windows(2).filter(|w| w[1] != w[0] + 1).count();
            let length = lost.len() as f64 / bursts as f64;
            assert!((rate - 0.01).abs() < 0.0012, "{spec}: rate {rate}");
            assert!((length - 8.0).abs() < 0.8, "{spec}: mean burst {length}");
        }
    }

    #[test]
    fn outages_lose_everything_for_a_while() {
        let lost = run("outage(at=2s,for=500ms)", 5_000);
        assert_eq!((lost[0], lost.len()), (2_000, 500));
        let lost = run("outage(at=1s,for=100ms,every=1s)", 5_000);
        assert_eq!(lost.len(), 400);
    }

    #[test]
    fn one_hundred_percent_is_everything_and_nonsense_is_refused() {
        assert_eq!(run("100%", 50).len(), 50);
        assert_eq!(run("1", 50).len(), 50);
        assert_eq!(LossSpec::parse_all("1%+outage(at=1s,for=1s)").unwrap().len(), 2);
        assert!(LossSpec::parse_all("none").unwrap().is_empty());
        for bad in
            ["2", "-1%", "101%", "gee(g=1)", "ge(x=1)", "list()", "list(a)", "", "uniform(p=2)"]
        {
            assert!(LossSpec::parse_all(bad).is_err(), "{bad:?}");
        }
    }
}
