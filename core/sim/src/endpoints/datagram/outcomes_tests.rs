//! The ACK vector, the ack of ack and each packet's outcome between a real sender and a real receiver, with media: Choi
//! 2006 section 6.1.1 under the packet sender's loss detection, on impaired paths.

use super::header::read_report;
use super::{DatagramReceiver, DatagramSender};
use crate::endpoints::interface::{SenderInput, SenderOutput};
use crate::protocol::DatagramConfig;
use narrows_base::{Duration, Machine, Packet, RandomKey, Rate, Time, run};
use narrows_congestion::{Ack, Controller, PacketOutcome, PathHints, SendLimits};
use narrows_recovery::packet_sender::MAX_SENT_PACKETS;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// An event that a controller received.
#[derive(Clone, Debug)]
enum ControllerEvent {
    PacketOutcome(PacketOutcome),
    Ack,
    /// A report or a timeout is passed to the sender.
    Input,
}

type Diary = Arc<Mutex<Vec<ControllerEvent>>>;

/// A window that never changes, and a record of events.
#[derive(Clone)]
struct Recorder {
    window: f64,
    diary: Diary,
}

impl Controller for Recorder {
    fn on_ack(&mut self, _ack: &Ack) {
        self.diary.lock().unwrap().push(ControllerEvent::Ack);
    }
    fn on_packet_outcome(&mut self, outcome: &PacketOutcome) {
        self.diary.lock().unwrap().push(ControllerEvent::PacketOutcome(*outcome));
    }
    fn send_limits(&self) -> SendLimits {
        SendLimits::unpaced(self.window)
    }
}

struct Pair {
    sender: DatagramSender,
    receiver: DatagramReceiver,
    diary: Diary,
    read: usize,
    now: Time,
}

impl Pair {
    fn new(window: f64) -> Pair {
        let mut config = DatagramConfig::default();
        config.feedback.ack_every = 1;
        // So that only the window limits sending.
        let rate = Rate::from_bps(10_000_000_000);
        let rtt = Duration::from_secs(1);
        config.hints = PathHints { rate: Some(rate), rtt: Some(rtt), loss: None };
        let diary = Diary::default();
        let recorder = Recorder { window, diary: diary.clone() };
        let mut sender = DatagramSender::new(&config, Box::new(recorder), 0, 1);
        sender.handle(Time::ZERO, SenderInput::Open);
        sender.handle(Time::ZERO, SenderInput::Data(u64::MAX));
        let receiver = DatagramReceiver::new(&config, None, 0, 1);
        Pair { sender, receiver, diary, read: 0, now: Time::ZERO }
    }
    /// The packets that the sender sends now.
    fn send(&mut self) -> Vec<Packet> {
        let mut out = Vec::new();
        while let SenderOutput::Send(p) = self.sender.poll(self.now) {
            out.push(p);
        }
        out
    }
    fn report(&mut self, p: &Packet) -> Packet {
        self.receiver.on_packet(self.now, p).expect("every packet is answered")
    }
    fn hand(&mut self, now: Time, input: SenderInput) {
        self.diary.lock().unwrap().push(ControllerEvent::Input);
        self.sender.handle(now, input);
    }
    /// Passes a report to the sender: the outcomes that it revealed, and the number of acknowledgements.
    fn take(&mut self, report: &Packet) -> (Vec<(u64, bool)>, usize) {
        self.now += Duration::from_millis(1);
        self.hand(self.now, SenderInput::Packet(*report));
        let diary = self.diary.lock().unwrap();
        let news = &diary[self.read..];
        self.read = diary.len();
        let outcomes = news.iter().filter_map(|t| match t {
            ControllerEvent::PacketOutcome(f) => Some((f.seq, f.lost)),
            ControllerEvent::Ack | ControllerEvent::Input => None,
        });
        (outcomes.collect(), news.iter().filter(|t| matches!(t, ControllerEvent::Ack)).count())
    }
}

/// The numbers that a report acknowledges, highest first.
fn vector(report: &Packet) -> Vec<u64> {
    let (vector, ..) = read_report(report);
    run::arrived(report.seq - 1, vector.runs()).flat_map(|(from, to)| (from..to).rev()).collect()
}

/// Choi 2006 section 5.2: the vector is 10 9 8 7 6 5 3. It keeps a margin of three, so that 4 would be lost when 8
/// arrives; by RFC 9002 section 6.1.1 it is lost when 7 does.
#[test]
fn the_worked_example() {
    let mut pair = Pair::new(11.0);
    let packets = pair.send();
    assert_eq!(packets.len(), 11);
    let reports: Vec<Packet> =
        packets.iter().filter(|p| p.seq != 4).map(|p| pair.report(p)).collect();
    let named = |head: u64| *reports.iter().find(|r| r.seq == head + 1).unwrap();
    assert_eq!(vector(&named(10)), [10, 9, 8, 7, 6, 5, 3, 2, 1, 0]);

    // An arrival is passed on once all lower outcomes are known; one acknowledgement for each.
    let (outcomes, acks) = pair.take(&named(3));
    assert_eq!((outcomes, acks), (vec![(0, false), (1, false), (2, false), (3, false)], 4));
    assert_eq!(pair.take(&named(6)), (vec![], 2));
    let (outcomes, acks) = pair.take(&named(7));
    assert_eq!((outcomes, acks), (vec![(4, true), (5, false), (6, false), (7, false)], 1));
    // Reports 8 and 9 are lost; that of 10 covers them.
    assert_eq!(pair.take(&named(10)), (vec![(8, false), (9, false), (10, false)], 3));
    // A duplicate reveals no new outcome; an overtaken report of known outcomes is not even an acknowledgement.
    assert_eq!(pair.take(&named(10)), (vec![], 1));
    assert_eq!(pair.take(&named(8)), (vec![], 0));

    // The next packet carries the ack of ack, which prunes the receiver's vector.
    let packets = pair.send();
    assert_eq!(packets[0].seq, 11);
    let report = pair.report(&packets[0]);
    // Lost packets are still included, since they may be late.
    assert_eq!(vector(&report), [11, 10, 9, 8, 7, 6, 5]);
}

/// Choi 2006 section 6.1.1: a series of packets lost in one window.
#[test]
fn a_series_of_losses_is_told_one_by_one() {
    let mut pair = Pair::new(20.0);
    let mut outcomes = Vec::new();
    for p in pair.send() {
        if (5..12).contains(&p.seq) || p.seq == 13 {
            continue;
        }
        let report = pair.report(&p);
        outcomes.extend(pair.take(&report).0);
    }
    let lost: Vec<u64> = outcomes.iter().filter(|f| f.1).map(|f| f.0).collect();
    assert_eq!(lost, [5, 6, 7, 8, 9, 10, 11, 13]);
    assert_eq!(outcomes.iter().map(|f| f.0).collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
}

/// RFC 9002 section 6.1.1.
#[test]
fn reordering_by_two_is_no_loss_and_by_three_is() {
    for (late_by, lost) in [(2usize, false), (3, true)] {
        let mut pair = Pair::new(12.0);
        let mut packets = pair.send();
        let late = packets.remove(2);
        packets.insert(2 + late_by, late);
        let mut outcomes = Vec::new();
        for p in packets {
            let report = pair.report(&p);
            outcomes.extend(pair.take(&report).0);
        }
        assert_eq!(outcomes[2], (2, lost), "late by {late_by}");
        assert!(outcomes.iter().all(|f| f.0 == 2 || !f.1));
    }
}

/// The vector has twelve runs. If every other packet is lost, they cover only the eleven numbers below the highest, and
/// a sixth consecutive lost report makes a packet that arrived count as lost. The vector of Choi 2006 is unbounded.
#[test]
fn the_shortest_vector_outlives_five_lost_reports() {
    for (missing, believed_lost) in [(5, 0), (6, 1)] {
        let mut pair = Pair::new(80.0);
        let mut wrong = 0;
        for p in pair.send().iter().filter(|p| p.seq % 2 == 0) {
            let report = pair.report(p);
            if !(30..30 + 2 * missing).contains(&p.seq) {
                wrong += pair.take(&report).0.iter().filter(|f| f.1 && f.0 % 2 == 0).count();
            }
        }
        assert_eq!(wrong, believed_lost, "{missing} reports in a row");
    }
}

/// A window beyond the sender's limit on packet records ends at that limit, and further reports open it again.
#[test]
fn a_window_beyond_the_senders_memory_ends() {
    let mut pair = Pair::new(100_000.0);
    let packets = pair.send();
    assert_eq!(packets.len(), MAX_SENT_PACKETS);
    let mut outcomes = Vec::new();
    for p in packets.iter().step_by(64) {
        let report = pair.report(p);
        outcomes.extend(pair.take(&report).0);
    }
    assert!(outcomes.iter().map(|f| f.0).eq(0..outcomes.len() as u64));
    // 63 above the last report, and two just below it.
    assert_eq!(pair.sender.flight(), 65);
    assert!(!pair.send().is_empty());
}

/// If every packet is reported, the mark is attributed to the marked packet.
#[test]
fn marks_are_told_with_outcomes() {
    let mut pair = Pair::new(20.0);
    for mut p in pair.send() {
        if p.seq == 3 || p.seq == 9 {
            p.flags |= Packet::CE;
        }
        let report = pair.report(&p);
        pair.take(&report);
    }
    let diary = pair.diary.lock().unwrap();
    let marked = diary.iter().filter_map(|t| match t {
        ControllerEvent::PacketOutcome(f) if f.marked => Some(f.seq),
        _ => None,
    });
    assert_eq!(marked.collect::<Vec<_>>(), [3, 9]);
}

/// The impairments of one direction, as probabilities, and its longest delay.
#[derive(Clone, Copy, Debug)]
struct Impairments {
    loss: f64,
    copy: f64,
    jitter_ms: u64,
}

fn way(most_jitter: u64) -> impl Strategy<Value = Impairments> {
    (
        prop_oneof![Just(0.0), 0.0..0.6f64],
        prop_oneof![Just(0.0), 0.0..0.5f64],
        prop_oneof![Just(0), 0..=most_jitter],
    )
        .prop_map(|(loss, copy, jitter_ms)| Impairments { loss, copy, jitter_ms })
}

/// Arrivals with their times, and the recorded events.
struct Run {
    arrived: BTreeMap<u64, Time>,
    sent: u64,
    diary: Vec<ControllerEvent>,
    /// Longest run of consecutive lost reports.
    silence: u64,
}

/// Length of a run.
const SECONDS: f64 = 20.0;

fn run(data: Impairments, back: Impairments, window: f64, seed: u64) -> Run {
    let mut pair = Pair::new(window);
    let mut random = RandomKey::from_seed(seed).stream();
    let mut events: BTreeMap<(Time, u64), (bool, Packet)> = BTreeMap::new();
    let mut count = 0;
    let mut arrived = BTreeMap::new();
    let mut sent = 0;
    let mut silence = 0;
    let mut silent = 0;
    let end = Time::from_secs_f64(SECONDS);
    loop {
        let mut forward = |now: Time, p: Packet, w: Impairments, events: &mut BTreeMap<_, _>| {
            if random.chance(w.loss) {
                return false;
            }
            for _ in 0..1 + u32::from(random.chance(w.copy)) {
                let jitter = if w.jitter_ms > 0 { random.bits() % (w.jitter_ms + 1) } else { 0 };
                count += 1;
                let to = now + Duration::from_millis(20 + jitter);
                events.insert((to, count), (p.has(Packet::ACK), p));
            }
            true
        };
        let mut wake = end;
        loop {
            match pair.sender.poll(pair.now) {
                SenderOutput::Send(p) => {
                    sent += 1;
                    forward(pair.now, p, data, &mut events);
                }
                SenderOutput::Wait(due) => {
                    wake = wake.min(due);
                    break;
                }
            }
        }
        match events.first_key_value().map(|(k, _)| k.0) {
            Some(at) if at <= wake => {
                let Some((_, (is_report, p))) = events.pop_first() else { continue };
                pair.now = at;
                if is_report {
                    pair.hand(at, SenderInput::Packet(p));
                } else {
                    arrived.entry(p.seq).or_insert(at);
                    let Some(report) = pair.receiver.on_packet(at, &p) else { continue };
                    silent = if forward(at, report, back, &mut events) { 0 } else { silent + 1 };
                    silence = silence.max(silent);
                }
            }
            _ if wake >= end => break,
            _ => {
                pair.now = wake;
                pair.hand(wake, SenderInput::Timeout);
            }
        }
    }
    let diary = std::mem::take(&mut *pair.diary.lock().unwrap());
    Run { arrived, sent, diary, silence }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 100, ..Default::default() })]

    /// Each outcome is passed on once, in the order of numbers, before the acknowledgement of its report. An outcome is
    /// "arrived" only if the packet did arrive. If both directions keep their order and at most five consecutive
    /// reports are lost, "lost" only if it did not.
    #[test]
    fn each_outcome_is_told_once_in_order_and_true(
        data in way(12),
        back in way(60),
        window in 1u64..40,
        seed in any::<u64>(),
    ) {
        let run = run(data, back, window as f64, seed);
        let mut next = 0;
        let mut acknowledged = false;
        for entry in &run.diary {
            match entry {
                ControllerEvent::Input => acknowledged = false,
                ControllerEvent::PacketOutcome(f) => {
                    prop_assert_eq!(f.seq, next);
                    next += 1;
                    prop_assert!(!acknowledged, "{} after its report's acknowledgement", f.seq);
                    let has_arrived = run.arrived.get(&f.seq).is_some_and(|at| *at <= f.now);
                    prop_assert!(f.lost || has_arrived, "{} is said to have come", f.seq);
                    if data.jitter_ms == 0 && back.jitter_ms == 0 && run.silence <= 5 {
                        prop_assert_eq!(f.lost, !has_arrived, "{}", f.seq);
                    }
                }
                ControllerEvent::Ack => acknowledged = true,
            }
        }
        prop_assert!(next <= run.sent);
        if data.loss < 0.3 && back.loss < 0.3 {
            // Behind a lost packet, those of some round trips wait.
            let rtt_s = 1e-3 * (40 + data.jitter_ms + back.jitter_ms) as f64;
            let waiting = 120 + (3.0 * rtt_s * run.sent as f64 / SECONDS) as u64;
            prop_assert!(next + waiting > run.sent, "{next} of {} told", run.sent);
        }
    }
}

/// The property above is not vacuous: enough packets, losses, and right outcomes in the usual case.
#[test]
fn a_lossy_path_is_reported_exactly() {
    let data = Impairments { loss: 0.1, copy: 0.1, jitter_ms: 0 };
    let back = Impairments { loss: 0.3, copy: 0.1, jitter_ms: 0 };
    let run = run(data, back, 10.0, 1);
    let lost: BTreeSet<u64> = run
        .diary
        .iter()
        .filter_map(|t| match t {
            ControllerEvent::PacketOutcome(f) if f.lost => Some(f.seq),
            _ => None,
        })
        .collect();
    let resolved =
        run.diary.iter().filter(|t| matches!(t, ControllerEvent::PacketOutcome(_))).count() as u64;
    let missing: BTreeSet<u64> = (0..resolved).filter(|n| !run.arrived.contains_key(n)).collect();
    assert!(run.sent > 1000 && lost.len() > 100, "{} {}", run.sent, lost.len());
    assert!(run.silence > 5, "{}: at this rate of losses a vector reaches further", run.silence);
    assert_eq!(lost, missing);
}

/// As over sockets, where a duplicate is not decrypted again.
#[test]
fn duplicate_packet_counts_once_and_is_acked_once() {
    let mut pair = Pair::new(3.0);
    let packets = pair.send();
    pair.report(&packets[0]);
    let delivered = pair.receiver.delivered();
    assert!(delivered > 0);
    assert!(pair.receiver.on_packet(pair.now, &packets[0]).is_none());
    assert_eq!(pair.receiver.delivered(), delivered);
    pair.report(&packets[2]);
    pair.report(&packets[1]);
    assert_eq!(pair.receiver.delivered(), 3 * delivered, "late is not twice");
}
