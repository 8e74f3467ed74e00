//! The controller of an environment's flow: actions set its limits, and it counts the events of a step.

use narrows_base::{Duration, Time};
use narrows_congestion::{
    Ack, CongestionEvent, Controller, Feedback, PacketOutcome, PathEvent, Requirements, SendLimits,
    Sent,
};

/// Counts of the sender since the step began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StepCounts {
    pub acks: u64,
    pub sent: u64,
    pub delivered: u64,
    pub lost: u64,
    pub marks: u64,
    pub timeouts: u64,
    /// Sum, smallest, first and last of the RTTs, with the times of the first and the last.
    pub rtt_sum_ns: u64,
    pub rtt_min: Duration,
    pub first: (Time, Duration),
    pub last: (Time, Duration),
    /// Smallest RTT since the connection began.
    pub min_rtt: Duration,
    pub srtt: Duration,
    pub outstanding: u64,
}

impl StepCounts {
    /// Starts a new step. Properties of the path are kept.
    pub fn clear(&mut self) {
        *self = StepCounts {
            last: self.last,
            min_rtt: self.min_rtt,
            srtt: self.srtt,
            outstanding: self.outstanding,
            ..StepCounts::default()
        };
    }

    /// Mean RTT of the step; without an acknowledgement the last RTT before it.
    pub fn rtt_s(&self) -> f64 {
        match self.acks {
            0 => self.last.1.as_secs_f64(),
            n => self.rtt_sum_ns as f64 / n as f64 * 1e-9,
        }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        if self.acks == 0 {
            self.first = (ack.now, ack.rtt);
            self.rtt_min = ack.rtt;
        }
        self.acks += 1;
        self.delivered += ack.newly_delivered;
        self.marks += u64::from(ack.marks);
        self.rtt_sum_ns += ack.rtt.as_nanos();
        self.rtt_min = self.rtt_min.min(ack.rtt);
        self.last = (ack.now, ack.rtt);
        self.min_rtt = ack.estimate.min_rtt;
        self.srtt = ack.estimate.srtt;
        self.outstanding = ack.outstanding;
    }
}

/// Counts for an environment, and either has the limits that an action set or lets a listed controller decide.
#[derive(Clone)]
pub(crate) struct StepController {
    pub limits: SendLimits,
    pub counts: StepCounts,
    /// Decides in the action's place.
    listed: Option<Box<dyn Controller>>,
}

impl StepController {
    pub fn new(initial_window: f64, listed: Option<Box<dyn Controller>>) -> StepController {
        let limits = SendLimits::unpaced(initial_window);
        StepController { limits, counts: StepCounts::default(), listed }
    }
    /// Whether actions set the limits.
    pub fn is_limited_from_outside(&self) -> bool {
        self.listed.is_none()
    }
}

impl Controller for StepController {
    fn on_ack(&mut self, ack: &Ack) {
        self.counts.on_ack(ack);
        if let Some(listed) = &mut self.listed {
            listed.on_ack(ack);
        }
    }
    fn send_limits(&self) -> SendLimits {
        self.listed.as_ref().map_or(self.limits, |listed| listed.send_limits())
    }
    fn on_sent(&mut self, sent: &Sent) {
        self.counts.sent += 1;
        self.counts.outstanding = sent.outstanding;
        if let Some(listed) = &mut self.listed {
            listed.on_sent(sent);
        }
    }
    fn on_packet_outcome(&mut self, outcome: &PacketOutcome) {
        if let Some(listed) = &mut self.listed {
            listed.on_packet_outcome(outcome);
        }
    }
    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match event {
            CongestionEvent::Losses(loss) => self.counts.lost += loss.segments,
            CongestionEvent::SlowStartRestart(restart) => {
                self.counts.timeouts += u64::from(restart.timeout);
            }
            CongestionEvent::SpuriousLosses(late) => {
                self.counts.lost = self.counts.lost.saturating_sub(late.packets);
            }
            _ => {}
        }
        if let Some(listed) = &mut self.listed {
            listed.on_congestion_event(event);
        }
    }
    fn on_path_event(&mut self, now: Time, event: &PathEvent) {
        if let Some(listed) = &mut self.listed {
            listed.on_path_event(now, event);
        }
    }
    fn on_tick(&mut self, now: Time) {
        if let Some(listed) = &mut self.listed {
            listed.on_tick(now);
        }
    }
    fn next_tick(&self) -> Time {
        self.listed.as_ref().map_or(Time::NEVER, |listed| listed.next_tick())
    }
    fn feedback_to_receiver(&self) -> Feedback {
        self.listed.as_ref().map_or(Feedback::NONE, |listed| listed.feedback_to_receiver())
    }
    fn requirements(&self) -> Requirements {
        self.listed.as_ref().map_or(Requirements::default(), |listed| listed.requirements())
    }
}
