//! When datagrams are sent: the present rate, bounded credit, windows, expired writes.

use crate::endpoints::datagram::{DatagramReceiver, DatagramSender};
use crate::endpoints::interface::{SenderInput, SenderOutput};
use crate::protocol::{DatagramConfig, Family, Preset, datagram_preset};
use narrows_base::{Duration, Machine, Packet, Rate, Time};
use narrows_congestion::{Ack, CongestionEvent, Controller, PathHints, SendLimits};
use std::sync::{Arc, Mutex};

/// A controller with the limits that the test sets.
#[derive(Clone)]
struct SetLimits(Arc<Mutex<(SendLimits, u32)>>);

impl Controller for SetLimits {
    fn on_ack(&mut self, _ack: &Ack) {}
    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        if let CongestionEvent::SlowStartRestart(_) = event {
            self.0.lock().unwrap().1 += 1;
        }
    }
    fn send_limits(&self) -> SendLimits {
        self.0.lock().unwrap().0
    }
}

struct Stage {
    sender: DatagramSender,
    limits: Arc<Mutex<(SendLimits, u32)>>,
    config: DatagramConfig,
}

fn ms(n: u64) -> Time {
    Time::ZERO + Duration::from_millis(n)
}

impl Stage {
    /// Packets of 1000 bytes on the wire, without headers.
    fn new(window: f64, bps: Option<u64>) -> Stage {
        let mut config = datagram_preset(Preset::Ns2, Family::Rrtp);
        config.credit = Duration::from_millis(2);
        // So that only the send limits apply.
        let rate = Rate::from_bps(10_000_000_000);
        let rtt = Duration::from_secs(1);
        config.hints = PathHints { rate: Some(rate), rtt: Some(rtt), loss: None };
        let limits = Arc::new(Mutex::new((SendLimits::unpaced(1.0), 0)));
        let mut sender = DatagramSender::new(&config, Box::new(SetLimits(limits.clone())), 0, 1);
        sender.handle(Time::ZERO, SenderInput::Open);
        let mut stage = Stage { sender, limits, config };
        stage.allow(window, bps);
        stage
    }
    fn allow(&mut self, window: f64, bps: Option<u64>) {
        self.limits.lock().unwrap().0 =
            SendLimits { pacing_rate: bps.map(Rate::from_bps), ..SendLimits::unpaced(window) };
    }
    /// Sends all packets permitted at `now`; also returns the time that the sender waits for.
    fn drain(&mut self, now: Time) -> (Vec<Packet>, Time) {
        let mut sent = Vec::new();
        loop {
            match self.sender.poll(now) {
                SenderOutput::Send(p) => sent.push(p),
                SenderOutput::Wait(due) => return (sent, due),
            }
        }
    }
}

#[test]
fn packets_leave_at_the_rate_of_now() {
    // 1000 bytes at 800 kbit/s: one per 10 ms.
    let mut s = Stage::new(f64::INFINITY, Some(800_000));
    s.sender.handle(ms(0), SenderInput::Data(u64::MAX));
    let (sent, due) = s.drain(ms(0));
    assert_eq!((sent.len(), due), (1, ms(10)));
    assert!(s.drain(ms(9)).0.is_empty());
    assert_eq!(s.drain(ms(10)).0.len(), 1);
    // A raised rate applies at once, not after the gap of the old one.
    s.allow(f64::INFINITY, Some(8_000_000));
    let (sent, due) = s.drain(ms(11));
    assert_eq!((sent.len(), due), (1, ms(12)));
}

#[test]
fn lateness_is_made_up_for_and_idleness_earns_no_burst() {
    let mut s = Stage::new(f64::INFINITY, Some(8_000_000));
    s.sender.handle(ms(0), SenderInput::Data(u64::MAX));
    s.drain(ms(0));
    // One packet per millisecond; two milliseconds late with 2 ms of credit: the third is due now, too.
    assert_eq!(s.drain(ms(3)).0.len(), 3);
    // An idle second gives no more than the credit.
    assert_eq!(s.drain(ms(1003)).0.len(), 3);
}

#[test]
fn window_counts_packets_of_unknown_outcome() {
    let mut s = Stage::new(4.9, None);
    let mut receiver = DatagramReceiver::new(&s.config, None, 0, 1);
    s.sender.handle(ms(0), SenderInput::Data(u64::MAX));
    let (sent, _) = s.drain(ms(0));
    assert_eq!(sent.len(), 4);
    // 0 and 1 are lost and 2 arrives: three are still counted, so one more may be sent.
    let report = receiver.on_packet(ms(50), &sent[2]).unwrap();
    s.sender.handle(ms(100), SenderInput::Packet(report));
    assert_eq!(s.sender.flight(), 3);
    assert_eq!(s.sender.srtt(), Duration::from_millis(100));
    assert_eq!(s.sender.acknowledged(), 1);
    let (more, _) = s.drain(ms(100));
    assert_eq!(more.len(), 1);
    // 3 shows that 0 is lost: 1 and 4 are in flight.
    let report = receiver.on_packet(ms(51), &sent[3]).unwrap();
    s.sender.handle(ms(101), SenderInput::Packet(report));
    assert_eq!((s.sender.flight(), s.sender.counters().lost), (2, 1));
}

/// As over sockets: RFC 9002 section 6.2.
#[test]
fn silence_is_probed_without_a_reduction() {
    let mut s = Stage::new(2.0, None);
    s.sender.handle(ms(0), SenderInput::Data(u64::MAX));
    let (_, due) = s.drain(ms(0));
    assert_eq!(due, ms(2000), "this preset says 3 s, and no probe waits so long");
    s.sender.handle(due, SenderInput::Timeout);
    let (sent, again) = s.drain(due);
    assert_eq!(sent.iter().map(|p| p.seq).collect::<Vec<_>>(), [2], "one, beyond the window");
    assert_eq!(s.limits.lock().unwrap().1, 0);
    assert_eq!(again.since(due), Duration::from_secs(2));
}

/// Media are not retransmitted: a probe without data is an empty packet.
#[test]
fn a_probe_without_data_is_empty() {
    let mut s = Stage::new(2.0, None);
    let mut receiver = DatagramReceiver::new(&s.config, None, 0, 1);
    s.sender.handle(ms(0), SenderInput::Data(500));
    let (sent, due) = s.drain(ms(0));
    assert_eq!(sent.len(), 1);
    s.sender.handle(due, SenderInput::Timeout);
    let (probe, _) = s.drain(due);
    assert_eq!((probe.len(), probe[0].payload(), probe[0].size), (1, 0, 40));
    let report = receiver.on_packet(due, &probe[0]).unwrap();
    assert_eq!((receiver.delivered(), receiver.delivered_packets()), (0, 0));
    s.sender.handle(due, SenderInput::Packet(report));
    assert!(s.drain(due).0.is_empty());
}

#[test]
fn packets_have_the_written_size() {
    let mut s = Stage::new(f64::INFINITY, None);
    for bytes in [2500, 120] {
        s.sender.handle(ms(0), SenderInput::Data(bytes));
    }
    let sizes: Vec<u16> = s.drain(ms(0)).0.iter().map(|p| p.size).collect();
    assert_eq!(sizes, [1000, 1000, 500, 120]);
}

#[test]
fn writes_that_waited_too_long_are_never_sent() {
    let mut s = Stage::new(f64::INFINITY, Some(8_000));
    s.sender.handle(ms(0), SenderInput::Data(1000));
    s.sender.handle(ms(0), SenderInput::Data(200));
    s.sender.handle(ms(900), SenderInput::Data(300));
    assert_eq!(s.drain(ms(0)).0.len(), 1);
    // A packet is due at 1 s; at 1.1 s the second write is too old, the third is not.
    let (sent, _) = s.drain(ms(1100));
    assert_eq!(sent.iter().map(|p| p.size).collect::<Vec<_>>(), [300]);
    assert_eq!(s.sender.counters().expired, 1);
}

#[test]
fn the_receivers_delay_is_not_in_the_round_trip() {
    use narrows_congestion::{Arrival, Feedback, ReceiverSide};
    struct Later(Time);
    impl ReceiverSide for Later {
        fn on_arrival(&mut self, a: &Arrival) -> bool {
            self.0 = a.now + Duration::from_millis(30);
            false
        }
        fn on_tick(&mut self, _now: Time) -> bool {
            self.0 = Time::NEVER;
            true
        }
        fn next_tick(&self) -> Time {
            self.0
        }
        fn feedback(&mut self, _now: Time) -> Feedback {
            Feedback::NONE
        }
    }
    let mut s = Stage::new(11.0, None);
    let mut receiver = DatagramReceiver::new(&s.config, Some(Box::new(Later(Time::NEVER))), 0, 1);
    assert!(receiver.next_timeout().is_never(), "nothing to report before the first packet");
    s.sender.handle(ms(0), SenderInput::Data(u64::MAX));
    let sent = s.drain(ms(0)).0;
    let (first, last) = sent.split_at(10);
    assert!(first.iter().all(|p| receiver.on_packet(ms(20), p).is_some()), "one by one");
    assert!(receiver.on_packet(ms(20), &last[0]).is_none());
    // A 32nd of an RTT by the ACK policy; 30 ms by the receiver side's rule, which is later here.
    assert_eq!(receiver.next_timeout(), ms(20) + Duration::from_micros(1250));
    let report = receiver.on_timeout(ms(50)).unwrap();
    s.sender.handle(ms(70), SenderInput::Packet(report));
    assert_eq!(s.sender.srtt(), Duration::from_millis(40));
}

#[test]
fn malformed_reports_change_no_state() {
    let mut s = Stage::new(3.0, None);
    s.sender.handle(ms(0), SenderInput::Data(u64::MAX));
    let sent = s.drain(ms(0)).0;
    for seq in [0, 4, u64::MAX] {
        let report = Packet { seq, flags: Packet::ACK, ..sent[0] };
        s.sender.handle(ms(10), SenderInput::Packet(report));
        assert_eq!((s.sender.flight(), s.sender.srtt()), (3, Duration::ZERO), "{seq}");
    }
    let mut receiver = DatagramReceiver::new(&s.config, None, 0, 1);
    for seq in [u64::MAX, u64::MAX - 1] {
        assert!(receiver.on_packet(ms(1), &Packet { seq, ..sent[0] }).is_none());
    }
    // A jump of the number is accepted, and packets far below it are too late.
    let far = Packet { seq: 1 << 60, ..sent[0] };
    assert!(receiver.on_packet(ms(1), &far).is_some());
    receiver.on_packet(ms(1), &sent[1]);
    assert_eq!(receiver.delivered_packets(), 1);
}

/// RFC 9002 section 7.7; the papers' window protocols do not pace.
#[test]
fn a_window_is_paced_where_it_is_to_be() {
    for (paced, together) in [(true, 1), (false, 20)] {
        let mut s = Stage::new(20.0, None);
        s.config.window_pacing = paced;
        s.config.feedback.ack_every = 1;
        s.sender = DatagramSender::new(&s.config, Box::new(SetLimits(s.limits.clone())), 0, 1);
        let mut receiver = DatagramReceiver::new(&s.config, None, 0, 1);
        s.sender.handle(ms(0), SenderInput::Open);
        s.sender.handle(ms(0), SenderInput::Data(u64::MAX));
        let (first, _) = s.drain(ms(0));
        assert_eq!(first.len(), 20, "the first flight leaves at once");
        for p in first {
            let report = receiver.on_packet(ms(50), &p).unwrap();
            s.sender.handle(ms(100), SenderInput::Packet(report));
        }
        assert_eq!(s.drain(ms(100)).0.len(), together, "{paced}");
    }
}
