//! A probe over two simulated links: for tests and benchmarks of the estimates.

mod judge;
mod links;

pub use judge::{CheckedEstimate, ENOUGH, judge};
pub use links::{JudgedLink, LINKS};

use crate::budget::Budget;
use crate::buffer::OverflowWatch;
use crate::ecn::{CE, ECT0};
use crate::probe::{PathEstimate, Probe, ProbeDirection, ProbeStep};
use crate::recording::{RecordedWay, TraceRecording};
use crate::train::{TrainArrival, TrainObservation};
use narrows_base::{Duration, RandomKey, SpecError, Time};
use narrows_link::{Link, LinkConfig, LinkPacket};

/// A packet of a train.
#[derive(Clone, Copy, Debug)]
struct ProbePacket {
    index: u32,
    bytes: u32,
    ecn: u8,
    random_key: u64,
}

impl LinkPacket for ProbePacket {
    fn size(&self) -> u32 {
        self.bytes
    }
    fn random_key(&self) -> u64 {
        self.random_key
    }
    fn is_data(&self) -> bool {
        true
    }
    fn corrupt(&mut self) {}
    fn is_ect(&self) -> bool {
        self.ecn != 0
    }
    fn mark(&mut self) {
        self.ecn = CE;
    }
    fn is_marked(&self) -> bool {
        self.ecn == CE
    }
}

/// A path of two links. Each end has its own clock.
pub struct SimulatedPath {
    links: [Link<ProbePacket>; 2],
    delays: [Duration; 2],
    key: RandomKey,
    sent: u64,
    /// The server's clock: its offset, and the share by which it is faster.
    offset_ns: u64,
    drift: f64,
    /// Largest delay of a packet in the sending host.
    host_delay: Duration,
    clears_ecn: bool,
    /// The share of each train's packets that a host sends before the train's time is over.
    sent_share: f64,
    /// Both ends check each train, as a server does.
    budgets: [Budget; 2],
}

impl SimulatedPath {
    /// A path with these links to the server and from it.
    ///
    /// # Errors
    /// A link that cannot be built.
    pub fn new(up: &LinkConfig, down: &LinkConfig, seed: u64) -> Result<SimulatedPath, SpecError> {
        let key = RandomKey::from_seed(seed).named("probe");
        let links = [Link::new(up, key.named("up"))?, Link::new(down, key.named("down"))?];
        Ok(SimulatedPath {
            links,
            delays: [up.delay, down.delay],
            key: key.named("packets"),
            sent: 0,
            offset_ns: 7_000_000_000 + seed * 1_000_003,
            drift: 40e-6,
            host_delay: Duration::from_micros(60),
            clears_ecn: false,
            sent_share: 1.0,
            budgets: Default::default(),
        })
    }

    /// Routers before the links clear ECN fields.
    #[must_use]
    pub fn clearing_ecn(mut self) -> SimulatedPath {
        self.clears_ecn = true;
        self
    }

    /// Hosts are busy: of each train they send this share of the packets.
    #[must_use]
    pub fn sending_only(mut self, share: f64) -> SimulatedPath {
        self.sent_share = share;
        self
    }

    /// Probes it. `None` if too little arrived, or if an end refused a train.
    pub fn probe(&mut self, fill: bool) -> Option<PathEstimate> {
        let mut now = Time::ZERO + Duration::from_millis(100);
        let rtt = self.delays[0] + self.delays[1];
        let mut probe = Probe::new(now, rtt, fill);
        while let Some(step) = probe.next(now) {
            let budget = &mut self.budgets[step.way as usize];
            budget.check(step.train.packets, step.train.bytes, step.train.gap).ok()?;
            let (observed, over) = self.send(&step, now);
            self.budgets[step.way as usize].count(observed.sent.len(), step.train.bytes);
            probe.on_train(&step, observed);
            now = over;
        }
        probe.estimate()
    }

    /// Records it after a probe. `None` if too little arrived, or if an end refused a train.
    pub fn record(&mut self, estimate: &PathEstimate) -> Option<[RecordedWay; 2]> {
        self.budgets = Default::default();
        let mut now = Time::ZERO + Duration::from_secs(60);
        let mut recording = TraceRecording::new(now, estimate);
        while let Some(step) = recording.next(now) {
            let budget = &mut self.budgets[step.way as usize];
            budget.check(step.train.packets, step.train.bytes, step.train.gap).ok()?;
            let (observed, over) = self.send(&step, now);
            self.budgets[step.way as usize].count(observed.sent.len(), step.train.bytes);
            recording.on_train(&step, observed);
            now = over;
        }
        recording.recorded()
    }

    fn server_clock(&self, at: Time) -> u64 {
        self.offset_ns + at.as_nanos() + (at.as_nanos() as f64 * self.drift) as u64
    }

    /// Sends a train. Returns its observation, and the time at which the client has it.
    fn send(&mut self, step: &ProbeStep, now: Time) -> (TrainObservation, Time) {
        let ProbeStep { way, train, stop_at } = step;
        let (to_server, back) = match way {
            ProbeDirection::Up => (Duration::ZERO, self.delays[1]),
            ProbeDirection::Down => (self.delays[0], self.delays[0]),
        };
        let begin = now + to_server;
        let mut watch = OverflowWatch::new(*stop_at);
        let mut sent = Vec::new();
        let mut arrivals = Vec::new();
        let mut stopped = Time::NEVER;
        let mut last = begin;
        let mut drain = |link: &mut Link<ProbePacket>, until: Time, stopped: &mut Time| {
            while link.next_timeout() <= until {
                let at = link.next_timeout();
                while let Some(packet) = link.poll(at, &mut ()) {
                    arrivals.push((packet.index, packet.ecn, at));
                    if watch.on_arrival(packet.index, packet.ecn) && stopped.is_never() {
                        *stopped = at + back;
                    }
                }
            }
        };
        let packets = (f64::from(train.packets) * self.sent_share).ceil() as u32;
        for index in 0..packets {
            let late = self.host_delay.mul_f64(self.key.draw(self.sent));
            let at = (begin + train.gap.saturating_mul(u64::from(index)) + late).max(last);
            last = at;
            drain(&mut self.links[*way as usize], at, &mut stopped);
            if at >= stopped {
                break;
            }
            let random_key = self.key.numbered(self.sent).bits();
            self.sent += 1;
            let marked = index >= train.packets.saturating_sub(train.ce);
            let ecn = match (self.clears_ecn, marked) {
                (true, _) => 0,
                (false, true) => CE,
                (false, false) => ECT0,
            };
            let packet = ProbePacket { index, bytes: train.bytes, ecn, random_key };
            self.links[*way as usize].accept(at, packet, &mut ());
            sent.push(at);
        }
        // All packets that arrive within the timeout of a real probe.
        drain(&mut self.links[*way as usize], last + Duration::from_secs(5), &mut stopped);
        let over = arrivals.last().map_or(last, |a| a.2);
        let report = match way {
            ProbeDirection::Up => over + back,
            ProbeDirection::Down => over,
        };
        let by_server = |at| self.server_clock(at);
        let by_client = Time::as_nanos;
        let (sent, arrivals) = match way {
            ProbeDirection::Up => {
                (sent.into_iter().map(by_client).collect(), clocked(&arrivals, by_server))
            }
            ProbeDirection::Down => {
                (sent.into_iter().map(by_server).collect(), clocked(&arrivals, by_client))
            }
        };
        (TrainObservation::new(sent, &arrivals), report)
    }
}

fn clocked(arrivals: &[(u32, u8, Time)], clock: impl Fn(Time) -> u64) -> Vec<TrainArrival> {
    let each = arrivals.iter();
    each.map(|(index, ecn, at)| TrainArrival { index: *index, at_ns: clock(*at), ecn: *ecn })
        .collect()
}
