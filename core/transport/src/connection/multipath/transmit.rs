//! Outgoing packets of several paths: path frames, probes, reports, and data on the path that the scheduler chooses.

use super::super::packets::PacketContent;
use super::super::{Connection, Transmit};
use narrows_base::Time;
use narrows_multipath::{Choice, PathStatus, Piece, TrafficClass};
use narrows_wire::Frame;

impl Connection {
    /// As [`transmit`](Connection::transmit), for a connection that may have several paths.
    pub(in crate::connection) fn transmit_multipath(
        &mut self,
        now: Time,
        buffer: &mut [u8],
        segments: usize,
    ) -> Option<Transmit> {
        if !self.is_open() {
            let index = self.latest_path();
            return self.on_path(index, |connection| connection.transmit_closing(now, buffer));
        }
        let announced = self.transmit_path_id(now, buffer);
        if let Some(sent) = announced.or_else(|| self.transmit_path_status(now, buffer)) {
            return Some(sent);
        }
        let count = self.path_count();
        for index in 0..count {
            if self.path_at(index).is_closed() {
                continue;
            }
            let sent = self.on_path(index, |connection| {
                let sent = connection.transmit_path_frame(now, buffer);
                sent.or_else(|| connection.transmit_mtu_probe(now, buffer))
            });
            let sent = sent.or_else(|| self.transmit_forced(now, index, buffer));
            if sent.is_some() {
                return sent;
            }
        }
        self.payload.messages.expire(now);
        self.seek_room(now);
        if count == 1 && !self.path.is_closed() {
            return self.transmit_packets(now, buffer, segments, None);
        }
        let chosen = self.schedule(now);
        for index in (0..count).filter(|index| chosen != Some(*index)) {
            if let Some(sent) = self.transmit_report(now, index, buffer) {
                return Some(sent);
            }
        }
        if let Some(index) = chosen {
            let data = Some(PacketContent::Data);
            let sent = self.on_path(index, |c| c.transmit_packets(now, buffer, segments, data));
            if sent.is_some() {
                return sent;
            }
        }
        for index in 0..count {
            self.on_path(index, |connection| {
                let path = &mut connection.path;
                path.scheduled.leave_unused(&mut path.sender);
            });
        }
        None
    }

    /// A packet with this frame alone, over the path with this index.
    pub(super) fn transmit_extension(
        &mut self,
        now: Time,
        index: usize,
        buffer: &mut [u8],
        frame: &Frame<'_>,
    ) -> Option<Transmit> {
        self.on_path(index, |connection| {
            let size = connection.seal_not_in_flight(now, buffer, frame)?;
            Some(connection.one(connection.path.address.remote(), size, false))
        })
    }

    /// The packet of a path that must send one: a full packet without data, if another path carries the data.
    fn transmit_forced(&mut self, now: Time, index: usize, buffer: &mut [u8]) -> Option<Transmit> {
        let path = self.path_at(index);
        if index == 0 && self.path_count() == 1
            || path.is_closed()
            || !path.sender.is_forced()
            || !path.address.is_validated()
        {
            return None;
        }
        let is_probe = self.is_usable_elsewhere(index);
        self.on_path(index, |connection| {
            // Records the departure with the pacer.
            let _ = connection.path.may_send(now, &mut connection.payload);
            let is_probe = is_probe && !connection.path.sender.is_short_probe();
            let content = if is_probe { PacketContent::Probe } else { PacketContent::Data };
            connection.transmit_packets(now, buffer, 1, Some(content))
        })
    }

    /// A packet with a report alone, if one is due on this path.
    fn transmit_report(&mut self, now: Time, index: usize, buffer: &mut [u8]) -> Option<Transmit> {
        let path = self.path_at(index);
        let may_carry = path.address.is_validated() && !path.is_closed();
        if !may_carry || !path.receiver.must_report(now) {
            return None;
        }
        let report = Some(PacketContent::Report);
        self.on_path(index, |connection| connection.transmit_packets(now, buffer, 1, report))
    }

    /// The index of the path for the next data, by the scheduler's choice.
    fn schedule(&mut self, now: Time) -> Option<usize> {
        for index in 0..self.path_count() {
            self.on_path(index, |connection| connection.refresh_path(now, index));
        }
        if let Some(multipath) = &mut self.multipath {
            multipath.waits_until = Time::NEVER;
        }
        self.repeat_late_data(now);
        let index = self.choose(now)?;
        let path = self.path_at(index);
        let bytes = path.datagram();
        let is_permitted = path.scheduled.is_permitted;
        (is_permitted && !self.is_before_first_ack(0, bytes)).then_some(index)
    }

    /// Computes the state of the current path, which has this index.
    fn refresh_path(&mut self, now: Time, index: usize) {
        self.path.refresh(now, &mut self.payload);
        let states = self.multipath.as_mut().map(|multipath| &mut multipath.states);
        if let Some(state) = states.and_then(|states| states.get_mut(index)) {
            *state = self.path.scheduled.state;
        }
        self.limit_led_path(index);
        if let Some(multipath) = &mut self.multipath
            && multipath.parts.is_ahead(index, &multipath.states)
            && let Some(state) = multipath.states.get_mut(index)
            && state.status == PathStatus::Available
        {
            state.status = PathStatus::Standby;
        }
    }

    /// Whether the scheduler chooses the current path, a further one or path 0, for one more packet.
    pub(in crate::connection) fn is_next_here(&mut self, now: Time) -> bool {
        let index = self.current_index();
        self.refresh_path(now, index);
        let is_chosen = self.choose(now) == Some(index);
        is_chosen && self.path.scheduled.is_permitted
    }

    /// Asks the scheduler for the path of the next piece of data.
    fn choose(&mut self, now: Time) -> Option<usize> {
        if self.payload.is_empty() {
            return None;
        }
        let waiting = self.payload.streams.waiting();
        let is_urgent = waiting.is_control || self.payload.ping;
        // Messages leave before streams.
        let messages = self.payload.messages.memory() as u64;
        let held_back = self.multipath.as_ref().map_or(0, |multipath| multipath.held_back);
        let is_lost = waiting.lost > 0 && messages == 0;
        let backlog = match messages {
            0 if is_lost => waiting.lost,
            0 => waiting.fresh,
            bytes => bytes.saturating_add(held_back),
        };
        let full = self.path.datagram() as u64;
        let with_room = self.states_with_room();
        let multipath = self.multipath.as_mut()?;
        let piece = Piece {
            length: backlog.clamp(1, full) as u32,
            backlog: backlog.max(1),
            class: if is_urgent { TrafficClass::Interactive } else { TrafficClass::Bulk },
            deadline: Time::NEVER,
            is_lost,
        };
        let states = with_room.as_ref().unwrap_or(&multipath.states);
        match multipath.scheduler.choose(now, states, &piece) {
            Choice::Send(index) => {
                multipath.scheduler.on_sent(index, piece.length, false);
                multipath.parts.on_sent(index, piece.length, &multipath.states);
                if let Some(shared) = &mut multipath.shared {
                    shared.on_sent(now, index, piece.length);
                }
                Some(index)
            }
            Choice::Wait(until) => {
                multipath.waits_until = multipath.waits_until.min(until);
                None
            }
        }
    }
}
