//! A stream over the datagram endpoint, as timed scenarios: losses, retransmissions, and the controller's events.

use crate::endpoints::datagram::{DatagramReceiver, DatagramSender};
use crate::endpoints::interface::{SenderInput, SenderOutput};
use crate::protocol::{DatagramConfig, FeedbackConfig};
use narrows_base::{Duration, Machine, Packet, Time};
use narrows_congestion::{Ack, CongestionEvent, Controller, PacketOutcome, SendLimits};
use std::sync::{Arc, Mutex};

/// Records its events; the test sets its window.
#[derive(Clone)]
struct Witness(Arc<Mutex<(f64, Vec<String>)>>);

impl Witness {
    fn note(&self, what: String) {
        self.0.lock().unwrap().1.push(what);
    }
}

impl Controller for Witness {
    fn on_ack(&mut self, a: &Ack) {
        self.note(format!(
            "ack {} {}{}",
            a.cumulative.newly_acked,
            a.outstanding,
            if a.in_recovery { " repairing" } else { "" }
        ));
    }
    fn on_packet_outcome(&mut self, f: &PacketOutcome) {
        if f.lost {
            self.note(format!("lost {}", f.seq));
        }
    }
    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match event {
            CongestionEvent::Losses(l) => {
                self.note(format!("loss {} {:?} {}", l.segments, l.found_by, l.new_episode));
            }
            CongestionEvent::RecoveryStart(r) => {
                self.note(format!("repair flight {}", r.flight));
            }
            CongestionEvent::RecoveryEnd(_) => {
                self.note("end".into());
            }
            CongestionEvent::SlowStartRestart(_) => {
                self.note("restart".into());
            }
            CongestionEvent::SpuriousLosses(s) => {
                self.note(format!("spurious {}{}", s.packets, if s.undo { " undo" } else { "" }));
            }
            other => self.note(format!("{other:?}")),
        }
    }
    fn send_limits(&self) -> SendLimits {
        SendLimits::unpaced(self.0.lock().unwrap().0)
    }
}

const PAYLOAD: u64 = 936;

struct Scenario {
    sender: DatagramSender,
    receiver: DatagramReceiver,
    events: Arc<Mutex<(f64, Vec<String>)>>,
    now: Time,
    wire: Vec<Packet>,
    due: Time,
}

impl Scenario {
    /// With this many bytes to send in a window of `window` packets.
    fn new(window: f64, bytes: u64, ack_every: u32) -> Scenario {
        let feedback = FeedbackConfig { ack_every, ..FeedbackConfig::default() };
        let config = DatagramConfig { reliable: true, feedback, ..DatagramConfig::default() };
        let events = Arc::new(Mutex::new((window, Vec::new())));
        let sender = DatagramSender::new(&config, Box::new(Witness(events.clone())), 0, 1);
        let receiver = DatagramReceiver::new(&config, None, 0, 2);
        let mut scenario = Scenario {
            sender,
            receiver,
            events,
            now: Time::ZERO,
            wire: Vec::new(),
            due: Time::NEVER,
        };
        scenario.give(SenderInput::Open);
        scenario.give(SenderInput::Data(bytes));
        scenario
    }
    fn give(&mut self, input: SenderInput) {
        self.sender.handle(self.now, input);
        loop {
            match self.sender.poll(self.now) {
                SenderOutput::Send(p) => self.wire.push(p),
                SenderOutput::Wait(due) => break self.due = due,
            }
        }
    }
    /// 50 ms later the packets on the wire arrive if `passes` is true; answers arrive at once.
    fn round(&mut self, mut passes: impl FnMut(&Packet) -> bool) {
        self.now += Duration::from_millis(50);
        for p in std::mem::take(&mut self.wire) {
            if passes(&p) {
                self.arrives(&p);
            }
        }
    }
    fn arrives(&mut self, p: &Packet) {
        if let Some(report) = self.receiver.on_packet(self.now, p) {
            self.give(SenderInput::Packet(report));
        }
    }
    /// The sender's timer fires.
    fn timer(&mut self) {
        self.now = self.due;
        self.give(SenderInput::Timeout);
    }
    /// Paced packets are sent.
    fn pace(&mut self) {
        let end = self.now + Duration::from_millis(40);
        while self.due <= end {
            self.timer();
        }
    }
    fn heard(&mut self) -> Vec<String> {
        std::mem::take(&mut self.events.lock().unwrap().1)
    }
    fn numbers(&self) -> Vec<u64> {
        self.wire.iter().map(|p| p.seq).collect()
    }
}

#[test]
fn lost_bytes_leave_in_a_new_packet_and_count_once() {
    let mut s = Scenario::new(6.0, u64::MAX, 1);
    s.round(|_| true);
    s.heard();
    assert_eq!(s.numbers(), [6, 7, 8, 9, 10, 11]);
    s.round(|p| p.seq != 6 && p.seq != 8);
    // 9 shows that 6 is lost, 11 that 8 is: one episode, as both were sent before the first loss was detected.
    let heard = s.heard();
    assert_eq!(heard[..3], ["ack 1 5", "lost 6", "ack 1 4"]);
    assert_eq!(heard[3..5], ["loss 1 Sack true", "repair flight 7"]);
    assert!(heard.contains(&"loss 1 Sack false".into()), "{heard:?}");
    assert_eq!(heard.iter().filter(|h| h.starts_with("repair")).count(), 1);
    s.pace();
    let again: Vec<_> = s.wire.iter().filter(|p| p.has(Packet::RETRANSMISSION)).collect();
    assert_eq!(again.len(), 2);
    assert!(again.iter().all(|p| p.seq > 11), "numbers are never used twice");
    assert_eq!(s.receiver.delivered(), 6 * PAYLOAD);
    s.round(|_| true);
    assert_eq!(s.receiver.delivered(), s.receiver.received());
    assert!(s.heard().iter().any(|h| h == "end"));
}

#[test]
fn late_original_after_its_retransmission_is_harmless() {
    let mut s = Scenario::new(6.0, 12 * PAYLOAD, 1);
    s.round(|_| true);
    let late = s.wire[0];
    s.round(|p| p.seq != late.seq);
    // The late packet arrives before its copy: the copy's bytes are counted once.
    s.arrives(&late);
    s.round(|_| true);
    for _ in 0..4 {
        s.round(|_| true);
    }
    assert_eq!((s.receiver.delivered(), s.receiver.received()), (12 * PAYLOAD, 12 * PAYLOAD));
    assert_eq!(s.sender.flight(), 0);
    assert!(s.due.is_never(), "nothing is waited for");
}

/// A packet that arrives after it was declared lost makes its loss spurious. The recovery ends and the reduction is
/// undone, unless another loss of the same episode remains.
#[test]
fn a_late_packet_takes_its_loss_back() {
    for other in [None, Some(9)] {
        let mut s = Scenario::new(8.0, u64::MAX, 1);
        s.round(|_| true);
        s.pace();
        s.heard();
        let late = s.wire[0];
        assert_eq!(late.seq, 8);
        s.round(|p| p.seq != late.seq && Some(p.seq) != other);
        let heard = s.heard();
        assert!(heard.contains(&"lost 8".into()), "{heard:?}");
        assert!(heard.iter().any(|h| h.starts_with("repair")), "{heard:?}");
        assert!(!heard.iter().any(|h| h == "end" || h.starts_with("spurious")), "{heard:?}");
        s.arrives(&late);
        let heard = s.heard();
        let events = heard.iter().find(|h| h.starts_with("spurious"));
        match other {
            None => {
                assert_eq!(events.unwrap(), "spurious 1 undo", "{heard:?}");
                assert!(heard.iter().any(|h| h == "end"));
            }
            Some(_) => assert_eq!(events.unwrap(), "spurious 1", "{heard:?}"),
        }
        assert_eq!(s.sender.counters().spurious, 1);
    }
}

/// Once a packet has arrived behind one three numbers above, only the time threshold applies.
#[test]
fn time_threshold_detects_losses_under_reordering() {
    let mut s = Scenario::new(12.0, u64::MAX, 1);
    for _ in 0..4 {
        s.round(|_| true);
        s.pace();
    }
    let late = s.wire[0];
    s.round(|p| p.seq != late.seq);
    s.arrives(&late);
    assert_eq!(s.sender.counters().spurious, 1);
    s.pace();
    s.round(|_| true);
    s.pace();
    s.heard();
    // Overtaken by eleven, and lost.
    let late = s.wire[0];
    let lost = s.wire[1].seq;
    s.round(|p| p.seq != late.seq && p.seq != lost);
    assert!(!s.heard().iter().any(|h| h.starts_with("lost")), "by distance {late:?}");
    s.arrives(&late);
    s.heard();
    let seen = s.now;
    while !s.heard().iter().any(|h| h == &format!("lost {lost}")) {
        s.timer();
    }
    // A quarter of the RTT of 50 ms after it was expected.
    assert!(
        (1..=13).contains(&(s.now.since(seen).as_nanos() / 1_000_000)),
        "{:?}",
        s.now.since(seen)
    );
}

/// A late packet is reported although more gaps lie above it than fit in a report.
#[test]
fn a_late_packet_below_many_gaps_is_reported() {
    let mut s = Scenario::new(64.0, u64::MAX, 1);
    for _ in 0..5 {
        s.round(|_| true);
        s.pace();
    }
    let late = s.wire[0];
    assert!(s.wire.len() > 40);
    s.round(|p| p.seq != late.seq && p.seq % 2 == 1);
    let before = s.sender.acknowledged();
    s.arrives(&late);
    assert_eq!(s.sender.acknowledged(), before + 1);
}

#[test]
fn a_lost_tail_is_probed_for() {
    let mut s = Scenario::new(4.0, 8 * PAYLOAD, 1);
    s.round(|_| true);
    s.heard();
    // The last two are lost; no later packet reveals that.
    s.round(|p| p.seq < 6);
    assert!(s.wire.is_empty());
    s.timer();
    assert_eq!((s.numbers(), s.sender.counters().timeouts), (vec![8], 1), "one probe");
    s.round(|_| true);
    // The probe carried 6's bytes; 7 is lost by the time threshold.
    s.timer();
    s.round(|_| true);
    assert_eq!(s.receiver.delivered(), 8 * PAYLOAD);
    assert!(!s.heard().contains(&"restart".into()));
    assert!(s.due.is_never());
}

/// On a link that loses in bursts every lost probe doubles the outage, so from the third PTO on their number doubles,
/// too, up to the window of four, until they are short. One is sent as long as the path has not acknowledged a packet,
/// since the address may be spoofed.
#[test]
fn unanswered_probes_double_until_they_are_short() {
    let probes = |heard: bool| {
        let mut s = Scenario::new(4.0, u64::MAX, 1);
        if heard {
            s.round(|_| true);
        }
        s.round(|_| false);
        let mut sent = Vec::new();
        for _ in 0..7 {
            while s.wire.is_empty() {
                s.timer();
            }
            sent.push(s.wire.len());
            s.wire.clear();
        }
        sent
    };
    assert_eq!(probes(true), [1, 1, 2, 4, 4, 1, 1]);
    assert_eq!(probes(false), [1; 7]);
}

#[test]
fn probes_double_and_persistent_congestion_starts_anew() {
    let mut s = Scenario::new(4.0, u64::MAX, 1);
    s.round(|_| true);
    s.heard();
    let mut pauses = Vec::new();
    s.round(|_| false);
    for _ in 0..4 {
        let before = s.now;
        while s.wire.is_empty() {
            s.timer();
        }
        pauses.push(s.now.since(before).as_secs_f64());
        s.wire.clear();
    }
    assert!(pauses.windows(2).skip(1).all(|w| (w[1] / w[0] - 2.0).abs() < 0.01), "{pauses:?}");
    assert!(s.heard().is_empty(), "silence alone reduces nothing");
    while s.wire.is_empty() {
        s.timer();
    }
    s.round(|_| true);
    let heard = s.heard();
    assert!(heard.contains(&"restart".into()) && !heard.iter().any(|h| h.starts_with("repair")));
    for _ in 0..16 {
        s.round(|_| true);
    }
    assert_eq!(s.receiver.delivered(), s.receiver.received(), "all that was lost came again");
}

/// As in a connection: data at first, then a short probe every two seconds.
#[test]
fn long_silence_is_probed_every_two_seconds() {
    let mut s = Scenario::new(4.0, u64::MAX, 1);
    s.round(|_| true);
    s.round(|_| false);
    let mut probes = Vec::new();
    let mut before = s.now;
    while probes.len() < 26 {
        s.timer();
        for p in std::mem::take(&mut s.wire) {
            let pause = s.now.since(std::mem::replace(&mut before, s.now));
            probes.push((pause.as_secs_f64(), p.size, p.payload()));
        }
    }
    assert!(probes[..3].iter().all(|p| p.2 > 0), "{probes:?}");
    let late = &probes[16..];
    assert!(late.iter().all(|p| p.0 == 2.0 && p.1 <= 100 && p.2 == 0), "{probes:?}");
    // The answer to one of them ends the outage: all lost data is sent again.
    s.timer();
    for _ in 0..8 {
        s.round(|_| true);
    }
    assert!(s.receiver.delivered() == s.receiver.received() && s.receiver.delivered() > 0);
}

#[test]
fn a_stream_is_answered_as_a_connection_answers() {
    let mut s = Scenario::new(64.0, u64::MAX, 32);
    s.round(|_| true);
    s.pace();
    s.heard();
    let mut answers = Vec::new();
    s.now += Duration::from_millis(50);
    for (i, p) in std::mem::take(&mut s.wire).into_iter().take(24).enumerate() {
        s.now += Duration::from_millis(1);
        if i != 16 && s.receiver.on_packet(s.now, &p).is_some() {
            answers.push(i);
        }
    }
    // The first follows a pause; then pairs; the gap's upper edge and three more alone.
    assert_eq!(answers, [0, 2, 4, 6, 8, 10, 12, 14, 17, 18, 19, 20, 22]);
    // A 32nd of twice the shortest one-way time.
    let due = s.receiver.next_timeout();
    assert_eq!(due.since(s.now), Duration::from_micros(3125));
    assert!(s.receiver.on_timeout(due).is_some() && s.receiver.next_timeout().is_never());
}
