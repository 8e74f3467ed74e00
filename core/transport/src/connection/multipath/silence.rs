//! Timers of several paths: a path without answers is left, probed, and used again after its first answer.

use super::super::Connection;
use super::super::path::Path;
use narrows_base::{Duration, Time};

impl Connection {
    /// The earliest timer of further paths, of the scheduler and of silent paths.
    pub(in crate::connection) fn multipath_due(&self) -> Time {
        let Some(multipath) = &self.multipath else { return Time::NEVER };
        let ids = multipath.opening.iter().map(|path| path.announcement.due);
        let statuses = multipath.statuses.iter().map(|known| known.announcement.due);
        let leaders = multipath.leaders.iter().map(|known| known.announcement.due);
        let announced = ids.chain(statuses).chain(leaders);
        let mut due = multipath.waits_until.min(announced.min().unwrap_or(Time::NEVER));
        let tick = self.timeouts.earliest_tick();
        for path in self.further_paths() {
            due = due.min(path.next_timeout(tick));
            if path.address.is_validated() {
                due = due.min(path.report_due());
            }
        }
        let all_arrived = self.payload.streams.all_arrived();
        let several = self.path_count() > 1;
        for (index, path) in self.paths().enumerate().filter(|_| several) {
            let elsewhere = self.is_usable_elsewhere(index);
            due = due.min(path.silence_due(elsewhere, all_arrived));
            due = due.min(self.keep_alive_of(path));
        }
        due
    }

    /// When to request a reply on a path from which nothing came for the keep-alive interval: otherwise a NAT forgets a
    /// path that carries no data, and a receiver whose address has changed never shows the new one.
    fn keep_alive_of(&self, path: &Path) -> Time {
        let interval = self.timeouts.keep_alive;
        let is_probed = path.sender.backoffs() > 0;
        let is_excluded = is_probed || path.is_closed() || !path.address.is_validated();
        if interval == Duration::ZERO || is_excluded {
            return Time::NEVER;
        }
        path.received.max(path.asked) + interval
    }

    /// Handles timers of several paths.
    pub(in crate::connection) fn on_multipath_timeout(&mut self, now: Time) {
        let count = self.path_count();
        for index in 1..count {
            self.on_path(index, |connection| connection.on_path_timeout(now));
        }
        if count < 2 {
            return;
        }
        let mut is_changed = false;
        for index in 0..count {
            let all_arrived = self.payload.streams.all_arrived();
            let elsewhere = self.is_usable_elsewhere(index);
            let is_asked = self.keep_alive_of(self.path_at(index)) <= now;
            self.on_path(index, |connection| {
                let Connection { path, payload, .. } = connection;
                path.scheduled.is_stale = true;
                if is_asked {
                    path.asked = now;
                    path.sender.force();
                }
                if path.silence_due(elsewhere, all_arrived) > now {
                    return;
                }
                let was_silent = path.scheduled.liveness.is_silent();
                let pto = path.sender.pto();
                path.scheduled.liveness.on_timeout(now, pto);
                path.sender.force();
                if !was_silent {
                    is_changed = true;
                    // What is in flight on it leaves again on the others.
                    for (_, _, frames) in path.sender.in_flight_from(0) {
                        payload.lost(frames);
                    }
                }
            });
        }
        if is_changed {
            self.share_rate_limit();
        }
    }
}
