//! Fuzzing of any listed controller, including its receiver side, with any legal sequence of events.
//!
//! Property tests and the fuzz target share it: bytes become an environment and a list of events
//! ([`FuzzCase::from_bytes`]). [`FuzzCase::put`] passes them to a controller and panics if it violates a requirement.
//! Requirements after each event:
//!
//! - the window is not negative, and finite unless there is a pacing rate; the rate is above zero;
//!   over TCP, which could not continue otherwise, the window is at least one;
//! - ssthresh is at least one; feedback consists of finite numbers; watched values are not NaN and belong
//!   to the entry's variables, and states have one of their numbers;
//! - a due tick is rescheduled after a few calls, at either side.
//!
//! Finally, if no more packets arrive, another packet must be permitted within an hour. (Not with ns-2's variants:
//! their rates have no lower bound.)

mod apply;
mod decode;
#[cfg(test)]
mod tests;

use crate::{CongestionEvent, Controller, ControllerEntry, Dialect, Environment, ReceiverSide};
use apply::FuzzedConnection;
pub use apply::report;
use narrows_base::descriptor::ParamKind;
use narrows_base::{Duration, Param, Settings, Spec, Time};
use std::collections::BTreeSet;

/// Most calls at one instant until a due tick must be rescheduled.
const MAX_CALLS: u32 = 1000;
/// Most ticks in the hour without arrivals.
const MAX_TICKS: u32 = 200_000;
/// Another packet must be permitted within this time without arrivals.
const SILENCE: Duration = Duration::from_secs(3600);

/// A case: an environment and events.
#[derive(Clone, Debug)]
pub struct FuzzCase {
    /// Environment of the controller.
    pub environment: Environment,
    /// The events, each after a pause in nanoseconds.
    pub events: Vec<(u64, FuzzEvent)>,
}

/// One event. Times and counts are wider than any real network's, on purpose.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // The fields are those of the events in `crate::event`.
pub enum FuzzEvent {
    Sent { retransmission: bool, last_waiting: bool },
    Ack { advance: u64, sacked: u64, rtt: u64, flags: u8, sampled: u64, arrived: u64 },
    Loss { segments: u64, age: u64, transmissions: u32, how: u8 },
    SpuriousLoss { packets: u64, undo: bool },
    RecoveryStart,
    RecoveryEnd,
    SlowStartRestart { timeout: bool, backoffs: u32 },
    EcnCe,
    PacketOutcome { lost: bool, marked: bool },
    Feedback { words: Vec<u32>, rtt: u64 },
    Tick,
    Arrival { step: NumberStep, marked: bool, sent_ago: u64, words: Vec<u32> },
    ReceiverTick,
    Report { rtt: u64 },
}

/// The number of an arriving packet, relative to the highest so far.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum NumberStep {
    /// The next number.
    Next,
    /// Skips this many numbers.
    Ahead(u64),
    /// This far below the highest: late.
    Behind(u64),
}

/// The entry with each choice taken once, and each number at its default, smallest and largest
/// value.
pub fn variants(entry: &ControllerEntry) -> Vec<Settings> {
    let name = entry.descriptor.name;
    let mut specs = vec![name.to_owned()];
    for p in entry.descriptor.params {
        match p.kind {
            ParamKind::Choice(words) => {
                specs.extend(words.iter().map(|w| format!("{name}({}={w})", p.name)));
            }
            ParamKind::Number { unit, min, max, .. } => {
                for x in [min, max] {
                    specs.push(format!("{name}({}={})", p.name, unit.show(x)));
                }
            }
            ParamKind::Integers => {}
        }
    }
    let read = |s: &String| entry.read(&Spec::parse(s).expect("well formed")).expect("legal");
    specs.iter().map(read).collect()
}

impl FuzzCase {
    /// Passes the case to a controller and returns the variables that it reported.
    ///
    /// # Panics
    /// The controller violates a requirement on every controller.
    pub fn put(&self, entry: &ControllerEntry, settings: &Settings) -> BTreeSet<&'static str> {
        let mut shown = BTreeSet::new();
        let name = entry.descriptor.name;
        let mut sender = entry.build(settings, &self.environment);
        let mut receiver = entry.receiver.map(|build| build(settings, &self.environment));
        let strict = self.permits(&*sender, 0) && !self.speaks_ns2(entry, settings);
        let mut connection = FuzzedConnection::new(name, self.environment.packet_bytes);
        check(&*sender, entry, &mut shown);
        for (pause, event) in &self.events {
            connection.apply(&mut *sender, &mut receiver, *pause, event);
            check(&*sender, entry, &mut shown);
            if let Some(half) = &mut receiver {
                check_receiver(&mut **half, connection.now, entry, &mut shown);
            }
        }
        // A user may set a rate of one packet in three hours. Otherwise the wait must end.
        if strict {
            self.silence(&mut *sender, &connection, entry);
        }
        shown
    }

    fn speaks_ns2(&self, entry: &ControllerEntry, settings: &Settings) -> bool {
        let is_choice = |p: &&Param| matches!(p.kind, ParamKind::Choice(_));
        let mut choices = entry.descriptor.params.iter().filter(is_choice);
        self.environment.dialect == Dialect::Ns2
            || choices.any(|p| settings.choice(p.name) == "ns2")
    }

    /// Whether another packet may be sent within the hour, with `flight` packets in flight.
    fn permits(&self, sender: &dyn Controller, flight: u64) -> bool {
        let send_limits = sender.send_limits();
        let bits = f64::from(self.environment.packet_bytes) * 8.0;
        let soon = send_limits
            .pacing_rate
            .is_none_or(|r| bits / r.as_bps() as f64 <= SILENCE.as_secs_f64());
        send_limits.cwnd as u64 > flight && soon
    }

    /// No more packets arrive: only ticks, and the endpoint's timer if the controller keeps no own timer.
    fn silence(
        &self,
        sender: &mut dyn Controller,
        connection: &FuzzedConnection,
        entry: &ControllerEntry,
    ) {
        let name = entry.descriptor.name;
        let end = connection.now + SILENCE;
        let mut now = connection.now;
        let mut flight = connection.outstanding;
        let own = sender.requirements().own_timer;
        let mut timer = if own { Time::NEVER } else { now + Duration::from_secs(1) };
        let mut backoffs = 0;
        for _ in 0..MAX_TICKS {
            if self.permits(sender, flight) {
                return;
            }
            let next = sender.next_tick().max(now).min(timer);
            if next > end {
                break;
            }
            now = next;
            if timer <= now {
                backoffs += 1;
                sender.on_congestion_event(&CongestionEvent::SlowStartRestart(
                    connection.restart(now, flight, backoffs),
                ));
                flight = 0;
                timer = now + Duration::from_secs(1 << backoffs.min(6));
            } else {
                due(sender, now, name);
            }
            check(sender, entry, &mut BTreeSet::new());
        }
        let send_limits = sender.send_limits();
        panic!("{name}: silent for ever at {now:?}, {flight} in flight, {send_limits:?}");
    }
}

/// Delivers due ticks until the next tick is in the future.
fn due(sender: &mut dyn Controller, now: Time, name: &str) {
    let mut calls = 0;
    while sender.next_tick() <= now {
        sender.on_tick(now);
        calls += 1;
        assert!(calls < MAX_CALLS, "{name}: stuck at a tick of {:?}", sender.next_tick());
    }
}

fn check(sender: &dyn Controller, entry: &ControllerEntry, shown: &mut BTreeSet<&'static str>) {
    let name = entry.descriptor.name;
    let send_limits = sender.send_limits();
    let least = if sender.requirements().rrtp { 0.0 } else { 1.0 };
    assert!(send_limits.cwnd >= least, "{name}: {send_limits:?}");
    assert!(
        send_limits.cwnd.is_finite() || send_limits.pacing_rate.is_some(),
        "{name}: {send_limits:?}"
    );
    assert!(send_limits.pacing_rate.is_none_or(|r| r.as_bps() > 0), "{name}: {send_limits:?}");
    assert!(send_limits.ssthresh.is_none_or(|s| s >= 1.0), "{name}: {send_limits:?}");
    sender.watch(&mut |variable, value| check_variable(entry, variable, value, shown));
    check_words(sender.feedback_to_receiver().words(), name);
}

fn check_receiver(
    half: &mut dyn ReceiverSide,
    now: Time,
    entry: &ControllerEntry,
    shown: &mut BTreeSet<&'static str>,
) {
    check_words(half.feedback(now).words(), entry.descriptor.name);
    half.watch(&mut |variable, value| check_variable(entry, variable, value, shown));
}

fn check_variable(
    entry: &ControllerEntry,
    variable: &'static str,
    value: f64,
    shown: &mut BTreeSet<&'static str>,
) {
    let name = entry.descriptor.name;
    let listed = entry.variables.iter().find(|v| v.name == variable);
    let Some(listed) = listed else { panic!("{name}: {variable} is not among its variables") };
    let states = listed.states.len() as f64;
    let legal =
        if states == 0.0 { !value.is_nan() } else { value.fract() == 0.0 && value < states };
    assert!(legal, "{name}: {variable} is {value}");
    shown.insert(variable);
}

fn check_words(words: &[u32], name: &str) {
    for word in words {
        let number = f32::from_bits(*word);
        assert!(number.is_finite() && number >= 0.0, "{name}: says {number}");
    }
}
