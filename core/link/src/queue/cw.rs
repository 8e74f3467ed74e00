//! Congestion warning: the router of TCP Jersey, which marks every packet while the average queue
//! exceeds one threshold.
//!
//! Hu and Zha name the scheme but not the threshold. Here it is a quarter of the queue limit, as the public ns-3 port
//! of Jersey configures it (50 of 200 packets). The weight is 0.2 as in that port, and on an idle link the average
//! decays as RED's does. Packets that are not ECN-capable pass; only a full queue drops.

use super::average::Averaged;
use super::discipline::{Discipline, LinkAhead, QueueEntry, QueueObserver};
use super::fifo::Fifo;
use super::packet::QueuedPacket;
use crate::config::QueueLimit;
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, Rate, Settings, Status, Time};

/// The queue limit in packets that the threshold is computed from on a link without a limit.
const USUAL_ROOM: f64 = 200.0;

/// The congestion-warning router's descriptor.
const CW: Descriptor = Descriptor {
    name: "cw",
    summary: "marks every ECN-capable arrival while the average queue is above a threshold",
    source: "Hu and Zha; Xu, Tian, Ansari, TCP-Jersey, IEEE JSAC 22(4), 2004",
    senses: "an average of the packets waiting, close to their number",
    sets: "marks; drops only if the queue is full",
    params: &[
        Param {
            name: "threshold",
            help: "share of the queue limit above which all are marked; of 200 packets without a limit",
            kind: ParamKind::Number { unit: Unit::Fraction, min: 0.0, max: 1.0, default: 0.25 },
            origin: "ns-3 port of TCP Jersey: 50 of 200 packets; left open by Hu and Zha",
        },
        Param {
            name: "packets",
            help: "the threshold in packets, instead of the share; 0 is the share",
            kind: ParamKind::Number { unit: Unit::Packets, min: 0.0, max: 1e15, default: 0.0 },
            origin: "ours",
        },
        Param {
            name: "weight",
            help: "of the newest queue in the average",
            kind: ParamKind::Number { unit: Unit::None, min: 1e-6, max: 1.0, default: 0.2 },
            origin: "ns-3 port of TCP Jersey",
        },
        Param {
            name: "mean-packet",
            help: "size that counts as one packet if the limit is in bytes, and when idle",
            kind: ParamKind::Number { unit: Unit::Bytes, min: 1.0, max: 65_535.0, default: 1000.0 },
            origin: "ours",
        },
    ],
    status: Status::Validated("marks above its threshold and nowhere else, by test"),
};

/// Congestion warning's entry.
pub(super) const ENTRY: QueueEntry =
    QueueEntry::new(&CW, |s| Box::new(Cw::new(s.settings, s.limit, s.link)));

/// A queue that marks by congestion warning.
pub(super) struct Cw {
    threshold: f64,
    weight: f64,
    mean_packet: f64,
    packets_per_s: f64,
    /// If the limit is in bytes, queue, average and threshold are bytes divided by the mean packet
    /// size.
    line: Averaged,
}

impl Cw {
    pub fn new(s: &Settings, limit: QueueLimit, ahead: LinkAhead) -> Cw {
        let mean_packet = s.number("mean-packet");
        let by_packets = s.number("packets") > 0.0;
        let room = match limit {
            QueueLimit::Unlimited => USUAL_ROOM,
            QueueLimit::Packets(n) | QueueLimit::Either { packets: n, .. } => n as f64,
            QueueLimit::Bytes(n) => n as f64 / mean_packet,
        };
        let in_bytes = matches!(limit, QueueLimit::Bytes(_)) && !by_packets;
        Cw {
            threshold: if by_packets { s.number("packets") } else { s.number("threshold") * room },
            weight: s.number("weight"),
            mean_packet,
            packets_per_s: ahead.packets_per_s(mean_packet),
            line: Averaged::new(Fifo::new(limit), in_bytes.then_some(mean_packet)),
        }
    }
}

impl Discipline for Cw {
    fn enqueue(
        &mut self,
        now: Time,
        mut packet: QueuedPacket,
        idle: bool,
        observer: &mut dyn QueueObserver,
    ) -> bool {
        self.line.arrival(now, self.weight, self.packets_per_s);
        if !idle && !self.line.fifo.has_room(packet.size) {
            observer.dropped(&packet);
            return false;
        }
        if self.line.average > self.threshold && packet.ect {
            packet.marked = true;
            observer.marked(&packet);
        }
        self.line.fifo.push(now, packet);
        true
    }
    fn dequeue(
        &mut self,
        now: Time,
        _observer: &mut dyn QueueObserver,
    ) -> Option<(Time, QueuedPacket)> {
        self.line.pop(now)
    }
    fn waiting(&self) -> usize {
        self.line.fifo.len()
    }
    fn change_rate(&mut self, _now: Time, rate: Rate) {
        self.packets_per_s = rate.as_bps() as f64 / (8.0 * self.mean_packet);
    }
    fn average(&self) -> Option<f64> {
        Some(self.line.average)
    }
}

#[cfg(test)]
#[path = "cw_tests.rs"]
mod tests;
