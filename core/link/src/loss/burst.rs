//! Loss in bursts: Gilbert-Elliott, and two states with exponential durations, counted in packets (the ST-PD thesis,
//! figure 4.13) or in time.
//!
//! If durations are counted in packets, an idle sender freezes the channel: each retransmission after a timeout
//! consumes one packet of the burst, so one burst can block a sender for minutes. If durations are counted in time, the
//! same burst is over in milliseconds. So these are two processes with separate names.

use super::process::{LossEntry, LossProcess, probability};
use crate::LinkPacket;
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, RandomKey, RandomStream, Settings, Status, Time};

pub(crate) const GILBERT_ELLIOTT: LossEntry =
    LossEntry::new(&GILBERT_ELLIOTT_CARD, |s, random_key| {
        Box::new(GilbertElliott::new(s, random_key))
    });

const GILBERT_ELLIOTT_CARD: Descriptor = Descriptor {
    name: "ge",
    summary: "Gilbert-Elliott: a good and a bad state, changed packet by packet",
    source: "Gilbert 1960, Elliott 1963; Hu and Zha, section 2",
    senses: "packets",
    sets: "loss",
    params: &[
        probability("g", "from good to bad, per packet", 0.001_262_63, "1% loss in bursts of 8"),
        probability("h", "from bad to good, per packet", 0.125, "bursts of 8 packets"),
        probability("bad", "loss in the bad state", 1.0, "Hu and Zha: 1"),
        probability("good", "loss in the good state", 0.0, "Hu and Zha: 0"),
    ],
    status: Status::Validated("rate g/(g+h) and mean burst 1/h, by test"),
};

pub(crate) const BURST: LossEntry =
    LossEntry::new(&BURST_CARD, |s, random_key| Box::new(TwoState::in_packets(s, random_key)));

const BURST_CARD: Descriptor = Descriptor {
    name: "burst",
    summary: "two states with exponential lengths counted in packets",
    source: "the ST-PD thesis, section 4.5, figure 4.13",
    senses: "packets: an idle sender freezes the channel",
    sets: "loss of every packet in the bad state",
    params: &[
        length(
            "bad",
            Unit::Packets,
            "mean length of the bad state",
            8.0,
            "the ST-PD thesis, section 4.5",
        ),
        length("good", Unit::Packets, "mean length of the good state", 792.0, "8 x 0.99/0.01"),
    ],
    status: Status::Validated("rate and mean burst, by test"),
};

pub(crate) const FADE: LossEntry =
    LossEntry::new(&FADE_CARD, |s, random_key| Box::new(TwoState::in_time(s, random_key)));

const FADE_CARD: Descriptor = Descriptor {
    name: "fade",
    summary: "two states with exponential lengths in time",
    source: "ns-2 TwoState error model, unit time",
    senses: "time",
    sets: "loss of every packet in the bad state",
    params: &[
        length(
            "bad",
            Unit::Seconds,
            "mean length of the bad state",
            0.04,
            "8 packets at 1.5 Mbit/s",
        ),
        length("good", Unit::Seconds, "mean length of the good state", 3.96, "1% of the time bad"),
    ],
    status: Status::Validated("rate and mean burst, by test"),
};

const fn length(
    name: &'static str,
    unit: Unit,
    help: &'static str,
    default: f64,
    origin: &'static str,
) -> Param {
    Param { name, help, kind: ParamKind::Number { unit, min: 1e-9, max: 1e12, default }, origin }
}

struct GilbertElliott {
    into_bad: f64,
    into_good: f64,
    lost: [f64; 2],
    bad: bool,
    stream: RandomStream,
}

impl GilbertElliott {
    fn new(s: &Settings, random_key: RandomKey) -> GilbertElliott {
        GilbertElliott {
            into_bad: s.number("g"),
            into_good: s.number("h"),
            lost: [s.number("good"), s.number("bad")],
            bad: false,
            stream: random_key.named("ge").stream(),
        }
    }
}

impl LossProcess for GilbertElliott {
    fn strikes(&mut self, _at: Time, _packet: &dyn LinkPacket) -> bool {
        // Two draws per packet in either state, so that the position in the stream depends only on
        // the packet count.
        let change = self.stream.unit();
        let loss = self.stream.unit();
        self.bad = if self.bad { change >= self.into_good } else { change < self.into_bad };
        loss < self.lost[usize::from(self.bad)]
    }
}

/// Limit on state changes between two packets that are simulated one by one.
const MAX_TURNS: u32 = 1_000;

struct TwoState {
    mean: [f64; 2],
    in_time: bool,
    bad: bool,
    /// Where the present state ends: a packet count, or nanoseconds since the start.
    ends: u64,
    count: u64,
    stream: RandomStream,
}

impl TwoState {
    fn in_packets(s: &Settings, random_key: RandomKey) -> TwoState {
        TwoState::new(
            [s.number("good"), s.number("bad")],
            false,
            random_key.named("burst").stream(),
        )
    }
    fn in_time(s: &Settings, random_key: RandomKey) -> TwoState {
        let mean = [s.number("good") * 1e9, s.number("bad") * 1e9];
        TwoState::new(mean, true, random_key.named("fade").stream())
    }
    fn new(mean: [f64; 2], in_time: bool, stream: RandomStream) -> TwoState {
        let mut t = TwoState { mean, in_time, bad: false, ends: 0, count: 0, stream };
        t.ends = t.length();
        t
    }
    /// Length of the next state, at least one unit. Lengths in packets are rounded to the nearest
    /// whole packet: rounding up would add half a packet to every burst (ns-2 adds a whole one).
    fn length(&mut self) -> u64 {
        let x = self.stream.exponential(self.mean[usize::from(self.bad)]);
        ((x + 0.5) as u64).max(u64::from(self.in_time))
    }
}

impl LossProcess for TwoState {
    fn strikes(&mut self, at: Time, _packet: &dyn LinkPacket) -> bool {
        let here = if self.in_time { at.as_nanos() } else { self.count };
        self.count += 1;
        // Mean durations far below the packet spacing would need many changes; beyond the limit the
        // state is drawn from the stationary distribution, and the clock set to now.
        let mut turns = 0;
        while here >= self.ends {
            self.bad = !self.bad;
            self.ends = self.ends.saturating_add(self.length());
            turns += 1;
            if turns == MAX_TURNS {
                let share = self.mean[1] / (self.mean[0] + self.mean[1]);
                self.bad = self.stream.chance(share);
                self.ends = here.saturating_add(self.length().max(1));
            }
        }
        self.bad
    }
}
