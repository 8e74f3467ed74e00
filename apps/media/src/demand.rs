//! The rate that a flow asks of its controller at its start, and after this process did not run.
//!
//! A controller that has not tried the path begins with ten packets per round trip, and half of the latency may be over
//! before it permits the encoder's rate. The flow therefore gives that rate as a hint of this side's user, while its
//! first packets are under way: packets leave paced, and reports replace the hint by measurements. If a quarter of the
//! packets are lost, the flow replaces it at once by the rate at which they arrived.
//!
//! After a pause of this process, packets leave in a burst. Its losses resemble those of a queue that other flows share,
//! and a controller may back off to their rate. If packets wait then, the flow asks for the rate that the path carried
//! before.

use crate::encoder::{HEADERS, SHARE};
use narrows_base::{Duration, Rate, Time};

/// The asked rate over that of the media on the link. The controller of rrtp sends at 0.75 of a hinted rate in the first
/// round trip, and may back off once by that factor at losses that it cannot attribute yet: 1.8, and 2 with repeats.
const HEADROOM: f64 = 2.0;
/// Growth of the demand that is asked for, as a factor.
const GREW: f64 = 1.1;
/// Share of lost packets that refutes a request, and the minimum number of packets that decide.
const REFUTES: f64 = 0.25;
const DECIDE: u64 = 32;
/// Round trips after a request in which losses refute it.
const TRIAL: u64 = 6;
/// Minimum time between two requests after pauses.
const AGAIN: Duration = Duration::from_secs(2);

/// Packets of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketCounts {
    /// Sent so far.
    pub sent: u64,
    /// Of these, lost.
    pub lost: u64,
    /// Of these, neither acknowledged nor lost.
    pub flight: u64,
}

/// State of a flow when it may ask.
#[derive(Clone, Copy, Debug)]
pub struct DemandInputs {
    /// Bytes that came from the program so far.
    pub bytes: u64,
    /// The encoder's rate of the last second, in bit/s.
    pub sent: f64,
    /// Packets that the connection has sent, those that were lost, and those in flight.
    pub packets: PacketCounts,
    /// Bits of a full packet on the link.
    pub packet: f64,
    /// The controller's rate on the link, in bit/s; `None` if it is unlimited.
    pub permitted: Option<Rate>,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Minimum round-trip time.
    pub min_rtt: Duration,
    /// Time that the oldest unsent part has waited.
    pub waited: Duration,
    /// Longest wait before a part is dropped.
    pub longest_wait: Duration,
    /// Whether this process did not run for some time lately.
    pub is_after_pause: bool,
}

/// Decides which rate a flow asks for, and when.
#[derive(Debug)]
pub struct Demand {
    /// Maximum rate of the media, in bit/s.
    max: f64,
    /// The link's rate in bit/s, if the user gave it.
    link: Option<f64>,
    /// Time of the first datagram, and that of the first request.
    began: Option<Time>,
    first_asked: Option<Time>,
    /// The rate asked for at the start, and the time of the last request.
    asked: f64,
    asked_at: Time,
    /// The packets at a request that losses may refute, and its time.
    trial: Option<(Time, PacketCounts)>,
    /// The media's rate that the path carried last, in bit/s.
    carried: f64,
}

impl Demand {
    /// The demand of an encoder with the maximum rate `max`. `link` is the link's rate, if the user gave it.
    pub fn new(max: Rate, link: Option<Rate>) -> Demand {
        Demand {
            max: max.as_bps() as f64,
            link: link.map(|rate| rate.as_bps() as f64),
            began: None,
            first_asked: None,
            asked: 0.0,
            asked_at: Time::ZERO,
            trial: None,
            carried: 0.0,
        }
    }

    /// The encoder sent at this rate in bit/s for a second, and no packet was dropped for the controller's limits.
    pub fn on_carried(&mut self, rate: f64) {
        self.carried = rate;
    }

    /// The rate on the link to ask for now, if any.
    pub fn ask(&mut self, now: Time, known: &DemandInputs) -> Option<Rate> {
        if known.bytes == 0 {
            return None;
        }
        let began = *self.began.get_or_insert(now);
        let permitted = known.permitted?.as_bps() as f64;
        if let Some(rate) = self.refuted(now, known) {
            return Some(rate);
        }
        let is_starting = self.first_asked.is_none_or(|at| now.since(at) < known.srtt)
            && now.since(began) < known.longest_wait + known.srtt;
        if is_starting {
            // The rate at which all that came leaves before it is dropped.
            let time = now.since(began).max(known.longest_wait).as_secs_f64();
            let rate = known.bytes as f64 * 8.0 / time;
            let asked = self.on_link(rate);
            if asked <= permitted || asked < GREW * self.asked {
                return None;
            }
            self.first_asked.get_or_insert(now);
            self.asked = asked;
        } else {
            let waits_long = 4 * known.waited.as_nanos() > known.longest_wait.as_nanos();
            // If the pause came before the path carried any, the encoder's rate is asked for as at the start.
            let rate = if self.carried > 0.0 { self.carried } else { known.sent };
            let asked = self.on_link(rate);
            let is_due = known.is_after_pause && now.since(self.asked_at) >= AGAIN;
            if !is_due || !waits_long || asked <= permitted {
                return None;
            }
            self.asked = asked;
        }
        self.asked_at = now;
        self.trial.get_or_insert((now, known.packets));
        Some(Rate::from_bps_f64(self.asked))
    }

    /// The rate at which packets arrived since a request, if so many were lost that the path does not carry it.
    fn refuted(&mut self, now: Time, known: &DemandInputs) -> Option<Rate> {
        let (at, before) = self.trial?;
        let since = now.since(at);
        let lost = known.packets.lost.saturating_sub(before.lost);
        let sent = known.packets.sent.saturating_sub(before.sent);
        let known_outcomes = sent.saturating_sub(known.packets.flight);
        if since > known.srtt.saturating_mul(TRIAL) {
            self.trial = None;
        }
        if known_outcomes < DECIDE || (lost as f64) < REFUTES * known_outcomes as f64 {
            return None;
        }
        self.trial = None;
        let arrived = known_outcomes.saturating_sub(lost) as f64 * known.packet;
        let took = since.as_secs_f64() - known.min_rtt.as_secs_f64();
        (took > 0.0 && arrived > 0.0).then(|| Rate::from_bps_f64(arrived / took))
    }

    /// The rate on the link to ask for, if the media have this rate.
    fn on_link(&self, rate: f64) -> f64 {
        let max = self.link.unwrap_or(f64::INFINITY);
        HEADROOM * (rate.min(self.max) / (SHARE * HEADERS)).min(max)
    }
}
