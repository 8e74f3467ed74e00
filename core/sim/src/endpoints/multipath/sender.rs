//! The sending side: one stream, several paths, a scheduler.

use super::PathParts;
use super::sender_path::SenderPath;
use crate::endpoints::datagram::header;
use crate::endpoints::datagram::path::DatagramPath;
use crate::endpoints::datagram::stream::{OutgoingStream, SentRange};
use crate::endpoints::interface::{SenderInput, SenderOutput, SendingLimit};
use crate::protocol::DatagramConfig;
use crate::result::PathResult;
use narrows_base::{Duration, Machine, Packet, Time};
use narrows_congestion::{Controller, HintSource, PathEvent, PathHints};
use narrows_multipath::{
    Choice, CoupledPath, CouplingEntry, InFlightPiece, NumberedPiece, PathState, PathStatus, Piece,
    Scheduler, SharedBottleneck, TrafficClass,
};
use narrows_recovery::packet_sender::Counters;

/// Smallest limit on the reordering that a sender causes: the default receive buffer limit of Linux (`tcp_rmem`).
const MIN_REORDERING: u64 = 6 << 20;

/// Sends a stream over several paths.
pub struct MultipathSender {
    paths: Vec<SenderPath>,
    stream: OutgoingStream,
    scheduler: Box<dyn Scheduler>,
    shared: SharedBottleneck,
    coupling: CouplingEntry,
    /// What it last read of the paths that carry data; kept for its memory.
    coupled: Vec<CoupledPath>,
    /// The states of `paths`, in their order.
    states: Vec<PathState>,
    open: bool,
    limit: SendingLimit,
    /// Until when the scheduler waits.
    waits_until: Time,
    payload: u32,
}

impl MultipathSender {
    /// A sender with these paths.
    pub fn new(
        config: &DatagramConfig,
        paths: Vec<PathParts<Box<dyn Controller>>>,
        scheduler: Box<dyn Scheduler>,
        coupling: CouplingEntry,
    ) -> MultipathSender {
        let count = paths.len();
        let link = |p: PathParts<_>| DatagramPath::new(config, p.controller, p.flow, p.random_key);
        MultipathSender {
            paths: paths.into_iter().map(|p| SenderPath::new(link(p), count)).collect(),
            stream: OutgoingStream::default(),
            scheduler,
            shared: SharedBottleneck::default(),
            coupling,
            coupled: Vec::with_capacity(count),
            states: vec![PathState::default(); count],
            open: false,
            limit: SendingLimit::Application,
            waits_until: Time::NEVER,
            payload: config.payload(),
        }
    }

    /// Sets the flow numbers of the paths after the first.
    pub fn number_paths(&mut self, first: u32) {
        for (number, path) in (first..).zip(&mut self.paths[1..]) {
            path.link.flow = number;
        }
    }
    /// New path hints from the application; they are of the first path.
    pub fn reconfigure(&mut self, now: Time, hints: &PathHints) {
        self.paths[0].link.sender.on_path_hints(now, hints, HintSource::User);
    }
    /// The controller of the first path.
    pub fn controller(&self) -> &dyn Controller {
        self.paths[0].link.sender.controller()
    }
    /// Mutable access to it.
    pub fn controller_mut(&mut self) -> &mut dyn Controller {
        self.paths[0].scheduled.is_stale = true;
        self.paths[0].link.sender.controller_mut()
    }
    /// The limit that it waits for.
    pub fn limit(&self) -> SendingLimit {
        self.limit
    }
    /// Counts of all paths since the start.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.paths.iter().for_each(|p| sum.add(&p.link.sender.counters()));
        sum
    }
    /// Packets in flight on all paths.
    pub fn flight(&self) -> u64 {
        self.paths.iter().map(|p| p.link.sender.packets_in_flight()).sum()
    }
    /// Packets known to have arrived.
    pub fn acknowledged(&self) -> u64 {
        self.paths.iter().map(|p| p.link.sender.acknowledged()).sum()
    }
    /// Application bytes and bytes on the wire of a full packet.
    pub(crate) fn sizes(&self) -> (u32, u32) {
        (self.payload, self.paths[0].packet_bytes())
    }
    /// Bytes never sent; `u64::MAX` without end.
    pub fn unsent(&self) -> u64 {
        self.stream.unsent()
    }
    /// The smallest smoothed RTT of the paths in use; zero before the first sample.
    pub fn srtt(&self) -> Duration {
        let used = self.paths.iter().filter(|p| p.link.is_open());
        used.map(|p| p.link.sender.rtt().srtt()).min().unwrap_or_default()
    }
    /// Results of each path, with the smoothed RTT at present.
    pub fn results(&self) -> Vec<PathResult> {
        let result = |p: &SenderPath| PathResult {
            srtt_s: p.link.sender.rtt().srtt().as_secs_f64(),
            lost_packets: p.link.sender.counters().lost,
            ..p.result
        };
        self.paths.iter().map(result).collect()
    }

    /// A packet with this range leaves on path `index`.
    fn send(&mut self, now: Time, index: usize, range: SentRange, bytes: u32) -> SenderOutput {
        let path = &mut self.paths[index];
        path.scheduled.on_sent(now);
        self.shared.on_sent(now, index, bytes);
        path.result.sent_bytes += u64::from(range.length);
        path.result.copied_bytes += if range.copy { u64::from(range.length) } else { 0 };
        self.scheduler.on_sent(index, range.length, range.copy);
        SenderOutput::Send(path.link.send(now, &mut self.stream, range, bytes))
    }
    fn send_data(&mut self, now: Time, index: usize, range: SentRange) -> SenderOutput {
        let header = self.paths[index].link.header;
        self.send(now, index, range, range.length + header)
    }

    /// The packet of a path that must send one: a probe. If no other path is usable it carries data.
    #[cold]
    fn send_forced(&mut self, now: Time, index: usize) -> SenderOutput {
        let full = self.paths[index].packet_bytes();
        let link = &mut self.paths[index].link;
        let empty = link.empty;
        // Records the departure with the pacer.
        let _ = link.sender.permission(now);
        if link.sender.is_short_probe() {
            return self.send(now, index, SentRange::default(), empty);
        }
        let is_usable = |p: &PathState| p.status != PathStatus::Unusable;
        let elsewhere = self.states.iter().enumerate().any(|(n, p)| n != index && is_usable(p));
        let range = if elsewhere { None } else { self.stream.take(self.payload) };
        match range {
            Some(range) => self.send_data(now, index, range),
            None => self.send(now, index, SentRange::default(), full),
        }
    }

    /// Most bytes from the lowest missing byte to the highest sent one: twice what all paths deliver in the longest
    /// round trip.
    fn reordering_limit(&self) -> u64 {
        let used = self.states.iter().filter(|p| p.status != PathStatus::Unusable);
        let rate: f64 = used.clone().filter_map(PathState::rate).sum();
        let longest = used.map(|p| p.srtt + p.rttvar.saturating_mul(4)).max().unwrap_or_default();
        MIN_REORDERING.max((2.0 * rate * longest.as_secs_f64()) as u64)
    }

    /// Asks the scheduler for the path of a piece.
    fn choose(&mut self, now: Time, length: u32, is_lost: bool) -> Option<usize> {
        let backlog = if is_lost { self.stream.all_lost_bytes() } else { self.stream.unsent() };
        let class = TrafficClass::Bulk;
        let piece = Piece { length, backlog, class, deadline: Time::NEVER, is_lost };
        match self.scheduler.choose(now, &self.states, &piece) {
            Choice::Send(index)
                if self.paths.get(index).is_some_and(|p| p.scheduled.is_permitted) =>
            {
                Some(index)
            }
            Choice::Send(_) => None,
            Choice::Wait(until) => {
                self.waits_until = self.waits_until.min(until);
                None
            }
        }
    }

    /// The next packet by the scheduler's choice.
    fn next(&mut self, now: Time) -> Option<SenderOutput> {
        if self.scheduler.repeats_first()
            && let Some(copy) = self.next_copy(now)
        {
            return Some(copy);
        }
        let lost = self.stream.lost_bytes(self.payload);
        if lost > 0
            && let Some(index) = self.choose(now, lost, true)
        {
            let range = self.stream.take(self.payload)?;
            return Some(self.send_data(now, index, range));
        }
        let new = self.stream.unsent().min(u64::from(self.payload)) as u32;
        if new > 0 {
            if self.stream.span() >= self.reordering_limit() {
                self.limit = SendingLimit::SendBuffer;
                return None;
            }
            let index = self.choose(now, new, false)?;
            let range = self.stream.take_new(self.payload)?;
            return Some(self.send_data(now, index, range));
        }
        if lost == 0 && !self.scheduler.repeats_first() { self.next_copy(now) } else { None }
    }

    /// A copy of a piece that is in flight on another path, if the scheduler wants one.
    fn next_copy(&mut self, now: Time) -> Option<SenderOutput> {
        for on in 0..self.paths.len() {
            if !self.paths[on].scheduled.is_permitted {
                continue;
            }
            for path in (0..self.paths.len()).filter(|p| *p != on) {
                let mut offered = self.paths[on].offered[path];
                let MultipathSender { paths, stream, scheduler, states, .. } = self;
                let sender = &paths[path].link.sender;
                let is_late = |r: &SentRange| r.length > 0 && !r.copy && stream.is_missing(r);
                let first = |from| {
                    let mut pieces = sender.in_flight_from(from);
                    let (number, sent, range) = pieces.find(|(_, _, range)| is_late(range))?;
                    let piece = InFlightPiece { path, sent, length: range.length };
                    Some(NumberedPiece { number, piece })
                };
                let number = offered.next(first, |p| scheduler.repeats(now, states, on, p));
                let range = number.and_then(|n| sender.in_flight_from(n).next());
                let range = range.map(|(_, _, range)| *range);
                self.paths[on].offered[path] = offered;
                if let Some(range) = range {
                    let range = SentRange { again: true, copy: true, ..range };
                    return Some(self.send_data(now, on, range));
                }
            }
        }
        None
    }

    /// A path has become silent: what is in flight on it is sent again elsewhere.
    #[cold]
    fn leave(&mut self, index: usize) {
        let MultipathSender { paths, stream, .. } = self;
        for (_, _, range) in paths[index].link.sender.in_flight_from(0) {
            stream.send_again(range.offset, range.length);
        }
    }

    /// Sets how the window of path `index` changes at its next report or timeout.
    fn couple(&mut self, now: Time, index: usize) {
        if self.paths[index].coupled().is_none() {
            return;
        }
        self.coupled.clear();
        self.coupled.extend(self.paths.iter().filter_map(SenderPath::coupled));
        let own = self.paths[..index].iter().filter_map(SenderPath::coupled).count();
        if let Some(change) = (self.coupling.change)(&self.coupled, own) {
            let controller = self.paths[index].link.sender.controller_mut();
            controller.on_path_event(now, &PathEvent::Coupling(change));
        }
    }

    fn on_timeout(&mut self, now: Time) {
        let all_arrived = self.stream.all_arrived();
        for index in 0..self.paths.len() {
            self.couple(now, index);
            let path = &mut self.paths[index];
            path.scheduled.is_stale = true;
            let was_silent = path.scheduled.liveness.is_silent();
            let is_due = path.silence_due(all_arrived) <= now;
            path.link.sender.on_timeout(now, &mut self.stream);
            path.on_losses(now);
            if is_due {
                let pto = path.link.sender.pto();
                path.scheduled.liveness.on_timeout(now, pto);
                path.link.sender.force();
                if !was_silent {
                    self.leave(index);
                }
            }
        }
    }

    fn on_packet(&mut self, now: Time, p: &Packet) {
        let Some(index) = self.paths.iter().position(|path| path.link.flow == p.flow) else {
            return;
        };
        self.couple(now, index);
        let path = &mut self.paths[index];
        path.scheduled.is_stale = true;
        if (path.link.has_handshake() || p.has(Packet::SYN)) && path.link.on_answer(now, p) {
            return;
        }
        if p.has(Packet::CORRUPT | header::NACK) {
            return;
        }
        if let Some(sample) = path.link.on_report(now, &mut self.stream, p) {
            path.on_rate(&sample);
        }
        if self.coupling.detects
            && let Some(delay) = path.link.sender.forward_delay()
        {
            self.shared.on_delay(now, index, delay, &self.states);
        }
        path.on_losses(now);
        let outstanding = path.link.sender.packets_in_flight() > 0;
        path.scheduled.liveness.on_answer(now, outstanding);
    }

    /// When to poll again.
    fn wait(&mut self, now: Time) -> SenderOutput {
        let later = now + Duration::from_nanos(1);
        let all_arrived = self.stream.all_arrived();
        let mut due = self.waits_until;
        for (path, state) in self.paths.iter_mut().zip(&self.states) {
            path.leave_unused();
            if state.status != PathStatus::Unusable && state.sendable > now {
                due = due.min(state.sendable);
            }
            due = due.min(path.link.handshake_due());
            if path.link.is_open() {
                due = due.min(path.link.sender.next_timeout(later));
                due = due.min(path.silence_due(all_arrived));
            }
        }
        SenderOutput::Wait(due.max(later))
    }
}

impl Machine for MultipathSender {
    type Input = SenderInput;
    type Output = SenderOutput;

    fn handle(&mut self, now: Time, input: SenderInput) {
        match input {
            SenderInput::Open => {
                self.open = true;
                self.paths.iter_mut().for_each(|p| p.link.open(now));
            }
            SenderInput::Packet(p) => self.on_packet(now, &p),
            SenderInput::Data(bytes) => self.stream.push(bytes),
            SenderInput::Frame(part) => self.stream.push(u64::from(part.bytes)),
            SenderInput::Stop => self.stream.stop(),
            SenderInput::Timeout if !self.open => {}
            SenderInput::Timeout => self.on_timeout(now),
        }
    }

    fn poll(&mut self, now: Time) -> SenderOutput {
        if !self.open {
            return SenderOutput::Wait(Time::NEVER);
        }
        self.waits_until = Time::NEVER;
        for index in 0..self.paths.len() {
            let path = &mut self.paths[index];
            if path.link.has_handshake()
                && let Some(packet) = path.link.next_handshake_packet(now)
            {
                return SenderOutput::Send(packet);
            }
            if path.link.is_open() && path.link.sender.is_forced() {
                return self.send_forced(now, index);
            }
            if path.scheduled.is_outdated(now) {
                path.refresh(now);
            }
            self.states[index] = path.scheduled.state;
        }
        for index in 0..self.paths.len() {
            let departure = self.shared.departure(index, &self.states);
            self.states[index].sendable = self.states[index].sendable.max(departure);
        }
        self.limit = match self.stream.is_empty() {
            true => SendingLimit::Application,
            false if self.paths.iter().all(|p| !p.link.is_open()) => SendingLimit::Opening,
            false if self.paths.iter().all(SenderPath::is_window_limited) => SendingLimit::Window,
            false => SendingLimit::Pacing,
        };
        match self.next(now) {
            Some(packet) => packet,
            None => self.wait(now),
        }
    }
}

impl std::fmt::Debug for MultipathSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sender({} paths, {} in flight)", self.paths.len(), self.flight())
    }
}
