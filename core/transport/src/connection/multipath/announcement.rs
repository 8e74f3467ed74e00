//! A frame that is repeated, within a number of tries: a client's until the server answers it, a server's without answers.

use narrows_base::{Duration, Time};
use narrows_multipath::{PathStatus, PathWeight};

/// Longest time between them.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// When a frame leaves.
#[derive(Debug)]
pub(super) struct Announcement {
    /// [`Time::NEVER`] while there is nothing to send.
    pub due: Time,
    tries: u32,
}

impl Default for Announcement {
    fn default() -> Announcement {
        Announcement { due: Time::NEVER, tries: 0 }
    }
}

impl Announcement {
    /// The frame is to leave now.
    pub fn begin(&mut self, now: Time) {
        self.due = now;
        self.tries = 0;
    }
    /// The frame need not leave (again).
    pub fn end(&mut self) {
        self.due = Time::NEVER;
    }
    /// The frame leaves. It leaves again after a probe timeout, doubling, at most `repetitions` times.
    pub fn on_sent(&mut self, now: Time, pto: Duration, repetitions: u32) {
        self.due = Time::NEVER;
        if self.tries < repetitions {
            let pause = pto.saturating_mul(1 << self.tries.min(8));
            self.due = now + pause.min(MAX_PAUSE.max(pto));
            self.tries += 1;
        }
    }
}

/// The status of one path, as both ends know it.
#[derive(Debug, Default)]
pub(super) struct AnnouncedStatus {
    pub status: PathStatus,
    pub weight: PathWeight,
    /// Number of changes.
    pub sequence: u32,
    pub announcement: Announcement,
}

/// The path that carries the data in place of one path, by number: of this server's data, or at a client of the
/// server's.
#[derive(Debug, Default)]
pub(super) struct AnnouncedLeader {
    pub leader: Option<u8>,
    pub announcement: Announcement,
}
