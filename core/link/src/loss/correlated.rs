//! Losses in the two forms of Linux's netem: `loss random PERCENT CORRELATION` and `loss state`.

use super::process::{LossEntry, LossProcess, probability};
use crate::LinkPacket;
use crate::correlated::Correlated;
use narrows_base::{Descriptor, RandomKey, RandomStream, Settings, Status, Time};

pub(crate) const CORRELATED: LossEntry =
    LossEntry::new(&CORRELATED_CARD, |s, random_key| Box::new(Repeated::new(s, random_key)));

const CORRELATED_CARD: Descriptor = Descriptor {
    name: "correlated",
    summary: "lost if a random number is below p, of which a part is the one before",
    source: "Linux netem: loss random PERCENT CORRELATION",
    senses: "packets",
    sets: "loss: with much correlation far fewer than p, since such numbers scatter less",
    params: &[
        probability("p", "threshold for the number", 0.01, "as uniform"),
        probability("correlation", "part of the number before in each", 0.0, "tc"),
    ],
    status: Status::Validated("equals uniform loss without correlation, by test"),
};

pub(crate) const STATE: LossEntry =
    LossEntry::new(&STATE_CARD, |s, random_key| Box::new(FourStates::new(s, random_key)));

const STATE_CARD: Descriptor = Descriptor {
    name: "state",
    summary: "four states: 1 received, 2 received in a burst, 3 lost in a burst, 4 lost alone",
    source: "Linux netem: loss state P13 P31 P32 P23 P14; Salsano et al. 2009",
    senses: "packets",
    sets: "loss in states 3 and 4",
    params: &[
        probability("p13", "from 1 to 3", 0.01, "1% as uniform"),
        probability(
            "p31",
            "from 3 to 1; by default 1 - p13 - p32, as netem's",
            0.99,
            "tc: 100% - p13",
        ),
        probability("p32", "from 3 to 2", 0.0, "tc"),
        probability("p23", "from 2 to 3", 1.0, "tc"),
        probability("p14", "from 1 to 4; from 4 it always goes back to 1", 0.0, "tc"),
    ],
    status: Status::Validated("stationary loss rate, by test"),
};

struct Repeated {
    p: f64,
    numbers: Correlated,
    stream: RandomStream,
}

impl Repeated {
    fn new(s: &Settings, random_key: RandomKey) -> Repeated {
        Repeated {
            p: s.number("p"),
            numbers: Correlated::new(s.number("correlation")),
            stream: random_key.named("correlated").stream(),
        }
    }
}

impl LossProcess for Repeated {
    fn strikes(&mut self, _at: Time, _packet: &dyn LinkPacket) -> bool {
        self.numbers.next(&mut self.stream) < self.p
    }
}

#[derive(Clone, Copy)]
enum LossState {
    Received,
    ReceivedInBurst,
    LostInBurst,
    LostAlone,
}

struct FourStates {
    p13: f64,
    p31: f64,
    p32: f64,
    p23: f64,
    p14: f64,
    state: LossState,
    stream: RandomStream,
}

/// The probability of leaving state 3 for state 1: as `tc` fills it in.
fn p31(s: &Settings) -> f64 {
    if s.given("p31") {
        s.number("p31")
    } else {
        (1.0 - s.number("p13") - s.number("p32")).max(0.0)
    }
}

impl FourStates {
    fn new(s: &Settings, random_key: RandomKey) -> FourStates {
        FourStates {
            p13: s.number("p13"),
            p31: p31(s),
            p32: s.number("p32"),
            p23: s.number("p23"),
            p14: s.number("p14"),
            state: LossState::Received,
            stream: random_key.named("state").stream(),
        }
    }
}

impl LossProcess for FourStates {
    fn strikes(&mut self, _at: Time, _packet: &dyn LinkPacket) -> bool {
        let u = self.stream.unit();
        // The order of the comparisons is netem's.
        self.state = match self.state {
            LossState::Received if u < self.p14 => LossState::LostAlone,
            LossState::Received if u < self.p14 + self.p13 => LossState::LostInBurst,
            LossState::Received | LossState::LostAlone => LossState::Received,
            LossState::ReceivedInBurst if u < self.p23 => LossState::LostInBurst,
            LossState::ReceivedInBurst => LossState::ReceivedInBurst,
            LossState::LostInBurst if u < self.p32 => LossState::ReceivedInBurst,
            LossState::LostInBurst if u < self.p32 + self.p31 => LossState::Received,
            LossState::LostInBurst => LossState::LostInBurst,
        };
        matches!(self.state, LossState::LostInBurst | LossState::LostAlone)
    }
}

#[cfg(test)]
mod tests {
    use crate::LossSpec;
    use crate::link::tests::packet;
    use narrows_base::{RandomKey, Time};

    const PACKETS: u32 = 200_000;

    fn outcomes(text: &str) -> Vec<bool> {
        let spec = LossSpec::parse_all(text).unwrap();
        let mut process = spec[0].build(RandomKey::from_seed(2));
        (0..PACKETS).map(|n| process.strikes(Time::ZERO, &packet(n, 1000))).collect()
    }
    fn share(outcomes: &[bool]) -> f64 {
        outcomes.iter().filter(|lost| **lost).count() as f64 / f64::from(PACKETS)
    }

    #[test]
    fn correlation_makes_bursts_and_fewer_losses() {
        assert!((share(&outcomes("correlated(10%,correlation=0)")) - 0.1).abs() < 0.003);
        let all = outcomes("correlated(40%,correlation=50%)");
        let lost = share(&all);
        // Numbers scatter less: 0.5 is their mean, 0.167 their standard deviation.
        assert!((0.25..0.33).contains(&lost), "{lost}");
        let after = all.windows(2).filter(|w| w[0] && w[1]).count() as f64;
        let after = after / (lost * f64::from(PACKETS));
        assert!(after > 1.5 * lost, "{after} after a loss, {lost} in all");
    }

    #[test]
    fn four_states_lose_their_stationary_share() {
        // State 1 has 1 / (1 + p13/p31 (1 + p32/p23) + p14) with p32 out of 3 and p23 back into it.
        let lost = share(&outcomes("state(p13=2%,p31=20%,p32=10%,p23=50%,p14=1%)"));
        let three = 0.02 / 0.2;
        let two = 0.02 / 0.2 * 0.1 / 0.5;
        let four = 0.01;
        let expected = (three + four) / (1.0 + three + two + four);
        assert!((lost / expected - 1.0).abs() < 0.05, "{lost}, not {expected}");
        // As tc fills it in, two states: losses alone, but for another at once.
        let lost = share(&outcomes("state(p13=5%)"));
        assert!((lost - 0.05).abs() < 0.002, "{lost}");
        assert!(LossSpec::parse_all("state(p13=2)").is_err());
    }
}
