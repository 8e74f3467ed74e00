//! Explains events of a flow: finds the moments at which a flow's limits fell or its controller's state changed. Lists
//! the observations of the last round trip: losses and marks with their places, the RTT, and the variables that the
//! controller reports by `watch`. A cause without an observation is not claimed.

use crate::feed::{EventMark, FeedEvent};
use narrows_base::Variable;
use std::collections::VecDeque;

/// A limit that falls below this part of its highest value in the last round trip is an event.
const FALL: f64 = 0.8;
/// Most samples of the last round trip that are kept.
const MAX_RECENT: usize = 256;
/// Most variables of the controller that an event lists.
const MAX_VARIABLES: usize = 4;
/// A higher ratio of RTT to minimum RTT is mentioned.
const LONG_RTT: f64 = 1.25;

/// A sample of a flow. Counts are those since the former sample.
#[derive(Clone, Debug, Default)]
pub struct FlowSample {
    /// Time of the sample, us.
    pub time_us: i64,
    /// Congestion window in packets; infinite or NaN if there is none.
    pub cwnd: f64,
    /// Pacing rate in bit/s; NaN if there is none.
    pub pacing_bps: f64,
    /// RTT of the last acknowledgement, s; NaN before the first.
    pub rtt_s: f64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// The flow's packets that a queue dropped, if observable.
    pub queue_drops: u64,
    /// The flow's packets that were lost on the link, if observable.
    pub link_losses: u64,
    /// Packets that the sender declared lost.
    pub declared_lost: u64,
    /// Reactions to ECN marks.
    pub marks: u64,
    /// The controller's variables.
    pub watched: Vec<(&'static str, f64)>,
}

/// Examines a flow's samples in order.
#[derive(Debug)]
pub struct Explainer {
    find: fn(&str) -> Option<Variable>,
    /// Whether timeouts are probe timeouts (RFC 9002 section 6.2).
    probes: bool,
    recent: VecDeque<FlowSample>,
    /// Names in the last sample, and the variables among them that are states. Cached, because the lists are long and
    /// rarely change.
    names: Vec<&'static str>,
    states: Vec<Variable>,
    min_rtt_s: f64,
    /// Time of the last reported fall, us.
    told_us: i64,
}

impl Explainer {
    /// `find` looks up the descriptions of the controller's variables.
    pub fn new(find: fn(&str) -> Option<Variable>) -> Explainer {
        let recent = VecDeque::new();
        let names = Vec::new();
        let states = Vec::new();
        let min_rtt_s = f64::INFINITY;
        let told_us = i64::MIN;
        Explainer { find, probes: false, recent, names, states, min_rtt_s, told_us }
    }

    /// For an rrtp endpoint, whose timeouts are probe timeouts.
    pub fn of_endpoint(find: fn(&str) -> Option<Variable>) -> Explainer {
        Explainer { probes: true, ..Explainer::new(find) }
    }

    /// Examines the next sample; returns events for this track.
    pub fn look(&mut self, track: usize, sample: FlowSample) -> Vec<FeedEvent> {
        if sample.rtt_s > 0.0 {
            self.min_rtt_s = self.min_rtt_s.min(sample.rtt_s);
        }
        let mut events = Vec::new();
        let event = |mark, title, why| {
            let time_us = sample.time_us;
            FeedEvent { time_us, track, mark, title, why }
        };
        if sample.timeouts > 0 {
            let title = if self.probes { "probe timeout" } else { "retransmission timeout" };
            events.push(event(EventMark::Timeout, title.into(), self.why(&sample)));
        }
        let rtt_us = if sample.rtt_s > 0.0 { (sample.rtt_s * 1e6) as i64 } else { 0 };
        let waited = sample.time_us.saturating_sub(rtt_us) >= self.told_us;
        if waited
            && sample.timeouts == 0
            && let Some(title) = self.fall(&sample)
        {
            events.push(event(EventMark::Slower, title, self.why(&sample)));
        }
        self.find_states(&sample);
        if let Some(title) = self.state_change(&sample) {
            events.push(event(EventMark::State, title, self.why(&sample)));
        }
        if events.iter().any(|e| e.mark != EventMark::State) {
            self.told_us = sample.time_us;
            self.recent.clear();
        }
        // Keep a round trip, and at least the former sample.
        let from = sample.time_us.saturating_sub(rtt_us);
        while self.recent.len() >= 2 && self.recent.get(1).is_some_and(|s| s.time_us <= from) {
            self.recent.pop_front();
        }
        if self.recent.len() == MAX_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(sample);
        events
    }

    /// Describes the limit that fell; `None` if none did.
    fn fall(&self, now: &FlowSample) -> Option<String> {
        let highest = |of: fn(&FlowSample) -> f64| {
            let all = self.recent.iter().map(of).filter(|x| x.is_finite());
            all.fold(f64::NAN, f64::max)
        };
        let cwnd = highest(|s| s.cwnd);
        let pacing = highest(|s| s.pacing_bps);
        if now.cwnd < FALL * cwnd {
            return Some(format!("cwnd {cwnd:.1} → {:.1} packets", now.cwnd));
        }
        let to = now.pacing_bps;
        (to < FALL * pacing)
            .then(|| format!("pacing rate {:.3} → {:.3} Mbit/s", pacing * 1e-6, to * 1e-6))
    }

    fn find_states(&mut self, now: &FlowSample) {
        let same =
            |(name, watched): (&&'static str, &(&'static str, f64))| is_same(name, watched.0);
        if self.names.len() == now.watched.len() && self.names.iter().zip(&now.watched).all(same) {
            return;
        }
        self.names = now.watched.iter().map(|w| w.0).collect();
        let found = self.names.iter().filter_map(|name| (self.find)(name));
        self.states = found.filter(|v| !v.states.is_empty()).collect();
    }

    fn state_change(&self, now: &FlowSample) -> Option<String> {
        let before = self.recent.back()?;
        self.states.iter().find_map(|variable| {
            let value = |sample: &FlowSample| {
                let found = sample.watched.iter().find(|(name, _)| *name == variable.name);
                variable.states.get(found?.1 as usize).copied()
            };
            let old = value(before)?;
            let new = value(now)?;
            (old != new).then(|| format!("{}: {old} → {new}", variable.name))
        })
    }

    /// Sentences that explain an event, the cause first.
    fn why(&self, now: &FlowSample) -> Vec<String> {
        let mut why = Vec::new();
        let sum = |of: fn(&FlowSample) -> u64| self.recent.iter().map(of).sum::<u64>() + of(now);
        let drops = sum(|s| s.queue_drops);
        let losses = sum(|s| s.link_losses);
        let marks = sum(|s| s.marks);
        let lost = sum(|s| s.declared_lost);
        if now.timeouts > 0 {
            let then = if self.probes { "sent a probe" } else { "began anew" };
            why.push(format!(
                "Nothing was acknowledged for a whole timeout, so the sender {then}."
            ));
        }
        if drops > 0 {
            why.push(format!("The queue dropped {} of this flow.", packets(drops)));
        }
        if losses > 0 {
            let not = if drops == 0 { " The queue dropped none." } else { "" };
            let were = if losses == 1 { "was" } else { "were" };
            why.push(format!("{} {were} lost on the link itself.{not}", packets(losses)));
        }
        if lost > 0 && drops + losses == 0 {
            why.push(format!("The sender found {} lost.", packets(lost)));
        }
        if marks > 0 {
            why.push("The queue marked packets with ECN's congestion experienced.".into());
        }
        let rtt = (now.rtt_s * 1e3, self.min_rtt_s * 1e3);
        let long = now.rtt_s > LONG_RTT * self.min_rtt_s;
        if long {
            let above = rtt.0 - rtt.1;
            why.push(format!(
                "The round trip took {:.1} ms, {above:.1} ms more than the shortest: there was a queue.",
                rtt.0
            ));
        }
        if why.is_empty() {
            why.push(
                "No loss, mark or timeout within the last round trip: the controller's own choice."
                    .into(),
            );
        }
        if !long && now.rtt_s > 0.0 {
            why.push(format!("The round trip took {:.1} ms (shortest {:.1} ms).", rtt.0, rtt.1));
        }
        why.extend(self.variables(now));
        why
    }

    /// The controller's variables that changed most within the last round trip.
    fn variables(&self, now: &FlowSample) -> Vec<String> {
        let Some(before) = self.recent.front() else { return Vec::new() };
        let mut changed: Vec<(f64, String)> = Vec::new();
        for (name, value) in &now.watched {
            let old = before.watched.iter().find(|(other, _)| other == name);
            let (Some((_, old)), Some(variable)) = (old, (self.find)(name)) else { continue };
            let size = (value - old).abs() / value.abs().max(old.abs()).max(1e-12);
            if !variable.states.is_empty() || !size.is_finite() || size < 0.01 {
                continue;
            }
            let show = |x: f64| shown(x, variable.unit);
            changed.push((
                size,
                format!("{name} {} → {}: {}.", show(*old), show(*value), variable.meaning),
            ));
        }
        changed.sort_by(|a, b| b.0.total_cmp(&a.0));
        changed.into_iter().take(MAX_VARIABLES).map(|c| c.1).collect()
    }
}

/// Whether two names are the same string in memory; fast, as it runs for every variable 60 times a second.
pub(crate) fn is_same(a: &'static str, b: &'static str) -> bool {
    std::ptr::eq(a, b)
}

fn packets(n: u64) -> String {
    if n == 1 { "1 packet".into() } else { format!("{n} packets") }
}

/// Formats a value with its unit.
fn shown(x: f64, unit: &str) -> String {
    match unit {
        "bit/s" => format!("{:.3} Mbit/s", x * 1e-6),
        "s" => format!("{:.1} ms", x * 1e3),
        _ if x.abs() >= 100.0 => format!("{x:.0} {unit}").trim_end().to_string(),
        _ => format!("{x:.3} {unit}").trim_end().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &str) -> Option<Variable> {
        match name {
            "w_max" => Some(Variable::new("w_max", "packets", "window at the last reduction")),
            "mode" => Some(Variable::state("mode", "what it does", &["startup", "drain"])),
            _ => None,
        }
    }

    /// A flow at 10 ms per sample with an RTT of 50 ms.
    fn sample(n: i64, cwnd: f64, w_max: f64) -> FlowSample {
        let watched = vec![("w_max", w_max), ("mode", 0.0), ("unheard_of", n as f64)];
        let rtt_s = 0.05;
        FlowSample {
            time_us: n * 10_000,
            cwnd,
            rtt_s,
            pacing_bps: f64::NAN,
            watched,
            ..FlowSample::default()
        }
    }

    fn steady() -> Explainer {
        let mut explainer = Explainer::new(find);
        for n in 0..20 {
            assert!(explainer.look(0, sample(n, 40.0, 57.0)).is_empty(), "nothing happens");
        }
        explainer
    }

    /// A drop precedes the controller's reaction: the event lists it, with the variables that changed.
    #[test]
    fn a_fall_names_the_drop_of_the_round_trip_before() {
        let mut explainer = steady();
        assert!(
            explainer.look(0, FlowSample { queue_drops: 2, ..sample(20, 40.0, 57.0) }).is_empty()
        );
        explainer.look(0, sample(21, 39.0, 57.0));
        let events = explainer.look(7, sample(22, 28.0, 40.0));
        assert_eq!(events.len(), 1);
        let event = &events[0];
        assert_eq!((event.mark, event.track, event.time_us), (EventMark::Slower, 7, 220_000));
        assert_eq!(event.title, "cwnd 40.0 → 28.0 packets");
        assert_eq!(event.why[0], "The queue dropped 2 packets of this flow.");
        let last = event.why.last().unwrap();
        assert_eq!(last, "w_max 57.000 packets → 40.000 packets: window at the last reduction.");
        let next = explainer.look(7, sample(23, 27.0, 40.0));
        assert!(next.is_empty(), "the same fall is told of once: {next:?}");
    }

    /// An old drop is no cause, and no other cause is claimed.
    #[test]
    fn without_anything_seen_no_cause_is_claimed() {
        let mut explainer = steady();
        explainer.look(0, FlowSample { queue_drops: 1, ..sample(20, 40.0, 57.0) });
        for n in 21..60 {
            explainer.look(0, sample(n, 40.0, 57.0));
        }
        let events = explainer.look(0, sample(60, 20.0, 57.0));
        assert!(events[0].why[0].contains("the controller's own choice"), "{:?}", events[0].why);
        let mut explainer = steady();
        let long = FlowSample { rtt_s: 0.09, ..sample(20, 20.0, 57.0) };
        let why = &explainer.look(0, long)[0].why;
        assert!(why[0].contains("90.0 ms, 40.0 ms more"), "{why:?}");
    }

    #[test]
    fn link_losses_differ_from_drops_and_timeouts_come_first() {
        let mut explainer = steady();
        let now = FlowSample { link_losses: 1, timeouts: 1, ..sample(20, 1.0, 57.0) };
        let events = explainer.look(0, now);
        assert_eq!(
            (events.len(), events[0].mark),
            (1, EventMark::Timeout),
            "one thing is told once"
        );
        assert!(events[0].why[0].contains("timeout"));
        assert!(events[0].why[1].contains("lost on the link itself"), "{:?}", events[0].why);
    }

    #[test]
    fn states_have_their_names() {
        let mut explainer = steady();
        let mut now = sample(20, 40.0, 57.0);
        now.watched[1].1 = 1.0;
        assert_eq!(explainer.look(0, now)[0].title, "mode: startup → drain");
        let mut strange = sample(21, 40.0, 57.0);
        strange.watched[1].1 = 77.0;
        assert!(explainer.look(0, strange).is_empty(), "a state without a name");
    }
}
