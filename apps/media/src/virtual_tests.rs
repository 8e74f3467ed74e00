//! Sender and receiver in virtual time, with a network between them that delays, loses and queues packets.

use crate::receiver::{MediaLayerReceiver, ReceiverCounters};
use crate::sender::{MediaLayerSender, PathMeasurements};
use narrows_base::{Duration, RandomKey, Rate, Time, random::RandomStream};
use std::collections::BTreeMap;

const RTT: Duration = Duration::from_millis(50);
const TICK: Duration = Duration::from_micros(500);
/// ffmpeg's size of datagrams with MPEG-TS.
const DATAGRAM: usize = 1316;

struct Network {
    loss: f64,
    /// Mean length of loss bursts, in packets.
    row: f64,
    is_losing: bool,
    jitter: Duration,
    rate: Rate,
    free: Time,
    /// Packets in flight in both directions; true: to the receiver.
    flying: BTreeMap<(Time, u64), (bool, Vec<u8>)>,
    order: u64,
    random: RandomStream,
    sent: usize,
    /// The loss rate that the sender has measured.
    known_loss: f64,
}

impl Network {
    fn new(loss: f64, row: f64, rate: Rate, seed: u64) -> Network {
        Network {
            loss,
            row,
            is_losing: false,
            jitter: Duration::ZERO,
            rate,
            free: Time::ZERO,
            flying: BTreeMap::new(),
            order: 0,
            random: RandomKey::from_seed(seed).stream(),
            sent: 0,
            known_loss: 0.0,
        }
    }

    fn send(&mut self, now: Time, is_forward: bool, message: Vec<u8>) {
        let begins = self.loss / self.row / (1.0 - self.loss);
        let share = if self.is_losing { 1.0 - 1.0 / self.row } else { begins };
        self.is_losing = self.random.chance(share);
        let mut leaves = now;
        if is_forward {
            self.sent += message.len();
            let seconds = (message.len() + 82) as f64 * 8.0 / self.rate.as_bps() as f64;
            self.free = self.free.max(now) + Duration::from_secs_f64(seconds);
            leaves = self.free;
        }
        let extra = Duration::from_secs_f64(self.random.unit() * self.jitter.as_secs_f64());
        if !self.is_losing {
            self.order += 1;
            let at = leaves + RTT.mul_f64(0.5) + extra;
            self.flying.insert((at, self.order), (is_forward, message));
        }
    }
}

struct Outcome {
    received: ReceiverCounters,
    /// Bytes sent per byte of media, without the headers of lower layers.
    sent: f64,
    repeats: u64,
    dropped: u64,
    late_frames: u64,
    /// Largest and smallest time from sending to release.
    delays: (Duration, Duration),
}

/// A minute of media at `rate` from an encoder with 25 frames a second; each frame is sent at once.
fn minute(mut network: Network, latency: Duration, rate: f64) -> Outcome {
    let mut sender = MediaLayerSender::new(latency);
    let mut receiver = MediaLayerReceiver::new(latency);
    let path = PathMeasurements { srtt: RTT, min_rtt: RTT, loss: network.known_loss };
    let mut now = Time::ZERO;
    let mut next_frame = Time::ZERO;
    let mut number = 0u64;
    let end = Time::ZERO + Duration::from_secs(60);
    let mut delays = (Duration::ZERO, Duration::MAX);
    while now < end + Duration::from_secs(2) {
        if now >= next_frame && now < end {
            next_frame += Duration::from_millis(40);
            for n in 0..(rate * 0.04 / 8.0 / DATAGRAM as f64).round() as usize {
                // RTP with a time of sending that the receiving program would read.
                let mut datagram = vec![0; DATAGRAM];
                datagram[0] = 0x80;
                datagram[4..8].copy_from_slice(&(number as u32 + 1).to_be_bytes());
                datagram[16..24].copy_from_slice(&now.as_nanos().to_be_bytes());
                datagram[24] = n as u8;
                sender.on_datagram(now, &datagram, 1400);
            }
            number += 1;
        }
        sender.end_block(now, path);
        // As many packets at once as a connection accepts.
        while network.free <= now + Duration::from_millis(5) {
            let Some(leaving) = sender.next(now, path) else { break };
            network.send(now, true, leaving.message);
        }
        while let Some(entry) = network.flying.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((arrival, _), (is_forward, message)) = entry.remove_entry();
            if is_forward {
                receiver.on_message(arrival, &message);
            } else {
                sender.on_message(&message);
            }
        }
        while let Some(datagram) = receiver.release(now) {
            let stamp = u64::from_be_bytes(datagram[16..24].try_into().unwrap());
            let took = now.since(Time::from_nanos(stamp));
            delays = (delays.0.max(took), delays.1.min(took));
        }
        while let Some(request) = receiver.ask(now, RTT) {
            network.send(now, false, request);
        }
        now += TICK;
    }
    let received = receiver.received();
    let counts = receiver.meter().counts();
    let sent = sender.sent();
    // Each part sent was released or missed. The receiver cannot count parts dropped at the very end.
    let known = received.parts + received.missed;
    let all = sent.parts + sent.dropped.all();
    assert!(known <= all && known + 20 > all, "{known} of {all}");
    Outcome {
        received,
        sent: network.sent as f64 / sent.bytes as f64,
        repeats: sent.repeats,
        dropped: sent.dropped.all(),
        late_frames: counts.late_frames,
        delays,
    }
}

/// Four round trips and 100 ms.
const LATENCY: Duration = Duration::from_millis(300);
const FAST: Rate = Rate::from_bps(50_000_000);

#[test]
fn losses_are_repaired_within_the_latency_and_packets_leave_evenly() {
    for (loss, row, most_late) in
        [(0.01, 1.0, 0.0), (0.05, 1.0, 1e-4), (0.05, 4.0, 1e-3), (0.1, 1.0, 1e-3)]
    {
        let outcome = minute(Network::new(loss, row, FAST, 1), LATENCY, 4e6);
        let ReceiverCounters { parts, missed, repaired, .. } = outcome.received;
        let late = missed as f64 / (parts + missed) as f64;
        println!("{loss} {row}: late {missed} of {}, bytes {:.3}", parts + missed, outcome.sent);
        assert!(late <= most_late && repaired > 0, "{loss} {row}: {late}, {repaired} repaired");
        // Each loss costs about one repeat, and few repeats are superfluous.
        let repeats = outcome.repeats as f64 / parts as f64;
        assert!(repeats < 1.25 * loss / (1.0 - loss) + 0.004, "{loss} {row}: {repeats}");
        let (max, min) = outcome.delays;
        let wide = Duration::from_nanos(max.as_nanos() - min.as_nanos());
        assert!(wide <= Duration::from_millis(2), "{min:?} to {max:?}");
    }
}

#[test]
fn reordering_alone_causes_no_repeats() {
    let network = Network { jitter: Duration::from_millis(5), ..Network::new(0.0, 1.0, FAST, 1) };
    let outcome = minute(network, LATENCY, 4e6);
    assert_eq!((outcome.received.missed, outcome.late_frames), (0, 0));
    let share = outcome.repeats as f64 / outcome.received.parts as f64;
    assert!(share < 0.002, "{share}");
}

/// The encoder ignores its rate: packets that leave are in time, although the path is saturated.
#[test]
fn excess_of_an_encoder_is_dropped_before_the_path() {
    let outcome = minute(Network::new(0.01, 1.0, Rate::from_bps(3_000_000), 1), LATENCY, 6e6);
    let ReceiverCounters { parts, missed, .. } = outcome.received;
    assert!(outcome.dropped > parts / 2, "{} of {parts}", outcome.dropped);
    assert!(missed <= outcome.dropped + parts / 100, "{missed}, {} dropped", outcome.dropped);
    // At least three quarters of the path's rate were released.
    let rate = (parts * DATAGRAM as u64) as f64 * 8.0 / 60.0;
    assert!(rate > 0.75 * 3e6, "{rate}");
}

#[test]
fn an_outage_costs_no_more_than_itself() {
    let mut network = Network::new(0.0, 1.0, FAST, 1);
    network.loss = 0.02;
    network.row = 200.0;
    let outcome = minute(network, LATENCY, 4e6);
    let ReceiverCounters { missed, parts, .. } = outcome.received;
    assert!((missed as f64) < 0.02 * parts as f64, "{missed} of {parts}");
}

/// If a round trip takes longer than the latency, no repeat is in time. Repair packets then reduce the number of late
/// packets, most of all for single losses.
#[test]
fn repairs_restore_packets_beyond_the_reach_of_repeats() {
    let budget = Duration::from_millis(45);
    let run = |loss: f64, row: f64, known_loss: f64| {
        let network = Network { known_loss, ..Network::new(loss, row, FAST, 1) };
        let outcome = minute(network, budget, 4e6);
        let ReceiverCounters { parts, missed, .. } = outcome.received;
        (missed as f64 / (parts + missed) as f64, outcome.sent)
    };
    for (loss, row, most_late, most_bytes) in
        [(0.01, 1.0, 0.003, 1.16), (0.05, 1.0, 0.005, 1.36), (0.05, 4.0, 0.04, 1.36)]
    {
        let (without, bytes) = run(loss, row, 0.0);
        let (with, more) = run(loss, row, loss);
        let said = format!("{loss} {row}: late {without:.4} {with:.4}, bytes {bytes:.3} {more:.3}");
        println!("{said}");
        assert!((without / loss - 1.0).abs() < 0.2 && with < most_late, "{said}");
        assert!(more < most_bytes, "{said}");
    }
}

/// If there is time for a repeat, no repair packets are sent.
#[test]
fn there_are_no_repairs_where_a_repeat_is_in_time() {
    let network = Network { known_loss: 0.05, ..Network::new(0.05, 1.0, FAST, 1) };
    let outcome = minute(network, LATENCY, 4e6);
    assert_eq!(outcome.received.restored, 0);
}
