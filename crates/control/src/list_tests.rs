//! What every controller on the list must keep, whatever happens to it.

use crate::list::{CONTROLLERS, Entry};
use crate::{Ack, Controller, Environment, Halve, Loss, LossFoundBy, RateSample};
use crate::{Repair, Restart, Sent};
use narrows_base::card::Kind;
use narrows_base::{Duration, Settings, Spec, Time};
use proptest::prelude::*;

/// Every file that defines a card is on the list: compare the sources with it.
#[test]
fn every_card_is_listed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let mut cards = Vec::new();
    for file in std::fs::read_dir(folder).expect("the crate has sources") {
        let path = file.expect("the folder can be read").path();
        if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).expect("sources are text");
            if let Some((_, card)) = text.split_once("\npub const CARD: Card") {
                let name = card.split("name: \"").nth(1).and_then(|rest| rest.split('"').next());
                cards.push(name.expect("a card has a name").to_owned());
            }
        }
    }
    let mut listed: Vec<_> = CONTROLLERS.iter().map(|e| e.card.name.to_owned()).collect();
    cards.sort();
    listed.sort();
    assert_eq!(cards, listed, "left: cards in src/, right: the list");
}

#[test]
fn cards_are_complete() {
    for card in CONTROLLERS.iter().map(|e| e.card) {
        for text in [card.summary, card.source, card.senses, card.sets] {
            assert!(!text.is_empty(), "{}", card.name);
        }
        for p in card.params {
            assert!(!p.origin.is_empty() && !p.help.is_empty(), "{}({})", card.name, p.name);
            if let Kind::Number { min, max, default, .. } = p.kind {
                assert!((min..=max).contains(&default), "{}({})", card.name, p.name);
            }
        }
    }
}

/// An entry with every choice taken once, and every number at its default, least and most.
fn variants(entry: &Entry) -> Vec<Settings> {
    let name = entry.card.name;
    let mut specs = vec![name.to_owned()];
    for p in entry.card.params {
        match p.kind {
            Kind::Choice(words) => {
                specs.extend(words.iter().map(|w| format!("{name}({}={w})", p.name)));
            }
            Kind::Number { unit, min, max, .. } => {
                for x in [min, max] {
                    specs.push(format!("{name}({}={})", p.name, unit.show(x)));
                }
            }
            Kind::Integers => {}
        }
    }
    let read = |s: &String| entry.read(&Spec::parse(s).expect("well formed")).expect("legal");
    specs.iter().map(read).collect()
}

/// One thing that happens; times and counts are drawn wide on purpose.
#[derive(Clone, Debug)]
enum Event {
    Sent { retransmission: bool },
    Ack { advance: u64, sacked: u64, rtt: u64, flags: u8, sampled: u64 },
    Loss { segments: u64, age: u64, transmissions: u32, how: u8 },
    Repair,
    RepairEnd,
    Restart { timeout: bool, backoffs: u32 },
    Tick,
}

fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
    let nanos =
        || prop_oneof![Just(0_u64), 1..2000_u64, 1_000_000..200_000_000_u64, 0..10_u64.pow(13)];
    let count = || prop_oneof![4 => 0..3_u64, 1 => 0..100_000_u64];
    let event = prop_oneof![
        4 => any::<bool>().prop_map(|retransmission| Event::Sent { retransmission }),
        8 => (count(), count(), nanos(), any::<u8>(), count()).prop_map(
            |(advance, sacked, rtt, flags, sampled)| {
                Event::Ack { advance, sacked, rtt, flags, sampled }
            }
        ),
        2 => (1..50_u64, nanos(), 1..5_u32, 0..4_u8).prop_map(
            |(segments, age, transmissions, how)| Event::Loss { segments, age, transmissions, how }
        ),
        1 => Just(Event::Repair),
        1 => Just(Event::RepairEnd),
        1 => (any::<bool>(), 1..10_u32).prop_map(
            |(timeout, backoffs)| Event::Restart { timeout, backoffs }
        ),
        1 => Just(Event::Tick),
    ];
    proptest::collection::vec((nanos(), event), 1..200)
}

/// What the flow keeps of a connection, so that the events are legal.
struct Connection {
    now: Time,
    outstanding: u64,
    delivered: u64,
    round: u64,
    min_rtt: Duration,
    srtt: Duration,
}

impl Connection {
    fn tell(&mut self, controller: &mut dyn Controller, gap: u64, event: &Event) {
        self.now += Duration::from_nanos(gap);
        let episode = Repair {
            now: self.now,
            flight: self.outstanding,
            outstanding: self.outstanding,
            min_rtt: self.min_rtt,
            srtt: self.srtt,
        };
        match *event {
            Event::Sent { retransmission } => {
                self.outstanding += 1;
                let (now, outstanding) = (self.now, self.outstanding);
                controller.on_sent(&Sent {
                    now,
                    bytes: 1000,
                    outstanding,
                    retransmission,
                    last_waiting: false,
                });
            }
            Event::Ack { advance, sacked, rtt, flags, sampled } => {
                let flag = |bit: u8| flags & (1 << bit) != 0;
                let rtt = Duration::from_nanos(rtt);
                self.min_rtt = self.min_rtt.min(rtt);
                self.srtt = rtt;
                let prior_outstanding = self.outstanding;
                self.outstanding = self.outstanding.saturating_sub(advance + sacked);
                self.delivered += advance + sacked;
                self.round += u64::from(flag(0));
                let rate = RateSample {
                    delivered: sampled.min(self.delivered),
                    interval: rtt,
                    prior_delivered: self.delivered - sampled.min(self.delivered),
                    total_delivered: self.delivered,
                    app_limited: flag(1),
                };
                controller.on_ack(&Ack {
                    now: self.now,
                    rtt,
                    rtt_unambiguous: flag(2),
                    srtt: self.srtt,
                    rttvar: Duration::ZERO,
                    min_rtt: self.min_rtt,
                    arrived: None,
                    newly_acked: advance,
                    newly_sacked: sacked,
                    newly_delivered: advance + sacked,
                    duplicate: advance == 0,
                    sent_since: self.outstanding,
                    flight: self.outstanding,
                    outstanding: self.outstanding,
                    prior_outstanding,
                    window_limited: flag(3),
                    in_repair: flag(4),
                    round: self.round,
                    round_start: flag(0),
                    marks: u32::from(flag(5)),
                    rate: flag(6).then_some(rate),
                });
            }
            Event::Loss { segments, age, transmissions, how } => {
                let sent = Time::from_nanos(self.now.as_nanos().saturating_sub(age));
                let found_by = [
                    LossFoundBy::Duplicates,
                    LossFoundBy::Sack,
                    LossFoundBy::Clock,
                    LossFoundBy::Timeout,
                ][usize::from(how)];
                let (now, new_episode) = (self.now, transmissions == 1);
                controller.on_loss(&Loss {
                    now,
                    segments,
                    sent,
                    transmissions,
                    found_by,
                    new_episode,
                });
            }
            Event::Repair => controller.on_repair(&episode),
            Event::RepairEnd => controller.on_repair_end(&episode),
            Event::Restart { timeout, backoffs } => {
                let Repair { now, flight, min_rtt, srtt, .. } = episode;
                controller.on_restart(&Restart { now, flight, timeout, backoffs, min_rtt, srtt });
            }
            Event::Tick => {
                if controller.next_tick() <= self.now {
                    controller.on_tick(self.now);
                }
            }
        }
    }
}

/// Finite or unlimited, never NaN, never below one segment or one bit a second.
fn check(controller: &dyn Controller, name: &str) {
    let allowance = controller.allowance();
    assert!(allowance.window >= 1.0, "{name}: {allowance:?}");
    assert!(allowance.window.is_finite() || allowance.rate.is_some(), "{name}: {allowance:?}");
    assert!(allowance.rate.is_none_or(|r| r.as_bps() > 0), "{name}: {allowance:?}");
    assert!(controller.ssthresh().is_none_or(|s| s >= 1.0), "{name}: {:?}", controller.ssthresh());
    controller
        .watch(&mut |watched, value| assert!(!value.is_nan(), "{name}: {watched} is {value}"));
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 200,
        ..Default::default()
    })]

    #[test]
    fn no_legal_events_break_any_controller(
        events in events(),
        initial_window in prop_oneof![Just(1.0), Just(4.0), 1.0..1e9],
        window_preset in any::<bool>(),
        packet_bytes in 1..65_535_u32,
    ) {
        let halve = if window_preset { Halve::Window } else { Halve::Flight };
        let environment =
            Environment { initial_window, packet_bytes, halve, ..Environment::default() };
        for entry in CONTROLLERS {
            for settings in variants(entry) {
                let mut controller = (entry.build)(&settings, &environment);
                check(&*controller, entry.card.name);
                let mut connection = Connection {
                    now: Time::ZERO,
                    outstanding: 0,
                    delivered: 0,
                    round: 0,
                    min_rtt: Duration::MAX,
                    srtt: Duration::ZERO,
                };
                for (gap, event) in &events {
                    connection.tell(&mut *controller, *gap, event);
                    check(&*controller, entry.card.name);
                }
            }
        }
    }
}

/// Equal events give equal windows, to the bit: no hidden state, no unordered map, no clock.
#[test]
fn controllers_repeat_to_the_bit() {
    use crate::story::build;
    use crate::story_path::Path;
    for entry in CONTROLLERS {
        if build(entry.card.name).keeps_own_timer() {
            continue; // For datagrams: this path repairs. The engine's tests run them.
        }
        let run = || {
            let mut path = Path::new(build(entry.card.name));
            path.waiting_room = 20;
            path.lose = |number| narrows_base::Luck::seed(1).draw(number) < 0.003;
            path.run(Time::from_secs_f64(20.0));
            (path.window().to_bits(), path.delivered, path.dropped, path.goodput().to_bits())
        };
        assert_eq!(run(), run(), "{}", entry.card.name);
        let (_, delivered, ..) = run();
        assert!(delivered > 5_000, "{} delivers only {delivered} of 25000", entry.card.name);
    }
}
