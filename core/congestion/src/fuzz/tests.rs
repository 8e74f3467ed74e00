//! Fuzzing detects deliberate faults.

use super::{FuzzCase, FuzzEvent, NumberStep, variants};
use crate::reno::DESCRIPTOR;
use crate::{
    Ack, Arrival, Controller, ControllerEntry, Environment, Feedback, ReceiverSide, Requirements,
    SendLimits,
};
use narrows_base::{RandomKey, Rate, Settings, Time, Variable};

/// Bytes as good as any.
fn drawn(seed: u64) -> FuzzCase {
    let mut random = RandomKey::from_seed(seed).stream();
    let bytes: Vec<u8> = (0..3000).map(|_| random.bits() as u8).collect();
    FuzzCase::from_bytes(&bytes)
}

/// A half with one fault, which shows after a hundred calls.
#[derive(Clone, Default)]
struct Faulty {
    calls: u32,
    fault: &'static str,
    tick: Option<Time>,
}
impl Faulty {
    fn has(&self, fault: &str) -> bool {
        self.calls > 100 && self.fault == fault
    }
}
impl Controller for Faulty {
    fn on_ack(&mut self, _ack: &Ack) {
        self.calls += 10;
        self.tick = Some(Time::ZERO);
    }
    fn on_tick(&mut self, now: Time) {
        let stuck = self.has("tick");
        self.tick = stuck.then_some(now);
    }
    fn next_tick(&self) -> Time {
        self.tick.unwrap_or(Time::NEVER)
    }
    fn send_limits(&self) -> SendLimits {
        let bps = if self.has("rate") { 0 } else { 1_000_000 };
        let window = match self.fault {
            "window" if self.has("window") => f64::NAN,
            "silence" if self.has("silence") => 0.0,
            _ => f64::INFINITY,
        };
        SendLimits::paced(window, Rate::from_bps(bps))
    }
    fn feedback_to_receiver(&self) -> Feedback {
        Feedback::of(&[if self.has("words") { f64::NAN } else { 1.0 }])
    }
    fn requirements(&self) -> Requirements {
        Requirements::OWN_TIMER
    }
    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("estimate", if self.has("watched") { f64::NAN } else { 0.5 });
        put("state", if self.has("state") { 2.0 } else { 1.0 });
        if self.has("unlisted") {
            put("unlisted", 0.0);
        }
    }
}
impl ReceiverSide for Faulty {
    fn on_arrival(&mut self, arrival: &Arrival) -> bool {
        self.calls += 10;
        self.tick = Some(arrival.now);
        assert!(!(self.has("far") && arrival.seq > 1 << 39), "so far ahead");
        false
    }
    fn on_tick(&mut self, now: Time) -> bool {
        Controller::on_tick(self, now);
        false
    }
    fn next_tick(&self) -> Time {
        Controller::next_tick(self)
    }
    fn feedback(&mut self, _now: Time) -> Feedback {
        Controller::feedback_to_receiver(self)
    }
}

const VARIABLES: &[Variable] = &[
    Variable::new("estimate", "", "what it believes"),
    Variable::state("state", "what it does", &["waits", "works"]),
];

fn sound(_: &Settings, _: &Environment) -> Box<dyn Controller> {
    Box::new(Faulty::default())
}
macro_rules! faulty {
    ($fault:literal) => {
        (
            $fault,
            ControllerEntry::new(&DESCRIPTOR, |_, _| {
                Box::new(Faulty { fault: $fault, ..Faulty::default() })
            })
            .with_variables(VARIABLES),
            ControllerEntry::new(&DESCRIPTOR, sound)
                .with_variables(VARIABLES)
                .with_receiver(|_, _| Box::new(Faulty { fault: $fault, ..Faulty::default() })),
        )
    };
}

fn breaks(entry: &ControllerEntry) -> bool {
    let settings = variants(entry).remove(0);
    (0..40).any(|seed| {
        let case = drawn(seed);
        std::panic::catch_unwind(|| case.put(entry, &settings)).is_err()
    })
}

#[test]
fn every_fault_is_found_and_a_sound_controller_passes() {
    let none = faulty!("none");
    assert!(!breaks(&none.1) && !breaks(&none.2));
    for (fault, sender, _) in [
        faulty!("tick"),
        faulty!("rate"),
        faulty!("window"),
        faulty!("silence"),
        faulty!("words"),
        faulty!("watched"),
        faulty!("state"),
        faulty!("unlisted"),
    ] {
        assert!(breaks(&sender), "{fault}");
    }
    for (fault, _, receiver) in [faulty!("tick"), faulty!("words"), faulty!("far")] {
        assert!(breaks(&receiver), "receiver: {fault}");
    }
}

#[test]
fn bytes_become_every_kind_of_event() {
    let mut kinds = std::collections::BTreeSet::new();
    let mut late = 0;
    for seed in 0..20 {
        for (_, event) in drawn(seed).events {
            let text = format!("{event:?}");
            kinds.insert(text.split([' ', '{']).next().map(str::to_owned));
            if let FuzzEvent::Arrival { step: NumberStep::Behind(_), .. } = event {
                late += 1;
            }
        }
    }
    assert_eq!((kinds.len(), late > 20), (14, true), "{kinds:?}");
    assert!(FuzzCase::from_bytes(&[]).events.is_empty());
}
