//! FQ-CoDel: one CoDel queue per flow, served by deficit round robin (RFC 8290).

use super::codel::{CodelLaw, CodelState, INTERVAL, TARGET};
use super::discipline::{Discipline, ECN, QueueEntry, QueueObserver, limit_param};
use super::fifo::Fifo;
use super::packet::QueuedPacket;
use crate::config::QueueLimit;
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, RandomKey, Settings, Status, Time, random};
use std::collections::VecDeque;

/// The most packets that are dropped at once when the limit is exceeded (RFC 8290 section 4.1).
const BATCH: u32 = 64;

/// FQ-CoDel's descriptor.
const FQ_CODEL: Descriptor = Descriptor {
    name: "fq-codel",
    summary: "a CoDel queue per flow, served in turn; flows that just began go first",
    source: "RFC 8290",
    senses: "flows, and how long each packet has waited",
    sets: "order of service; drops or marks at the head; in need, half of the longest queue",
    params: &[
        TARGET,
        INTERVAL,
        ECN,
        Param {
            name: "flows",
            help: "queues into which flows are hashed",
            kind: ParamKind::Number { unit: Unit::None, min: 1.0, max: 65_536.0, default: 1024.0 },
            origin: "RFC 8290 section 5.2.4",
        },
        Param {
            name: "quantum",
            help: "bytes that a flow may send in its turn",
            kind: ParamKind::Number { unit: Unit::Bytes, min: 64.0, max: 1e9, default: 1514.0 },
            origin: "RFC 8290 section 5.2.3: the MTU with its Ethernet header",
        },
        limit_param(10_240.0, "RFC 8290 section 5.2.5"),
    ],
    status: Status::Validated("max-min shares of constant rates, within 1% (docs/validation.md)"),
};

/// FQ-CoDel's entry.
pub(super) const ENTRY: QueueEntry =
    QueueEntry::new(&FQ_CODEL, |s| Box::new(FqCoDel::new(s.settings, s.limit, s.random_key)));

/// One of the hashed queues.
struct FlowQueue {
    fifo: Fifo,
    state: CodelState,
    /// Bytes left to send in this round; negative after a packet that exceeded the rest.
    deficit: i64,
    /// Whether it is on one of the two lists.
    listed: bool,
}

/// Flow queues that are served in turn.
pub(super) struct FqCoDel {
    law: CodelLaw,
    limit: QueueLimit,
    quantum: i64,
    key: u64,
    mtu: u32,
    packets: usize,
    bytes: u64,
    flows: Vec<FlowQueue>,
    /// New flows and old flows (RFC 8290 section 4.2), each in the order of their turns.
    fresh: VecDeque<u32>,
    old: VecDeque<u32>,
}

impl FqCoDel {
    pub fn new(s: &Settings, limit: QueueLimit, random_key: RandomKey) -> FqCoDel {
        let flow = || FlowQueue {
            fifo: Fifo::new(QueueLimit::Unlimited),
            state: CodelState::default(),
            deficit: 0,
            listed: false,
        };
        FqCoDel {
            law: CodelLaw::new(s),
            limit,
            quantum: s.number("quantum") as i64,
            key: random_key.bits(),
            mtu: 0,
            packets: 0,
            bytes: 0,
            flows: (0..(s.number("flows") as usize).max(1)).map(|_| flow()).collect(),
            fresh: VecDeque::new(),
            old: VecDeque::new(),
        }
    }

    fn place(&self, packet: &QueuedPacket) -> usize {
        (random::mix(self.key ^ random::mix(packet.flow)) % self.flows.len() as u64) as usize
    }

    fn is_over(&self) -> bool {
        !self.limit.admits(self.packets as u64, self.bytes)
    }

    /// Drops half of the bytes of the longest queue from its head, at most [`BATCH`] packets at a
    /// time: finding that queue is expensive and must not be needed for every arrival.
    fn relieve(&mut self, observer: &mut dyn QueueObserver) {
        // Among queues of empty packets the packet count breaks the tie, so that something is
        // dropped.
        let fattest = self.flows.iter_mut().max_by_key(|f| (f.fifo.bytes(), f.fifo.len()));
        let Some(flow) = fattest else { return };
        let most = flow.fifo.bytes();
        let mut freed = 0;
        for _ in 0..BATCH {
            let Some((_, packet)) = flow.fifo.pop() else { break };
            freed += u64::from(packet.size);
            self.packets -= 1;
            self.bytes -= u64::from(packet.size);
            observer.dropped(&packet);
            if freed >= most / 2 {
                break;
            }
        }
    }
}

impl Discipline for FqCoDel {
    fn enqueue(
        &mut self,
        now: Time,
        packet: QueuedPacket,
        idle: bool,
        observer: &mut dyn QueueObserver,
    ) -> bool {
        let place = self.place(&packet);
        let size = packet.size;
        self.mtu = self.mtu.max(size);
        let Some(flow) = self.flows.get_mut(place) else { return false };
        flow.fifo.push(now, packet);
        self.packets += 1;
        self.bytes += u64::from(size);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.quantum;
            self.fresh.push_back(place as u32);
        }
        // Drops are made at the head, so the arriving packet is dropped only if its own queue is.
        while !idle && self.packets > 0 && self.is_over() {
            self.relieve(observer);
        }
        self.flows.get(place).is_some_and(|flow| flow.fifo.len() > 0)
    }

    fn dequeue(
        &mut self,
        now: Time,
        observer: &mut dyn QueueObserver,
    ) -> Option<(Time, QueuedPacket)> {
        loop {
            let fresh = !self.fresh.is_empty();
            let list = if fresh { &mut self.fresh } else { &mut self.old };
            let index = *list.front()?;
            let flow = self.flows.get_mut(index as usize)?;
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let packets = flow.fifo.len();
            let bytes = flow.fifo.bytes();
            let next = flow.state.dequeue(&self.law, &mut flow.fifo, self.mtu, now, observer);
            self.packets -= packets - flow.fifo.len();
            self.bytes -= bytes - flow.fifo.bytes();
            if let Some(next) = next {
                flow.deficit -= i64::from(next.1.size);
                return Some(next);
            }
            list.pop_front();
            if fresh {
                // A flow that has emptied becomes an old flow before it may be new again; otherwise
                // a flow with one packet at a time would always go first.
                self.old.push_back(index);
            } else {
                flow.listed = false;
            }
        }
    }

    fn waiting(&self) -> usize {
        self.packets
    }
}

#[cfg(test)]
#[path = "fq_codel_tests.rs"]
mod tests;
