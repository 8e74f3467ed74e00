//! Timers of a connection.

use super::{Closed, Connection, early};
use narrows_base::Time;

impl Connection {
    /// When to call [`on_timeout`](Connection::on_timeout). The value is valid until the next call of any other method.
    pub fn next_timeout(&self) -> Time {
        if !self.is_open() {
            return self.life.next_timeout();
        }
        self.path
            .next_timeout(self.timeouts.earliest_tick())
            .min(self.path.report_due())
            .min(self.idle_due())
            .min(self.timeouts.keep_alive_due(self.path.holds_data()))
            .min(self.release_due())
            .min(self.multipath_due())
    }
    fn idle_due(&self) -> Time {
        self.timeouts.idle_due(self.path.sender.pto()).min(self.unconfirmed_until())
    }
    fn release_due(&self) -> Time {
        self.timeouts.release_due(self.payload.streams.has_spare())
    }
    fn release_memory(&mut self) {
        self.timeouts.keeps_memory = false;
        self.path.release_memory();
        if let Some(multipath) = &mut self.multipath {
            multipath.release_memory();
        }
        self.inbox.release_memory();
        if let Some(repairs) = &mut self.repairs {
            repairs.release_memory();
        }
        let payload = &mut self.payload;
        payload.streams.release_memory();
        payload.messages.release_memory();
    }

    /// Requests a reply: with waiting data if there are any, otherwise with a PING if keep-alive is on. The packet
    /// ignores window and pacer; one per interval is no load.
    fn keep_alive(&mut self, now: Time) {
        let is_wanted = self.timeouts.ask(now);
        if self.path.sender.backoffs() > 0 {
            return; // Probes already request a reply.
        }
        self.payload.ping |= is_wanted;
        if !self.payload.is_empty() {
            self.path.sender.force();
        }
    }

    /// Handles the time given by [`next_timeout`](Connection::next_timeout).
    pub fn on_timeout(&mut self, now: Time) {
        self.timeouts.due = now;
        if !self.is_open() {
            return self.life.on_timeout(now);
        }
        if now >= self.idle_due() {
            return self.vanish(Closed::TimedOut);
        }
        if now >= self.release_due() {
            self.release_memory();
        }
        if now >= self.timeouts.keep_alive_due(self.path.holds_data()) {
            self.keep_alive(now);
        }
        self.on_path_timeout(now);
        if self.multipath.is_some() {
            self.on_multipath_timeout(now);
        }
    }

    pub(super) fn on_path_timeout(&mut self, now: Time) {
        if self.path.is_closed() {
            return;
        }
        let Connection { path, payload, traffic, early, .. } = self;
        path.on_timeout(now, payload, |bytes| {
            let sent = traffic.bytes_sent + bytes as u64;
            !early::is_too_early(*early, sent) && !traffic.is_before_first_ack(sent, bytes)
        });
        path.receiver.on_timeout(now);
    }
}
