//! The aims of a recommendation: for each the protocols that suit it, their value, and the bounds of what it bears.

use super::obtain::entry;
use super::text::{milliseconds, percent};
use crate::outcome::{ProtocolOutcome, SeedValues};
use narrows_base::SpecError;
use narrows_sim::protocol::Family;

/// The use of the link.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub enum Aim {
    /// Complete transfer of much data: goodput, then delay.
    #[default]
    Bulk,
    /// Calls: a steady rate with little delay and few losses.
    Calls,
    /// Live video: a steady rate; a second's delay does not matter.
    Live,
    /// Short transfers: completion time.
    Web,
}

/// All aims by their names.
pub const AIMS: [(&str, Aim); 4] =
    [("bulk", Aim::Bulk), ("calls", Aim::Calls), ("live", Aim::Live), ("web", Aim::Web)];

/// A quantity that an aim bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BoundedQuantity {
    /// Mean RTT above the smallest of all protocols, in seconds.
    MeanWait,
    /// The same for the 95th percentile of the RTT: packets that come later than a call waits for.
    LateWait,
    /// Lost packets that are not sent again, as a fraction.
    Loss,
    /// Coefficient of variation of goodput on the aim's time scale.
    Variation,
    /// Goodput of one flow over that of one competitor.
    Share,
    /// Transfers that do not end, as a fraction.
    Unfinished,
}

/// The most of a quantity that an aim bears.
#[derive(Clone, Copy, Debug)]
struct Bound {
    quantity: BoundedQuantity,
    max: f64,
    source: &'static str,
}

const fn bound(quantity: BoundedQuantity, max: f64, source: &'static str) -> Bound {
    Bound { quantity, max, source }
}

const SHARE: Bound = bound(BoundedQuantity::Share, 2.0, "RFC 5348 section 1");
/// A rate that is often half of its mean crosses a step of an encoder's rates.
const VARIATION: Bound = bound(BoundedQuantity::Variation, 0.5, "our choice");
/// Where the link itself varies or delays transfers beyond the run, these are bounded by this multiple of the least of
/// all protocols.
const MORE_THAN_LEAST: f64 = 1.25;

/// One-way delay of a call in seconds that most users notice little, ITU-T G.114.
const CALL_DELAY_S: f64 = 0.15;
/// One-way delay that no application should exceed, ITU-T G.114: beyond it, a transfer harms what shares its queue.
const PLANNED_DELAY_S: f64 = 0.4;

const TRANSFERS: [Bound; 3] = [
    // Others wait in the same queue. On long paths a queue of one BDP, which is one RTT, is permitted.
    bound(BoundedQuantity::MeanWait, PLANNED_DELAY_S, "ITU-T G.114, any application"),
    bound(BoundedQuantity::Unfinished, 0.01, "our choice"),
    SHARE,
];
const CALLS: [Bound; 4] = [
    bound(BoundedQuantity::LateWait, CALL_DELAY_S, "ITU-T G.114"),
    bound(BoundedQuantity::Loss, 0.03, "ITU-T G.1010, conversational voice"),
    VARIATION,
    SHARE,
];
const LIVE: [Bound; 4] = [
    // G.1010 bears 10 s of delay in one-way video; a player buffers less.
    bound(BoundedQuantity::LateWait, 1.0, "our choice"),
    bound(BoundedQuantity::Loss, 0.01, "ITU-T G.1010, one-way video"),
    VARIATION,
    SHARE,
];

/// The path's own values, from all protocols that suit the aim.
#[derive(Clone, Copy, Debug)]
pub struct PathValues {
    /// Smallest RTT, in seconds.
    pub floor_s: f64,
    /// Lowest variation of goodput on the aim's time scale.
    pub least_variation: f64,
    /// Lowest share of unfinished transfers: at the run's end some are always under way.
    pub least_unfinished: f64,
}

impl Bound {
    /// The bound on this path.
    fn on(&self, path: PathValues) -> f64 {
        match self.quantity {
            BoundedQuantity::MeanWait => self.max.max(path.floor_s),
            BoundedQuantity::Variation => self.max.max(MORE_THAN_LEAST * path.least_variation),
            BoundedQuantity::Unfinished if path.least_unfinished.is_finite() => {
                self.max.max(MORE_THAN_LEAST * path.least_unfinished)
            }
            _ => self.max,
        }
    }

    fn value(&self, aim: Aim, r: &ProtocolOutcome, path: PathValues) -> f64 {
        match self.quantity {
            BoundedQuantity::MeanWait => mean(r, "rtt_s_mean") - path.floor_s,
            BoundedQuantity::LateWait => mean(r, "rtt_s_p95") - path.floor_s,
            BoundedQuantity::Loss => loss(r),
            BoundedQuantity::Variation => aim.variation(r),
            BoundedQuantity::Share if r.rivals == 0 => f64::NAN,
            BoundedQuantity::Share => {
                let share = mean(r, "share");
                (share / r.flows as f64) / ((1.0 - share) / r.rivals as f64)
            }
            BoundedQuantity::Unfinished => 1.0 - mean(r, "finished"),
        }
    }

    fn name(&self) -> &'static str {
        match self.quantity {
            BoundedQuantity::MeanWait => "mean queueing delay",
            BoundedQuantity::LateWait => "queueing delay of 1 in 20 packets",
            BoundedQuantity::Loss => "loss",
            BoundedQuantity::Variation => "variation of goodput",
            BoundedQuantity::Share => "goodput over a competitor's",
            BoundedQuantity::Unfinished => "share of unfinished transfers",
        }
    }

    fn shown(&self, value: f64) -> String {
        match self.quantity {
            BoundedQuantity::MeanWait | BoundedQuantity::LateWait => milliseconds(value),
            BoundedQuantity::Share => format!("{value:.1}"),
            BoundedQuantity::Loss | BoundedQuantity::Variation | BoundedQuantity::Unfinished => {
                percent(value)
            }
        }
    }
}

impl Aim {
    /// The aim of that name.
    ///
    /// # Errors
    /// An unknown name, with the known ones.
    pub fn parse(text: &str) -> Result<Aim, SpecError> {
        let found = AIMS.iter().find(|a| a.0 == text.trim()).map(|a| a.1);
        found.ok_or_else(|| SpecError::unknown("aim", text, &AIMS.map(|a| a.0)))
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        AIMS.iter().find(|a| a.1 == self).map_or("", |a| a.0)
    }

    /// Default protocols to compare for this aim.
    pub fn protocols(self) -> &'static str {
        match self {
            Aim::Bulk | Aim::Web => "tcp,rrtp",
            Aim::Calls => "media",
            Aim::Live => "media,cubic,bbr,rrtp",
        }
    }

    /// Default traffic source for this aim.
    pub fn source(self) -> &'static str {
        if self == Aim::Web { "web" } else { "bulk" }
    }

    /// Why a protocol does not suit the aim on any link; `None` if it does.
    pub fn unsuited(self, r: &ProtocolOutcome) -> Option<&'static str> {
        let controller =
            entry(&r.protocol).and_then(|e| narrows_congestion::find(e.controller).ok());
        if controller.is_some_and(|c| c.is_unresponsive()) {
            return Some("does not respond to congestion");
        }
        match self {
            Aim::Bulk | Aim::Web if is_media(r) => {
                Some("leaves lost packets lost, so that no file would be whole")
            }
            Aim::Calls if !is_media(r) => Some("waits for retransmissions, which a call cannot"),
            _ => None,
        }
    }

    /// Its value: more is better, and ratios are meaningful.
    pub fn value(self, r: &ProtocolOutcome) -> f64 {
        let goodput = mean(r, "goodput_bps");
        match self {
            Aim::Bulk | Aim::Web if completes(r) => {
                or(mean(r, "finished"), 1.0) / mean(r, "completion_s")
            }
            Aim::Bulk => goodput,
            // Kleinrock's power: high goodput at low delay.
            Aim::Web => goodput / mean(r, "rtt_s_mean"),
            Aim::Calls | Aim::Live => goodput * (1.0 - or(self.variation(r), 0.0)).max(0.0),
        }
    }

    /// The measure that is compared over seeds, and whether more of it is better.
    pub fn measure(self, r: &ProtocolOutcome) -> (&'static str, bool) {
        match self {
            Aim::Bulk | Aim::Web if completes(r) => ("completion_s", false),
            _ => ("goodput_bps", true),
        }
    }

    /// The measure that decides if values are nearly equal; less is better.
    pub fn tie_breaker(self) -> &'static str {
        match self {
            Aim::Bulk => "rtt_s_mean",
            Aim::Calls | Aim::Web => "rtt_s_p95",
            Aim::Live => "cov_1s",
        }
    }

    /// The same by seed; values that do not exist are not numbers.
    pub fn values(self, r: &ProtocolOutcome) -> impl Iterator<Item = (u64, f64)> {
        let one = move |seed: &SeedValues| {
            let of = |name: &str| {
                let at = r.measures.iter().position(|m| m.0 == name);
                at.and_then(|i| seed.values.get(i).copied()).unwrap_or(f64::NAN)
            };
            let variation = match self {
                Aim::Calls => of("cov_1s"),
                _ => of("cov_5s"),
            };
            let value = match self {
                Aim::Bulk | Aim::Web if completes(r) => {
                    or(of("finished"), 1.0) / of("completion_s")
                }
                Aim::Bulk => of("goodput_bps"),
                Aim::Web => of("goodput_bps") / of("rtt_s_mean"),
                Aim::Calls | Aim::Live => of("goodput_bps") * (1.0 - or(variation, 0.0)).max(0.0),
            };
            (seed.seed, value)
        };
        r.by_seed.iter().map(one)
    }

    /// Values within this fraction of the best count as equal, and the tie-breaker decides. A bulk transfer gives up
    /// little goodput for delay; calls and live video gain more by steadiness and delay.
    pub fn near(self) -> f64 {
        if self == Aim::Bulk { 0.01 } else { 0.05 }
    }

    /// The rule of ranking, one sentence.
    pub fn ranking(self) -> &'static str {
        match self {
            Aim::Bulk => {
                "Ranked by goodput; delay is only bounded, and decides between goodputs within 1%."
            }
            Aim::Web => {
                "Ranked by completion time, or by goodput over mean RTT if transfers do not end."
            }
            Aim::Calls => {
                "Ranked by goodput less its variation over 1 s; within 5% the shorter delay decides."
            }
            Aim::Live => {
                "Ranked by goodput less its variation over 5 s; within 5% the steadier one decides."
            }
        }
    }

    /// Its variation of goodput on the relevant time scale.
    pub fn variation(self, r: &ProtocolOutcome) -> f64 {
        match self {
            Aim::Bulk | Aim::Web => f64::NAN,
            Aim::Calls => mean(r, "cov_1s"),
            Aim::Live => mean(r, "cov_5s"),
        }
    }

    fn bounds(self) -> &'static [Bound] {
        match self {
            Aim::Bulk | Aim::Web => &TRANSFERS,
            Aim::Calls => &CALLS,
            Aim::Live => &LIVE,
        }
    }

    /// The bound that a protocol exceeds most, and the factor; `None` within all bounds.
    fn exceeded(self, r: &ProtocolOutcome, path: PathValues) -> Option<(&'static Bound, f64)> {
        let factors = self.bounds().iter().map(|b| (b, b.value(self, r, path) / b.on(path)));
        factors.filter(|b| b.1 > 1.0).max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// By which factor a protocol exceeds a bound; 1 within all bounds.
    pub fn excess(self, r: &ProtocolOutcome, path: PathValues) -> f64 {
        self.exceeded(r, path).map_or(1.0, |b| b.1)
    }

    /// Whether its mean queueing delay is beyond its bound, and nothing else as much.
    pub fn only_queues(self, r: &ProtocolOutcome, path: PathValues) -> bool {
        self.exceeded(r, path).is_some_and(|b| b.0.quantity == BoundedQuantity::MeanWait)
    }

    /// `its loss is 9.5%, and calls bear 3.0% (ITU-T G.1010)`, if a bound rules the protocol out.
    pub fn why_not(self, r: &ProtocolOutcome, path: PathValues) -> Option<String> {
        let (bound, _) = self.exceeded(r, path)?;
        let value = bound.shown(bound.value(self, r, path));
        let bears = if self == Aim::Calls { "calls bear" } else { "this aim bears" };
        Some(format!(
            "its {} is {value}; {bears} {} ({})",
            bound.name(),
            bound.shown(bound.on(path)),
            bound.source
        ))
    }

    /// Why the path itself is beyond the aim's bounds, whatever the protocol.
    pub fn path_beyond(self, r: &ProtocolOutcome, path: PathValues) -> Option<String> {
        let of = |quantity| self.bounds().iter().find(|b| b.quantity == quantity);
        let random = mean(r, "random_loss_rate");
        if let Some(bound) = of(BoundedQuantity::Loss).filter(|b| is_media(r) && random > b.max) {
            let loss = percent(random);
            let max = percent(bound.max);
            return Some(format!(
                "The link itself loses {loss}, where {max} are bearable ({}): `narrows media` repairs losses.",
                bound.source
            ));
        }
        let one_way = path.floor_s / 2.0;
        (self == Aim::Calls && one_way > CALL_DELAY_S).then(|| {
            let own = milliseconds(one_way);
            let max = milliseconds(CALL_DELAY_S);
            format!(
                "The path alone takes {own} one way, where ITU-T G.114 recommends {max} at most."
            )
        })
    }
}

/// Its share if all flows get the same.
pub fn fair_share(r: &ProtocolOutcome, rivals: usize) -> f64 {
    r.flows as f64 / (r.flows + rivals) as f64
}

/// Losses that reach the application, without repaired ones.
pub fn loss(r: &ProtocolOutcome) -> f64 {
    if is_media(r) { or(mean(r, "loss_rate"), 0.0) } else { 0.0 }
}

/// Whether it does not retransmit.
pub fn is_media(r: &ProtocolOutcome) -> bool {
    entry(&r.protocol).is_some_and(|e| e.family == Family::Media)
}

/// Whether its applications send files that end.
pub fn completes(r: &ProtocolOutcome) -> bool {
    mean(r, "finished").is_finite()
}

/// A measure's mean; NaN if it does not exist.
pub fn mean(r: &ProtocolOutcome, name: &str) -> f64 {
    r.measure(name).map_or(f64::NAN, |e| e.mean)
}

fn or(x: f64, other: f64) -> f64 {
    if x.is_finite() { x } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of `docs/scenarios.md` has each bound with its source, in the row of its aim.
    #[test]
    fn the_documentation_has_every_bound() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenarios.md");
        let text = std::fs::read_to_string(file).unwrap();
        for (name, aim) in AIMS {
            let row = |l: &&str| l.starts_with("| `") && l.contains(&format!("`{name}`"));
            let row = text.lines().filter(row).find(|l| l.contains("ITU-T")).unwrap();
            for bound in aim.bounds().iter().filter(|b| b.quantity != BoundedQuantity::Share) {
                let max = bound.shown(bound.max).replace("1000 ms", "1 s").replace(".0%", "%");
                let entry = format!("{}: {max} ({}", bound.name(), bound.source);
                assert!(row.contains(&entry), "{name}: {entry}");
            }
        }
        assert!(text.contains(SHARE.source));
    }
}
