//! Loss processes without bursts: no loss, independent losses, one in every N packets, and a list of packet numbers.

use super::process::{LossEntry, LossProcess};
use crate::LinkPacket;
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, RandomKey, Settings, SpecError, Status, Time, random};

pub(super) const NONE: LossEntry = LossEntry::new(&NONE_DESCRIPTOR, |_, _| Box::new(Nothing));
pub(super) const UNIFORM: LossEntry = LossEntry::new(&UNIFORM_DESCRIPTOR, |s, random_key| {
    Box::new(Uniform { key: random_key.bits(), p: s.number("p") })
});
pub(super) const PERIODIC: LossEntry =
    LossEntry::new(&PERIODIC_DESCRIPTOR, |s, random_key| Box::new(Periodic::new(s, random_key)));
pub(super) const LIST: LossEntry = LossEntry {
    check: NumberedLosses::check,
    ..LossEntry::new(&LIST_DESCRIPTOR, |s, _| Box::new(NumberedLosses::new(s)))
};

const NONE_DESCRIPTOR: Descriptor = Descriptor {
    name: "none",
    summary: "no loss",
    source: "-",
    senses: "-",
    sets: "-",
    params: &[],
    status: Status::Validated("loses nothing, by test"),
};

const UNIFORM_DESCRIPTOR: Descriptor = Descriptor {
    name: "uniform",
    summary: "each packet independently with probability p; also written 1% or 0.01",
    source: "the ST-PD thesis, section 4.4; ns-2 ErrorModel",
    senses: "seed, link, flow and packet number",
    sets: "loss",
    params: &[Param {
        name: "p",
        help: "probability of loss",
        kind: ParamKind::Number { unit: Unit::Fraction, min: 0.0, max: 1.0, default: 0.01 },
        origin: "the ST-PD thesis, section 4.4",
    }],
    status: Status::Validated("binomial in its mean and runs, by test"),
};

const PERIODIC_DESCRIPTOR: Descriptor = Descriptor {
    name: "periodic",
    summary: "every N-th data packet",
    source: "Choi 2006, section 6.1",
    senses: "data packets counted at the link, from 0 (the first SYN)",
    sets: "loss",
    params: &[
        Param {
            name: "period",
            help: "N: one loss in this many packets",
            kind: ParamKind::Number { unit: Unit::Packets, min: 1.0, max: 1e15, default: 100.0 },
            origin: "Choi 2006, section 6.1",
        },
        Param {
            name: "offset",
            help: "packet k is lost when k mod N is this",
            kind: ParamKind::Number { unit: Unit::Packets, min: 0.0, max: 1e15, default: 0.0 },
            origin: "the N-th, 2N-th, … data packet after the SYN",
        },
        Param {
            name: "place",
            help: "in each block of N: at the offset, or at a random position",
            kind: ParamKind::Choice(&["fixed", "random"]),
            origin: "Choi 2006, figure 6.2; random: figure 6.5",
        },
    ],
    status: Status::Validated("exact, by test"),
};

const LIST_DESCRIPTOR: Descriptor = Descriptor {
    name: "list",
    summary: "the listed data packets, as in list(2000,2001)",
    source: "the ST-PD thesis, section 4.6",
    senses: "data packets counted at the link, retransmissions included, from 0 (the first SYN)",
    sets: "loss",
    params: &[Param {
        name: "packets",
        help: "numbers of the packets to lose",
        kind: ParamKind::Integers,
        origin: "the ST-PD thesis, figure 4.18",
    }],
    status: Status::Validated("exact, by test"),
};

struct Nothing;
impl LossProcess for Nothing {
    fn strikes(&mut self, _at: Time, _packet: &dyn LinkPacket) -> bool {
        false
    }
}

/// Independent losses. Whether a packet is lost is a function of the packet itself.
struct Uniform {
    key: u64,
    p: f64,
}
impl LossProcess for Uniform {
    fn strikes(&mut self, _at: Time, packet: &dyn LinkPacket) -> bool {
        random::unit(random::mix(self.key ^ random::mix(packet.random_key()))) < self.p
    }
}

struct Periodic {
    period: u64,
    offset: u64,
    /// The key for the position within a block, if it is random.
    random: Option<RandomKey>,
    count: u64,
}
impl Periodic {
    fn new(s: &Settings, random_key: RandomKey) -> Periodic {
        Periodic {
            period: s.number("period") as u64,
            offset: s.number("offset") as u64,
            random: (s.choice("place") == "random").then(|| random_key.named("periodic")),
            count: 0,
        }
    }
}
impl LossProcess for Periodic {
    fn strikes(&mut self, _at: Time, packet: &dyn LinkPacket) -> bool {
        if !packet.is_data() {
            return false;
        }
        // The very first packet, number 0, opens the connection and is never lost.
        let block = self.count / self.period;
        let place = self.count % self.period;
        let offset = match self.random {
            Some(random_key) => (random_key.draw(block) * self.period as f64) as u64,
            None => self.offset % self.period,
        };
        let hit = self.count > 0 && place == offset;
        self.count += 1;
        hit
    }
}

/// The packets with these numbers.
struct NumberedLosses {
    numbers: Vec<u64>,
    count: u64,
    next: usize,
}
impl NumberedLosses {
    fn new(s: &Settings) -> NumberedLosses {
        let mut numbers = s.integers().to_vec();
        numbers.sort_unstable();
        NumberedLosses { numbers, count: 0, next: 0 }
    }
    fn check(s: &Settings) -> Result<(), SpecError> {
        if s.integers().is_empty() {
            return Err(SpecError::new("list needs packet numbers, as in list(2000,2001)"));
        }
        Ok(())
    }
}
impl LossProcess for NumberedLosses {
    fn strikes(&mut self, _at: Time, packet: &dyn LinkPacket) -> bool {
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
