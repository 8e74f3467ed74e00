//! A stream with NACKs (`recovery=nack`) over a path of 50 ms each way: the bytes that are retransmitted, how often,
//! and when.

use crate::endpoints::datagram::header::NACK as NACK_FLAG;
use crate::endpoints::interface::{SenderInput, SenderOutput};
use crate::endpoints::{SimulatedReceiver, SimulatedSender};
use crate::protocol::{DatagramConfig, FlowProtocol, Preset, Protocol, StreamRecovery};
use narrows_base::{Duration, Machine, Packet, RandomKey, Spec, Time};
use std::collections::BTreeMap;

const ONE_WAY: Duration = Duration::from_millis(50);
const PAYLOAD: u64 = 936;

/// A sent packet, as the loss function sees it.
#[derive(Clone, Copy, Debug)]
struct Copy {
    /// Offset in the stream in packets; meaningless for a report.
    packet: u64,
    /// How many copies of it were sent before.
    copy: u32,
    is_nack: bool,
    is_data: bool,
    /// Number of packets sent before, in both directions.
    serial: u64,
}

#[derive(Debug)]
struct Outcome {
    /// When the stream was complete.
    done: Option<Time>,
    /// How often each packet was sent.
    copies: BTreeMap<u64, u32>,
    /// Times of NACKs.
    nacks: Vec<Time>,
}

fn schedule(wire: &mut BTreeMap<(Time, u64), Packet>, now: Time, packet: Packet) {
    let number = wire.len() as u64 + wire.keys().next_back().map_or(0, |k| k.1);
    wire.insert((now + ONE_WAY, number + 1), packet);
}

/// Sends `packets` packets; `loses` selects the copies and NACKs that the path drops.
fn run(spec: &str, packets: u64, loses: impl Fn(&Copy) -> bool) -> Outcome {
    let protocol = FlowProtocol::read(&Spec::parse(spec).unwrap(), Preset::Rfc, 1000).unwrap();
    let (mut sender, mut receiver): (SimulatedSender, SimulatedReceiver) =
        crate::endpoints::build(&protocol, 0, RandomKey::from_seed(1), 1);
    let mut wire: BTreeMap<(Time, u64), Packet> = BTreeMap::new();
    let mut outcome = Outcome { done: None, copies: BTreeMap::new(), nacks: Vec::new() };
    let mut now = Time::ZERO;
    let mut serial = 0;
    sender.handle(now, SenderInput::Open);
    sender.handle(now, SenderInput::Data(packets * PAYLOAD));
    let limit = Time::from_secs_f64(200.0);
    while now < limit && outcome.done.is_none() {
        let wait = loop {
            match sender.poll(now) {
                SenderOutput::Wait(due) => break due,
                SenderOutput::Send(p) if p.has(Packet::SYN) => schedule(&mut wire, now, p),
                SenderOutput::Send(p) => {
                    serial += 1;
                    let packet = crate::endpoints::datagram::header::read_data(&p).offset / PAYLOAD;
                    let copies = outcome.copies.entry(packet).or_default();
                    let what = Copy {
                        packet,
                        copy: *copies,
                        is_nack: false,
                        is_data: p.payload() > 0,
                        serial,
                    };
                    *copies += u32::from(what.is_data);
                    if !loses(&what) {
                        schedule(&mut wire, now, p);
                    }
                }
            }
        };
        let arrival = wire.keys().next().map_or(Time::NEVER, |k| k.0);
        now = wait.min(receiver.next_timeout()).min(arrival);
        if now >= limit {
            break;
        }
        let mut answers = Vec::new();
        if arrival <= now {
            let (_, p) = wire.pop_first().unwrap();
            if p.has(Packet::ACK) {
                sender.handle(now, SenderInput::Packet(p));
            } else {
                answers.extend(receiver.on_packet(now, &p));
            }
        } else if receiver.next_timeout() <= now {
            answers.extend(receiver.on_timeout(now));
        } else {
            sender.handle(now, SenderInput::Timeout);
        }
        for answer in answers {
            serial += 1;
            let is_nack = answer.has(NACK_FLAG);
            let copy = outcome.nacks.len() as u32;
            outcome.nacks.extend(is_nack.then_some(now));
            if !loses(&Copy { packet: 0, copy, is_nack, is_data: false, serial }) {
                schedule(&mut wire, now, answer);
            }
        }
        if receiver.delivered() == packets * PAYLOAD {
            outcome.done = Some(now);
        }
    }
    outcome
}

const NACK: &str = "rrtp+reno(recovery=nack,handshake=off,initial-window=10)";

/// Selects the first copy of packet `n`.
fn first(n: u64) -> impl Fn(&Copy) -> bool {
    move |c| c.is_data && c.packet == n && c.copy == 0
}

#[test]
fn no_requests_without_losses() {
    let o = run(NACK, 100, |_| false);
    assert!(o.done.is_some() && o.nacks.is_empty());
    assert!(o.copies.values().all(|n| *n == 1), "{:?}", o.copies);
}

/// The first packet above a gap suffices: the threshold of three does not apply.
#[test]
fn lost_packet_is_requested_at_the_first_packet_above() {
    let o = run(NACK, 100, first(3));
    assert_eq!(o.nacks, [Time::ZERO + ONE_WAY], "as packet 4 came");
    assert_eq!(o.copies[&3], 2);
    assert!(o.copies.iter().all(|(n, copies)| *n == 3 || *copies == 1), "{:?}", o.copies);
    assert!(o.done.is_some());
}

/// The timer, 2 RTT and then 4, reveals the loss of a retransmission or a NACK.
#[test]
fn timer_requests_missing_packets_again() {
    let repeat_lost = run(NACK, 100, |c| c.is_data && c.packet == 3 && c.copy < 3);
    let nack_lost = run(NACK, 100, |c| first(3)(c) || (c.is_nack && c.copy < 2));
    for (o, copies) in [(repeat_lost, 4), (nack_lost, 2)] {
        let gaps: Vec<f64> =
            o.nacks.windows(2).map(|w| w[1].since(w[0]).as_secs_f64() / 0.1).collect();
        assert_eq!(o.nacks.len(), 3, "{gaps:?}");
        assert!((1.9..2.5).contains(&gaps[0]) && (3.9..5.0).contains(&gaps[1]), "{gaps:?}");
        assert_eq!(o.copies[&3], copies);
        assert!(o.done.is_some());
    }
}

/// If all NACKs are lost, packets that the sender declares lost are not retransmitted.
#[test]
fn sender_repeats_only_requested_packets_and_the_last() {
    let deaf = run(NACK, 100, |c| first(3)(c) || c.is_nack);
    assert_eq!((deaf.done, deaf.copies[&3]), (None, 1));
    let last = run(NACK, 100, first(99));
    assert!(last.done.is_some() && last.nacks.is_empty() && last.copies[&99] >= 2);
    let tail = run(NACK, 100, |c| c.is_data && c.packet >= 90 && c.copy == 0);
    assert!(tail.done.is_some(), "the last one shows the gap before it: {tail:?}");
}

#[test]
fn any_losses_are_repaired_in_the_end() {
    for every in [2u64, 3, 7] {
        let o = run(NACK, 200, |c| narrows_base::random::mix(c.serial).is_multiple_of(every));
        assert!(o.done.is_some(), "{every}: {o:?}");
    }
}

/// For media this parameter is an error, as they are not retransmitted.
#[test]
fn only_streams_are_repaired() {
    assert!(
        FlowProtocol::read(&Spec::parse("tfrc(recovery=nack)").unwrap(), Preset::Rfc, 1000)
            .is_err()
    );
    let config = DatagramConfig { recovery: StreamRecovery::Nack, ..DatagramConfig::default() };
    let cubic = FlowProtocol::read(&Spec::named("rrtp+cubic"), Preset::Rfc, 1000).unwrap();
    let own = Protocol::custom("mine", config, move |e| cubic.controller(e), None).unwrap();
    assert_eq!(own.check().unwrap_err().field, "recovery");
}
