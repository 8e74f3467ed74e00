//! What a link counts.

use narrows_base::{Duration, Time};
use narrows_net::relay::{DirectionStats, Lateness, LatenessCounter};

/// Length of a window of lateness.
pub const WINDOW: Duration = Duration::from_secs(10);
/// Windows that are kept: a day's.
const MAX_WINDOWS: usize = 8640;

/// One direction.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WayStats {
    /// Packets and queue.
    pub packets: DirectionStats,
    /// How late packets left the emulator after the link's virtual time: its own error.
    pub lateness: Lateness,
    /// The same of each [`WINDOW`] that is over and in which at least [`MIN_WINDOW_PACKETS`] left.
    pub windows: Vec<Lateness>,
    /// Packets that wait in the queue now.
    pub waiting: usize,
    /// Frames that the kernel dropped before the emulator read them: it was too slow.
    pub unread: u64,
    /// Frames that the kernel did not take at the far end.
    pub refused: u64,
    /// Frames that were no IP packets.
    pub foreign: u64,
}

/// A window with fewer packets has no 99th percentile worth a name.
pub const MIN_WINDOW_PACKETS: u64 = 100;

/// Both directions.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LinkStats {
    /// From A to B.
    pub there: WayStats,
    /// From B to A.
    pub back: WayStats,
}

/// Lateness so far and of the window.
#[derive(Debug)]
pub(crate) struct LatenessLog {
    all: LatenessCounter,
    window: LatenessCounter,
    window_began: Time,
    windows: Vec<Lateness>,
}

impl LatenessLog {
    pub fn new() -> LatenessLog {
        let (all, window) = (LatenessCounter::new(), LatenessCounter::new());
        LatenessLog { all, window, window_began: Time::ZERO, windows: Vec::new() }
    }

    /// One packet left at `now` that was due before.
    pub fn record(&mut self, now: Time, due: Time) {
        if now.since(self.window_began) >= WINDOW {
            let window = std::mem::replace(&mut self.window, LatenessCounter::new());
            if window.count() >= MIN_WINDOW_PACKETS && self.windows.len() < MAX_WINDOWS {
                self.windows.push(window.read());
            }
            self.window_began = now;
        }
        self.all.record(now.since(due));
        self.window.record(now.since(due));
    }

    pub fn read(&self) -> (Lateness, Vec<Lateness>) {
        (self.all.read(), self.windows.clone())
    }
}
