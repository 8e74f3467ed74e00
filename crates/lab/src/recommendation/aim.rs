//! The aims of a recommendation, and how each rates the measures.

use super::obtain::entry;
use crate::outcome::ProtocolOutcome;
use narrows_base::SpecError;
use narrows_transport::protocol::Family;

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

/// Losses that voice and video tolerate, as a fraction of the packets: ITU-T G.1010 table I.1, conversational voice.
const MAX_LOSS: f64 = 0.03;
/// Losses above the lowest of all protocols.
const MAX_MORE_LOSS: f64 = 0.02;
/// Coefficient of variation that an encoder tolerates: a rate that is often half of its mean. If the link itself
/// varies, [`MAX_MORE_VARIATION`] times the lowest of all protocols.
const MAX_VARIATION: f64 = 0.5;
const MAX_MORE_VARIATION: f64 = 1.25;
/// A larger mean RTT is bufferbloat: this multiple of the smallest, plus [`SLACK_S`].
const MAX_BLOAT: f64 = 2.0;
/// Delay in seconds that does not matter to a transfer, on any path.
const SLACK_S: f64 = 0.05;
/// Queueing delay that a call tolerates, in seconds: with the delays of the path and the hosts it must stay within the
/// 150 ms one way, 300 ms round trip, of ITU-T G.114.
const MAX_CALL_QUEUEING_S: f64 = 0.15;
/// Queueing delay that live video tolerates, in seconds: a player buffers some seconds.
const MAX_LIVE_QUEUEING_S: f64 = 1.0;
/// More bytes sent per byte delivered are waste.
const MAX_WASTE: f64 = 1.5;
/// A flow starves others if it gets this many times as much as each of them.
const MAX_UNFAIR: f64 = 3.0;

/// The best values of all protocols, for comparison.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Best {
    /// Smallest RTT, in seconds.
    pub floor_s: f64,
    /// Lowest loss.
    pub least_loss: f64,
    /// Lowest variation of goodput on the aim's time scale.
    pub least_variation: f64,
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

    /// Whether a protocol suits the aim at all. Files and pages must be complete; a call does not wait for
    /// retransmissions.
    pub fn suits(self, r: &ProtocolOutcome) -> bool {
        let senses = entry(&r.protocol).and_then(|e| e.descriptor().ok()).map_or("", |c| c.senses);
        senses != "nothing"
            && match self {
                Aim::Bulk | Aim::Web => !is_media(r),
                Aim::Calls => is_media(r),
                Aim::Live => true,
            }
    }

    /// Its value: more is better, and ratios are meaningful.
    pub fn value(self, r: &ProtocolOutcome) -> f64 {
        let steady = |scale| goodput(r) * (1.0 - or(mean(r, scale), 0.0)).max(0.0);
        match self {
            Aim::Bulk | Aim::Web if completes(r) => {
                or(mean(r, "finished"), 1.0) / mean(r, "completion_s")
            }
            Aim::Bulk => goodput(r),
            // Kleinrock's power: high goodput at low delay.
            Aim::Web => goodput(r) / mean(r, "rtt_s_mean"),
            Aim::Calls => steady("cov_1s"),
            Aim::Live => steady("cov_5s"),
        }
    }

    /// The measure that is compared over seeds, and whether more of it is better.
    pub fn measure(self, r: &ProtocolOutcome) -> (&'static str, bool) {
        match self {
            Aim::Bulk | Aim::Web if completes(r) => ("completion_s", false),
            _ => ("goodput_bps", true),
        }
    }

    /// The limits of a protocol, for any value.
    pub fn bears(self) -> String {
        let ms = |s: f64| super::text::milliseconds(s);
        let queueing = |s: f64| {
            format!(
                "{} of queueing for 19 of 20 packets, {} of losses and a goodput that varies by {}",
                ms(s),
                super::text::percent(MAX_LOSS),
                super::text::percent(MAX_VARIATION)
            )
        };
        match self {
            Aim::Bulk | Aim::Web => {
                format!("a mean RTT of {MAX_BLOAT:.0} times the least and {}", ms(SLACK_S))
            }
            Aim::Calls => queueing(MAX_CALL_QUEUEING_S),
            Aim::Live => queueing(MAX_LIVE_QUEUEING_S),
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

    /// The measure that decides if values are nearly equal; less is better.
    pub fn tie_breaker(self) -> &'static str {
        match self {
            Aim::Bulk => "rtt_s_mean",
            Aim::Calls | Aim::Web => "rtt_s_p95",
            Aim::Live => "cov_1s",
        }
    }

    /// The limit that rules a protocol out, if any.
    pub fn why_not(self, r: &ProtocolOutcome, best: Best) -> Option<String> {
        let (rtt, p95) = (mean(r, "rtt_s_mean"), mean(r, "rtt_s_p95"));
        let waste = mean(r, "offered_over_delivered");
        let queueing = |rtt: f64| super::text::milliseconds(rtt - best.floor_s);
        let late = match self {
            Aim::Bulk | Aim::Web => (rtt > MAX_BLOAT * best.floor_s + SLACK_S)
                .then(|| format!("packets wait {} on average", queueing(rtt))),
            Aim::Calls => (p95 > best.floor_s + MAX_CALL_QUEUEING_S)
                .then(|| format!("one packet in twenty waits {} or more", queueing(p95))),
            Aim::Live => (p95 > best.floor_s + MAX_LIVE_QUEUEING_S)
                .then(|| format!("one packet in twenty waits {} or more", queueing(p95))),
        };
        let lossy = loss(r) > MAX_LOSS.min(best.least_loss + MAX_MORE_LOSS);
        let most_variation = MAX_VARIATION.max(MAX_MORE_VARIATION * best.least_variation);
        let unfinished = mean(r, "finished") < 0.99 && matches!(self, Aim::Bulk | Aim::Web);
        late.or_else(|| {
            (waste > MAX_WASTE).then(|| format!("it sends {waste:.1} bytes for each that arrives"))
        })
        .or_else(|| {
            let lost = super::text::percent(loss(r));
            (lossy && !matches!(self, Aim::Bulk | Aim::Web))
                .then(|| format!("it loses {lost} of its packets"))
        })
        .or_else(|| {
            let done = super::text::percent(mean(r, "finished"));
            unfinished.then(|| format!("only {done} of its transfers come to their end"))
        })
        .or_else(|| {
            let variation = super::text::percent(self.variation(r));
            (self.variation(r) > most_variation)
                .then(|| format!("its goodput varies by {variation}"))
        })
        .or_else(|| unkind(r))
        .or_else(|| unresponsive(r))
    }
}

/// Whether it sends at a fixed rate regardless of competitors.
fn unresponsive(r: &ProtocolOutcome) -> Option<String> {
    let controller = narrows_congestion::find(entry(&r.protocol)?.controller).ok()?;
    controller
        .is_unresponsive()
        .then(|| "it keeps to the rate that it was told and gives way to nobody".to_string())
}

/// Whether it starves others: the goodput of one of its flows over that of one of theirs.
fn unkind(r: &ProtocolOutcome) -> Option<String> {
    let share = mean(r, "share");
    let rivals = r.rivals;
    if !share.is_finite() || rivals == 0 {
        return None;
    }
    let fair = fair_share(r, rivals);
    let unfair = (share / r.flows as f64) / ((1.0 - share) / rivals as f64);
    (unfair > MAX_UNFAIR).then(|| {
        let (share, fair) = (super::text::percent(share), super::text::percent(fair));
        format!("it takes {share} of what all deliver, where {fair} would be equal")
    })
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

fn goodput(r: &ProtocolOutcome) -> f64 {
    mean(r, "goodput_bps")
}

fn or(x: f64, other: f64) -> f64 {
    if x.is_finite() { x } else { other }
}
