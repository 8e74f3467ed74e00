//! A link: *queue and rate, then a policer, then delay, then loss*.
//!
//! A plain link (drop-tail, constant rate) computes a packet's departure when the packet arrives. So it stores only the
//! start times of waiting packets, not the packets (`LinkQueue`). Every other link serves packets one by one (`Served`). A
//! property test checks that both compute the same departures to the nanosecond.

mod served;

use self::served::{QueueReports, Served};
use crate::config::{EarlyConfig, Impairments, LinkChange, LinkConfig, QueueLimit};
use crate::correlated::Correlated;
use crate::jitter::{Jitter, JitterForm};
use crate::loss::LossProcess;
use crate::policer::Policer;
use crate::queue;
use crate::trace::TraceCursor;
use crate::{LinkPacket, Meter};
use narrows_base::rate::Serializer;
use narrows_base::{Duration, RandomKey, RandomStream, SpecError, Time};
use std::collections::VecDeque;

/// A packet on the wire and when it arrives: one cache line for a simulated packet.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Flying<P> {
    due: Time,
    packet: P,
}

const _: () = assert!(size_of::<Flying<narrows_base::Packet>>() == 64);

/// One direction of a link.
///
/// ```
/// use narrows_base::{Duration, RandomKey, Rate, Time};
/// use narrows_link::{Link, LinkConfig, LinkPacket};
///
/// #[derive(Clone, Copy)]
/// struct Datagram {
///     bytes: u32,
/// }
///
/// impl LinkPacket for Datagram {
///     fn size(&self) -> u32 {
///         self.bytes
///     }
///     fn random_key(&self) -> u64 {
///         0
///     }
///     fn is_data(&self) -> bool {
///         true
///     }
///     fn corrupt(&mut self) {}
/// }
///
/// // 8 Mbit/s and 10 ms: 1000 bytes leave after 1 ms and arrive after 11.
/// let config = LinkConfig::plain(Rate::from_bps(8_000_000), Duration::from_millis(10));
/// let mut link = Link::new(&config, RandomKey::from_seed(1))?;
/// link.accept(Time::ZERO, Datagram { bytes: 1000 }, &mut ());
/// let due = link.next_timeout();
/// assert_eq!(due, Time::ZERO + Duration::from_millis(11));
/// assert!(link.poll(due, &mut ()).is_some());
/// # Ok::<(), narrows_base::SpecError>(())
/// ```
pub struct Link<P> {
    serializer: Serializer,
    delay: Duration,
    /// When the transmitter becomes idle.
    busy: Time,
    flying: VecDeque<Flying<P>>,
    /// Present if waiting packets must be counted: always if the queue is limited.
    room: Option<Box<LinkQueue>>,
    extra: Option<Box<Extra<P>>>,
}

// The simulator keeps four links per flow; each, with the simulator's own fields, must fit in two
// cache lines.
const _: () = assert!(size_of::<Link<narrows_base::Packet>>() <= 104);

/// The queue of a computed link.
#[derive(Debug, Default)]
struct LinkQueue {
    limit: QueueLimit,
    /// Start times of transmission (ns) and sizes of the packets that wait.
    starts: VecDeque<(u64, u32)>,
    bytes: u64,
}

impl LinkQueue {
    /// Removes the packets whose transmission has begun by `now`.
    #[inline]
    fn settle(&mut self, now: Time) {
        while let Some(&(start, bytes)) = self.starts.front() {
            if start > now.as_nanos() {
                break;
            }
            self.starts.pop_front();
            self.bytes -= u64::from(bytes);
        }
    }
}

/// State that only some links need, kept apart so that plain links stay small.
struct Extra<P> {
    loss: Vec<Box<dyn LossProcess>>,
    impairments: Impairments,
    policer: Option<Policer>,
    /// Jitter of another form than the default's, which needs no state.
    jitter: Option<Jitter>,
    early: Option<EarlyPackets>,
    stream: RandomStream,
    last_due: Time,
    random_key: RandomKey,
    served: Option<Served<P>>,
}

/// Which packets go early.
struct EarlyPackets {
    config: EarlyConfig,
    numbers: Correlated,
    stream: RandomStream,
    /// Packets that were delayed since the last early one.
    delayed: u64,
}

impl EarlyPackets {
    fn new(config: EarlyConfig, random_key: RandomKey) -> EarlyPackets {
        let stream = random_key.named("early").stream();
        EarlyPackets { config, numbers: Correlated::new(config.correlation), stream, delayed: 0 }
    }
    /// Whether this packet goes early; as in netem, no number is drawn within a gap.
    fn next(&mut self) -> bool {
        let early = self.delayed.saturating_add(1) >= self.config.gap
            && self.numbers.next(&mut self.stream) < self.config.share;
        self.delayed = if early { 0 } else { self.delayed + 1 };
        early
    }
}

impl<P: LinkPacket + Copy + Send + 'static> Link<P> {
    /// Builds a link; `random_key` is the key of its losses and of its queue's random draws.
    ///
    /// # Errors
    /// As [`LinkConfig::check`].
    pub fn new(config: &LinkConfig, random_key: RandomKey) -> Result<Link<P>, SpecError> {
        config.check()?;
        let managed = queue::is_managed(&config.queue);
        let served = if managed || config.trace.is_some() || config.changes {
            let queue = queue::build(config, random_key)?;
            Some(Served::new(queue, config.trace.clone().map(|t| (t, TraceCursor::default()))))
        } else {
            None
        };
        let plain = config.loss.is_empty()
            && config.impairments == Impairments::default()
            && served.is_none();
        let extra = (!plain).then(|| {
            Box::new(Extra {
                loss: build_losses(config, random_key),
                impairments: config.impairments,
                policer: config.impairments.policer.as_ref().map(Policer::new),
                jitter: special_jitter(&config.impairments, random_key),
                early: config.impairments.early.map(|e| EarlyPackets::new(e, random_key)),
                stream: random_key.named("impairments").stream(),
                last_due: Time::ZERO,
                random_key,
                served,
            })
        });
        let limit = queue::limit(&config.queue)?;
        Ok(Link {
            serializer: Serializer::new(config.rate),
            delay: config.delay,
            busy: Time::ZERO,
            flying: VecDeque::new(),
            room: (limit != QueueLimit::Unlimited)
                .then(|| Box::new(LinkQueue { limit, ..LinkQueue::default() })),
            extra,
        })
    }

    /// Counts waiting packets even if the queue is unlimited, for meters and traces.
    pub fn count_waiting(&mut self) {
        self.room.get_or_insert_default();
    }

    /// Whether [`pass`](Link::pass) can be used: constant rate, drop-tail, no MTU, and packets keep their order.
    pub fn is_computed(&self) -> bool {
        self.extra.as_ref().is_none_or(|e| {
            e.served.is_none() && e.impairments.orderly() && e.impairments.mtu.is_none()
        })
    }

    /// The largest packet that the link takes, in bytes with headers; `None` if any size passes.
    pub fn mtu(&self) -> Option<u32> {
        self.extra.as_ref()?.impairments.mtu
    }

    /// Sends a packet into a computed link at `now`. Returns when it arrives at the far end, or
    /// `None` if it is dropped or lost. The link does not store the packet; [`hold`](Link::hold)
    /// does.
    #[inline]
    pub fn pass<M: Meter<P>>(&mut self, now: Time, packet: &mut P, meter: &mut M) -> Option<Time> {
        meter.offered(now, packet);
        let (start, end) = self.schedule(now, packet, meter)?;
        meter.served(packet, now, start, end);
        match &mut self.extra {
            None => Some(end + self.delay),
            Some(extra) => {
                let mut due = extra.after(end, self.delay, packet, meter)?;
                // Order is kept on such links.
                due = due.max(extra.last_due);
                extra.last_due = due;
                Some(due)
            }
        }
    }

    /// Admits one packet to the drop-tail queue and computes its transmission.
    #[inline]
    fn schedule<M: Meter<P>>(
        &mut self,
        now: Time,
        packet: &P,
        meter: &mut M,
    ) -> Option<(Time, Time)> {
        let size = packet.size();
        let start = self.busy.max(now);
        if let Some(room) = &mut self.room {
            room.settle(now);
            if start > now {
                if !queue::has_room(room.limit, room.starts.len() as u64, room.bytes, size) {
                    meter.dropped(now, packet);
                    return None;
                }
                room.starts.push_back((start.as_nanos(), size));
                room.bytes += u64::from(size);
            }
            meter.queued(now, room.starts.len());
        }
        let end = start + self.serializer.next(size);
        self.busy = end;
        Some((start, end))
    }

    /// Stores a packet until it arrives at the far end at `due`. On a link that keeps the order,
    /// `due` must not decrease. Returns whether the packet is now the first to arrive.
    #[inline]
    pub fn hold(&mut self, due: Time, packet: P) -> bool {
        let late = self.flying.back().is_some_and(|b| b.due > due);
        if late {
            let at = self.flying.partition_point(|f| f.due <= due);
            self.flying.insert(at, Flying { due, packet });
            at == 0
        } else {
            self.flying.push_back(Flying { due, packet });
            self.flying.len() == 1
        }
    }

    /// Offers a packet to a link of any kind at `now`.
    pub fn accept<M: Meter<P>>(&mut self, now: Time, mut packet: P, meter: &mut M) {
        if self.mtu().is_some_and(|mtu| packet.size() > mtu) {
            meter.offered(now, &packet);
            meter.too_large(now, &packet);
        } else if self.extra.as_ref().is_some_and(|e| e.served.is_some()) {
            meter.offered(now, &packet);
            self.serve_arrival(now, packet, meter);
        } else if self.is_computed() {
            if let Some(due) = self.pass(now, &mut packet, meter) {
                self.hold(due, packet);
            }
        } else {
            meter.offered(now, &packet);
            if let Some((start, end)) = self.schedule(now, &packet, meter) {
                meter.served(&packet, now, start, end);
                self.launch(end, packet, meter);
            }
        }
    }

    /// When [`poll`](Link::poll) next has something to do.
    #[inline]
    pub fn next_timeout(&self) -> Time {
        let first = self.flying.front().map_or(Time::NEVER, |f| f.due);
        match &self.extra {
            None => first,
            Some(extra) => {
                let served = extra.served.as_ref().and_then(|s| s.current.as_ref());
                first.min(served.map_or(Time::NEVER, |c| c.2))
            }
        }
    }

    /// A packet that has arrived at the far end by `now`; call until `None`.
    #[inline]
    pub fn poll<M: Meter<P>>(&mut self, now: Time, meter: &mut M) -> Option<P> {
        let packet = *self.first_due(now, meter)?;
        self.remove_first();
        Some(packet)
    }

    /// As [`poll`](Link::poll), but by reference: the caller copies the packet once and calls
    /// [`remove_first`](Link::remove_first).
    #[inline]
    pub fn first_due<M: Meter<P>>(&mut self, now: Time, meter: &mut M) -> Option<&P> {
        if self.extra.is_some() {
            self.finish_service(now, meter);
        }
        self.flying.front().filter(|f| f.due <= now).map(|f| &f.packet)
    }

    /// Removes the packet that [`first_due`](Link::first_due) returned.
    #[inline]
    pub fn remove_first(&mut self) {
        self.flying.pop_front();
    }

    /// Packets that wait at `now`, without the one in transmission.
    pub fn waiting(&self, now: Time) -> usize {
        if let Some(served) = self.extra.as_ref().and_then(|e| e.served.as_ref()) {
            return served.queue.waiting();
        }
        self.room.as_ref().map_or(0, |room| {
            let started = room.starts.partition_point(|(start, _)| *start <= now.as_nanos());
            room.starts.len() - started
        })
    }

    /// All packets in the link: waiting, in transmission and propagating.
    pub fn held(&self) -> usize {
        let served = self.extra.as_ref().and_then(|e| e.served.as_ref());
        // On a computed link, waiting packets are stored with those that propagate.
        self.flying.len()
            + served.map_or(0, |s| s.queue.waiting() + usize::from(s.current.is_some()))
    }

    /// Reads all packets in flight and returns a value that depends on them. Called before a link is used after a long
    /// time, it makes the processor load the memory at once rather than packet by packet.
    pub fn fetch(&self) -> u64 {
        let waiting = self.room.as_ref().map_or(0, |r| r.starts.iter().map(|s| s.0).sum());
        self.flying.iter().fold(waiting, |sum, f| sum ^ f.due.as_nanos())
    }

    /// The queue's average length in packets at the last arrival. `None` if the queue discipline has no average.
    pub fn average(&self) -> Option<f64> {
        self.extra.as_ref()?.served.as_ref()?.queue.average()
    }

    /// Applies a scheduled change. Requires a link configured with `changes`.
    pub fn change(&mut self, now: Time, change: &LinkChange) {
        match change {
            LinkChange::Rate(rate) => {
                self.serializer = Serializer::new(*rate);
                // A trace continues, and so does the queue in front of it.
                let served = self.extra.as_mut().and_then(|e| e.served.as_mut());
                if let Some(served) = served.filter(|s| s.trace.is_none()) {
                    served.queue.change_rate(now, *rate);
                }
            }
            LinkChange::Delay(delay) => self.delay = *delay,
            LinkChange::Loss(specs) => {
                if let Some(extra) = &mut self.extra {
                    let random_key = extra.random_key;
                    extra.loss = specs.iter().map(|s| s.build(random_key)).collect();
                }
            }
            LinkChange::Mtu(bytes) => {
                if let Some(extra) = &mut self.extra {
                    extra.impairments.mtu = Some(*bytes);
                }
            }
        }
    }

    fn serve_arrival<M: Meter<P>>(&mut self, now: Time, packet: P, meter: &mut M) {
        // Transmissions that ended by now free their queue space first: departures precede arrivals.
        self.finish_service(now, meter);
        let Some(served) = self.extra.as_mut().and_then(|e| e.served.as_mut()) else { return };
        let idle = served.current.is_none();
        // An idle transmitter takes the packet at once, even if the queue's limit is zero.
        let queued = served.held.put(packet);
        let queue = &mut served.queue;
        let held = &mut served.held;
        let mut observer = QueueReports { now, held, meter };
        let (waits, sent) = if idle {
            (false, queue.pass(now, queued, &mut observer))
        } else {
            (queue.enqueue(now, queued, false, &mut observer), None)
        };
        let sent = sent.and_then(|queued| served.held.take(&queued));
        if waits || sent.is_some() {
            meter.queued(now, served.queue.waiting());
        }
        meter.waiting(now, served.queue.waiting());
        if served.averages
            && let Some(average) = served.queue.average()
        {
            meter.averaged(now, average);
        }
        if let Some(packet) = sent {
            self.begin(now, now, packet);
        }
    }

    fn begin(&mut self, arrived: Time, start: Time, packet: P) {
        let Some(served) = self.extra.as_mut().and_then(|e| e.served.as_mut()) else { return };
        let end = match &mut served.trace {
            Some((trace, cursor)) => cursor.serve(trace, start, packet.size()),
            None => start + self.serializer.next(packet.size()),
        };
        served.current = Some((arrived, start, end, packet));
    }

    fn finish_service<M: Meter<P>>(&mut self, now: Time, meter: &mut M) {
        loop {
            let Some(served) = self.extra.as_mut().and_then(|e| e.served.as_mut()) else { return };
            let Some((arrived, start, end, packet)) = served.current else { return };
            if end > now {
                return;
            }
            served.current = None;
            let held = &mut served.held;
            let next = served.queue.dequeue(end, &mut QueueReports { now: end, held, meter });
            let next = next
                .and_then(|(arrived_at, queued)| Some((arrived_at, served.held.take(&queued)?)));
            meter.waiting(end, served.queue.waiting());
            meter.served(&packet, arrived, start, end);
            self.launch(end, packet, meter);
            if let Some((arrived_at, packet)) = next {
                self.begin(arrived_at, end, packet);
            }
        }
    }

    /// Applies loss, delay and impairments to a packet whose transmission ended.
    fn launch<M: Meter<P>>(&mut self, end: Time, mut packet: P, meter: &mut M) {
        let Some(extra) = &mut self.extra else {
            self.hold(end + self.delay, packet);
            return;
        };
        let Some(due) = extra.after(end, self.delay, &mut packet, meter) else { return };
        let im = extra.impairments;
        let held_back = im.reorder > 0.0 && extra.stream.chance(im.reorder);
        let twice = im.duplicate > 0.0 && extra.stream.chance(im.duplicate);
        let early = extra.early.as_mut().is_some_and(EarlyPackets::next);
        let due = if held_back {
            due + im.reorder_by
        } else if early {
            end
        } else if im.jitter_form.overtakes {
            due
        } else {
            extra.last_due = extra.last_due.max(due);
            extra.last_due
        };
        self.hold(due, packet);
        if twice {
            self.hold(due, packet);
        }
    }
}

impl<P: LinkPacket + Copy> Extra<P> {
    /// Arrival time of a packet whose transmission ended at `end`, or `None` if it is lost.
    #[inline]
    fn after<M: Meter<P>>(
        &mut self,
        end: Time,
        delay: Duration,
        packet: &mut P,
        meter: &mut M,
    ) -> Option<Time> {
        // Every process sees every packet, so that the state of a chain does not depend on other
        // processes.
        let mut lost = false;
        for process in &mut self.loss {
            lost |= process.strikes(end, packet);
        }
        if self.policer.as_mut().is_some_and(|p| !p.admits(end, packet.size())) {
            meter.dropped(end, packet);
            return None;
        }
        if lost {
            meter.lost(end, packet);
            return None;
        }
        let mut due = end + delay;
        if let Some(jitter) = &mut self.jitter {
            due = end + jitter.delay(delay);
        } else if self.impairments.jitter > Duration::ZERO {
            due += self.impairments.jitter.mul_f64(self.stream.unit());
        }
        if self.impairments.corrupt > 0.0 && self.stream.chance(self.impairments.corrupt) {
            packet.corrupt();
        }
        Some(due)
    }
}

/// The jitter of a link that has any in another form than the usual.
fn special_jitter(i: &Impairments, random_key: RandomKey) -> Option<Jitter> {
    let usual = JitterForm { overtakes: i.jitter_form.overtakes, ..JitterForm::default() };
    let special = i.jitter > Duration::ZERO && i.jitter_form != usual;
    special.then(|| Jitter::new(i.jitter, &i.jitter_form, random_key))
}

fn build_losses(config: &LinkConfig, random_key: RandomKey) -> Vec<Box<dyn LossProcess>> {
    config.loss.iter().map(|s| s.build(random_key)).collect()
}

impl<P> std::fmt::Debug for Link<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Link({}, {}, {} in flight)",
            self.serializer.rate(),
            self.delay,
            self.flying.len()
        )
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
pub(crate) mod tests;
